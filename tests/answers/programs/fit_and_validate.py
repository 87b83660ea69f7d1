"""A small trainer in the manner of Lightning: the module has training_step and validation_step, and the validation
metric divides by the variance of targets that are all equal."""

import sys

import torch

ANSWER = {
    "kind": "trainer loops",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.div",
    "wants": "the division of the validation metric by a variance of 0, its line",
}

FAULT = sys.argv[1] == "faulty"


class Regression(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x)

    def training_step(self, batch):
        x, y = batch
        return torch.nn.functional.mse_loss(self(x), y)

    def validation_step(self, batch):
        x, y = batch
        left = (y - self(x)).square().sum()
        return 1 - left / (y - y.mean()).square().sum()  # fault

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


class Trainer:
    def __init__(self, epochs):
        self.epochs = epochs

    def fit(self, module, train, val):
        optimizer = module.configure_optimizers()
        for _ in range(self.epochs):
            module.train()
            for batch in train:
                optimizer.zero_grad()
                module.training_step(batch).backward()
                optimizer.step()
            module.eval()
            with torch.no_grad():
                self.scores = [module.validation_step(batch) for batch in val]


torch.manual_seed(0)
data = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(4)]
if FAULT:
    data[3] = (data[3][0], torch.full((8, 1), 2.0))
Trainer(epochs=2).fit(Regression(), data[:2], data[2:])
