"""Operators of a program that nothing compiles keep the contract of watched runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import _disable_current_modes  # noqa: E402

import msdump  # noqa: E402
from msdump.graph.run import Observer  # noqa: E402
from msdump.process import sessions  # noqa: E402
from tests.contracts.run_contract import Play, RunContract  # noqa: E402
from tests.sessions import open_session  # noqa: E402


def counts(x: Any, total: Any) -> Any:
    """Two operators read one result, and one writes an input that another has read."""
    before = -total
    y = x.exp()
    total.add_(y)
    return (y * before).reshape(3, 2), y


def fails(table: Any, index: Any) -> Any:
    return (-table).index_select(0, index).exp()


class TestEager(RunContract):
    is_before_told = False
    resumes = True
    watch: Any = None

    @pytest.fixture(autouse=True)
    def _leave(self) -> Iterator[None]:
        yield
        self._end()

    def program(self, observers: Sequence[Observer]) -> Play:
        return self._play(observers, counts, torch.linspace(-1, 1, 6).reshape(2, 3), torch.zeros(2, 3))

    def failing_program(self, observers: Sequence[Observer]) -> Play:
        return self._play(observers, fails, torch.ones(3), torch.tensor([7]))

    def _play(self, observers: Sequence[Observer], function: Any, *args: Any) -> Play:
        self._end()
        open_session(observers)
        with pytest.MonkeyPatch.context() as patch:
            # Where nobody observes, nothing is to be dumped either.
            patch.setenv("MINDSPORE_DUMP_CONFIG", "")
            watch = self.watch = msdump.watch()
            watch.__enter__()

        def play() -> bytes:
            results = function(*args)
            watch.step()
            with _disable_current_modes():  # `numpy` calls an operator
                return b"".join(result.numpy().tobytes() for result in results)

        return play

    def _end(self) -> None:
        if self.watch is not None:
            self.watch.__exit__(None, None, None)
            self.watch = None
        sessions.reset_for_tests()
