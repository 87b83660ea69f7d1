"""A dataset divides each row by its deviation, in two workers; row 10 is constant, and NaN comes with batch 5."""

import sys

import torch
from torch.utils.data import DataLoader, Dataset

ANSWER = {
    "kind": "lines",
    "entry": "eager",
    "ask": "nan {faulty}",
    "step": 5,
    "says": ["data"],
    "never": ["aten.set_", "queues.py"],
    "wants": "came in with the data of iteration 5, at the line of the loop",
}
FAULT = sys.argv[1] == "faulty"


class Rows(Dataset):
    def __init__(self):
        self.rows = torch.rand(16, 4, generator=torch.Generator().manual_seed(0))
        if FAULT:
            self.rows[10] = 0.5

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return (row - row.mean()) / row.std()


if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in DataLoader(Rows(), batch_size=2, num_workers=2):  # fault
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
