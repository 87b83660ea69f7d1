"""Models that are compiled and run in several threads leave the dump that they would leave one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from msdump.frontends.torch import backend  # noqa: E402
from msdump.process import sessions  # noqa: E402
from tests.frontends.torch.dumping import close, configure  # noqa: E402
from tests.threads import run_at_once, runs_by_graph  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

THREADS, STEPS = 3, 5


def trainings() -> list[Callable[[], None]]:
    """One training for each thread, each with a model and weights of its own."""
    torch._dynamo.reset()
    torch.manual_seed(2)

    def training(features: int) -> Callable[[], None]:
        model = nn.Sequential(nn.Linear(3, features), nn.Tanh(), nn.Linear(features, 1))
        compiled = torch.compile(model, backend=backend)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        data = torch.randn(4, 3)

        def train() -> None:
            for _ in range(STEPS):
                optimizer.zero_grad()
                compiled(data).square().sum().backward()
                optimizer.step()

        return train

    return [training(2 + number) for number in range(THREADS)]


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_threads_leave_what_they_would_leave_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_sync: bool
) -> None:
    root = configure(tmp_path, monkeypatch, is_sync=is_sync)
    for train in trainings():
        train()
    expected_report = close()
    expected = runs_by_graph(root)
    assert [len(runs) for runs in expected] == [STEPS] * 2 * THREADS
    sessions.reset_for_tests()
    os.rename(root, root.with_name("expected"))
    run_at_once(trainings())
    report = close()
    assert (report.lost, report.tensors_written) == (0, expected_report.tensors_written)
    assert runs_by_graph(root) == expected
