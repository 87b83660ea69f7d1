"""acl.rt: devices, streams, events and memory. Every device is the CPU of this machine."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import NoReturn

from msdump.frontends.acl import callbacks, codes
from msdump.frontends.acl.calls import CallError, as_int, bad_argument, returns_code, returns_value, unknown_name
from msdump.frontends.acl.const import ACL_EVENT_STATUS_COMPLETE, ACL_EVENT_STATUS_NOT_READY, ACL_HOST
from msdump.frontends.acl.memory import DEVICE, HOST, memory_sizes
from msdump.frontends.acl.process import Context, process
from msdump.frontends.acl.streams import Event, Stream

# A server has this many. Files of a dump lie apart for each of them.
DEVICES = 8
_COPY_KINDS = range(8)

# -- callbacks and exceptions -----------------------------------------------------------------------

get_device_id_from_exception_info = callbacks.get_device_id_from_exception_info
get_error_code_from_exception_info = callbacks.get_error_code_from_exception_info
get_stream_id_from_exception_info = callbacks.get_stream_id_from_exception_info
get_task_id_from_exception_info = callbacks.get_task_id_from_exception_info
get_thread_id_from_exception_info = callbacks.get_thread_id_from_exception_info
launch_callback = callbacks.launch_callback
process_report = callbacks.process_report
set_exception_info_callback = callbacks.set_exception_info_callback
subscribe_report = callbacks.subscribe_report
unsubscribe_report = callbacks.unsubscribe_report

# -- devices and contexts ---------------------------------------------------------------------------


@returns_code("aclrtSetDevice")
def set_device(device_id: int) -> None:
    number = _device(device_id)
    with process.lock:
        if number not in process.context_by_device:
            process.context_by_device[number] = process.handles.add(Context(number))
    process.enter(process.context_by_device[number])
    process.dump.is_device_set = True


@returns_code("aclrtResetDevice")
def reset_device(device_id: int) -> None:
    """Wait for all streams and let go of the device."""
    number = _device(device_id)
    process.drain()
    handle = process.context_by_device.pop(number, 0)
    process.handles.discard(handle)


@returns_value("aclrtGetDevice", 0)
def get_device() -> int:
    """`device_id, ret = acl.rt.get_device()`."""
    _need_context()
    return process.device_id


@returns_value("aclrtGetDeviceCount", 0)
def get_device_count() -> int:
    """`count, ret = acl.rt.get_device_count()`."""
    return DEVICES


@returns_code("aclrtSynchronizeDevice")
def synchronize_device() -> None:
    """Wait for all streams; gives the first error."""
    for stream in (process.default_stream, *process.streams.values()):
        stream.synchronize()


@returns_value("aclrtGetRunMode", 0)
def get_run_mode() -> int:
    """Always ACL_HOST: memory of the device is apart from the host's, so copies name their direction."""
    return ACL_HOST


@returns_value("aclrtCreateContext", 0)
def create_context(device_id: int) -> int:
    """`context, ret = acl.rt.create_context(device_id)`; it becomes the current one."""
    handle = process.handles.add(Context(_device(device_id)))
    process.enter(handle)
    process.dump.is_device_set = True
    return handle


@returns_code("aclrtDestroyContext")
def destroy_context(context: int) -> None:
    process.handles.remove(as_int(context, "context"), Context, "context")


@returns_code("aclrtSetCurrentContext")
def set_context(context: int) -> None:
    handle = as_int(context, "context")
    process.handles.find(handle, Context, "context")
    process.enter(handle)


@returns_value("aclrtGetCurrentContext", 0)
def get_context() -> int:
    """`context, ret = acl.rt.get_context()`."""
    _need_context()
    return process.context


# -- streams and events -----------------------------------------------------------------------------


@returns_value("aclrtCreateStream", 0)
def create_stream() -> int:
    """`stream, ret = acl.rt.create_stream()`."""
    return _new_stream()


@returns_value("aclrtCreateStreamWithConfig", 0)
def create_stream_with_config(priority: int, flag: int) -> int:
    """As `create_stream`: there is one priority."""
    as_int(priority, "priority"), as_int(flag, "flag")
    return _new_stream()


