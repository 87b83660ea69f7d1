"""The training of a GAN was moved to new releases of its libraries, in which defaults are others."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "second trial: a GAN upgraded",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "corners": {
            "goes_wrong": "Pictures are made larger with the corners not aligned, which is the new default.",
            "wants": "the first resizing of the generator, with its align_corners",
        },
        "slope": {
            "goes_wrong": "The leaky ReLU of the generator has the default slope 0.01, not 0.2.",
            "wants": "the first leaky ReLU of the generator, with its slope",
        },
        "norm": {
            "goes_wrong": "The second argument of the norm, an epsilon of 0.8, was taken for a momentum.",
            "wants": "the first norm of the generator, with its epsilon",
        },
        "decoupled": {
            "goes_wrong": "The weight decay of the discriminator is taken off the weights, not added to the gradients.",
            "wants": "the first step of the optimizer of the discriminator",
        },
        "detached": {
            "goes_wrong": "The made pictures are not detached, and the generator gets gradients of the discriminator.",
            "wants": "the loss of the discriminator on made pictures, its backward pass, or the step of the generator",
        },
        "reduction": {
            "goes_wrong": "The loss of the generator is a sum over the batch, not a mean.",
            "wants": "the loss of the generator, with its reduction",
        },
        "betas": {
            "goes_wrong": "The optimizer of the generator has the default betas, 0.9 in place of 0.5.",
            "wants": "the first step of the optimizer of the generator, with its beta",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
IS_NEW = sys.argv[1] != "golden"
CODE, CHANNELS, BATCH, STEPS = 10, 12, 6, 3

rng = np.random.default_rng(41)
faces = torch.from_numpy(rng.standard_normal((STEPS, BATCH, 1, 12, 12), dtype=np.float32)).tanh()
codes = torch.from_numpy(rng.standard_normal((STEPS, BATCH, CODE), dtype=np.float32))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(CODE, CHANNELS * 9, bias=False)
        self.conv1 = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False)
        self.conv3 = nn.Conv2d(CHANNELS, 1, 3, padding=1)
        self.norms = nn.ModuleList()
        for _ in range(3):
            norm = nn.BatchNorm2d(CHANNELS, momentum=0.8) if FAULT == "norm" else nn.BatchNorm2d(CHANNELS, 0.8)
            self.norms.append(norm)
        self.act = nn.LeakyReLU() if FAULT == "slope" else nn.LeakyReLU(0.2)

    def larger(self, x):
        if IS_NEW:
            size = [2 * length for length in x.shape[2:]]
            return F.interpolate(x, size, mode="bilinear", align_corners=FAULT != "corners")  # fault corners
        return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)

    def forward(self, code):
        x = self.fc(code).view(-1, CHANNELS, 3, 3)
        x = self.norms[0](x)  # fault norm
        x = self.norms[1](self.conv1(self.larger(x)))
        x = self.act(x)  # fault slope
        x = self.act(self.norms[2](self.conv2(self.larger(x))))
        return torch.tanh(self.conv3(x))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, CHANNELS, 3, 2, 1), nn.Conv2d(CHANNELS, CHANNELS, 3, 2, 1)
        self.fc = nn.Linear(CHANNELS * 9, 1)

    def forward(self, x):
        x = F.leaky_relu(self.conv1(x), 0.2)
        x = F.leaky_relu(self.conv2(x), 0.2)
        return self.fc(x.flatten(1))


def filled(net):
    """The net with weights that depend on no release."""
    with torch.no_grad():
        for tensor in net.parameters():
            wide = rng.standard_normal(tuple(tensor.shape)) * (1.5 / max(1, tensor[0].numel())) ** 0.5
            tensor.copy_(torch.from_numpy(wide) if tensor.ndim > 1 else torch.from_numpy(1 + 0.1 * wide))
    return net


def adam(net, is_new_default=False, decay=0.0):
    betas = (0.9, 0.999) if is_new_default else (0.5, 0.999)
    if decay and FAULT == "decoupled":
        return torch.optim.AdamW(net.parameters(), lr=2e-3, betas=betas, weight_decay=decay)
    return torch.optim.Adam(net.parameters(), lr=2e-3, betas=betas, weight_decay=decay, foreach=IS_NEW)


def objective(logits, is_real, reduction="mean"):
    target = torch.full_like(logits, 0.9 if is_real else 0.0)
    if IS_NEW:
        return F.binary_cross_entropy_with_logits(logits, target, reduction=reduction)  # fault reduction
    return nn.BCELoss()(torch.sigmoid(logits), target)


generator, discriminator = filled(Generator()), filled(Discriminator())
makes = adam(generator, is_new_default=FAULT == "betas")  # fault betas
judges = adam(discriminator, decay=0.05)  # fault decoupled
for face, code in zip(faces, codes, strict=True):
    makes.zero_grad()
    judges.zero_grad()
    made = generator(code)
    shown = made if FAULT == "detached" else made.detach()
    judged = discriminator(shown)  # fault detached
    loss = objective(discriminator(face), True) + objective(judged, False)  # fault detached
    loss.backward(retain_graph=FAULT == "detached")  # fault detached
    judges.step()  # fault decoupled
    judges.zero_grad()
    fooled = objective(discriminator(made), True, "sum" if FAULT == "reduction" else "mean")  # fault reduction
    fooled.backward()  # fault detached
    makes.step()  # fault betas detached
    print(loss.item(), fooled.item(), sep="\n")
for tensor in (*generator.parameters(), *discriminator.parameters()):
    print(*tensor.flatten()[:3].tolist(), sep="\n")
