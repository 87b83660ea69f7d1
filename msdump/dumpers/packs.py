"""Packs within the limits of the disk: which iterations stay, what they take, and where whole ones are sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from msdump.config.environment import PACK, container
from msdump.config.plan import Plan
from msdump.dumpers.limits import DiskGuard, Footprint
from msdump.dumpers.rotation import Rotation
from msdump.formats.pack import PackFolder, Packs
from msdump.formats.writer import WriteCounts, Writer
from msdump.tensors.records import TensorRecord

# Headers of a member, and its row of the index.
_MEMBER_BYTES = 2048


def is_packed(plan: Plan | None = None) -> bool:
    """Whether the files of an iteration go into one archive. The configuration comes before the environment.

    Edges:  what waits for a trigger leaves few files, which stay files; so does the ring of a flight recorder, whose
            files are written over.
    Raises: ConfigError.
    """
    chosen = container() if plan is None else plan.how.container or container()
    return chosen == PACK and not (plan is not None and (plan.recorder or plan.trigger.op_debug_mode))


def packed(footprint: Footprint) -> Footprint:
    """Of the same files as members of a pack."""
    return replace(footprint, size_of=lambda record, is_repeat: footprint.size_of(record, is_repeat) + _MEMBER_BYTES)


class LimitedPacks:
    """The packs of one dump, behind the writers that fill them; old ones are removed when there are too many.

    directory   folder that a record belongs to
    mode        of packs that are whole; `dir_mode` of folders
    rotation    counts iterations; None: all stay
    on_finished called with the path of each whole pack
    """

    writes_once = True
    takes_empty = False

    def __init__(
        self,
        directory: Callable[[TensorRecord], Path],
        guard: DiskGuard,
        mode: int,
        dir_mode: int = 0o700,
        rotation: Rotation | None = None,
        on_finished: Callable[[Path], None] = lambda _: None,
    ) -> None:
        self._packs = Packs(directory, mode, dir_mode, self._finished)
        self._guard = guard
        self._rotation = rotation
        self._on_finished = on_finished
        guard.watch(self)
        if rotation is not None:
            rotation.join(self)

    @property
    def counts(self) -> WriteCounts:
        return self._packs.counts

    def open(self, path: Path) -> PackFolder:
        """As `Packs.open`."""
        return self._packs.open(path)

    def write(self, records: Sequence[TensorRecord]) -> None:
        self._packs.write(records)

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        """Raises: WriteError."""
        self._packs.end_iteration(graph_id, iteration)
        if self._rotation is not None:
            self._guard.give_back(self._rotation.end(self, graph_id, iteration))

    def close(self) -> None:
        """Raises: WriteError."""
        try:
            self._packs.close()
        finally:
            if self._rotation is not None:
                self._rotation.leave(self)

    def _finished(self, path: Path, graph_id: int, iteration: int) -> None:
        if self._rotation is not None:
            self._rotation.expect(path.parent, [path.name], graph_id, iteration)
        self._on_finished(path)


class PackedWriter:
    """A writer whose files go into packs, and the packs, as one writer."""

    def __init__(self, writer: Writer, packs: LimitedPacks) -> None:
        self.writes_once = writer.writes_once
        self.takes_empty = writer.takes_empty
        self._writer = writer
        self._packs = packs

    @property
    def counts(self) -> WriteCounts:
        return self._writer.counts

    def write(self, records: Sequence[TensorRecord]) -> None:
        """Raises: WriteError, and what the writer raises."""
        self._packs.write(records)
        self._writer.write(records)

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        """Raises: WriteError."""
        try:
            self._writer.end_iteration(graph_id, iteration)
        finally:
            self._packs.end_iteration(graph_id, iteration)

    def close(self) -> None:
        """Raises: WriteError."""
        try:
            self._writer.close()
        finally:
            self._packs.close()
