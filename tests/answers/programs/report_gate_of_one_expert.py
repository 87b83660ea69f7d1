"""A mixture of experts takes the softmax over the one logit that it chose, which is 1, and the gate never learns."""

import sys

import torch

ANSWER = {
    "kind": "public reports",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "gate.weight",
    "step": 0,
    "says": ["gradient is 0"],
    "wants": "the parameter gate.weight, whose gradient is 0, and the line of the softmax",
}

torch.manual_seed(7)


class Mixture(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = torch.nn.Linear(5, 4, bias=False)
        self.experts = torch.nn.ModuleList(torch.nn.Linear(5, 1) for _ in range(4))

    def forward(self, x):
        logits = self.gate(x)
        if sys.argv[1] == "faulty":
            top, which = logits.topk(1, -1)
            share = top.softmax(-1)  # fault
        else:
            share, which = logits.softmax(-1).topk(1, -1)
        every = torch.stack([expert(x)[:, 0] for expert in self.experts], 1)
        return (every.gather(1, which) * share).sum(1)


net = Mixture()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(32, 5), torch.randn(32)
for _ in range(4):
    loss = (net(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
