"""From records to writers: which error is kept, in which order jobs run, what counts as dumped and as lost."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump.dumpers.sync as sync_module
from msdump.dumpers.capture import GraphMemory
from msdump.dumpers.delivery import Delivery, Turns, batches
from msdump.dumpers.staging import Staged, Staging, staged_size
from msdump.dumpers.streaming import AsyncDumper
from msdump.dumpers.sync import SyncDumper
from msdump.dumpers.tally import Tally
from msdump.dumpers.writer_pool import Job, WriterPool
from msdump.errors import WriteError
from msdump.formats.paths.sync import SyncPaths
from msdump.formats.writer import WriteCounts
from msdump.graph.primitive import Attrs
from msdump.graph.run import Observer
from msdump.mindspore.program.executor import Executor
from msdump.tensors.arrays import Array
from msdump.tensors.records import TINY_BYTES, TensorKey, TensorRecord
from tests.dumpers.memory_writer import MemoryWriter
from tests.dumpers.test_streaming import chain
from tests.engine.acl_chains import chain as acl_chain
from tests.engine.acl_plans import make_dump
from tests.plans import plain_plan

PAGE = 4096


# -- the pool ---------------------------------------------------------------------------------------------------------


def failing(error: Exception, until: Callable[[], object], begins: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        begins()
        until()
        raise error

    return run


def test_the_first_error_is_kept() -> None:
    """Both jobs run; the second fails when the first has failed."""
    pool = WriterPool(2)
    second_runs = threading.Event()

    def first_has_failed() -> bool:
        deadline = time.monotonic() + 60
        while pool.error is None and time.monotonic() < deadline:
            time.sleep(0.001)
        return pool.error is not None

    first, second = WriteError("first"), WriteError("second")
    pool.submit(Job(1, 1, failing(first, lambda: second_runs.wait(60), lambda: None)))
    pool.submit(Job(1, 1, failing(second, first_has_failed, second_runs.set)))
    pool.close()
    assert pool.error is first
    assert pool.state().lost_records == 2


def test_a_failed_job_ends_the_dump_before_it_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    tally = Tally()
    delivery = Delivery(tally, PAGE)
    delivery.pool.submit(Job(1, 1, failing(WriteError("no"), lambda: None, lambda: None)))
    delivery.pool.drain()
    assert delivery.has_stopped() and tally.error == "no"
    assert [record.getMessage() for record in caplog.records] == ["Dump stopped, training continues: no"]
    delivery.close([])


@pytest.mark.parametrize("size", [(1 << 20) - 1, 1 << 20])
@pytest.mark.parametrize("knows_places", [False, True])
def test_only_large_tensors_lie_as_in_their_files(size: int, knows_places: bool) -> None:
    delivery = Delivery(Tally(), 1 << 30, data_offsets=(lambda records: [24] * len(records)) if knows_places else None)
    record = TensorRecord("Op", "a", 0, 0, 1, "output", 0, "uint8", np.zeros(size, np.uint8))
    assert list(delivery.offsets_of([record])) == [24 if knows_places and size == 1 << 20 else 0]
    delivery.close([])


def test_copies_live_as_long_as_their_owners() -> None:
    """Their memory is used again when nobody holds them."""
    graph = chain(1, 3).graph
    delivery = Delivery(Tally(), 1 << 20)
    round_ = delivery.begin([], 0, 0)
    data = np.arange(3, dtype=np.float32)
    records = [
        TensorRecord("Op", "a", 0, 0, 1, "output", slot, "float32", data, key=TensorKey(slot, 0)) for slot in (0, 1)
    ]
    safe, held = delivery.staged(round_, GraphMemory(graph, graph.op_infos()), records)
    assert len(held) == 2 and delivery.staging.held_bytes == 2 * data.nbytes
    assert not any(np.shares_memory(record.data, data) for record in safe)
    held.clear()
    assert delivery.staging.held_bytes == 0
    delivery.end(round_)
    delivery.close([])


def test_a_dump_keeps_the_first_error() -> None:
    tally = Tally()
    assert tally.fail(WriteError("first")) and not tally.fail(WriteError("second"))
    assert tally.error == "first"
    tally = Tally()
    for text in ("first", "second"):
        with tally.stop_on_failure(2):
            raise WriteError(text)
    assert (tally.error, tally.lost) == ("first", 4)


def test_what_was_written_before_a_failure_is_not_lost_and_what_a_writer_lost_is() -> None:
    tally = Tally()
    with tally.stop_on_failure(5) as attempt:
        attempt.count_written(3)
        raise WriteError("no", unwritten=2)
    assert (tally.tensors_written, tally.lost) == (1, 4)


def test_waiting_jobs_run_in_their_order_and_followers_before_them() -> None:
    pool, gate, order = WriterPool(1), threading.Event(), list[str]()

    def job(name: str) -> Job:
        return Job(1, 1, lambda: order.append(name))

    first = Job(1, 1, lambda: order.append("first") if gate.wait(60) else None)
    pool.submit(first)
    second = job("second")
    pool.submit(second)
    for name in ("third", "fourth", "fifth"):
        pool.submit(job(name))
    for name in ("after first", "after first too"):
        pool.submit(job(name), first)
    pool.submit(job("after second"), second)
    gate.set()
    pool.close()
    followed = ["first", "after first", "after first too", "second", "after second"]
    assert order == [*followed, "third", "fourth", "fifth"]


# -- what counts ------------------------------------------------------------------------------------------------------


def test_losses_of_several_deliveries_add_up() -> None:
    """Counting again adds nothing."""
    tally = Tally()
    deliveries = [Delivery(tally, 1 << 20) for _ in range(2)]
    for delivery, lost in zip(deliveries, (2, 3), strict=True):
        delivery.lose(lost)
        delivery.pool.submit(Job(1, 5, lambda: None))
    for delivery in deliveries * 2:
        delivery.pool.drain()
        delivery.count()
    assert (tally.lost, tally.tensors_written) == (5, 10)
    deliveries[0].lose(4)
    for delivery in deliveries:
        delivery.close([])
    assert (tally.lost, tally.tensors_written) == (9, 10)


def breaking(executor: Executor, index: int) -> Executor:
    """Let an operator raise when it reads a negative number."""
    launch = executor.launches[index]

    def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
        if inputs[0].flat[0] < 0:
            raise ZeroDivisionError
        launch.kernel(inputs, attrs, out)

    executor.launches[index] = replace(launch, kernel=kernel)
    return executor


def run_three_of_which_one_breaks(executor: Executor, shape: tuple[int, ...], dtype: type[np.generic]) -> None:
    for iteration, value in enumerate((-1, 1, -1)):
        # The second operator reads what the first one negated.
        arrays = [np.full(shape, value, dtype)]
        if value > 0:
            with pytest.raises(ZeroDivisionError):
                executor.run(arrays, iteration)
        else:
            executor.run(arrays, iteration)


def test_a_step_that_broke_off_does_not_count_as_dumped() -> None:
    tally, writer = Tally(), MemoryWriter()
    dumper = AsyncDumper(plain_plan(), [writer], tally, 1 << 20)
    run_three_of_which_one_breaks(breaking(Executor(chain(3, 4).graph, [dumper]), 1), (4,), np.float32)
    dumper.close()
    assert {record.iteration for record in writer.records} == {0, 1, 2}  # what ran before is there
    assert (tally.iterations_run, tally.iterations_dumped, tally.error) == (3, 2, "")


def test_a_run_of_a_model_that_broke_off_does_not_count_as_dumped(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump")
    observers: Sequence[Observer] = dump.observe_model(1, ["net"])
    executor = breaking(Executor(acl_chain("Neg", "Neg"), observers), 1)
    run_three_of_which_one_breaks(executor, (2, 3), np.float16)
    dump.close()
    assert (dump.report().iterations_run, dump.report().iterations_dumped) == (3, 2)


def test_nothing_is_read_any_more_when_a_step_has_failed_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One batch fails while another is being written: the step goes on, and overwrites its memory, only after both."""
    is_waited_for, has_ended = threading.Event(), threading.Event()
    fails, calls = threading.Event(), itertools.count()

    class Writer(MemoryWriter):
        def write(self, records: Sequence[TensorRecord]) -> None:
            if next(calls) == 0:
                assert fails.wait(60)
                raise WriteError("no room")
            fails.set()
            if is_waited_for.wait(60):
                has_ended.set()

    original = sync_module.wait

    def wait(jobs: object) -> object:
        is_waited_for.set()
        return original(jobs)  # type: ignore[arg-type]

    monkeypatch.setattr(sync_module, "wait", wait)
    case, tally = chain(2, 2 << 20), Tally()
    paths = SyncPaths(tmp_path, 0, "Net")
    dumper = SyncDumper(plain_plan(), paths, [Writer()], MemoryWriter(), tally)
    Executor(case.graph, [dumper]).run(case.inputs, 0)
    assert tally.error == "no room"
    assert has_ended.is_set()
    dumper.close()


