"""`mindspore.hal` and `mindspore.runtime`: the device as scripts ask about it. Here it is the machine's memory.

Operators run one after the other, so streams and events order nothing; memory is counted by numpy and the system.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, final

from msdump.mindspore.context import get_context
from msdump.mindspore.names import explain_missing, publish

_TARGETS = ("CPU", "GPU", "Ascend")


def device_count(device_target: str | None = None) -> int:
    """Devices of a kind: one of the kind that was set, none of another."""
    return int(is_available(device_target or get_context("device_target")))


def is_available(device_target: str) -> bool:
    """Can this kind be set? Every kind can; its operators run on the CPU.   Raises: ValueError for an unknown kind."""
    if device_target not in _TARGETS:
        raise ValueError(f"device_target: expected one of {list(_TARGETS)}, got {device_target!r}.")
    return bool(device_target == get_context("device_target"))


def is_initialized(device_target: str) -> bool:
    """Is the kind in use?"""
    return is_available(device_target)


def get_device_name(device_id: int = 0, device_target: str | None = None) -> str:
    """The kind that was set: there is no other device than the CPU."""
    return device_target or str(get_context("device_target"))


def synchronize() -> None:
    """Operators have ended when they return."""


def empty_cache() -> None:
    """Nothing is kept back."""


@final
class Event:
    """A moment of a stream."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        self.enable_timing = enable_timing
        self._time: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        self._time = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """All that was begun has ended."""

    def query(self) -> bool:
        """All that was begun has ended: True."""
        return True

    def synchronize(self) -> None:
        """All that was begun has ended."""

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds to another event.   Raises: RuntimeError unless both were recorded with enable_timing."""
        if not (self.enable_timing and end_event.enable_timing):
            raise RuntimeError("Event.elapsed_time: expected events with enable_timing=True, got one without.")
        if self._time is None or end_event._time is None:
            raise RuntimeError("Event.elapsed_time: expected recorded events, got one that was not.")
        return (end_event._time - self._time) * 1000


@final
class Stream:
    """An order of operators: all run in the order of the program, whatever their stream."""

    def __init__(self, priority: int = 0, **options: Any) -> None:
        self.priority, self.id = priority, 0

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """All that was begun has ended."""

    def wait_stream(self, stream: Stream) -> None:
        """All that was begun has ended."""

    def query(self) -> bool:
        """All that was begun has ended: True."""
        return True

    def synchronize(self) -> None:
        """All that was begun has ended."""


@final
class StreamCtx:
    """While this is open, operators belong to a stream, which changes nothing."""

    def __init__(self, ctx_stream: Stream | None) -> None:
        self.stream = ctx_stream

    def __enter__(self) -> StreamCtx:
        return self

    def __exit__(self, *error: object) -> None: ...


_stream = Stream()


def current_stream() -> Stream:
    """The one stream."""
    return _stream


default_stream: Callable[[], Stream] = current_stream
communication_stream: Callable[[], Stream] = current_stream


def set_cur_stream(stream: Stream) -> None:
    """Accepted."""


def max_memory_allocated(device_target: str | None = None) -> int:
    """Most bytes that the process has held, where the system says; 0 elsewhere."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


memory_allocated = memory_reserved = max_memory_reserved = max_memory_allocated


def memory_stats(device_target: str | None = None) -> dict[str, Any]:
    """The numbers that there are."""
    return {"total_allocated_memory": memory_allocated(), "max_allocated_memory": max_memory_allocated()}


def memory_summary(device_target: str | None = None) -> str:
    """The numbers that there are, as text."""
    return "\n".join(f"{name}: {value}" for name, value in memory_stats().items())


def reset_peak_memory_stats(device_target: str | None = None) -> None:
    """Accepted: the system keeps the peak of the process."""


reset_max_memory_allocated = reset_max_memory_reserved = reset_peak_memory_stats


def launch_blocking() -> None:
    """Operators block anyway."""


def dispatch_threads_num(threads_num: int) -> None:
    """Accepted: operators are called from the script's thread."""


def set_cpu_affinity(enable_affinity: bool, affinity_cpu_list: Any = None) -> None:
    """Accepted: the system places threads."""


def set_memory(
    init_size: str = "2GB", increase_size: str = "2GB", max_size: str = "1024GB", optimize_level: str = "O0",
    huge_page_reserve_size: str = "0GB",
) -> None:  # fmt: skip
    """Accepted: memory is taken when it is needed."""


def set_kernel_launch_group(thread_num: int = 2, kernel_group_num: int = 8) -> None:
    """Accepted: operators are called from the script's thread."""


def set_kernel_launch_capture(enable_capture_graph: bool, *args: Any, **kwargs: Any) -> None:
    """Accepted: operators are called one by one."""


publish(
    __name__, "communication_stream", "default_stream", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "reset_max_memory_allocated", "reset_max_memory_reserved",
)  # fmt: skip

__getattr__ = explain_missing(__name__)
