"""The training of a denoiser was moved from float32 to bfloat16, with float32 where it is needed, but for one place."""

import sys

import numpy as np
import torch
import torch.nn.functional as F

ANSWER = {
    "kind": "second trial: a denoiser in bfloat16",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "time": {
            "goes_wrong": "The times are cast to bfloat16 before their angles are taken, and 514 becomes 512.",
            "wants": "the cast of the times, or the angles made of them",
        },
        "products": {
            "goes_wrong": "The products of 1 - beta are taken in bfloat16, where 1 - 0.0001 is 1.",
            "wants": "the cast of 1 - beta, or the cumulative product",
        },
        "variance": {
            "goes_wrong": "The group norm takes mean and variance in bfloat16, as the mean of squares less a square.",
            "wants": "the variance of the first group norm, in bfloat16",
        },
        "share": {
            "goes_wrong": "The share of the picture, near 1 at early times, is cast to bfloat16 before 1 - share.",
            "wants": "the cast of the share, or what is left of 1 when it is taken off",
        },
        "average": {
            "goes_wrong": "The moving averages of the weights are kept in bfloat16, where small steps get lost.",
            "wants": "the update of the moving averages, or the cast that makes them",
        },
        "master": {
            "goes_wrong": "There are no weights in float32: the optimizer updates those in bfloat16.",
            "wants": "the cast of the weights, or the update of the optimizer, which is lost in their rounding",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
HALF = torch.float32 if sys.argv[1] == "golden" else torch.bfloat16
CHANNELS, SIZE, BATCH, STEPS, RATE = 16, 6, 3, 2, 1e-3


def precise(place):
    return HALF if place == FAULT else torch.float32


rng = np.random.default_rng(31)
weights = {}
for key, shape in {
    "enter": (CHANNELS, 4, 3, 3),
    "time1": (32, 24),
    "time2": (CHANNELS, 32),
    "first1": (CHANNELS, CHANNELS, 3, 3),
    "first2": (CHANNELS, CHANNELS, 3, 3),
    "query": (CHANNELS, CHANNELS),
    "key": (CHANNELS, CHANNELS),
    "value": (CHANNELS, CHANNELS),
    "second1": (CHANNELS, CHANNELS, 3, 3),
    "second2": (CHANNELS, CHANNELS, 3, 3),
    "leave": (4, CHANNELS, 3, 3),
}.items():
    factor = 4 if key in ("time1", "time2") else 1
    weights[key] = (factor * rng.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32)
weights["enter.bias"] = rng.uniform(14, 16, CHANNELS).astype(np.float32)
for key in ("first1", "first2", "attention", "second1", "second2", "last"):
    weights[f"{key}.gain"] = rng.uniform(0.8, 1.3, CHANNELS).astype(np.float32)
    weights[f"{key}.shift"] = rng.uniform(-0.3, 0.3, CHANNELS).astype(np.float32)
pictures, noises = rng.standard_normal((2, STEPS, BATCH, 4, SIZE, SIZE), dtype=np.float32)
times = np.array([[937, 514, 12], [17, 845, 771]])


def angles(time):
    frequencies = torch.exp(-np.log(10000.0) * torch.arange(12) / 12)
    turned = time.to(precise("time"))[:, None] * frequencies.to(precise("time"))  # fault time
    turned = turned.float()  # fault time
    return torch.cat([turned.sin(), turned.cos()], -1)


def remaining():
    """What is left of the picture at each time."""
    beta = torch.linspace(1e-4, 0.02, 1000)
    return (1 - beta).to(precise("products")).cumprod(0).float()  # fault products


def linear(p, key, x):
    return x.to(HALF) @ p[key].to(HALF).T


def convolution(p, key, x):
    return F.conv2d(x.to(HALF), p[key].to(HALF), padding=1)


def norm(p, key, x):
    x = x.to(precise("variance"))
    groups = x.unflatten(1, (4, -1)).flatten(2)
    mean = groups.mean(-1, keepdim=True)  # fault variance
    if FAULT == "variance":
        variance = groups.square().mean(-1, keepdim=True) - mean.square()  # fault variance
        variance = variance.clamp(min=0)  # fault variance
    else:
        variance = (groups - mean).square().mean(-1, keepdim=True)
    centred = groups - mean  # fault variance
    h = (centred * torch.rsqrt(variance + 1e-5)).view_as(x)  # fault variance
    return h * p[f"{key}.gain"][:, None, None] + p[f"{key}.shift"][:, None, None]


def block(p, key, x, embedded):
    h = convolution(p, f"{key}1", F.silu(norm(p, f"{key}1", x)))
    h = h + linear(p, "time2", embedded)[:, :, None, None]
    return x + convolution(p, f"{key}2", F.silu(norm(p, f"{key}2", h)))


def attention(p, x):
    h = norm(p, "attention", x).flatten(2).transpose(1, 2)
    query, key, value = (linear(p, name, h) for name in ("query", "key", "value"))
    scores = query @ key.transpose(1, 2) / CHANNELS**0.5
    mixed = scores.float().softmax(-1).to(HALF) @ value
    return x + mixed.transpose(1, 2).reshape(x.shape)


def denoised(p, x, time):
    embedded = F.silu(linear(p, "time1", angles(time)))
    x = convolution(p, "enter", x) + p["enter.bias"][:, None, None]
    x = block(p, "first", x, embedded)
    x = attention(p, x)
    x = block(p, "second", x, embedded)
    return convolution(p, "leave", F.silu(norm(p, "last", x)))


p = {}
for name, array in weights.items():
    p[name] = torch.tensor(array, dtype=precise("master")).requires_grad_()  # fault master
with torch.no_grad():
    averages = {name: tensor.to(precise("average"), copy=True) for name, tensor in p.items()}  # fault average
optimizer = torch.optim.Adam(p.values(), lr=RATE)  # fault master
left = remaining()
for picture, noise, time in zip(*map(torch.from_numpy, (pictures, noises, times)), strict=True):
    share = left[time].to(precise("share"))[:, None, None, None]  # fault share
    noised = 1 - share  # fault share
    blurred = share.sqrt() * picture + noised.sqrt() * noise  # fault share
    difference = denoised(p, blurred, time).float() - picture
    loss = (difference.square() * (share / noised).clamp(max=1000)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault master
    with torch.no_grad():
        for name, tensor in p.items():
            averages[name].mul_(0.99).add_(tensor, alpha=0.01)  # fault average
    print(loss.item(), *difference.abs().mean((1, 2, 3)).tolist(), sep="\n")
for name in ("enter", "first1", "value", "leave"):
    for tensor in (p[name], averages[name]):
        print(1000 * (tensor.detach().float() - torch.from_numpy(weights[name])).abs().mean().item())
