"""The optimizer is made before the head is replaced for fine-tuning, and steps what the model no longer has."""

import sys

import torch

ANSWER = {
    "kind": "public reports",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "head.",
    "step": 0,
    "says": ["no optimizer", "2 tensors"],
    "wants": "head.weight and head.bias, which have gradients and no optimizer, and two others that are stepped",
}

torch.manual_seed(22)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Linear(4, 6).requires_grad_(False), torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


net = Net()
early = torch.optim.AdamW(net.head.parameters(), lr=0.05)
net.head = torch.nn.Linear(6, 2)
optimizer = early if sys.argv[1] == "faulty" else torch.optim.AdamW(net.head.parameters(), lr=0.05)
x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
for _ in range(4):
    loss = torch.nn.functional.cross_entropy(net(x), y)
    net.zero_grad()
    loss.backward()
    optimizer.step()  # fault
