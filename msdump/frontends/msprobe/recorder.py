"""The records of one step in memory, and their files. Functions and modules are known to what calls it."""

from __future__ import annotations

import dataclasses
import io
import logging
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

# Before functions of PyTorch are wrapped.
from torch import save as save_tensor

from msdump.config.environment import CONTAINER, KEEP, UPLOAD, disk_limits
from msdump.dumpers.ignored import say_ignored
from msdump.dumpers.limits import DiskGuard
from msdump.dumpers.tally import Tally
from msdump.errors import WriteError
from msdump.formats.atomic import Folder, make_dirs
from msdump.formats.msprobe_json import (
    CONSTRUCT_FILE,
    DATA_FOLDER,
    DEBUG_FILE,
    MSPROBE_FILE,
    STACK_FILE,
    as_json,
    dump_content,
    stack_content,
)
from msdump.formats.writer import WriteCounts
from msdump.frontends.msprobe.config import DEBUG, MD5, STRUCTURE, XOR, Settings
from msdump.frontends.msprobe.parents import Parents
from msdump.frontends.msprobe.stacks import Stack
from msdump.frontends.msprobe.statistics import NO_NUMBERS, as_numbers, crc_of, numbers_of, sliced, xor_of
from msdump.frontends.msprobe.tensor_kinds import Unwrapped, unwrapped
from msdump.frontends.msprobe.values import Describer
from msdump.frontends.msprobe.values import Path as ValuePath

log = logging.getLogger("msdump")
_KEYS = ("Max", "Min", "Mean", "Norm")
_MODE, _DIR_MODE = 0o600, 0o700
# Records after which the numbers of tensors are fetched from their device.
_FETCH_EVERY = 1000
_UNMEASURED = "without numbers"
_UNSAVED = "without a file"


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """How tensors of a framework are shown and saved.   type: None: that of PyTorch's class"""

    framework: str
    suffix: str
    type: str | None = None

    def dtype(self, tensor: torch.Tensor) -> str:
        text = str(tensor.dtype)
        return text if self.type is None else text.rpartition(".")[2].replace("uint", "UInt").capitalize()

    def data(self, tensor: torch.Tensor) -> memoryview:
        """Raises: RuntimeError, NotImplementedError, TypeError for what cannot be saved."""
        data = io.BytesIO()
        if self.type is None:
            save_tensor(_alone(tensor), data)
        else:
            np.save(data, tensor.numpy())
        return data.getbuffer()


PYTORCH, MINDSPORE = Form("pytorch", ".pt"), Form("mindspore", ".npy", "mindspore.Tensor")


