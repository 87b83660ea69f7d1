"""An encoder of three blocks is compiled, exported or moved to a half precision, and compared with what it was."""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trial: compiled, exported, half",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "line": False,
    "variants": {
        "compiled": {
            "goes_wrong": "Nothing: the net is compiled, and trains two steps.",
            "run": {"faulty": "msdump run --config {config} --torch-backend msdump {script} {mode}"},
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, compiled and not",
        },
        "exported": {
            "goes_wrong": "Nothing: the net was exported, and what came out is run.",
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, exported and not",
        },
        "bfloat16": {
            "goes_wrong": "Nothing: the net runs in bfloat16, and before in float32.",
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, up to what bfloat16 rounds",
        },
        "float16": {
            "goes_wrong": "Nothing: the net runs in float16, and before in float32.",
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, up to what float16 rounds",
        },
        "compiled_gelu": {
            "goes_wrong": "The compiled net has a GELU with tanh in its second block.",
            "run": {
                "faulty": "msdump run --config {config} --torch-backend msdump {script} {mode}",
                "healthy": "msdump run --config {config} --torch-backend msdump {script} {mode}",
            },
            "operator": "gelu",
            "line": True,
            "step": 0,
            "never": ["different weights or data"],
            "wants": "the GELU of the second block, its line",
        },
        "exported_mask": {
            "goes_wrong": "The net was exported with a mask of another length, which hides the last two places.",
            "line": True,
            "wants": "the line that makes the mask, that masks the scores, or that calls what was exported",
        },
        "bfloat16_scale": {
            "goes_wrong": "The net in bfloat16 divides its scores by the size of a head, not by the root of it.",
            "line": True,
            "never": ["different weights or data"],
            "wants": "the line that scales the scores",
        },
        "float16_dropout": {
            "goes_wrong": "The net in float16 was not put into evaluation: it drops a tenth.",
            "line": True,
            "never": ["different weights or data"],
            "wants": "the dropout behind the attention of the first block, its line",
        },
        "float16_gain": {
            "goes_wrong": "The norm in float16 of the last block has lost its weight: it is loaded as ones.",
            "says": ["weight"],
            "line": True,
            "never": [],
            "wants": "the norm of the last block, its line, and that its weight differs",
        },
    },
}

VARIANT = sys.argv[2]
FORM, _, REST = VARIANT.partition("_")
IS_NEW = sys.argv[1] == "faulty" or (sys.argv[1] == "healthy" and bool(REST))
FAULT = REST if sys.argv[1] == "faulty" else ""
WIDTH, HEADS, LENGTH = 32, 4, 9


class Block(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.joined, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.first, self.second = nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH)
        self.norm1, self.norm2, self.drop = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), nn.Dropout(0.1)
        self.number = number
        self.norm1.weight.data.uniform_(0.5, 1.5)
        self.norm2.weight.data.uniform_(0.5, 1.5)

    def forward(self, x):
        y = self.norm1(x)
        query, key, value = (
            part.reshape(x.shape[0], LENGTH, HEADS, -1).transpose(1, 2) for part in self.joined(y).chunk(3, -1)
        )
        root = 8 if FAULT == "scale" else 8**0.5
        scores = query @ key.transpose(-1, -2) / root  # fault bfloat16_scale
        seen = torch.arange(LENGTH) < LENGTH - 2 * (FAULT == "mask")  # fault exported_mask
        share = scores.masked_fill(~seen, float("-inf")).softmax(-1)  # fault exported_mask
        x = x + self.drop(self.out((share @ value).transpose(1, 2).reshape(x.shape)))  # fault float16_dropout
        form = "tanh" if FAULT == "gelu" and self.number == 1 else "none"
        y = self.norm2(x)  # fault float16_gain
        hidden = functional.gelu(self.first(y), approximate=form)  # fault compiled_gelu
        return x + self.second(hidden)


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(12, WIDTH), *map(Block, range(3)), nn.Linear(WIDTH, 6))
x, y = torch.randn(4, LENGTH, 12), torch.randint(0, 6, (4,))
if FAULT != "dropout":
    net.eval()
if FAULT == "gain":
    net[3].norm2.weight.data.fill_(1)  # fault float16_gain
if FORM == "compiled":
    model = torch.compile(net) if IS_NEW else net
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(2):
        loss = functional.cross_entropy(model(x).mean(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
else:
    model = net
    if IS_NEW and FORM in ("bfloat16", "float16"):
        model, x = net.to(getattr(torch, FORM)), x.to(getattr(torch, FORM))
    if IS_NEW and FORM == "exported":
        model = torch.export.export(net, (x,)).module()
    with torch.no_grad():
        loss = model(x).mean(1).square().mean()  # fault exported_mask
print(float(loss))
