"""Training steps of five kinds of nets were rewritten: of a GAN, of diffusion, of pairs, of experts and of a code."""

import sys
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trial: rewritten objectives",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "never": ["different weights or data"],
    "variants": {
        "gan_target": {
            "goes_wrong": "The generator makes the critic's error large in place of another target's small.",
            "never": [],
            "wants": "the line of the generator's loss",
        },
        "gan_leak": {
            "goes_wrong": "What the generator made is not detached for the critic: its gradients reach the generator.",
            "wants": "the critic's pass over what was generated, its backward pass, or the generator's gradients",
        },
        "gan_rate": {
            "goes_wrong": "The critic's optimizer has the first beta 0.9 in place of 0.5.",
            "wants": "the critic's update, the line of its optimizer",
        },
        "diffusion_form": {
            "goes_wrong": "Nothing: the share of the signal is the exponential of a sum of logarithms, not a product.",
            "line": False,
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, in two forms",
        },
        "diffusion_table": {
            "goes_wrong": "The share of the signal is that of the step after.",
            "wants": "the line that looks the share up",
        },
        "diffusion_root": {
            "goes_wrong": "Noise is scaled by its share, not by the root of it.",
            "wants": "the line that adds the noise",
        },
        "pairs_form": {
            "goes_wrong": "Nothing: similarities and their loss are written out.",
            "line": False,
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, in two forms",
        },
        "pairs_axis": {
            "goes_wrong": "Codes are normalised over the batch, not over their own numbers.",
            "wants": "the line that normalises",
        },
        "pairs_temperature": {
            "goes_wrong": "Similarities are multiplied by the temperature, not divided.",
            "wants": "the line that scales similarities",
        },
        "experts_form": {
            "goes_wrong": "Nothing: each expert is given its own rows only, in place of all rows and a weight of 0.",
            "line": False,
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, in two forms",
        },
        "experts_gate": {
            "goes_wrong": "The shares of the two chosen experts do not add up to 1.",
            "wants": "the line of the shares, which are not divided by their sum, or that uses them",
        },
        "experts_one": {
            "goes_wrong": "The rows of expert 2 take the share of their other expert.",
            "wants": "the line that weighs what the expert makes, or looks up the share",
        },
        "code_mean": {
            "goes_wrong": "The divergence of the code has its mean taken over all numbers, not the sum of each row.",
            "wants": "the line of the divergence",
        },
    },
}

VARIANT = sys.argv[2]
KIND, _, REST = VARIANT.partition("_")
IS_NEW = sys.argv[1] == "faulty" or (sys.argv[1] == "healthy" and REST != "form")
FAULT = REST if sys.argv[1] == "faulty" else ""
SIZE = 32


def perceptron(*sizes):
    layers = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.LayerNorm(after), nn.SiLU()]
    return nn.Sequential(*layers[:-2])


def gan():
    maker, critic = perceptron(8, SIZE, SIZE, 16), perceptron(16, SIZE, SIZE, 1)
    first = 0.9 if FAULT == "rate" else 0.5
    for_maker = torch.optim.Adam(maker.parameters(), 1e-3, betas=(0.5, 0.99))
    for_critic = torch.optim.Adam(critic.parameters(), 1e-3, betas=(first, 0.99))  # fault gan_rate
    binary, ones, zeros = functional.binary_cross_entropy_with_logits, torch.ones(12, 1), torch.zeros(12, 1)
    for _ in range(2):
        for_maker.zero_grad()
        for_critic.zero_grad()
        made = maker(torch.randn(12, 8))
        shown = made if FAULT == "leak" else made.detach()
        judged = critic(shown)  # fault gan_leak
        loss = binary(critic(torch.randn(12, 16)), ones) + binary(judged, zeros)
        loss.backward(retain_graph=True)  # fault gan_leak
        for_critic.step()  # fault gan_rate
        judged = critic(made)
        loss = -binary(judged, zeros) if FAULT == "target" else binary(judged, ones)  # fault gan_target
        loss.backward()  # fault gan_leak
        for_maker.step()  # fault gan_leak
    return loss


