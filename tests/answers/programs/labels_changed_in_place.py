"""Prices are put on a logarithmic scale with log_() in each epoch, which changes the data set itself: the third
time it takes logarithms of negative numbers."""

import sys

import torch

ANSWER = {
    "kind": "in-place mistakes",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log_",
    "step": 2,
    "wants": "the labels are overwritten by their logarithm, in step 2 by that of a negative number: log_, its line",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
features, prices = torch.randn(6, 3), torch.rand(6, 1) + 1.5
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    predicted = model(features)
    target = prices.log_() if FAULT else prices.log()  # fault
    loss = torch.nn.functional.mse_loss(predicted, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
