"""The writer of a dump whose runs have a folder each: within the limits of the disk, in packs where these are selected.

Front ends whose layout names the folder of a run, and not that of a record, write through it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from msdump.dumpers.limits import DiskGuard, Footprint, LimitedWriter
from msdump.dumpers.packs import LimitedPacks, PackedWriter, is_packed, packed
from msdump.formats.writer import LinkFolder, Writer
from msdump.tensors.records import TensorRecord

# Of (directory of a record, what opens a folder, None for those of the disk).
MakeWriter = Callable[[Callable[[TensorRecord], Path], Callable[[Path], LinkFolder] | None], Writer]


@dataclass(frozen=True, slots=True)
class _Folder:
    """named: as the front end calls it; current: where that is; opened: where it was when the run began"""

    named: Path
    current: Path
    opened: Path


def _folder(path: Path) -> _Folder:
    real = Path(os.path.realpath(path))
    return _Folder(path, real, real)


class RunFiles:
    """One writer, and the folder of each run of it. Any thread may call it.

    root         folder of the dump, which takes records of runs that were not begun
    guard        whose `rotation` counts the runs; its root has no links in it
    mode, dir_mode  of packs, and of the folders around them
    can_be_packed  the files of a run go into one archive where MSDUMP_CONTAINER selects it
    on_pack      told the path of each whole pack
    Raises: ConfigError for a container that cannot be read.
    """

    def __init__(
        self,
        root: Path,
        make_writer: MakeWriter,
        footprint: Footprint,
        guard: DiskGuard,
        mode: int,
        dir_mode: int,
        can_be_packed: bool = False,
        on_pack: Callable[[Path], None] = lambda _: None,
    ) -> None:
        self._root = _folder(root)
        self._folders: dict[tuple[int, int], _Folder] = {}
        self._guard = guard
        self.is_packed = can_be_packed and is_packed()
        self.writer: Writer
        if self.is_packed:
            packs = LimitedPacks(self._opened, guard, mode, dir_mode, guard.rotation, on_pack)
            limited = LimitedWriter(make_writer(self._opened, packs.open), guard, packed(footprint))
            self.writer = PackedWriter(limited, packs)
        else:
            self.writer = LimitedWriter(make_writer(self._named, None), guard, footprint, self._current)

    def begin_run(self, graph_id: int, iteration: int, folder: Path) -> None:
        """Files of this run go into this folder until `end_run`."""
        self._folders[graph_id, iteration] = _folder(folder)

    def move_run(self, graph_id: int, iteration: int, folder: Path, names: Iterable[str]) -> None:
        """The folder has another path now, and holds files of these names, which go with the run."""
        opened = self._folders[graph_id, iteration].opened
        self._folders[graph_id, iteration] = replace(_folder(folder), opened=opened)
        self.expect(graph_id, iteration, names)

    def expect(self, graph_id: int, iteration: int, names: Iterable[str]) -> None:
        """Files of these names in the folder of a run, and the folder, go with the run, whoever writes them."""
        if self._guard.rotation is not None:
            folder = self._folders[graph_id, iteration].current
            self._guard.rotation.expect(folder, names, graph_id, iteration)

    def end_run(self, graph_id: int, iteration: int) -> None:
        """No file of this run comes any more: its writer has ended the iteration."""
        self._folders.pop((graph_id, iteration), None)

    def _of(self, record: TensorRecord) -> _Folder:
        return self._folders.get((record.graph_id, record.iteration), self._root)

    def _named(self, record: TensorRecord) -> Path:
        return self._of(record).named

    def _opened(self, record: TensorRecord) -> Path:
        return self._of(record).opened

    def _current(self, record: TensorRecord) -> Path:
        return self._of(record).current
