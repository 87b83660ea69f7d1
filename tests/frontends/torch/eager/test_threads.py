"""Two threads that are watched at the same time: each block shows what its own thread runs, and nothing else."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from msdump.engine.graphs import GraphSession  # noqa: E402
from tests.frontends.torch.eager.test_watch import both_engines, config, pytestmark  # noqa: E402, F401

STEPS = 4


def in_threads(*works: Callable[[threading.Barrier], None]) -> None:
    """Run each in a thread of its own; what one raises is raised here."""
    barrier, errors = threading.Barrier(len(works), timeout=60), []

    def run(work: Callable[[threading.Barrier], None]) -> None:
        try:
            work(barrier)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the main thread raises it
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def trained(size: int, barrier: threading.Barrier, steps: int = STEPS, in_step: bool = True) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(size, size))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        if in_step:
            barrier.wait()
        model(torch.ones(2, size)).square().sum().backward()
        optimizer.step()


def shapes(folder: Path) -> dict[int, Counter[tuple[int, ...]]]:
    """Of each iteration, how often operators `addmm` made which shapes."""
    found: dict[int, Counter[tuple[int, ...]]] = {}
    for tensor in msdump.open(folder, strict=True).tensors(io="output"):
        if "addmm" in tensor.op_type:
            assert tensor.iteration is not None
            found.setdefault(tensor.iteration, Counter())[tensor.shape] += 1
    return found


@both_engines
@pytest.mark.parametrize("names_model", [False, True], ids=["modules", "model"])
def test_each_block_sees_its_own_thread(names_model: bool, is_sync: bool, tmp_path: Path) -> None:
    def work(size: int) -> Callable[[threading.Barrier], None]:
        def run(barrier: threading.Barrier) -> None:
            model = torch.nn.Linear(size, size)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            barrier.wait()
            given = (model,) if names_model else ()
            with msdump.watch(*given, config=config(tmp_path / f"size{size}", is_sync)):
                for _ in range(STEPS):
                    barrier.wait()
                    model(torch.ones(2, size)).square().sum().backward()
                    optimizer.step()
                barrier.wait()

        return run

    in_threads(work(3), work(5))
    for size in (3, 5):
        assert shapes(tmp_path / f"size{size}") == {step: Counter({(2, size): 1}) for step in range(STEPS)}


def test_a_thread_that_is_not_watched_begins_no_iteration(tmp_path: Path) -> None:
    def watched(barrier: threading.Barrier) -> None:
        with msdump.watch(config=config(tmp_path)) as watch:
            trained(3, barrier)
            report = watch.report()
        assert report is not None and report.iterations_run == STEPS

    in_threads(watched, lambda barrier: trained(5, barrier))
    assert shapes(tmp_path) == {step: Counter({(2, 3): 1}) for step in range(STEPS)}


@both_engines
def test_threads_of_one_dump(is_sync: bool, tmp_path: Path) -> None:
    """Whatever the order of their operators, each tensor is there once and no file is damaged."""

    def work(size: int) -> Callable[[threading.Barrier], None]:
        def run(barrier: threading.Barrier) -> None:
            with msdump.watch():
                barrier.wait()
                trained(size, barrier, 20, in_step=False)

        return run

    with msdump.dump(config(tmp_path, is_sync, saved_data="full")) as dump:
        in_threads(work(3), work(5))
    report = dump.report()
    assert report is not None and not report.error and not report.lost
    total: Counter[Any] = sum(shapes(tmp_path).values(), Counter())
    assert total == {(2, 3): 20, (2, 5): 20}


def test_threads_that_begin_at_once_number_their_graphs_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are in the middle of taking a number at the same time."""
    taken: list[int] = []
    take = GraphSession.take_graph_id

    def slow_take(session: GraphSession, least: int = 0) -> int:
        in_take.wait()
        taken.append(take(session, least))
        return taken[-1]

    def work(barrier: threading.Barrier) -> None:
        with msdump.watch():
            barrier.wait()

    in_take = threading.Barrier(2, timeout=60)
    monkeypatch.setattr(GraphSession, "take_graph_id", slow_take)
    with msdump.dump(config(tmp_path)):
        in_threads(work, work)
    assert sorted(taken) == list(range(6))


def test_blocks_that_come_and_go_leave_other_threads_alone(tmp_path: Path) -> None:
    """PyTorch iterates over the hooks of optimizers, and raises where they change meanwhile."""
    is_over = threading.Event()

    def blocks(barrier: threading.Barrier) -> None:
        barrier.wait()
        try:
            for number in range(30):
                with msdump.watch(config=config(tmp_path / f"block{number}", iteration="0")):
                    torch.ones(2).sin()
        finally:
            is_over.set()

    def training(barrier: threading.Barrier) -> None:
        with msdump.watch(config=config(tmp_path / "training", saved_data="statistic")):
            barrier.wait()
            while not is_over.is_set():
                trained(3, barrier, 1, in_step=False)

    in_threads(blocks, training)
