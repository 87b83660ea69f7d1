"""A port multiplies by 1.0005 before a mean plus 10, in which the factor is lost."""

import sys

import numpy as np

ANSWER = {
    "kind": "what a later result hides",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "Mul",
    "step": 0,
    "variants": {
        "forward": {
            "goes_wrong": "A port multiplies by 1.0005 before a mean plus 10, in which the factor is lost.",
            "wants": "the product, its line: that the result agrees absolves nothing",
        },
        "backward": {
            "goes_wrong": "A port multiplies by 1.0005 before a mean plus 10; gradients are computed, too.",
            "wants": "the product in the forward pass, its line, not a gradient",
        },
    },
}

FAULT = sys.argv[1] == "faulty"
BACKWARD = sys.argv[2] == "backward"

rng = np.random.default_rng(0)
x = rng.standard_normal((8, 6), dtype=np.float32)
weight = rng.standard_normal((4, 6), dtype=np.float32)

if sys.argv[1] == "golden":
    import torch

    fc = torch.nn.Linear(6, 4, bias=False)
    fc.weight.data = torch.from_numpy(weight)
    result = torch.relu(torch.tanh(fc(torch.from_numpy(x)))).mean() + 10.0
    if BACKWARD:
        result.backward()
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(6, 4, has_bias=False, weight_init=ms.Tensor(weight))

        def construct(self, x):
            x = ops.tanh(self.fc(x))
            if FAULT:
                x = x * 1.0005  # fault
            return ops.relu(x).mean() + 10.0

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    run = ms.value_and_grad(net, None, net.trainable_params()) if BACKWARD else net
    run(ms.Tensor(x))
