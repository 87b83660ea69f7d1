"""The training of a pupil by a teacher, in small batches that are added up, moved to a newer library."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "third trial: a pupil and its teacher upgraded",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "squared": {
            "goes_wrong": "The divergence from the teacher is not multiplied by the square of the temperature.",
            "wants": "the divergence, or the sum that makes the loss",
        },
        "elements": {
            "goes_wrong": "The divergence is a mean over all numbers, not a sum of each row.",
            "wants": "the divergence, or its reduction",
        },
        "teaching": {
            "goes_wrong": "The teacher was left in training: its norms take the statistics of the batch.",
            "wants": "the first norm of the teacher",
        },
        "turns": {
            "goes_wrong": "The optimizer steps behind small batches 0 and 2, not behind 1 and 3.",
            "wants": "the update that comes one batch too early, or the condition before it",
        },
        "running": {
            "goes_wrong": "The averaged pupil has averaged weights, but the running statistics it began with.",
            "wants": "the copy of the running statistics, or the first norm of the averaged pupil that reads them",
        },
        "detached": {
            "goes_wrong": "The size that the hint is divided by is not detached: the gradient goes through it, too.",
            "wants": "the size, the division by it, or the backward pass behind it",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
IS_NEW = sys.argv[1] != "golden"
CHANNELS, SIZE, BATCH, CLASSES, SMALL, HEAT = 8, 8, 6, 5, 4, 3.0

rng = np.random.default_rng(171)
pictures = torch.from_numpy(rng.standard_normal((SMALL + 1, BATCH, 3, SIZE, SIZE), dtype=np.float32) + 0.3)
labels = torch.from_numpy(rng.integers(0, CLASSES, (SMALL, BATCH)))


class Net(nn.Module):
    def __init__(self, channels, depth):
        super().__init__()
        self.enter = nn.Conv2d(3, channels, 3, padding=1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(depth))
        self.convs = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(depth - 1))
        self.head = nn.Linear(channels, CLASSES)

    def forward(self, x):
        x = torch.relu(self.norms[0](self.enter(x)))  # fault teaching running
        for conv, norm in zip(self.convs, self.norms[1:], strict=True):
            x = x + torch.relu(norm(conv(x)))
        pooled = x.mean((2, 3))
        return self.head(pooled), pooled


def filled(net):
    """With weights, and statistics, that depend on no release."""
    with torch.no_grad():
        for name, tensor in (*net.named_parameters(), *net.named_buffers()):
            drawn = rng.standard_normal(tuple(tensor.shape))
            if name.endswith("running_var"):
                tensor.copy_(torch.from_numpy(0.5 + drawn**2))
            elif tensor.ndim > 1:
                tensor.copy_(torch.from_numpy(drawn * (2 / tensor[0].numel()) ** 0.5))
            elif tensor.is_floating_point():
                tensor.copy_(torch.from_numpy(0.2 * drawn + name.endswith("weight")))
    return net


pupil, teacher = filled(Net(CHANNELS, 3)), filled(Net(2 * CHANNELS, 5))
bridge = nn.Linear(CHANNELS, 2 * CHANNELS)
with torch.no_grad():
    bridge.weight.copy_(torch.from_numpy(rng.standard_normal((2 * CHANNELS, CHANNELS)) / CHANNELS**0.5))
    bridge.bias.zero_()
average = Net(CHANNELS, 3)
average.load_state_dict(pupil.state_dict())
average.eval()
teacher.train(FAULT == "teaching")  # fault teaching
parameters = [*pupil.parameters(), *bridge.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-2, weight_decay=0.05, foreach=IS_NEW)


def divergence(logits, taught):
    """Of the pupil from its teacher."""
    if not IS_NEW:
        shares = (taught / HEAT).softmax(-1)
        apart = shares * (shares.log() - (logits / HEAT).log_softmax(-1))
        return HEAT**2 * apart.sum(-1).mean()
    own, other = (logits / HEAT).log_softmax(-1), (taught / HEAT).log_softmax(-1)
    reduction = "mean" if FAULT == "elements" else "batchmean"
    apart = F.kl_div(own, other, reduction=reduction, log_target=True)  # fault elements squared
    return apart if FAULT == "squared" else HEAT**2 * apart  # fault elements squared


def hint(pooled, deep):
    """The distance of what the pupil makes from what its teacher makes, as large as that distance now is."""
    made = bridge(pooled)  # fault detached
    distance = F.mse_loss(made, deep)
    size = distance if FAULT == "detached" else distance.detach()  # fault detached
    return distance / (size + 1)  # fault detached


@torch.no_grad()
def update_average():
    for own, tensor in zip(average.parameters(), pupil.parameters(), strict=True):
        own.lerp_(tensor, 0.2)
    for own, tensor in zip(average.buffers(), pupil.buffers(), strict=True):
        if FAULT != "running":  # fault running
            own.copy_(tensor)  # fault running


for number, (picture, label) in enumerate(zip(pictures[:-1], labels, strict=True)):
    with torch.no_grad():
        taught, deep = teacher(picture)
    logits, pooled = pupil(picture)
    apart = divergence(logits, taught)
    loss = 0.5 * F.cross_entropy(logits, label) + 0.5 * apart + hint(pooled, deep)  # fault squared elements detached
    (loss / 2).backward()  # fault detached
    if (number + (FAULT != "turns")) % 2 == 0:  # fault turns
        optimizer.step()  # fault turns
        optimizer.zero_grad()  # fault turns
        update_average()  # fault running
    print(loss.item())
with torch.no_grad():
    print(*average(pictures[-1])[0].flatten().tolist(), sep="\n")  # fault running
