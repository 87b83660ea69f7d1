"""What callbacks share: the steps of a loop are the iterations of the dump, and nothing between them is dumped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from msdump.integrations.training import TrainingDump  # noqa: E402
from tests.frontends.torch.eager.test_watch import config  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


class Loop:
    """A training loop: steps of some batches each, and a validation behind each step."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1)

    def train(self, dump: TrainingDump, steps: int, first: int = 0, batches: int = 1) -> list[Any]:
        dump.begin(first)
        losses = []
        for _ in range(steps):
            for batch in range(batches):
                dump.begin_batch()
                loss = self.model(torch.ones(4, 3)).square().mean()
                loss.backward()
                losses.append(loss.detach())
                if batch == batches - 1:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                dump.end_batch(is_step=batch == batches - 1)
            with torch.no_grad():
                self.model(torch.full((7, 3), 5.0)).sum()
        dump.end()
        return losses


def steps_of(path: Path) -> dict[int, int]:
    """Iteration -> how many matrix products its forward pass has."""
    found: dict[int, int] = {}
    for tensor in msdump.open(path).tensors(graph=0, io="output"):
        assert tensor.iteration is not None and 7 not in tensor.shape
        found[tensor.iteration] = found.get(tensor.iteration, 0) + ("addmm" in tensor.op_type)
    return found


@pytest.mark.parametrize(("batches", "first"), [(1, 0), (3, 0), (1, 40), (2, 7)])
def test_steps_are_iterations(batches: int, first: int, tmp_path: Path) -> None:
    """Also with accumulated gradients and from a checkpoint on; the validation is not there; losses are the same."""
    dump = TrainingDump(config(tmp_path))
    losses = Loop().train(dump, 3, first, batches)
    assert steps_of(tmp_path) == {first + step: batches for step in range(3)}
    assert dump.report is not None and dump.report.iterations_dumped == 3
    plain = Loop().train(TrainingDump(), 3, first, batches)
    assert all(torch.equal(one, other) for one, other in zip(losses, plain, strict=True))


def test_steps_that_are_not_selected(tmp_path: Path) -> None:
    Loop().train(TrainingDump(config(tmp_path, iteration="41-42")), 4, first=40)
    assert sorted(steps_of(tmp_path)) == [41, 42]


def fail(path: Path) -> None:
    with TrainingDump(config(path)) as dump:
        dump.begin(0)
        dump.begin_batch()
        torch.nn.Linear(3, 2)(torch.ones(4, 3))
        raise ZeroDivisionError


def test_a_loop_that_raises_ends_its_dump(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        fail(tmp_path)
    assert sorted(steps_of(tmp_path)) == [0]
    with msdump.watch(config=config(tmp_path / "other")):
        """No block is open."""


def test_training_twice(tmp_path: Path) -> None:
    """Numbers go on: files of the first training stay."""
    dump = TrainingDump()
    with msdump.dump(config(tmp_path)):
        Loop().train(dump, 2)
        Loop().train(dump, 2)
    assert sorted(steps_of_all(tmp_path)) == [0, 1, 2, 3]


def steps_of_all(path: Path) -> set[int]:
    return {tensor.iteration for tensor in msdump.open(path).tensors() if tensor.iteration is not None}


def test_without_a_configuration_it_is_statistics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dump = TrainingDump()
    Loop().train(dump, 1)
    assert dump.report is not None and dump.report.iterations_dumped == 1
    assert list((tmp_path / "msdump_dump").rglob("statistic.csv"))


def test_an_empty_configuration_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", "")
    dump = TrainingDump()
    Loop().train(dump, 1)
    assert dump.report is None and list(tmp_path.iterdir()) == []
