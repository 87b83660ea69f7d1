"""A reader of number plates, a CNN with BatchNorm, was written anew: functions over a dictionary of weights."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "second trial: a reader of plates written anew",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "running": {
            "goes_wrong": "The running variance takes the variance of the batch with n, not with n - 1.",
            "wants": "the update of the running variance of the first norm",
        },
        "momentum": {
            "goes_wrong": "The momentum of the running statistics is taken for its complement, 0.9 for 0.1.",
            "wants": "the update of the running statistics of the first norm",
        },
        "training": {
            "goes_wrong": "The last pass, over the test pictures, normalises by the batch as in training.",
            "wants": "the first norm of the test pass, which should use the running statistics",
        },
        "padding": {
            "goes_wrong": "The average pooling leaves the padding out of its count.",
            "wants": "the average pooling of the second stage",
        },
        "flatten": {
            "goes_wrong": "The pictures are flattened with channels last, the weights are for channels first.",
            "wants": "the flattening, or the product after it",
        },
        "stride": {
            "goes_wrong": "The short cut takes every second pixel from the second one on.",
            "wants": "the choice of pixels, or the product of the short cut",
        },
        "frozen": {
            "goes_wrong": "The gain of the last norm is forgotten in the list that the optimizer has.",
            "wants": "the gain that is not updated: the update, the list, or where the second step first reads it",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
STEPS, RATE = 3, 0.05

rng = np.random.default_rng(5)
SHAPES = {
    "conv1": (8, 3, 3, 3),
    "conv2": (8, 8, 3, 3),
    "conv3": (12, 8, 3, 3),
    "conv4": (12, 12, 3, 3),
    "short": (12, 8, 1, 1),
    "fc1": (20, 12 * 3 * 4),
    "fc2": (6, 20),
}
NORMS = {"bn1": 8, "bn2": 8, "bn3": 12, "bn4": 12}
weights = {}
for key, shape in SHAPES.items():
    weights[f"{key}.weight"] = (rng.standard_normal(shape) * (2 / np.prod(shape[1:])) ** 0.5).astype(np.float32)
for key in ("fc1", "fc2"):
    weights[f"{key}.bias"] = rng.uniform(-0.2, 0.2, SHAPES[key][0]).astype(np.float32)
for key, size in NORMS.items():
    weights[f"{key}.weight"] = rng.uniform(0.6, 1.4, size).astype(np.float32)
    weights[f"{key}.bias"] = rng.uniform(-0.3, 0.3, size).astype(np.float32)
pictures = torch.from_numpy(rng.standard_normal((STEPS + 1, 6, 3, 12, 16), dtype=np.float32) + 0.4)
labels = torch.from_numpy(rng.integers(0, 6, (STEPS, 6)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        for key, (out, into, size, _) in ((key, SHAPES[key]) for key in ("conv1", "conv2", "conv3", "conv4", "short")):
            stride = 2 if key in ("conv3", "short") else 1
            setattr(self, key, nn.Conv2d(into, out, size, stride=stride, padding=size // 2, bias=False))
        for key, size in NORMS.items():
            setattr(self, key, nn.BatchNorm2d(size))
        self.pool = nn.AvgPool2d(3, stride=2, padding=1)
        self.fc1, self.fc2 = nn.Linear(144, 20), nn.Linear(20, 6)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = x + torch.relu(self.bn2(self.conv2(x)))
        h = torch.relu(self.bn3(self.conv3(x)))
        x = torch.relu(self.bn4(self.conv4(h)) + self.short(x))
        x = self.pool(x).flatten(1)
        return self.fc2(torch.relu(self.fc1(x)))


def train_modules():
    net = Net()
    net.load_state_dict({key: torch.from_numpy(array) for key, array in weights.items()}, strict=False)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=0.9)
    for x, label in zip(pictures, labels, strict=False):
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss()(net(x), label)
        loss.backward()
        optimizer.step()
        print(loss.item())
    net.eval()
    with torch.no_grad():
        print(*net(pictures[-1]).flatten().tolist(), sep="\n")


def normed(p, key, x, is_training):
    mean, variance = p[f"{key}.running_mean"], p[f"{key}.running_var"]
    if is_training or FAULT == "training":
        size = x.numel() // x.shape[1]
        own_variance, own_mean = torch.var_mean(x, (0, 2, 3), correction=0)  # fault training
        rate = 0.9 if FAULT == "momentum" else 0.1  # fault momentum
        scale = 1 if FAULT == "running" else size / (size - 1)
        with torch.no_grad():
            mean.copy_((1 - rate) * mean + rate * own_mean)  # fault momentum
            variance.copy_((1 - rate) * variance + rate * scale * own_variance)  # fault momentum running
        mean, variance = own_mean, own_variance
    centred = x - mean[:, None, None]  # fault training
    x = centred / (variance[:, None, None] + 1e-5).sqrt()
    return x * p[f"{key}.weight"][:, None, None] + p[f"{key}.bias"][:, None, None]  # fault frozen


def forward(p, x, is_training):
    x = F.relu(normed(p, "bn1", F.conv2d(x, p["conv1.weight"], padding=1), is_training))
    x = x + F.relu(normed(p, "bn2", F.conv2d(x, p["conv2.weight"], padding=1), is_training))
    h = F.relu(normed(p, "bn3", F.conv2d(x, p["conv3.weight"], stride=2, padding=1), is_training))
    h = normed(p, "bn4", F.conv2d(h, p["conv4.weight"], padding=1), is_training)
    first = int(FAULT == "stride")
    picked = x[:, :, first::2, first::2]  # fault stride
    short = torch.einsum("oc,bchw->bohw", p["short.weight"][:, :, 0, 0], picked)  # fault stride
    x = F.relu(h + short)
    x = F.avg_pool2d(x, 3, 2, 1, count_include_pad=FAULT != "padding")  # fault padding
    if FAULT == "flatten":
        x = x.permute(0, 2, 3, 1)  # fault flatten
    x = x.reshape(len(x), -1)  # fault flatten
    x = F.relu(x @ p["fc1.weight"].T + p["fc1.bias"])  # fault flatten
    return x @ p["fc2.weight"].T + p["fc2.bias"]


def train_functions():
    p = {key: torch.from_numpy(array).requires_grad_() for key, array in weights.items()}
    trained = [tensor for key, tensor in p.items() if FAULT != "frozen" or key != "bn4.weight"]  # fault frozen
    for key, size in NORMS.items():
        p |= {f"{key}.running_mean": torch.zeros(size), f"{key}.running_var": torch.ones(size)}
    speeds = [torch.zeros_like(tensor) for tensor in trained]
    for x, label in zip(pictures, labels, strict=False):
        logits = forward(p, x, True)
        loss = (logits.logsumexp(-1) - logits.gather(1, label[:, None])[:, 0]).mean()
        gradients = torch.autograd.grad(loss, trained)  # fault frozen
        with torch.no_grad():
            for tensor, speed, gradient in zip(trained, speeds, gradients, strict=True):
                speed.mul_(0.9).add_(gradient)
                tensor.sub_(RATE * speed)  # fault frozen
        print(loss.item())
    with torch.no_grad():
        print(*forward(p, pictures[-1], False).flatten().tolist(), sep="\n")


train_modules() if sys.argv[1] == "golden" else train_functions()
