"""An MLP-mixer of pictures was written anew with einsum; schedule, AdamW and the average of its weights by hand."""

import math
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "fourth trial: a mixer written anew",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "patches": {
            "goes_wrong": "The pixels of a patch have the channel last, the weight of the convolution has it first.",
            "wants": "the cut into patches, or the product after it",
        },
        "skip": {
            "goes_wrong": "The second block adds what the norm made, not what went into the norm.",
            "wants": "the sum after the mix of channels of the second block",
        },
        "decay": {
            "goes_wrong": "Biases and gains are decayed as well.",
            "wants": "the decay of a bias or a gain, or the share of decay that it is given",
        },
        "schedule": {
            "goes_wrong": "The rate of each step is that of the next step.",
            "wants": "the update of the first step, or the rate that it has",
        },
        "average": {
            "goes_wrong": "The shares of the average have changed places: 0.1 of the old weights, 0.9 of the new.",
            "wants": "the average of the weights",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
SIDE, PATCH, WIDTH, TOKENS, BLOCKS, BATCH, CLASSES, STEPS = 16, 4, 14, 16, 3, 5, 7, 4
BETAS, EPSILON, DECAY = (0.9, 0.98), 1e-6, 0.3

rng = np.random.default_rng(401)


def drawn(*shape, factor=1.0):
    return (factor * rng.standard_normal(shape) / math.prod(shape[1:]) ** 0.5).astype(np.float32)


weights = {"patch.weight": drawn(WIDTH, 3, PATCH, PATCH), "patch.bias": 0.3 * drawn(WIDTH)}
for number in range(BLOCKS):
    for name, out, into in (
        ("tokens1", 20, TOKENS),
        ("tokens2", TOKENS, 20),
        ("channels1", 24, WIDTH),
        ("channels2", WIDTH, 24),
    ):
        weights[f"blocks.{number}.{name}.weight"] = drawn(out, into, factor=1.5)
        weights[f"blocks.{number}.{name}.bias"] = 0.3 * drawn(out)
    for name in ("norm1", "norm2"):
        weights[f"blocks.{number}.{name}.weight"] = 1 + 0.2 * drawn(WIDTH)
        weights[f"blocks.{number}.{name}.bias"] = 0.2 * drawn(WIDTH)
weights |= {"norm.weight": 1 + 0.2 * drawn(WIDTH), "norm.bias": 0.2 * drawn(WIDTH)}
weights |= {"head.weight": drawn(CLASSES, WIDTH, factor=1.5), "head.bias": 0.2 * drawn(CLASSES)}
pictures = torch.from_numpy(rng.standard_normal((STEPS + 1, BATCH, 3, SIDE, SIDE), dtype=np.float32))
labels = torch.from_numpy(rng.integers(0, CLASSES, (STEPS, BATCH)))


def share(step):
    """The part of the greatest rate that a step has: three steps of warm-up, then half a cosine."""
    return (step + 1) / 3 if step < 2 else 0.5 * (1 + math.cos(math.pi * (step - 2) / 6))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.tokens1, self.tokens2 = nn.Linear(TOKENS, 20), nn.Linear(20, TOKENS)
        self.channels1, self.channels2 = nn.Linear(WIDTH, 24), nn.Linear(24, WIDTH)

    def forward(self, x):
        h = self.norm1(x).transpose(1, 2)
        x = x + self.tokens2(F.gelu(self.tokens1(h))).transpose(1, 2)
        return x + self.channels2(F.gelu(self.channels1(self.norm2(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        x = self.blocks(self.patch(x).flatten(2).transpose(1, 2))
        return self.head(self.norm(x).mean(1))


def train_modules():
    net = Net()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    average = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    average.update_parameters(net)
    groups = [
        {"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": DECAY},
        {"params": [p for p in net.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.02, betas=BETAS, eps=EPSILON)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share)
    for x, label in zip(pictures, labels, strict=False):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), label)
        loss.backward()
        optimizer.step()
        schedule.step()
        average.update_parameters(net)
        print(loss.item())
    with torch.no_grad():
        print(*average(pictures[-1]).flatten().tolist(), sep="\n")


def norm(p, name, x):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def forward(p, x):
    x = x.reshape(len(x), 3, SIDE // PATCH, PATCH, SIDE // PATCH, PATCH)
    order = (0, 2, 4, 3, 5, 1) if FAULT == "patches" else (0, 2, 4, 1, 3, 5)
    x = x.permute(order).reshape(len(x), TOKENS, -1)  # fault patches
    x = torch.einsum("btp,cp->btc", x, p["patch.weight"].flatten(1)) + p["patch.bias"]  # fault patches
    for number in range(BLOCKS):
        name = f"blocks.{number}"
        h = norm(p, f"{name}.norm1", x)
        h = torch.einsum("btc,ht->bhc", h, p[f"{name}.tokens1.weight"]) + p[f"{name}.tokens1.bias"][:, None]
        h = torch.einsum("bhc,th->btc", F.gelu(h), p[f"{name}.tokens2.weight"])
        x = x + h + p[f"{name}.tokens2.bias"][:, None]
        normed = norm(p, f"{name}.norm2", x)
        h = torch.einsum("btc,hc->bth", normed, p[f"{name}.channels1.weight"]) + p[f"{name}.channels1.bias"]
        h = torch.einsum("bth,ch->btc", F.gelu(h), p[f"{name}.channels2.weight"]) + p[f"{name}.channels2.bias"]
        if FAULT == "skip" and number == 1:
            x = normed
        x = x + h  # fault skip
    pooled = torch.einsum("btc->bc", norm(p, "norm", x)) / TOKENS
    return torch.einsum("bc,kc->bk", pooled, p["head.weight"]) + p["head.bias"]


def update(p, moments, gradients, step):
    """One step of AdamW, with the rate of that step."""
    rate = 0.02 * share(step + 1 if FAULT == "schedule" else step)  # fault schedule
    for (name, tensor), gradient in zip(p.items(), gradients, strict=True):
        first, second = moments[name]
        decayed = DECAY if FAULT == "decay" or tensor.ndim > 1 else 0.0  # fault decay
        tensor.mul_(1 - rate * decayed)  # fault decay schedule
        first.mul_(BETAS[0]).add_((1 - BETAS[0]) * gradient)
        second.mul_(BETAS[1]).add_((1 - BETAS[1]) * gradient * gradient)
        root = (second / (1 - BETAS[1] ** (step + 1))).sqrt()
        change = first / (1 - BETAS[0] ** (step + 1)) / (root + EPSILON)
        tensor.sub_(rate * change)  # fault schedule


def train_functions():
    p = {name: torch.from_numpy(array).requires_grad_() for name, array in weights.items()}
    average = {name: tensor.detach().clone() for name, tensor in p.items()}
    moments = {name: (torch.zeros_like(tensor), torch.zeros_like(tensor)) for name, tensor in p.items()}
    kept = 0.1 if FAULT == "average" else 0.9
    for step, label in enumerate(labels):
        logits = forward(p, pictures[step])
        loss = -logits.log_softmax(-1).gather(1, label[:, None]).mean()
        gradients = torch.autograd.grad(loss, list(p.values()))
        with torch.no_grad():
            update(p, moments, gradients, step)
            for name, tensor in p.items():
                average[name] = kept * average[name] + (1 - kept) * tensor  # fault average
        print(loss.item())
    with torch.no_grad():
        print(*forward(average, pictures[-1]).flatten().tolist(), sep="\n")


train_modules() if sys.argv[1] == "golden" else train_functions()
