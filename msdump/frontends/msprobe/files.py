"""The files of PrecisionDebugger: tensors of a step, and the JSON files beside them that grow while it runs."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from msdump.config.environment import UPLOAD, disk_limits, say_ignored
from msdump.dumpers.limits import DiskGuard, Footprint, check_folder
from msdump.dumpers.run_files import RunFiles
from msdump.dumpers.tally import Tally
from msdump.dumpers.uploads import begin_upload, end_upload
from msdump.errors import WriteError
from msdump.formats.atomic import make_dirs
from msdump.formats.direct import Buffer
from msdump.formats.msprobe_json import DATA_FOLDER
from msdump.formats.npy import MAGIC, NpyWriter
from msdump.formats.replaced_files import ReplacedFiles
from msdump.formats.writer import LinkFolder, WriteCounts, finish_all
from msdump.storage.pack_format import SUFFIX
from msdump.storage.packs import hash_of
from msdump.storage.uploading import Uploader
from msdump.tensors.records import OUTPUT, TensorKey, TensorRecord

_MODE, _DIR_MODE = 0o600, 0o700
# All calls of a step are one graph to the writers.
_GRAPH = 0
# Where the length of the header of an .npy file stands.
_NPY_LENGTH, _NPY_PREFIX = slice(8, 10), 10


class ProbeFiles:
    """All files of this process. All calls come with the lock of the recorder held.

    root   the first `dump_path`; MSDUMP_UPLOAD sends what lies below it
    Raises: ConfigError for what the environment asks of dumps and cannot be read; FormatError for a store that cannot
            be listed; FolderError when no dump can begin in the folder.
    """

    def __init__(self, root: str) -> None:
        check_folder(Path(root), "dump_path")
        self._root = Path(os.path.realpath(root))
        self._guard = DiskGuard(self._root, disk_limits())
        # Nothing lies below the first folder yet: the store is asked once, before the first step.
        self._uploader = begin_upload(self._root, [self._root / f"step0/proc{os.getpid()}"])
        self._by_path: dict[str, StepFiles] = {root: StepFiles(Path(root), self._guard, self._uploader)}

    @property
    def has_uploads(self) -> bool:
        return self._uploader is not None

    @property
    def counts(self) -> WriteCounts:
        return sum((files.counts for files in self._by_path.values()), WriteCounts())

    def below(self, root: str) -> StepFiles:
        """Those below one `dump_path`: all share the budget, and each keeps iterations of its own."""
        if root not in self._by_path:
            real = Path(os.path.realpath(root))
            is_sent = real.is_relative_to(self._root)
            if not is_sent:
                say_ignored(f"the dump into {root}, which is not below {self._root}", UPLOAD)
            uploader = self._uploader if is_sent else None
            self._by_path[root] = StepFiles(Path(root), self._guard.beside(real), uploader)
        return self._by_path[root]

    def close(self, tally: Tally) -> None:
        """Finish what is open, and send what is left. What cannot be makes the dump incomplete."""
        for files in self._by_path.values():
            with tally.stop_on_failure():
                files.close()
        end_upload(self._uploader, tally)


class StepFiles:
    """Files below one folder, a step after the other.

    guard     of the folder
    uploader  sends what is whole; None: nothing is sent
    """

    def __init__(self, root: Path, guard: DiskGuard, uploader: Uploader | None) -> None:
        self._guard = guard
        self._uploader = uploader
        modes = _MODE, _DIR_MODE
        self._tensors = RunFiles(root, _tensor_writer, _FOOTPRINT, guard, *modes, True, self._name_pack)
        self._texts = RunFiles(root, lambda folder, _: ReplacedFiles(folder, *modes), _FOOTPRINT, guard, *modes)
        self._step = 0
        self._forget()

    def _forget(self) -> None:
        self.home: Path | None = None
        self._has_tensors = False
        self._text_names: set[str] = set()
        # Names of tensors that this step has written, and of files that it finds.
        self._names: set[str] = set()
        self._found: frozenset[str] = frozenset()
        self._replaced = 0

    @property
    def takes_tensors(self) -> bool:
        """Whether a step is open that was opened for them."""
        return self._has_tensors

    @property
    def counts(self) -> WriteCounts:
        return self._tensors.writer.counts + self._texts.writer.counts

    def open(self, home: Path, step: int, has_tensors: bool) -> None:
        """Files go to this folder, of this step, until `end_step`.   Raises: WriteError."""
        if (home, step) != (self.home, self._step):
            self.end_step()
            # Nothing is made where the disk is full.
            self._guard.reserve(0)
            self.home, self._step = home, step
            self._texts.begin_run(_GRAPH, step, home)
            self._texts.expect(_GRAPH, step, ())
            if self._uploader is not None:
                self._uploader.add(os.path.realpath(home))
        if has_tensors and not self._has_tensors:
            self._has_tensors = True
            self._tensors.begin_run(_GRAPH, step, home / DATA_FOLDER)
            if not self._tensors.is_packed:
                make_dirs(home / DATA_FOLDER, _DIR_MODE)
                self._found = frozenset(os.listdir(home / DATA_FOLDER))
                self._tensors.expect(_GRAPH, step, ())

    def save_tensor(self, name: str, data: Buffer) -> bool:
        """Write the file of a tensor; one of equal bytes in this step gets a further name.

        Edges:  a file of that name gives way. In a pack it cannot: False for a second one in this step.
        Raises: WriteError.
        """
        is_again = name in self._names
        if is_again and self._tensors.is_packed:
            return False
        # A file that is replaced stands for no other one, and a name that is taken cannot become a link.
        self._replaced += is_again
        is_new = not is_again and name not in self._found
        key = TensorKey(int(hash_of(memoryview(data)), 16), self._replaced) if is_new else None
        self._tensors.writer.write([self._record(name, data, key)])
        self._names.add(name)
        return True

    def save_text(self, name: str, data: bytes) -> None:
        """Write a file of the step; one of that name gives way.   Raises: WriteError."""
        self._text_names.add(name)
        self._texts.writer.write([self._record(name, data)])

    def move(self, home: Path) -> None:
        """The folder of the step gets another name, with all that it holds.   Raises: WriteError."""
        if self.home is None or self.home == home:
            return
        try:
            os.rename(self.home, home)
        except OSError as error:
            raise WriteError(f"{home}: expected to rename {self.home.name} to it, got {error.strerror}.") from error
        self.home = home
        self._texts.move_run(_GRAPH, self._step, home, self._text_names)
        if self._has_tensors:
            names = () if self._tensors.is_packed else self._names
            self._tensors.move_run(_GRAPH, self._step, home / DATA_FOLDER, names)
        if self._uploader is not None:
            self._uploader.add(os.path.realpath(home))

    def end_step(self) -> None:
        """No file of this step comes any more.   Raises: WriteError."""
        if self.home is None:
            return
        ends = [runs.writer.end_iteration for runs in (self._tensors, self._texts)]
        try:
            finish_all([functools.partial(end, _GRAPH, self._step) for end in ends])
        finally:
            for runs in (self._tensors, self._texts):
                runs.end_run(_GRAPH, self._step)
            # A pack says nothing without them.
            for name in sorted(self._text_names) if self._tensors.is_packed else ():
                self._send(self.home / name)
            self._forget()

    def close(self) -> None:
        """Raises: WriteError."""
        finish_all([self.end_step, self._tensors.writer.close, self._texts.writer.close])

    def _record(self, name: str, data: Buffer, key: TensorKey | None = None) -> TensorRecord:
        array = np.frombuffer(data, np.uint8)
        return TensorRecord("", name, 0, 0, 0, OUTPUT, 0, "uint8", array, iteration=self._step, key=key)

    def _name_pack(self, path: Path) -> None:
        """A pack is whole: it takes the place of one that an earlier run, or this step before, has left."""
        assert self.home is not None
        pack = self.home / f"{DATA_FOLDER}{SUFFIX}"
        self._texts.expect(_GRAPH, self._step, [pack.name])
        if path.name != pack.name:
            try:
                os.replace(self.home / path.name, pack)
            except OSError as error:
                raise WriteError(f"{pack}: expected to replace this pack, got {error.strerror}.") from error
        self._send(pack)

    def _send(self, path: Path) -> None:
        if self._uploader is not None:
            self._uploader.send(os.path.realpath(path))


def _tensor_writer(
    directory: Callable[[TensorRecord], Path], open_folder: Callable[[Path], LinkFolder] | None
) -> NpyWriter:
    """Of records whose data are the bytes of their files."""
    return NpyWriter(directory, _MODE, _DIR_MODE, _file_name, content=_chunks, replaces=True, open_folder=open_folder)


def _chunks(record: TensorRecord) -> Sequence[Buffer]:
    """The header of an .npy file and its data, so that a pack has the hash of these; the whole of another file."""
    data = record.data.data
    if bytes(data[: len(MAGIC)]) != MAGIC:
        return (data,)
    start = _NPY_PREFIX + int.from_bytes(data[_NPY_LENGTH], "little")
    return data[:start], data[start:]


def _file_name(record: TensorRecord) -> str:
    return record.op_name


def _size(record: TensorRecord, is_repeat: bool) -> int:
    return 0 if is_repeat else record.size_bytes


_FOOTPRINT = Footprint(_size, names=lambda record: (record.op_name,))