@returns_code("aclrtDestroyStream")
def destroy_stream(stream: int) -> None:
    """Finish its work and destroy it."""
    handle = as_int(stream, "stream")
    held = process.handles.remove(handle, Stream, "stream")
    process.streams.pop(handle, None)
    held.close()


@returns_code("aclrtSynchronizeStream")
def synchronize_stream(stream: int) -> None:
    """Wait for a stream; returns the first error of what it did. Stream 0 is the default one."""
    process.stream(as_int(stream, "stream")).synchronize()


@returns_code("aclrtSynchronizeStreamWithTimeout")
def synchronize_stream_with_timeout(stream: int, timeout: int) -> None:
    """As `synchronize_stream`; -1 = without limit. Milliseconds.   Returns: 107020 after that time."""
    queue, limit = process.stream(as_int(stream, "stream")), as_int(timeout, "timeout")
    if not queue.drain(None if limit < 0 else limit / 1000):
        raise CallError(codes.RT_STREAM_SYNC_TIMEOUT, f"stream: expected its end within {limit} ms")
    queue.synchronize()


@returns_value("aclrtCreateEvent", 0)
def create_event() -> int:
    """`event, ret = acl.rt.create_event()`."""
    return process.handles.add(Event())


@returns_code("aclrtDestroyEvent")
def destroy_event(event: int) -> None:
    process.handles.remove(as_int(event, "event"), Event, "event")


@returns_code("aclrtRecordEvent")
def record_event(event: int, stream: int) -> None:
    held, queue = _event(event), process.stream(as_int(stream, "stream"))
    held.arm()
    queue.submit(held.reach)


@returns_code("aclrtResetEvent")
def reset_event(event: int, stream: int) -> None:
    _event(event)
    process.stream(as_int(stream, "stream"))


@returns_value("aclrtQueryEvent", ACL_EVENT_STATUS_NOT_READY)
def query_event(event: int) -> int:
    """`status, ret = acl.rt.query_event(event)`."""
    return ACL_EVENT_STATUS_COMPLETE if _event(event).is_reached else ACL_EVENT_STATUS_NOT_READY


@returns_code("aclrtSynchronizeEvent")
def synchronize_event(event: int) -> None:
    _event(event).wait()


@returns_code("aclrtStreamWaitEvent")
def stream_wait_event(stream: int, event: int) -> None:
    queue, held = process.stream(as_int(stream, "stream")), _event(event)
    queue.submit(held.wait)


@returns_value("aclrtEventElapsedTime", 0.0)
def event_elapsed_time(start: int, end: int) -> float:
    """`milliseconds, ret = acl.rt.event_elapsed_time(start, end)`."""
    first, last = _event(start).recorded_at, _event(end).recorded_at
    if first is None or last is None:
        raise CallError(codes.RT_PARAM_INVALID, "start, end: expected two events that streams have reached")
    return 1000 * (last - first)


# -- memory -----------------------------------------------------------------------------------------


@returns_value("aclrtMalloc", 0)
def malloc(size: int, policy: int) -> int:
    """`ptr, ret = acl.rt.malloc(size, policy)`: memory of the device."""
    as_int(policy, "policy")
    return process.memory.allocate(_memory_size(size), DEVICE)


@returns_value("aclrtMallocCached", 0)
def malloc_cached(size: int, policy: int) -> int:
    """As `malloc`: all memory is cached here."""
    as_int(policy, "policy")
    return process.memory.allocate(_memory_size(size), DEVICE)


@returns_code("aclrtFree")
def free(ptr: int) -> None:
    process.memory.free(as_int(ptr, "ptr"), DEVICE)


@returns_value("aclrtMallocHost", 0)
def malloc_host(size: int) -> int:
    """`ptr, ret = acl.rt.malloc_host(size)`."""
    return process.memory.allocate(_memory_size(size), HOST)


@returns_code("aclrtFreeHost")
def free_host(ptr: int) -> None:
    process.memory.free(as_int(ptr, "ptr"), HOST)


