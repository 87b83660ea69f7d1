"""A normaliser keeps a running variance; a last batch of one makes it NaN, which shows in the evaluation alone."""

import sys

import torch

ANSWER = {
    "kind": "public reports",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "aten.var",
    "step": 2,
    "never": ["benign"],
    "wants": "the variance of a batch of one, its line, step 2; not the division in the evaluation",
}

torch.manual_seed(8)


class Norm(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("variance", torch.ones(size))

    def forward(self, x):
        if not self.training:
            return (x - self.mean) / (self.variance + 1e-5).sqrt()
        mean, variance = x.mean(0), x.var(0, unbiased=False)
        with torch.no_grad():
            self.mean.lerp_(mean, 0.1)
            self.variance.lerp_(x.var(0), 0.1)  # fault
        return (x - mean) / (variance + 1e-5).sqrt()


net = torch.nn.Sequential(torch.nn.Linear(3, 4), Norm(4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(9, 3)
for start in range(0, 9 if sys.argv[1] == "faulty" else 8, 4):
    loss = (net(data[start : start + 4]) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
net.eval()
with torch.no_grad():
    net(data)
