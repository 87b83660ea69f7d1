"""Models under torch.compile keep the contract of watched runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from msdump.graph.run import Observer
from tests.contracts.run_contract import Play, RunContract
from tests.sessions import open_session


def counts(x: Any, total: Any) -> Any:
    """Two operators read one result, and one writes an input that another has read."""
    before = -total
    y = x.exp()
    total.add_(y)
    return (y * before).reshape(3, 2), y


def fails(table: Any, index: Any) -> Any:
    return (-table)[index].exp()


class TestTorch(RunContract):
    def program(self, observers: Sequence[Observer]) -> Play:
        total = torch.zeros(2, 3)
        return self._play(observers, counts, torch.linspace(-1, 1, 6).reshape(2, 3), total)

    def failing_program(self, observers: Sequence[Observer]) -> Play:
        return self._play(observers, fails, torch.ones(3), torch.tensor([7]))

    def _play(self, observers: Sequence[Observer], function: Any, *args: Any) -> Play:
        open_session(observers)
        torch.compiler.reset()
        compiled = torch.compile(function, backend="msdump")
        return lambda: b"".join(result.numpy().tobytes() for result in compiled(*args))
