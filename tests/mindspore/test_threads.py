"""Networks that run in several threads: one session, and the dump that they would leave one after the other."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.engine import opening
from msdump.formats.npy_reader import read_npy
from msdump.formats.paths.sync import parse_data_file_name
from msdump.graph.graph import Graph
from msdump.graph.run import FinishedStep
from msdump.mindspore import Tensor, nn
from msdump.process import sessions
from msdump.process.report import Report
from msdump.tensors.records import AFTER, BEFORE, OpEvent
from tests.mindspore.networks import graphs_of, rows, training_step
from tests.mindspore.test_pynative_dump import config
from tests.threads import run_at_once, runs_by_graph

__all__ = ["config"]

THREADS, STEPS = 4, 5


def trainings() -> list[Callable[[], None]]:
    """One training for each thread, each with a network and weights of its own."""
    ms.set_seed(5)

    def training(features: int) -> Callable[[], None]:
        net = nn.SequentialCell([nn.Dense(5, features), nn.ReLU(), nn.Dense(features, 3)])
        step = training_step(net, nn.Momentum(net.trainable_params(), 0.1, 0.9))

        def train() -> None:
            for _ in range(STEPS):
                step(*rows())

        return train

    return [training(2 + number) for number in range(THREADS)]


def close() -> Report:
    opened = opening.current()
    assert opened is not None
    opened.close()
    return opened.report()


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_threads_leave_what_they_would_leave_one_after_the_other(
    config: Callable[..., Path], either_mode: int, is_sync: bool
) -> None:
    root = config(is_sync=is_sync)
    for train in trainings():
        train()
    expected_report = close()
    expected = runs_by_graph(root)
    assert [len(runs) for runs in expected] == [STEPS] * THREADS
    sessions.reset_for_tests()
    os.rename(root, root.with_name("expected"))
    config(is_sync=is_sync)
    run_at_once(trainings())
    report = close()
    assert (report.iterations_run, report.iterations_dumped) == (THREADS * STEPS, THREADS * STEPS)
    assert (report.lost, report.tensors_written) == (0, expected_report.tensors_written)
    assert report.operators_seen == expected_report.operators_seen
    assert runs_by_graph(root) == expected


def test_a_network_that_threads_share_is_compiled_once(config: Callable[..., Path]) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    root = config()
    net = nn.Dense(5, 3, bias_init="zeros")
    weight = net.weight.asnumpy().copy()
    inputs = [np.full((1, 5), number, np.float32) for number in range(THREADS)]
    results: dict[int, np.ndarray] = {}

    def infer(number: int) -> None:
        for _ in range(STEPS):
            results[number] = net(Tensor(inputs[number])).asnumpy()

    run_at_once([lambda number=number: infer(number) for number in range(THREADS)])  # type: ignore[misc]
    assert len(graphs_of(net)) == 1
    for number, result in results.items():
        np.testing.assert_allclose(result, inputs[number] @ weight.T, rtol=1e-5)
    assert close().iterations_dumped == THREADS * STEPS
    folders = [path for path in root.glob("rank_0/Net/*/*") if path.name.isdigit()]
    assert len(folders) == THREADS * STEPS
    for folder in folders:
        read = {(name.op_type, name.io, name.slot): read_npy(path) for path in folder.glob("*.npy")
                if (name := parse_data_file_name(path.name)) is not None}  # fmt: skip
        # An operator reads the bits that the one before it wrote, in the same run.
        assert read["MatMul", "output", 0].tobytes() == read["BiasAdd", "input", 0].tobytes()
        np.testing.assert_allclose(read["MatMul", "output", 0], read["MatMul", "input", 0] @ weight.T, rtol=1e-5)


class OneRunAtATime:
    """An observer that takes its time and notes which threads' runs overlap."""

    needs_all_values = False

    def __init__(self) -> None:
        self.running: set[int] = set()
        self.overlaps = self.runs = 0

    def _look(self) -> None:
        for _ in range(200):
            self.overlaps += len(self.running) > 1

    def on_graph(self, graph: Graph) -> Sequence[int]:
        return [BEFORE | AFTER] * len(graph.op_infos())

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        self.running.add(threading.get_ident())
        self._look()
        return True

    def before_op(self, event: OpEvent) -> None:
        self._look()

    def after_op(self, event: OpEvent) -> None:
        self._look()

    def on_iteration_end(self, step: FinishedStep) -> None:
        self._look()
        self.running.remove(threading.get_ident())
        self.runs += 1

    def on_error(self, event: OpEvent, error: BaseException) -> None: ...

    def close(self) -> None: ...


def test_observers_take_one_run_at_a_time(config: Callable[..., Path], either_mode: int) -> None:
    config()
    work = trainings()
    opened = opening.open_mindspore("CPU", 0)
    assert opened is not None
    observer = OneRunAtATime()
    opened.observers = (observer,)
    run_at_once(work)
    assert (observer.runs, observer.overlaps) == (THREADS * STEPS, 0)


def test_a_step_may_wait_for_a_step_of_another_thread(config: Callable[..., Path]) -> None:
    """Both are dumped: no lock is held while the script's own code runs."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    config()
    meeting = threading.Barrier(2, timeout=60)

    class Meeting(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            doubled = x + x
            meeting.wait()
            return doubled + x

    run_at_once([lambda: Meeting()(Tensor(np.ones(3, np.float32))) for _ in range(2)])
    assert close().iterations_dumped == 2
