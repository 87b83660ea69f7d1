"""A sparse matrix has an edge twice, and its values are squared before they are added up; the good run coalesces."""

import sys

import torch

ANSWER = {
    "kind": "public reports",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} --tensors 0-1 {script} {mode}",
    "ask": "compare {faulty} {golden}",
    "operator": "",
    "never": ["different weights or data"],
    "wants": "that only the good run coalesces, or the square that reads other values, its line; not the product",
}

torch.manual_seed(10)
layer = torch.nn.Linear(3, 4)


def propagated(edges, x):
    if sys.argv[1] != "faulty":
        edges = edges.coalesce()  # fault
    values = edges._values().square()  # fault
    squared = torch.sparse_coo_tensor(edges._indices(), values, edges.shape, check_invariants=False)
    return torch.sparse.mm(squared, layer(x))


ends = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 1]])
edges = torch.sparse_coo_tensor(ends, torch.tensor([1.0, 2.0, 0.5, 1.5, 3.0]), (4, 4))
optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
for _ in range(2):
    loss = propagated(edges, torch.randn(4, 3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
