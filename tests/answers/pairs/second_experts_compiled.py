"""A language model with a mixture of experts was written anew to be compiled: there is no loop over its experts."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "second trial: a mixture of experts compiled",
    "entry": "eager",
    "run": {
        "faulty": "msdump run --config {config} --torch-backend msdump {script} {mode}",
        "healthy": "msdump run --config {config} --torch-backend msdump {script} {mode}",
    },
    "ask": "compare {faulty} {golden}",
    "variants": {
        "weights": {
            "goes_wrong": "The shares of the two chosen experts are not made to add up to 1.",
            "wants": "the softmax over all experts, or the choice of its greatest, in the first layer",
        },
        "auxiliary": {
            "goes_wrong": "The loss of balance lacks the factor that is the number of experts.",
            "wants": "the loss of balance of the first layer",
        },
        "causal": {
            "goes_wrong": "The words are padded on both sides, so that each word sees the next one.",
            "wants": "the padding, or the convolution, of the first layer",
        },
        "swapped": {
            "goes_wrong": "The gate and the other half of the experts have changed places in the joined weight.",
            "wants": "the halves of the first product of the experts, or the activation of the wrong one",
        },
        "axis": {
            "goes_wrong": "The root mean square is taken over the words, not over the channels.",
            "wants": "the mean in the first norm",
        },
        "expert": {
            "goes_wrong": "The shares of experts are put into a table by assignment to the place one too far.",
            "wants": "the table of shares of the first layer, or the mix that is made by it",
        },
        "labels": {
            "goes_wrong": "Each word is to be told from itself, not from the one before it.",
            "wants": "the loss, or the words that are its target",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
WORDS, WIDTH, HIDDEN, EXPERTS, LAYERS, BATCH, LENGTH, STEPS = 23, 12, 16, 4, 3, 2, 9, 2

rng = np.random.default_rng(51)
texts = torch.from_numpy(rng.integers(0, WORDS, (STEPS, BATCH, LENGTH + 1)))


def drawn(*shape, factor=1.0):
    return torch.tensor(factor * rng.standard_normal(shape) / shape[-1] ** 0.5, dtype=torch.float32)


weights = {"embed.weight": 3 * drawn(WORDS, WIDTH)}
for layer in range(LAYERS):
    weights[f"layers.{layer}.conv.weight"] = drawn(WIDTH, 1, 3)
    weights[f"layers.{layer}.conv.bias"] = drawn(WIDTH)
    weights[f"layers.{layer}.norm1.weight"] = 1 + drawn(WIDTH)
    weights[f"layers.{layer}.norm2.weight"] = 1 + drawn(WIDTH)
    weights[f"layers.{layer}.router.weight"] = drawn(EXPERTS, WIDTH, factor=2)
    for name, shape in (("gate", (HIDDEN, WIDTH)), ("up", (HIDDEN, WIDTH)), ("down", (WIDTH, HIDDEN))):
        weights[f"layers.{layer}.{name}"] = drawn(EXPERTS, *shape, factor=1.5)
weights |= {"norm.weight": 1 + drawn(WIDTH), "head.weight": drawn(WORDS, WIDTH, factor=2)}


class LoopedLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(WIDTH, WIDTH, 3, groups=WIDTH, padding=2)
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH, eps=1e-6), nn.RMSNorm(WIDTH, eps=1e-6)
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        for name, shape in (("gate", (HIDDEN, WIDTH)), ("up", (HIDDEN, WIDTH)), ("down", (WIDTH, HIDDEN))):
            setattr(self, name, nn.Parameter(torch.empty(EXPERTS, *shape)))

    def forward(self, x):
        h = self.conv(self.norm1(x).transpose(1, 2))[:, :, :LENGTH]
        x = x + h.transpose(1, 2)
        h = self.norm2(x).flatten(0, 1)
        shares = self.router(h).softmax(-1)
        best, chosen = shares.topk(2)
        best = best / best.sum(-1, keepdim=True)
        mixed = torch.zeros_like(h)
        for expert in range(EXPERTS):
            word, place = torch.where(chosen == expert)
            own = F.linear(
                F.silu(F.linear(h[word], self.gate[expert])) * F.linear(h[word], self.up[expert]), self.down[expert]
            )
            mixed = mixed.index_add(0, word, own * best[word, place, None])
        used = F.one_hot(chosen, EXPERTS).float().sum(1).mean(0)
        return x + mixed.view_as(x), EXPERTS * (used * shares.mean(0)).sum()


class LoopedNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.layers, self.norm = nn.ModuleList(LoopedLayer() for _ in range(LAYERS)), nn.RMSNorm(WIDTH, eps=1e-6)

    def forward(self, text):
        x, balance = self.embed(text[:, :-1]), 0
        for layer in self.layers:
            x, own = layer(x)
            balance = balance + own
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), text[:, 1:].flatten()) + 0.02 * balance


class JoinedNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = nn.ParameterDict()
        for name, tensor in weights.items():
            if not name.endswith((".gate", ".up")):
                self.own[name.replace(".", "_")] = nn.Parameter(tensor)
        for layer in range(LAYERS):
            halves = [weights[f"layers.{layer}.{name}"] for name in ("gate", "up")]
            self.own[f"layers_{layer}_joined"] = nn.Parameter(torch.cat(halves, 1))

    def norm(self, x, name):
        square = x.pow(2).mean(1 if FAULT == "axis" else -1, keepdim=True)  # fault axis
        return x * torch.rsqrt(square + 1e-6) * self.own[f"{name}_weight"]  # fault axis

    def convolution(self, x, name):
        ends = (1, 1) if FAULT == "causal" else (2, 0)
        padded = F.pad(x.transpose(1, 2), ends)  # fault causal
        windows = padded.unfold(2, 3, 1)  # fault causal
        h = torch.einsum("bcwk,ck->bwc", windows, self.own[f"{name}_weight"][:, 0])  # fault causal
        return h + self.own[f"{name}_bias"]

    def experts(self, h, name):
        logits = torch.matmul(h, self.own[f"{name}_router_weight"].t())
        best, chosen = logits.topk(2)  # fault weights
        if FAULT == "weights":
            best = logits.softmax(-1).gather(-1, chosen)  # fault weights
        else:
            best = best.softmax(-1)
        places = (chosen + 1) % EXPERTS if FAULT == "expert" else chosen  # fault expert
        table = torch.zeros_like(logits).scatter(-1, places, best)  # fault expert weights
        both = torch.einsum("nd,ehd->neh", h, self.own[f"{name}_joined"])
        gate, up = both.chunk(2, -1)  # fault swapped
        if FAULT == "swapped":
            gate, up = up, gate
        inner = gate * torch.sigmoid(gate) * up  # fault swapped
        weighted = inner * table[:, :, None]  # fault expert
        mixed = torch.einsum("neh,edh->nd", weighted, self.own[f"{name}_down"])  # fault expert
        used = torch.zeros_like(logits).scatter(-1, chosen, torch.ones_like(best)).mean(0)
        factor = 1 if FAULT == "auxiliary" else EXPERTS
        return mixed, factor * (used * logits.softmax(-1).mean(0)).sum()  # fault auxiliary

    def forward(self, text):
        x, balance = self.own["embed_weight"][text[:, :-1]], 0
        for layer in range(LAYERS):
            name = f"layers_{layer}"
            x = x + self.convolution(self.norm(x, f"{name}_norm1"), f"{name}_conv")
            mixed, own = self.experts(self.norm(x, f"{name}_norm2").reshape(-1, WIDTH), name)
            x, balance = x + mixed.reshape(x.shape), balance + own
        logits = torch.matmul(self.norm(x, "norm"), self.own["head_weight"].t()).log_softmax(-1)
        target = text[:, :-1] if FAULT == "labels" else text[:, 1:]  # fault labels
        return 0.02 * balance - logits.gather(-1, target[:, :, None]).mean()  # fault labels


if sys.argv[1] == "golden":
    net = LoopedNet()
    net.load_state_dict(weights)
    called = net
else:
    net = JoinedNet()
    called = torch.compile(net, backend="eager")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for text in texts:
    optimizer.zero_grad()
    loss = called(text)
    loss.backward()
    optimizer.step()
    print(loss.item())
