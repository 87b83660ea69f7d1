"""A transformer of patches with heads of its own was upgraded to the layers and the optimizer of the library."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "fourth trial: a transformer of patches upgraded",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "activation": {
            "goes_wrong": "The first layer has the activation that is the library's default, ReLU.",
            "wants": "the activation of the first layer, inside the layer of the library",
        },
        "batch": {
            "goes_wrong": "The second layer attends over the pictures of a batch, not over the patches.",
            "wants": "the attention of the second layer, or where it is made",
        },
        "packed": {
            "goes_wrong": "The rows of query and key have changed places in the second layer's joined weight.",
            "wants": "the attention of the second layer, or its weight",
        },
        "attend": {
            "goes_wrong": "The mask of the third layer is true where nothing should be seen.",
            "wants": "the attention of the third layer, or its mask",
        },
        "decay": {
            "goes_wrong": "The decay of the weights is the default of the library, 0.01 for 0.2.",
            "wants": "the optimizer's step",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
WIDTH, HEADS, INNER, PATCH, PATCHES, BATCH, CLASSES, STEPS = 16, 4, 28, 4, 6, 7, 5, 3

rng = np.random.default_rng(405)


def drawn(*shape, factor=1.0):
    return (factor * rng.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32)


def row(*shape, base=0.0):
    return (base + rng.uniform(-0.4, 0.4, shape)).astype(np.float32)


weights = {"patch.weight": drawn(WIDTH, 3, PATCH, PATCH), "patch.bias": row(WIDTH)}
weights |= {"first": row(1, 1, WIDTH), "places": row(1, PATCHES + 1, WIDTH)}
for number in range(3):
    for name, out, into in (("qkv", 3 * WIDTH, WIDTH), ("out", WIDTH, WIDTH), ("up", INNER, WIDTH)):
        weights[f"layers.{number}.{name}.weight"] = drawn(out, into, factor=1.6)
        weights[f"layers.{number}.{name}.bias"] = row(out)
    weights |= {f"layers.{number}.down.weight": drawn(WIDTH, INNER), f"layers.{number}.down.bias": row(WIDTH)}
    for name in ("norm1", "norm2"):
        weights |= {f"layers.{number}.{name}.weight": row(WIDTH, base=1), f"layers.{number}.{name}.bias": row(WIDTH)}
weights |= {"norm.weight": row(WIDTH, base=1), "norm.bias": row(WIDTH)}
weights |= {"head.weight": drawn(CLASSES, WIDTH, factor=1.6), "head.bias": row(CLASSES)}
pictures = torch.from_numpy(rng.standard_normal((STEPS, BATCH, 3, 8, 12), dtype=np.float32))
labels = torch.from_numpy(rng.integers(0, CLASSES, (STEPS, BATCH)))
ends = torch.from_numpy(rng.integers(2, PATCHES, (STEPS, BATCH, 1)))


class OwnLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(self, x, padding):
        q, k, v = (each.unflatten(-1, (HEADS, -1)).transpose(1, 2) for each in self.qkv(self.norm1(x)).chunk(3, -1))
        scores = (q @ k.transpose(-1, -2)) * (WIDTH // HEADS) ** -0.5
        shares = scores.masked_fill(padding[:, None, None], -1e9).softmax(-1)
        x = x + self.out((shares @ v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class JoinedLayer(nn.Module):
    """Attention by nn.MultiheadAttention."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=FAULT != "batch")  # fault batch
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(self, x, padding):
        h = self.norm1(x)
        h, _ = self.attention(h, h, h, key_padding_mask=padding, need_weights=False)  # fault batch packed
        x = x + h
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class FusedLayer(OwnLayer):
    """Attention by one call."""

    def forward(self, x, padding):
        q, k, v = (each.unflatten(-1, (HEADS, -1)).transpose(1, 2) for each in self.qkv(self.norm1(x)).chunk(3, -1))
        mask = padding if FAULT == "attend" else ~padding  # fault attend
        h = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None])  # fault attend
        x = x + self.out(h.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class EncoderLayer(nn.TransformerEncoderLayer):
    def __init__(self):
        activation = "relu" if FAULT == "activation" else "gelu"
        super().__init__(WIDTH, HEADS, INNER, 0.0, activation, batch_first=True, norm_first=True)  # fault activation


class Net(nn.Module):
    def __init__(self, is_golden):
        super().__init__()
        self.patch = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.first = nn.Parameter(torch.empty(1, 1, WIDTH))
        self.places = nn.Parameter(torch.empty(1, PATCHES + 1, WIDTH))
        kinds = [OwnLayer] * 3 if is_golden else [EncoderLayer, JoinedLayer, FusedLayer]
        self.layers = nn.ModuleList(kind() for kind in kinds)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, x, end):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.places
        padding = torch.arange(PATCHES + 1) > end
        for layer in self.layers:
            if isinstance(layer, nn.TransformerEncoderLayer):
                x = layer(x, src_key_padding_mask=padding)  # fault activation
            else:
                x = layer(x, padding)
        return self.head(self.norm(x)[:, 0])


def upgraded():
    """The weights by the names that the layers of the library have."""
    found = {}
    for name, array in weights.items():
        tensor, attention = torch.from_numpy(array), "self_attn" if name.startswith("layers.0.") else "attention"
        if FAULT == "packed" and name.startswith("layers.1.qkv"):
            query, key, value = tensor.chunk(3)
            tensor = torch.cat([key, query, value])  # fault packed
        if name.startswith(("layers.0.", "layers.1.")):
            name = name.replace("qkv.", f"{attention}.in_proj_").replace("out.", f"{attention}.out_proj.")
        if name.startswith("layers.0."):
            name = name.replace("up.", "linear1.").replace("down.", "linear2.")
        found[name] = tensor
    return found


is_golden = sys.argv[1] == "golden"
net = Net(is_golden)
if is_golden:
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=0.2, eps=1e-6, foreach=False)
else:
    net.load_state_dict(upgraded())
    decay = {} if FAULT == "decay" else {"weight_decay": 0.2}
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, eps=1e-6, foreach=True, **decay)  # fault decay
for x, label, end in zip(pictures, labels, ends, strict=True):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x, end), label)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=not is_golden)
    optimizer.step()  # fault decay
    print(loss.item())
