"""A small decoder got an engine for serving: joined weights, and a cache of keys and values for each next word."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "fifth trial: a decoder with a cache",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "shared": {
            "goes_wrong": "The heads of a key are repeated in turn (0, 1, 0, 1), not one after the other (0, 0, 1, 1).",
            "wants": "the repetition of keys or values, or the attention after it",
        },
        "gate": {
            "goes_wrong": "The activation is on the second half of the joined product, the gate is the first.",
            "wants": "the split into halves, or the activation",
        },
        "place": {
            "goes_wrong": "The place of each word after the prompt is one too great.",
            "wants": "the places of the first word after the prompt, or the turn by them",
        },
        "unseen": {
            "goes_wrong": "A word after the prompt sees the cache without its own key and value.",
            "wants": "the cut of the cache for the first word after the prompt, or the attention after it",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
WORDS, WIDTH, HEADS, KEYS, SIZE, INNER, LAYERS, BATCH, PROMPT, NEW = 48, 32, 4, 2, 8, 40, 3, 2, 6, 3

rng = np.random.default_rng(505)


def drawn(*shape, factor=1.4):
    return torch.from_numpy((factor * rng.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32))


weights = {"words.weight": drawn(WORDS, WIDTH, factor=3)}
for number in range(LAYERS):
    for name, out, into in (
        ("query", HEADS * SIZE, WIDTH),
        ("key", KEYS * SIZE, WIDTH),
        ("value", KEYS * SIZE, WIDTH),
        ("out", WIDTH, HEADS * SIZE),
        ("gate", INNER, WIDTH),
        ("up", INNER, WIDTH),
        ("down", WIDTH, INNER),
    ):
        weights[f"layers.{number}.{name}.weight"] = drawn(out, into)
    for name in ("norm1", "norm2"):
        weights[f"layers.{number}.{name}.weight"] = 1 + 0.3 * drawn(WIDTH)
weights |= {"norm.weight": 1 + 0.3 * drawn(WIDTH), "head.weight": drawn(WORDS, WIDTH)}
prompt = torch.from_numpy(rng.integers(0, WORDS, (BATCH, PROMPT)))
speeds = 1 / 100 ** (torch.arange(0, SIZE, 2) / SIZE)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(WIDTH))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, HEADS * SIZE, bias=False)
        self.key, self.value = nn.Linear(WIDTH, KEYS * SIZE, bias=False), nn.Linear(WIDTH, KEYS * SIZE, bias=False)
        self.out = nn.Linear(HEADS * SIZE, WIDTH, bias=False)
        self.gate, self.up = nn.Linear(WIDTH, INNER, bias=False), nn.Linear(WIDTH, INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)
        self.norm1, self.norm2 = Norm(), Norm()

    def forward(self, x, cos, sin, mask):
        def turned(x):
            first, second = x.chunk(2, -1)
            return x * cos + torch.cat([-second, first], -1) * sin

        batch, length, _ = x.shape
        h = self.norm1(x)
        q = turned(self.query(h).view(batch, length, HEADS, SIZE).transpose(1, 2))
        k = turned(self.key(h).view(batch, length, KEYS, SIZE).transpose(1, 2)).repeat_interleave(HEADS // KEYS, 1)
        v = self.value(h).view(batch, length, KEYS, SIZE).transpose(1, 2).repeat_interleave(HEADS // KEYS, 1)
        shares = (q @ k.transpose(2, 3) / SIZE**0.5 + mask).softmax(-1)
        x = x + self.out((shares @ v).transpose(1, 2).reshape(batch, length, -1))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = Norm(), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words):
        length = words.shape[1]
        angles = (torch.arange(length)[:, None] * speeds).repeat(1, 2)
        mask = torch.full((length, length), -torch.inf).triu(1)
        x = self.words(words)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin(), mask)
        return self.head(self.norm(x))


class Engine:
    """The same decoder; what it has seen stays in a cache."""

    def __init__(self):
        self.table, self.norm, self.head = weights["words.weight"], weights["norm.weight"], weights["head.weight"]
        self.layers = []
        for number in range(LAYERS):
            part = {name: weights[f"layers.{number}.{name}.weight"] for name in ("norm1", "out", "norm2", "down")}
            for joined, names in (("qkv", ("query", "key", "value")), ("wide", ("gate", "up"))):
                part[joined] = torch.cat([weights[f"layers.{number}.{name}.weight"] for name in names])
            self.layers.append(part)
        self.cache = torch.zeros(LAYERS, 2, BATCH, KEYS, PROMPT + NEW, SIZE)
        self.seen = 0

    def turned(self, x, places):
        cos, sin = (places[:, None] * speeds).cos(), (places[:, None] * speeds).sin()  # fault place
        first, second = x[..., : SIZE // 2], x[..., SIZE // 2 :]
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)  # fault place

    def attend(self, number, h, places):
        length = h.shape[1]
        joined = F.linear(h, self.layers[number]["qkv"]).unflatten(-1, (-1, SIZE)).transpose(1, 2)
        q, k, v = joined.split([HEADS, KEYS, KEYS], 1)
        end = self.seen + length
        self.cache[number, 0, :, :, self.seen : end] = self.turned(k, places)
        self.cache[number, 1, :, :, self.seen : end] = v
        last = self.seen if FAULT == "unseen" and self.seen else end
        keys, values = self.cache[number, :, :, :, :last]  # fault unseen
        if FAULT == "shared":
            keys, values = keys.repeat(1, HEADS // KEYS, 1, 1), values.repeat(1, HEADS // KEYS, 1, 1)  # fault shared
        else:
            keys = keys.repeat_interleave(HEADS // KEYS, 1)
            values = values.repeat_interleave(HEADS // KEYS, 1)
        mask = torch.ones(length, last, dtype=torch.bool).tril(self.seen)  # fault unseen
        q = self.turned(q, places)
        h = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)  # fault shared unseen
        return F.linear(h.transpose(1, 2).flatten(2), self.layers[number]["out"])

    def __call__(self, words):
        late = int(FAULT == "place" and self.seen > 0)
        places = torch.arange(words.shape[1]) + self.seen + late  # fault place
        x = F.embedding(words, self.table)
        for number, part in enumerate(self.layers):
            x = x + self.attend(number, F.rms_norm(x, (WIDTH,), part["norm1"], 1e-6), places)
            h = F.linear(F.rms_norm(x, (WIDTH,), part["norm2"], 1e-6), part["wide"])
            gate, up = h.chunk(2, -1)  # fault gate
            if FAULT == "gate":
                gate, up = up, gate
            h = F.silu(gate) * up  # fault gate
            x = x + F.linear(h, part["down"])
        self.seen += words.shape[1]
        return F.linear(F.rms_norm(x[:, -1:], (WIDTH,), self.norm, 1e-6), self.head)


with torch.no_grad():
    if sys.argv[1] == "golden":
        decoder = Decoder().eval()
        decoder.load_state_dict(weights)
        words = prompt
        for _ in range(NEW):
            logits = decoder(words)[:, -1]
            words = torch.cat([words, logits.argmax(-1, keepdim=True)], 1)
            print(*logits.flatten().tolist(), sep="\n")
    else:
        engine, word = Engine(), prompt
        for _ in range(NEW):
            logits = engine(word)[:, -1]
            word = logits.argmax(-1, keepdim=True)
            print(*logits.flatten().tolist(), sep="\n")