class Recorder:
    """All calls come with `lock` held.

    tally    counts and the first failure, which ends the dump
    counts   of files; records_written: of records, of all steps; calls_named: of calls at task structure
    parents  of the step that is open
    """

    def __init__(self, settings: Settings, form: Form = PYTORCH) -> None:
        self.lock = threading.RLock()
        self._form = form
        self.tally = Tally(on_stop="The dump is not complete, the script goes on without it. %s")
        self._settings = settings
        self._limits = disk_limits()
        say_ignored("a dump of msprobe's layout", CONTAINER, UPLOAD, KEEP)
        self.counts = WriteCounts()
        self._begin_guard()
        self.records_written = 0
        self.calls_named = 0
        self._has_warned = False
        self._home: Path | None = None
        self._tensors: Folder | None = None
        self._reset()

    def _reset(self) -> None:
        self.parents = Parents(shows_functions=self._settings.level == "mix")
        self._records: dict[str, dict[str, Any]] = {}
        self._names_by_stack: dict[Stack, list[str]] = {}
        # Descriptions whose numbers are still on their device.
        self._unfetched: list[dict[str, Any]] = []
        self._next_flush = _FETCH_EVERY
        self._is_changed = True

    def change(self, settings: Settings) -> None:
        """Another configuration: records of before are on disk, and those of this step go on where they can."""
        old, self._settings = self._settings, settings
        if (old.dump_path, old.task, old.level) != (settings.dump_path, settings.task, settings.level):
            self.end_step()
        if old.dump_path != settings.dump_path:
            self._begin_guard()

    def _begin_guard(self) -> None:
        self._guard = DiskGuard(Path(self._settings.dump_path), self._limits)
        self._guard.watch(self)

    @contextmanager
    def dumping(self) -> Iterator[None]:
        """What the dump does: one thread at a time, and a failure ends the dump, not the script."""
        with self.lock, self.tally.stop_on_failure(is_timed=True):
            yield

    @property
    def is_open(self) -> bool:
        """Whether a step takes records."""
        return self._home is not None

    @property
    def home(self) -> Path | None:
        return self._home

    def open(self, home: Path) -> None:
        """Records go to this folder from now on, those of an earlier `open` of the same step included.

        Raises: WriteError.
        """
        self._guard.reserve(0)
        make_dirs(home, _DIR_MODE)
        if self._home is None and not self._has_warned and any(home.iterdir()):
            self._has_warned = True
            log.warning("%s holds files of an earlier run: those of equal names are replaced.", home)
        if self._tensors is not None and self._home != home:
            self._close_folder()
        self._home = home
        if self._settings.saves_tensors and self._tensors is None:
            make_dirs(home / DATA_FOLDER, _DIR_MODE)
            self._tensors = Folder(home / DATA_FOLDER)

    def leave_to_parent(self) -> None:
        """In a process that was forked: a thread of the parent may have held the lock."""
        self.lock = threading.RLock()
        self.tally.leave_to_parent()

    def move(self, home: Path) -> None:
        """The folder gets another name, with all that it holds.   Raises: WriteError."""
        if self._home is None or self._home == home:
            return
        try:
            os.rename(self._home, home)
        except OSError as error:
            raise WriteError(f"{home}: expected to rename {self._home.name} to it, got {error.strerror}.") from error
        self._home = home
        self._is_changed = True

    def end_step(self) -> None:
        """Write what is there and forget it."""
        self.flush()
        self._close_folder()
        self._home = None
        self._reset()

    def _close_folder(self) -> None:
        if self._tensors is not None:
            self._tensors.close()
            self._tensors = None

    # -- records -----------------------------------------------------------------------------------

    def update(self, name: str, part: dict[str, Any]) -> None:
        """More of a record. One of a module moves behind all others, as its call has ended now or goes on.

        Source: msprobe; functions stay where they began.
        """
        old = self._records.get(name)
        if old is None:
            self._records[name] = part
            self.records_written += 1
        else:
            if name.startswith(("Module.", "Cell.")):
                self._records[name] = self._records.pop(name)
            old.update(part)
        self._is_changed = True
        count = len(self._records)
        if count % _FETCH_EVERY == 0:
            self._fetch()
        if count >= self._next_flush:
            self._next_flush *= 2
            self.flush()

    def replace(self, name: str, value: Any) -> None:
        """A value that `save` names."""
        self.records_written += name not in self._records
        self._records[name] = value
        self._is_changed = True

    def replace_inside(self, name: str, path: ValuePath, value: Any) -> None:
        """What stands at a path in a value that `save` names."""
        if name not in self._records:
            return  # its step is over
        place: Any = self._records
        keys = (name, *path)
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
        self._is_changed = True

    def add_stack(self, name: str, stack: Stack) -> None:
        self._names_by_stack.setdefault(stack, []).append(name)
        self._is_changed = True

    def note(self, name: str) -> None:
        """A record is complete: it stands in construct.json, whether it is selected or not."""
        self.calls_named += self._settings.task == STRUCTURE
        if self._settings.is_module_level:
            self.parents.note(name)
            self._is_changed = True

    # -- values ------------------------------------------------------------------------------------

    def describe(self, value: Any, base: str) -> Any:
        """JSON of a value.   base: the beginning of file names of its tensors"""
        describer = Describer(
            lambda tensor, path: self._tensor(tensor, base, path), lambda array, path: self._array(array, base, path)
        )
        return describer.describe(value)

    def _tensor(self, tensor: torch.Tensor, base: str, path: ValuePath) -> dict[str, Any]:
        kind = unwrapped(tensor)
        self.tally.tensors_written += 1
        part = sliced(kind.tensor, self._settings.slices) if self._settings.slices else kind.tensor
        form = self._form
        content: dict[str, Any] = {"type": form.type or kind.type, "dtype": form.dtype(tensor)}
        content["shape"] = list(part.shape)
        summary = self._settings.summary_mode
        if summary == XOR:
            content[MD5] = self._measured(kind, lambda: xor_of(part), None)
        else:
            numbers = self._measured(kind, lambda: numbers_of(part, self._settings.is_precise), NO_NUMBERS)
            content.update(zip(_KEYS, numbers, strict=True))
            if numbers is not NO_NUMBERS:
                self._unfetched.append(content)
        if form.type is None:
            content["requires_grad"] = tensor.requires_grad
        content.update(kind.sharding)
        if kind.has_data and self._is_saved(base) and kind.tensor.untyped_storage().data_ptr():
            self._save(part, content, _file_name(base, path, form.suffix))
        if summary == MD5:
            content[MD5] = self._measured(kind, lambda: crc_of(part), None)
        return content

    def _measured(self, kind: Unwrapped, measure: Callable[[], Any], nothing: Any) -> Any:
        if not kind.has_data:
            return nothing
        try:
            return measure()
        except (RuntimeError, NotImplementedError, TypeError):
            self.tally.count_skipped(_UNMEASURED)
            return nothing

    def _array(self, array: np.ndarray[Any, Any], base: str, path: ValuePath) -> dict[str, Any]:
        content: dict[str, Any] = {"type": "numpy.ndarray", "dtype": str(array.dtype), "shape": list(array.shape)}
        content.update(zip(_KEYS, _numbers_of_array(array), strict=True))
        if self._is_saved(base):
            try:
                tensor = torch.tensor(array)
            except TypeError:
                self.tally.count_skipped(_UNSAVED)
            else:
                self._save(tensor, content, _file_name(base, path, self._form.suffix))
        return content

    def _is_saved(self, base: str) -> bool:
        if self._tensors is None:
            return False
        return not self._settings.saved_names or any(part in base for part in self._settings.saved_names)

    def _save(self, tensor: torch.Tensor, content: dict[str, Any], name: str) -> None:
        """Raises: WriteError."""
        assert self._tensors is not None
        try:
            data = self._form.data(tensor)
        except (RuntimeError, NotImplementedError, TypeError):
            self.tally.count_skipped(_UNSAVED)
            return
        content["data_name"] = name
        self._write(self._tensors, name, data)

    # -- files -------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the records up to now.   Raises: WriteError."""
        if self._home is None or not self._is_changed:
            return
        self._fetch()
        settings = self._settings
        data_folder = str(self._home / DATA_FOLDER) if settings.saves_tensors else None
        content = dump_content(settings.task, settings.level, data_folder, self._records, self._form.framework)
        with Folder(self._home) as folder:
            if settings.level == DEBUG:
                self._write(folder, DEBUG_FILE, as_json(content))
            else:
                self._write(folder, MSPROBE_FILE, as_json(content))
                if settings.has_extra_info:
                    self._write(folder, STACK_FILE, as_json(stack_content(self._names_by_stack)))
                    self._write(folder, CONSTRUCT_FILE, as_json(self.parents.by_name))
        self._is_changed = False

    def _fetch(self) -> None:
        """Numbers of tensors as numbers: one wait for each device and dtype."""
        waiting: defaultdict[tuple[torch.device, torch.dtype], list[tuple[dict[str, Any], str]]] = defaultdict(list)
        for content in self._unfetched:
            for key in _KEYS:
                value = content[key]
                if isinstance(value, torch.Tensor):
                    waiting[value.device, value.dtype].append((content, key))
        for places in waiting.values():
            numbers = as_numbers([content[key] for content, key in places])
            for (content, key), number in zip(places, numbers, strict=True):
                content[key] = number
        self._unfetched.clear()

    def _write(self, folder: Folder, name: str, data: bytes | memoryview) -> None:
        size = len(data)
        self._guard.reserve(size)
        try:
            written = folder.write(name, [data], _MODE, replace=True)
        finally:
            self._guard.release(size)
        self.counts += WriteCounts(1, 0, size, written)


def _file_name(base: str, path: ValuePath, suffix: str) -> str:
    name = ".".join([base, *map(str, path)]) + suffix
    return name.replace(os.sep, "_")


def _alone(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor whose elements follow each other and that holds no memory but its own."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.is_contiguous() and tensor.untyped_storage().nbytes() == tensor.nbytes:
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)


def _numbers_of_array(array: np.ndarray[Any, Any]) -> Sequence[Any]:
    if not array.size or array.dtype.kind in "USOV":
        return NO_NUMBERS
    try:
        norm = np.linalg.norm(array).item()
        return np.max(array).item(), np.min(array).item(), np.mean(array).item(), norm
    except (TypeError, ValueError):
        return NO_NUMBERS
