"""A perceptron of three residual blocks trains three steps; its training was moved to another version of the loop."""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trial: an upgraded training",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "step": 0,
    "never": ["different weights or data"],
    "variants": {
        "foreach": {
            "goes_wrong": "Nothing: the optimizer updates all weights at once, in place of one by one.",
            "line": False,
            "step": None,
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, in two forms",
        },
        "fused": {
            "goes_wrong": "Nothing: the optimizer is one operator.",
            "line": False,
            "step": None,
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, in two forms",
        },
        "renamed": {
            "goes_wrong": "Nothing: modules have other names, and the two branches of a block run in another order.",
            "line": False,
            "step": None,
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, in another order and with other names",
        },
        "coupled": {
            "goes_wrong": "The decay of weights is a part of their gradients: the optimizer is Adam, not AdamW.",
            "wants": "the update of step 0, the line of the optimizer",
        },
        "beta": {
            "goes_wrong": "The second beta is 0.95 in place of 0.999.",
            "step": None,
            "wants": "the update, the line of the optimizer",
        },
        "schedule": {
            "goes_wrong": "The rate of each step is that of the next.",
            "wants": "the update of step 0, the line of the optimizer",
        },
        "clip": {
            "goes_wrong": "Gradients are clipped to a norm of 1 in place of 0.25.",
            "wants": "the line that clips gradients",
        },
        "smoothing": {
            "goes_wrong": "The loss smooths its labels.",
            "says": ["smoothing"],
            "wants": "the line of the loss, and its label smoothing",
        },
        "accumulation": {
            "goes_wrong": "The losses of the two halves of a batch are added up, not halved.",
            "wants": "the line of the loss or of its backward pass",
        },
        "average": {
            "goes_wrong": "The averaged weights move by a tenth in place of a hundredth.",
            "wants": "the line that averages weights",
        },
        "kept": {
            "goes_wrong": "Gradients of the step before are kept, from step 1 on.",
            "step": 1,
            "wants": "in step 1 the gradients that are added to those of before, or what first reads them",
        },
        "frozen": {
            "goes_wrong": "The bias of the head is not handed to the optimizer.",
            "says": ["head"],
            "wants": "that the head's bias has no update in step 0, the line of the optimizer",
        },
    },
}

VARIANT = sys.argv[2]
IS_NEW = sys.argv[1] == "faulty" or (sys.argv[1] == "healthy" and VARIANT not in ("foreach", "fused", "renamed"))
FAULT = VARIANT if sys.argv[1] == "faulty" else ""


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.gate, self.down = (
            *(nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(32, 64)),
            nn.Linear(64, 32),
        )

    def forward(self, x):
        y = self.norm(x)
        gate = torch.sigmoid(self.gate(y))
        return x + self.down(functional.gelu(self.up(y)) * gate)


class RenamedBlock(nn.Module):
    def __init__(self, old):
        super().__init__()
        self.ln, self.fc_in, self.fc_gate, self.fc_out = old.norm, old.up, old.gate, old.down

    def forward(self, hidden):
        normalised = self.ln(hidden)
        value = functional.gelu(self.fc_in(normalised))
        return self.fc_out(torch.sigmoid(self.fc_gate(normalised)) * value) + hidden


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.blocks, self.head = (
            nn.Linear(20, 32),
            nn.Sequential(*(Block() for _ in range(3))),
            nn.Linear(32, 7),
        )

    def forward(self, x):
        return self.head(self.blocks(self.enter(x)))


torch.manual_seed(0)
net = Net()
if IS_NEW and VARIANT == "renamed":
    net.blocks = nn.Sequential(*map(RenamedBlock, net.blocks))
averaged = [value.detach().clone() for value in net.parameters()]
trained = [value for name, value in net.named_parameters() if FAULT != "frozen" or name != "head.bias"]
forms = {"foreach": IS_NEW and VARIANT == "foreach", "fused": IS_NEW and VARIANT == "fused"}
betas = (0.9, 0.95 if FAULT == "beta" else 0.999)  # fault beta
maker = torch.optim.Adam if FAULT == "coupled" else torch.optim.AdamW  # fault coupled
optimizer = maker(trained, lr=1e-2, betas=betas, weight_decay=0.1, **forms)  # fault coupled beta frozen
first = 2 if FAULT == "schedule" else 1
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + first) / 10))
for _ in range(3):
    x, y = torch.randn(16, 20), torch.randint(0, 7, (16,))
    if FAULT != "kept":
        optimizer.zero_grad()
    smoothing = 0.1 if FAULT == "smoothing" else 0.0
    for half in (slice(0, 8), slice(8, 16)):
        logits = net(x[half])
        loss = functional.cross_entropy(logits, y[half], label_smoothing=smoothing)  # fault smoothing accumulation
        loss = loss if FAULT == "accumulation" else loss / 2  # fault accumulation
        loss.backward()  # fault accumulation kept
    nn.utils.clip_grad_norm_(net.parameters(), 1.0 if FAULT == "clip" else 0.25)  # fault clip kept
    optimizer.step()  # fault coupled beta schedule kept frozen
    schedule.step()
    with torch.no_grad():
        for mean, value in zip(averaged, net.parameters(), strict=True):
            mean.mul_(0.9 if FAULT == "average" else 0.99)  # fault average
            mean.add_(value, alpha=0.1 if FAULT == "average" else 0.01)  # fault average
print(float(loss))