# -- the memory of what waits -----------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from([1, 16, 17, 20, 40]), st.integers(0, 3)), max_size=30), st.integers(60, 130))
def test_buffers_that_are_used_again_count_in_the_budget(steps: list[tuple[int, int]], budget_pages: int) -> None:
    """Copies that live and buffers that are kept for later take no more than the budget, whatever their sizes."""
    staging = Staging(budget_pages * PAGE)
    alive: list[Staged] = []
    for number, (pages, drops) in enumerate(steps):
        array = np.zeros(pages * PAGE, np.uint8)
        del alive[: min(drops, len(alive))]
        while alive and staging.held_bytes + staged_size(array) > budget_pages * PAGE:
            del alive[0]
        staging.reserve(staged_size(array))
        alive.append(staging.stage(number, array))
        kept = sum(size * len(buffers) for size, buffers in staging._free.items())
        assert staging.free_bytes() == kept
        assert staging.held_bytes == sum(each.size_bytes for each in alive)
        assert staging.held_bytes + kept <= staging.peak_bytes <= budget_pages * PAGE
    alive.clear()
    assert staging.held_bytes == 0
    assert staging.free_bytes() <= budget_pages * PAGE


def test_a_buffer_is_used_again() -> None:
    staging = Staging(1 << 20)
    array = np.arange(1 << 15, dtype=np.float64)
    first = staging.stage("first", array).array.ctypes.data
    again = staging.stage("second", array)
    assert again.array.ctypes.data == first
    assert staging.peak_bytes == again.size_bytes


