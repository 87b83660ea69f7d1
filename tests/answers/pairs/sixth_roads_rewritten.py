"""A net that marks roads, a U-Net with gates and dilated convolutions, was rewritten as functions over its weights."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "sixth trial: a net that marks roads rewritten",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "step": 0,
    "variants": {
        "gate": {
            "goes_wrong": "The first gate on the way up is applied to what comes from below, not to what is skipped.",
            "wants": "the product with the first gate, or the concatenation after it",
        },
        "early": {
            "goes_wrong": "The skip of the second level is taken before its last ReLU, not after it.",
            "wants": "the second skip, or the first product that reads it",
        },
        "smooth": {
            "goes_wrong": "The 1 that smooths the overlap is in the denominator only.",
            "wants": "the numerator of the overlap, or its quotient",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
LEVELS, DEEP, DILATIONS, BATCH, SIDE, STEPS = (8, 12), 16, (1, 2, 3), 2, 16, 2

rng = np.random.default_rng(602)
weights = {}


def add(name, *shape, has_norm=False):
    values = 1.4 * rng.standard_normal(shape) / np.prod(shape[1:]) ** 0.5
    weights[f"{name}.weight"] = torch.from_numpy(values.astype(np.float32))
    width = shape[1] if name.endswith("up") else shape[0]
    weights[f"{name}.bias"] = torch.from_numpy(rng.uniform(-0.3, 0.3, width).astype(np.float32))
    if has_norm:
        gain, shift = 1 + rng.uniform(-0.3, 0.3, width), rng.uniform(-0.3, 0.3, width)
        norm = name.replace("conv", "norm")
        weights[f"{norm}.weight"] = torch.from_numpy(gain.astype(np.float32))
        weights[f"{norm}.bias"] = torch.from_numpy(shift.astype(np.float32))


for number, (into, out) in enumerate(((3, LEVELS[0]), LEVELS)):
    add(f"down.{number}.conv1", out, into, 3, 3, has_norm=True)
    add(f"down.{number}.conv2", out, out, 3, 3, has_norm=True)
for number in range(len(DILATIONS)):
    add(f"pyramid.convs.{number}", DEEP, LEVELS[1], 3, 3)
add("pyramid.whole", DEEP, LEVELS[1], 1, 1)
add("pyramid.join", DEEP, DEEP * (len(DILATIONS) + 1), 1, 1)
for number, (into, out) in enumerate(((DEEP, LEVELS[1]), (LEVELS[1], LEVELS[0]))):
    add(f"up.{number}.up", into, out, 2, 2)
    add(f"up.{number}.below", 6, out, 1, 1)
    add(f"up.{number}.beside", 6, out, 1, 1)
    add(f"up.{number}.gate", 1, 6, 1, 1)
    add(f"up.{number}.conv1", out, 2 * out, 3, 3, has_norm=True)
    add(f"up.{number}.conv2", out, out, 3, 3, has_norm=True)
add("head", 1, LEVELS[0], 1, 1)
pictures = torch.from_numpy(rng.standard_normal((STEPS, BATCH, 3, SIDE, SIDE), dtype=np.float32))
roads = torch.from_numpy((rng.random((STEPS, BATCH, 1, SIDE, SIDE)) < 0.05).astype(np.float32))


class Double(nn.Module):
    def __init__(self, into, out):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(into, out, 3, padding=1), nn.Conv2d(out, out, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(out, track_running_stats=False)
        self.norm2 = nn.BatchNorm2d(out, track_running_stats=False)

    def forward(self, x):
        return F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))


class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(LEVELS[1], DEEP, 3, padding=d, dilation=d) for d in DILATIONS)
        self.whole = nn.Conv2d(LEVELS[1], DEEP, 1)
        self.join = nn.Conv2d(DEEP * (len(DILATIONS) + 1), DEEP, 1)

    def forward(self, x):
        found = [F.relu(conv(x)) for conv in self.convs]
        whole = F.relu(self.whole(F.adaptive_avg_pool2d(x, 1)))
        found.append(F.interpolate(whole, size=x.shape[2:], mode="nearest"))
        return F.relu(self.join(torch.cat(found, 1)))


class Up(Double):
    def __init__(self, into, out):
        super().__init__(2 * out, out)
        self.up = nn.ConvTranspose2d(into, out, 2, stride=2)
        self.below, self.beside, self.gate = nn.Conv2d(out, 6, 1), nn.Conv2d(out, 6, 1), nn.Conv2d(6, 1, 1)

    def forward(self, x, skip):
        x = self.up(x)
        gate = torch.sigmoid(self.gate(F.relu(self.below(x) + self.beside(skip))))
        return super().forward(torch.cat([skip * gate, x], 1))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([Double(3, LEVELS[0]), Double(*LEVELS)])
        self.pyramid = Pyramid()
        self.up = nn.ModuleList([Up(DEEP, LEVELS[1]), Up(LEVELS[1], LEVELS[0])])
        self.head = nn.Conv2d(LEVELS[0], 1, 1)

    def forward(self, x):
        skips = []
        for layer in self.down:
            x = layer(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.pyramid(x)
        for layer in self.up:
            x = layer(x, skips.pop())
        return self.head(x)


def dice(logits, road):
    shares = torch.sigmoid(logits)
    both = (shares * road).sum((1, 2, 3))
    return (1 - (2 * both + 1) / (shares.sum((1, 2, 3)) + road.sum((1, 2, 3)) + 1)).mean()


def train_modules():
    net = Net()
    net.load_state_dict(weights)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for picture, road in zip(pictures, roads, strict=True):
        logits = net(picture)
        loss = F.binary_cross_entropy_with_logits(logits, road) + dice(logits, road)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


def conv(p, name, x, dilation=1):
    weight = p[f"{name}.weight"]
    return F.conv2d(x, weight, p[f"{name}.bias"], padding=dilation * (weight.shape[-1] // 2), dilation=dilation)


def normed(p, name, number, x):
    x = conv(p, f"{name}.conv{number}", x)
    variance, mean = torch.var_mean(x, (0, 2, 3), correction=0, keepdim=True)
    gain, shift = (p[f"{name}.norm{number}.{key}"][:, None, None] for key in ("weight", "bias"))
    return (x - mean) * torch.rsqrt(variance + 1e-5) * gain + shift


def down(p, x):
    """What goes on to the pyramid, and the skips."""
    skips = []
    for number in range(len(LEVELS)):
        x = normed(p, f"down.{number}", 1, x).relu()
        h = normed(p, f"down.{number}", 2, x)
        x = h.relu()
        skip = h if FAULT == "early" and number == 1 else x  # fault early
        skips.append(skip)
        x = F.max_pool2d(x, 2)
    return x, skips


def pyramid(p, x):
    found = [conv(p, f"pyramid.convs.{number}", x, dilation) for number, dilation in enumerate(DILATIONS)]
    whole = conv(p, "pyramid.whole", x.mean((2, 3), keepdim=True))
    found.append(whole.expand_as(found[0]))
    return conv(p, "pyramid.join", torch.cat(found, 1).relu()).relu()


def enlarged(p, name, x):
    """The transposed convolution, as a product for each of the four pixels."""
    weight = p[f"{name}.weight"]
    kernel = weight.permute(1, 2, 3, 0).reshape(-1, weight.shape[0], 1, 1)
    return F.pixel_shuffle(F.conv2d(x, kernel, p[f"{name}.bias"].repeat_interleave(4)), 2)


def up(p, number, x, skip):
    name = f"up.{number}"
    x = enlarged(p, f"{name}.up", x)
    beside = conv(p, f"{name}.beside", skip)  # fault early
    gate = conv(p, f"{name}.gate", (conv(p, f"{name}.below", x) + beside).relu()).sigmoid()
    if FAULT == "gate" and number == 0:
        x = x * gate  # fault gate
    else:
        skip = skip * gate
    x = torch.cat([skip, x], 1)  # fault gate
    return normed(p, name, 2, normed(p, name, 1, x).relu()).relu()


def losses(logits, road):
    entropy = (F.softplus(logits) - logits * road).mean()
    shares = logits.sigmoid().flatten(1)
    road = road.flatten(1)
    both = torch.einsum("bp,bp->b", shares, road)
    above = 2 * both if FAULT == "smooth" else 2 * both + 1  # fault smooth
    below = shares.sum(1) + road.sum(1) + 1
    overlap = above / below  # fault smooth
    return entropy + (1 - overlap).mean()


def train_functions():
    p = {name: tensor.clone().requires_grad_() for name, tensor in weights.items()}
    speeds = {name: torch.zeros_like(tensor) for name, tensor in p.items()}
    for picture, road in zip(pictures, roads, strict=True):
        x, skips = down(p, picture)
        x = pyramid(p, x)
        for number, skip in enumerate(reversed(skips)):
            x = up(p, number, x, skip)
        loss = losses(conv(p, "head", x), road)
        gradients = torch.autograd.grad(loss, list(p.values()))
        with torch.no_grad():
            for (name, tensor), gradient in zip(p.items(), gradients, strict=True):
                speeds[name].mul_(0.9).add_(gradient)
                tensor.sub_(0.1 * speeds[name])
        print(loss.item())


train_modules() if sys.argv[1] == "golden" else train_functions()
