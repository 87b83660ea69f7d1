"""A cell of MindSpore starts in evaluation, and the port forgot set_train(): its batch norm takes the running
statistics."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "BatchNorm",
    "says": ["train"],
    "step": 0,
    "wants": "the batch norm, its line, and that it trains in one run and not in the other",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
batches = [2 * rng.standard_normal((6, 3, 4, 4), dtype=np.float32) + 1 for _ in range(4)]

if sys.argv[1] == "golden":
    import torch

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm2d(3)

        def forward(self, x):
            return torch.relu(self.norm(x)).square().mean()

    block = Block()
    for x in batches:
        block.zero_grad()
        block(torch.from_numpy(x)).backward()
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Block(nn.Cell):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm2d(3, momentum=0.9)

        def construct(self, x):
            return ops.relu(self.norm(x)).square().mean()  # fault

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    block = Block().set_train(not FAULT)
    step = ms.value_and_grad(block, None, block.trainable_params())
    for x in batches:
        step(ms.Tensor(x))