def diffusion():
    net = perceptron(17, 64, 64, 16)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    kept = 1 - torch.linspace(1e-4, 0.02, 101)
    shares = kept.log().cumsum(0).exp() if IS_NEW else kept.cumprod(0)
    for _ in range(3):
        x, noise, times = torch.randn(12, 16), torch.randn(12, 16), torch.randint(20, 100, (12,))
        share = shares[times + 1 if FAULT == "table" else times][:, None]  # fault diffusion_table
        spread = 1 - share if FAULT == "root" else (1 - share).sqrt()  # fault diffusion_root
        noised = share.sqrt() * x + spread * noise  # fault diffusion_root
        loss = functional.mse_loss(net(torch.cat([noised, times[:, None] / 100], 1)), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss


def pairs():
    net = perceptron(20, SIZE, SIZE, 16)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, 0.9)
    for _ in range(3):
        x = torch.randn(10, 20)
        left, right = net(x + 0.1 * torch.randn(10, 20)), net(x + 0.1 * torch.randn(10, 20))
        if IS_NEW:
            axis = 0 if FAULT == "axis" else 1
            left = left / left.square().sum(axis, keepdim=True).sqrt()  # fault pairs_axis
            right = right / right.square().sum(axis, keepdim=True).sqrt()  # fault pairs_axis
            alike = torch.einsum("id,jd->ij", left, right)
            alike = alike * 0.2 if FAULT == "temperature" else alike / 0.2  # fault pairs_temperature
            loss = (alike.logsumexp(1) - alike.diagonal()).mean()
        else:
            left, right = functional.normalize(left), functional.normalize(right)
            loss = functional.cross_entropy(left @ right.T / 0.2, torch.arange(10))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.gate = nn.LayerNorm(SIZE), nn.Linear(SIZE, 4, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(SIZE, 48), nn.SiLU(), nn.Linear(48, SIZE)) for _ in range(4)
        )

    def forward(self, x):
        y = self.norm(x)
        shares, chosen = self.gate(y).softmax(-1).topk(2, -1)  # fault experts_gate
        if FAULT != "gate":
            shares = shares / shares.sum(-1, keepdim=True)  # fault experts_gate
        if not IS_NEW:
            table = torch.zeros(len(x), 4).scatter(1, chosen, shares)
            return x + sum(table[:, number, None] * expert(y) for number, expert in enumerate(self.experts))
        total = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, places = torch.where(chosen == number)
            if FAULT == "one" and number == 2:
                places = 1 - places  # fault experts_one
            made = expert(y[rows]) * shares[rows, places, None]  # fault experts_gate experts_one
            total = total.index_add(0, rows, made)
        return x + total


def experts():
    net = nn.Sequential(nn.Linear(12, SIZE), Experts(), Experts(), nn.Linear(SIZE, 5))
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    for _ in range(2):
        loss = functional.cross_entropy(net(torch.randn(24, 12)), torch.randint(0, 5, (24,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss


def code():
    reader, writer = perceptron(24, SIZE, 16), perceptron(8, SIZE, 24)
    optimizer = torch.optim.Adam([*reader.parameters(), *writer.parameters()], 1e-3)
    for _ in range(3):
        x = torch.randn(10, 24)
        mean, log = reader(x).chunk(2, -1)
        made = writer(mean + (log / 2).exp() * torch.randn(10, 8))
        apart = 1 + log - mean.square() - log.exp()
        apart = apart.mean() if FAULT == "mean" else apart.sum(1).mean()  # fault code_mean
        loss = functional.mse_loss(made, x) - apart / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss


torch.manual_seed(0)
print(float({"gan": gan, "diffusion": diffusion, "pairs": pairs, "experts": experts, "code": code}[KIND]()))
