"""The bytes of a pack: a tar archive of one iteration whose last members are an index and a tail.

    5/Conv2D.Conv2D-op12....npy      a member for each file, in the order in which they were written
    5/ReLU.ReLU-op13....npy          a hard link, where the bytes are those of an earlier member
    5/.msdump/index.json             the index, columns of equal length
    5/.msdump/tail                   512 bytes that say where the index lies
    1024 zero bytes

The tail ends 1024 bytes before the end of the file, so that a reader finds the index with one read, also over a
network. Every tar reader lists and extracts the members. A pack whose writer was killed has no tail: its members are
found by their headers.

Index: a JSON object with `msdump_index` (the version, 1), `hash` (algorithm of the column), and the columns

    name     full name of the member
    offset   of its data in the archive; the 512 bytes before are its header
    size     of its data
    target   for a hard link the number of the member that holds its data, else -1
    head     number of its first bytes among `heads`, -1 where these are not kept
    hashes   `offset:hash` for each tensor in it, where its bytes begin in the member and their hash, joined by ","

and `heads`, the first bytes of .npy members in base64: everything about such a tensor but its data.

Source: POSIX.1-2017, pax: ustar headers, typeflags 0, 1, 5, x and g; GNU tar: typeflags L and K, sizes in base 256.
"""

from __future__ import annotations

import base64
import functools
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from msdump.errors import FormatError

BLOCK = 512
END = bytes(2 * BLOCK)
SUFFIX, PART_SUFFIX = ".tar", ".tar.part"
INDEX_FOLDER = ".msdump"
INDEX_NAME, TAIL_NAME = f"{INDEX_FOLDER}/index.json", f"{INDEX_FOLDER}/tail"
HASH = "xxh3_128"
# The tail, its header and the end of the archive.
TAIL_BYTES = 2 * BLOCK + len(END)
MAX_INDEX_BYTES = 1 << 30
_TAIL_MAGIC = b"msdump pack 1 "
_VERSION = 1
_NAME_BYTES = 100
_MAX_SIZE = 1 << 62
_MAX_EXTENDED_BYTES = 1 << 20
_FILE, _OLD_FILE, _LINK, _FOLDER = b"0", b"\0", b"1", b"5"
_PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_TARGET = b"x", b"g", b"L", b"K"
# Links, devices, folders and pipes have no data, whatever their headers say.   Source: POSIX and GNU tar.
_WITHOUT_DATA = (b"1", b"2", b"3", b"4", b"5", b"6")
# How a part of a name begins and ends among others that are joined by zero bytes; such that are empty, "." or "..".
_ODD_PARTS = tuple(f"{begin}{part}{end}" for part in ("", ".", "..") for begin in "/\0" for end in "/\0")
_NUMBER_COLUMNS = ("offset", "size", "target", "head")


@dataclass(frozen=True, slots=True)
class Member:
    """One file of a pack.

    name     of the member, `{iteration}/{file}` in packs that msdump writes
    offset   of its data in the archive; of a link, of the data that it shows
    size     of its data
    head     first bytes, where the index has them
    hashes   `offset:hash` of each tensor in it, where the index has them
    """

    name: str
    offset: int
    size: int
    is_link: bool = False
    head: bytes = b""
    hashes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Contents:
    """What a pack holds.

    members   files by name, in the order of the archive
    foreign   names of links, devices and the like, which no dump has
    end       offset behind the last whole member
    is_whole  the archive ends as it should; False: it was cut
    has_index  members come from the index
    originals  names that members stand for, where the archive was cut before its mapping.csv
    """

    members: Mapping[str, Member]
    foreign: tuple[str, ...] = ()
    end: int = 0
    is_whole: bool = True
    has_index: bool = False
    originals: Mapping[str, str] = field(default_factory=dict)


# -- writing -----------------------------------------------------------------------------------------------------------


def padding(size: int) -> int:
    """Zero bytes that follow data of this size."""
    return -size % BLOCK


def header(
    name: str, size: int, mode: int, mtime: int, target: str | None = None, original: str | None = None
) -> bytes:
    """Blocks that precede the data of a member, 512 bytes or, for names of more than 100, a few times that.

    target    full name of the earlier member that this one is a hard link to; its size is 0 then
    original  the name that the member stands for, as mapping.csv has it: a pack that was cut has no such file
    """
    raw = name.encode(errors="surrogateescape")
    raw_target = b"" if target is None else target.encode(errors="surrogateescape")
    extended = b""
    if len(raw) > _NAME_BYTES:
        extended += _pax_record(b"path", raw)
    if len(raw_target) > _NAME_BYTES:
        extended += _pax_record(b"linkpath", raw_target)
    if original is not None:
        extended += _pax_record(b"comment", original.encode(errors="surrogateescape"))
    kind = _FILE if target is None else _LINK
    main = _block(raw[:_NAME_BYTES], size, mode, mtime, kind, raw_target[:_NAME_BYTES])
    if not extended:
        return main
    pax = _block(b"././@PaxHeader", len(extended), mode, mtime, _PAX, b"")
    return pax + extended + bytes(padding(len(extended))) + main


