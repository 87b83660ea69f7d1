"""Limits of the disk: never passed, said once, and never at the cost of a result or of somebody else's file."""

from __future__ import annotations

import logging
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from msdump.config.environment import BUDGET, FLOOR, KEEP, DiskLimits, disk_limits, format_size, parse_size
from msdump.dumpers.limits import (
    ACL_STATS_FOOTPRINT,
    BIN_FOOTPRINT,
    NPY_FOOTPRINT,
    STATISTIC_FOOTPRINT,
    DiskGuard,
    DiskUsage,
    LimitedWriter,
    bin_size,
    device_npy_size,
    disk_usage,
    npy_size,
    row_size,
    space_below,
    space_rows,
    why_not_writable,
)
from msdump.dumpers.overflow import OverflowDumper
from msdump.dumpers.tally import Tally
from msdump.errors import ConfigError, WriteError
from msdump.formats.bin import BinWriter
from msdump.formats.npy import NpyWriter
from msdump.formats.npy_reader import read_npy
from msdump.formats.statistic_csv import StatisticWriter, read_statistic_csv
from msdump.formats.writer import Writer
from msdump.graph.graph import Graph
from msdump.graph.primitive import Primitive
from msdump.graph.types import TensorType
from msdump.mindspore.program.compile import finish
from msdump.mindspore.program.executor import Executor
from msdump.mindspore.program.graph_cases import GraphCase, graphs
from msdump.tensors import device_layouts
from msdump.tensors.records import TensorRecord
from msdump.testing import records
from tests.contracts.writer_contract import record
from tests.dumpers.disk_limits import (
    GB,
    Disk,
    async_dumper,
    by_iteration,
    disk_bytes,
    limited,
    open_guard,
    plain,
    run,
    sync_dumper,
)
from tests.dumpers.memory_writer import MemoryWriter
from tests.dumpers.test_overflow import square_graph
from tests.plans import plain_plan

# -- budget --------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(1, 60_000), st.integers(0, 3))
def test_a_budget_is_never_passed_and_nothing_on_disk_is_cut(case: GraphCase, budget: int, threads: int) -> None:
    expected = plain(case, 3)
    with tempfile.TemporaryDirectory() as name:
        root, tally = Path(name) / "dump", Tally()
        guard = open_guard(root, budget_bytes=budget)
        writers = limited(root, guard)
        dumper = async_dumper(writers, tally, threads) if threads else sync_dumper(root, writers, tally)
        assert run(case, dumper, 3) == expected
        assert disk_bytes(root) <= budget
        assert guard.used_bytes == sum(writer.counts.bytes_written for writer in writers)
        for path in root.rglob("*.npy"):
            read_npy(path)
        for path in root.rglob("statistic.csv"):
            read_statistic_csv(path)
        if tally.error:
            assert BUDGET in tally.error and tally.lost > 0
        else:
            assert tally.iterations_dumped == 3 and tally.lost == 0


def constant_case() -> GraphCase:
    """One constant and one operator that reads it: a step of one batch, in which no tensor comes twice."""
    graph = Graph()
    constant = graph.add_constant(np.zeros((3, 4), np.float32), "float32")
    graph.outputs = list(graph.add_node(Primitive("Neg"), [constant], "Default").outputs)
    return GraphCase(finish(graph), [], {})


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(0, 3))
@example(constant_case(), 1)
def test_what_a_step_lacks_is_counted_whatever_came_before(case: GraphCase, fails_at: int) -> None:
    """Also beside constants, which are written before the step's own records."""
    with tempfile.TemporaryDirectory() as name:
        whole, cut, plain_tally, tally = MemoryWriter(), MemoryWriter(fails_at), Tally(), Tally()
        run(case, sync_dumper(Path(name) / "a" / "dump", [whole], plain_tally), 1)
        run(case, sync_dumper(Path(name) / "b" / "dump", [cut], tally), 1)
        missing = len(whole.records) - len(cut.records)
        assert bool(tally.error) == (missing > 0)
        assert missing <= tally.lost <= missing + plain_tally.skipped["empty tensor"]


def test_nothing_more_to_write_is_never_too_much(tmp_path: Path) -> None:
    guard = open_guard(tmp_path, budget_bytes=10)
    guard.reserve(10)
    guard.reserve(0)
    with pytest.raises(WriteError, match=r"at most 10 bytes .* got 10 and 1 more"):
        guard.reserve(1)


