"""An encoder of reviews, once nn.TransformerEncoder with nn.Embedding, was written anew with loss and Adam by hand."""

import math
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "fifth trial: an encoder of reviews written anew",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "heads": {
            "goes_wrong": "The heads of the second layer are joined without bringing the words before the heads.",
            "wants": "where the heads of the second layer are joined, or the product after it",
        },
        "pooled": {
            "goes_wrong": "The mean over the words also takes the padding.",
            "wants": "the sum or the mean over the words, or the mask that it has",
        },
        "smoothing": {
            "goes_wrong": "The smoothed part of a label goes to the other classes alone, not to all classes.",
            "wants": "the smoothed labels, or the loss made with them",
        },
        "decay": {
            "goes_wrong": "The decay is taken off the weights, as AdamW does, where Adam adds it to the gradients.",
            "wants": "the gradient or the weight to which the optimizer brings the decay",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
WORDS, WIDTH, HEADS, INNER, LAYERS, BATCH, LENGTH, CLASSES, STEPS = 40, 20, 4, 36, 2, 6, 9, 5, 3
RATE, DECAY, SMOOTHING, BETAS, EPSILON = 0.01, 0.05, 0.15, (0.9, 0.99), 1e-8

rng = np.random.default_rng(501)


def drawn(*shape, factor=1.0):
    return torch.from_numpy((factor * rng.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32))


def row(size, base=0.0):
    return torch.from_numpy((base + rng.uniform(-0.3, 0.3, size)).astype(np.float32))


weights = {"words.weight": drawn(WORDS, WIDTH)}
for number in range(LAYERS):
    name = f"encoder.layers.{number}"
    weights |= {f"{name}.self_attn.in_proj_weight": drawn(3 * WIDTH, WIDTH, factor=1.4)}
    weights |= {f"{name}.self_attn.in_proj_bias": row(3 * WIDTH)}
    weights |= {f"{name}.self_attn.out_proj.weight": drawn(WIDTH, WIDTH, factor=1.4)}
    weights |= {f"{name}.self_attn.out_proj.bias": row(WIDTH)}
    weights |= {f"{name}.linear1.weight": drawn(INNER, WIDTH, factor=1.4), f"{name}.linear1.bias": row(INNER)}
    weights |= {f"{name}.linear2.weight": drawn(WIDTH, INNER, factor=1.4), f"{name}.linear2.bias": row(WIDTH)}
    for norm in ("norm1", "norm2"):
        weights |= {f"{name}.{norm}.weight": row(WIDTH, 1), f"{name}.{norm}.bias": row(WIDTH)}
weights |= {"head.weight": drawn(CLASSES, WIDTH, factor=1.4), "head.bias": row(CLASSES)}
reviews = torch.from_numpy(rng.integers(1, WORDS, (STEPS, BATCH, LENGTH)))
lengths = torch.from_numpy(rng.integers(3, LENGTH + 1, (STEPS, BATCH, 1)))
reviews = reviews * (torch.arange(LENGTH) < lengths)
stars = torch.from_numpy(rng.integers(0, CLASSES, (STEPS, BATCH)))
LAYER = [name.removeprefix("encoder.layers.0.") for name in weights if name.startswith("encoder.layers.0.")]


def places():
    """Sines and cosines of the place, one pair after the other."""
    angles = torch.arange(LENGTH)[:, None] * torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(1e4) / WIDTH))
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


