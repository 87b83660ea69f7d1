"""A transformer that attends in windows was given a twin of simple operators, which is exported to ONNX."""

import io
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "sixth trial: a transformer of windows exported",
    "entry": "onnx",
    "run": {"golden": "msdump run --config {config} --torch-eager {script} {mode}"},
    "ask": "compare {faulty} {golden}",
    "line": False,
    "variants": {
        "back": {
            "goes_wrong": "The tokens of the second block are shifted once more, not shifted back.",
            "operator": "blocks.1/back",
            "wants": "the second shift of the second block",
        },
        "table": {
            "goes_wrong": "The table of relative places is read by column and row, not by row and column.",
            "operator": "blocks.0/attention/places",
            "wants": "the sum of the scores of the first block with the table of relative places",
        },
        "tiles": {
            "goes_wrong": "The masks of the windows are repeated one by one, the windows of a batch follow in turn.",
            "operator": "blocks.1/attention/mask",
            "wants": "the sum of the scores of the second block with their mask",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
BATCH, SIDE, PATCH, WINDOW, SHIFT, WIDTH, HEADS, KINDS = 2, 16, 2, 4, 2, 16, 4, 5
GRID = SIDE // PATCH

rng = np.random.default_rng(606)
picture = torch.from_numpy(rng.standard_normal((BATCH, 3, SIDE, SIDE), dtype=np.float32))
spots = torch.stack(torch.meshgrid(torch.arange(WINDOW), torch.arange(WINDOW), indexing="ij"), -1).view(-1, 2)
apart = spots[:, None] - spots + WINDOW - 1


def windows(x):
    """(batch, rows, columns, width) as (batch * windows, tokens, width)."""
    batch, side, _, width = x.shape
    x = x.view(batch, side // WINDOW, WINDOW, side // WINDOW, WINDOW, width)
    return x.transpose(2, 3).reshape(-1, WINDOW * WINDOW, width)


def joined(x, side):
    width = x.shape[-1]
    x = x.view(-1, side // WINDOW, side // WINDOW, WINDOW, WINDOW, width)
    return x.transpose(2, 3).reshape(-1, side, side, width)


def regions():
    """A mask for each window: tokens that the shift has brought together do not see each other."""
    ends = torch.tensor([GRID - WINDOW, GRID - SHIFT])
    part = torch.bucketize(torch.arange(GRID), ends, right=True)
    number = windows((3 * part[:, None] + part).float()[None, :, :, None])[..., 0]
    return torch.where(number[:, None] == number[:, :, None], 0.0, -100.0)


class Attention(nn.Module):
    def __init__(self, is_shifted):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.table = nn.Parameter(torch.empty((2 * WINDOW - 1) ** 2, HEADS))
        self.is_shifted = is_shifted

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        scores = (q * (WIDTH // HEADS) ** -0.5) @ k.transpose(-2, -1)
        index = apart[..., 0] * (2 * WINDOW - 1) + apart[..., 1]
        scores = scores + self.table[index].permute(2, 0, 1)
        if self.is_shifted:
            mask = regions()
            scores = (scores.unflatten(0, (-1, len(mask))) + mask[:, None]).flatten(0, 1)
        h = scores.softmax(-1) @ v
        return self.out(h.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, shift):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention(shift > 0)
        self.wide, self.narrow = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.shift = shift

    def forward(self, x):
        side = x.shape[1]
        h = torch.roll(self.norm1(x), (-self.shift, -self.shift), (1, 2))
        h = joined(self.attention(windows(h)), side)
        x = x + torch.roll(h, (self.shift, self.shift), (1, 2))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class Net(nn.Module):
    block = Block

    def __init__(self):
        super().__init__()
        self.enter = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.blocks = nn.ModuleList(self.block(shift) for shift in (0, SHIFT, 0))
        self.merge = nn.Linear(4 * WIDTH, WIDTH, bias=False)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, KINDS)

    def forward(self, picture):
        x = self.enter(picture).permute(0, 2, 3, 1)
        x = self.blocks[1](self.blocks[0](x))
        x = self.merge(torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1))
        return self.head(self.norm(self.blocks[2](x)).mean((1, 2)))


class Shift(nn.Module):
    """Rolls rows and columns without Roll, which ONNX does not have."""

    def __init__(self, shift):
        super().__init__()
        self.shift = shift

    def forward(self, x):
        x = torch.cat([x[:, self.shift :], x[:, : self.shift]], 1)
        return torch.cat([x[:, :, self.shift :], x[:, :, : self.shift]], 2)


class Added(nn.Module):
    """Adds a constant to scores."""

    def forward(self, scores, constant):
        return scores + constant


class SimpleAttention(Attention):
    def __init__(self, is_shifted):
        super().__init__(is_shifted)
        self.places, self.mask = Added(), Added()

    def forward(self, x):
        count = x.shape[0]
        qkv = self.qkv(x).view(count, WINDOW * WINDOW, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        scores = qkv[0] * (WIDTH // HEADS) ** -0.5 @ qkv[1].transpose(2, 3)
        row, column = apart.unbind(-1)
        if FAULT == "table":
            row, column = column, row
        scores = self.places(scores, self.table[row * (2 * WINDOW - 1) + column].permute(2, 0, 1)[None])
        if self.is_shifted:
            masks = regions()
            if FAULT == "tiles":
                masks = masks.repeat_interleave(BATCH, 0)
            else:
                masks = masks.repeat(BATCH, 1, 1)
            scores = self.mask(scores, masks[:, None])
        h = scores.softmax(-1) @ qkv[2]
        return self.out(h.transpose(1, 2).reshape(count, WINDOW * WINDOW, WIDTH))


class SimpleBlock(Block):
    def __init__(self, shift):
        super().__init__(shift)
        self.attention = SimpleAttention(shift > 0)
        if shift:
            self.forth, self.back = Shift(shift), Shift(shift if FAULT == "back" else -shift)

    def forward(self, x):
        side = x.shape[1]
        h = self.norm1(x)
        if self.shift:
            h = self.back(joined(self.attention(windows(self.forth(h))), side))
        else:
            h = joined(self.attention(windows(h)), side)
        x = x + h
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class SimpleNet(Net):
    block = SimpleBlock


def filled(net):
    with torch.no_grad():
        for name, tensor in net.named_parameters():
            drawn = rng.standard_normal(tuple(tensor.shape))
            if name.endswith("table"):
                drawn *= 1.5
            elif tensor.ndim > 1:
                drawn *= 1.5 / tensor[0].numel() ** 0.5
            else:
                drawn = 0.2 * drawn + ("norm" in name and name.endswith("weight"))
            tensor.copy_(torch.from_numpy(drawn))
    return net.eval()


if sys.argv[1] == "golden":
    with torch.no_grad():
        print(*filled(Net())(picture).flatten().tolist(), sep="\n")
else:
    import msdump

    warnings.simplefilter("ignore")
    file = io.BytesIO()
    names = {"input_names": ["picture"], "output_names": ["kinds"]}
    torch.onnx.export(filled(SimpleNet()), (picture,), file, dynamo=False, opset_version=17, **names)
    Path(sys.argv[1]).mkdir()
    with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
        net = msdump.acl.load(file.getvalue())
        print(*net(picture.numpy())["kinds"].ravel().tolist(), sep="\n")
