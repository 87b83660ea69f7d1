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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

BLOCK = 512
END = bytes(2 * BLOCK)
SUFFIX, PART_SUFFIX = ".tar", ".tar.part"
INDEX_FOLDER = ".msdump"
INDEX_NAME, TAIL_NAME = f"{INDEX_FOLDER}/index.json", f"{INDEX_FOLDER}/tail"
HASH = "xxh3_128"
# The tail, its header and the end of the archive.
TAIL_BYTES = 2 * BLOCK + len(END)
MAX_INDEX_BYTES = 1 << 30
TAIL_MAGIC = b"msdump pack 1 "
VERSION = 1
NAME_BYTES = 100
NUMBER_COLUMNS = ("offset", "size", "target", "head")
FILE, LINK, PAX = b"0", b"1", b"x"
_PAX_NAME = b"././@PaxHeader"


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
    if len(raw) > NAME_BYTES:
        extended += _pax_record(b"path", raw)
    if len(raw_target) > NAME_BYTES:
        extended += _pax_record(b"linkpath", raw_target)
    if original is not None:
        extended += _pax_record(b"comment", original.encode(errors="surrogateescape"))
    kind = FILE if target is None else LINK
    main = _block(raw[:NAME_BYTES], size, mode, mtime, kind, raw_target[:NAME_BYTES])
    if not extended:
        return main
    pax = _block(_PAX_NAME, len(extended), mode, mtime, PAX, b"")
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
        name.ljust(NAME_BYTES, b"\0"),
        before,
        checksum,
        kind,
        target.ljust(NAME_BYTES, b"\0"),
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
    extent = b"%d %d %d\n" % (offset + len(head), len(index), zlib.crc32(index))
    tail = (TAIL_MAGIC + extent).ljust(BLOCK, b"\0")
    body = head + index + bytes(padding(len(index)))
    return body + header(f"{folder}/{TAIL_NAME}", BLOCK, mode, mtime) + tail + END


def _index(members: Sequence[Member]) -> bytes:
    heads: dict[bytes, int] = {}
    by_offset: dict[int, int] = {}
    columns: dict[str, list[Any]] = {name: [] for name in ("name", *NUMBER_COLUMNS, "hashes")}
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
    content = {"msdump_index": VERSION, "hash": HASH, **columns, "heads": texts}
    return json.dumps(content, ensure_ascii=True, separators=(",", ":")).encode()


# -- reading back ------------------------------------------------------------------------------------------------------


def own_time(block: bytes) -> int | None:
    """Time that a header tells, when `header` would make it byte for byte; None for a header of another program."""
    kind, mode, size, mtime = block[156:157], block[100:107], block[124:136], block[136:147]
    if kind not in (FILE, LINK, PAX) or not (mode + mtime).isdigit() or len(block) != BLOCK:
        return None
    digits = size[:11]
    try:
        count = int.from_bytes(size[1:], "big") if size[0] == 0x80 else int(digits, 8)
        time = int(mtime, 8)
        names = [part.split(b"\0", 1)[0] for part in (block[:NAME_BYTES], block[157 : 157 + NAME_BYTES])]
        made = _block(names[0], count, int(mode, 8), time, kind, names[1])
    except (ValueError, OverflowError):
        return None
    return time if time and made == block else None