class Reader(nn.Module):
    """As it was, of the library's classes."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, review):
        x = self.words(review) * math.sqrt(WIDTH) + places()
        x = self.encoder(x, src_key_padding_mask=review == 0)
        kept = (review != 0).float()[..., None]
        return self.head((x * kept).sum(1) / kept.sum(1))


class Norm(nn.Module):
    def __init__(self, gain, shift):
        super().__init__()
        self.gain, self.shift = nn.Parameter(gain.clone()), nn.Parameter(shift.clone())

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.gain + self.shift


class Product(nn.Module):
    def __init__(self, weight, bias):
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight.clone()), nn.Parameter(bias.clone())

    def forward(self, x):
        return x @ self.weight.T + self.bias  # fault heads


class OwnLayer(nn.Module):
    def __init__(self, number):
        super().__init__()
        part = {name: weights[f"encoder.layers.{number}.{name}"] for name in LAYER}
        queries, keys, values = part["self_attn.in_proj_weight"].chunk(3)
        query_bias, key_bias, value_bias = part["self_attn.in_proj_bias"].chunk(3)
        self.number = number
        self.query, self.key = Product(queries, query_bias), Product(keys, key_bias)
        self.value = Product(values, value_bias)
        self.out = Product(part["self_attn.out_proj.weight"], part["self_attn.out_proj.bias"])
        self.up = Product(part["linear1.weight"], part["linear1.bias"])
        self.down = Product(part["linear2.weight"], part["linear2.bias"])
        self.norm1 = Norm(part["norm1.weight"], part["norm1.bias"])
        self.norm2 = Norm(part["norm2.weight"], part["norm2.bias"])

    def attend(self, x, hidden):
        batch, length, _ = x.shape
        q = self.query(x).view(batch, length, HEADS, -1).transpose(1, 2)
        k = self.key(x).view(batch, length, HEADS, -1).transpose(1, 2)
        v = self.value(x).view(batch, length, HEADS, -1).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(WIDTH / HEADS)
        scores = scores + hidden[:, None, None, :] * -1e9
        mixed = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True)) @ v
        if FAULT != "heads" or self.number != 1:
            mixed = mixed.transpose(1, 2)  # fault heads
        return self.out(mixed.reshape(batch, length, WIDTH))  # fault heads

    def forward(self, x, hidden):
        x = self.norm1(x + self.attend(x, hidden))
        return self.norm2(x + self.down(self.up(x).clamp(min=0)))


class OwnReader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Parameter(weights["words.weight"].clone())
        self.layers = nn.ModuleList(OwnLayer(number) for number in range(LAYERS))
        self.head = Product(weights["head.weight"], weights["head.bias"])

    def forward(self, review):
        hidden = (review == 0).float()
        x = WIDTH**0.5 * self.words[review] + places()
        for layer in self.layers:
            x = layer(x, hidden)
        kept = torch.ones_like(hidden) if FAULT == "pooled" else 1 - hidden  # fault pooled
        shares = kept / kept.sum(1, keepdim=True)  # fault pooled
        return self.head(torch.einsum("bt,btc->bc", shares, x))  # fault pooled


def smooth_loss(logits, label):
    others = CLASSES - 1 if FAULT == "smoothing" else CLASSES
    wanted = torch.full_like(logits, SMOOTHING / others)  # fault smoothing
    first = 1 - SMOOTHING + (0.0 if FAULT == "smoothing" else SMOOTHING / CLASSES)
    wanted = wanted.scatter(1, label[:, None], first)  # fault smoothing
    return -(wanted * torch.log_softmax(logits, -1)).sum(-1).mean()  # fault smoothing


class OwnAdam:
    def __init__(self, parameters):
        self.parameters, self.count = list(parameters), 0
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def step(self):
        self.count += 1
        for p, first, second in zip(self.parameters, self.first, self.second, strict=True):
            gradient = p.grad
            if FAULT == "decay":
                p.mul_(1 - RATE * DECAY)  # fault decay
            else:
                gradient = gradient + DECAY * p
            first.lerp_(gradient, 1 - BETAS[0])  # fault decay
            second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])  # fault decay
            root = torch.sqrt(second / (1 - BETAS[1] ** self.count)) + EPSILON
            p.addcdiv_(first, root, value=-RATE / (1 - BETAS[0] ** self.count))
            p.grad = None


if sys.argv[1] == "golden":
    net = Reader()
    net.load_state_dict(weights)
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=DECAY)
    for review, star in zip(reviews, stars, strict=True):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(review), star, label_smoothing=SMOOTHING)
        loss.backward()
        optimizer.step()
        print(loss.item())
else:
    net = OwnReader()
    optimizer = OwnAdam(net.parameters())
    for review, star in zip(reviews, stars, strict=True):
        loss = smooth_loss(net(review), star)
        loss.backward()
        optimizer.step()
        print(loss.item())
