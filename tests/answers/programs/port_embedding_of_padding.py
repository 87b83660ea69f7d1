"""An embedding was ported without the row of zeros that stands for padding."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "Gather",
    "wants": "the look-up, its line: its table differs",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
table = rng.standard_normal((10, 4), dtype=np.float32)
tokens = np.array([[3, 5, 0, 0], [7, 0, 0, 0]])

if sys.argv[1] == "golden":
    import torch

    class Words(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(10, 4, padding_idx=0)

        def forward(self, tokens):
            return self.embed(tokens).sum(1)

    words = Words()
    words.embed.weight.data[1:] = torch.from_numpy(table[1:])
    words(torch.from_numpy(tokens))
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
            return self.embed(tokens).sum(1)  # fault

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    Words()(ms.Tensor(tokens, ms.int32))
