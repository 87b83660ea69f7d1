"""Hashes of an index are believed once the bytes were found to have them, and as long as these stay as they are."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from pathlib import Path

import numpy as np
import pytest

from msdump.analysis.compare.dumps import compare_dumps
from msdump.cli.main import main
from msdump.errors import FormatError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.pack_tree import pack_tree
from msdump.storage import packs
from msdump.storage import packs as verification
from msdump.storage.pack_format import BLOCK, Member
from msdump.storage.packs import LocalSource, Pack, hashed_parts, open_pack
from tests.analysis.small_dump import write_dump

COUNT = 20


@pytest.fixture(autouse=True)
def verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> verification.Verified:
    """An empty cache, which takes files that were written just now."""
    forget()  # what other tests have opened
    monkeypatch.setattr(verification, "_SETTLED_NS", -(1 << 62))
    fresh = verification.Verified(lambda: tmp_path / "cache")
    monkeypatch.setattr(packs, "verified", fresh)
    return fresh


@pytest.fixture
def twins(tmp_path: Path) -> tuple[Path, Path]:
    """Two packed dumps of 20 equal tensors."""
    arrays = [np.full(100 + place, place, np.float32) for place in range(COUNT)]
    write_dump(tmp_path / "mine", [(f"Add-op{place}", {("output", 0): one}) for place, one in enumerate(arrays)])
    list(pack_tree(tmp_path / "mine"))
    shutil.copytree(tmp_path / "mine", tmp_path / "golden")
    return tmp_path / "mine", tmp_path / "golden"


def pack_of(dump: Path) -> Path:
    (path,) = dump.rglob("*.tar")
    return path


def change(path: Path, keeps_time: bool = False) -> str:
    """Change 4 bytes of the seventh tensor; the name of its member."""
    member = list(open_pack(str(path)).contents.members.values())[6]
    status = path.stat()
    path.chmod(0o600)
    with open(path, "r+b") as file:
        file.seek(member.offset + member.size - 4)
        file.write(b"\x00\x00\x80\x3f")
    if keeps_time:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return member.name


def forget() -> None:
    """As a new process has it."""
    packs.forget_packs()


def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Members whose bytes are read from now on."""
    names: list[str] = []
    real = Pack.array

    def array(self: Pack, member: Member, offset: int, size: int) -> np.ndarray:
        names.append(member.name)
        return real(self, member, offset, size)

    monkeypatch.setattr(Pack, "array", array)
    return names


def test_changed_bytes_are_no_equal_tensor(twins: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    name = change(pack_of(twins[0]))
    assert main(["compare", *map(str, twins)]) == 4
    told = capsys.readouterr()
    assert f"{COUNT - 1} identical, 1 not compared" in told.out
    assert told.out.startswith("incomplete: ")
    assert f"{name} at offset" in told.out and "as the index says, got others" in told.out


@pytest.mark.parametrize("keeps_time", [False, True])
def test_bytes_that_change_later_are_found_out(twins: tuple[Path, Path], keeps_time: bool) -> None:
    """Also where the time of the last change is set back."""
    assert compare_dumps(*twins).damaged == ()
    forget()
    change(pack_of(twins[1]), keeps_time)
    forget()
    assert len(compare_dumps(*twins).damaged) == 1


def test_bytes_are_read_once(twins: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    names = asked(monkeypatch)
    compare_dumps(*twins)
    assert len(names) == 2 * COUNT
    names.clear()
    compare_dumps(*twins)
    forget()
    compare_dumps(*twins)
    assert names == []


def test_what_was_read_in_part_is_known_in_part(twins: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for dump in twins:
        assert next(iter(DumpDir.open(dump))).content_hash is not None
    forget()
    names = asked(monkeypatch)
    compare_dumps(*twins)
    assert len(names) == 2 * (COUNT - 1)


def test_ls_verifies_all(twins: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", "--verify", str(twins[0])]) == 0
    assert f"{COUNT} tensors of packs" in capsys.readouterr().out
    name = change(pack_of(twins[0]))
    assert main(["ls", str(twins[0])]) == 0
    assert main(["ls", "--verify", str(twins[0])]) == 4
    assert name in capsys.readouterr().err


def test_ls_reads_again_what_is_known(twins: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    compare_dumps(*twins)
    names = asked(monkeypatch)
    assert DumpDir.open(twins[0]).verify() == COUNT
    assert len(names) == COUNT
    assert DumpDir.open(pack_of(twins[0]).parent).verify() == COUNT


def test_ls_holds_headers_against_the_index(twins: tuple[Path, Path]) -> None:
    path = pack_of(twins[0])
    member = list(open_pack(str(path)).contents.members.values())[3]
    path.chmod(0o600)
    with open(path, "r+b") as file:
        file.seek(member.offset - BLOCK)
        file.write(b"?")
    opened = DumpDir.open(twins[0])
    assert opened.verify() == COUNT - 1
    ((where, error),) = opened.damaged
    assert where.endswith(member.name) and "expected the header" in str(error)
    with pytest.raises(FormatError):
        DumpDir.open(twins[0], strict=True).verify()


@pytest.mark.parametrize("damage", ["text", "folder", "read-only", "other table"])
def test_a_cache_that_is_of_no_use_changes_no_answer(twins: tuple[Path, Path], tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "cache"
    if damage == "read-only":
        folder.write_text("a file in its place")
    else:
        folder.mkdir()
        if damage == "text":
            (folder / "verified.sqlite").write_bytes(b"no database" * 200)
        elif damage == "folder":
            (folder / "verified.sqlite").mkdir()
        else:
            with sqlite3.connect(folder / "verified.sqlite") as database:
                database.execute("create table verified_1 (x integer)")
            database.close()
    for _ in range(2):
        assert compare_dumps(*twins).damaged == ()
        forget()
    change(pack_of(twins[0]))
    assert len(compare_dumps(*twins).damaged) == 1


def test_what_was_written_a_moment_ago_is_not_remembered(
    twins: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be written again within the same tick of the clock."""
    monkeypatch.setattr(verification, "_SETTLED_NS", 1 << 62)
    compare_dumps(*twins)
    forget()
    assert not (tmp_path / "cache").exists()


def test_rows_are_bounded(
    twins: tuple[Path, Path], verified: verification.Verified, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "_MOST_ROWS", 4)
    clock = iter(range(1_000_000_000, 2_000_000_000))
    monkeypatch.setattr(verification.time, "time", lambda: next(clock))
    source = LocalSource(str(pack_of(twins[0])))
    for number in range(7):
        source.state_ns = number
        verified.keep(source, {number})
    found = []
    for number in range(7):
        source.state_ns = number
        found += verified.of(source)
    assert found[-1] == 6 and len(found) <= 4


def test_threads_share_a_cache(twins: tuple[Path, Path], verified: verification.Verified) -> None:
    source = LocalSource(str(pack_of(twins[0])))
    threads = [threading.Thread(target=verified.keep, args=(source, {1, 2})) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verified.of(source) == {1, 2}


@pytest.mark.parametrize("hashes", [("x:ab",), ("-1:ab",), ("99:ab",), ("4:ab", "2:cd"), ("",), (f"{'9' * 30}:ab",)])
def test_hashes_of_bytes_that_are_not_there_fit_none(hashes: tuple[str, ...]) -> None:
    parts = hashed_parts(Member("5/a", 512, 10, hashes=hashes))
    assert len(parts) == len(hashes)
    assert any(not part.is_of(np.zeros(part.size, np.uint8)) for part in parts)
    assert all(0 <= part.offset <= part.offset + part.size <= 10 for part in parts)
