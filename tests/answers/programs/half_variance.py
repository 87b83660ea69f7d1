"""A normalisation written by hand squares float16 activations; in the third step they are too large for that."""

import sys

import torch

ANSWER = {
    "kind": "mixed precision",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.pow",
    "step": 2,
    "wants": "the square overflows in float16 in step 2: pow, its line",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)


class Norm(torch.nn.Module):
    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)  # fault
        return x * torch.rsqrt(variance + 1e-5)


model = torch.nn.Sequential(torch.nn.Linear(16, 16), Norm(), torch.nn.Linear(16, 4)).half()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(8, 16).half()
    if FAULT and step == 2:
        x = x * 2000
    loss = model(x).float().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
