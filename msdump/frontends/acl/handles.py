"""Handles: the ints that a script holds in place of objects."""

from __future__ import annotations

import itertools
import threading
from typing import TypeVar

from msdump.frontends.acl import codes
from msdump.frontends.acl.calls import CallError, bad_argument

T = TypeVar("T")

# No address of memory has these bits, so that a handle in place of a pointer, or the other way round, is noticed.
_FIRST, _STEP = 1 << 56, 16


class Handles:
    """All objects that handles stand for. No number is given twice."""

    def __init__(self) -> None:
        self._object_by_handle: dict[int, object] = {}
        self._numbers = itertools.count(_FIRST, _STEP)
        self._lock = threading.Lock()

    def add(self, held: object) -> int:
        """A handle for an object."""
        with self._lock:
            handle = next(self._numbers)
            self._object_by_handle[handle] = held
        return handle

    def find(self, handle: int, kind: type[T], name: str) -> T:
        """The object behind a handle.

        name   of the argument
        Raises: CallError 100000 for a null handle, one that was destroyed, one of another kind.
        """
        held = self._object_by_handle.get(handle)
        if isinstance(held, kind):
            return held
        if handle == 0:
            raise CallError(codes.INVALID_PARAM, f"{name}: expected a handle, got a null pointer", codes.NULL_ARGUMENT)
        got = "the handle of another kind of object" if held is not None else "one that is unknown or was destroyed"
        raise bad_argument(f"{name}: expected the handle of a {kind.__name__}, got {got}")

    def get(self, handle: int, kind: type[T]) -> T | None:
        """The object behind a handle; None when there is none of that kind."""
        held = self._object_by_handle.get(handle)
        return held if isinstance(held, kind) else None

    def remove(self, handle: int, kind: type[T], name: str) -> T:
        """Destroy a handle; gives what was behind it.   Raises: as `find`."""
        with self._lock:
            held = self.find(handle, kind, name)
            del self._object_by_handle[handle]
        return held

    def discard(self, handle: int) -> None:
        """Destroy a handle that may be gone already."""
        with self._lock:
            self._object_by_handle.pop(handle, None)
