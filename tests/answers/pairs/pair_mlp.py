"""A perceptron with a LayerNorm, a residual and five classes was ported from PyTorch and trains three steps."""

import sys

import numpy as np

ANSWER = {
    "kind": "a ported perceptron",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "step": 0,
    "never": ["different weights or data"],
    "variants": {
        "epsilon": {
            "goes_wrong": "The epsilon of the LayerNorm is 0.001 in place of 0.00001.",
            "operator": "LayerNorm",
            "says": ["0.001"],
            "wants": "the LayerNorm, its line, and both epsilons",
        },
        "statistics": {
            "goes_wrong": "The epsilon of the LayerNorm is 0.001; both runs were dumped as statistics.",
            "operator": "LayerNorm",
            "saved": "statistic",
            "wants": "the LayerNorm, its line, by its statistics",
        },
        "gelu": {
            "goes_wrong": "The GELU has the form with tanh.",
            "operator": "GeLU",
            "wants": "the GELU, its line",
        },
        "axis": {
            "goes_wrong": "The softmax goes over the batch.",
            "operator": "Softmax",
            "wants": "the softmax, its line",
        },
        "smoothing": {
            "goes_wrong": "The loss smooths its labels.",
            "operator": "",
            "says": ["label smoothing"],
            "never": ["Gradients/"],
            "wants": "that the loss smooths its labels, the line of the loss",
        },
        "sum": {
            "goes_wrong": "The loss is a sum over the batch, not its mean.",
            "operator": "",
            "says": ["reduction"],
            "never": ["Gradients/"],
            "wants": "the reduction of the loss, its line",
        },
        "start": {
            "goes_wrong": "The backward pass starts at 128 in place of 1.",
            "operator": "",
            "line": False,
            "says": ["128"],
            "never": ["different weights or data", "inputs agree"],
            "wants": "that the gradient of the loss starts at 128 in place of 1",
        },
        "dropout": {
            "goes_wrong": "Both implementations drop a tenth, each by its own random numbers.",
            "also": ["again"],
            "twin": "compare {healthy} again",
            "operator": "Dropout",
            "says": ["random"],
            "never": ["different weights or data", "first wrong"],
            "wants": "other random numbers in the dropout, its line; no operator is wrong",
        },
        "rate": {
            "goes_wrong": "The dropout drops nine tenths in place of one.",
            "also": ["again"],
            "twin": "compare {healthy} again",
            "operator": "Dropout",
            "says": ["0.9"],
            "wants": "the dropout, its line, and that it drops 0.9 in place of 0.1",
        },
        "keep": {
            "goes_wrong": "The dropout keeps a tenth: keep_prob has the number of p.",
            "also": ["again"],
            "twin": "compare {healthy} again",
            "operator": "Dropout",
            "says": ["0.9"],
            "wants": "the dropout, its line, and that it drops 0.9 in place of 0.1",
        },
        "adam": {
            "goes_wrong": "The epsilon of Adam is 0.001 in place of 0.00000001.",
            "operator": "Adam",
            "line": False,
            "says": ["0.001"],
            "wants": "Adam in step 0, and its epsilon",
        },
        "decay": {
            "goes_wrong": "Biases and offsets decay as well.",
            "operator": "optimizer-",
            "line": False,
            "says": ["bias"],
            "wants": "the update of a bias in step 0, by its name",
        },
        "schedule": {
            "goes_wrong": "The learning rate is that of the next step.",
            "operator": "optimizer-",
            "line": False,
            "says": ["0.05"],
            "wants": "the update in step 0, and its learning rate of 0.05 in place of 0.1",
        },
        "nesterov": {
            "goes_wrong": "Momentum is that of Nesterov.",
            "operator": "optimizer-",
            "line": False,
            "says": ["nesterov"],
            "wants": "the update in step 0, and that it is Nesterov's",
        },
    },
}

VARIANT = sys.argv[2]
FAULT = VARIANT if sys.argv[1] == "faulty" else ""

rng = np.random.default_rng(7)


def drawn(*shape):
    return (rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))).astype(np.float32)


x, y = drawn(16, 12) * 3.4, rng.integers(0, 5, 16).astype(np.int32)
weights = {
    "fc1.weight": drawn(24, 12),
    "fc2.weight": drawn(24, 24),
    "fc3.weight": drawn(5, 24),
    "fc1.bias": drawn(24) / 10,
    "fc2.bias": drawn(24) / 10,
    "fc3.bias": drawn(5) / 10,
    "norm.weight": 1 + drawn(24) / 10,
    "norm.bias": drawn(24) / 10,
}


