"""Packs whose writer was killed, or that were damaged, made whole: every member that a header or the index tells of.

What neither tells of stays in the pack, as a member of its own. The whole pack is written beside the damaged one, and
then takes its place.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace

from msdump.errors import FormatError
from msdump.formats.atomic import Folder
from msdump.formats.direct import Buffer
from msdump.formats.folders import held_for_change, write_error
from msdump.formats.pack import described
from msdump.formats.pack_tree import Packed, alone, chunks_of, named, packs_below
from msdump.formats.paths.parse import FolderLevels
from msdump.formats.paths.sync import MAPPING_FILE
from msdump.storage.pack_format import BLOCK, INDEX_FOLDER, PART_SUFFIX, SUFFIX, Member, end_of_pack, header, padding
from msdump.storage.pack_index import index_offset, read_contents
from msdump.storage.pack_scan import ArchiveContents, Gap, scan
from msdump.storage.packs import LocalSource, stamp_of, use_contents
from msdump.storage.plain import readable

_MODE = 0o600


def recover_tree(root: str | os.PathLike[str]) -> Iterator[Packed]:
    """Give each pack at or below `root` that was never finished, or is damaged, an index and its name.

    All whole members stay, and those whose header is damaged where the index tells of them. Of the last member that is
    there in part nothing is left; other bytes that no header explains become a member below `5/.msdump`.
    Edges:   a pack that a process writes, or dumps beside, is left alone, which `lost` says; whole packs are not
             touched, nor is an archive that msdump has not written. A pack without members is removed.
    Raises:  FormatError for one archive that is refused; WriteError.
    """
    for path in packs_below(root):
        try:
            with readable(path):
                source = LocalSource(path)
            damaged = _Damaged.of(source, path)
        except FormatError:
            # Readers name it.
            if not os.path.isdir(root):
                raise
            continue
        if damaged is None:
            continue
        with held_for_change([os.path.dirname(os.path.abspath(path))]) as busy, alone(path) as is_alone:
            if busy or not is_alone:
                yield Packed(path, 0, source.size, busy or "another process writes it now")
                continue
            with readable(path):
                is_same = stamp_of(os.stat(path)) == source.stamp
            yield damaged.recover() if is_same else Packed(path, 0, source.size, "it has changed meanwhile")


class _Damaged:
    """A pack of msdump that is not whole, or has not its name yet.

    indexed   what its index tells; None where it has none that can be read
    """

    def __init__(
        self, source: LocalSource, path: str, contents: ArchiveContents, indexed: ArchiveContents | None
    ) -> None:
        self._source = source
        self._path = path
        self._contents = contents
        self._indexed = indexed
        self._is_whole = indexed is not None and _agree(contents, indexed)
        self._blocks: dict[int, bytes] = {}
        self._shifts: list[tuple[int, int]] = []

    @staticmethod
    def of(source: LocalSource, path: str) -> _Damaged | None:
        """None for a pack that needs nothing, and for an archive that is none.   Raises: FormatError."""
        is_part = path.endswith(PART_SUFFIX)
        contents = scan(path, source.size, source.read)
        if contents.own_time is None or contents.rest_bytes:
            return _Damaged(source, path, contents, None) if is_part and not source.size else None
        try:
            indexed = read_contents(path, source.size, source.read, search_bytes=0)
        except FormatError:
            indexed = contents
        found = _Damaged(source, path, contents, indexed if indexed.has_index else None)
        return None if found._is_whole and not is_part else found

    def recover(self) -> Packed:
        """Raises: FormatError; WriteError."""
        home, name = os.path.split(os.path.abspath(self._path))
        with Folder(home) as folder:
            try:
                folder.remove_leftovers()
                if self._is_whole:
                    where = _named_whole(self._path)
                    return Packed(where, len(self._contents.members), self._source.size)
                return self._rewritten(folder, name)
            except OSError as error:
                raise write_error(self._path, "to recover this pack", error) from error

    def _rewritten(self, folder: Folder, name: str) -> Packed:
        self._restore_headers()
        contents, size = self._contents, self._source.size
        lost = [f"{contents.cut_bytes} bytes of a last member that was cut"] if self._has_cut_member else []
        if not contents.members:
            if not self._path.endswith(PART_SUFFIX):
                raise FormatError(f"{self._path}: expected members, got none that is whole. Remove it.")
            os.unlink(self._path)
            return Packed(self._path, 0, 0, "; ".join(lost))
        use_contents(self._path, self._source, contents)
        members = [self._described(member) for member in contents.members.values()]
        pieces, kept, at = self._pieces(members)
        members = [replace(one, offset=one.offset + self._shift(one.offset)) for one in members] + kept
        at = self._add_links(pieces, members, at)
        at = self._add_mapping(pieces, members, at)
        pieces.append(end_of_pack(self._folder, members, at, _MODE, self._time))
        lost += [f"{one.size} bytes that no header explains, kept as {one.name}" for one in kept]
        missing = self._missing(members)
        if missing:
            lost.append(f"{named(missing)}: in the index, and not in the pack")
        mode = stat.S_IMODE(os.stat(self._path).st_mode) & 0o666 | stat.S_IRUSR
        size = folder.write(name, [one for one in pieces if memoryview(one).nbytes], mode, replace=True)
        return Packed(_named_whole(self._path), len(members) - len(kept), size, "; ".join(lost))

    # -- what is known ---------------------------------------------------------------------------------------------

    @property
    def _time(self) -> int:
        return self._contents.own_time or 0

    @property
    def _folder(self) -> str:
        return next(iter(self._contents.members)).partition("/")[0]

    @property
    def _has_cut_member(self) -> bool:
        """The index and the tail are not what a user has lost."""
        return bool(self._contents.cut_bytes) and self._contents.index_offset is None

    def _restore_headers(self) -> None:
        """Headers that are damaged, where the index tells what they were."""
        if self._indexed is None:
            return
        for gap in self._contents.gaps:
            for member in self._indexed.members.values():
                if member.is_link or not gap.offset <= member.offset - BLOCK < gap.offset + gap.size:
                    continue
                blocks = header(member.name, member.size, _MODE, self._time)
                start = max(member.offset - len(blocks), gap.offset)
                self._blocks[start] = blocks[len(blocks) - (member.offset - start) :]
        if self._blocks:
            self._contents = scan(self._path, self._source.size, self._read)

    def _read(self, offset: int, size: int) -> bytes:
        data = bytearray(self._source.read(offset, size))
        for start, blocks in self._blocks.items():
            first, last = max(start, offset), min(start + len(blocks), offset + len(data))
            if first < last:
                data[first - offset : last - offset] = blocks[first - start : last - start]
        return bytes(data)

    def _described(self, member: Member) -> Member:
        """With what an index has of it: that of the old one, as the bytes may have changed since it was written."""
        known = None if self._indexed is None else self._indexed.members.get(member.name)
        if known is not None and (known.offset, known.size) == (member.offset, member.size):
            return replace(member, head=known.head, hashes=known.hashes)
        file = f"{self._path}/{member.name}"
        chunks, tensors_from = chunks_of(FolderLevels(), file, member.name.rpartition("/")[2])
        head, hashes = described([chunk for chunk in chunks if chunk.nbytes], tensors_from)
        return replace(member, head=head, hashes=hashes)

    def _missing(self, members: list[Member]) -> list[str]:
        there = {one.name for one in members}
        return [] if self._indexed is None else [name for name in self._indexed.members if name not in there]

    # -- the new pack ----------------------------------------------------------------------------------------------

    def _pieces(self, members: list[Member]) -> tuple[list[Buffer], list[Member], int]:
        """Bytes up to the last member, members for what no header explains, and the size of all that."""
        pieces: list[Buffer] = []
        kept: list[Member] = []
        at = cursor = 0
        names = {one.name for one in members}
        for gap in self._gaps:
            at = self._copy(pieces, cursor, gap.offset, at)
            name = f"{self._folder}/{INDEX_FOLDER}/damaged-{gap.offset}"
            while name in names:
                name += "-"
            names.add(name)
            blocks = header(name, gap.size, _MODE, self._time)
            kept.append(Member(name, at + len(blocks), gap.size))
            cursor = gap.offset + gap.size
            pieces.append(blocks)
            at = self._copy(pieces, gap.offset, cursor, at + len(blocks))
            pieces.append(bytes(padding(gap.size)))
            at += padding(gap.size)
            self._shifts.append((cursor, at - cursor))
        end = max(cursor, self._end)
        return pieces, kept, self._copy(pieces, cursor, end, at)

    @property
    def _end(self) -> int:
        index = self._contents.index_offset
        return self._contents.end if index is None else min(index, self._contents.end)

    @property
    def _gaps(self) -> list[Gap]:
        """Without what lies where the old index does."""
        index = self._contents.index_offset
        if index is None:
            index = index_offset(self._source.size, self._source.read)
        return [gap for gap in self._contents.gaps if index is None or gap.offset < index]

    def _copy(self, pieces: list[Buffer], start: int, end: int, at: int) -> int:
        """Add bytes of the old pack, with the headers that were restored."""
        places = sorted({start, end, *(one for one in self._blocks if start < one < end)})
        for first, last in itertools.pairwise(places):
            blocks = self._blocks.get(first, b"")
            pieces.append(blocks)
            there = self._source.array(first + len(blocks), max(0, min(last, self._source.size) - first - len(blocks)))
            pieces.append(there.data if there.size else b"")
            # Padding may have been cut.
            pieces.append(bytes(last - first - len(blocks) - there.size))
        return at + end - start

    def _shift(self, offset: int) -> int:
        return next((shift for start, shift in reversed(self._shifts) if start <= offset), 0)

    def _add_links(self, pieces: list[Buffer], members: list[Member], at: int) -> int:
        """Links whose headers are damaged, where the index tells of them."""
        by_name = {one.name: one for one in members}
        for link in () if self._indexed is None else self._indexed.members.values():
            origin = self._first_name(link)
            if link.is_link and link.name not in by_name and origin in by_name:
                blocks = header(link.name, 0, _MODE, self._time, origin)
                pieces.append(blocks)
                at += len(blocks)
                members.append(replace(by_name[origin], name=link.name, is_link=True))
        return at

    def _first_name(self, link: Member) -> str:
        assert self._indexed is not None
        return next(
            (one.name for one in self._indexed.members.values() if one.offset == link.offset and not one.is_link), ""
        )

    def _add_mapping(self, pieces: list[Buffer], members: list[Member], at: int) -> int:
        originals: Mapping[str, str] = self._contents.originals
        mapping = f"{self._folder}/{MAPPING_FILE}"
        if not originals or any(one.name == mapping for one in members):
            return at
        rows = [f"{name.rpartition('/')[2]},{original}\n" for name, original in originals.items()]
        text = "".join(rows).encode(errors="surrogateescape")
        blocks = header(mapping, len(text), _MODE, self._time)
        pieces += [blocks, text, bytes(padding(len(text)))]
        members.append(Member(mapping, at + len(blocks), len(text)))
        return at + len(blocks) + len(text) + padding(len(text))


def _agree(contents: ArchiveContents, indexed: ArchiveContents) -> bool:
    """Whether headers and index tell of the same members, and of nothing else."""
    places = [{one.name: (one.offset, one.size) for one in each.members.values()} for each in (contents, indexed)]
    return places[0] == places[1] and not contents.damage and not contents.foreign


def _named_whole(path: str) -> str:
    """Rename what is whole now; returns its path.   Raises: OSError."""
    if not path.endswith(PART_SUFFIX):
        return path
    stem, number = path.removesuffix(PART_SUFFIX), 0
    while os.path.lexists(name := f"{stem}.{number}{SUFFIX}" if number else f"{stem}{SUFFIX}"):
        if os.path.samestat(os.stat(name, follow_symlinks=False), os.stat(path, follow_symlinks=False)):
            # Its writer was killed between giving it its name and taking this one away.
            os.unlink(path)
            return name
        number += 1
    os.rename(path, name)
    return name
