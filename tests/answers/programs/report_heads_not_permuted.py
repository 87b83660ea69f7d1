"""An attention merges its heads by a reshape alone; the other implementation permutes them first."""

import sys

import torch

ANSWER = {
    "kind": "public reports",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} --tensors 0-1 {script} {mode}",
    "ask": "compare {faulty} {golden}",
    "operator": "",
    "never": ["different weights or data"],
    "wants": "the line that merges the heads, where the other run has a permute",
}

torch.manual_seed(0)


class Attention(torch.nn.Module):
    def __init__(self, size=8, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = torch.nn.Linear(size, 3 * size), torch.nn.Linear(size, size)

    def forward(self, x):
        batch, length, size = x.shape
        query, key, value = self.qkv(x).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        values = torch.softmax(query @ key.mT / (size // self.heads) ** 0.5, -1) @ value
        values = (values if sys.argv[1] == "faulty" else values.permute(0, 2, 1, 3)).reshape(x.shape)  # fault
        return self.out(values)


net, head = Attention(), torch.nn.Linear(8, 3)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for _ in range(2):
    loss = head(net(torch.randn(2, 5, 8))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