def _pax_record(key: bytes, value: bytes) -> bytes:
    """`length key=value`, where the length counts its own digits."""
    rest = len(key) + len(value) + 3
    length = rest + len(str(rest))
    length = rest + len(str(length))
    return b"%d %s=%s\n" % (length, key, value)


def _block(name: bytes, size: int, mode: int, mtime: int, kind: bytes, target: bytes) -> bytes:
    before, after, fixed_sum = _fixed(mode, size, mtime, kind)
    # The sum of all bytes, with blanks in the place of the checksum itself.
    checksum = fixed_sum + sum(name) + sum(target)
    return b"%s%s%06o\0 %s%s%s" % (
        name.ljust(_NAME_BYTES, b"\0"),
        before,
        checksum,
        kind,
        target.ljust(_NAME_BYTES, b"\0"),
        after,
    )


# Magic and version, then owner, group, device numbers and prefix, which packs leave empty.
_REST = b"ustar\00000" + bytes(BLOCK - 265)


@functools.lru_cache(maxsize=4096)
def _fixed(mode: int, size: int, mtime: int, kind: bytes) -> tuple[bytes, bytes, int]:
    """Of a header: mode, owner, group, size and time; what follows the names; the sum of all but the names."""
    number = b"%011o\0" % size if size < 8**11 else b"\x80" + size.to_bytes(11, "big")
    before = b"%07o\0%07o\0%07o\0%s%011o\0" % (mode, 0, 0, number, mtime)
    return before, _REST, sum(before) + 8 * 32 + sum(kind) + sum(_REST)


def end_of_pack(folder: str, members: Sequence[Member], offset: int, mode: int, mtime: int) -> bytes:
    """Index, tail and end of a pack whose members end at `offset`, of the folder that its members lie in."""
    index = _index(members)
    head = header(f"{folder}/{INDEX_NAME}", len(index), mode, mtime)
    place = b"%d %d %d\n" % (offset + len(head), len(index), zlib.crc32(index))
    tail = (_TAIL_MAGIC + place).ljust(BLOCK, b"\0")
    body = head + index + bytes(padding(len(index)))
    return body + header(f"{folder}/{TAIL_NAME}", BLOCK, mode, mtime) + tail + END


def _index(members: Sequence[Member]) -> bytes:
    heads: dict[bytes, int] = {}
    by_offset: dict[int, int] = {}
    columns: dict[str, list[Any]] = {name: [] for name in ("name", *_NUMBER_COLUMNS, "hashes")}
    for number, member in enumerate(members):
        columns["name"].append(member.name)
        columns["offset"].append(member.offset)
        columns["size"].append(member.size)
        columns["target"].append(by_offset.setdefault(member.offset, number) if member.is_link else -1)
        if not member.is_link:
            by_offset.setdefault(member.offset, number)
        columns["head"].append(heads.setdefault(member.head, len(heads)) if member.head else -1)
        columns["hashes"].append(",".join(member.hashes))
    texts = [base64.b64encode(head).decode() for head in heads]
    content = {"msdump_index": _VERSION, "hash": HASH, **columns, "heads": texts}
    return json.dumps(content, ensure_ascii=True, separators=(",", ":")).encode()


# -- reading -----------------------------------------------------------------------------------------------------------

# Bytes of an archive: (offset, size) -> as many as there are, at most `size`.
Read = Callable[[int, int], bytes]


def read_contents(where: str, size: int, read: Read, ignores_index: bool = False) -> Contents:
    """What an archive holds, by its index or, where it has none, by its headers.

    where   for messages
    size    of the archive
    ignores_index  go by the headers in any case
    Edges:  a last member that is cut is left out.
    Raises: FormatError for an index that is damaged or contradicts itself, and for names that no dump has: absolute
            ones, ones that lead out, two of one name, links to what is not an earlier member.
    """
    place = _tail(size, read)
    if place is None or ignores_index:
        return _scanned(where, size, read)
    offset, length, checksum = place
    data = read(offset, length)
    if len(data) != length or zlib.crc32(data) != checksum:
        raise FormatError(
            f"{where} at offset {offset}: expected an index of {length} bytes with the checksum {checksum}, got "
            "another. `msdump recover` writes it anew."
        )
    return _indexed(where, data, offset)


