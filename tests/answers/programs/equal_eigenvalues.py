"""A whitening loss goes through the eigenvectors of a covariance, whose gradient divides by the distances of
eigenvalues."""

import sys

import torch

ANSWER = {
    "kind": "gradients",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.",
    "step": 1,
    "wants": "the gradient of eigenvectors divides by the distance 0 of equal eigenvalues: the line of eigh, step 1",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
scale = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
mix = torch.nn.Parameter(torch.eye(3))
optimizer = torch.optim.SGD([scale, mix], lr=1e-3)
for step in range(2):
    if FAULT and step == 1:
        with torch.no_grad():
            scale.copy_(torch.tensor([2.0, 2.0, 3.0]))
            mix.copy_(torch.eye(3))
    covariance = mix @ torch.diag(scale) @ mix.T
    values, vectors = torch.linalg.eigh(covariance)  # fault
    loss = (vectors * torch.tensor([0.2, 0.5, 0.3])).sum() + values.square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
