"""The asynchronous engine on random graphs: the same records as the synchronous one, whatever is reused or slow."""

from __future__ import annotations

import itertools
import logging
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.config.environment import Environment
from msdump.config.mindspore import plan_mindspore
from msdump.config.plan import Plan
from msdump.dumpers.capture import Clock
from msdump.dumpers.streaming import AsyncDumper
from msdump.dumpers.sync import SyncDumper
from msdump.dumpers.tally import Tally
from msdump.errors import WriteError
from msdump.formats.bin import BinWriter, read_bin
from msdump.formats.npy import NpyWriter
from msdump.formats.npy_reader import read_npy
from msdump.formats.paths.acl import npy_file_name, parse_bin_file_name
from msdump.formats.paths.sync import SyncPaths, parse_data_file_name
from msdump.formats.statistic_csv import StatisticWriter, read_statistic_csv
from msdump.formats.writer import WriteCounts, Writer
from msdump.graph.graph import Graph, Parameter
from msdump.graph.primitive import Primitive
from msdump.graph.run import Observer
from msdump.graph.types import TensorType
from msdump.mindspore.program.compile import finish
from msdump.mindspore.program.executor import Executor
from msdump.mindspore.program.graph_cases import GraphCase, graphs
from msdump.tensors.records import TensorRecord
from tests.dumpers.test_sync import write_config

Key = tuple[str, str, int]
ITERATIONS = 3


def make_plan(folder: Path, **changes: Any) -> Plan:
    environment = Environment.from_os({"MINDSPORE_DUMP_CONFIG": str(write_config(folder, **changes))})
    plan = plan_mindspore(environment, "CPU", 0)
    assert plan is not None
    return plan


def fixed_clock() -> Clock:
    return Clock(lambda: 1_700_000_000_000_000)


def by_iteration(root: Path) -> Callable[[TensorRecord], Path]:
    return lambda record: root / str(record.iteration)


def run_all(case: GraphCase, observers: Sequence[Observer]) -> list[bytes]:
    """Results of a few iterations; the observers are closed."""
    case.restore()
    with np.errstate(all="ignore"):
        executor = Executor(case.graph, observers)
        results = [out.tobytes() for number in range(ITERATIONS) for out in executor.run(case.inputs, number)]
    for observer in observers:
        observer.close()
    return results


def dump_sync(case: GraphCase, plan: Plan, root: Path) -> tuple[list[bytes], Tally]:
    tally = Tally()
    writers: list[Writer] = [NpyWriter(by_iteration(root)), StatisticWriter(by_iteration(root))]
    paths = SyncPaths(root / "sync", 0, "Net")
    dumper = SyncDumper(plan, paths, writers, NpyWriter(lambda _: paths.constants_dir(0)), tally, fixed_clock())
    return run_all(case, [dumper]), tally


def npy_writers(root: Path) -> list[Writer]:
    return [NpyWriter(by_iteration(root), file_name=npy_file_name), StatisticWriter(by_iteration(root), thread_count=1)]


def dump_async(
    case: GraphCase, plan: Plan, writers: Sequence[Writer], budget: int, threads: int
) -> tuple[list[bytes], AsyncDumper, Tally]:
    tally = Tally()
    dumper = AsyncDumper(plan, writers, tally, budget, threads, fixed_clock())
    return run_all(case, [dumper]), dumper, tally


def npy_tensors(folder: Path) -> dict[Key, bytes]:
    found: dict[Key, bytes] = {}
    for path in folder.glob("*.npy"):
        name = parse_data_file_name(path.name)
        assert name is not None
        assert (name.op_name, name.io, name.slot) not in found
        found[name.op_name, name.io, name.slot] = read_npy(path).tobytes()
    return found


def statistic_rows(folder: Path) -> list[object]:
    """Rows in file order, without what engines say differently: task ids, and stamps that constants took."""
    rows = read_statistic_csv(folder / "statistic.csv")
    assert [row.timestamp_us for row in rows] == sorted({row.timestamp_us for row in rows})
    return [replace(row, task_id=0, timestamp_us=0) for row in rows]


budgets = st.sampled_from([1, 100, 4096, 1 << 20])


