"""Iterations that are not dumped: modules inside of the outermost one are not listened to, and nothing else changes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from msdump.frontends.torch.eager.listening import listening  # noqa: E402
from tests.frontends.torch.eager.test_watch import config, pytestmark  # noqa: E402, F401


class Inner(torch.nn.Module):
    """Raises where it is told to; notes whether modules are told of."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.raises = False
        self.were_quiet: list[bool] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.were_quiet.append(listening.quiet_thread == threading.get_ident())
        if self.raises:
            raise ValueError("wanted")
        return torch.tanh(self.linear(x))


def names(folder: Path, iteration: int) -> set[str]:
    found = {path.name.split(".")[1] for path in (folder / f"rank_0/Net/0/{iteration}").glob("*.npy")}
    assert found
    return found


def steps(folder: Path, iteration: str, raising: int | None = None) -> Inner:
    torch.manual_seed(0)
    inner = Inner()
    model = torch.nn.Sequential(inner, torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with msdump.watch(model, config(folder, iteration=iteration)):
        for number in range(4):
            inner.raises = number == raising
            optimizer.zero_grad()
            try:
                model(torch.ones(2, 3)).sum().backward()
            except ValueError:
                continue
            optimizer.step()
    assert not listening.quiet_thread
    return inner


def test_names_are_those_of_a_dump_of_all(tmp_path: Path) -> None:
    steps(tmp_path / "all", "all")
    inner = steps(tmp_path / "some", "1|3")
    assert inner.were_quiet == [True, False, True, False]
    for iteration in (1, 3):
        assert names(tmp_path / "some", iteration) == names(tmp_path / "all", iteration)


def test_a_module_that_raises_ends_the_silence(tmp_path: Path) -> None:
    inner = steps(tmp_path / "some", "2-3", raising=1)
    # The third call is the second iteration still, whose first one made no gradient.
    assert inner.were_quiet == [True, True, True, False]


def test_other_threads_are_told_of(tmp_path: Path) -> None:
    """What runs in another thread meanwhile is a program of its own."""
    first, second = Inner(), Inner()
    outer = torch.nn.Sequential(first)

    def beside() -> None:
        torch.nn.Sequential(second)(torch.ones(1, 3))

    class Starts(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            thread = threading.Thread(target=beside)
            thread.start()
            thread.join()
            return x

    outer.append(Starts())
    with msdump.watch(outer, config(tmp_path, iteration="7")):
        outer(torch.ones(1, 3))
    assert first.were_quiet == [True] and second.were_quiet == [False]
