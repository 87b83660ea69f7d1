"""Two towers, one for pictures and one for texts, were moved to an autocast of bfloat16 with a scaled loss."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "third trial: two towers in bfloat16",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "step": 0,
    "variants": {
        "similar": {
            "goes_wrong": "Similarities, up to 60, are a product in bfloat16; the product should be kept in float32.",
            "wants": "the product that makes the similarities",
        },
        "columns": {
            "goes_wrong": "The loss has that of the rows twice, in place of that of the columns.",
            "wants": "the second cross entropy, or the transposition before it",
        },
        "ended": {
            "goes_wrong": "The text is read at its last place, not where it ends.",
            "wants": "the choice of the place that stands for the text",
        },
        "token": {
            "goes_wrong": "The mean over the patches takes in the token of the class.",
            "wants": "the choice of the patches, or their mean",
        },
        "unscaled": {
            "goes_wrong": "Gradients are clipped before the scale of the loss is taken off them, not behind.",
            "wants": "the clipping, the division by the scale, or the update in step 0",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
IS_HALF = sys.argv[1] != "golden"
WORDS, WIDTH, HEADS, LENGTH, PATCHES, BATCH, CODE, STEPS, SCALE = 27, 24, 3, 7, 9, 5, 12, 2, 1024.0

rng = np.random.default_rng(151)
pictures = torch.from_numpy(rng.standard_normal((STEPS, BATCH, 3, 12, 12), dtype=np.float32))
texts = torch.from_numpy(rng.integers(1, WORDS, (STEPS, BATCH, LENGTH)))
ends = torch.from_numpy(rng.integers(2, LENGTH - 1, (STEPS, BATCH)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x, is_causal):
        q, k, v = (each.unflatten(-1, (HEADS, -1)).transpose(1, 2) for each in self.qkv(self.norm1(x)).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        if is_causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -1e4)
        mixed = scores.softmax(-1).to(v.dtype) @ v
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 4, stride=4)
        self.token, self.places = nn.Parameter(torch.empty(1, WIDTH)), nn.Parameter(torch.empty(PATCHES + 1, WIDTH))
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(2)), nn.LayerNorm(WIDTH)
        self.code = nn.Linear(WIDTH, CODE, bias=False)

    def forward(self, picture):
        x = self.patches(picture).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), 1, -1), x], 1) + self.places
        for block in self.blocks:
            x = block(x, False)
        first = 0 if FAULT == "token" else 1
        chosen = x[:, first:]  # fault token
        return self.code(self.norm(chosen.mean(1)))  # fault token


class Texts(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Parameter(torch.empty(LENGTH, WIDTH))
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(2)), nn.LayerNorm(WIDTH)
        self.code = nn.Linear(WIDTH, CODE, bias=False)

    def forward(self, text, end):
        x = self.words(text) + self.places
        for block in self.blocks:
            x = block(x, True)
        if FAULT == "ended":
            end = torch.full_like(end, LENGTH - 1)  # fault ended
        chosen = self.norm(x)[torch.arange(len(x)), end]  # fault ended
        return self.code(chosen)  # fault ended


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pictures, self.texts = Pictures(), Texts()
        self.warmth = nn.Parameter(torch.empty(()))

    def forward(self, picture, text, end):
        seen, read = F.normalize(self.pictures(picture), dim=-1), F.normalize(self.texts(text, end), dim=-1)
        with torch.autocast("cpu", torch.bfloat16, enabled=FAULT == "similar"):
            left = self.warmth.exp() * seen.float()
            logits = left @ read.float().T  # fault similar
        numbers = torch.arange(BATCH)
        rows = F.cross_entropy(logits.float(), numbers)
        turned = logits if FAULT == "columns" else logits.T  # fault columns
        columns = F.cross_entropy(turned.float(), numbers)  # fault columns
        return (rows + columns) / 2


net = Net()
with torch.no_grad():
    for name, tensor in net.named_parameters():
        drawn = rng.standard_normal(tuple(tensor.shape))
        if name == "warmth":
            drawn = np.log(60.0)
        elif name.endswith(("norm.weight", "norm1.weight", "norm2.weight")):
            drawn = 1 + 0.1 * drawn
        elif name.endswith("bias"):
            drawn = 0.1 * drawn
        elif "words" not in name:
            drawn = 1.2 * drawn / max(1, tensor[0].numel()) ** 0.5
        tensor.copy_(torch.tensor(drawn, dtype=torch.float32))
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
for picture, text, end in zip(pictures, texts, ends, strict=True):
    with torch.autocast("cpu", torch.bfloat16, enabled=IS_HALF):
        loss = net(picture, text, end)
    optimizer.zero_grad()
    scale = SCALE if IS_HALF else 1.0
    (loss * scale).backward()
    if FAULT == "unscaled":
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # fault unscaled
    if IS_HALF:
        for tensor in net.parameters():
            tensor.grad.div_(scale)  # fault unscaled
    if FAULT != "unscaled":
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()  # fault unscaled
    print(loss.item())
