"""MindSpore scripts in both modes keep the contract of watched runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import msdump.mindspore as ms
from msdump.graph.run import Observer
from msdump.mindspore import Parameter, Tensor, nn, ops
from tests.contracts.run_contract import Play, RunContract
from tests.sessions import open_session


class Counts(nn.Cell):
    """Two operators read one result, and one writes a parameter that another has read."""

    def __init__(self) -> None:
        super().__init__()
        self.total = Parameter(Tensor(np.zeros((2, 3), np.float32)), name="total")
        self.assign = ops.AssignAdd()

    def construct(self, x: Tensor) -> Any:
        before = ops.neg(self.total)
        y = ops.exp(x)
        self.assign(self.total, y)
        return ops.reshape(y * before, (3, 2)), y


class Fails(nn.Cell):
    def construct(self, x: Tensor) -> Any:
        return ops.neg(ops.SparseSoftmaxCrossEntropyWithLogits()(ops.exp(x), Tensor(np.array([1, 7], np.int32))))


class MindSporeContract(RunContract):
    mode: int

    def program(self, observers: Sequence[Observer]) -> Play:
        return self._play(observers, Counts)

    def failing_program(self, observers: Sequence[Observer]) -> Play:
        return self._play(observers, Fails)

    def _play(self, observers: Sequence[Observer], cell: type[nn.Cell]) -> Play:
        open_session(observers)
        ms.set_context(mode=self.mode, device_target="CPU")
        net = cell()
        x = Tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
        return lambda: b"".join(result.asnumpy().tobytes() for result in net(x))


class TestGraphMode(MindSporeContract):
    mode = ms.GRAPH_MODE


class TestPyNativeMode(MindSporeContract):
    mode = ms.PYNATIVE_MODE
