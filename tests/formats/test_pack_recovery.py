"""`recover_tree`: every member that a header or the index tells of comes back, and no byte is dropped in silence."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.cli.main import main
from msdump.errors import WriteError
from msdump.formats.atomic import Folder
from msdump.formats.dump_dir import DumpDir
from msdump.formats.npy import NpyWriter
from msdump.formats.pack import Packs
from msdump.formats.pack_recovery import recover_tree
from msdump.storage.pack_format import BLOCK, Member
from msdump.storage.packs import open_pack
from tests.contracts.writer_contract import record

COUNT = 20


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return write_pack(tmp_path / "dump" / "rank_0" / "Net" / "0")


def write_pack(folder: Path, is_finished: bool = True) -> Path:
    """20 tensors, each filled with its number; the last 5 are links to the first 5."""
    packs = Packs(lambda _: folder / "5", 0o400)
    writer = NpyWriter(lambda _: folder / "5", open_folder=packs.open)
    items = [record(number, iteration=5, data=np.full(300 + number, number, np.float32)) for number in range(COUNT)]
    packs.write(items)
    writer.write(items)
    opened = packs.open(folder / "5")
    names = list(opened._members)
    for name in names[:5]:
        opened.link(name, f"link.{name}")
    if is_finished:
        writer.close()
        packs.close()
        return folder / "5.tar"
    return folder / "5.tar.part"


def members_of(path: Path) -> list[Member]:
    return list(open_pack(str(path)).contents.members.values())


def without_index(data: bytes) -> bytearray:
    return bytearray(data[: data.rindex(b"5/.msdump/index.json")])


def write(path: Path, data: bytes) -> None:
    path.chmod(0o600)
    path.write_bytes(data)


def by_tar(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as opened:
        return {one.name: opened.extractfile(one).read() for one in opened.getmembers()}  # type: ignore[union-attr]


def numbers_in(path: Path) -> list[int]:
    return sorted({int(tensor.load()[0]) for tensor in DumpDir.open(path, strict=True).tensors()})


@pytest.mark.parametrize("number", [0, 5, COUNT - 1])
@pytest.mark.parametrize("is_zeroed", [False, True])
def test_one_damaged_header_costs_no_other_member(pack: Path, number: int, is_zeroed: bool) -> None:
    """No member behind it, and not its own bytes either."""
    data = without_index(pack.read_bytes())
    lost = members_of(pack)[number]
    at = lost.offset - BLOCK
    data[at : at + BLOCK] = bytes(BLOCK) if is_zeroed else b"?" + data[at + 1 : at + BLOCK]
    links = [one.name for one in members_of(pack) if one.is_link and one.offset == lost.offset]
    write(pack, bytes(data))
    whole = [one for one in range(COUNT) if one != number]
    opened = DumpDir.open(pack)
    assert sorted({int(one.load()[0]) for one in opened.tensors()}) == whole
    assert [path for path, _ in opened.damaged] == [str(pack)]
    assert main(["recover", str(pack)]) == 4
    assert numbers_in(pack) == whole
    found = by_tar(pack)
    (kept,) = [name for name in found if "/damaged-" in name and name.endswith(f"-{at}")]
    assert found[kept] == data[at : at + len(found[kept])]
    assert len(found[kept]) == BLOCK + lost.size + -lost.size % BLOCK
    assert not any(link in found for link in links)
    assert main(["recover", str(pack)]) == 3
    # What was kept of the damage is a file of its own.
    assert main(["unpack", str(pack)]) == 0
    assert not pack.exists()
    assert (pack.parent / kept).read_bytes() == found[kept]


@pytest.mark.parametrize("number", [0, 5, COUNT - 1, COUNT + 2])
def test_the_index_tells_what_a_damaged_header_was(pack: Path, number: int) -> None:
    before = by_tar(pack)
    data = bytearray(pack.read_bytes())
    lost = members_of(pack)[number]
    at = data.index(lost.name.encode())
    data[at : at + 30] = bytes(30)
    write(pack, bytes(data))
    if not lost.is_link:
        assert main(["recover", str(pack)]) == 0
    else:
        # Its place is not known, and it comes back at the end.
        assert main(["recover", str(pack)]) == 4
    found = by_tar(pack)
    assert {name: found[name] for name in before if "/.msdump/" not in name} == {
        name: data for name, data in before.items() if "/.msdump/" not in name
    }
    assert numbers_in(pack) == list(range(COUNT))
    assert main(["recover", str(pack)]) == 3


@settings(max_examples=40)
@given(st.data())
def test_a_damaged_page_costs_what_lies_in_it(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Nothing else, and stock tar reads what is recovered."""
    pack = write_pack(tmp_path_factory.mktemp("page") / "0")
    raw = bytearray(pack.read_bytes())
    whole = members_of(pack)
    first = data.draw(st.integers(0, len(raw) // BLOCK - 1)) * BLOCK
    last = min(len(raw), first + data.draw(st.sampled_from([BLOCK, 4096])))
    raw[first:last] = data.draw(st.sampled_from([bytes(last - first), b"\xff" * (last - first)]))
    if raw == pack.read_bytes():
        return
    write(pack, bytes(raw))
    untouched = {one.name for one in whole if not first < one.offset + one.size + BLOCK or one.offset - BLOCK >= last}
    list(recover_tree(pack))
    found = by_tar(pack)
    before = {one.name: bytes(raw[one.offset : one.offset + one.size]) for one in whole}
    for one in whole:
        hit = one.offset - BLOCK < last and first < one.offset + one.size
        if one.name in untouched and not hit and not one.is_link:
            assert found[one.name] == before[one.name]
    assert list(recover_tree(pack)) == []
    # Every byte of the members is still somewhere.
    kept = b"".join(found.values())
    for one in whole:
        if not one.is_link:
            assert before[one.name] in kept or any(before[one.name] in each for each in found.values())


def test_only_the_last_member_is_cut_away(pack: Path) -> None:
    data = without_index(pack.read_bytes())
    whole = [one for one in members_of(pack) if not one.is_link]
    data = data[: whole[-1].offset + 100]
    write(pack, bytes(data))
    (one,) = recover_tree(pack)
    assert one.lost == f"{BLOCK + 100} bytes of a last member that was cut"
    assert numbers_in(pack) == list(range(COUNT - 1))
    assert pack.read_bytes().startswith(data[: whole[-1].offset - BLOCK])


def test_what_a_full_disk_refuses_leaves_the_pack_as_it_was(pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(pack, bytes(without_index(pack.read_bytes())))
    before = pack.read_bytes()

    def full(*_: object, **__: object) -> int:
        raise WriteError("no space")

    monkeypatch.setattr(Folder, "write", full)
    with pytest.raises(WriteError, match="no space"):
        list(recover_tree(pack))
    assert pack.read_bytes() == before


def test_archives_of_others_are_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "5"
    folder.mkdir()
    (folder / "a.npy").write_bytes(b"x" * 700)
    (folder / "b.npy").write_bytes(b"y" * 700)
    for name, options in (("gnu", ["--format=gnu"]), ("pax", ["--format=pax"]), ("ustar", ["--format=ustar"])):
        subprocess.run(["tar", *options, "-cf", f"{name}.tar", "5"], cwd=tmp_path, check=True)
    gnu = (tmp_path / "gnu.tar").read_bytes()
    (tmp_path / "both.tar").write_bytes(gnu + (tmp_path / "pax.tar").read_bytes())
    (tmp_path / "cut.tar").write_bytes(gnu[:2000])
    (tmp_path / "damaged.tar").write_bytes(b"?" + gnu[1:])
    own = write_pack(tmp_path / "packs")
    (tmp_path / "own.tar").write_bytes(own.read_bytes() * 2)
    before = {path: path.read_bytes() for path in tmp_path.glob("*.tar")}
    assert main(["recover", str(tmp_path)]) == 3
    assert {path: path.read_bytes() for path in tmp_path.glob("*.tar")} == before
    assert len(before) == 7
    for path in before:
        assert main(["unpack", "--keep", str(path)]) == (4 if path.stem in ("both", "cut", "damaged", "own") else 0)


@pytest.mark.parametrize("cut", [0, 100, 600, 1400])
def test_a_pack_without_a_whole_member_is_removed(tmp_path: Path, cut: int) -> None:
    part = write_pack(tmp_path, is_finished=False)
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "5.tar.part").write_bytes(part.read_bytes()[:cut])
    status = main(["recover", str(copy)])
    assert status == {0: 0, 100: 3, 600: 4, 1400: 4}[cut]
    # The beginning of a header may be that of anything.
    assert [one.stat().st_size for one in copy.iterdir()] == ([100] if cut == 100 else [])


def test_a_killed_writer_that_had_named_its_pack_leaves_one_pack(pack: Path) -> None:
    os.link(pack, f"{pack}.part")
    assert len(list(DumpDir.open(pack.parent).tensors())) == COUNT + 5
    assert main(["recover", str(pack.parent)]) == 0
    assert sorted(one.name for one in pack.parent.iterdir()) == ["5.tar"]


def test_a_whole_pack_without_its_name_is_renamed(pack: Path) -> None:
    part = pack.rename(f"{pack}.part")
    (pack.parent / "5.tar").write_bytes(b"another")
    inode = part.stat().st_ino
    assert main(["recover", str(part)]) == 0
    assert (pack.parent / "5.1.tar").stat().st_ino == inode


def test_hashes_of_bytes_that_have_changed_are_not_made_right(pack: Path) -> None:
    member = members_of(pack)[3]
    data = bytearray(pack.read_bytes())
    data[member.offset + member.size - 1] ^= 1
    data[members_of(pack)[7].offset - BLOCK] ^= 1
    write(pack, bytes(data))
    list(recover_tree(pack))
    assert main(["ls", "--verify", str(pack.parent)]) == 4


def test_a_recovered_pack_is_whole_for_tar_and_other_copies(pack: Path, tmp_path: Path) -> None:
    write(pack, bytes(without_index(pack.read_bytes())))
    assert main(["recover", str(pack)]) == 0
    shutil.copy(pack, tmp_path / "copy.tar")
    assert subprocess.run(["tar", "tf", tmp_path / "copy.tar"], capture_output=True, check=False).returncode == 0
    assert pack.stat().st_mode & 0o777 == 0o600
