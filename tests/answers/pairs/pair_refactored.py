"""A small encoder was rewritten: the same computation in another form, in one case with a fault in it."""

import sys

import torch

ANSWER = {
    "kind": "another form of the same",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "line": False,
    "exit": 0,
    "says": ["agree"],
    "never": ["first difference", "first wrong"],
    "wants": "that both agree, in two forms",
    "variants": {
        "joined": {"goes_wrong": "Nothing: one product makes queries, keys and values, in place of three."},
        "kernel": {"goes_wrong": "Nothing: the attention is written out, in place of the library's."},
        "bfloat16": {"goes_wrong": "Nothing: an attention of bfloat16 is written out, and its softmax is in float32."},
        "scale": {
            "goes_wrong": "The attention is written out, and divides by the size of a head, not by its root.",
            "line": True,
            "exit": 1,
            "says": [],
            "never": ["different weights or data"],
            "wants": "the line that scales the scores, in an attention of another form",
        },
        "feed_forward": {
            "goes_wrong": "The attention is written out, which is right, and the second block has another GELU.",
            "operator": "aten.gelu",
            "line": True,
            "exit": 1,
            "says": ["approximate"],
            "never": ["different weights or data"],
            "wants": "the GELU of the second block, its line; the other form of the attention is no fault",
        },
    },
}

VARIANT = sys.argv[2]
IS_GOLDEN = sys.argv[1] == "golden" or (sys.argv[1] == "healthy" and VARIANT in ("joined", "kernel", "bfloat16"))
FAULT = VARIANT if sys.argv[1] == "faulty" else ""
SIZE, HEADS = 16, 2


def attention(query, key, value):
    if IS_GOLDEN or VARIANT == "joined":
        return torch.nn.functional.scaled_dot_product_attention(query, key, value)
    root = 8 if FAULT == "scale" else 8**0.5
    scores = query @ key.mT / root  # fault scale
    share = torch.softmax(scores.float(), -1).to(value.dtype)
    return share @ value


class Block(torch.nn.Module):
    def __init__(self, form):
        super().__init__()
        self.query, self.key, self.value = (torch.nn.Linear(SIZE, SIZE) for _ in range(3))
        self.out, self.first, self.second = (
            torch.nn.Linear(*ends) for ends in ((SIZE, SIZE), (SIZE, 2 * SIZE), (2 * SIZE, SIZE))
        )
        self.norm1, self.norm2, self.form = torch.nn.LayerNorm(SIZE), torch.nn.LayerNorm(SIZE), form

    def heads(self, x):
        if VARIANT == "joined" and not IS_GOLDEN:
            weight = torch.cat([each.weight for each in (self.query, self.key, self.value)])
            bias = torch.cat([each.bias for each in (self.query, self.key, self.value)])
            return torch.nn.functional.linear(x, weight, bias).chunk(3, -1)
        return self.query(x), self.key(x), self.value(x)

    def forward(self, x):
        batch, length, _ = x.shape
        heads = [each.reshape(batch, length, HEADS, -1).transpose(1, 2) for each in self.heads(self.norm1(x))]
        x = x + self.out(attention(*heads).transpose(1, 2).reshape(x.shape))
        hidden = torch.nn.functional.gelu(self.first(self.norm2(x)), approximate=self.form)  # fault feed_forward
        return x + self.second(hidden)


torch.manual_seed(0)
blocks = [Block("tanh" if FAULT == "feed_forward" and number else "none") for number in range(3)]
net = torch.nn.Sequential(torch.nn.Embedding(20, SIZE), *blocks, torch.nn.Linear(SIZE, 5))
if VARIANT == "bfloat16":
    net = net.bfloat16()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    words, labels = torch.randint(0, 20, (3, 7)), torch.randint(0, 5, (3, 7))
    loss = torch.nn.functional.cross_entropy(net(words).flatten(0, 1), labels.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
