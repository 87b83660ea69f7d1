"""The training of a small U-Net that takes noise off pictures was written anew to be compiled."""

import math
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "third trial: a diffuser compiled",
    "entry": "eager",
    "run": {
        "faulty": "msdump run --config {config} --torch-backend msdump {script} {mode}",
        "healthy": "msdump run --config {config} --torch-backend msdump {script} {mode}",
    },
    "ask": "compare {faulty} {golden}",
    "variants": {
        "groups": {
            "goes_wrong": "The group norm takes every fourth channel for a group, not neighbours.",
            "wants": "the first group norm: its grouping, its mean or variance, or what it makes",
        },
        "frequencies": {
            "goes_wrong": "The frequencies of the time are spread over their number, not over one less.",
            "wants": "the frequencies, or the angles made of them",
        },
        "snr": {
            "goes_wrong": "The weight of the loss, for a net that tells velocities, lacks the 1 in its denominator.",
            "wants": "the weight of the loss",
        },
        "pixels": {
            "goes_wrong": "The pixels of the larger picture are split off as (2, 2, channels), not (channels, 2, 2).",
            "wants": "the shuffle of channels into pixels, or the convolution before it",
        },
        "average": {
            "goes_wrong": "The moving average of the weights takes the weights before the update, one step late.",
            "wants": "the moving average, or the first reading of averaged weights that differ",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
CHANNELS, GROUPS, SIZE, BATCH, STEPS, TIMES, WAVES = 12, 3, 8, 3, 3, 100, 6

rng = np.random.default_rng(161)
pictures, noises = map(torch.from_numpy, rng.standard_normal((2, STEPS + 1, BATCH, 3, SIZE, SIZE), dtype=np.float32))
times = torch.from_numpy(rng.integers(5, TIMES, (STEPS + 1, BATCH)))
SHAPES = {
    "enter": (CHANNELS, 3, 3, 3),
    "first": (CHANNELS, CHANNELS, 3, 3),
    "less": (2 * CHANNELS, CHANNELS, 3, 3),
    "second": (2 * CHANNELS, 2 * CHANNELS, 3, 3),
    "more": (4 * CHANNELS, 2 * CHANNELS, 1, 1),
    "third": (CHANNELS, 2 * CHANNELS, 3, 3),
    "leave": (3, CHANNELS, 3, 3),
    "time1": (24, 2 * WAVES),
    "time2": (2 * CHANNELS, 24),
}
NORMS = {"norm1": CHANNELS, "norm2": 2 * CHANNELS, "norm3": CHANNELS}
weights = {}
for key, shape in SHAPES.items():
    wide = 1.4 * rng.standard_normal(shape) / np.prod(shape[1:]) ** 0.5
    weights[f"{key}.weight"] = torch.tensor(wide, dtype=torch.float32)
    weights[f"{key}.bias"] = torch.tensor(rng.uniform(-0.3, 0.3, shape[0]), dtype=torch.float32)
for key, size in NORMS.items():
    weights[f"{key}.weight"] = torch.tensor(rng.uniform(0.7, 1.3, size), dtype=torch.float32)
    weights[f"{key}.bias"] = torch.tensor(rng.uniform(-0.3, 0.3, size), dtype=torch.float32)
kept = torch.cos((torch.arange(TIMES) + 0.5) / TIMES * math.pi / 2).square()


class Library(nn.Module):
    def __init__(self):
        super().__init__()
        for key, (out, into, *size) in SHAPES.items():
            stride = 2 if key == "less" else 1
            made = nn.Conv2d(into, out, size[0], stride, size[0] // 2) if size else nn.Linear(into, out)
            setattr(self, key, made)
        for key, size in NORMS.items():
            setattr(self, key, nn.GroupNorm(GROUPS, size))
        self.larger = nn.PixelShuffle(2)

    def forward(self, x, time):
        rates = torch.exp(-math.log(10000.0) * torch.arange(WAVES) / (WAVES - 1))
        angles = time[:, None].float() * rates
        embedded = self.time2(F.silu(self.time1(torch.cat([angles.sin(), angles.cos()], -1))))
        x = self.enter(x)
        x = x + self.first(F.silu(self.norm1(x)))
        h = self.less(x) + embedded[:, :, None, None]
        h = h + self.second(F.silu(self.norm2(h)))
        h = torch.cat([self.larger(self.more(h)), x], 1)
        return self.leave(F.silu(self.norm3(self.third(h))))

    def loss(self, picture, noise, time):
        share = kept[time][:, None, None, None]
        noised = share.sqrt() * picture + (1 - share).sqrt() * noise
        velocity = share.sqrt() * noise - (1 - share).sqrt() * picture
        ratio = (share / (1 - share)).flatten()
        weight = ratio.clamp(max=5) / (ratio + 1)
        each = F.mse_loss(self(noised, time), velocity, reduction="none").mean((1, 2, 3))
        return (weight * each).mean()


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.ParameterDict({name.replace(".", "_"): tensor.clone() for name, tensor in weights.items()})

    def conv(self, x, key, **settings):
        return F.conv2d(x, self.p[f"{key}_weight"], self.p[f"{key}_bias"], **settings)  # fault average

    def dense(self, x, key):
        return torch.addmm(self.p[f"{key}_bias"], x, self.p[f"{key}_weight"].t())  # fault average

    def norm(self, x, key):
        batch, channels, height, width = x.shape
        if FAULT == "groups":
            split = x.reshape(batch, channels // GROUPS, GROUPS, height, width).transpose(1, 2)  # fault groups
        else:
            split = x.reshape(batch, GROUPS, channels // GROUPS, height, width)
        variance, mean = torch.var_mean(split, (2, 3, 4), correction=0, keepdim=True)  # fault groups
        split = (split - mean) * torch.rsqrt(variance + 1e-5)  # fault groups
        split = split.transpose(1, 2) if FAULT == "groups" else split  # fault groups
        h = split.reshape(x.shape)  # fault groups
        return h * self.p[f"{key}_weight"][:, None, None] + self.p[f"{key}_bias"][:, None, None]  # fault groups

    def shuffled(self, x):
        batch, channels, height, width = x.shape
        if FAULT == "pixels":
            x = x.reshape(batch, 2, 2, channels // 4, height, width).permute(0, 3, 4, 1, 5, 2)  # fault pixels
        else:
            x = x.reshape(batch, channels // 4, 2, 2, height, width).permute(0, 1, 4, 2, 5, 3)
        return x.reshape(batch, channels // 4, 2 * height, 2 * width)  # fault pixels

    def angles(self, time):
        count = WAVES if FAULT == "frequencies" else WAVES - 1
        rates = 10000.0 ** (-torch.arange(WAVES) / count)  # fault frequencies
        return torch.outer(time.float(), rates)  # fault frequencies

    def forward(self, x, time):
        angles = self.angles(time)
        waves = torch.cat([angles.sin(), angles.cos()], 1)  # fault frequencies
        embedded = self.dense(F.silu(self.dense(waves, "time1")), "time2")  # fault average
        x = self.conv(x, "enter", padding=1)  # fault average
        x = x + self.conv(F.silu(self.norm(x, "norm1")), "first", padding=1)
        h = self.conv(x, "less", stride=2, padding=1) + embedded[:, :, None, None]
        h = h + self.conv(F.silu(self.norm(h, "norm2")), "second", padding=1)
        more = self.conv(h, "more")  # fault pixels
        h = torch.cat([self.shuffled(more), x], 1)  # fault pixels
        h = self.norm(self.conv(h, "third", padding=1), "norm3")
        return self.conv(F.silu(h), "leave", padding=1)

    def loss(self, picture, noise, time):
        share = kept[time]
        signal, rest = share.sqrt()[:, None, None, None], (1 - share).sqrt()[:, None, None, None]
        difference = self(signal * picture + rest * noise, time) - (signal * noise - rest * picture)
        ratio = share / (1 - share)
        below = ratio if FAULT == "snr" else ratio + 1  # fault snr
        weight = ratio.clamp(max=5) / below  # fault snr
        return (weight * difference.square().mean((1, 2, 3))).mean()  # fault snr


if sys.argv[1] == "golden":
    net, average = Library(), Library()
    net.load_state_dict(weights)
    average.load_state_dict(weights)
    train, look = net.loss, average.loss
else:
    net, average = Own(), Own()
    train, look = (torch.compile(each.loss, backend="eager") for each in (net, average))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)


@torch.no_grad()
def update_average():
    for own, tensor in zip(average.parameters(), net.parameters(), strict=True):
        own.lerp_(tensor, 0.3)  # fault average


for picture, noise, time in zip(pictures[:-1], noises[:-1], times[:-1], strict=True):
    loss = train(picture, noise, time)
    optimizer.zero_grad()
    loss.backward()
    if FAULT == "average":
        update_average()  # fault average
    optimizer.step()
    if FAULT != "average":
        update_average()
    with torch.no_grad():
        seen = look(pictures[-1], noises[-1], times[-1])  # fault average
    print(loss.item(), seen.item(), sep="\n")