def _tail(size: int, read: Read) -> tuple[int, int, int] | None:
    """Offset, length and checksum of the index."""
    if size < TAIL_BYTES:
        return None
    tail = read(size - BLOCK - len(END), BLOCK)
    if not tail.startswith(_TAIL_MAGIC):
        return None
    numbers = tail[len(_TAIL_MAGIC) :].split(b"\n", 1)[0].split(b" ")
    if len(numbers) != 3 or not all(one.isdigit() and len(one) < 20 for one in numbers):
        return None
    offset, length, checksum = map(int, numbers)
    return (offset, length, checksum) if length <= MAX_INDEX_BYTES and offset + length <= size else None


class _Rows(Mapping[str, Member]):
    """Members of an index, made when they are asked for: opening a pack of many costs its columns alone.

    Raises: ValueError, TypeError, OverflowError for columns that contradict themselves or the archive.
    """

    def __init__(self, columns: Mapping[str, Any], has_hashes: bool, end: int) -> None:
        self._names, self._hashes = columns["name"], columns["hashes"]
        self._heads = [base64.b64decode(text, validate=True) for text in columns["heads"]]
        self._has_hashes = has_hashes
        for column, kind in (("name", str), ("hashes", str), *((name, int) for name in _NUMBER_COLUMNS)):
            if len(columns[column]) != len(self._names) or not set(map(type, columns[column])) <= {kind}:
                raise ValueError(f"the column {column}")
        numbers = (np.array(columns[column], np.int64) for column in _NUMBER_COLUMNS)
        self._offsets, self._sizes, self._targets, self._head_numbers = numbers
        offsets, targets, own = self._offsets, self._targets, np.arange(len(self._names))
        is_placed = (offsets >= BLOCK) & (self._sizes >= 0) & (offsets <= end) & (self._sizes <= end - offsets)
        is_linked = (targets >= 0) & (targets < own) & (offsets[np.minimum(targets, own)] == offsets)
        has_head = (self._head_numbers >= -1) & (self._head_numbers < len(self._heads))
        wrong = np.flatnonzero(~(is_placed & (is_linked | (targets == -1)) & has_head))
        if wrong.size:
            raise ValueError(f"member {wrong[0]}")
        self._number_by_name = dict(zip(self._names, range(len(self._names)), strict=True))

    @property
    def has_names_twice(self) -> bool:
        return len(self._number_by_name) != len(self._names)

    def __getitem__(self, name: str) -> Member:
        number = self._number_by_name[name]
        head, text = int(self._head_numbers[number]), self._hashes[number]
        return Member(
            name,
            int(self._offsets[number]),
            int(self._sizes[number]),
            bool(self._targets[number] >= 0),
            self._heads[head] if head >= 0 else b"",
            tuple(text.split(",")) if text and self._has_hashes else (),
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._number_by_name)

    def __len__(self) -> int:
        return len(self._number_by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._number_by_name


def _indexed(where: str, data: bytes, end: int) -> Contents:
    try:
        content = json.loads(data)
        if content["msdump_index"] != _VERSION:
            raise FormatError(f"{where}: expected an index of version {_VERSION}, got {content['msdump_index']!r:.20}.")
        members = _Rows(content, content["hash"] == HASH, end)
    except FormatError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise FormatError(
            f"{where} at offset {end}: expected an index of a pack, got a damaged one: {error!s:.200}. "
            "`msdump recover` writes it anew."
        ) from error
    if members.has_names_twice:
        raise FormatError(f"{where}: expected each name once in the index, got one twice.")
    # All at once: names are nearly always those of files below the folder.
    joined = "\0".join(("", *members, ""))
    if joined.count("\0") != len(members) + 1 or any(part in joined for part in _ODD_PARTS):
        for name in members:
            check_name(where, name)
    return Contents(members, end=end, has_index=True)


def check_name(where: str, name: str) -> None:
    """Raises: FormatError for a name that leads out of the folder, or is none."""
    parts = name.split("/")
    if name.startswith("/") or "\0" in name or not all(part not in ("", ".", "..") for part in parts):
        raise FormatError(
            f"{where}: expected members below the folder of the archive, got {name[:120]!r}. It is refused as a whole."
        )


@dataclass(slots=True)
class _Scan:
    """What was found so far."""

    where: str
    members: dict[str, Member] = field(default_factory=dict)
    foreign: list[str] = field(default_factory=list)
    originals: dict[str, str] = field(default_factory=dict)

    def contents(self, end: int, is_whole: bool) -> Contents:
        """What a dump has of it: index and tail are parts of the pack."""
        members = {name: one for name, one in self.members.items() if not _is_of_index(name)}
        return Contents(members, tuple(self.foreign), end, is_whole, originals=self.originals)

    def add(self, member: Member) -> None:
        check_name(self.where, member.name)
        if member.name in self.members:
            raise FormatError(f"{self.where}: expected each name once, got {member.name[:120]!r} twice. It is refused.")
        self.members[member.name] = member


def _scanned(where: str, size: int, read: Read) -> Contents:
    """Members by their headers, up to the end of the archive, the first damaged header, or the first cut member."""
    scan = _Scan(where)
    at = end = 0
    extended: dict[str, bytes] = {}
    while True:
        block = read(at, BLOCK)
        if len(block) < BLOCK or not any(block):
            break
        length, kind = _member_size(block), block[156:157]
        if length is not None and kind in _WITHOUT_DATA:
            length = 0
        elif length is not None and extended.get("size", b"").isdigit() and len(extended["size"]) < 19:
            length = int(extended["size"])
        if length is None or at + BLOCK + length > size:
            return scan.contents(end, is_whole=False)
        following = at + BLOCK + length + padding(length)
        if kind in (_PAX, _LONG_NAME, _LONG_TARGET) and length:
            if length > _MAX_EXTENDED_BYTES:
                raise FormatError(f"{where} at offset {at}: expected at most {_MAX_EXTENDED_BYTES} bytes of names.")
            data = read(at + BLOCK, length)
            extended.update(_extended(kind, data))
        elif kind != _PAX_GLOBAL:
            name = _text(extended.get("path", _name(block))).removeprefix("./")
            _take(scan, kind, name, _text(extended.get("linkpath", _cut(block[157:257]))), at, length)
            if "comment" in extended and name in scan.members:
                scan.originals[name] = _text(extended["comment"])
            extended = {}
            # Index and tail are written anew behind the last file.
            end = end if _is_of_index(name) else following
        at = following
    return scan.contents(end, is_whole=len(read(at, BLOCK)) == BLOCK)


def _is_of_index(name: str) -> bool:
    return name.endswith((f"/{INDEX_NAME}", f"/{TAIL_NAME}")) or name in (INDEX_NAME, TAIL_NAME)


def _take(scan: _Scan, kind: bytes, name: str, target: str, at: int, length: int) -> None:
    if kind in (_FILE, _OLD_FILE):
        scan.add(Member(name, at + BLOCK, length))
    elif kind == _LINK:
        origin = scan.members.get(target.removeprefix("./"))
        if origin is None:
            raise FormatError(
                f"{scan.where} at offset {at}: expected links to earlier members, got one to {target[:120]!r}. "
                "The archive is refused."
            )
        scan.add(Member(name, origin.offset, origin.size, is_link=True))
    elif kind != _FOLDER:
        check_name(scan.where, name)
        scan.foreign.append(name)


def _name(block: bytes) -> bytes:
    """Name of a header without extended ones; ustar's prefix comes first where there is one."""
    prefix = _cut(block[345:500]) if block[257:263] == b"ustar\0" else b""
    return prefix + b"/" + _cut(block[:100]) if prefix else _cut(block[:100])


def _cut(raw: bytes) -> bytes:
    return raw.split(b"\0", 1)[0]


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")


def _extended(kind: bytes, data: bytes) -> dict[str, bytes]:
    if kind == _LONG_NAME:
        return {"path": _cut(data)}
    if kind == _LONG_TARGET:
        return {"linkpath": _cut(data)}
    found: dict[str, bytes] = {}
    while data:
        digits = data.split(b" ", 1)[0]
        if not (digits.isdigit() and len(digits) < 9 and len(digits) + 1 < int(digits) <= len(data)):
            break
        key, _, value = data[len(digits) + 1 : int(digits) - 1].partition(b"=")
        if key in (b"path", b"linkpath", b"size", b"comment"):
            found[key.decode()] = value
        data = data[int(digits) :]
    return found


def _member_size(block: bytes) -> int | None:
    """Size that a header tells; None for bytes that are no header."""
    text = _cut(block[148:156]).strip(b" ")
    checksum = sum(block) - sum(block[148:156]) + 8 * 32
    if not _is_octal(text) or int(text, 8) != checksum:
        return None
    raw = block[124:136]
    if raw[0] == 0x80:
        size = int.from_bytes(raw[1:], "big")
        return size if size < _MAX_SIZE else None
    digits = raw.strip(b" \0")
    if digits and not _is_octal(digits):
        return None
    return int(digits or b"0", 8)


def _is_octal(text: bytes) -> bool:
    return bool(text) and not text.strip(b"01234567")


def is_header_of(block: bytes, member: Member) -> bool:
    """Whether 512 bytes are the header of a member's data: same size, same beginning of the name, right checksum."""
    return (
        len(block) == BLOCK
        and block[156:157] in (_FILE, _OLD_FILE)
        and _member_size(block) == member.size
        and (member.is_link or _is_name(block, member.name.encode(errors="surrogateescape")))
    )


def _is_name(block: bytes, name: bytes) -> bool:
    found = _name(block)
    return found.removeprefix(b"./") == name or (len(name) > _NAME_BYTES and name.startswith(found[:_NAME_BYTES]))
