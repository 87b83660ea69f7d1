"""The script takes next(iter(loader)) in each step, of a loader in order: it is the first batch each time.

People report that the training loss falls to almost 0 while the validation loss grows from the beginning on.
"""

import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "wants": "that the batch is the same in each iteration, the line that takes it or that gives it to the model",
}

torch.manual_seed(19)
net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 8, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(128, 3),
)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)


def images(count):
    labels = torch.randint(0, 3, (count,))
    x = torch.randn(count, 1, 8, 8)
    for label in range(3):
        x[labels == label, :, 2 * label : 2 * label + 3] += 0.5
    return x, labels


loader = DataLoader(TensorDataset(*images(600)), batch_size=16)
held_x, held_y = images(128)
stream = iter(loader)
for step in range(36):
    x, y = next(iter(loader)) if sys.argv[1] == "faulty" else next(stream)  # fault
    loss = functional.cross_entropy(net(x), y)  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 6 == 5:
        with torch.no_grad():
            print(step, loss.item(), functional.cross_entropy(net(held_x), held_y).item())
