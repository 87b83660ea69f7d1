"""A convolutional net with a BatchNorm was ported from PyTorch and trains three steps."""

import sys

import numpy as np

ANSWER = {
    "kind": "a ported convolutional net",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "step": 0,
    "never": ["different weights or data"],
    "variants": {
        "padding": {
            "goes_wrong": "The second convolution, with a stride of 2, pads by the mode same.",
            "operator": "Conv2D",
            "says": ["pad"],
            "wants": "the second convolution, its line, and how it pads",
        },
        "momentum": {
            "goes_wrong": "The momentum of the BatchNorm is PyTorch's number, whose meaning is the opposite.",
            "operator": "BatchNorm",
            "says": ["momentum"],
            "wants": "the BatchNorm, its line, and its momentum",
        },
        "epsilon": {
            "goes_wrong": "The epsilon of the BatchNorm is 0.001 in place of 0.00001; the loss of step 0 hides it.",
            "operator": "BatchNorm",
            "says": ["0.001"],
            "wants": "the BatchNorm of step 0, its line, and both epsilons",
        },
        "statistics": {
            "goes_wrong": "The epsilon of the BatchNorm is 0.001; both runs were dumped as statistics.",
            "operator": "BatchNorm",
            "saved": "statistic",
            "wants": "the BatchNorm of step 0, its line, by its statistics",
        },
        "pooling": {
            "goes_wrong": "The pooling takes means in place of maxima.",
            "operator": "AvgPool",
            "wants": "the pooling, its line",
        },
        "layout": {
            "goes_wrong": "Channels are moved to the end before everything is flattened.",
            "operator": "Transpose",
            "wants": "the transpose, its line, which the first implementation has not",
        },
        "evaluation": {
            "goes_wrong": "The net trains as in evaluation: the BatchNorm takes its running statistics.",
            "operator": "BatchNorm",
            "says": ["train"],
            "wants": "the BatchNorm, its line, and that it does not train",
        },
        "dampening": {
            "goes_wrong": "The optimizer dampens its momentum by a half.",
            "operator": "optimizer-",
            "line": False,
            "step": 1,
            "says": ["dampening"],
            "wants": "the update of step 1, and its dampening",
        },
    },
}

VARIANT = sys.argv[2]
FAULT = VARIANT if sys.argv[1] == "faulty" else ""

rng = np.random.default_rng(7)


def drawn(*shape):
    return (rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))).astype(np.float32)


x, y = rng.standard_normal((6, 3, 16, 16)).astype(np.float32), rng.integers(0, 5, 6).astype(np.int32)
weights = {
    "conv1.weight": drawn(8, 3, 3, 3),
    "conv2.weight": drawn(12, 8, 3, 3),
    "norm.weight": 1 + drawn(8) / 10,
    "norm.bias": drawn(8) / 10,
    "fc.weight": drawn(5, 192),
    "fc.bias": drawn(5) / 10,
}


def with_torch():
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = torch.nn.Conv2d(3, 8, 3, padding=1, bias=False)
            self.conv2 = torch.nn.Conv2d(8, 12, 3, stride=2, padding=1, bias=False)
            self.norm, self.fc = torch.nn.BatchNorm2d(8), torch.nn.Linear(192, 5)

        def forward(self, x):
            x = torch.relu(self.norm(self.conv1(x)))
            x = torch.nn.functional.max_pool2d(self.conv2(x), 2)
            return self.fc(x.flatten(1))

    net = Net()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()}, strict=False)
    optimizer = torch.optim.SGD(net.parameters(), 0.05, 0.9)
    for _ in range(3):
        loss = torch.nn.functional.cross_entropy(net(torch.from_numpy(x)), torch.from_numpy(y).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def with_mindspore():
    import mindspore as ms
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            pads = {"pad_mode": "same"} if FAULT == "padding" else {"pad_mode": "pad", "padding": 1}
            self.conv1 = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1)
            self.conv2 = nn.Conv2d(8, 12, 3, stride=2, **pads)
            epsilon = 1e-3 if FAULT in ("epsilon", "statistics") else 1e-5
            self.norm = nn.BatchNorm2d(8, momentum=0.1 if FAULT == "momentum" else 0.9, eps=epsilon)
            self.pool = nn.AvgPool2d(2, 2) if FAULT == "pooling" else nn.MaxPool2d(2, 2)
            self.flat, self.fc = nn.Flatten(), nn.Dense(192, 5)

        def construct(self, x):
            x = self.conv1(x)
            x = ops.relu(self.norm(x))  # fault momentum epsilon statistics evaluation
            x = self.conv2(x)  # fault padding
            x = self.pool(x)  # fault pooling
            if FAULT == "layout":
                x = ops.transpose(x, (0, 2, 3, 1))  # fault layout
            return self.fc(self.flat(x))

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    names = {"norm.weight": "norm.gamma", "norm.bias": "norm.beta"}
    loaded = {names.get(name, name): ms.Parameter(ms.Tensor(array)) for name, array in weights.items()}
    ms.load_param_into_net(net, loaded)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    dampening = 0.5 if FAULT == "dampening" else 0.0
    optimizer = nn.SGD(net.trainable_params(), 0.05, momentum=0.9, dampening=dampening)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer).set_train(FAULT != "evaluation")
    for _ in range(3):
        step(ms.Tensor(x), ms.Tensor(y))


with_torch() if sys.argv[1] == "golden" else with_mindspore()
