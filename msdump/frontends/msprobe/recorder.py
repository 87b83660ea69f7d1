"""The records of one step in memory, and their files. Functions and modules are known to what calls it."""

from __future__ import annotations

import dataclasses
import io
import logging
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

# Before functions of PyTorch are wrapped.
from torch import save as save_tensor

from msdump.dumpers.tally import Tally
from msdump.errors import WriteError
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
from msdump.frontends.msprobe.config import DEBUG, MD5, STRUCTURE, XOR, Settings
from msdump.frontends.msprobe.files import ProbeFiles
from msdump.frontends.msprobe.parents import Parents
from msdump.frontends.msprobe.stacks import Stack
from msdump.frontends.msprobe.statistics import NO_NUMBERS, as_numbers, crc_of, numbers_of, sliced, xor_of
from msdump.frontends.msprobe.values import Describer, Unwrapped, tensors_in, unwrapped
from msdump.frontends.msprobe.values import Path as ValuePath

if TYPE_CHECKING:
    from msdump.frontends.msprobe.statistics import Numbers
    from msdump.tensors.arrays import Array

log = logging.getLogger("msdump")
T = TypeVar("T")
_KEYS = ("Max", "Min", "Mean", "Norm")
# Records after which the numbers of tensors are fetched from their device.
_FETCH_EVERY = 1000
_UNMEASURED = "without numbers"
_UNSAVED = "without a file"
_TWICE = "with the name of another in the same pack"


@dataclasses.dataclass(frozen=True, slots=True)
class TensorForm:
    """How tensors of a framework are described and saved.   type: None: that of PyTorch's class"""

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


PYTORCH, MINDSPORE = TensorForm("pytorch", ".pt"), TensorForm("mindspore", ".npy", "mindspore.Tensor")


