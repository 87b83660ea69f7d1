"""An LSTM was ported without the initial state that the first implementation hands in: it starts with zeros."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "LSTM",
    "says": ["input 1"],
    "step": 0,
    "wants": "the LSTM of the first step, its line, and that its state differs",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
shapes = {"weight_ih_l0": (20, 4), "weight_hh_l0": (20, 5), "bias_ih_l0": (20,), "bias_hh_l0": (20,)}
weights = {name: 0.5 * rng.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
batches = [rng.standard_normal((6, 2, 4), dtype=np.float32) for _ in range(4)]
h, c = rng.standard_normal((2, 1, 2, 5), dtype=np.float32)

if sys.argv[1] == "golden":
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(4, 5)

        def forward(self, x, h, c):
            y, _ = self.lstm(x, (h, c))
            return y.square().mean()

    net = Net()
    net.lstm.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in batches:
        optimizer.zero_grad()
        net(*map(torch.from_numpy, (x, h, c))).backward()
        optimizer.step()
else:
    import mindspore as ms
    from mindspore import nn

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(4, 5)

        def construct(self, x, h, c):
            y, _ = self.lstm(x) if FAULT else self.lstm(x, (h, c))  # fault
            return y.square().mean()

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    ms.load_param_into_net(net, {f"lstm.{name}": ms.Parameter(array, name) for name, array in weights.items()})
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1)).set_train()
    for x in batches:
        step(*map(ms.Tensor, (x, h, c)))
