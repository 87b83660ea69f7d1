"""A second `zero_grad` stands between the two backward passes and takes away the gradient of the first task.

People report a net with two heads of which only one learns, though both losses are passed backward.
"""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "says": ["price"],
    "wants": "the head `price`, whose gradient is cleared before the step, so that it never changes",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(62)


class Houses(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 32), nn.Tanh())
        self.price = nn.Linear(32, 1)
        self.age = nn.Linear(32, 1)

    def forward(self, x):
        hidden = self.body(x)
        return self.price(hidden), self.age(hidden)  # fault


net = Houses()
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
x = torch.randn(128, 10)
prices = x[:, :3].sum(1, keepdim=True) + 2
ages = x[:, 4:6].sum(1, keepdim=True) - 1
for step in range(40):
    price, age = net(x)
    loss_of_price = functional.mse_loss(price, prices)
    loss_of_age = functional.mse_loss(age, ages)
    optimizer.zero_grad()
    loss_of_price.backward(retain_graph=True)  # fault
    if FAULT:
        optimizer.zero_grad()  # fault
    loss_of_age.backward()
    optimizer.step()  # fault
    print(step, loss_of_price.item(), loss_of_age.item())
