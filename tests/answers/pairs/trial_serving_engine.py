"""A serving engine computes what the plain model computes, with other shapes: it hands on pairs, folds and packs."""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trial: a serving engine",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "pairs": {
            "goes_wrong": "Nothing: blocks hand on what they add and the sum before it, and products are joined.",
            "line": False,
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, in two forms",
        },
        "folded": {
            "goes_wrong": "Nothing: the weights of the norms are a part of the products behind them.",
            "line": False,
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, in two forms",
        },
        "packed": {
            "goes_wrong": "Nothing: sentences of a batch stand behind one another, in place of padded ones.",
            "line": False,
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree for all words that are not padding",
        },
        "pairs_sum": {
            "goes_wrong": "The third block hands on the sum of the block before it.",
            "line": True,
            "never": ["different weights or data"],
            "wants": "the sum that lacks what the third block's attention made, its line",
        },
        "pairs_bias": {
            "goes_wrong": "The joined product has the bias of the keys where that of the values belongs.",
            "line": True,
            "wants": "the joined product or its bias, its line",
        },
        "folded_twice": {
            "goes_wrong": "The norm before the second feed-forward still has its weight, which is folded as well.",
            "line": True,
            "wants": "the norm or the product of the second feed-forward, its line",
        },
        "packed_places": {
            "goes_wrong": "Places of a packed sentence are counted from the beginning of the batch.",
            "line": True,
            "never": ["different weights or data"],
            "wants": "the line that makes the places, or looks them up",
        },
        "packed_border": {
            "goes_wrong": "Packed sentences see those before them.",
            "line": True,
            "never": ["different weights or data"],
            "wants": "the line that makes the mask, or masks scores",
        },
    },
}

FORM, _, REST = sys.argv[2].partition("_")
IS_NEW = sys.argv[1] == "faulty" or (sys.argv[1] == "healthy" and bool(REST))
FAULT = REST if sys.argv[1] == "faulty" else ""
FORM = FORM if IS_NEW else ""
WIDTH, HEADS, LENGTHS = 32, 4, (9, 6, 7)


class Block(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.gate, self.up, self.down = nn.Linear(WIDTH, 64), nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH)
        self.weight1, self.weight2 = (nn.Parameter(torch.rand(WIDTH) + 0.5) for _ in range(2))
        self.number = number

    def join(self):
        """What the engine does when it loads weights."""
        heads, feeds = (self.query, self.key, self.value), (self.gate, self.up)
        self.heads, self.feeds = (torch.cat([each.weight.data for each in layers]) for layers in (heads, feeds))
        self.heads_bias = torch.cat([each.bias.data for each in heads])
        if FAULT == "bias" and self.number == 1:
            self.heads_bias[2 * WIDTH :] = self.key.bias.data  # fault pairs_bias
        self.feeds_bias = torch.cat([each.bias.data for each in feeds])
        if FORM == "folded":
            self.heads, self.feeds = self.heads * self.weight1.data, self.feeds * self.weight2.data

    def norm(self, x, weight, is_folded):
        return functional.rms_norm(x, (WIDTH,), None if is_folded else weight, 1e-6)  # fault folded_twice

    def attention(self, y, mask):
        if IS_NEW:
            parts = functional.linear(y, self.heads, self.heads_bias).chunk(3, -1)  # fault pairs_bias
        else:
            parts = self.query(y), self.key(y), self.value(y)
        query, key, value = (part.unflatten(-1, (HEADS, -1)).transpose(-2, -3) for part in parts)
        together = functional.scaled_dot_product_attention(query, key, value, mask)  # fault packed_border
        return self.out(together.transpose(-2, -3).flatten(-2))

    def feed(self, y):
        if IS_NEW:
            gate, up = functional.linear(y, self.feeds, self.feeds_bias).chunk(2, -1)  # fault folded_twice
        else:
            gate, up = self.gate(y), self.up(y)
        return self.down(functional.silu(gate) * up)

    def forward(self, x, before, mask):
        if FORM == "pairs":
            before = x if before is None else x + before
            y = self.attention(self.norm(before, self.weight1, is_folded=False), mask)
            total = y + before
            after = before if FAULT == "sum" and self.number == 2 else total  # fault pairs_sum
            return self.feed(self.norm(total, self.weight2, is_folded=False)), after
        is_folded = FORM == "folded"
        x = x + self.attention(self.norm(x, self.weight1, is_folded), mask)
        is_second = FAULT == "twice" and self.number == 1
        return x + self.feed(self.norm(x, self.weight2, is_folded and not is_second)), None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50, WIDTH), nn.Embedding(32, WIDTH)
        self.blocks, self.head = nn.ModuleList(map(Block, range(4))), nn.Linear(WIDTH, 50)

    def forward(self, words, places, mask):
        x, before = self.words(words) + self.places(places), None  # fault packed_places
        for block in self.blocks:
            x, before = block(x, before, mask)
        if before is not None:
            x = x + before  # fault pairs_sum
        return self.head(functional.rms_norm(x, (WIDTH,), None, 1e-6))


torch.manual_seed(0)
net = Net().eval()
if IS_NEW:
    for block in net.blocks:
        block.join()
sentences = [torch.randint(1, 50, (length,)) for length in LENGTHS]
longest = max(LENGTHS)
if FORM == "packed":
    words = torch.cat(sentences)
    owner = torch.repeat_interleave(torch.arange(3), torch.tensor(LENGTHS))
    places = torch.cat([torch.arange(length) for length in LENGTHS])
    if FAULT == "places":
        places = torch.arange(sum(LENGTHS))  # fault packed_places
    mask = torch.ones(len(words), len(words), dtype=torch.bool).tril()
    if FAULT != "border":
        mask = mask & (owner[:, None] == owner)  # fault packed_border
else:
    words = nn.utils.rnn.pad_sequence(sentences, batch_first=True)
    places = torch.arange(longest)
    mask = torch.ones(longest, longest, dtype=torch.bool).tril()
with torch.no_grad():
    logits = net(words, places, mask)
print(float(logits[-1].square().mean() if FORM == "packed" else logits[-1, LENGTHS[-1] - 1].square().mean()))