@settings(max_examples=20, deadline=None)
@given(graphs())
def test_a_budget_that_fits_exactly_is_enough(case: GraphCase) -> None:
    with tempfile.TemporaryDirectory() as name:
        first, second = Path(name) / "a" / "dump", Path(name) / "b" / "dump"
        free = NpyWriter(by_iteration(first))
        run(case, sync_dumper(first, [free], Tally()), 2)
        needed = free.counts.bytes_written
        for budget, is_enough in ((needed, True), (needed - 1, False)):
            tally = Tally()
            root = second / str(budget)
            guard = open_guard(root, budget_bytes=budget)
            run(case, sync_dumper(root, [LimitedWriter(NpyWriter(by_iteration(root)), guard, NPY_FOOTPRINT)], tally), 2)
            assert bool(tally.error) != is_enough


@settings(max_examples=40, deadline=None)
@given(records(is_hostile=False))
def test_sizes_are_never_too_small(batch: list[TensorRecord]) -> None:
    for size_of, is_exact in ((npy_size, True), (bin_size, False), (row_size, False)):
        with tempfile.TemporaryDirectory() as name:
            folder = by_iteration(Path(name))
            writer: Writer
            for each in batch:
                writer = {npy_size: NpyWriter, bin_size: BinWriter, row_size: StatisticWriter}[size_of](folder)
                writer.write([each])
                writer.close()
                taken = writer.counts.bytes_written
                # A table has a header, which is written with its first row.
                assert taken == size_of(each) if is_exact else taken <= size_of(each)


@pytest.mark.parametrize("device_format", ["NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ"])
def test_padding_of_device_formats_counts(tmp_path: Path, device_format: str) -> None:
    each = record(data=np.ones((3, 3, 5, 5), np.float16), dtype="float16", format=device_format)
    writer = BinWriter(by_iteration(tmp_path))
    writer.write([each])
    assert each.data.nbytes < writer.counts.bytes_written <= bin_size(each)


@pytest.mark.parametrize("device_format", ["NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ", "DefaultFormat"])
def test_padding_counts_in_npy_files_too_and_a_repeat_is_no_file(device_format: str) -> None:
    each = record(data=np.ones((3, 3, 5, 5), np.float16), dtype="float16", format=device_format)
    padded = (
        device_layouts.to_device(each.data, device_format, device_layouts.cube_size(each.dtype))
        if device_format != "DefaultFormat"
        else each.data
    )
    assert npy_size(each) - each.data.nbytes + padded.nbytes <= device_npy_size(each)
    assert device_npy_size(each) - npy_size(each) < padded.nbytes - each.data.nbytes + 4096
    assert npy_size(each, True) == device_npy_size(each, True) == 0


@settings(max_examples=50)
@given(records())
def test_sizes_that_are_said_to_be_alike_are(batch: list[TensorRecord]) -> None:
    for footprint in (BIN_FOOTPRINT, ACL_STATS_FOOTPRINT, STATISTIC_FOOTPRINT):
        assert footprint.are_repeats_alike
        assert all(footprint.size_of(each, True) == footprint.size_of(each, False) for each in batch)
    assert not NPY_FOOTPRINT.are_repeats_alike


def test_links_cost_nothing(tmp_path: Path) -> None:
    from msdump.tensors.records import TensorKey

    guard = open_guard(tmp_path, budget_bytes=400)
    writer = LimitedWriter(NpyWriter(by_iteration(tmp_path)), guard, NPY_FOOTPRINT)
    data = np.ones(50, np.float32)
    for number in range(5):
        writer.write([record(number, data=data, key=TensorKey(1, 0))])
    assert (writer.counts.files, writer.counts.links) == (1, 4)
    with pytest.raises(WriteError, match=BUDGET):
        writer.write([record(5, data=data, key=TensorKey(2, 0))])
    writer.end_iteration(0, 0)
    with pytest.raises(WriteError, match=BUDGET):
        writer.write([record(6, data=data, key=TensorKey(1, 0), iteration=1)])


def test_an_operator_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    guard = open_guard(tmp_path, budget_bytes=1000)
    writer = LimitedWriter(NpyWriter(by_iteration(tmp_path)), guard, NPY_FOOTPRINT)
    with pytest.raises(WriteError):
        writer.write([record(number, data=np.ones(100, np.float32)) for number in range(3)])
    assert writer.counts.files == 0 and not list(tmp_path.rglob("*.npy"))


# -- floor ---------------------------------------------------------------------------------------------------------


