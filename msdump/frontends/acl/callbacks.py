"""Callbacks of a script: functions that a stream calls in a thread of the script, one for operators that fail, and one
that takes a dump piece by piece."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from msdump.errors import WriteError
from msdump.frontends.acl import codes
from msdump.frontends.acl.calls import as_int, bad_argument, returns_code, returns_plain
from msdump.frontends.acl.process import process
from msdump.frontends.acl.streams import PendingCallback

if TYPE_CHECKING:
    from msdump.engine.model_session import Deliver
    from msdump.formats.acl_chunks import DumpChunk


log = logging.getLogger("msdump")
T = TypeVar("T")

_NO_BLOCK, _BLOCK = 0, 1  # aclrtCallbackBlockType
_MAX_32_BITS = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class ExceptionInfo:
    """Data of a failed operator for scripts. Ids are those of the dump."""

    task_id: int
    stream_id: int
    thread_id: int
    device_id: int
    error_code: int


@returns_code("aclrtSubscribeReport")
def subscribe_report(thread_id: int, stream: int) -> None:
    """Let a thread, which calls `process_report`, run the callbacks of a stream."""
    process.subscriptions.add(as_int(thread_id, "thread_id"), process.stream(as_int(stream, "stream")))


@returns_code("aclrtUnSubscribeReport")
def unsubscribe_report(thread_id: int, stream: int) -> None:
    """End that. What still waits is not called."""
    process.subscriptions.remove(as_int(thread_id, "thread_id"), process.stream(as_int(stream, "stream")))


@returns_code("aclrtLaunchCallback")
def launch_callback(fn: Callable[[T], object], args: T, block_type: int, stream: int) -> None:
    """Call `fn(args)` in the thread of a stream, after all that the stream has to do before.

    block_type   0: the stream goes on meanwhile; 1: it waits until the function has returned
    """
    if not callable(fn):
        raise TypeError(f"fn: expected a function, got {type(fn).__name__}.")
    if as_int(block_type, "block_type") not in (_NO_BLOCK, _BLOCK):
        raise bad_argument(f"block_type: expected 0 (no block) or 1 (block), got {block_type}")
    held = process.stream(as_int(stream, "stream"))
    reports = process.subscriptions.reports_of(held)
    report = PendingCallback(fn, args, threading.Event())

    def work() -> None:
        process.subscriptions.deliver(report, reports)
        if block_type == _BLOCK:
            report.done.wait()

    held.submit(work)


def process_report(timeout: int) -> int:
    """Run one callback of the streams that this thread is subscribed to: `ret = acl.rt.process_report(timeout)`.

    timeout   milliseconds; -1 waits for ever
    Returns:  0; 507012 when nothing came in that time; 107012 for a thread that is not subscribed. Neither is logged:
              scripts call this in a loop.
    """
    limit = as_int(timeout, "timeout")
    reports = process.subscriptions.reports(threading.get_ident())
    if reports is None:
        return codes.RT_THREAD_SUBSCRIBE
    try:
        report = reports.get(timeout=None if limit < 0 else limit / 1000)
    except queue.Empty:
        return codes.RT_REPORT_TIMEOUT
    try:
        report.function(report.argument)
    except Exception:
        log.exception("acl.rt.launch_callback: the function of the script failed.")
    finally:
        report.done.set()
    return codes.SUCCESS


@returns_code("aclrtSetExceptionInfoCallback")
def set_exception_info_callback(fn: Callable[[int], object] | None = None) -> None:
    """Call a function with the handle of an exception info when an operator fails; None ends that."""
    if fn is not None and not callable(fn):
        raise TypeError(f"fn: expected a function, got {type(fn).__name__}.")
    process.exception_callback = fn


def _getter(field: str) -> Callable[[int], int]:
    @returns_plain(f"aclrtGet{field.title().replace('_', '')}FromExceptionInfo", _MAX_32_BITS)
    def call(info: int) -> int:
        return int(getattr(_info(info), field))

    return call


get_task_id_from_exception_info = _getter("task_id")
get_stream_id_from_exception_info = _getter("stream_id")
get_thread_id_from_exception_info = _getter("thread_id")
get_device_id_from_exception_info = _getter("device_id")
get_error_code_from_exception_info = _getter("error_code")


def tell_exception(task_id: int, stream_id: int) -> None:
    """Call the script's function, if it has set one; the info is freed when it returns."""
    function = process.exception_callback
    if function is None:
        return
    thread_id = threading.get_native_id()
    handle = process.handles.add(ExceptionInfo(task_id, stream_id, thread_id, process.device_id, codes.GE_FAILURE))
    try:
        function(handle)
    except Exception:
        log.exception("acl.rt.set_exception_info_callback: the function of the script failed.")
    finally:
        process.handles.discard(handle)


def _info(info: int) -> ExceptionInfo:
    return process.handles.find(as_int(info, "info"), ExceptionInfo, "info")


def deliver_to(function: Callable[[dict[str, str | int]], object]) -> Deliver:
    """What hands one piece to a function, as the dict that pyACL makes of `acldumpChunk`.

    Raises (when called): WriteError when the function returns another number than 0.
    """

    def deliver(chunk: DumpChunk) -> None:
        data = np.frombuffer(chunk.data, np.uint8) if len(chunk.data) else np.empty((0,), np.uint8)
        address = process.memory.lend(data, data.ctypes.data, data.nbytes, False) if data.nbytes else 0
        try:
            result = function(
                {
                    "file_name": chunk.file_name,
                    "data_buf": address,
                    "buf_len": data.nbytes,
                    "is_last_chunk": int(chunk.is_last),
                    "offset": chunk.offset,
                    "flag": chunk.flag,
                }
            )
        finally:
            # The chunk is freed when this returns, even if its address is kept.
            process.memory.take_back(data)
        if isinstance(result, int) and result != 0:
            raise WriteError(f"{chunk.file_name}: expected a callback that returns 0, got {result}.")

    return deliver
