"""The bytes of packs: what is written is read, by tar too; what is cut, damaged or hostile is told."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import FormatError
from msdump.storage.pack_format import BLOCK, END, Member, end_of_pack, header, padding
from msdump.storage.pack_index import read_contents
from msdump.storage.pack_scan import ArchiveContents, check_name, scan

FOLDER = "5"
# Of what a file system allows; long ones need blocks of their own.
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1).filter(
    lambda name: name not in (".", "..", ".msdump")
)
FILES = st.dictionaries(
    st.one_of(NAMES, NAMES.map(lambda name: (name * 60)[:140])), st.binary(max_size=1300), max_size=6
)


def archive(files: dict[str, bytes], links: dict[str, str] | None = None, is_finished: bool = True) -> bytes:
    """A pack of these files, then links to some of them."""
    body = b""
    members: list[Member] = []
    for name, data in files.items():
        full = f"{FOLDER}/{name}"
        blocks = header(full, len(data), 0o400, 1_700_000_000)
        members.append(Member(full, len(body) + len(blocks), len(data), hashes=("0:ab",)))
        body += blocks + data + bytes(padding(len(data)))
    for name, target in (links or {}).items():
        origin = next(one for one in members if one.name == f"{FOLDER}/{target}")
        body += header(f"{FOLDER}/{name}", 0, 0o400, 1_700_000_000, origin.name)
        members.append(Member(f"{FOLDER}/{name}", origin.offset, origin.size, True, hashes=origin.hashes))
    return body + end_of_pack(FOLDER, members, len(body), 0o400, 1_700_000_000) if is_finished else body


def contents(data: bytes, ignores_index: bool = False) -> ArchiveContents:
    read = scan if ignores_index else read_contents
    return read("x.tar", len(data), lambda offset, size: data[offset : offset + size])


def content_of(data: bytes, member: Member) -> bytes:
    return data[member.offset : member.offset + member.size]


def by_tar(data: bytes) -> dict[str, bytes]:
    """What Python's own reader finds, but for the index."""
    with tarfile.open(fileobj=io.BytesIO(data)) as opened:
        names = [one for one in opened.getmembers() if "/.msdump/" not in one.name]
        return {one.name: opened.extractfile(one).read() for one in names}  # type: ignore[union-attr]


@given(FILES, st.data())
def test_index_headers_and_tar_tell_the_same_files(files: dict[str, bytes], data: st.DataObject) -> None:
    links = {}
    if files:
        links = data.draw(st.dictionaries(NAMES, st.sampled_from(sorted(files)), max_size=3))
        links = {name: target for name, target in links.items() if name not in files}
    raw = archive(files, links)
    expected = {f"{FOLDER}/{name}": body for name, body in files.items()}
    expected |= {f"{FOLDER}/{name}": files[target] for name, target in links.items()}
    indexed, scanned = contents(raw), contents(raw, ignores_index=True)
    assert indexed.has_index
    assert not scanned.has_index and scanned.is_whole
    for found in (indexed, scanned):
        assert {name: content_of(raw, one) for name, one in found.members.items()} == expected
        assert {name for name, one in found.members.items() if one.is_link} == {f"{FOLDER}/{name}" for name in links}
    assert by_tar(raw) == expected


@given(FILES.filter(bool))
@settings(max_examples=25)
def test_a_pack_that_is_cut_anywhere_keeps_its_whole_members(files: dict[str, bytes]) -> None:
    raw = archive(files)
    ends = {name: one.offset + one.size for name, one in contents(raw).members.items()}
    for length in range(0, len(raw), 97):
        found = contents(raw[:length])
        assert set(found.members) == {name for name, end in ends.items() if end <= length}
        assert all(
            content_of(raw, one) == content_of(raw, contents(raw).members[name]) for name, one in found.members.items()
        )


def test_every_cut_of_a_small_pack_agrees_with_gnu_tar(tmp_path: Path) -> None:
    raw = archive({"a.npy": b"x" * 700, "n" * 120: b"y" * 3, "c": b""}, {"d": "a.npy"})
    path = tmp_path / "cut.tar"
    ends = {name: one.offset + one.size for name, one in contents(raw).members.items() if not one.is_link}
    for length in range(0, len(raw), 1):
        cut = raw[:length]
        ours = set(contents(cut).members)
        if length % 64:
            assert {name for name in ours if name in ends} == {name for name, end in ends.items() if end <= length}
            continue
        path.write_bytes(cut)
        listed = subprocess.run(["tar", "tf", path], capture_output=True, text=True, check=False).stdout.split()
        theirs = {name for name in listed if "/.msdump/" not in name}
        # tar also lists a last member whose data is cut short.
        assert ours <= theirs and len(theirs - ours) <= 1


