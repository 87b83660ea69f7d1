"""A net that sorts clouds of points was moved from float32 to an autocast of bfloat16, and its rates to groups."""

import sys
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "sixth trial: clouds of points in bfloat16",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "step": 0,
    "variants": {
        "turn": {
            "goes_wrong": "The points are multiplied by the transposed turn.",
            "wants": "the product of the points with their turn",
        },
        "straight": {
            "goes_wrong": "The turn is multiplied by itself, not by its transpose, to see whether it is a rotation.",
            "wants": "the product of the turn in the regulariser, or the difference from the unit matrix",
        },
        "rates": {
            "goes_wrong": "The part that tells the turn has the rate of the rest, not a tenth of it.",
            "wants": "the first step of the optimizer, or the groups of its parameters",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
IS_NEW = sys.argv[1] != "golden"
POINTS, BATCH, KINDS, STEPS, RATE = 24, 6, 4, 3, 0.05

rng = np.random.default_rng(605)
clouds = torch.from_numpy(rng.standard_normal((STEPS, BATCH, POINTS, 3), dtype=np.float32))
clouds = clouds * torch.tensor([1.0, 0.6, 0.3])
kinds = torch.from_numpy(rng.integers(0, KINDS, (STEPS, BATCH)))


class PointLayers(nn.Sequential):
    """Products for each point."""

    def __init__(self, *widths):
        layers = []
        for into, out in pairwise(widths):
            layers += [nn.Conv1d(into, out, 1), nn.BatchNorm1d(out), nn.ReLU()]
        super().__init__(*layers)


class Turn(nn.Module):
    """Tells a matrix that the points are multiplied with."""

    def __init__(self):
        super().__init__()
        self.points = PointLayers(3, 12, 20)
        self.fc1, self.fc2 = nn.Linear(20, 12), nn.Linear(12, 9)

    def forward(self, x):
        h = self.points(x.transpose(1, 2)).mean(2)
        turn = self.fc2(F.relu(self.fc1(h))).view(-1, 3, 3)
        return turn + torch.eye(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn, self.points = Turn(), PointLayers(3, 12, 20, 28)
        self.fc1, self.norm, self.fc2 = nn.Linear(56, 16), nn.LayerNorm(16), nn.Linear(16, KINDS)

    def forward(self, x):
        turn = self.turn(x)
        if not IS_NEW:
            x = torch.bmm(x, turn)
        elif FAULT == "turn":
            x = torch.einsum("bpi,boi->bpo", x, turn)  # fault turn
        else:
            x = torch.einsum("bpi,bio->bpo", x, turn)
        h = self.points(x.transpose(1, 2))
        h = torch.cat([h.amax(2), h.mean(2)], 1)
        return self.fc2(F.relu(self.norm(self.fc1(h)))), turn


def filled(net):
    with torch.no_grad():
        for name, tensor in net.named_parameters():
            drawn = rng.standard_normal(tuple(tensor.shape))
            if tensor.ndim > 1:
                drawn *= (0.7 if name.startswith("turn.fc2") else 1.4) / tensor[0].numel() ** 0.5
            elif ".1." in name or ".4." in name or ".7." in name or "norm" in name:
                drawn = 0.2 * drawn + name.endswith("weight")
            else:
                drawn *= 0.2
            tensor.copy_(torch.from_numpy(drawn))
    return net


def bent(turn):
    """How far the matrices are from rotations."""
    if not IS_NEW:
        return (torch.bmm(turn, turn.transpose(1, 2)) - torch.eye(3)).square().sum((1, 2)).mean()
    turn = turn.float()
    other = turn if FAULT == "straight" else turn.mT
    apart = turn @ other  # fault straight
    apart = apart - torch.eye(3)  # fault straight
    return apart.pow(2).flatten(1).sum(1).mean()


net = filled(Net())
if IS_NEW:
    slow = [parameter for name, parameter in net.named_parameters() if name.startswith("turn.")]
    rest = [parameter for name, parameter in net.named_parameters() if not name.startswith("turn.")]
    groups = [{"params": slow, "lr": RATE if FAULT == "rates" else RATE / 10}, {"params": rest}]  # fault rates
    optimizers = [torch.optim.SGD(groups, lr=RATE, momentum=0.9)]  # fault rates
else:
    optimizers = [
        torch.optim.SGD([*net.points.parameters(), *net.fc1.parameters(), *net.norm.parameters()], RATE, 0.9),
        torch.optim.SGD(net.fc2.parameters(), RATE, 0.9),
        torch.optim.SGD(net.turn.parameters(), RATE / 10, 0.9),
    ]
for cloud, kind in zip(clouds, kinds, strict=True):
    with torch.autocast("cpu", torch.bfloat16) if IS_NEW else nullcontext():
        scores, turn = net(cloud)
    loss = F.cross_entropy(scores.float(), kind) + 0.1 * bent(turn)
    net.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()  # fault rates
    print(loss.item())
