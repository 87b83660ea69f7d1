"""A hand-written optimizer divides norms: 0 / 0 for a matrix whose gradient is 0, as the layer after it starts at 0."""

import sys

import torch

ANSWER = {
    "kind": "public reports",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "aten.div",
    "step": 0,
    "wants": "the division in the optimizer, its line, step 0; not the forward pass of step 1",
}

torch.manual_seed(6)


class NormalisedMuon(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for param in group["params"]:
                x = param.grad / (param.grad.norm() + 1e-7)
                for _ in range(3):
                    x = 1.5 * x - 0.5 * x @ x.t() @ x
                y = x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-8)
                size = y.norm() if sys.argv[1] == "faulty" else y.norm().clamp(min=1e-8)
                ratio = x.norm() / size  # fault
                param.add_(y * ratio, alpha=-group["lr"])


net = torch.nn.Sequential(torch.nn.Linear(5, 6, bias=False), torch.nn.Tanh(), torch.nn.Linear(6, 4, bias=False))
torch.nn.init.zeros_(net[2].weight)
optimizer = NormalisedMuon(net.parameters(), 0.02)
for _ in range(3):
    loss = (net(torch.randn(7, 5)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