def test_a_buffer_is_not_kept_when_values_that_need_no_copy_take_the_budget() -> None:
    staging = Staging(50 * PAGE)
    first, second = (staging.stage(name, np.zeros(18 * PAGE, np.uint8)) for name in "ab")
    del first
    held = staging.hold("c", np.zeros(28 * PAGE, np.uint8))
    del second
    assert staging.held_bytes == held.size_bytes == 30 * PAGE
    assert staging.held_bytes + staging.free_bytes() == 50 * PAGE


class Recorder:
    """Writer that keeps the names of what it gets, one list for each call."""

    writes_once = True
    takes_empty = True
    counts = WriteCounts()

    def __init__(self, failing: str = "") -> None:
        self.calls: list[list[str]] = []
        self.ended: list[tuple[int, int]] = []
        self._failing = failing
        self._lock = threading.Lock()

    def write(self, records: Sequence[TensorRecord]) -> None:
        names = [record.op_name for record in records]
        if self._failing in names:
            raise WriteError(f"{self._failing}: no.")
        with self._lock:
            self.calls.append(names)

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        self.ended.append((graph_id, iteration))

    def close(self) -> None: ...

    @property
    def names(self) -> list[str]:
        return [name for call in self.calls for name in call]


def record(name: str, data: Array, number: int = 0, is_repeat: bool = False) -> TensorRecord:
    key = TensorKey(number, 0)
    return TensorRecord("Op", name, 0, 0, 1, "output", 0, "float32", data, key=key, is_repeat=is_repeat)


def made(writer: Recorder, turn_bytes: int) -> tuple[Delivery, Turns]:
    delivery = Delivery(Tally(), 1 << 30)
    return delivery, Turns(delivery, turn_bytes)


def one_and_its_repeat(writer: Recorder) -> tuple[Delivery, Turns]:
    """A tensor and a record that repeats it wait."""
    delivery, turns = made(writer, 1 << 20)
    turns.make_room(delivery.begin([writer], 0, 0), 4)
    turns.add([record("a", np.zeros(1, np.float32))], [])
    turns.add_repeat(record("again", np.zeros(1, np.float32), is_repeat=True))
    return delivery, turns