def test_the_floor_is_left_to_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = Disk(free=1000 + 4096)
    guard = open_guard(tmp_path, disk, floor_bytes=4096)
    tally = Tally()
    half = TensorType("float16", (2,))
    writer = LimitedWriter(NpyWriter(by_iteration(tmp_path)), guard, NPY_FOOTPRINT)
    dumper = OverflowDumper(plain_plan(op_debug_mode=3), [writer], MemoryWriter(), tally)
    executor = Executor(square_graph(half), (dumper,))
    with np.errstate(all="ignore"), caplog.at_level(logging.ERROR, "msdump"):
        executor.run([np.array([1, 300], np.float16)], 0)
        assert writer.counts.files == 2
        disk.free = 4096 + 100
        for iteration in range(1, 4):
            executor.run([np.array([1, 300], np.float16)], iteration)
    assert writer.counts.files == 2
    assert len(caplog.records) == 1 and FLOOR in caplog.text and FLOOR in tally.error


@pytest.mark.parametrize(("total", "floor"), [(1000 * GB, 64 << 20), (100_000_000, 5_000_000), (0, 0)])
def test_the_default_floor_is_small_on_small_disks(tmp_path: Path, total: int, floor: int) -> None:
    disk = Disk(total=total, free=floor + 10)
    guard = open_guard(tmp_path, disk)
    guard.reserve(10)
    guard.release(10)
    with pytest.raises(WriteError, match=FLOOR):
        guard.reserve(11)


def test_room_that_others_hold_counts(tmp_path: Path) -> None:
    guard = open_guard(tmp_path, Disk(free=1000), floor_bytes=400, budget_bytes=700)
    guard.reserve(300)
    with pytest.raises(WriteError, match=FLOOR):
        guard.reserve(301)
    guard.release(300)
    guard.reserve(600)
    with pytest.raises(WriteError, match=BUDGET):
        guard.reserve(101)


def test_without_a_floor_the_disk_is_not_asked(tmp_path: Path) -> None:
    def refuse(path: Path) -> DiskUsage:
        raise AssertionError(path)

    guard = DiskGuard(tmp_path, DiskLimits(floor_bytes=0), refuse)
    guard.reserve(1 << 60)
    assert guard.used_bytes == 0


def test_a_folder_that_is_not_there_yet_is_asked_through_its_parent(tmp_path: Path) -> None:
    assert disk_usage(tmp_path / "a" / "b").total == disk_usage(tmp_path).total


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real disk of one MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True)
    except OSError:
        pytest.skip("no mount command here")
    if done.returncode:
        pytest.skip("this user may not mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("has_floor", [True, False])
@pytest.mark.parametrize("threads", [0, 2])
def test_a_disk_that_fills_up(small_disk: Path, tmp_path: Path, has_floor: bool, threads: int) -> None:
    root, tally = small_disk / "dump", Tally()
    guard = DiskGuard(root, DiskLimits(floor_bytes=200_000 if has_floor else 0))
    folder = by_iteration(root)
    writers: list[Writer] = [LimitedWriter(NpyWriter(folder), guard, NPY_FOOTPRINT, folder)]
    case_graph = square_graph(*[TensorType("float32", (10_000,))] * 3)
    dumper = async_dumper(writers, tally, threads) if threads else sync_dumper(tmp_path / "x", writers, tally)
    executor = Executor(case_graph, (dumper,))
    for iteration in range(20):
        outputs = executor.run([np.full(10_000, 3.0, np.float32)] * 3, iteration)
        assert float(outputs[0][0]) == 9.0
    dumper.close()
    assert (FLOOR in tally.error) is has_floor
    assert tally.error and tally.iterations_run == 20
    free = disk_usage(small_disk).free
    assert free >= 200_000 if has_floor else free < 200_000
    for path in root.rglob("*.npy"):
        assert read_npy(path).shape == (10_000,)


# -- configuration -------------------------------------------------------------------------------------------------


def test_limits_come_from_the_environment() -> None:
    assert disk_limits({}) == disk_limits({BUDGET: "", FLOOR: " ", KEEP: ""}) == DiskLimits()
    environ = {BUDGET: "2G", FLOOR: "0", KEEP: "3"}
    assert disk_limits(environ) == DiskLimits(2 * GB, 0, 3)


@pytest.mark.parametrize(
    ("name", "value"),
    [(BUDGET, "0"), (BUDGET, "much"), (BUDGET, "-1"), (FLOOR, "1.5G"), (FLOOR, "-5"), (KEEP, "0"), (KEEP, "all")],
)
def test_a_wrong_value_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"environment variable {name}: expected .*{value}"):
        disk_limits({name: value})


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 10**6), st.sampled_from(["", "K", "kb", "MiB", "G", "TB"]))
def test_sizes_count_in_steps_of_1024(number: int, unit: str) -> None:
    power = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}[unit[:1].lower()]
    assert parse_size("X", f" {number} {unit} ") == number * 1024**power


