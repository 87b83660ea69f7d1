"""A net that reads heart beats was trained in bfloat16: autocast, scaled losses and gradients clipped to a norm."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "fifth trial: heart beats in bfloat16",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "groups": {
            "goes_wrong": "The norm of the second block has 8 groups of 2 channels, not 4 groups of 4.",
            "wants": "the first norm of the second block",
        },
        "edges": {
            "goes_wrong": "The third block pads its signal with zeros, not round from the other end.",
            "wants": "the first padding or convolution of the third block",
        },
        "rate": {
            "goes_wrong": "The part of the loss for the rate of the heart was forgotten.",
            "wants": "the loss, which lacks a term",
        },
        "unscaled": {
            "goes_wrong": "The gradients are clipped before the scale of the loss is taken out.",
            "wants": "the clipping, or the step of the optimizer after it",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
LEADS, WIDTH, BATCH, LENGTH, KINDS, STEPS = 2, 16, 6, 32, 4, 3

rng = np.random.default_rng(506)


def drawn(*shape):
    return torch.from_numpy((1.4 * rng.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32))


def row(size, base=0.0):
    return torch.from_numpy((base + rng.uniform(-0.3, 0.3, size)).astype(np.float32))


weights = {"stem.weight": drawn(WIDTH, LEADS, 7), "stem.bias": row(WIDTH)}
for number in range(3):
    for name in ("1", "2"):
        weights[f"blocks.{number}.conv{name}.weight"] = drawn(WIDTH, WIDTH, 5)
        weights[f"blocks.{number}.conv{name}.bias"] = row(WIDTH)
        weights[f"blocks.{number}.norm{name}.weight"] = row(WIDTH, 1)
        weights[f"blocks.{number}.norm{name}.bias"] = row(WIDTH)
weights |= {"kind.weight": drawn(KINDS, WIDTH), "kind.bias": row(KINDS)}
weights |= {"rate.weight": drawn(1, WIDTH), "rate.bias": row(1)}
signals = torch.from_numpy(rng.standard_normal((STEPS, BATCH, LEADS, LENGTH), dtype=np.float32))
kinds = torch.from_numpy(rng.integers(0, KINDS, (STEPS, BATCH)))
rates = torch.from_numpy((1 + rng.standard_normal((STEPS, BATCH))).astype(np.float32))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(WIDTH, WIDTH, 5, padding=2, padding_mode="circular")
        self.conv2 = nn.Conv1d(WIDTH, WIDTH, 5, padding=2, padding_mode="circular")
        self.norm1, self.norm2 = nn.GroupNorm(4, WIDTH), nn.GroupNorm(4, WIDTH)

    def forward(self, x):
        h = F.silu(self.norm1(self.conv1(x)))
        return x + F.silu(self.norm2(self.conv2(h)))


class Net(nn.Module):
    def __init__(self, block):
        super().__init__()
        self.stem = nn.Conv1d(LEADS, WIDTH, 7, stride=2, padding=3)
        self.blocks = nn.Sequential(*(block() for _ in range(3)))
        self.kind, self.rate = nn.Linear(WIDTH, KINDS), nn.Linear(WIDTH, 1)

    def forward(self, x):
        x = self.blocks(F.silu(self.stem(x))).mean(2)
        return self.kind(x), self.rate(x)[:, 0]


class OwnBlock(nn.Module):
    """The block with its padding and its groups spelt out."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(WIDTH, WIDTH, 5), nn.Conv1d(WIDTH, WIDTH, 5)
        self.norm1, self.norm2 = nn.GroupNorm(4, WIDTH), nn.GroupNorm(4, WIDTH)
        self.edges = "circular"

    def forward(self, x):
        h = F.pad(x, (2, 2), mode=self.edges)  # fault edges
        h = self.conv1(h)  # fault edges
        h = F.silu(self.norm1(h))  # fault groups
        h = self.conv2(F.pad(h, (2, 2), mode=self.edges))
        return x + F.silu(self.norm2(h))


def train_in_float32():
    net = Net(Block)
    net.load_state_dict(weights)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for signal, kind, rate in zip(signals, kinds, rates, strict=True):
        kind_scores, guess = net(signal)
        loss = F.cross_entropy(kind_scores, kind) + 0.5 * F.smooth_l1_loss(guess, rate)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        print(loss.item())


def train_in_bfloat16():
    net = Net(OwnBlock)
    net.load_state_dict(weights)
    if FAULT == "groups":
        net.blocks[1].norm1.num_groups = 8  # fault groups
    if FAULT == "edges":
        net.blocks[2].edges = "constant"  # fault edges
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for signal, kind, rate in zip(signals, kinds, rates, strict=True):
        with torch.autocast("cpu", torch.bfloat16):
            kind_scores, guess = net(signal)
        loss = F.cross_entropy(kind_scores.float(), kind)  # fault rate
        if FAULT != "rate":
            loss = loss + 0.5 * F.smooth_l1_loss(guess.float(), rate)
        optimizer.zero_grad()
        scaler.scale(loss).backward()  # fault rate
        if FAULT != "unscaled":
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # fault unscaled
        scaler.step(optimizer)  # fault unscaled
        scaler.update()
        print(loss.item())


train_in_float32() if sys.argv[1] == "golden" else train_in_bfloat16()
