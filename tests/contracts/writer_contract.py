"""Cases that every writer must pass: subclass WriterContract as Test<Name>Writer and answer its questions."""

from __future__ import annotations

import functools
import itertools
import os
import stat
import tempfile
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msdump.errors import DtypeError, WriteError
from msdump.formats.writer import Writer
from msdump.tensors.records import OUTPUT, TensorKey, TensorRecord
from msdump.testing import records
from tests.contracts.failing_calls import FailingCalls

Directory = Callable[[TensorRecord], Path]
FIRST_US = 1_700_000_000_000_000


def record(index: int = 0, **changes: object) -> TensorRecord:
    plain = TensorRecord(
        "ReLU",
        f"Default/ReLU-op{index}",
        0,
        0,
        FIRST_US + index,
        OUTPUT,
        0,
        "float32",
        np.arange(6.0, dtype=np.float32),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def by_iteration(root: Path) -> Directory:
    return lambda record: root / str(record.graph_id) / str(record.iteration)


class WriterContract:
    """What holds for every writer."""

    @abstractmethod
    def open_writer(self, directory: Directory) -> Writer:
        """A new writer that puts a record into the folder that `directory` names."""

    @abstractmethod
    def count_on_disk(self, root: Path) -> int:
        """How many records the tree below `root` shows to a reader."""

    def stored_dtypes(self) -> list[str] | None:
        """Dtypes that the writer takes; None: all that MindSpore dumps."""
        return None

    # Each subclass is another test of the same name, so examples that failed in one are not kept for the others.
    @settings(
        max_examples=30,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow],
    )
    @given(st.data())
    def test_every_record_is_on_disk_and_nothing_is_elsewhere(self, data: st.DataObject) -> None:
        steps = [
            data.draw(records(self.stored_dtypes(), iteration=step, first_timestamp_us=FIRST_US + 1000 * step))
            for step in range(2)
        ]
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "inside")
            root.mkdir()
            writer = self.open_writer(by_iteration(root))
            for step in steps:
                writer.write(step)
            writer.close()
            assert os.listdir(folder) == ["inside"]
            expected = {f"0/{step}" for step, made in enumerate(steps) if made}
            found = {path.parent.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
            assert found == expected
            assert self.count_on_disk(root) == sum(map(len, steps))

    def test_writing_leaves_the_arrays_alone(self, tmp_path: Path) -> None:
        array = np.array([[1.0, np.nan], [-0.0, np.inf]], np.float32)
        before = array.tobytes()
        writer = self.open_writer(by_iteration(tmp_path))
        writer.write([record(data=array), record(1, data=array, key=TensorKey(1, 0))])
        writer.close()
        assert array.tobytes() == before

    def test_the_array_is_the_callers_again_after_write(self, tmp_path: Path) -> None:
        """Executors reuse their memory: what is overwritten later must already be on disk."""
        first, second = tmp_path / "first", tmp_path / "second"
        array = np.arange(200_000, dtype=np.float32)
        for root, is_overwritten in ((first, False), (second, True)):
            writer = self.open_writer(by_iteration(root))
            writer.write([record(data=array.copy() if is_overwritten else array)])
            if is_overwritten:
                changed = array.copy()
                writer.write([record(1, data=changed)])
                changed.fill(np.nan)
            else:
                writer.write([record(1, data=array)])
            writer.close()
        contents = [
            {path.name: path.read_bytes() for path in root.rglob("*") if path.is_file()} for root in (first, second)
        ]
        assert contents[0] == contents[1]

    def test_modes_are_exact_whatever_the_umask_is(self, tmp_path: Path) -> None:
        for umask in (0o000, 0o077, 0o777):
            root = tmp_path / f"{umask:o}"
            root.mkdir()
            old = os.umask(umask)
            try:
                writer = self.open_writer(by_iteration(root))
                writer.write([record()])
                writer.close()
            finally:
                os.umask(old)
            modes = {(path.is_dir(), stat.S_IMODE(path.lstat().st_mode)) for path in root.rglob("*")}
            assert modes == {(True, 0o700), (False, 0o400)}

    def test_counts_add_up(self, tmp_path: Path) -> None:
        writer = self.open_writer(by_iteration(tmp_path))
        writer.write([record(0, key=TensorKey(1, 0)), record(1, key=TensorKey(1, 0)), record(2)])
        writer.write([])
        writer.close()
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        inodes = {path.stat().st_ino: path.stat().st_size for path in files}
        counts = writer.counts
        assert (counts.files, counts.files + counts.links) == (len(inodes), len(files))
        assert counts.bytes_written == sum(inodes.values())
        assert counts.bytes_named == sum(path.stat().st_size for path in files)

    def test_a_file_where_a_folder_should_be(self, tmp_path: Path) -> None:
        (tmp_path / "0").write_text("in the way")
        writer = self.open_writer(by_iteration(tmp_path))
        with pytest.raises(WriteError, match=r"0: expected a folder, got a file\. Move it away"):
            writer.write([record()])
        writer.close()
        assert (tmp_path / "0").read_text() == "in the way"

    def test_a_dtype_without_array_form_is_refused(self, tmp_path: Path) -> None:
        writer = self.open_writer(by_iteration(tmp_path))
        with pytest.raises(DtypeError):
            writer.write([record(dtype="string")])
        writer.close()

    def test_close_may_be_called_twice(self, tmp_path: Path) -> None:
        writer = self.open_writer(by_iteration(tmp_path))
        writer.write([record()])
        writer.close()
        writer.close()
        assert self.count_on_disk(tmp_path) == 1

    @pytest.mark.parametrize("threads", [1, 2, 4])
    def test_several_threads_leave_what_one_leaves(self, tmp_path: Path, threads: int) -> None:
        """Neighbouring iterations overlap, operators come in any order; each iteration ends when its records did."""
        firsts, twins = zip(*[_busy_step(step) for step in range(3)], strict=True)
        roots = tmp_path / "one", tmp_path / "several"
        writers = []
        for root, count in zip(roots, (1, threads), strict=True):
            root.mkdir()
            writer = self.open_writer(by_iteration(root))
            for made in (firsts, twins):
                _in_threads(count, [functools.partial(writer.write, [item]) for step in made for item in step])
            _in_threads(count, [functools.partial(writer.end_iteration, 0, number) for number in range(3)])
            writer.close()
            writers.append(writer)
        assert self.count_on_disk(roots[1]) == self.count_on_disk(roots[0]) == sum(map(len, firsts + twins))
        contents = [
            {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
            for root in roots
        ]
        assert contents[0] == contents[1]
        assert writers[0].counts == writers[1].counts

    @pytest.mark.parametrize("threads", [2, 4])
    def test_threads_that_bring_the_same_tensor_at_once(self, tmp_path: Path, threads: int) -> None:
        """Every record is there, whoever was first; a writer may or may not have written the bytes twice."""
        writer = self.open_writer(by_iteration(tmp_path))
        made = [record(index, key=TensorKey(1, 0), data=np.arange(9000, dtype=np.float32)) for index in range(24)]
        _in_threads(threads, [functools.partial(writer.write, [item]) for item in made])
        writer.close()
        assert self.count_on_disk(tmp_path) == len(made)
        assert writer.counts.bytes_written <= writer.counts.bytes_named

    def test_repeats_need_no_data_where_a_writer_says_so(self, tmp_path: Path) -> None:
        roots = tmp_path / "whole", tmp_path / "repeated"
        for root, is_repeat in zip(roots, (False, True), strict=True):
            root.mkdir()
            writer = self.open_writer(by_iteration(root))
            if is_repeat and not writer.writes_once:
                pytest.skip("this writer needs the data of every record")
            first, second = record(0, key=TensorKey(1, 0)), record(1, key=TensorKey(1, 0))
            writer.write([first])
            if is_repeat:
                second = replace(second, data=np.broadcast_to(np.float32(0), second.shape), is_repeat=True)
            writer.write([second])
            if is_repeat:
                with pytest.raises(WriteError, match="Its first record was not written"):
                    writer.write([replace(second, key=TensorKey(2, 0))])
            writer.end_iteration(0, 0)
            writer.close()
        contents = [{path.name: path.read_bytes() for path in root.rglob("*") if path.is_file()} for root in roots]
        assert contents[0] == contents[1]

    def test_an_iteration_may_end_twice_and_without_records(self, tmp_path: Path) -> None:
        writer = self.open_writer(by_iteration(tmp_path))
        writer.end_iteration(0, 7)
        writer.write([record()])
        writer.end_iteration(0, 0)
        writer.end_iteration(0, 0)
        assert self.count_on_disk(tmp_path) == 1
        writer.write([record(1)])
        writer.close()
        assert self.count_on_disk(tmp_path) == 2

    @pytest.mark.parametrize("is_ending_only", [False, True], ids=["anywhere", "at-the-end"])
    def test_a_record_is_on_disk_or_an_error_counts_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_ending_only: bool
    ) -> None:
        """Whichever system call fails: what `write` took is there, or `unwritten` of the end says that it is not."""
        for fails_at in itertools.count():
            root = tmp_path / str(fails_at)
            root.mkdir()
            with monkeypatch.context() as patch:
                calls = FailingCalls(patch, fails_at)
                writer = self.open_writer(by_iteration(root))
                if not is_ending_only:
                    calls.start()
                taken = sum(_is_taken(writer, item) for step in range(2) for item in _busy_step(step)[0])
                calls.start()
                unwritten, has_error = _end(writer, [(0, 0)])
                calls.stop()
            on_disk = self.count_on_disk(root)
            assert taken - unwritten <= on_disk
            assert 0 <= unwritten <= taken
            assert has_error or unwritten == 0
            if not calls.has_failed:
                assert on_disk == taken == 24 and not has_error
                break

    def test_one_folder_that_fails_costs_no_other(self, tmp_path: Path) -> None:
        """Iterations are finished although one of them is in trouble."""
        writer = self.open_writer(by_iteration(tmp_path))
        for step in range(3):
            writer.write(_busy_step(step)[0])
        with pytest.MonkeyPatch.context() as patch:
            calls = FailingCalls(patch, 0)
            calls.start()
            unwritten, _ = _end(writer, [(0, 1)], is_closing=False)
        writer.close()
        assert self.count_on_disk(tmp_path) >= 36 - unwritten
        assert unwritten <= 12


def _is_taken(writer: Writer, item: TensorRecord) -> bool:
    try:
        writer.write([item])
    except WriteError:
        return False
    return True


def _end(writer: Writer, iterations: Sequence[tuple[int, int]], is_closing: bool = True) -> tuple[int, bool]:
    """End iterations, then all; the records that errors count, and whether there was an error."""
    ends: list[Callable[[], None]] = [functools.partial(writer.end_iteration, *place) for place in iterations]
    errors = []
    for end in [*ends, writer.close] if is_closing else ends:
        try:
            end()
        except WriteError as error:
            errors.append(error)
    return sum(error.unwritten for error in errors), bool(errors)


def _busy_step(step: int) -> tuple[list[TensorRecord], list[TensorRecord]]:
    """Records of one iteration, one with a name that is too long, and further records with the same tensors."""
    firsts, twins = [], []
    for index in range(12):
        name = f"Default/{'x' * (280 if index == 5 else 3)}ReLU-op{index}"
        data = np.full((3, index + 1), step * 100 + index, np.float32)
        stamp = FIRST_US + 1000 * step + index
        key = TensorKey(index, 0)
        firsts.append(record(index, op_name=name, data=data, iteration=step, key=key, timestamp_us=stamp))
        if index % 3 == 0:
            twins.append(replace(firsts[-1], op_name=f"Default/Twin-op{index}", timestamp_us=stamp + 100))
    return firsts, twins


def _in_threads(count: int, calls: Sequence[Callable[[], None]]) -> None:
    """Make the calls from several threads; the first error of any of them is raised here."""
    left = iter(calls)
    lock = threading.Lock()
    errors: list[BaseException] = []

    def work() -> None:
        while not errors:
            with lock:
                call = next(left, None)
            if call is None:
                return
            try:
                call()
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]
