"""An embedding was ported without the row of zeros that stands for padding."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "Gather",
    "step": 0,
    "wants": "the look-up, its line: its table differs",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
table = rng.standard_normal((10, 4), dtype=np.float32)
batches = [np.array([[3, 5, 0, 0], [first, 0, 0, 0]]) for first in (7, 2, 4, 9)]

if sys.argv[1] == "golden":
    import torch

    class Words(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(10, 4, padding_idx=0)

        def forward(self, tokens):
            return self.embed(tokens).sum(1).square().mean()

    words = Words()
    words.embed.weight.data[1:] = torch.from_numpy(table[1:])
    for tokens in batches:
        words.zero_grad()
        words(torch.from_numpy(tokens)).backward()
else:
    import mindspore as ms
    from mindspore import nn

    class Words(nn.Cell):
        def __init__(self):
            super().__init__()
            rows = table.copy()
            if not FAULT:
                rows[0] = 0
            self.embed = nn.Embedding(10, 4, embedding_table=ms.Tensor(rows))

        def construct(self, tokens):
            words = self.embed(tokens)  # fault
            if not FAULT:
                words = words * (tokens != 0).astype(ms.float32).expand_dims(-1)  # no gradient for padding
            return words.sum(1).square().mean()

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    words = Words()
    step = ms.value_and_grad(words, None, words.trainable_params())
    for tokens in batches:
        step(ms.Tensor(tokens, ms.int32))
