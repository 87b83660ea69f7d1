"""Archives by their headers: a damaged one costs its own member, and hostile ones cost no time."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from msdump.errors import FormatError
from msdump.storage.pack_format import BLOCK, END, header, own_time, padding
from msdump.storage.pack_scan import ArchiveContents, Gap, scan
from tests.storage.test_pack_format import FILES, NAMES, archive, contents


def scanned(data: bytes, search_bytes: int | None = None) -> ArchiveContents:
    return scan("5.tar", len(data), lambda offset, size: data[offset : offset + size], search_bytes)


@given(FILES.filter(lambda files: len(files) > 1), st.data())
def test_a_damaged_header_costs_its_own_member(files: dict[str, bytes], data: st.DataObject) -> None:
    raw = bytearray(archive(files, is_finished=data.draw(st.booleans())))
    members = contents(bytes(raw), ignores_index=True).members
    lost = members[data.draw(st.sampled_from(sorted(members)))]
    at = lost.offset - BLOCK
    if data.draw(st.booleans(), "zeros"):
        raw[at : at + BLOCK] = bytes(BLOCK)
    else:
        raw[at + data.draw(st.sampled_from([0, 105, 130, 150, 258]))] ^= 1
    assume(any(raw[at:]))
    found = scanned(bytes(raw))
    names = {name for name, one in members.items() if one.offset != lost.offset}
    assert set(found.members) == names
    assert found.damage
    assert {name: (one.offset, one.size) for name, one in found.members.items()} == {
        name: (members[name].offset, members[name].size) for name in names
    }


def test_a_header_of_another_archive_in_the_data_is_no_member() -> None:
    inner = archive({"inner": b"x"}, is_finished=False).replace(b"5/inner", b"../evil")
    other = io.BytesIO()
    with tarfile.open(fileobj=other, mode="w") as opened:
        info = tarfile.TarInfo("5/foreign")
        info.mtime, info.uid = 1_700_000_000, 7
        opened.addfile(info)
    raw = bytearray(archive({"a": b"1", "b": other.getvalue()[:BLOCK], "c": b"2"}))
    lost = contents(bytes(raw)).members["5/b"].offset - BLOCK
    raw[lost] ^= 1
    found = scanned(bytes(raw))
    assert set(found.members) == {"5/a", "5/c"}
    assert found.gaps == (Gap(lost, 2 * BLOCK),)
    assert found.own_time == 1_700_000_000
    assert b"../evil" in inner


def test_links_to_what_a_damaged_header_hides_are_lost_with_it() -> None:
    raw = bytearray(archive({"a": b"1", "b": b"2"}, {"d": "b", "e": "a"}))
    raw[contents(bytes(raw)).members["5/b"].offset - BLOCK] ^= 1
    found = scanned(bytes(raw))
    assert set(found.members) == {"5/a", "5/e"}
    assert len(found.gaps) == 1


def test_how_far_a_header_is_looked_for() -> None:
    raw = bytearray(archive({"a": b"1", "b": bytes(100_000), "c": b"2"}))
    raw[contents(bytes(raw)).members["5/b"].offset - BLOCK] ^= 1
    assert set(scanned(bytes(raw), 4096).members) == {"5/a"}
    assert set(scanned(bytes(raw), 200_000).members) == {"5/a", "5/c"}


@given(NAMES, st.integers(0, 2**70), st.integers(0, 0o777), st.integers(1, 2**33 - 1), st.none() | NAMES)
def test_headers_that_msdump_writes_are_known_again(
    name: str, size: int, mode: int, mtime: int, target: str | None
) -> None:
    blocks = header(f"5/{name}", size, mode, mtime, target)
    assert own_time(blocks[-BLOCK:]) == own_time(blocks[:BLOCK]) == mtime
    assert own_time(blocks[: BLOCK - 1]) is None
    assert own_time(bytes(BLOCK)) is None


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_of_others_are_not_own(form: int) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as opened:
        info = tarfile.TarInfo("5/a")
        info.mtime, info.uname = 1_700_000_000, "root"
        opened.addfile(info)
    assert scanned(buffer.getvalue()).own_time is None
    assert scanned(archive({"a": b"1"}) + archive({"b": b"1"})).rest_bytes
    assert scanned(archive({"a": b"1"})).damage == ()


def _extended(record: bytes, count: int) -> bytes:
    data = record * count
    block = bytearray(header("x", len(data), 0o600, 1))
    block[156:157] = b"x"
    block[148:156] = b"%06o\0 " % (sum(block) - sum(block[148:156]) + 8 * 32)
    return bytes(block) + data + bytes(padding(len(data)))


class _Counted(bytes):
    """Counts the bytes of all slices of it, and of slices of these."""

    sliced = 0

    def __getitem__(self, key: object) -> object:  # type: ignore[override]
        found = super().__getitem__(key)  # type: ignore[index]
        if isinstance(found, int):
            return found
        _Counted.sliced += len(found)
        return _Counted(found)


@pytest.mark.parametrize("record", [b"4 =\n", b"6 a=b\n", b"9 path=b\n"])
def test_many_records_of_an_extended_header_cost_linear_time(record: bytes) -> None:
    """Of 2 MiB: a minute, when each record copies those behind it."""
    raw = _Counted(_extended(record, (1 << 16) // len(record)) + header("5/a", 0, 0o600, 1) + END)
    _Counted.sliced = 0
    assert len(scanned(raw).members) == 1
    assert _Counted.sliced < 4 * len(raw)


@pytest.mark.parametrize(
    "record", [b"7 a=b\n", b"5 a=b\n", b"0 a=b\n", b"-6 a=b\n", b"6  a=b", b"a=b\n", b"999999999 a=b\n"]
)
def test_a_damaged_extended_header_costs_its_member(record: bytes) -> None:
    raw = archive({"a": b"1"}, is_finished=False) + _extended(record, 1) + header("5/b", 0, 0o600, 1) + END
    found = scanned(raw)
    assert list(found.members) == ["5/a"]
    assert len(found.gaps) == 1


@pytest.mark.parametrize("key", [b"path", b"size", b"linkpath"])
def test_one_name_for_all_members_is_refused(key: bytes) -> None:
    record = b"%d %s=1\n" % (len(key) + 5, key)
    block = bytearray(_extended(record, 1))
    block[156:157] = b"g"
    block[148:156] = b"%06o\0 " % (sum(block[:BLOCK]) - sum(block[148:156]) + 8 * 32)
    with pytest.raises(FormatError, match="one for all"):
        scanned(bytes(block) + header("5/b", 0, 0o600, 1) + END)
