"""Writers whose files go into packs leave what they leave in folders; a pack is whole, or its members are."""

from __future__ import annotations

import contextlib
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from msdump.errors import FormatError, WriteError
from msdump.formats.bin import BinWriter
from msdump.formats.dump_dir import DumpDir
from msdump.formats.npy import NpyWriter
from msdump.formats.pack import PackFolder, Packs
from msdump.formats.pack_tree import pack_tree, unpack_tree
from msdump.formats.statistic_csv import StatisticWriter
from msdump.formats.writer import WriteCounts, Writer
from msdump.storage.packs import open_pack
from msdump.tensors.records import TensorKey, TensorRecord
from msdump.testing import dump_trees, write_dump
from msdump.testing.dumps import DumpTree, assert_same_dump
from tests.contracts.writer_contract import Directory, WriterContract, by_iteration, record


class Packed:
    """A writer and its packs; closing unpacks them, so that the tests of folders hold."""

    def __init__(self, writer: Writer, packs: Packs, root: Path) -> None:
        self.writes_once, self.takes_empty = writer.writes_once, writer.takes_empty
        self._writer, self._packs, self._root = writer, packs, root

    @property
    def counts(self) -> WriteCounts:
        return self._writer.counts

    def write(self, records: Sequence[TensorRecord]) -> None:
        self._packs.write(records)
        self._writer.write(records)

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        try:
            self._writer.end_iteration(graph_id, iteration)
        finally:
            self._packs.end_iteration(graph_id, iteration)

    def close(self) -> None:
        try:
            self._writer.close()
        finally:
            self._packs.close()
            # Where a call to the system fails, packs stay packs, which the tests read as well.
            with contextlib.suppress(FormatError, WriteError, OSError):
                list(unpack_tree(self._root))


def _root_of(directory: Directory) -> Path:
    return directory(record()).parent.parent


class TestPackedNpyWriter(WriterContract):
    def open_writer(self, directory: Directory) -> Writer:
        packs = Packs(directory, 0o400)
        return Packed(NpyWriter(directory, open_folder=packs.open), packs, _root_of(directory))

    def count_on_disk(self, root: Path) -> int:
        return sum(tensor.load().ndim >= 0 for tensor in DumpDir.open(root, strict=True))


class TestPackedBinWriter(WriterContract):
    def open_writer(self, directory: Directory) -> Writer:
        packs = Packs(directory, 0o400)
        return Packed(BinWriter(directory, open_folder=packs.open), packs, _root_of(directory))

    def count_on_disk(self, root: Path) -> int:
        return sum(1 for _ in DumpDir.open(root, strict=True))


@settings(max_examples=30, deadline=None)
@given(dump_trees())
def test_a_tree_becomes_packs_and_the_same_tree_again(tmp_path_factory: pytest.TempPathFactory, tree: DumpTree) -> None:
    folder = tmp_path_factory.mktemp("trees")
    one, other = write_dump(tree, folder / "one"), write_dump(tree, folder / "other")
    packs = list(pack_tree(other))
    assert len(packs) == sum(map(bool, tree.records_by_iteration.values()))
    assert _told(one) == _told(other)
    list(unpack_tree(other))
    assert_same_dump(one, other)


def _told(root: Path) -> list[tuple[object, ...]]:
    """Everything that a reader is told, in its order, but the paths."""
    dump = DumpDir.open(root, strict=True)
    tensors = [
        (one.rank_id, one.graph_id, one.iteration, one.model, one.op_type, one.op_name, one.full_name, one.io, one.slot,
         one.dtype, one.true_dtype, one.shape, one.position, one.load().tobytes())
        for one in dump.tensors()
    ]  # fmt: skip
    assert not dump.foreign and not dump.damaged
    return [*tensors, len(dump.statistic_files()), [path.name for path in dump.rank_dirs()]]


def test_equal_tensors_have_equal_hashes_and_others_do_not(tmp_path: Path) -> None:
    data = np.arange(12, dtype=np.float32)
    for name, change in (("one", 0.0), ("same", 0.0), ("other", 1.0)):
        packs = Packs(by_iteration(tmp_path / name), 0o400)
        writer = NpyWriter(by_iteration(tmp_path / name), open_folder=packs.open)
        item = record(data=data + np.float32(change))
        packs.write([item])
        writer.write([item])
        writer.close()
        packs.close()
    hashes = [next(DumpDir.open(tmp_path / name).tensors()).content_hash for name in ("one", "same", "other")]
    assert hashes[0] == hashes[1] != hashes[2]
    assert None not in hashes


