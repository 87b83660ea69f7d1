"""A small residual net for leaves was refactored: functions for the modules, foreach for SGD, fused for evaluation."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "fifth trial: a residual net for leaves refactored",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "order": {
            "goes_wrong": "In the second block the activation comes before the sum with the shortcut, not after it.",
            "wants": "the activation or the sum at the end of the second block",
        },
        "running": {
            "goes_wrong": "The running statistics keep 0.1 of the old and take 0.9 of the new.",
            "wants": "the first batch norm, which updates the running statistics, or the share that it is given",
        },
        "schedule": {
            "goes_wrong": "The rate falls one step too late.",
            "wants": "the update of the third step, or the rate that it has",
        },
        "folded": {
            "goes_wrong": "The mean that goes into the fused bias is not divided by the deviation.",
            "wants": "the bias of the fused convolution, or the first fused convolution",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
BATCH, SIDE, CLASSES, STEPS = 8, 12, 6, 4
RATE, MOMENTUM, DECAY, EPSILON = 0.1, 0.9, 0.01, 1e-5
CHANNELS = {"blocks.0": (8, 8, 1), "blocks.1": (8, 12, 2), "blocks.2": (12, 12, 1)}

rng = np.random.default_rng(503)


def drawn(*shape):
    return torch.from_numpy((1.4 * rng.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32))


def row(size, base=0.0):
    return torch.from_numpy((base + rng.uniform(-0.3, 0.3, size)).astype(np.float32))


def unit(conv, norm, into, out, size):
    """The weights of a convolution and of the norm after it."""
    found = {f"{conv}.weight": drawn(out, into, size, size), f"{norm}.weight": row(out, 1), f"{norm}.bias": row(out)}
    return found | {f"{norm}.running_mean": torch.zeros(out), f"{norm}.running_var": torch.ones(out)}


weights = unit("conv", "norm", 3, 8, 3)
for name, (into, out, stride) in CHANNELS.items():
    weights |= unit(f"{name}.conv1", f"{name}.norm1", into, out, 3)
    weights |= unit(f"{name}.conv2", f"{name}.norm2", out, out, 3)
    if stride > 1:
        weights |= unit(f"{name}.conv3", f"{name}.norm3", into, out, 1)
weights |= {"head.weight": drawn(CLASSES, 12), "head.bias": row(CLASSES)}
pictures = torch.from_numpy(rng.standard_normal((STEPS + 1, BATCH, 3, SIDE, SIDE), dtype=np.float32))
pictures = pictures * 1.3 + 0.4
labels = torch.from_numpy(rng.integers(0, CLASSES, (STEPS, BATCH)))


class Block(nn.Module):
    def __init__(self, into, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(into, out, 3, stride=stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.stride = stride
        if stride > 1:
            self.conv3, self.norm3 = nn.Conv2d(into, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out)

    def forward(self, x):
        shortcut = self.norm3(self.conv3(x)) if self.stride > 1 else x
        h = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(h)) + shortcut)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.blocks = nn.Sequential(*(Block(*channels) for channels in CHANNELS.values()))
        self.head = nn.Linear(12, CLASSES)

    def forward(self, x):
        x = self.blocks(F.relu(self.norm(self.conv(x))))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def train_modules():
    net = Net()
    net.load_state_dict(weights, strict=False)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=MOMENTUM, weight_decay=DECAY, foreach=False)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2], gamma=0.2)
    for x, label in zip(pictures, labels, strict=False):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), label)
        loss.backward()
        optimizer.step()
        schedule.step()
        print(loss.item())
    net.eval()
    with torch.no_grad():
        print(*net(pictures[-1]).flatten().tolist(), sep="\n")


def trained_unit(p, conv, norm, x, stride):
    """Convolution and norm of a batch."""
    weight = p[f"{conv}.weight"]
    x = F.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)
    mean, variance = p[f"{norm}.running_mean"], p[f"{norm}.running_var"]
    share = 0.9 if FAULT == "running" else 0.1  # fault running
    gain, shift = p[f"{norm}.weight"], p[f"{norm}.bias"]
    return F.batch_norm(x, mean, variance, gain, shift, training=True, momentum=share, eps=EPSILON)  # fault running


def fused_unit(p, conv, norm, x, stride):
    """The convolution with the norm folded into its weight and bias."""
    scale = p[f"{norm}.weight"] / torch.sqrt(p[f"{norm}.running_var"] + EPSILON)
    weight = p[f"{conv}.weight"] * scale[:, None, None, None]
    factor = p[f"{norm}.weight"] if FAULT == "folded" else scale
    bias = p[f"{norm}.bias"] - p[f"{norm}.running_mean"] * factor  # fault folded
    return F.conv2d(x, weight, bias, stride, weight.shape[-1] // 2)  # fault folded


def forward(p, x, unit):
    x = unit(p, "conv", "norm", x, 1).relu()
    for name, (_, _, stride) in CHANNELS.items():
        h = unit(p, f"{name}.conv1", f"{name}.norm1", x, stride).relu()
        h = unit(p, f"{name}.conv2", f"{name}.norm2", h, 1)
        if stride > 1:
            x = unit(p, f"{name}.conv3", f"{name}.norm3", x, stride)
        if FAULT == "order" and name == "blocks.1":
            x = x + h.relu()  # fault order
        else:
            x = (x + h).relu()
    return F.linear(x.mean((2, 3)), p["head.weight"], p["head.bias"])


def train_functions():
    p = {name: tensor.clone() for name, tensor in weights.items()}
    learnt = [tensor.requires_grad_() for name, tensor in p.items() if "running" not in name]
    speeds = [torch.zeros_like(tensor) for tensor in learnt]
    for step, label in enumerate(labels):
        loss = F.nll_loss(F.log_softmax(forward(p, pictures[step], trained_unit), 1), label)
        gradients = torch.autograd.grad(loss, learnt)
        late = step > 2 if FAULT == "schedule" else step >= 2
        rate = RATE * 0.2 if late else RATE  # fault schedule
        with torch.no_grad():
            gradients = torch._foreach_add(gradients, learnt, alpha=DECAY)
            torch._foreach_mul_(speeds, MOMENTUM)
            torch._foreach_add_(speeds, gradients)
            torch._foreach_add_(learnt, speeds, alpha=-rate)  # fault schedule
        print(loss.item())
    with torch.no_grad():
        print(*forward(p, pictures[-1], fused_unit).flatten().tolist(), sep="\n")


train_modules() if sys.argv[1] == "golden" else train_functions()
