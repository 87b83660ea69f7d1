"""`pack_tree`, `unpack_tree`, `recover_tree`, and their commands."""

from __future__ import annotations

import fcntl
import gzip
import io
import math
import os
import re
import shutil
import stat
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.cli.main import main
from msdump.errors import FormatError, WriteError
from msdump.formats import npy_reader
from msdump.formats.dump_dir import DumpDir
from msdump.formats.npy import NpyWriter
from msdump.formats.pack import Packs
from msdump.formats.pack_recovery import recover_tree
from msdump.formats.pack_tree import pack_tree, unpack_tree
from msdump.formats.paths.sync import SyncPaths
from msdump.storage.packs import open_pack
from msdump.tensors.records import TensorKey
from tests.analysis.small_dump import write_dump
from tests.contracts.writer_contract import record


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    paths = SyncPaths(tmp_path / "dump", 0, "Net")
    writer = NpyWriter(lambda one: paths.data_dir(one.graph_id, one.iteration))
    for iteration in (0, 3):
        items = [record(number, iteration=iteration, key=TensorKey(number // 2, 0)) for number in range(6)]
        writer.write(items)
    writer.close()
    return tmp_path / "dump"


def _pack(root: Path) -> Path:
    return root / "rank_0" / "Net" / "0" / "3.tar"


def _files(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_links_and_modes_come_back(dump: Path) -> None:
    before = {path: (path.stat().st_mode, path.stat().st_nlink) for path in dump.rglob("*.npy")}
    files = _files(dump)
    assert main(["pack", str(dump)]) == 0
    assert sorted(path.name for path in dump.rglob("*") if path.is_file()) == ["0.tar", "3.tar"]
    assert main(["pack", str(dump)]) == 3
    assert main(["unpack", str(dump)]) == 0
    assert _files(dump) == files
    assert {path: (path.stat().st_mode, path.stat().st_nlink) for path in dump.rglob("*.npy")} == before


def test_what_is_kept_stays(dump: Path) -> None:
    files = _files(dump)
    list(pack_tree(dump, keeps_folders=True))
    assert {name: data for name, data in _files(dump).items() if not name.endswith(".tar")} == files
    # The folder is in the pack already.
    assert [one.path for one in pack_tree(dump, keeps_folders=True)] == [
        str(path) for path in sorted(dump.rglob("*.tar"))
    ]
    next((dump / "rank_0" / "Net" / "0" / "3").glob("*.npy")).chmod(0o600)
    next((dump / "rank_0" / "Net" / "0" / "3").glob("*.npy")).write_bytes(b"other")
    with pytest.raises(WriteError, match="free name"):
        list(unpack_tree(dump))
    assert _pack(dump).exists()


# -- what is not whole or not understood stays -------------------------------------------------------------------------


def _foreign_archive(*kinds: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as opened:
        file = tarfile.TarInfo("3/a.npy")
        file.size = 3
        opened.addfile(file, io.BytesIO(b"abc"))
        for number, kind in enumerate(kinds):
            info = tarfile.TarInfo(f"3/other{number}")
            info.type, info.linkname = kind, "a.npy"
            opened.addfile(info)
    return buffer.getvalue()


NOT_UNDERSTOOD = {
    "random bytes": (np.random.default_rng(0).bytes(20_000), "no header explains"),
    "text": (b"some notes\n" * 900, "no header explains"),
    "nothing": (b"", "no end of the archive"),
    "zeros": (bytes(10_240), "no member"),
    "gzip": (gzip.compress(_foreign_archive()), "no header explains"),
    "two archives": (_foreign_archive() + _foreign_archive(), "behind the end"),
    "a symbolic link": (_foreign_archive(tarfile.SYMTYPE), "3/other0: no plain files"),
    "a device": (_foreign_archive(tarfile.CHRTYPE), "3/other0: no plain files"),
    "a pipe": (_foreign_archive(tarfile.FIFOTYPE), "3/other0: no plain files"),
}


@pytest.mark.parametrize("name", NOT_UNDERSTOOD)
def test_what_is_not_understood_is_kept(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, reason = NOT_UNDERSTOOD[name]
    path = tmp_path / "3.tar"
    path.write_bytes(data)
    assert main(["unpack", str(path)]) == 4
    assert reason in capsys.readouterr().err
    assert path.read_bytes() == data
    assert main(["unpack", str(tmp_path)]) == 4
    assert main(["recover", str(tmp_path)]) == 3
    assert path.read_bytes() == data


@pytest.mark.parametrize("name", ["random bytes", "nothing", "gzip", "two archives"])
def test_an_archive_that_is_not_understood_is_named_by_every_reader(name: str, tmp_path: Path) -> None:
    (tmp_path / "3.tar").write_bytes(NOT_UNDERSTOOD[name][0])
    opened = DumpDir.open(tmp_path)
    list(opened.tensors())
    assert str(tmp_path / "3.tar") in [path for path, _ in opened.damaged]


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("number", [0, 2])
def test_a_damaged_header_keeps_the_pack(dump: Path, number: int, has_index: bool) -> None:
    list(pack_tree(dump))
    path = _pack(dump)
    members = [one for one in open_pack(str(path)).contents.members.values() if not one.is_link]
    data = bytearray(path.read_bytes())
    data[members[number].offset - 400] ^= 1
    if not has_index:
        del data[data.rindex(b"3/.msdump/index.json") :]
    path.chmod(0o600)
    path.write_bytes(data)
    assert main(["unpack", str(path)]) == 4
    assert path.read_bytes() == data
    unpacked = {one.name for one in (path.parent / "3").iterdir()}
    assert os.path.basename(members[number].name) not in unpacked
    assert {os.path.basename(one.name) for one in members} - unpacked == {os.path.basename(members[number].name)}


def test_a_pack_that_was_cut_between_members_is_kept(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    list(pack_tree(dump))
    path = _pack(dump)
    third = list(open_pack(str(path)).contents.members.values())[2]
    path.chmod(0o600)
    os.truncate(path, third.offset - 512)
    assert main(["unpack", str(path)]) == 4
    assert "no end of the archive" in capsys.readouterr().err
    assert path.exists()


def test_a_member_of_other_bytes_than_its_hash_keeps_the_pack(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    list(pack_tree(dump))
    path = _pack(dump)
    member = _change_a_tensor(path)
    assert main(["unpack", str(path)]) == 4
    message = capsys.readouterr().err
    assert member in message and "other bytes" in message
    assert path.exists()
    assert not (path.parent / member).exists()


def _change_a_tensor(path: Path) -> str:
    """Change 4 bytes of the last tensor of a pack; the name of its member."""
    member = [one for one in open_pack(str(path)).contents.members.values() if not one.is_link][-1]
    path.chmod(0o600)
    with open(path, "r+b") as file:
        file.seek(member.offset + member.size - 4)
        file.write(bytes(255 - byte for byte in os.pread(file.fileno(), 4, member.offset + member.size - 4)))
    return member.name


@pytest.mark.parametrize("done", [0, 3, 6])
def test_unpack_goes_on_where_a_killed_one_was(dump: Path, done: int) -> None:
    folder = dump / "rank_0" / "Net" / "0" / "3"
    (folder / "statistic.csv").write_text("a,b\n1,2\n1,3\n")
    files = _files(dump)
    list(pack_tree(dump))
    whole = dump.with_name("whole")
    subprocess.run(["tar", "xf", _pack(dump), "-C", _pack(dump).parent], check=True)
    shutil.rmtree(folder / ".msdump")
    for path in sorted(folder.iterdir())[done:]:
        path.unlink()
    assert main(["unpack", str(dump)]) == 0
    assert _files(dump) == files
    assert not whole.exists()


def test_files_get_no_more_than_a_reader_needs(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "3.tar", "w") as opened:
        for mode in (0o7777, 0o666, 0o640, 0o0, 0o400):
            info = tarfile.TarInfo(f"3/{mode:o}")
            info.mode = mode
            opened.addfile(info, io.BytesIO())
    assert main(["unpack", str(tmp_path)]) == 0
    modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in (tmp_path / "3").iterdir()}
    assert modes == {"7777": 0o644, "666": 0o644, "640": 0o640, "0": 0o400, "400": 0o400}


def test_folders_without_files_come_back(tmp_path: Path) -> None:
    (tmp_path / "3" / "empty").mkdir(parents=True)
    (tmp_path / "3" / "a").write_text("a")
    subprocess.run(["tar", "cf", tmp_path / "3.tar", "-C", tmp_path, "3"], check=True)
    shutil.rmtree(tmp_path / "3")
    assert main(["unpack", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["3", "a", "empty"]


def test_sparse_files_of_gnu_tar_are_left_in_the_archive(tmp_path: Path) -> None:
    with open(tmp_path / "hole", "wb") as file:
        file.truncate(1 << 20)
        file.seek(1 << 19)
        file.write(b"x")
    done = subprocess.run(["tar", "-S", "--format=pax", "-cf", "3.tar", "hole"], cwd=tmp_path, check=False)
    if done.returncode or (tmp_path / "3.tar").stat().st_size > 1 << 19:
        pytest.skip("needs GNU tar")
    (tmp_path / "hole").unlink()
    assert main(["unpack", str(tmp_path)]) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["3.tar"]


def test_links_and_pipes_of_a_folder_stay_in_it(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = dump / "rank_0" / "Net" / "0" / "3"
    (folder / "link.npy").symlink_to(next(folder.glob("*.npy")).name)
    os.mkfifo(folder / "pipe.npy")
    assert main(["pack", str(dump)]) == 4
    assert "link.npy, pipe.npy: no plain files" in capsys.readouterr().err
    assert sorted(one.name for one in folder.iterdir()) == ["link.npy", "pipe.npy"]


def test_what_changes_while_it_is_packed_stays(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from msdump.formats import pack_tree as module

    folder = dump / "rank_0" / "Net" / "0" / "3"
    (folder / "statistic.csv").write_text("a,b\n1,2\n")
    real = module.write_pack

    def slow(*args: object) -> str:
        path = real(*args)  # type: ignore[arg-type]
        if "/3" in path:
            with open(folder / "statistic.csv", "a") as file:
                file.write("1,3\n")
        return path

    monkeypatch.setattr(module, "write_pack", slow)
    assert [one.lost for one in pack_tree(dump)] == ["", "statistic.csv: changed meanwhile"]
    assert [one.name for one in folder.iterdir()] == ["statistic.csv"]


def test_a_pack_that_cannot_be_written_leaves_nothing(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from msdump.formats.pack import PackFolder

    def full(*_: object) -> str:
        raise WriteError("no space")

    monkeypatch.setattr(PackFolder, "_publish", full)
    files = _files(dump)
    with pytest.raises(WriteError, match="no space"):
        list(pack_tree(dump))
    assert _files(dump) == files


def test_files_that_are_there_are_not_overwritten_but_tables_grow(dump: Path) -> None:
    folder = dump / "rank_0" / "Net" / "0" / "3"
    (folder / "statistic.csv").write_text("a,b\n1,2\n")
    list(pack_tree(dump))
    folder.mkdir()
    (folder / "statistic.csv").write_text("a,b\n0,0\n")
    list(unpack_tree(dump))
    assert (folder / "statistic.csv").read_text() == "a,b\n0,0\n1,2\n"


def test_tables_of_other_columns_are_refused(dump: Path) -> None:
    folder = dump / "rank_0" / "Net" / "0" / "3"
    (folder / "statistic.csv").write_text("a,b\n1,2\n")
    list(pack_tree(dump))
    folder.mkdir()
    (folder / "statistic.csv").write_text("a,c\n")
    with pytest.raises(WriteError, match="columns a,b"):
        list(unpack_tree(dump))


def test_a_cut_pack_is_recovered(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    list(pack_tree(dump))
    path = _pack(dump)
    whole = open_pack(str(path)).contents.members
    last = max((one for one in whole.values() if not one.is_link), key=lambda one: one.offset)
    part = path.with_name("3.tar.part")
    path.rename(part)
    part.chmod(0o600)
    os.truncate(part, last.offset + last.size // 2)
    kept = {name for name, one in whole.items() if one.offset < last.offset}
    assert {os.path.basename(one.path) for one in DumpDir.open(part).tensors()} == {
        os.path.basename(one) for one in kept
    }
    assert main(["recover", str(dump)]) == 4
    assert "left out" in capsys.readouterr().err
    assert not part.exists()
    found = open_pack(str(path)).contents
    assert found.has_index
    assert set(found.members) == kept
    assert all(one.hashes and one.head for one in found.members.values())
    assert [one.load().tolist() for one in DumpDir.open(path, strict=True).tensors()]
    assert main(["recover", str(dump)]) == 3


def test_a_pack_with_a_damaged_index_is_named_and_recovered(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    list(pack_tree(dump))
    path = _pack(dump)
    members = open_pack(str(path)).contents.members
    data = bytearray(path.read_bytes())
    data[data.rindex(b'"msdump_index"') + 1] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)
    opened = DumpDir.open(dump)
    assert len(list(opened.tensors())) == 6
    ((where, error),) = opened.damaged
    assert where == str(path)
    assert "msdump pack --repair" in str(error)
    assert main(["ls", str(dump)]) == 4
    capsys.readouterr()
    assert main(["recover", str(dump)]) == 0
    assert open_pack(str(path)).contents.members == members
    assert len(list(DumpDir.open(dump, strict=True).tensors())) == 12


def test_an_index_of_another_archive_is_found_out(dump: Path) -> None:
    """What the index says is checked against the header before the data, before any of it is believed."""
    list(pack_tree(dump))
    path = _pack(dump)
    member = next(iter(open_pack(str(path)).contents.members.values()))
    data = bytearray(path.read_bytes())
    data[member.offset - 512 : member.offset - 412] = b"3/other.npy".ljust(100, b"\0")
    path.chmod(0o600)
    path.write_bytes(data)
    tensor = next(one for one in DumpDir.open(path).tensors() if one.path.endswith(member.name))
    with pytest.raises(FormatError, match="as the index says"):
        tensor.load()


def test_a_pack_that_is_being_written_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packs = Packs(lambda _: tmp_path / "5", 0o400)
    writer = NpyWriter(lambda _: tmp_path / "5", open_folder=packs.open)
    packs.write([record()])
    writer.write([record()])
    assert len(list(DumpDir.open(tmp_path, strict=True).tensors())) == 1
    (one,) = recover_tree(tmp_path)
    assert one.lost == "another process writes it now"
    assert main(["recover", str(tmp_path)]) == 4
    writer.write([record(1)])
    writer.close()
    packs.close()
    assert len(list(DumpDir.open(tmp_path, strict=True).tensors())) == 2


def test_an_archive_of_the_whole_dump_is_read(dump: Path, tmp_path: Path) -> None:
    path = tmp_path / "all.tar"
    with tarfile.open(path, "w") as opened:
        opened.add(dump / "rank_0", "rank_0")
    places = [[(one.rank_id, one.iteration, one.op_name, one.load().tolist()) for one in DumpDir.open(at).tensors()]
              for at in (dump, path)]  # fmt: skip
    assert places[0] == places[1]
    assert len(places[0]) == 12
    assert [folder.name for folder in DumpDir.open(path).rank_dirs()] == ["rank_0"]


@pytest.mark.parametrize("name", ["/tmp/x", "../x", "3/../../x"])
def test_nothing_is_unpacked_of_an_archive_that_leads_out(tmp_path: Path, name: str) -> None:
    path = tmp_path / "in" / "3.tar"
    path.parent.mkdir()
    with tarfile.open(path, "w") as opened:
        for one in ("3/good", name):
            info = tarfile.TarInfo(one)
            info.size = 1
            opened.addfile(info, io.BytesIO(b"x"))
    assert main(["unpack", str(path)]) == 2
    assert [one.name for one in tmp_path.rglob("*")] == ["in", "3.tar"]
    opened_dump = DumpDir.open(tmp_path)
    assert list(opened_dump.tensors()) == []
    assert len(opened_dump.damaged) == 1


def test_a_link_in_the_place_of_a_pack_is_not_followed(dump: Path, tmp_path: Path) -> None:
    list(pack_tree(dump))
    target = tmp_path / "elsewhere.tar"
    _pack(dump).rename(target)
    _pack(dump).symlink_to(target)
    opened = DumpDir.open(dump)
    assert {one.iteration for one in opened.tensors()} == {0}
    assert opened.foreign == [str(_pack(dump))]
    assert [Path(one.path).name for one in unpack_tree(dump)] == ["0.tar"]


@pytest.mark.parametrize("command", ["pack", "unpack", "recover"])
def test_nothing_there(command: str, tmp_path: Path) -> None:
    assert main([command, str(tmp_path / "no")]) == 2
    assert main([command, str(tmp_path)]) == 3


def test_commands_read_packs(dump: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    answers = []
    for _ in range(2):
        texts = []
        for command in (["stat"], ["nan"], ["ls"], ["show", "--iteration", "3"], ["compare", str(dump)]):
            name = ["ReLU-op1"] if command[0] == "show" else []
            status = main([command[0], str(dump), *name, *command[1:]])
            # A pack takes other room on the disk.
            texts.append((status, re.sub(r"[0-9.]+ \w+ on disk", "on disk", capsys.readouterr().out)))
        answers.append(texts)
        list(pack_tree(dump))
    assert answers[0] == answers[1]
    assert main(["convert", str(dump), "-t", "bin", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "rank_0" / "Net" / "0" / "3").is_dir()


def test_equal_packs_are_compared_without_reading(dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from msdump.analysis.compare.dumps import compare_dumps
    from msdump.storage import packs
    from msdump.storage.packs import Pack

    monkeypatch.setattr("msdump.storage.packs._SETTLED_NS", 0)
    other = tmp_path / "other"
    list(pack_tree(dump))
    for path in dump.rglob("*.tar"):
        (other / path.relative_to(dump)).parent.mkdir(parents=True, exist_ok=True)
        (other / path.relative_to(dump)).write_bytes(path.read_bytes())
    asked: list[int] = []
    real = Pack.array

    def array(self: Pack, member: object, offset: int, size: int) -> np.ndarray:
        asked.append(size)
        return real(self, member, offset, size)  # type: ignore[arg-type]

    monkeypatch.setattr(Pack, "array", array)
    # What indexes tell is held against the data once, also where one process ends and another begins.
    for is_first in (True, False):
        compare_dumps(dump, other)
        assert (sum(asked) > 0) == is_first
        asked.clear()
        packs.forget_packs()


def test_a_lock_of_a_reader_is_no_writer(dump: Path) -> None:
    list(pack_tree(dump))
    path = _pack(dump)
    path.rename(path.with_name("3.tar.part"))
    with open(path.with_name("3.tar.part"), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        fcntl.flock(file, fcntl.LOCK_UN)
        assert [one.lost for one in recover_tree(dump)] == [""]


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from([(2, 3), (3, 2), (6,), (), (0, 2), (400, 2)]), min_size=1, max_size=8))
def test_members_of_one_header_are_parsed_once(shapes: list[tuple[int, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        arrays = [np.arange(math.prod(shape), dtype=np.float32).reshape(shape) + 1 for shape in shapes]
        write_dump(Path(folder), [(f"Add-op{place}", {("output", 0): one}) for place, one in enumerate(arrays)])
        list(pack_tree(folder))
        patch.setattr(npy_reader, "_headers", {})
        parsed = []
        parse = npy_reader.parse_header
        patch.setattr(npy_reader, "parse_header", lambda where, file: parsed.append(where) or parse(where, file))
        dump = DumpDir.open(folder, strict=True)
        read = {tensor.op_name: tensor.load() for tensor in dump}
        # Of a tensor without elements the index has no first bytes.
        assert len(parsed) == len(set(shapes) - {(0, 2)}) + 2 * shapes.count((0, 2))
    assert {name: (one.shape, one.tolist()) for name, one in read.items()} == {
        f"Add-op{place}": (one.shape, one.tolist()) for place, one in enumerate(arrays)
    }