class RecordWriter:
    """All calls come with `lock` held.

    tally    counts and the first failure, which ends the dump
    files    of all steps
    records_written  of all steps; calls_named: calls at task structure
    parents  of the step that is open
    Raises: as `ProbeFiles`.
    """

    def __init__(self, settings: Settings, form: TensorForm = PYTORCH) -> None:
        self.lock = threading.RLock()
        self._form = form
        self.tally = Tally(on_stop="The dump is not complete, the script goes on without it. %s")
        self._settings = settings
        self.files = ProbeFiles(settings.dump_path)
        self._files = self.files.below(settings.dump_path)
        self.records_written = 0
        self.calls_named = 0
        self._has_warned = False
        self._reset()

    def _reset(self) -> None:
        self.parents = Parents(shows_functions=self._settings.level == "mix")
        self._records: dict[str, dict[str, object]] = {}
        self._names_by_stack: dict[Stack, list[str]] = {}
        # Descriptions whose numbers are still on their device.
        self._unfetched: list[dict[str, object]] = []
        self._next_flush = _FETCH_EVERY
        # Tensors of which dump.json alone tells, and the one on disk does not.
        self._unlisted = 0
        self._is_changed = True

    def change(self, settings: Settings) -> None:
        """Another configuration: records of before are on disk, and those of this step go on where they can."""
        old, self._settings = self._settings, settings
        if (old.dump_path, old.task, old.level) != (settings.dump_path, settings.task, settings.level):
            self.end_step()
        self._files = self.files.below(settings.dump_path)

    @contextmanager
    def dumping(self) -> Iterator[None]:
        """What the dump does: one thread at a time, and a failure ends the dump, not the script."""
        with self.lock, self.tally.stop_on_failure(is_timed=True):
            yield

    @property
    def is_open(self) -> bool:
        """Whether a step takes records."""
        return self.home is not None

    @property
    def home(self) -> Path | None:
        """The folder of the step."""
        return self._files.home

    def open(self, home: Path, step: int) -> None:
        """Write records to this folder, of this step, from now on, those of an earlier `open` included.

        Raises: WriteError.
        """
        if not self.is_open and not self._has_warned and home.is_dir() and any(home.iterdir()):
            self._has_warned = True
            log.warning("%s holds files of an earlier run: those of equal names are replaced.", home)
        self._is_changed |= self.home != home
        self._files.open(home, step, self._settings.saves_tensors)

    def leave_to_parent(self) -> None:
        """In a process that was forked: a thread of the parent may have held the lock."""
        self.lock = threading.RLock()
        self.tally.leave_to_parent()

    def move(self, home: Path) -> None:
        """The folder gets another name, with all that it holds.   Raises: WriteError."""
        self._is_changed |= self.home != home
        self._files.move(home)

    def end_step(self) -> None:
        """Write the records, and drop them.   Raises: WriteError."""
        try:
            self.flush()
        finally:
            self._files.end_step()
            self._reset()

    def close(self) -> None:
        """No record comes any more: finish all files, and send what MSDUMP_UPLOAD sends."""
        self.files.close(self.tally)

    # -- records -----------------------------------------------------------------------------------

    def update(self, name: str, part: dict[str, object]) -> None:
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

    def replace_inside(self, name: str, path: ValuePath, value: object) -> None:
        """What stands at a path in a value that `save` names."""
        if name not in self._records:
            return  # its step is over
        holder: Any = self._records
        keys = (name, *path)
        for key in keys[:-1]:
            holder = holder[key]
        holder[keys[-1]] = value
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

    def describe(self, value: object, base: str) -> object:
        """JSON of a value.

        base    the beginning of file names of its tensors
        Raises: WriteError, also for what is still under way when the dump has ended: its tensors are lost.
        """
        if self.tally.error:
            self.tally.count_lost(len(tensors_in(value)))
            raise WriteError(self.tally.error)
        describer = Describer(
            lambda tensor, path: self._tensor(tensor, base, path), lambda array, path: self._array(array, base, path)
        )
        return describer.describe(value)

    def _tensor(self, tensor: torch.Tensor, base: str, path: ValuePath) -> dict[str, object]:
        kind = unwrapped(tensor)
        part = sliced(kind.tensor, self._settings.slices) if self._settings.slices else kind.tensor
        form = self._form
        content: dict[str, object] = {"type": form.type or kind.type, "dtype": form.dtype(tensor)}
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
        is_saved = kind.has_data and self._is_saved(base) and bool(kind.tensor.untyped_storage().data_ptr())
        if not (is_saved and self._save(part, content, _file_name(base, path, form.suffix))):
            self._unlisted += 1
        if summary == MD5:
            content[MD5] = self._measured(kind, lambda: crc_of(part), None)
        self.tally.count_written(1)
        return content

    def _measured(self, kind: Unwrapped, measure: Callable[[], T], nothing: T) -> T:
        if not kind.has_data:
            return nothing
        try:
            return measure()
        except (RuntimeError, NotImplementedError, TypeError):
            self.tally.count_skipped(_UNMEASURED)
            return nothing

    def _array(self, array: Array, base: str, path: ValuePath) -> dict[str, object]:
        content: dict[str, object] = {"type": "numpy.ndarray", "dtype": str(array.dtype), "shape": list(array.shape)}
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
        if not (self._settings.saves_tensors and self._files.takes_tensors):
            return False
        return not self._settings.saved_names or any(part in base for part in self._settings.saved_names)

    def _save(self, tensor: torch.Tensor, content: dict[str, object], name: str) -> bool:
        """Whether there is a file now.   Raises: WriteError, and the tensor is lost."""
        try:
            data = self._form.data(tensor)
        except (RuntimeError, NotImplementedError, TypeError):
            self.tally.count_skipped(_UNSAVED)
            return False
        try:
            is_written = self._files.save_tensor(name, data)
        except WriteError:
            self.tally.count_lost(1)
            raise
        if is_written:
            content["data_name"] = name
        else:
            self.tally.count_skipped(_TWICE)
        return is_written

    # -- files -------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the records up to now.   Raises: WriteError, and the tensors that they tell of are lost."""
        home, settings = self.home, self._settings
        if home is None or not self._is_changed:
            return
        self._fetch()
        data_folder = str(home / DATA_FOLDER) if settings.saves_tensors else None
        content = dump_content(settings.task, settings.level, data_folder, self._records, self._form.framework)
        texts: dict[str, bytes] = {}
        if settings.level != DEBUG and settings.has_extra_info:
            texts[STACK_FILE] = as_json(stack_content(self._names_by_stack))
            texts[CONSTRUCT_FILE] = as_json(self.parents.by_name)
        # Last: what it lists counts as written, and then all files of the step are there.
        texts[DEBUG_FILE if settings.level == DEBUG else MSPROBE_FILE] = as_json(content)
        unlisted, self._unlisted = self._unlisted, 0
        try:
            for name, text in texts.items():
                self._files.save_text(name, text)
        except WriteError:
            self.tally.take_back(unlisted)
            raise
        self._is_changed = False

    def _fetch(self) -> None:
        """Numbers of tensors as numbers: one wait for each device and dtype."""
        waiting: defaultdict[tuple[torch.device, torch.dtype], list[tuple[dict[str, Any], str]]] = defaultdict(list)
        for content in self._unfetched:
            for key in _KEYS:
                value = content[key]
                if isinstance(value, torch.Tensor):
                    waiting[value.device, value.dtype].append((content, key))
        for holders in waiting.values():
            numbers = as_numbers([content[key] for content, key in holders])
            for (content, key), number in zip(holders, numbers, strict=True):
                content[key] = number
        self._unfetched.clear()


def _file_name(base: str, path: ValuePath, suffix: str) -> str:
    name = ".".join([base, *map(str, path)]) + suffix
    return name.replace(os.sep, "_")


def _alone(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor whose elements follow each other and that holds no memory but its own."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.is_contiguous() and tensor.untyped_storage().nbytes() == tensor.nbytes:
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)


def _numbers_of_array(array: Array) -> Numbers:
    if not array.size or array.dtype.kind in "USOV":
        return NO_NUMBERS
    try:
        norm = np.linalg.norm(array).item()
        return np.max(array).item(), np.min(array).item(), np.mean(array).item(), norm
    except (TypeError, ValueError):
        return NO_NUMBERS