def with_torch():
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2, self.fc3 = (torch.nn.Linear(*ends) for ends in ((12, 24), (24, 24), (24, 5)))
            self.norm, self.drop = torch.nn.LayerNorm(24), torch.nn.Dropout(0.1)

        def forward(self, x):
            x = torch.nn.functional.gelu(self.norm(self.fc1(x)))
            if VARIANT in ("dropout", "rate", "keep"):
                x = self.drop(x)
            return self.fc3(x + torch.softmax(self.fc2(x), -1))

    net = Net()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    decayed = [value for name, value in net.named_parameters() if "weight" in name]
    others = [value for name, value in net.named_parameters() if "bias" in name]
    if VARIANT == "adam":
        optimizer = torch.optim.Adam(net.parameters(), 0.01)
    elif VARIANT == "decay":
        optimizer = torch.optim.SGD([{"params": decayed, "weight_decay": 0.1}, {"params": others}], 0.1, 0.9)
    else:
        optimizer = torch.optim.SGD(net.parameters(), 0.1, 0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5 if VARIANT == "schedule" else 1.0)
    for _ in range(3):
        loss = torch.nn.functional.cross_entropy(net(torch.from_numpy(x)), torch.from_numpy(y).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


def with_mindspore():
    import mindspore as ms
    from mindspore import nn

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2, self.fc3 = (nn.Dense(*ends) for ends in ((12, 24), (24, 24), (24, 5)))
            self.norm = nn.LayerNorm((24,), epsilon=1e-3 if FAULT in ("epsilon", "statistics") else 1e-5)
            self.act = nn.GELU(approximate=FAULT == "gelu")
            rate = 0.9 if FAULT == "rate" else 0.1
            self.drop = nn.Dropout(keep_prob=0.1) if FAULT == "keep" else nn.Dropout(p=rate)
            self.softmax = nn.Softmax(axis=0 if FAULT == "axis" else -1)

        def construct(self, x):
            x = self.norm(self.fc1(x))  # fault epsilon statistics
            x = self.act(x)  # fault gelu
            if VARIANT in ("dropout", "rate", "keep"):
                x = self.drop(x)  # fault dropout rate keep
            x = x + self.softmax(self.fc2(x))  # fault axis
            return self.fc3(x)

    class Loss(nn.Cell):
        def __init__(self, net):
            super().__init__()
            smoothing, reduction = 0.1 if FAULT == "smoothing" else 0.0, "sum" if FAULT == "sum" else "mean"
            self.net, self.loss = net, nn.CrossEntropyLoss(label_smoothing=smoothing, reduction=reduction)

        def construct(self, x, y):
            return self.loss(self.net(x), y)  # fault smoothing sum

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    ms.set_seed(1)
    net = Net()
    names = {"norm.weight": "norm.gamma", "norm.bias": "norm.beta"}
    loaded = {names.get(name, name): ms.Parameter(ms.Tensor(array)) for name, array in weights.items()}
    ms.load_param_into_net(net, loaded)
    parameters = net.trainable_params()
    if VARIANT == "adam":
        optimizer = nn.Adam(parameters, 0.01, eps=1e-3 if FAULT else 1e-8)
    elif VARIANT == "decay":
        others = [each for each in parameters if "bias" in each.name or "beta" in each.name]
        decayed = [each for each in parameters if "weight" in each.name or "gamma" in each.name]
        groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.1 if FAULT else 0.0}]
        optimizer = nn.Momentum(groups, 0.1, 0.9)
    else:
        rates = [0.1 / 2**step for step in range(4)]
        rate = rates[bool(FAULT) : 3 + bool(FAULT)] if VARIANT == "schedule" else 0.1
        optimizer = nn.Momentum(parameters, rate, 0.9, use_nesterov=FAULT == "nesterov")
    step = nn.TrainOneStepCell(Loss(net), optimizer, sens=128.0 if FAULT == "start" else 1.0).set_train()
    for _ in range(3):
        step(ms.Tensor(x), ms.Tensor(y))


with_torch() if sys.argv[1] == "golden" else with_mindspore()
