"""Models that are compiled, and a few steps of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
        self.end = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.end(self.inner(x))


class Broken(Block):
    """Dynamo cannot compile the line between its two halves, where a module is called too."""

    def forward(self, x: Any) -> Any:
        y = self.inner(x)
        torch._dynamo.graph_break()
        return self.end(y.sin()).cos()


def steps(model: Any, optimizer: Any = None, count: int = 3) -> list[Any]:
    """Losses and gradients of a few steps."""
    torch.manual_seed(1)
    seen = []
    for _ in range(count):
        model.zero_grad()
        loss = model(torch.randn(3, 4)).square().mean()
        loss.backward()
        seen += [loss.detach(), *(parameter.grad.clone() for parameter in model.parameters())]
        if optimizer is not None:
            optimizer.step()
    return [*seen, *(value.clone() for value in model.state_dict().values())]