HOSTILE = {
    "absolute": [tarfile.TarInfo("/etc/passwd")],
    "leads out": [tarfile.TarInfo("5/../../x")],
    "twice": [tarfile.TarInfo("5/a"), tarfile.TarInfo("5/a")],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_refused(name: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as opened:
        for info in HOSTILE[name]:
            opened.addfile(info, io.BytesIO())
    with pytest.raises(FormatError, match="refused"):
        contents(buffer.getvalue())


def test_links_that_lead_elsewhere_are_refused_and_devices_are_foreign() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as opened:
        for kind in (tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo(f"5/{kind.decode()}")
            info.type, info.linkname = kind, "/etc/passwd"
            opened.addfile(info)
    found = contents(buffer.getvalue())
    assert not found.members
    assert found.foreign == ("5/2", "5/3", "5/6")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as opened:
        info = tarfile.TarInfo("5/a")
        info.type, info.linkname = tarfile.LNKTYPE, "/etc/passwd"
        opened.addfile(info)
    with pytest.raises(FormatError, match="earlier members"):
        contents(buffer.getvalue())


@pytest.mark.parametrize("size", [2**63, 2**62, 2**87])
def test_a_size_beyond_the_archive_ends_the_scan(size: int) -> None:
    raw = bytearray(archive({"a": b"1"}, is_finished=False))
    whole = len(raw)
    raw += header("5/b", size, 0o400, 0)
    found = contents(bytes(raw[: whole + BLOCK]))
    assert list(found.members) == ["5/a"]
    assert not found.is_whole


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_of_others_are_read(form: int) -> None:
    names = ["rank_0/Net/0/5/a.npy", f"rank_0/{'n' * 90}/{'m' * 60}", "./here"]
    names += [] if form == tarfile.USTAR_FORMAT else ["k" * 230]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as opened:
        for number, name in enumerate(names):
            info = tarfile.TarInfo(name)
            info.size = number + 1
            opened.addfile(info, io.BytesIO(b"z" * info.size))
    found = contents(buffer.getvalue())
    assert [(one.name, one.size) for one in found.members.values()] == [
        (name.removeprefix("./"), number + 1) for number, name in enumerate(names)
    ]


def _with_index(raw: bytes, change: dict[str, object]) -> bytes:
    """The same members, and an index that says something else."""
    place = raw[len(raw) - BLOCK - len(END) :].split(b" ")
    offset, length = int(place[3]), int(place[4])
    index = json.dumps(json.loads(raw[offset : offset + length]) | change).encode()
    import zlib

    body = raw[: offset - BLOCK] + header("5/.msdump/index.json", len(index), 0o400, 0)
    at = len(body)
    tail = b"msdump pack 1 %d %d %d\n" % (at, len(index), zlib.crc32(index))
    return (
        body
        + index
        + bytes(padding(len(index)))
        + header("5/.msdump/tail", BLOCK, 0o400, 0)
        + tail.ljust(BLOCK, b"\0")
        + END
    )


@pytest.mark.parametrize(
    "change",
    [
        {"name": ["../x", "5/b"]},
        {"name": ["/x", "5/b"]},
        {"name": ["5/a", "5/a"]},
        {"name": ["5/a"]},
        {"name": [1, 2]},
        {"offset": [0, 0]},
        {"offset": [512, 2**62]},
        {"size": [-1, 3]},
        {"size": [True, 3]},
        {"target": [1, -1]},
        {"target": [-1, 7]},
        {"target": [-1, 0]},
        {"heads": ["not base64!"]},
        {"head": [9, -1]},
        {"hashes": None},
        {"msdump_index": 2},
        {"name": None},
    ],
    ids=str,
)
def test_an_index_that_lies_is_refused(change: dict[str, object]) -> None:
    raw = archive({"a": b"1", "b": b"333"})
    with pytest.raises(FormatError):
        contents(_with_index(raw, change))
    assert set(contents(_with_index(raw, change), ignores_index=True).members) == {"5/a", "5/b"}


@given(st.binary(max_size=3000))
def test_any_bytes_are_an_archive_or_an_error(data: bytes) -> None:
    for start in (b"", header("5/a", 10, 0o600, 0), archive({"a": b"12"})):
        try:
            found = contents(start + data)
        except FormatError:
            continue
        assert all(one.offset + one.size <= len(start + data) for one in found.members.values())


@given(FILES.filter(bool), st.data())
def test_a_flipped_byte_is_an_error_or_harmless_to_other_members(files: dict[str, bytes], data: st.DataObject) -> None:
    raw = bytearray(archive(files))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    try:
        found = contents(bytes(raw))
    except FormatError:
        return
    assert all(0 <= one.offset <= one.offset + one.size <= len(raw) for one in found.members.values())


@pytest.mark.parametrize("name", ["", "/", "/a", "a/", "a//b", "..", "a/..", "./a/.", "../a", "a\0b", "."])
def test_names_that_no_dump_has(name: str) -> None:
    with pytest.raises(FormatError, match="below the folder"):
        check_name("x.tar", name)