@settings(max_examples=30, deadline=None)
@given(graphs(), st.integers(1, 4), budgets, st.integers(0, 2))
def test_both_engines_hold_the_same_records(case: GraphCase, threads: int, budget: int, input_output: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = make_plan(folder, input_output=input_output, saved_data="full", iteration="0|2")
        expected, _ = dump_sync(case, plan, folder / "sync")
        results, dumper, tally = dump_async(case, plan, npy_writers(folder / "async"), budget, threads)
        assert results == expected
        assert (tally.error, tally.lost) == ("", 0)
        assert tally.tensors_written == sum(len(npy_tensors(folder / "sync" / number)) for number in ("0", "2"))
        assert (tally.iterations_run, tally.iterations_dumped) == (ITERATIONS, 2)
        assert not (folder / "async/1").exists()
        for number in ("0", "2"):
            assert npy_tensors(folder / "async" / number) == npy_tensors(folder / "sync" / number)
            if tally.tensors_written:
                rows = [statistic_rows(folder / engine / number) for engine in ("async", "sync")]
                assert rows[0] == rows[1]
        assert_within_budget(dumper, budget, case)


@settings(max_examples=30)
@given(graphs(), st.integers(1, 4), budgets, st.integers(0, 2))
def test_statistics_of_borrowed_memory_are_the_same(case: GraphCase, threads: int, budget: int, put: int) -> None:
    """They are taken in turns with the program."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = make_plan(folder, input_output=put, saved_data="statistic", iteration="0|2")
        case.graph.borrowed.clear()
        expected, _ = dump_sync(case, plan, folder / "sync")
        case.graph.borrowed.update(value.id for value in case.graph.inputs)
        writers = [StatisticWriter(by_iteration(folder / "async"), thread_count=1)]
        results, _, tally = dump_async(case, plan, writers, budget, threads)
        assert results == expected and (tally.error, tally.lost) == ("", 0)
        for number in ("0", "2"):
            rows = [statistic_rows(folder / engine / number) for engine in ("async", "sync")]
            assert sorted(map(repr, rows[0])) == sorted(map(repr, rows[1]))


def test_a_turn_gives_way_to_the_copy_of_what_is_overwritten(tmp_path: Path, alarm: None) -> None:
    """Tensors that wait for the end of their turn fill the budget: no waiting of the step would free it."""
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", (4, 4)))
    weight = graph.add_parameter(Parameter("weight", np.ones((4, 4), np.float32), "float32"))
    product = graph.add_node(Primitive("Mul"), (x, x), "Default").outputs[0]
    graph.outputs = [graph.add_node(Primitive("AssignAdd"), (weight, product), "Default").outputs[0]]
    graph.borrowed.add(x.id)
    case = GraphCase(finish(graph), [np.ones((4, 4), np.float32)], {"weight": np.ones((4, 4), np.float32)})
    plan = make_plan(tmp_path, saved_data="statistic", iteration="0")
    writers = [StatisticWriter(by_iteration(tmp_path), thread_count=1)]
    _, _, tally = dump_async(case, plan, writers, 100, 1)
    assert (tally.error, tally.lost, tally.tensors_written) == ("", 0, 8)


def assert_within_budget(dumper: AsyncDumper, budget: int, case: GraphCase) -> None:
    largest = max(
        (sum(tensor.type.size_bytes for tensor in (*node.inputs, *node.outputs)) for node in case.graph.kernels),
        default=0,
    )
    # What an in-place operator read is copied beside what it left.
    assert dumper.staging.peak_bytes <= max(budget, largest)
    assert dumper.staging.held_bytes == 0


@settings(max_examples=25, deadline=None)
@given(graphs(), st.integers(1, 4), budgets)
def test_bin_files_hold_the_same_tensors_as_npy_files(case: GraphCase, threads: int, budget: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = make_plan(folder)
        expected, _ = dump_sync(case, plan, folder / "sync")
        results, dumper, tally = dump_async(case, plan, [BinWriter(by_iteration(folder / "bin"))], budget, threads)
        assert results == expected
        assert (tally.error, tally.lost) == ("", 0)
        for number in range(ITERATIONS):
            found: dict[Key, bytes] = {}
            for path in (folder / "bin" / str(number)).iterdir():
                assert parse_bin_file_name(path.name) is not None
                read = read_bin(path)
                for tensor in read.tensors:
                    found[read.op_name.rsplit("/", 1)[-1], tensor.io, tensor.slot] = tensor.array().tobytes()
            assert found == npy_tensors(folder / "sync" / str(number))
        assert_within_budget(dumper, budget, case)


@settings(max_examples=15, deadline=None)
@given(graphs(), st.integers(1, 4))
def test_each_tensor_is_written_once(case: GraphCase, threads: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counts: list[WriteCounts] = []
        plan = make_plan(folder)
        for count in (1, threads):
            writers = [NpyWriter(by_iteration(folder / str(len(counts))))]
            dump_async(case, plan, writers, 1 << 20, count)
            counts.append(writers[0].counts)
        assert counts[0] == counts[1]


# -- waiting, failing, ending ------------------------------------------------------------------------------------


def chain(length: int, size: int) -> GraphCase:
    graph = Graph()
    value = graph.add_input("x", TensorType("float32", (size,)))
    for _ in range(length):
        value = graph.add_node(Primitive("Neg"), [value], "Default/net-Net").outputs[0]
    graph.outputs = [value]
    return GraphCase(finish(graph), [np.arange(size, dtype=np.float32)], {})


class Gate:
    """A writer that waits for permission before each record and keeps what it saw."""

    def __init__(self, writes_once: bool = False) -> None:
        self.writes_once = writes_once
        self.takes_empty = False
        self.counts = WriteCounts()
        self.permits = threading.Semaphore(0)
        self.is_entered = threading.Semaphore(0)
        self.seen: list[tuple[str, bytes]] = []
        self.sides: list[str] = []
        self.ended: list[int] = []
        self.fails_at: str | None = None
        self.is_closed = False

    def write(self, records: Sequence[TensorRecord]) -> None:
        for record in records:
            self.is_entered.release()
            assert self.permits.acquire(timeout=60)
            if self.fails_at is not None and record.op_name.endswith(self.fails_at):
                raise WriteError("x.npy: expected room on the disk, got none. Free some.")
            self.seen.append((record.op_name, record.data.tobytes()))
            self.sides.append(record.io)

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        self.ended.append(iteration)

    def close(self) -> None:
        self.is_closed = True


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def joined(thread: threading.Thread) -> bool:
    thread.join(60)
    return not thread.is_alive()


@pytest.mark.parametrize(("budget", "waiting"), [(1, 1), (3 * (400_000 // 4096 + 2) * 4096, 3)])
def test_a_full_budget_makes_the_step_wait_and_drops_nothing(tmp_path: Path, budget: int, waiting: int) -> None:
    case = chain(8, 100_000)
    gate = Gate()
    dumper = AsyncDumper(make_plan(tmp_path, input_output=2), [gate], Tally(), budget, threads=1)
    executor = Executor(case.graph, [dumper])
    step = in_thread(lambda: executor.run(case.inputs, 0))
    assert gate.is_entered.acquire(timeout=60)
    deadline = time.monotonic() + 60
    while dumper.pool.state().queued_jobs < waiting:
        assert time.monotonic() < deadline
    # The step cannot go on: nothing was written, so nothing may be copied.
    assert step.is_alive()
    assert dumper.pool.state().queued_jobs == waiting
    gate.permits.release(100)
    assert joined(step)
    dumper.close()
    assert len(gate.seen) == 9
    assert gate.ended == [0]
    x = case.inputs[0]
    values = [value for name, value in gate.seen if "Neg" in name]
    assert values == [(-x if number % 2 == 0 else x).tobytes() for number in range(8)]


def test_the_first_error_stops_the_dump_and_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    case = chain(6, 10)
    names = [node.full_name for node in case.graph.kernels]
    gate = Gate()
    gate.fails_at = names[2].rsplit("/", 1)[-1]
    tally = Tally()
    dumper = AsyncDumper(make_plan(tmp_path), [gate], tally, 1 << 20, threads=1)
    executor = Executor(case.graph, [dumper])
    with caplog.at_level(logging.ERROR, "msdump"):
        results = executor.run(case.inputs, 0)
        gate.permits.release(100)
        dumper.pool.drain(60)
        again = executor.run(case.inputs, 1)
        dumper.close()
    assert results[0].tobytes() == again[0].tobytes() == case.inputs[0].tobytes()
    assert [name for name, _ in gate.seen] == [names[0]] * 2 + [names[1]] * 2
    # Twelve operands and one graph input were asked for; the failed operator counts as lost with both of its own.
    assert (tally.tensors_written, tally.lost) == (4, 9)
    assert tally.error == "x.npy: expected room on the disk, got none. Free some."
    assert [record.message for record in caplog.records] == [f"Dump stopped, training continues: {tally.error}"]
    assert gate.is_closed
    assert tally.iterations_dumped == 0


def test_records_that_wait_for_a_failed_one_are_lost_too(tmp_path: Path) -> None:
    """The input of the second operator repeats the output of the first, which cannot be written."""
    case = chain(3, 10)
    gate = Gate(writes_once=True)
    gate.fails_at = "Neg-op0" if case.graph.kernels[0].full_name.endswith("Neg-op0") else None
    gate.fails_at = case.graph.kernels[0].full_name.rsplit("/", 1)[-1]
    tally = Tally()
    dumper = AsyncDumper(make_plan(tmp_path), [gate], tally, 1 << 20, threads=3)
    Executor(case.graph, [dumper]).run(case.inputs, 0)
    gate.permits.release(100)
    dumper.close()
    assert tally.error
    assert tally.tensors_written + tally.lost == 7
    assert dumper.staging.held_bytes == 0


def test_any_failure_of_a_writer_is_kept(tmp_path: Path) -> None:
    """A defect in a writer must not leave the step waiting for a thread that is gone."""

    class Broken(Gate):
        def write(self, records: Sequence[TensorRecord]) -> None:
            raise KeyError("defect")

    case, tally = chain(4, 100_000), Tally()
    dumper = AsyncDumper(make_plan(tmp_path), [Broken()], tally, 1, threads=2)
    step = in_thread(lambda: Executor(case.graph, [dumper]).run(case.inputs, 0))
    assert joined(step)
    dumper.close()
    assert tally.error == "'defect'"
    assert tally.lost == 9


class Interrupt:
    """An observer that interrupts the run at one operator, as Ctrl-C would."""

    needs_all_values = False

    def __init__(self, at: int, where: str) -> None:
        self._at = at
        self._where = where

    def on_graph(self, graph: Graph) -> Sequence[int]:
        return [3] * len(graph.kernels)

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        return iteration == 0

    def before_op(self, event: Any) -> None:
        if event.op.index == self._at and self._where == "before":
            raise KeyboardInterrupt

    def after_op(self, event: Any) -> None:
        if event.op.index == self._at and self._where == "after":
            raise KeyboardInterrupt

    def on_iteration_end(self, step: Any) -> None: ...

    def on_error(self, event: Any, error: BaseException) -> None: ...

    def close(self) -> None: ...


@settings(max_examples=20, deadline=None)
@given(graphs(), st.sampled_from(["before", "after"]), st.data())
def test_an_interrupted_iteration_leaves_whole_files_and_the_next_one_is_complete(
    case: GraphCase, where: str, data: st.DataObject
) -> None:
    if not case.graph.kernels:
        return
    at = data.draw(st.integers(0, len(case.graph.kernels) - 1))
    with tempfile.TemporaryDirectory() as name, np.errstate(all="ignore"):
        folder = Path(name)
        plan = make_plan(folder, saved_data="full")
        tally = Tally()
        dumper = AsyncDumper(plan, npy_writers(folder), tally, 1, 2, fixed_clock())
        executor = Executor(case.graph, [dumper, Interrupt(at, where)])
        with pytest.raises(KeyboardInterrupt):
            executor.run(case.inputs, 0)
        executor.run(case.inputs, 1)
        dumper.close()
        assert (tally.error, tally.lost) == ("", 0)
        whole = npy_tensors(folder / "1")
        assert len(whole) == dumper._watched[case.graph].size
        part = npy_tensors(folder / "0") if (folder / "0").exists() else {}
        assert len(part) + len(whole) == tally.tensors_written
        assert part.keys() <= whole.keys()
        if part:
            assert len(read_statistic_csv(folder / "0/statistic.csv")) == len(part)
        assert dumper.staging.held_bytes == 0


def test_a_wait_can_be_interrupted(tmp_path: Path) -> None:
    """Ctrl-C while the step waits for room: what was handed over is written, the dumper still works."""
    case, gate, tally = chain(4, 100_000), Gate(), Tally()
    dumper = AsyncDumper(make_plan(tmp_path, input_output=2), [gate], tally, 1, threads=1)
    executor = Executor(case.graph, [dumper])
    reserve = dumper._delivery.reserve
    calls = itertools.count()

    def interrupted(size_bytes: int, own_bytes: int = 0) -> None:
        if next(calls) == 2:
            raise KeyboardInterrupt
        reserve(size_bytes, own_bytes)

    dumper._delivery.reserve = interrupted  # type: ignore[method-assign]
    gate.permits.release(100)
    with pytest.raises(KeyboardInterrupt):
        executor.run(case.inputs, 0)
    executor.run(case.inputs, 1)
    dumper.close()
    assert (tally.error, tally.lost) == ("", 0)
    assert len(gate.seen) == 2 + 5
    assert gate.ended == [0, 1]


def test_a_close_that_is_interrupted_counts_what_it_gave_up(tmp_path: Path) -> None:
    case, gate, tally = chain(4, 10), Gate(), Tally()
    dumper = AsyncDumper(make_plan(tmp_path), [gate], tally, 1 << 20, threads=1)
    Executor(case.graph, [dumper]).run(case.inputs, 0)
    assert gate.is_entered.acquire(timeout=60)

    def interrupted(timeout: float | None = None) -> bool:
        gate.permits.release(100)
        raise KeyboardInterrupt

    dumper.pool.drain = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        dumper.close()
    assert tally.tensors_written + tally.lost == 9
    assert tally.tensors_written <= 2
    assert gate.is_closed


def test_no_memory_for_a_copy_stops_the_dump_not_the_training(tmp_path: Path) -> None:
    case, gate, tally = chain(3, 10), Gate(), Tally()
    dumper = AsyncDumper(make_plan(tmp_path), [gate], tally, 1 << 20, threads=1)

    def refuse(*arguments: object) -> None:
        raise MemoryError("no room for a copy")

    dumper.staging.stage = refuse  # type: ignore[assignment,method-assign]
    assert Executor(case.graph, [dumper]).run(case.inputs, 0)[0].tobytes() == (-case.inputs[0]).tobytes()
    dumper.close()
    assert (tally.error, tally.lost, tally.tensors_written) == ("no room for a copy", 7, 0)


@pytest.mark.parametrize("takes_empty", [False, True])
def test_empty_tensors_are_for_those_who_take_them(tmp_path: Path, takes_empty: bool) -> None:
    case, gate, tally = chain(2, 0), Gate(), Tally()
    gate.takes_empty = takes_empty
    gate.permits.release(100)
    dumper = AsyncDumper(make_plan(tmp_path), [gate], tally, 1 << 20, threads=1)
    Executor(case.graph, [dumper]).run(case.inputs, 0)
    dumper.close()
    assert gate.sides == ["output"] * (2 if takes_empty else 0)
    rows = len(gate.sides)
    assert tally.skipped == {"empty tensor": 5 - rows}
    assert (tally.tensors_written, tally.lost) == (rows, 0)


def test_empty_tensors_count_once_when_there_is_no_memory_for_copies(tmp_path: Path) -> None:
    """The product of an operator whose factor with elements cannot be copied."""
    graph, arrays = Graph(), [np.empty((0, 3), np.float32), np.ones((3, 2), np.float32)]
    inputs = [graph.add_input(name, TensorType("float32", x.shape)) for name, x in zip("xy", arrays, strict=True)]
    graph.outputs = list(graph.add_node(Primitive("MatMul"), inputs, "Default").outputs)
    gate, tally = Gate(), Tally()
    gate.takes_empty = True
    gate.permits.release(100)
    dumper = AsyncDumper(make_plan(tmp_path), [gate], tally, 1 << 20, threads=1)

    def refuse(*arguments: object) -> None:
        raise MemoryError("no room for a copy")

    dumper.staging.stage = refuse  # type: ignore[assignment,method-assign]
    Executor(finish(graph), [dumper]).run(arrays, 0)
    dumper.close()
    # One factor and the product; then the parameter with elements.
    assert (tally.tensors_written, tally.lost, gate.sides) == (0, 3, [])


def test_a_run_after_the_end_is_not_dumped(tmp_path: Path) -> None:
    case, gate, tally = chain(2, 3), Gate(), Tally()
    gate.permits.release(100)
    dumper = AsyncDumper(make_plan(tmp_path), [gate], tally, 1 << 20)
    executor = Executor(case.graph, [dumper])
    executor.run(case.inputs, 0)
    dumper.close()
    assert executor.run(case.inputs, 1)[0].tobytes() == case.inputs[0].tobytes()
    dumper.close()
    assert (tally.error, tally.lost, tally.tensors_written, tally.iterations_dumped) == ("", 0, 5, 1)


def test_iterations_that_end_out_of_order_are_all_counted() -> None:
    tally = Tally()
    for iteration in (2, 0, 1, 2, 0):
        tally.count_dumped(iteration)
    assert tally.iterations_dumped == 3
