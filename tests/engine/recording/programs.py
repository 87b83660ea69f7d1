"""Programs of the front ends whose steps a recorder keeps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import msdump

Step = Callable[[float], float]
FRONT_ENDS = ("graph", "pynative", "eager", "compiled")


def program(name: str, stack: ExitStack) -> Step:
    """A step of a program: log(x) + exp(x) of a tensor full of one number, whose first element is its result."""
    if name in ("eager", "compiled"):
        return _torch(name, stack)
    ms = pytest.importorskip("msdump.mindspore")
    from msdump.mindspore import Tensor, nn, ops

    class Net(nn.Cell):
        def construct(self, x: Any) -> Any:
            return ops.log(x) + ops.exp(x)

    ms.set_context(mode=ms.GRAPH_MODE if name == "graph" else ms.PYNATIVE_MODE)
    net = Net()
    return lambda value: float(net(Tensor(np.full(3, value, np.float32))).asnumpy()[0])


def _torch(name: str, stack: ExitStack) -> Step:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.log(x) + torch.exp(x)

    net = Net()
    called = torch.compile(net, backend="msdump") if name == "compiled" else net
    if name == "eager":
        stack.enter_context(msdump.watch(net))

    def step(value: float) -> float:
        with torch.no_grad():
            return float(called(torch.full((3,), value))[0])

    return step
