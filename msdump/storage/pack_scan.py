"""What a tar archive holds by the headers of its members: of packs without an index, and of archives of others.

A header that is damaged costs its own member: the scan goes on at the next header that is one.

Source: POSIX.1-2017, pax: ustar headers, typeflags 0, 1, 5, x and g; GNU tar: typeflags L and K, sizes in base 256, and
sparse files in pax records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from msdump.errors import FormatError
from msdump.storage.pack_format import (
    BLOCK,
    FILE,
    INDEX_FOLDER,
    INDEX_NAME,
    LINK,
    NAME_BYTES,
    PAX,
    TAIL_NAME,
    Member,
    own_time,
    padding,
)

# Bytes of an archive: (offset, size) -> as many as there are, at most `size`.
Read = Callable[[int, int], bytes]

_MAX_SIZE = 1 << 62
_MAX_EXTENDED_BYTES = 1 << 20
_OLD_FILE, _FOLDER = b"\0", b"5"
_PAX_GLOBAL, _LONG_NAME, _LONG_TARGET = b"g", b"L", b"K"
_OF_OTHERS = (PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_TARGET)  # headers that tell of other members
# Links, devices, folders and pipes have no data, whatever their headers say.   Source: POSIX and GNU tar.
_WITHOUT_DATA = (b"1", b"2", b"3", b"4", b"5", b"6")
_PAX_KEYS = (b"path", b"linkpath", b"size", b"comment")
_SPARSE = b"GNU.sparse."
_MAGIC = np.frombuffer(b"ustar", np.uint8)
_CHUNK = 1 << 20
_MAX_ZEROS = 64 << 20  # programs fill the last record of an archive; the largest records have some MiB
_LONGEST_DIGITS, _LONGEST_SIZE = 8, 19


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes of an archive between its members that no header explains."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class ArchiveContents:
    """What an archive holds.

    members   files by name, in the order of the archive
    foreign   names of links, devices and the like, which no dump has
    end       offset behind the last whole member
    is_whole  the archive ends as it should; False: it was cut
    has_index  members come from the index
    originals  names that members stand for, where the archive was cut before its mapping.csv
    folders   names of members that are folders
    gaps      bytes before `end`, or up to the end of the file, that no header explains
    cut_bytes  of a last member that is not whole, behind `end`
    rest_bytes  behind the end of the archive
    index_offset  of the header of an index; None where no header of one was met
    own_time  of the members; None unless every header is one that msdump writes, of one iteration and one time
    """

    members: Mapping[str, Member]
    foreign: tuple[str, ...] = ()
    end: int = 0
    is_whole: bool = True
    has_index: bool = False
    originals: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    cut_bytes: int = 0
    rest_bytes: int = 0
    own_time: int | None = None
    index_offset: int | None = None

    @property
    def damage(self) -> tuple[str, ...]:
        """Texts on what of the archive could not be parsed; () when it is complete."""
        found = [f"{gap.size} bytes at offset {gap.offset} that no header explains" for gap in self.gaps]
        if self.cut_bytes:
            found.append(f"{self.cut_bytes} bytes of a last member that was cut")
        elif not (self.is_whole or self.gaps):
            found.append("no end of the archive")
        if self.rest_bytes:
            found.append(f"{self.rest_bytes} bytes behind the end of the archive")
        if not (found or self.members or self.foreign or self.folders):
            found.append("no member")
        return tuple(found)


def check_name(where: str, name: str) -> None:
    """Raises: FormatError for a name that leads out of the folder, or is none."""
    parts = name.split("/")
    if name.startswith("/") or "\0" in name or not all(part not in ("", ".", "..") for part in parts):
        raise FormatError(
            f"{where}: expected members below the folder of the archive, got {name[:120]!r}. It is refused as a whole."
        )


def scan(where: str, size: int, read: Read, search_bytes: int | None = None) -> ArchiveContents:
    """Members by their headers, up to the end of the archive or the first member that is cut.

    search_bytes  how far behind a damaged header the next one is looked for; None: up to the end of the file
    Raises:  FormatError, as `read_contents`.
    """
    return _Scan(where, size, read, size if search_bytes is None else search_bytes).contents()


class _Scan:
    """One reading of an archive. `at` is the header that comes next, `start` the first of those of one member."""

    def __init__(self, where: str, size: int, read: Read, search_bytes: int) -> None:
        self._where = where
        self._size = size
        self._read = read
        self._search_bytes = search_bytes
        self._members: dict[str, Member] = {}
        self._foreign: list[str] = []
        self._folders: list[str] = []
        self._originals: dict[str, str] = {}
        self._gaps: list[Gap] = []
        self._extended: dict[str, bytes] = {}
        self._own_times: set[int | None] = set()
        self._own_folders: set[str] = set()
        self._index_offset: int | None = None
        self._has_ended = False  # the tail of a pack was there
        self._at = self._start = self._end = 0

    def contents(self) -> ArchiveContents:
        """Raises: FormatError."""
        while True:
            block = self._read(self._at, BLOCK)
            if 0 < len(block) < BLOCK and not self._at:
                self._gap(self._size)
                return self._found(is_whole=False)
            if len(block) < BLOCK:
                return self._found(is_whole=False, cut_bytes=max(0, self._size - self._end))
            if not any(block):
                if self._ends_with_zeros():
                    return self._found()
                # Zeros in the place of a header are damage inside of a pack, and the end of any other archive.
                is_damage = not self._has_ended and (self._is_own or not self._own_times)
                if not is_damage or not self._go_on(self._at, is_own=True):
                    return self._found(rest_bytes=self._size - self._at)
                continue
            length = self._length(block)
            if length is None:
                if not self._go_on(self._at + BLOCK, self._is_own):
                    self._gap(self._size)
                    return self._found(is_whole=False)
            elif self._at + BLOCK + length > self._size:
                self._own_times.add(own_time(block))
                return self._found(is_whole=False, cut_bytes=self._size - self._end)
            else:
                self._take(block, length, self._at + BLOCK + length + padding(length))

    # -- one header ------------------------------------------------------------------------------------------------

    def _length(self, block: bytes) -> int | None:
        """Bytes of data behind a header; None for bytes that are no header."""
        length, kind = member_size(block), block[156:157]
        if length is None or kind in _WITHOUT_DATA:
            return None if length is None else 0
        size = b"" if kind in _OF_OTHERS else self._extended.get("size", b"")
        return int(size) if size.isdigit() and len(size) < _LONGEST_SIZE else length

    def _take(self, block: bytes, length: int, following: int) -> None:
        kind = block[156:157]
        if kind in _OF_OTHERS:
            self._own_times.add(own_time(block))
            self._extend(kind, length)
            if kind == _PAX_GLOBAL:
                self._start = following
            self._at = following
            return
        extended, self._extended = self._extended, {}
        name = _text(extended.get("path", _name(block))).removeprefix("./")
        # `recover` may have written them at another time.
        if not is_of_index(name) or own_time(block) is None:
            self._own_times.add(own_time(block))
        if "damaged" in extended:
            self._gap(following)
        else:
            self._add(kind, name, block, extended, length)
            if "comment" in extended and name in self._members:
                self._originals[name] = _text(extended["comment"])
        # Index and tail are written anew behind the last file.
        if is_of_index(name):
            self._index_offset = self._start if self._index_offset is None else self._index_offset
        else:
            self._end = following
        self._at = self._start = following

    def _extend(self, kind: bytes, length: int) -> None:
        """A header that tells of the member behind it."""
        if length > _MAX_EXTENDED_BYTES:
            raise FormatError(
                f"{self._where} at offset {self._at}: expected at most {_MAX_EXTENDED_BYTES} bytes of names, got "
                f"{length}."
            )
        found = _extended(kind, self._read(self._at + BLOCK, length))
        if kind != _PAX_GLOBAL:
            # Without its name nothing tells what the member is.
            self._extended.update({"damaged": b""} if found is None else found)
        elif found is None or found.keys() - {"comment"}:
            raise FormatError(
                f"{self._where} at offset {self._at}: expected names and sizes of each member, got one for all."
            )

    def _add(self, kind: bytes, name: str, block: bytes, extended: Mapping[str, bytes], length: int) -> None:
        if kind == _FOLDER:
            name = name.rstrip("/")
            if name not in ("", "."):
                check_name(self._where, name)
                self._folders.append(name)
            return
        check_name(self._where, name)
        self._has_ended = self._has_ended or name.endswith(f"/{TAIL_NAME}")
        self._own_folders.add(name.partition(f"/{INDEX_FOLDER}/")[0] if is_inner(name) else name.rpartition("/")[0])
        if kind in (FILE, _OLD_FILE) and "sparse" not in extended:
            self._put(Member(name, self._at + BLOCK, length))
        elif kind == LINK:
            target = _text(extended.get("linkpath", _cut(block[157:257]))).removeprefix("./")
            origin = self._members.get(target)
            if origin is not None:
                self._put(Member(name, origin.offset, origin.size, is_link=True))
            elif self._gaps:
                # What it shows may have lain there.
                self._gap(self._at + BLOCK)
            else:
                raise FormatError(
                    f"{self._where} at offset {self._at}: expected links to earlier members, got one to "
                    f"{target[:120]!r}. The archive is refused."
                )
        else:
            self._foreign.append(name)

    def _put(self, member: Member) -> None:
        if member.name in self._members:
            raise FormatError(
                f"{self._where}: expected each name once, got {member.name[:120]!r} twice. It is refused."
            )
        self._members[member.name] = member

    # -- what is no header -----------------------------------------------------------------------------------------

    def _gap(self, end: int) -> None:
        """Nothing from `start` to here is known."""
        last = self._gaps[-1] if self._gaps else None
        if last is not None and last.offset + last.size == self._start:
            self._gaps[-1] = Gap(last.offset, end - last.offset)
        else:
            self._gaps.append(Gap(self._start, end - self._start))

    def _go_on(self, at: int, is_own: bool) -> bool:
        """Go to the next header at or behind an offset; False when there is none.

        is_own   only to one that msdump has written, at the time of the others: the data of a tensor may hold any
                 other
        """
        stop = min(self._size, at + self._search_bytes)
        while at + BLOCK <= stop:
            data = self._read(at, min(_CHUNK, stop - at))
            blocks = np.frombuffer(data, np.uint8, len(data) // BLOCK * BLOCK).reshape(-1, BLOCK)
            for number in np.flatnonzero((blocks[:, 257:262] == _MAGIC).all(axis=1)):
                if self._is_next(blocks[number].tobytes(), is_own):
                    header_offset = at + int(number) * BLOCK
                    self._gap(header_offset)
                    self._end = self._at = self._start = header_offset
                    self._extended = {}
                    return True
            if not blocks.size:
                break
            at += blocks.size
        return False

    def _is_next(self, block: bytes, is_own: bool) -> bool:
        if not is_own:
            return member_size(block) is not None
        time = own_time(block)
        return time is not None and (not self._own_times or time in self._own_times)

    def _ends_with_zeros(self) -> bool:
        """Whether nothing but zeros is at and behind `at`."""
        at = self._at + BLOCK
        while at < self._size:
            data = np.frombuffer(self._read(at, _CHUNK), np.uint8)
            if not data.size or data.any() or at - self._at > _MAX_ZEROS:
                return False
            at += data.size
        return True

    # -- the whole -------------------------------------------------------------------------------------------------

    @property
    def _is_own(self) -> bool:
        """Whether every header so far is one of a pack that msdump has written, of one iteration."""
        folders = self._own_folders or {"-"}
        return len(self._own_times) == len(folders) == 1 and None not in self._own_times and _is_one_name(folders)

    def _found(self, is_whole: bool = True, cut_bytes: int = 0, rest_bytes: int = 0) -> ArchiveContents:
        """What a dump has of it: index and tail are parts of the pack."""
        # A pack gets its index and its end at once.
        is_own = self._is_own and (not is_whole or self._index_offset is not None)
        return ArchiveContents(
            {name: member for name, member in self._members.items() if not is_of_index(name)},
            tuple(self._foreign),
            self._end,
            is_whole,
            originals=self._originals,
            folders=tuple(self._folders),
            gaps=tuple(self._gaps),
            cut_bytes=cut_bytes,
            rest_bytes=rest_bytes,
            own_time=next(iter(self._own_times)) if is_own else None,
            index_offset=self._index_offset,
        )


def _is_one_name(folders: Collection[str]) -> bool:
    return all(folder and "/" not in folder for folder in folders)


# -- headers -----------------------------------------------------------------------------------------------------------


def is_of_index(name: str) -> bool:
    """Whether a member is the index or the tail of a pack."""
    return name.endswith((f"/{INDEX_NAME}", f"/{TAIL_NAME}")) or name in (INDEX_NAME, TAIL_NAME)


def is_inner(name: str) -> bool:
    """Whether a member is one that a pack has for itself: index, tail, and what `recover` keeps of damage."""
    return f"/{INDEX_FOLDER}/" in f"/{name}"


def _name(block: bytes) -> bytes:
    """Name of a header without extended ones; ustar's prefix comes first where there is one."""
    prefix = _cut(block[345:500]) if block[257:263] == b"ustar\0" else b""
    return prefix + b"/" + _cut(block[:100]) if prefix else _cut(block[:100])