def test_a_turn_ends_when_it_is_full_and_repeats_come_last() -> None:
    writer = Recorder()
    delivery, turns = made(writer, 100)
    round_ = delivery.begin([writer], 0, 0)
    for name, size in (("a", 60), ("b", 40), ("c", 4)):
        turns.make_room(round_, size)
        if name == "c":
            # Nobody but the step ends a turn: all is written when it goes on.
            assert sorted(writer.names[:2]) == ["a", "b"]
            assert writer.names[2:] == ["a again"]
        turns.add([record(name, np.zeros(size // 4, np.float32))], [])
        if name == "b":
            turns.add_repeat(record("a again", np.zeros(1, np.float32), is_repeat=True))
    assert "c" not in writer.names
    turns.end()
    turns.end()
    assert writer.names.count("c") == 1
    delivery.end(round_, is_complete=True)
    delivery.close([writer])
    assert writer.ended == [(0, 0)]


def test_a_tensor_larger_than_a_turn_goes_alone() -> None:
    writer = Recorder()
    delivery, turns = made(writer, 16)
    round_ = delivery.begin([writer], 0, 0)
    for name in ("a", "b"):
        turns.make_room(round_, 4000)
        turns.add([record(name, np.zeros(1000, np.float32))], [])
    assert writer.names == ["a"]
    turns.end()
    assert writer.names == ["a", "b"]
    delivery.close([writer])


def test_another_round_ends_the_turn() -> None:
    first, second = Recorder(), Recorder()
    delivery, turns = made(first, 1 << 20)
    rounds = [delivery.begin([writer], at, 0) for at, writer in enumerate((first, second))]
    for at, round_ in enumerate(rounds):
        turns.make_room(round_, 4)
        turns.add([record(str(at), np.zeros(1, np.float32))], [])
    assert (first.names, second.names) == (["0"], [])
    turns.end()
    assert (first.names, second.names) == (["0"], ["1"])
    delivery.close([])


def test_tensors_that_fill_one_memory_come_together() -> None:
    writer = Recorder()
    delivery, turns = made(writer, 1 << 30)
    round_ = delivery.begin([writer], 0, 0)
    memory = np.zeros((1 << 10, 1 << 10), np.float32)
    others = [np.zeros(1 << 20, np.float32) for _ in range(3)]
    for number, (name, data) in enumerate([("m", memory), *zip("xyz", others, strict=True), ("m.T", memory.T)]):
        turns.make_room(round_, data.nbytes)
        turns.add([record(name, data, number)], [])
    turns.end()
    assert ["m", "m.T"] in writer.calls
    assert len(writer.calls) == 4
    delivery.close([writer])


@given(st.lists(st.sampled_from([0, 1, 64, TINY_BYTES, TINY_BYTES + 1, 1 << 20]), max_size=30))
def test_batches_hold_each_record_once_and_the_tiny_ones_together(sizes: list[int]) -> None:
    made = [
        TensorRecord("Mul", f"Mul-op{number}", 0, 0, number, "output", 0, "uint8", np.zeros(size, np.uint8))
        for number, size in enumerate(sizes)
    ]
    found = list(batches(made))
    assert sorted(record.timestamp_us for batch in found for record in batch) == list(range(len(made)))
    tiny = [record for record in made if record.size_bytes <= TINY_BYTES]
    assert not tiny or found[0] == tiny
    assert all(batch for batch in found)


def test_what_is_lost_is_counted_and_never_read() -> None:
    writer = Recorder()
    delivery, turns = one_and_its_repeat(writer)
    turns.lose()
    turns.end()
    delivery.close([writer])
    assert writer.calls == []
    assert delivery.tally.lost == 2


@pytest.mark.parametrize("failing", ["a", "again"])
def test_a_failure_stops_the_dump_and_counts(failing: str) -> None:
    writer = Recorder(failing)
    delivery, turns = one_and_its_repeat(writer)
    turns.end()
    assert delivery.has_stopped()
    delivery.close([writer])
    assert delivery.tally.lost == (2 if failing == "a" else 1)
    assert delivery.tally.error == f"{failing}: no."
