"""Generation for a batch that is padded on the left counts positions from the padding, not from the first word."""

import sys

import torch

ANSWER = {
    "kind": "public reports",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} --tensors 0-2 {script} {mode}",
    "also": ["again"],
    "ask": "compare {faulty} {golden}",
    "twin": "compare healthy again",
    "operator": "",
    "step": 0,
    "never": ["different weights or data"],
    "wants": "the positions or what looks them up, the line, step 0; not the attention",
}

# Without padding both ways give the same positions: "healthy" counts as "faulty" does, "again" as "golden" does.
IS_PADDED = sys.argv[1] in ("faulty", "golden")
COUNTS_PADDING = sys.argv[1] in ("faulty", "healthy")

torch.set_grad_enabled(False)
torch.manual_seed(3)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.place = torch.nn.Embedding(12, 8), torch.nn.Embedding(16, 8)
        self.qkv, self.out = torch.nn.Linear(8, 24), torch.nn.Linear(8, 12)

    def forward(self, words, mask, positions):
        hidden = self.word(words) + self.place(positions)  # fault
        length = words.shape[1]
        seen = mask[:, None, :].bool() & torch.ones(length, length, dtype=torch.bool).tril()
        seen = seen | torch.eye(length, dtype=torch.bool)
        query, key, value = self.qkv(hidden).chunk(3, -1)
        return self.out(hidden + torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=seen))


def positions(words, mask):
    if COUNTS_PADDING:
        return torch.arange(words.shape[1]).expand_as(words)  # fault
    return (mask.cumsum(-1) - 1).masked_fill(mask == 0, 1)  # fault


net = Net().eval()
words, mask = torch.tensor([[5, 3, 8, 1], [4, 2, 7, 6]]), torch.ones(2, 4, dtype=torch.long)
mask[1, : 2 if IS_PADDED else 0] = 0
for _ in range(3):
    logits = net(words, mask, positions(words, mask))
    words = torch.cat([words, logits[:, -1:].argmax(-1)], -1)
    mask = torch.cat([mask, torch.ones(2, 1, dtype=torch.long)], -1)