def test_column_major_arrays_have_no_hash(tmp_path: Path) -> None:
    """Their bytes in that order are other numbers."""
    pack = PackFolder(tmp_path / "5", 0o400, 0o700)
    np.save(tmp_path / "a.npy", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    raw = (tmp_path / "a.npy").read_bytes()
    pack.write("a.npy", [raw[:128], raw[128:]], 0o400, tensors_from=1)
    path = pack.finish()
    (member,) = open_pack(path).contents.members.values()
    assert member.hashes == ()
    assert next(DumpDir.open(path).tensors()).load().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_header_is_read_without_the_data(tmp_path: Path) -> None:
    """Names, shapes and dtypes come from the index; so do hashes."""
    packs = Packs(by_iteration(tmp_path), 0o400)
    writer = NpyWriter(by_iteration(tmp_path), open_folder=packs.open)
    item = record(data=np.ones(1000, np.float32))
    packs.write([item])
    writer.write([item])
    writer.close()
    packs.close()
    (path,) = tmp_path.rglob("*.tar")
    pack = open_pack(str(path))
    asked: list[tuple[int, int]] = []
    source = pack.source
    read = source.array

    class Watched:
        where, size, stamp = source.where, source.size, source.stamp

        def read(self, offset: int, size: int) -> bytes:
            asked.append((offset, size))
            return source.read(offset, size)

        def array(self, offset: int, size: int) -> object:
            asked.append((offset, size))
            return read(offset, size)

    pack.source = Watched()  # type: ignore[assignment]
    (tensor,) = DumpDir.open(tmp_path).tensors()
    assert (tensor.shape, tensor.dtype) == ((1000,), "float32")
    assert tensor.claimed_hash is not None
    assert asked == []
    assert tensor.load().sum() == 1000
    assert asked


def test_a_name_is_free_or_numbered(tmp_path: Path) -> None:
    paths = []
    for _ in range(3):
        pack = PackFolder(tmp_path / "5", 0o400, 0o700)
        pack.write("a", [b"1"], 0o400)
        paths.append(os.path.basename(pack.finish()))
    assert paths == ["5.tar", "5.1.tar", "5.2.tar"]
    empty = PackFolder(tmp_path / "6", 0o400, 0o700)
    assert empty.finish() == ""
    assert not list(tmp_path.glob("6*"))


def test_the_same_name_twice_is_refused(tmp_path: Path) -> None:
    pack = PackFolder(tmp_path / "5", 0o400, 0o700)
    pack.write("a", [b"1"], 0o400)
    with pytest.raises(WriteError, match="free name"):
        pack.write("a", [b"2"], 0o400)
    pack.finish()


def test_a_full_disk_leaves_what_was_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = PackFolder(tmp_path / "5", 0o400, 0o700)
    pack.write("a", [b"1" * 600], 0o400)
    real = os.pwritev

    def full(fd: int, views: Sequence[memoryview], offset: int) -> int:
        if sum(view.nbytes for view in views) > 100_000:
            real(fd, [views[0][:1000]], offset)
            raise OSError(28, "No space left on device")
        return real(fd, views, offset)

    monkeypatch.setattr(os, "pwritev", full)
    with pytest.raises(WriteError, match="disk is full"):
        pack.write("b", [b"2" * 200_000], 0o400)
    pack.write("c", [b"3"], 0o400)
    with tarfile.open(pack.finish()) as opened:
        assert [one.name for one in opened] == ["5/a", "5/c", "5/.msdump/index.json", "5/.msdump/tail"]


def test_statistics_of_a_pack_are_those_of_a_folder(tmp_path: Path) -> None:
    items = [record(number, key=TensorKey(number // 2, 0)) for number in range(6)]
    packs = Packs(by_iteration(tmp_path / "packed"), 0o400)
    rows = StatisticWriter(by_iteration(tmp_path / "packed"), open_folder=packs.open)
    plain = StatisticWriter(by_iteration(tmp_path / "plain"))
    for writer in (packs, rows, plain):
        writer.write(items)
    for last in (rows, packs, plain):
        last.close()
    (path,) = (tmp_path / "packed").rglob("*.tar")
    ((_, packed),) = DumpDir.open(path).statistic_files()
    from msdump.formats.statistic_csv import read_statistic_csv

    (there,) = (tmp_path / "plain").rglob("statistic.csv")
    assert read_statistic_csv(packed) == read_statistic_csv(there)
