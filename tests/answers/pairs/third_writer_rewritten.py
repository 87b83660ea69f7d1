"""A decoder with tied weights, of library modules, was written anew: joined products, own norms, an own AdamW."""

import math
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "third trial: a writer written anew",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "turned": {
            "goes_wrong": "The rotation of the keys lacks the minus before its second half.",
            "step": 0,
            "wants": "the rotation of the keys of the first block",
        },
        "tied": {
            "goes_wrong": "The head has a copy of the embedding, and is not trained with it.",
            "wants": "the copy, the update of the embedding, or the first reading of the embedding in step 1",
        },
        "shifted": {
            "goes_wrong": "The labels, shifted by the loader already, are shifted again in the loss.",
            "step": 0,
            "wants": "the loss, or the choice of its labels",
        },
        "cosine": {
            "goes_wrong": "The cosine of the schedule begins at step 0, without regard to the step of warm-up.",
            "step": 1,
            "wants": "the rate, or the update with it, of step 1; step 0 agrees",
        },
        "decay": {
            "goes_wrong": "The weight decay is applied to the gains of the norms, too.",
            "step": 0,
            "wants": "the decay of a gain, its condition, or the update of a gain, in step 0",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
WORDS, WIDTH, HEADS, INNER, LAYERS, LENGTH, BATCH, STEPS = 29, 24, 3, 40, 3, 8, 3, 4
HEAD, RATE, WARM, TOTAL, DECAY = WIDTH // HEADS, 4e-3, 1, 6, 0.5

rng = np.random.default_rng(101)
texts = torch.from_numpy(rng.integers(0, WORDS, (STEPS, BATCH, LENGTH + 1)))


def drawn(*shape, factor=1.0):
    return torch.tensor(factor * rng.standard_normal(shape) / shape[-1] ** 0.5, dtype=torch.float32)


weights = {"embed.weight": drawn(WORDS, WIDTH, factor=2)}
for number in range(LAYERS):
    for name in ("query", "key", "value", "out"):
        weights[f"blocks.{number}.{name}.weight"] = drawn(WIDTH, WIDTH, factor=1.3)
    for name, shape in (("gate", (INNER, WIDTH)), ("up", (INNER, WIDTH)), ("down", (WIDTH, INNER))):
        weights[f"blocks.{number}.{name}.weight"] = drawn(*shape, factor=1.2)
    for name in ("norm1", "norm2"):
        weights[f"blocks.{number}.{name}.weight"] = 1 + drawn(WIDTH)
weights["norm.weight"] = 1 + drawn(WIDTH)
angles = torch.arange(LENGTH)[:, None] / 100 ** (torch.arange(0, HEAD, 2) / HEAD)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(WIDTH, INNER, bias=False), nn.Linear(WIDTH, INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH, eps=1e-6), nn.RMSNorm(WIDTH, eps=1e-6)

    def rotate(self, x):
        cosine, sine = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
        first, second = x.chunk(2, -1)
        return x * cosine + torch.cat([-second, first], -1) * sine

    def forward(self, x):
        h = self.norm1(x)
        q, k, v = (each(h).unflatten(-1, (HEADS, HEAD)).transpose(1, 2) for each in (self.query, self.key, self.value))
        mixed = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), nn.RMSNorm(WIDTH, eps=1e-6)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, text):
        x = self.embed(text)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def train_modules():
    net = Net()
    net.load_state_dict(weights | {"head.weight": weights["embed.weight"]})
    groups = [
        {"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": DECAY},
        {"params": [p for p in net.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.95))
    warm = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0, total_iters=WARM)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=TOTAL - WARM)
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cosine], milestones=[WARM])
    for text in texts:
        logits = net(text[:, :-1])
        loss = nn.CrossEntropyLoss()(logits.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        print(loss.item())


def norm(x, gain):
    return gain * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6))


def rotated(x, sign=-1):
    first, second = x[..., : HEAD // 2], x[..., HEAD // 2 :]
    cosine, sine = angles.cos(), angles.sin()
    left = first * cosine + sign * second * sine  # fault turned
    return torch.cat([left, second * cosine + first * sine], -1)  # fault turned


def block(x, p, number):
    own = {name: p[f"blocks.{number}.{name}"] for name in ("qkv", "out", "both", "down", "norm1", "norm2")}
    qkv = torch.einsum("btc,oc->bto", norm(x, own["norm1"]), own["qkv"])
    q, k, v = qkv.view(BATCH, LENGTH, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
    keys = rotated(k, 1 if FAULT == "turned" else -1)  # fault turned
    scores = rotated(q) @ keys.mT * HEAD**-0.5
    future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    mixed = scores.masked_fill(future, -math.inf).softmax(-1) @ v
    x = x + mixed.permute(0, 2, 1, 3).reshape(BATCH, LENGTH, WIDTH) @ own["out"].T
    gate, up = (norm(x, own["norm2"]) @ own["both"].T).split(INNER, -1)
    return x + (gate * gate.sigmoid() * up) @ own["down"].T


def rate(step):
    if step < WARM:
        return RATE
    done = step if FAULT == "cosine" else step - WARM  # fault cosine
    return RATE * (1 + math.cos(math.pi * done / (TOTAL - WARM))) / 2  # fault cosine


def joined():
    p = {"embed": weights["embed.weight"].clone(), "norm": weights["norm.weight"].clone()}
    for number in range(LAYERS):
        own = {name: weights[f"blocks.{number}.{name}.weight"] for name in ("out", "down", "norm1", "norm2")}
        for name, parts in (("qkv", ("query", "key", "value")), ("both", ("gate", "up"))):
            own[name] = torch.cat([weights[f"blocks.{number}.{part}.weight"] for part in parts])
        p |= {f"blocks.{number}.{name}": tensor.clone() for name, tensor in own.items()}
    return {name: tensor.requires_grad_() for name, tensor in p.items()}


def train_functions():
    p = joined()
    head = p["embed"].detach().clone() if FAULT == "tied" else p["embed"]  # fault tied
    first, second = ({name: torch.zeros_like(tensor) for name, tensor in p.items()} for _ in range(2))
    for step, text in enumerate(texts):
        words, labels = text[:, :-1], text[:, 1:]
        x = F.embedding(words, p["embed"])  # fault tied
        for number in range(LAYERS):
            x = block(x, p, number)
        logits = (norm(x, p["norm"]) @ head.T).log_softmax(-1)  # fault tied
        if FAULT == "shifted":
            logits, labels = logits[:, :-1], labels[:, 1:]  # fault shifted
        loss = -logits.gather(-1, labels[..., None]).mean()  # fault shifted
        gradients = torch.autograd.grad(loss, list(p.values()))  # fault tied
        with torch.no_grad():
            for (name, tensor), gradient in zip(p.items(), gradients, strict=True):
                if tensor.ndim > 1 or FAULT == "decay":  # fault decay
                    tensor.mul_(1 - rate(step) * DECAY)  # fault decay cosine
                first[name].mul_(0.9).add_(gradient, alpha=0.1)  # fault tied
                second[name].mul_(0.95).add_(gradient.square(), alpha=0.05)  # fault tied
                mean = first[name] / (1 - 0.9 ** (step + 1))
                root = (second[name] / (1 - 0.95 ** (step + 1))).sqrt()
                tensor.sub_(rate(step) * mean / (root + 1e-8))  # fault tied cosine decay
        print(loss.item())


train_modules() if sys.argv[1] == "golden" else train_functions()
