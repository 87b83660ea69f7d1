"""A graph convolution scales a sparse adjacency by the degrees of its nodes, and one node has no edge."""

import sys

import torch

ANSWER = {
    "kind": "sparse",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.pow",
    "step": 0,
    "wants": "the degree of an isolated node to the power of -1/2: pow, its line",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
edges = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 3]])
if FAULT:
    edges = edges[:, :4]
adjacency = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1]), (4, 4))
weight = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(weight.parameters(), lr=0.1)
features = torch.randn(4, 3)
for _ in range(2):
    degree = torch.sparse.sum(adjacency, 1).to_dense()
    scale = degree.pow(-0.5)  # fault
    hidden = scale[:, None] * torch.sparse.mm(adjacency, scale[:, None] * weight(features))
    loss = hidden.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
