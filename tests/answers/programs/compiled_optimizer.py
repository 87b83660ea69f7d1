"""The step of the optimizer is compiled as a function of its own; the model divides by a deviation of 0."""

import sys

import torch

ANSWER = {
    "kind": "torch.compile beside eager code",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.rsqrt",
    "step": 1,
    "wants": "rsqrt of the model's variance of 0, its line, step 1, although the optimizer runs compiled",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(1e-3))


@torch.compile(fullgraph=False, backend="aot_eager")
def update():
    optimizer.step()


for step in range(3):
    x = torch.randn(3, 4)
    if FAULT and step == 1:
        x[:] = x[0]
    out = model(x)
    scaled = (out - out.mean(0)) * torch.rsqrt(out.var(0))  # fault
    loss = (scaled[0] - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    update()