def _cut(raw: bytes) -> bytes:
    return raw.split(b"\0", 1)[0]


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")


def _extended(kind: bytes, data: bytes) -> dict[str, bytes] | None:
    """What the data of an extended header says of the member behind it; None where it is damaged."""
    if kind == _LONG_NAME:
        return {"path": _cut(data)}
    if kind == _LONG_TARGET:
        return {"linkpath": _cut(data)}
    found: dict[str, bytes] = {}
    at = 0
    while at < len(data):
        blank = data.find(b" ", at, at + _LONGEST_DIGITS + 1)
        digits = data[at:blank]
        # `length key=value` and a line end, all of which the length counts.
        end = at + int(digits) if blank > at and digits.isdigit() else at
        if not blank + 2 < end <= len(data) or data[end - 1 : end] != b"\n":
            return None
        key, _, value = data[blank + 1 : end - 1].partition(b"=")
        if key in _PAX_KEYS:
            found[key.decode()] = value
        elif key.startswith(_SPARSE):
            found["sparse"] = b""
        at = end
    return found


def member_size(block: bytes) -> int | None:
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
        and block[156:157] in (FILE, _OLD_FILE)
        and member_size(block) == member.size
        and (member.is_link or _is_name(block, member.name.encode(errors="surrogateescape")))
    )


def _is_name(block: bytes, name: bytes) -> bool:
    found = _name(block)
    return found.removeprefix(b"./") == name or (len(name) > NAME_BYTES and name.startswith(found[:NAME_BYTES]))
