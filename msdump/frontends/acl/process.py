"""The state of ACL in this process: what its calls share, and the handles that stand for objects of it. ACL has one for
each process, and so has this package."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from msdump.engine.model_session import AclSession
from msdump.frontends.acl import codes
from msdump.frontends.acl.calls import CallError, bad_argument
from msdump.frontends.acl.dump_state import DumpState
from msdump.frontends.acl.memory import ProcessMemory
from msdump.frontends.acl.streams import Stream, Subscriptions

if TYPE_CHECKING:
    from msdump.frontends.onnx import OnnxModel
    from msdump.graph.run import Observer


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
        """Destroy a handle that may be destroyed already."""
        with self._lock:
            self._object_by_handle.pop(handle, None)


class HasSize(Protocol):
    """An operand of a loaded model."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def is_dynamic(self) -> bool: ...


class HasOperands(Protocol):
    """A loaded model.   fed, outputs: its operands"""

    @property
    def name(self) -> str: ...

    @property
    def fed(self) -> Sequence[HasSize]: ...

    @property
    def outputs(self) -> Sequence[HasSize]: ...


@dataclass(frozen=True, slots=True)
class Context:
    """A device as a thread uses it."""

    device_id: int


class _Current(threading.local):
    """The current device and context of a thread."""

    context: int = 0


class Process:
    """Objects behind handles, addresses and ids. Calls may come from any thread."""

    def __init__(self) -> None:
        self.reset_for_tests()

    def reset_for_tests(self) -> None:
        """Reset all state, so that the process can begin again."""
        self.handles = Handles()
        self.memory = ProcessMemory()
        self.dump = DumpState(self.drain)
        self.models: dict[int, HasOperands] = {}
        self.model_ids = itertools.count(1)
        self.single_ops: object = None
        self.default_stream = Stream()
        self.streams: dict[int, Stream] = {}
        self.subscriptions = Subscriptions()
        self.exception_callback: Callable[[int], object] | None = None
        self.threads: dict[int, threading.Thread] = {}
        self._current = _Current()
        self._last_context = 0
        self.context_by_device: dict[int, int] = {}
        # Held while something is made that all threads share.
        self.lock = threading.RLock()

    def stream(self, handle: int) -> Stream:
        """The stream behind a handle; 0 is the default one.   Raises: CallError."""
        return self.default_stream if handle == 0 else self.handles.find(handle, Stream, "stream")

    def drain(self) -> None:
        """Wait for all work queued on streams."""
        for stream in (self.default_stream, *self.streams.values()):
            stream.drain()

    def enter(self, context: int) -> None:
        """Make a context the current one of this thread, and of threads that choose none."""
        self._current.context = self._last_context = context

    @property
    def context(self) -> int:
        """Handle of the current context; 0 before any device was set."""
        for handle in (self._current.context, self._last_context):
            if handle and self.handles.get(handle, Context) is not None:
                return handle
        return 0

    @property
    def device_id(self) -> int:
        """Device of this thread; 0 before any was set."""
        context = self.handles.get(self.context, Context)
        return 0 if context is None else context.device_id

    def watch(self, model: OnnxModel, dumps: Sequence[AclSession], model_id: int) -> None:
        """Let dumps watch the runs of a model."""
        names = tuple(dict.fromkeys(name for name in (model.file_name, model.model_name) if name))
        watching: list[Observer] = []
        for dump in dumps:
            observers = dump.observe_model(model_id, names, model.originals, self.device_id)
            if observers:
                dump.count_skipped(model.skipped(), self.device_id)
                dump.count_unseen(model.unseen(), self.device_id)
            watching += observers
        model.watch(watching)

    def close(self) -> None:
        """Wait for streams and finish every dump.   Raises: DumpError when one is not complete."""
        self.drain()
        self.dump.close()

    def check_initialized(self, function: str) -> None:
        """Raises: CallError 100001 before `acl.init` and after `acl.finalize`."""
        if not self.dump.is_initialized:
            raise CallError(codes.UNINITIALIZE, f"{function}: call acl.init first", codes.WRONG_ORDER)


process = Process()