@returns_code("aclrtMemcpy")
def memcpy(dst: int, dest_max: int, src: int, count: int, direction: int) -> None:
    """`ret = acl.rt.memcpy(dst, dest_max, src, count, direction)`."""
    _copy(dst, dest_max, src, count, direction)()


@returns_code("aclrtMemcpyAsync")
def memcpy_async(dst: int, dest_max: int, src: int, count: int, direction: int, stream: int) -> None:
    queue = process.stream(as_int(stream, "stream"))
    queue.submit(_copy(dst, dest_max, src, count, direction))


@returns_code("aclrtMemset")
def memset(dev_ptr: int, max_count: int, value: int, count: int) -> None:
    """`ret = acl.rt.memset(dev_ptr, max_count, value, count)`."""
    _fill(dev_ptr, max_count, value, count)()


@returns_code("aclrtMemsetAsync")
def memset_async(dev_ptr: int, max_count: int, value: int, count: int, stream: int) -> None:
    queue = process.stream(as_int(stream, "stream"))
    queue.submit(_fill(dev_ptr, max_count, value, count))


def get_mem_info(attr: int) -> tuple[int, int, int]:
    """`free, total, ret = acl.rt.get_mem_info(attr)`: of this machine, in bytes."""
    as_int(attr, "attr")
    return (*memory_sizes(), codes.SUCCESS)


# -- parts ------------------------------------------------------------------------------------------


def _device(device_id: int) -> int:
    number = as_int(device_id, "device_id")
    if not 0 <= number < DEVICES:
        raise CallError(
            codes.RT_INVALID_DEVICEID, f"device_id: expected 0 to {DEVICES - 1}, got {number}", codes.BAD_ARGUMENT
        )
    return number


def _memory_size(size: int) -> int:
    """Raises: CallError 100000 for 0, which a model with open sizes reports."""
    number = as_int(size, "size")
    if number == 0:
        for model in process.models.values():
            for operand in (*model.fed, *model.outputs):
                if operand.size == 0 and operand.is_dynamic:
                    raise bad_argument(
                        f"size: expected more than 0 bytes, got 0, which model {model.name} reports for "
                        f"{operand.name}, {operand}. Choose the size of the memory yourself, or say in "
                        f"{model.name}.atc beside the model the options of ATC, such as --input_shape or "
                        "--dynamic_batch_size"
                    )
    return number


def _need_context() -> None:
    if not process.context:
        raise CallError(codes.RT_CONTEXT_NULL, "context: call acl.rt.set_device first", codes.WRONG_ORDER)


def _new_stream() -> int:
    stream = Stream()
    handle = process.handles.add(stream)
    process.streams[handle] = stream
    return handle


def _event(event: int) -> Event:
    return process.handles.find(as_int(event, "event"), Event, "event")


def _copy(dst: int, dest_max: int, src: int, count: int, direction: int) -> Callable[[], None]:
    size = _count(count, dest_max, "dest_max")
    if as_int(direction, "direction") not in _COPY_KINDS:
        raise bad_argument(f"direction: expected 0 to 7, got {direction}")
    target = process.memory.array(as_int(dst, "dst"), size, "dst", is_written=True)
    source = process.memory.array(as_int(src, "src"), size, "src")

    def copy() -> None:
        if size:
            # The two may be the same memory.
            ctypes.memmove(target.ctypes.data, source.ctypes.data, size)

    return copy


def _fill(address: int, max_count: int, value: int, count: int) -> Callable[[], None]:
    size = _count(count, max_count, "max_count")
    target = process.memory.array(as_int(address, "dev_ptr"), size, "dev_ptr", is_written=True)
    byte = as_int(value, "value") & 0xFF

    def fill() -> None:
        target[:] = byte

    return fill


def _count(count: int, limit: int, name: str) -> int:
    size, most = as_int(count, "count"), as_int(limit, name)
    if not 0 <= size <= most:
        raise bad_argument(f"count: expected 0 to {name}, which is {most}, got {size}")
    return size


def __getattr__(name: str) -> NoReturn:
    raise unknown_name("acl.rt", name, globals())
