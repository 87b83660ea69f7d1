"""The last iterations of a dump stay whole, the older ones go, and files of others are never touched."""

from __future__ import annotations

import errno
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.dumpers.limits import (
    BIN_FOOTPRINT,
    NPY_FOOTPRINT,
    LimitedWriter,
)
from msdump.dumpers.overflow import OverflowDumper
from msdump.dumpers.rotation import Rotation, names_of
from msdump.dumpers.tally import Tally
from msdump.errors import WriteError
from msdump.formats.bin import BinWriter
from msdump.formats.npy import NpyWriter
from msdump.formats.opdebug import OpdebugJsonWriter
from msdump.formats.statistic_csv import read_statistic_csv
from msdump.formats.writer import Writer
from msdump.graph.types import TensorType
from msdump.mindspore.program.executor import Executor
from msdump.mindspore.program.graph_cases import GraphCase, graphs
from msdump.tensors.records import TensorRecord
from tests.contracts.writer_contract import record
from tests.dumpers.disk_limits import (
    async_dumper,
    by_iteration,
    disk_bytes,
    limited,
    open_guard,
    run,
    sync_dumper,
    tensors,
)
from tests.dumpers.test_overflow import square_graph
from tests.plans import plain_plan


@settings(max_examples=30, deadline=None)
@given(graphs(), st.integers(1, 3), st.integers(1, 5), st.integers(0, 3))
def test_the_last_iterations_stay_whole(case: GraphCase, keep: int, iterations: int, threads: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        everything, root = Path(name) / "all" / "dump", Path(name) / "some" / "dump"
        run(case, sync_dumper(everything, [NpyWriter(by_iteration(everything))], Tally()), iterations)
        tally = Tally()
        guard = open_guard(root, keep_iterations=keep)
        writers = limited(root, guard)
        run(case, async_dumper(writers, tally, threads) if threads else sync_dumper(root, writers, tally), iterations)
        assert not tally.error
        left = sorted(int(path.name) for path in (root / "Net/0").iterdir())
        assert left == list(range(max(0, iterations - keep), iterations))
        for iteration in left:
            found = tensors(root / "Net/0" / str(iteration))
            assert found == tensors(everything / "Net/0" / str(iteration))
            assert len(read_statistic_csv(root / "Net/0" / str(iteration) / "statistic.csv")) == len(found)
        assert guard.used_bytes == disk_bytes(root)


def test_iterations_that_threads_begin_in_another_order(tmp_path: Path) -> None:
    rotation = Rotation(tmp_path, 1)
    rotation.join("writer")
    for graph_id, iteration in ((0, 4), (1, 0), (0, 3)):
        folder = tmp_path / f"Net/{graph_id}/{iteration}"
        folder.mkdir(parents=True)
        rotation.expect(folder, ["a.npy"], graph_id, iteration)
        (folder / "a.npy").touch()
    rotation.end("writer", 0, 4)
    rotation.end("writer", 0, 3)
    assert [path.name for path in (tmp_path / "Net/0").iterdir()] == ["4"]


def test_a_budget_counts_what_is_on_disk_now(tmp_path: Path) -> None:
    guard = open_guard(tmp_path, keep_iterations=1, budget_bytes=1500)
    folder = by_iteration(tmp_path)
    writer = LimitedWriter(NpyWriter(folder), guard, NPY_FOOTPRINT, folder)
    for iteration in range(10):
        writer.write([record(data=np.ones(100, np.float32), iteration=iteration, timestamp_us=iteration)])
        writer.end_iteration(0, iteration)
    assert writer.counts.bytes_written == 10 * 528
    assert guard.used_bytes == 528


def write_and_end(writer: Writer, iteration: int, **changes: object) -> None:
    stamp = 1_700_000_000_000_000 + iteration
    writer.write([replace(record(iteration=iteration, timestamp_us=stamp), **changes)])  # type: ignore[arg-type]
    writer.end_iteration(0, iteration)


@pytest.mark.parametrize("kind", [NpyWriter, BinWriter])
def test_files_of_others_stay(tmp_path: Path, kind: type[NpyWriter] | type[BinWriter]) -> None:
    folder = by_iteration(tmp_path)
    writer = LimitedWriter(kind(folder), open_guard(tmp_path, keep_iterations=1), NPY_FOOTPRINT, folder)
    foreign = tmp_path / "Net/0/0"
    foreign.mkdir(parents=True)
    for name in ("statistic.csv", "note.txt", "ReLU.ReLU-op0.0.0.1699999999999999.output.0.DefaultFormat.npy"):
        (foreign / name).write_text("theirs")
    write_and_end(writer, 0)
    later = foreign / "ReLU.ReLU-op0.0.0.1700000000000009.output.0.DefaultFormat.npy"
    later.write_text("theirs")
    write_and_end(writer, 1)
    assert sorted(path.name for path in foreign.iterdir()) == sorted(
        ["statistic.csv", "note.txt", "ReLU.ReLU-op0.0.0.1699999999999999.output.0.DefaultFormat.npy", later.name]
    )
    assert {path.read_text() for path in foreign.iterdir()} == {"theirs"}
    assert len(list((tmp_path / "Net/0/1").iterdir())) == 1


@pytest.mark.parametrize("kind", [NpyWriter, BinWriter])
def test_shortened_names_go_with_their_table(tmp_path: Path, kind: type[NpyWriter] | type[BinWriter]) -> None:
    folder = by_iteration(tmp_path)
    writer = LimitedWriter(kind(folder), open_guard(tmp_path, keep_iterations=1), NPY_FOOTPRINT, folder)
    for iteration in range(3):
        write_and_end(writer, iteration, op_name="Default/" + "x" * 300)
        assert (folder(record(iteration=iteration)) / "mapping.csv").is_file()
    assert [path.name for path in (tmp_path / "Net/0").iterdir()] == ["2"]


def test_empty_folders_of_a_step_go_up_to_the_root(tmp_path: Path) -> None:
    root = tmp_path / "dump"

    def directory(each: TensorRecord) -> Path:
        return root / str(each.iteration) / "20240101000000" / "0" / "net" / "1" / "0"

    writer = LimitedWriter(BinWriter(directory), open_guard(root, keep_iterations=2), BIN_FOOTPRINT, directory)
    for iteration in range(5):
        write_and_end(writer, iteration)
    assert sorted(path.name for path in root.iterdir()) == ["3", "4"]
    assert len(list(root.rglob("ReLU*"))) == 2


def test_a_folder_that_iterations_share_loses_only_old_files(tmp_path: Path) -> None:
    writer = LimitedWriter(
        NpyWriter(lambda _: tmp_path), open_guard(tmp_path, keep_iterations=1), NPY_FOOTPRINT, lambda _: tmp_path
    )
    for iteration in range(4):
        write_and_end(writer, iteration)
    assert [path.name.split(".")[4] for path in tmp_path.iterdir()] == ["1700000000000003"]


def test_overflow_files_go_with_their_iteration(tmp_path: Path) -> None:
    folder = by_iteration(tmp_path)
    guard = open_guard(tmp_path, keep_iterations=1)
    tensor_writer = LimitedWriter(NpyWriter(folder), guard, NPY_FOOTPRINT, folder)
    debug_writer = LimitedWriter(OpdebugJsonWriter(folder), guard, NPY_FOOTPRINT, folder)
    tally = Tally()
    dumper = OverflowDumper(plain_plan(op_debug_mode=3), [tensor_writer], debug_writer, tally)
    executor = Executor(square_graph(TensorType("float16", (2,))), (dumper,))
    with np.errstate(all="ignore"):
        for iteration in range(3):
            executor.run([np.array([1, 300], np.float16)], iteration)
    assert [path.name for path in (tmp_path / "Net/0").iterdir()] == ["2"]
    assert len(list((tmp_path / "Net/0/2").glob("Opdebug*.json"))) == 1
    assert not tally.error


def test_an_iteration_is_complete_when_all_writers_have_ended_it(tmp_path: Path) -> None:
    rotation = Rotation(tmp_path, 1)
    for writer in ("a", "b"):
        rotation.join(writer)
    for iteration in range(2):
        folder = tmp_path / str(iteration)
        folder.mkdir()
        (folder / "statistic.csv").touch()
        rotation.expect(folder, names_of(record(iteration=iteration)), 0, iteration)
    for writer, iteration in (("a", 1), ("a", 0), ("b", 1)):
        rotation.end(writer, 0, iteration)
        assert (tmp_path / "0").is_dir()
    rotation.end("b", 0, 0)
    assert (tmp_path / "1").is_dir()
    # The table was there before this process looked, so it is not its own.
    assert (tmp_path / "0/statistic.csv").is_file()


def test_what_cannot_be_removed_stops_the_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = by_iteration(tmp_path)
    writer = LimitedWriter(NpyWriter(folder), open_guard(tmp_path, keep_iterations=1), NPY_FOOTPRINT, folder)
    write_and_end(writer, 0)

    def refuse(path: object, **_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr("os.unlink", refuse)
    with pytest.raises(WriteError, match="expected to remove iteration 0, got Read-only"):
        write_and_end(writer, 1)


def test_a_folder_that_somebody_removed_is_no_trouble(tmp_path: Path) -> None:
    import shutil

    folder = by_iteration(tmp_path)
    writer = LimitedWriter(NpyWriter(folder), open_guard(tmp_path, keep_iterations=1), NPY_FOOTPRINT, folder)
    write_and_end(writer, 0)
    shutil.rmtree(tmp_path / "Net/0/0")
    write_and_end(writer, 1)
    assert [path.name for path in (tmp_path / "Net/0").iterdir()] == ["1"]


def test_no_file_is_removed_through_a_link(tmp_path: Path) -> None:
    folder = by_iteration(tmp_path / "dump")
    writer = LimitedWriter(NpyWriter(folder), open_guard(tmp_path / "dump", keep_iterations=1), NPY_FOOTPRINT, folder)
    write_and_end(writer, 0)
    first = tmp_path / "dump/Net/0/0"
    first.rename(tmp_path / "elsewhere")
    first.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WriteError, match="expected to remove iteration 0, got Not a directory"):
        write_and_end(writer, 1)
    assert len(list((tmp_path / "elsewhere").iterdir())) == 1
