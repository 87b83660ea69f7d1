"""A graph network that tells a number of molecules was written anew: sums over sorted edges in place of matrices."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "third trial: a graph network written anew",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "step": 0,
    "variants": {
        "degrees": {
            "goes_wrong": "The degrees are counted before each atom has an edge to itself.",
            "wants": "the degrees, or their roots, of the first layer",
        },
        "direction": {
            "goes_wrong": "The shares of the attention add up to 1 over edges that leave an atom, not that reach it.",
            "wants": "the sum, or the maximum, of the scores of an atom, or the share made with it",
        },
        "bonds": {
            "goes_wrong": "The kinds of bonds are not reordered with the edges, which are sorted by their ends.",
            "wants": "the vectors of the bonds, or the messages that they are added to",
        },
        "atoms": {
            "goes_wrong": "The mean of a molecule is divided by the atoms of the largest one.",
            "wants": "the mean of a molecule, or the number it is divided by",
        },
        "damped": {
            "goes_wrong": "The own number of an atom is multiplied by epsilon, not by one more than epsilon.",
            "wants": "the sum of an atom and its messages, in the third layer",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
ATOMS, WIDTH, HEADS, KINDS, BONDS, MOLECULES, STEPS = 17, 12, 2, 6, 3, 4, 3

rng = np.random.default_rng(181)
SIZES = [[5, 3, 6, 3], [4, 4, 2, 7], [3, 6, 5, 3]]


def molecules(sizes):
    """Kinds of atoms, their molecules, edges (from, to) and kinds of bonds."""
    owners, edges, first = [], [], 0
    for number, size in enumerate(sizes):
        owners += [number] * size
        for atom in range(1, size):
            for other in {int(rng.integers(0, atom)), atom - 1}:
                edges += [(first + other, first + atom)] + [(first + atom, first + other)] * (rng.random() < 0.7)
        first += size
    edges = np.array(edges)[rng.permutation(len(edges))].T
    found = rng.integers(0, KINDS, ATOMS), np.array(owners), edges, rng.integers(0, BONDS, edges.shape[1])
    return [torch.from_numpy(np.ascontiguousarray(each)) for each in found]


def drawn(*shape, factor=1.0):
    return torch.tensor(factor * rng.standard_normal(shape) / shape[-1] ** 0.5, dtype=torch.float32)


weights = {"atoms": drawn(KINDS, WIDTH, factor=2.5), "bonds": drawn(BONDS, WIDTH, factor=2)}
weights |= {"mixed": drawn(WIDTH, WIDTH, factor=1.5), "mixed_bias": drawn(WIDTH)}
weights |= {"value": drawn(WIDTH, WIDTH, factor=1.5), "sent": drawn(HEADS, WIDTH // HEADS, factor=1.5)}
weights |= {"received": drawn(HEADS, WIDTH // HEADS, factor=1.5), "epsilon": torch.tensor(0.3)}
weights |= {"inner": drawn(2 * WIDTH, WIDTH, factor=1.5), "inner_bias": drawn(2 * WIDTH)}
weights |= {"outer": drawn(WIDTH, 2 * WIDTH, factor=1.5), "outer_bias": drawn(WIDTH)}
weights |= {"gain": 1 + drawn(WIDTH), "shift": drawn(WIDTH), "head": drawn(1, WIDTH), "head_bias": drawn(1)}
data = [molecules(sizes) for sizes in SIZES]
targets = torch.from_numpy(rng.standard_normal((STEPS, MOLECULES), dtype=np.float32))


class Matrices(nn.Module):
    """Rows are the atoms that are reached."""

    def __init__(self):
        super().__init__()
        self.p = nn.ParameterDict({name: tensor.clone() for name, tensor in weights.items()})
        self.norm = nn.LayerNorm(WIDTH)
        self.norm.weight, self.norm.bias = self.p["gain"], self.p["shift"]

    def forward(self, kinds, owners, edges, bonds):
        p, (begin, end) = self.p, edges
        near = torch.zeros(ATOMS, ATOMS)
        near[end, begin] = 1
        x = F.embedding(kinds, p["atoms"])
        loops = near + torch.eye(ATOMS)
        root = loops.sum(1).rsqrt()
        x = torch.relu((root[:, None] * loops * root) @ F.linear(x, p["mixed"]) + p["mixed_bias"])
        values = F.linear(x, p["value"]).unflatten(-1, (HEADS, -1))
        scores = (values * p["received"]).sum(-1)[:, None] + (values * p["sent"]).sum(-1)[None]
        scores = F.leaky_relu(scores, 0.2).masked_fill(loops[..., None] == 0, -1e9).softmax(1)
        x = x + F.elu(torch.einsum("ijh,jhc->ihc", scores, values).flatten(1))
        made = torch.zeros(ATOMS, ATOMS, WIDTH)
        made[end, begin] = torch.relu(x[begin] + F.embedding(bonds, p["bonds"]))
        x = (1 + p["epsilon"]) * x + made.sum(1)
        x = self.norm(F.linear(torch.relu(F.linear(x, p["inner"], p["inner_bias"])), p["outer"], p["outer_bias"]))
        belongs = F.one_hot(owners, MOLECULES).float()
        x = belongs.T @ x / belongs.sum(0)[:, None]
        return F.linear(x, p["head"], p["head_bias"])[:, 0]


class Edges(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.ParameterDict({name: tensor.clone() for name, tensor in weights.items()})

    def convolution(self, x, begin, end):
        p, own = self.p, torch.arange(ATOMS)
        first, last = torch.cat([begin, own]), torch.cat([end, own])
        counted = end if FAULT == "degrees" else last  # fault degrees
        degrees = torch.zeros(ATOMS).index_add(0, counted, torch.ones(len(counted)))  # fault degrees
        root = degrees.clamp(min=1).pow(-0.5)  # fault degrees
        x = x @ p["mixed"].T
        sent = x[first] * (root[first] * root[last])[:, None]  # fault degrees
        return torch.zeros_like(x).index_add(0, last, sent) + p["mixed_bias"]

    def attention(self, x, begin, end):
        p, own = self.p, torch.arange(ATOMS)
        first, last = torch.cat([begin, own]), torch.cat([end, own])
        values = (x @ p["value"].T).view(ATOMS, HEADS, -1)
        received, sent = (values * p["received"]).sum(-1), (values * p["sent"]).sum(-1)
        scores = F.leaky_relu(received[last] + sent[first], 0.2)
        whose = first if FAULT == "direction" else last  # fault direction
        rows = whose[:, None].expand(-1, HEADS)  # fault direction
        top = torch.zeros(ATOMS, HEADS)
        top = top.scatter_reduce(0, rows, scores.detach(), "amax", include_self=False)  # fault direction
        scores = (scores - top[whose]).exp()  # fault direction
        total = torch.zeros(ATOMS, HEADS).scatter_add(0, rows, scores)  # fault direction
        shares = scores / total[whose]  # fault direction
        mixed = torch.zeros_like(values).index_add(0, last, shares[..., None] * values[first])
        return F.elu(mixed.reshape(ATOMS, WIDTH))

    def messages(self, x, begin, end, bonds):
        p = self.p
        near = p["bonds"][bonds]  # fault bonds
        sent = F.relu(x.index_select(0, begin) + near)  # fault bonds
        made = torch.zeros_like(x).index_add(0, end, sent)
        factor = p["epsilon"] if FAULT == "damped" else 1 + p["epsilon"]  # fault damped
        x = factor * x + made  # fault damped
        x = F.relu(torch.addmm(p["inner_bias"], x, p["inner"].T))
        x = torch.addmm(p["outer_bias"], x, p["outer"].T)
        variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
        return (x - mean) * (variance + 1e-5).rsqrt() * p["gain"] + p["shift"]

    def forward(self, kinds, owners, edges, bonds):
        order = edges[1].argsort(stable=True)
        begin, end = edges[:, order]
        if FAULT != "bonds":
            bonds = bonds[order]
        x = self.p["atoms"][kinds]
        x = F.relu(self.convolution(x, begin, end))
        x = x + self.attention(x, begin, end)
        x = self.messages(x, begin, end, bonds)
        counts = torch.bincount(owners, minlength=MOLECULES)
        if FAULT == "atoms":
            counts = counts.max().expand(MOLECULES)  # fault atoms
        total = torch.zeros(MOLECULES, WIDTH).index_add(0, owners, x)
        x = total / counts[:, None]  # fault atoms
        return (x @ self.p["head"].T + self.p["head_bias"]).squeeze(1)


net = Matrices() if sys.argv[1] == "golden" else Edges()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for batch, target in zip(data, targets, strict=True):
    loss = F.smooth_l1_loss(net(*batch), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
