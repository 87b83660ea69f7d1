"""A net for tables, an MLP with LayerNorm and skips, was written anew: functions, and an AdamW of its own."""

import sys

import numpy as np
import torch
from torch import nn

ANSWER = {
    "kind": "second trial: a net for tables written anew",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "unbiased": {
            "goes_wrong": "The norm divides by the variance of a sample, with n - 1.",
            "wants": "the variance in the norm of the first block: it is not divided by n",
        },
        "skip": {
            "goes_wrong": "The norm's result takes the name of its input: the skip of each block starts behind it.",
            "wants": "the sum at the end of the first block, which adds what the norm made",
        },
        "smoothing": {
            "goes_wrong": "The smoothing of the labels is spread over the other classes alone.",
            "wants": "the target of the loss: 0.1 / 2 in place of 0.1 / 3 for each other class",
        },
        "clipped": {
            "goes_wrong": "Each gradient is clipped by its own norm, not by that of all of them.",
            "wants": "the factor of the clipping, or the norm that it is made of",
        },
        "decayed": {
            "goes_wrong": "The weight decay is added to the gradient, not taken off the weight.",
            "wants": "the addition of the decay to the gradient in the update of the first step",
        },
        "warm_up": {
            "goes_wrong": "The warm-up counts steps from 0, so that the first step has the rate 0.",
            "wants": "the update of the first step, or its rate, which is 0 in place of a third of 0.01",
        },
        "not_cleared": {
            "goes_wrong": "The gradients of the step before are not cleared.",
            "wants": "the gradients of the second step: the backward pass, where they should be cleared, or their norm",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
WIDTH, CLASSES, BLOCKS, STEPS, RATE = 16, 3, 3, 4, 0.01

rng = np.random.default_rng(3)


def drawn(*shape):
    return (rng.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32)


weights = {"embed.weight": drawn(WIDTH, 10), "embed.bias": drawn(WIDTH)}
for number in range(BLOCKS):
    weights[f"blocks.{number}.norm.weight"] = 1 + drawn(WIDTH)
    weights[f"blocks.{number}.norm.bias"] = drawn(WIDTH)
    weights[f"blocks.{number}.up.weight"] = drawn(2 * WIDTH, WIDTH)
    weights[f"blocks.{number}.up.bias"] = drawn(2 * WIDTH)
    weights[f"blocks.{number}.down.weight"] = drawn(WIDTH, 2 * WIDTH)
    weights[f"blocks.{number}.down.bias"] = drawn(WIDTH)
weights |= {"norm.weight": 1 + drawn(WIDTH), "norm.bias": drawn(WIDTH)}
weights |= {"head.weight": 3 * drawn(CLASSES, WIDTH), "head.bias": drawn(CLASSES)}
rows = torch.from_numpy(rng.standard_normal((STEPS, 12, 10), dtype=np.float32))
labels = torch.from_numpy(rng.integers(0, CLASSES, (STEPS, 12)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.act = nn.LayerNorm(WIDTH), nn.GELU()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm, self.head = nn.Linear(10, WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.embed(x))))


def train_modules():
    net = Net()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / 3))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    for x, label in zip(rows, labels, strict=True):
        optimizer.zero_grad()
        loss = criterion(net(x), label)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        print(loss.item())


def linear(p, name, x):
    return torch.matmul(x, p[f"{name}.weight"].t()) + p[f"{name}.bias"]


def norm(p, name, x):
    mean = x.mean(-1, keepdim=True)
    variance = x.var(-1, correction=int(FAULT == "unbiased"), keepdim=True)  # fault unbiased
    return (x - mean) * torch.rsqrt(variance + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def forward(p, x):
    x = linear(p, "embed", x)
    for number in range(BLOCKS):
        h = norm(p, f"blocks.{number}.norm", x)
        if FAULT == "skip":
            x = h
        h = linear(p, f"blocks.{number}.up", h)
        h = 0.5 * h * (1 + torch.erf(h / 2**0.5))
        h = linear(p, f"blocks.{number}.down", h)
        x = x + h  # fault skip
    return linear(p, "head", norm(p, "norm", x))


def objective(logits, label):
    target = torch.full_like(logits, 0.1 / (CLASSES - 1 if FAULT == "smoothing" else CLASSES))  # fault smoothing
    own = torch.full((len(label), 1), 0.9 if FAULT == "smoothing" else 0.9 + 0.1 / CLASSES)  # fault smoothing
    target = target.scatter(1, label[:, None], own)  # fault smoothing
    return -(target * logits.log_softmax(-1)).sum(-1).mean()  # fault smoothing


def update(p, moments, step):
    rate = RATE * min(1, (step + (FAULT != "warm_up")) / 3)  # fault warm_up
    total = torch.stack([tensor.grad.norm() for tensor in p.values()]).norm()  # fault clipped not_cleared
    for name, tensor in p.items():
        size = tensor.grad.norm() if FAULT == "clipped" else total  # fault clipped
        gradient = tensor.grad * (1.0 / (size + 1e-6)).clamp(max=1.0)  # fault clipped
        if FAULT == "decayed":
            gradient = gradient + 0.1 * tensor  # fault decayed
        else:
            tensor.mul_(1 - rate * 0.1)  # fault warm_up decayed
        first, second = moments.setdefault(name, (torch.zeros_like(tensor), torch.zeros_like(tensor)))
        first.mul_(0.9).add_(gradient, alpha=0.1)
        second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        root = (second / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8
        tensor.sub_(rate / (1 - 0.9 ** (step + 1)) * first / root)  # fault warm_up


def train_functions():
    p = {name: torch.from_numpy(array).requires_grad_() for name, array in weights.items()}
    moments = {}
    for step in range(STEPS):
        loss = objective(forward(p, rows[step]), labels[step])
        if FAULT != "not_cleared":
            for tensor in p.values():
                tensor.grad = None  # fault not_cleared
        loss.backward()  # fault not_cleared
        with torch.no_grad():
            update(p, moments, step)
        print(loss.item())


train_modules() if sys.argv[1] == "golden" else train_functions()
