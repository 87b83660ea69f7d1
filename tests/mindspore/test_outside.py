"""Operators outside of any cell are in no dump, and its report says where they ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Tensor, nn, ops, outside
from msdump.process import sessions
from msdump.process.report import Report

pytestmark = pytest.mark.usefixtures("either_mode")


@pytest.fixture(autouse=True)
def no_other_front_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What models of PyTorch ran outside of graphs, in other tests of this process, is no part of it."""
    monkeypatch.setattr(sessions, "_remarks", [outside.lines])


def x() -> Tensor:
    return Tensor(np.ones(3, np.float32))


def _report() -> Report:
    (session,) = sessions.used()
    session.flush()
    return session.report()


def test_they_are_named_once_for_each_place(sync_dump: Callable[..., Path]) -> None:
    root = sync_dump()
    for _ in range(3):
        ops.ReLU()(x())
    y = nn.Dense(3, 2)(Tensor(np.ones((1, 3), np.float32)))
    y + 1
    report = _report()
    first, second = report.outside
    assert "test_outside.py:" in first and "in test_they_are_named_once_for_each_place" in first
    assert "3 operators (ReLU)" in first and "1 operator (Add)" in second
    assert not list(root.rglob("ReLU.*.npy"))


def test_what_cells_gradients_and_compiled_functions_run_is_not_among_them(sync_dump: Callable[..., Path]) -> None:
    sync_dump()
    nn.ReLU()(x())
    ms.grad(lambda a: a * a)(x())
    ms.jit(lambda a: a + a)(x())
    assert _report().outside == ()


def test_neither_are_cells_in_iterations_that_are_not_dumped(sync_dump: Callable[..., Path]) -> None:
    sync_dump(iteration="0")
    for _ in range(3):
        nn.ReLU()(x())
    assert _report().outside == ()


def test_nothing_is_counted_without_a_dump() -> None:
    ops.ReLU()(x())
    assert sessions.remarks() == ()


def test_many_places_are_cut_short(sync_dump: Callable[..., Path]) -> None:
    sync_dump()
    for number in range(25):
        exec(compile("\n" * number + "relu(one)", "script.py", "exec"), {"relu": ops.ReLU(), "one": x()})
    *_, last = sessions.remarks()
    assert last == "no cell: 5 more places."
