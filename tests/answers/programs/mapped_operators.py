"""A port is compared with rules of types as msdump prints them; its activation is tanh in place of a hard tanh."""

import json
import sys
from pathlib import Path

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden} --mapping rules.json",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "aten.",
    "wants": "the activation, its line: the rule with the name aten.addmm.default, as msdump prints it, is taken",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
x = rng.standard_normal((5, 4), dtype=np.float32)
weight = rng.standard_normal((3, 4), dtype=np.float32)
rules = {"aten.addmm.default": ["MatMul", "BiasAdd"], "aten.tanh.default": "Tanh", "aten.t.default": []}
Path("rules.json").write_text(json.dumps({"types": rules}))

if sys.argv[1] == "golden":
    import mindspore as ms
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(4, 3, weight_init=ms.Tensor(weight), bias_init="ones")

        def construct(self, x):
            return ops.tanh(self.fc(x))

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    Net()(ms.Tensor(x))
else:
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(4, 3)

        def forward(self, x):
            hidden = self.fc(x)
            return torch.tanh(hidden * (1.5 if FAULT else 1.0))  # fault

    net = Net()
    net.fc.weight.data, net.fc.bias.data = torch.from_numpy(weight), torch.ones(3)
    net(torch.from_numpy(x))
