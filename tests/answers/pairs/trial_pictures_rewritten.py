"""A residual net of pictures was rewritten: it trains three steps and looks at one more batch in evaluation."""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trial: a rewritten net of pictures",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "step": 0,
    "never": ["different weights or data"],
    "variants": {
        "written": {
            "goes_wrong": "Nothing: the batch norm is written out, convolutions of one pixel are products.",
            "line": False,
            "step": None,
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, in two forms",
        },
        "last": {
            "goes_wrong": "Nothing: tensors have their channels last in memory.",
            "line": False,
            "step": None,
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, in two forms",
        },
        "biased": {
            "goes_wrong": "The running variance is that of the batch without the correction for its size.",
            "step": None,
            "wants": "the line that updates the running variance, or makes what it takes",
        },
        "running": {
            "goes_wrong": "The norm of the second block takes its running statistics while it trains.",
            "wants": "the norm of the second block, its line",
        },
        "batch": {
            "goes_wrong": "The last batch is looked at as in training: the norms take its statistics.",
            "step": None,
            "wants": "the first norm of the last batch, its line",
        },
        "decay": {
            "goes_wrong": "Running statistics move by nine tenths to those of the batch, in place of one.",
            "step": None,
            "wants": "the line that updates the running statistics, by 0.9",
        },
        "brightness": {
            "goes_wrong": "Pictures are normalised by one half and one half, not by numbers of each channel.",
            "wants": "the line that normalises the pictures",
        },
        "colours": {
            "goes_wrong": "Colours are in the order blue, green, red.",
            "wants": "the line that turns the colours around",
        },
        "rectified": {
            "goes_wrong": "In the second block the rest is added behind the last ReLU, not before.",
            "wants": "the line of that ReLU, or of that sum",
        },
        "border": {
            "goes_wrong": "The mean pooling does not count the border.",
            "operator": "aten.avg_pool2d",
            "says": ["count_include_pad"],
            "wants": "the pooling, its line, and its count_include_pad",
        },
        "stride": {
            "goes_wrong": "The shortcut of the second block takes odd rows and columns in place of even ones.",
            "wants": "the line of the shortcut",
        },
        "statistics": {
            "goes_wrong": "The epsilon of the norm is 0.1; both runs were dumped as statistics.",
            "saved": "statistic",
            "wants": "the line of the norm that adds the epsilon",
        },
    },
}

VARIANT = sys.argv[2]
SAME = ("written", "last")
IS_NEW = sys.argv[1] == "faulty" or (sys.argv[1] == "healthy" and VARIANT not in SAME)
FAULT = VARIANT if sys.argv[1] == "faulty" else ""
# Colours, borders and shortcuts go wrong in nets that keep the norm of the library.
IS_WRITTEN = IS_NEW and VARIANT in ("written", "biased", "decay", "statistics", "rectified")


class Norm(nn.BatchNorm2d):
    def forward(self, x):
        if not IS_WRITTEN:
            return super().forward(x)  # fault running batch
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)
            count = x.numel() // x.shape[1]
            with torch.no_grad():
                share = 0.9 if FAULT == "decay" else 0.1
                taken = var if FAULT == "biased" else var * count / (count - 1)  # fault biased
                self.running_mean.lerp_(mean, share)  # fault decay
                self.running_var.lerp_(taken, share)  # fault biased decay
        epsilon = 0.1 if FAULT == "statistics" else 1e-5
        scale = (var + epsilon).rsqrt() * self.weight  # fault statistics
        return (x - mean[:, None, None]) * scale[:, None, None] + self.bias[:, None, None]


class Block(nn.Module):
    def __init__(self, size, number):
        super().__init__()
        self.conv1 = nn.Conv2d(size, 2 * size, 3, stride=2, padding=1, bias=False)
        self.conv2 = nn.Conv2d(2 * size, 2 * size, 3, padding=1, bias=False)
        self.short = nn.Conv2d(size, 2 * size, 1, bias=False)
        self.norm1, self.norm2, self.number = Norm(2 * size), Norm(2 * size), number

    def forward(self, x):
        first = int(FAULT == "stride" and self.number == 1)
        picked = x[:, :, first::2, first::2]  # fault stride
        if IS_WRITTEN:
            rest = torch.einsum("oi,bihw->bohw", self.short.weight[:, :, 0, 0], picked)
        else:
            rest = self.short(picked)  # fault stride
        y = self.conv2(torch.relu(self.norm1(self.conv1(x))))
        is_frozen = FAULT == "running" and self.number == 1
        if is_frozen:
            self.norm2.eval()
        y = self.norm2(y)  # fault running
        if FAULT == "rectified" and self.number == 1:
            return torch.relu(y) + rest  # fault rectified
        return torch.relu(y + rest)  # fault rectified


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), Norm(8)
        self.blocks, self.head = nn.Sequential(Block(8, 0), Block(16, 1)), nn.Linear(32, 6)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))  # fault batch
        x = functional.avg_pool2d(x, 3, 2, 1, count_include_pad=FAULT != "border")  # fault border
        return self.head(self.blocks(x).mean((2, 3)))


def prepared(pictures):
    if FAULT == "colours":
        pictures = pictures.flip(1)  # fault colours
    if FAULT == "brightness":
        return (pictures - 0.5) / 0.5  # fault brightness
    mean, deviation = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])[:, :, None, None]
    return (pictures - mean) / deviation


torch.manual_seed(0)
net = Net()
if IS_NEW and VARIANT == "last":
    net = net.to(memory_format=torch.channels_last)
if IS_WRITTEN:
    for module in net.modules():
        if isinstance(module, Norm):
            module.num_batches_tracked = None
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for _ in range(3):
    x, y = torch.rand(8, 3, 16, 16), torch.randint(0, 6, (8,))
    if IS_NEW and VARIANT == "last":
        x = x.contiguous(memory_format=torch.channels_last)
    loss = functional.cross_entropy(net(prepared(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if FAULT != "batch":
    net.eval()
with torch.no_grad():
    loss = net(prepared(torch.rand(8, 3, 16, 16))).square().mean()  # fault batch
print(float(loss))