def test_sizes_in_messages() -> None:
    assert [format_size(size) for size in (0, 1023, 1536, 64 << 20, 5 << 40)] == [
        "0 B", "1023 B", "1.5 KiB", "64 MiB", "5 TiB"
    ]  # fmt: skip


@example(free=0, budget=None, floor=0)
@given(
    free=st.integers(0, 2**40),
    budget=st.none() | st.integers(1, 2**40),
    floor=st.none() | st.integers(0, 2**40),
)
def test_room_is_what_the_limits_leave(free: int, budget: int | None, floor: int | None) -> None:
    environ = {"MSDUMP_DISK_BUDGET": str(budget or ""), "MSDUMP_DISK_FLOOR": "" if floor is None else str(floor)}
    folder = Path(tempfile.gettempdir())
    space = space_below(folder, False, environ, lambda _: SimpleNamespace(free=free, total=2**41))
    left = max(0, free - (64 << 20 if floor is None else floor))
    assert space.writable_bytes == (left if budget is None else min(left, budget))
    assert space.buffer_bytes is None and len(space_rows(space)) == 2
    assert ("expected room for files" in space.problem) == (space.writable_bytes == 0)


def test_every_limit_is_told_with_its_variable() -> None:
    def limits(**environ: str) -> str:
        return space_rows(space_below(Path("/"), False, environ, lambda _: SimpleNamespace(free=9, total=9)))[0][1]

    assert limits(MSDUMP_DISK_FLOOR="0", MSDUMP_KEEP_ITERATIONS="2") == (
        "no budget (MSDUMP_DISK_BUDGET); the disk may fill up (MSDUMP_DISK_FLOOR); "
        "the last 2 iterations are kept (MSDUMP_KEEP_ITERATIONS)"
    )
    assert limits(MSDUMP_DISK_FLOOR="1M", MSDUMP_DISK_BUDGET="1K", MSDUMP_KEEP_ITERATIONS="1") == (
        "at most 1 KiB in all (MSDUMP_DISK_BUDGET); 1 MiB of the disk stay free (MSDUMP_DISK_FLOOR); "
        "the last iteration is kept (MSDUMP_KEEP_ITERATIONS)"
    )


def test_the_asynchronous_engine_has_a_buffer_as_well() -> None:
    space = space_below(Path("/"), True, {"MSDUMP_ASYNC_BUFFER": "3M"})
    assert space_rows(space)[-1] == ("buffer", "3 MiB of memory for what waits (MSDUMP_ASYNC_BUFFER)")
    with pytest.raises(ConfigError, match="MSDUMP_ASYNC_BUFFER"):
        space_below(Path("/"), True, {"MSDUMP_ASYNC_BUFFER": "much"})


def test_folders_that_cannot_be_made(tmp_path: Path) -> None:
    assert why_not_writable(tmp_path) == why_not_writable(tmp_path / "new" / "folder") == ""
    (tmp_path / "file").write_text("")
    assert "it is a file" in why_not_writable(tmp_path / "file")
    assert f"{tmp_path}/file above it is a file" in why_not_writable(tmp_path / "file" / "below")
    longest = os.pathconf(tmp_path, "PC_NAME_MAX")
    assert why_not_writable(tmp_path / ("x" * longest)) == ""
    assert "expected names of at most" in why_not_writable(tmp_path / ("x" * (longest + 1)))
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "is not writable" in why_not_writable(tmp_path / "new")
    tmp_path.chmod(0o700)


def test_folders_of_one_dump_share_its_budget(tmp_path: Path) -> None:
    first = DiskGuard(tmp_path / "a", DiskLimits(budget_bytes=100, floor_bytes=0, keep_iterations=1))
    second = first.beside(tmp_path / "b")
    first.reserve(60)
    with pytest.raises(WriteError, match=r"b: expected at most 100 bytes of dump .* got 60 and 50 more"):
        second.reserve(50)
    second.reserve(40)
    first.release(60)
    second.release(40)
    assert first.used_bytes == second.used_bytes == 0
    assert first.rotation is not second.rotation
