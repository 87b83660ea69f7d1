"""A decoder of three blocks was rewritten, with joined products, norms and rotations by hand; it trains two steps."""

import sys

import torch
from torch.nn import functional

ANSWER = {
    "kind": "trial: a rewritten decoder",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "step": 0,
    "never": ["different weights or data"],
    "variants": {
        "forms": {
            "goes_wrong": "Nothing: queries, keys and values are one product, gate and up another, the rest by hand.",
            "line": False,
            "step": None,
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, in two forms",
        },
        "epsilon": {
            "goes_wrong": "The norms by hand add 0.00001 in place of 0.000001 to values that are small.",
            "wants": "the line of the norm by hand that adds the epsilon",
        },
        "base": {
            "goes_wrong": "The frequencies of the rotation have the base 500000 in place of 10000.",
            "wants": "the line that makes the frequencies or the table of the angles",
        },
        "swapped": {
            "goes_wrong": "The activation is on the second half of the joined product, which is not the gate.",
            "wants": "the line of the activation, which reads the other half, or the one that splits the product",
        },
        "groups": {
            "goes_wrong": "Keys and values are repeated as a whole, in place of each head beside its copy.",
            "wants": "the line that repeats the heads of keys and values",
        },
        "mask": {
            "goes_wrong": "Each position sees the one after it.",
            "wants": "the line that makes the mask, or the one that masks the scores",
        },
        "gain": {
            "goes_wrong": "The weight of the last norm is taken as a distance from 1.",
            "wants": "the line of the last norm that multiplies with the weight and 1",
        },
        "half": {
            "goes_wrong": "The rotation of the keys of the second block goes through bfloat16.",
            "says": ["bfloat16"],
            "wants": "the cast to bfloat16 of the second block, its line",
        },
        "residual": {
            "goes_wrong": "The feed-forward of the second block is added to what its norm made.",
            "wants": "the sum of the second block, its line, whose operand is that behind the norm",
        },
        "statistics": {
            "goes_wrong": "The scores are divided by the root of the width; both runs were dumped as statistics.",
            "saved": "statistic",
            "wants": "the line that scales the scores",
        },
    },
}

VARIANT = sys.argv[2]
IS_NEW = sys.argv[1] == "faulty" or (sys.argv[1] == "healthy" and VARIANT != "forms")
FAULT = VARIANT if sys.argv[1] == "faulty" else ""
WIDTH, HEADS, GROUPS, HEAD, LENGTH = 48, 4, 2, 12, 10


class Norm(torch.nn.Module):
    def __init__(self, is_last=False):
        super().__init__()
        self.weight, self.is_last = torch.nn.Parameter(1 + 0.1 * torch.randn(WIDTH)), is_last

    def forward(self, x):
        if not IS_NEW:
            return functional.rms_norm(x, (WIDTH,), self.weight, 1e-6)
        epsilon = 1e-5 if FAULT == "epsilon" else 1e-6
        scaled = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon)  # fault epsilon
        if FAULT == "gain" and self.is_last:
            return scaled * (1 + self.weight)  # fault gain
        return scaled * self.weight


def angles():
    base = 500000.0 if FAULT == "base" else 10000.0
    frequencies = 1 / base ** (torch.arange(0, HEAD, 2) / HEAD)  # fault base
    return torch.outer(torch.arange(LENGTH).float(), frequencies)  # fault base


def rotated(x):
    table = angles()
    if IS_NEW:
        first, second = x.chunk(2, -1)
        turned = torch.complex(first, second) * torch.polar(torch.ones_like(table), table)  # fault base
        return torch.cat([turned.real, turned.imag], -1)
    cos, sin = table.cos().repeat(1, 2), table.sin().repeat(1, 2)
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


class Block(torch.nn.Module):
    def __init__(self, number):
        super().__init__()
        self.norm1, self.norm2, self.number = Norm(), Norm(), number
        sizes = {"query": HEADS * HEAD, "key": GROUPS * HEAD, "value": GROUPS * HEAD, "gate": 64, "up": 64}
        for name, size in sizes.items():
            setattr(self, name, torch.nn.Linear(WIDTH, size, bias=False))
        self.out, self.down = torch.nn.Linear(WIDTH, WIDTH, bias=False), torch.nn.Linear(64, WIDTH, bias=False)

    def attention(self, x):
        batch = x.shape[0]
        if IS_NEW:
            joined = torch.cat([self.query.weight, self.key.weight, self.value.weight])
            parts = functional.linear(x, joined).split([HEADS * HEAD, GROUPS * HEAD, GROUPS * HEAD], -1)
        else:
            parts = self.query(x), self.key(x), self.value(x)
        query, key, value = (part.reshape(batch, LENGTH, -1, HEAD).transpose(1, 2) for part in parts)
        query, key = rotated(query), rotated(key)
        if FAULT == "half" and self.number == 1:
            key = key.bfloat16().float()  # fault half
        if not IS_NEW:
            key, value = (each.repeat_interleave(HEADS // GROUPS, 1) for each in (key, value))
            return functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        if FAULT == "groups":
            key, value = (each.repeat(1, HEADS // GROUPS, 1, 1) for each in (key, value))  # fault groups
        else:
            key, value = (
                each[:, :, None].expand(-1, -1, HEADS // GROUPS, -1, -1).flatten(1, 2) for each in (key, value)
            )
        root = (WIDTH if FAULT == "statistics" else HEAD) ** 0.5
        scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / root  # fault statistics
        hidden = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(2 if FAULT == "mask" else 1)  # fault mask
        scores = scores.masked_fill(hidden, float("-inf"))  # fault mask
        return torch.softmax(scores, -1) @ value

    def forward(self, x):
        x = x + self.out(self.attention(self.norm1(x)).transpose(1, 2).reshape(x.shape))
        y = self.norm2(x)
        if IS_NEW:
            joined = functional.linear(y, torch.cat([self.gate.weight, self.up.weight]))
            gate, up = joined.chunk(2, -1)[::-1] if FAULT == "swapped" else joined.chunk(2, -1)  # fault swapped
            hidden = functional.silu(gate) * up  # fault swapped
        else:
            hidden = functional.silu(self.gate(y)) * self.up(y)
        if FAULT == "residual" and self.number == 1:
            return y + self.down(hidden)  # fault residual
        return x + self.down(hidden)


torch.manual_seed(0)
words = torch.nn.Embedding(50, WIDTH)
words.weight.data *= 0.02
net = torch.nn.Sequential(words, *map(Block, range(3)), Norm(is_last=True), torch.nn.Linear(WIDTH, 50, bias=False))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(2):
    text = torch.randint(0, 50, (2, LENGTH + 1))
    loss = functional.cross_entropy(net(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(float(loss))
