"""Measurements of a dump's tensors, by their bytes on the disk: each distinct tensor is read once.

measurements = Measurements(has_exponents=True)
tensor_statistics("dump", measurements=measurements)
find_non_finite("dump", measurements=measurements)  # reads nothing again
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Protocol

from msdump.analysis._payload import Key, key_of
from msdump.errors import DtypeError, FormatError
from msdump.formats.dump_tensor import DumpedTensor
from msdump.statistics.exponents import ExponentHistogram, exponent_histogram
from msdump.statistics.stats import Statistics, statistics
from msdump.storage import files
from msdump.storage.plain import unreadable
from msdump.tensors import device_layouts, dtypes

# Device, inode, offset, member of a container without offsets, size and time of the last change in nanoseconds.
StoreKey = tuple[int, int, int, str, int, int]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One reading of a tensor as the host has it.

    shape      of what was read
    exponents  None where they were not asked for, and for elements without order
    """

    numbers: Statistics
    shape: tuple[int, ...]
    exponents: ExponentHistogram | None


class Store(Protocol):
    """Persistent store of measurements. Both methods may be called from several threads."""

    def get(self, key: StoreKey) -> Measurement | None: ...

    def put(self, key: StoreKey, measurement: Measurement) -> None: ...


class Measurements:
    """Measurements that are made on first use. May be used by several threads.

    has_exponents  also count the elements by sign and exponent, which takes six times as long as the statistics
    store          what it holds is not measured again, and what is measured goes there
    is_complete    False: what neither memory nor the store has stays unmeasured
    """

    def __init__(self, store: Store | None = None, *, has_exponents: bool = False, is_complete: bool = True) -> None:
        self._store = store
        self._has_exponents = has_exponents
        self._is_complete = is_complete
        self._known: dict[Key, Measurement | FormatError | None] = {}
        self._lock = threading.Lock()

    def of(self, tensor: DumpedTensor) -> Measurement | FormatError | None:
        """The measurement; what is wrong with the file; or None where nothing may be read."""
        key = key_of(tensor)
        with self._lock:
            if key in self._known:
                return self._known[key]
        result = self._made(tensor)
        with self._lock:
            self._known[key] = result
        return result

    def _made(self, tensor: DumpedTensor) -> Measurement | FormatError | None:
        key = None if self._store is None else _store_key(tensor)
        known = None if self._store is None or key is None else self._store.get(key)
        if known is not None or not self._is_complete:
            return known
        try:
            result = _measured(tensor, self._has_exponents)
        except FormatError as error:
            return error
        except DtypeError as error:
            return FormatError(f"{tensor.where}: {error}")
        except OSError as error:
            return unreadable(tensor.path, error)
        # A file that changed while it was read must not be known by what it was.
        if self._store is not None and key is not None and key == _store_key(tensor):
            self._store.put(key, result)
        return result


def is_as_stored(tensor: DumpedTensor) -> bool:
    """Whether the file holds the tensor in the host's order, without the padding of a device format."""
    return tensor.format not in device_layouts.DEVICE_FORMATS or tensor.original_shape is None


def _store_key(tensor: DumpedTensor) -> StoreKey | None:
    try:
        device, inode, start, size, time = files.content_id(tensor.path)
    except (OSError, FormatError):
        return None
    member = "" if tensor.offset >= 0 else f"{tensor.io} {tensor.slot}"
    if tensor.file.member is not None:
        member = str(tensor.file.member.view_id(tensor.offset))
    return device, inode, start + max(0, tensor.offset) if start else tensor.offset, member, size, time


def _measured(tensor: DumpedTensor, has_exponents: bool) -> Measurement:
    array = tensor.load_host()
    dtype = dtypes.dtype_from_numpy(array.dtype).name
    exponents = exponent_histogram(array, dtype) if has_exponents else None
    return Measurement(statistics(array, dtype), tuple(array.shape), exponents)
