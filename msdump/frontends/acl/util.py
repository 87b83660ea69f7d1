"""acl.util: between Python's objects and addresses."""

from __future__ import annotations

import ctypes
import logging
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from msdump.frontends.acl.calls import (
    CallError,
    as_int,
    bad_argument,
    returns_code,
    returns_plain,
    returns_value,
    unknown_name,
)
from msdump.frontends.acl.process import process
from msdump.tensors.arrays import Array

log = logging.getLogger("msdump")

# numpy's own numbers of its dtypes, NPY_FLOAT32 = 11 and so on.
_DTYPE_BY_NUMBER: dict[int, np.dtype[Any]] = {
    np.dtype(letter).num: np.dtype(letter) for letter in np.typecodes["All"] if letter not in "OSUVMm"
}


@returns_plain("acl.util.numpy_to_ptr", 0)
def numpy_to_ptr(array: Array) -> int:
    """Address of the first element. The array must stay alive, and be contiguous.   Raises: TypeError."""
    return _address(_checked(array))


@returns_plain("acl.util.numpy_contiguous_to_ptr", 0)
def numpy_contiguous_to_ptr(array: Array) -> int:
    """Address of the elements one after the other; of a copy when the array has them otherwise."""
    contiguous = np.ascontiguousarray(_checked(array))
    return _address(contiguous)


@returns_plain("acl.util.ptr_to_numpy", np.empty((0,), np.uint8))
def ptr_to_numpy(ptr: int, shape: Sequence[int], type: int) -> Array:
    """An array over the memory at an address, not a copy.

    type   numpy's number of the dtype, such as 1 (int8, "NPY_BYTE") or 11 (float32)
    """
    dtype = _DTYPE_BY_NUMBER.get(as_int(type, "type"))
    if dtype is None:
        raise bad_argument(f"type: expected numpy's number of a dtype, got {type}")
    sizes = tuple(as_int(size, "shape") for size in shape)
    if any(size < 0 for size in sizes):
        raise bad_argument(f"shape: expected sizes, got {sizes}")
    address, count = as_int(ptr, "ptr"), math.prod(sizes)
    try:
        memory = process.memory.array(address, count * dtype.itemsize, "ptr", is_written=True)
    except CallError:
        memory = process.memory.array(address, count * dtype.itemsize, "ptr")
        memory.flags.writeable = False
    try:
        return memory.view(dtype).reshape(sizes)
    except ValueError as error:
        # numpy multiplies the sizes even of an array without elements.
        raise bad_argument(f"shape: expected sizes that an array of numpy can have, got {sizes}") from error


@returns_plain("acl.util.bytes_to_ptr", 0)
def bytes_to_ptr(data: bytes) -> int:
    """Address of the first byte. The object must stay alive."""
    if not isinstance(data, bytes):
        raise TypeError(f"data: expected bytes, got {type(data).__name__}.")
    address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
    # Scripts let copies write here, as C does.
    return process.memory.lend(data, address, len(data), True)


@returns_plain("acl.util.ptr_to_bytes", b"")
def ptr_to_bytes(ptr: int, size: int) -> bytes:
    """A copy of the memory at an address."""
    return process.memory.array(as_int(ptr, "ptr"), as_int(size, "size"), "ptr").tobytes()


@returns_value("acl.util.start_thread", 0)
def start_thread(thr_func: Callable[..., object], args_list: object) -> int:
    """`thread_id, ret = acl.util.start_thread(thr_func, args_list)`: call `thr_func(args_list)` in a new thread.

    args_list   None calls the function without an argument
    """
    if not callable(thr_func):
        raise TypeError(f"thr_func: expected a function, got {type(thr_func).__name__}.")

    def work() -> None:
        try:
            thr_func() if args_list is None else thr_func(args_list)
        except Exception:
            log.exception("acl.util.start_thread: the function of the script failed.")

    # A script that never stops its thread ends all the same.
    thread = threading.Thread(target=work, name="acl-script", daemon=True)
    thread.start()
    thread_id = thread.ident
    assert thread_id is not None
    process.threads[thread_id] = thread
    return thread_id


@returns_code("acl.util.stop_thread")
def stop_thread(thr_id: int) -> None:
    """Wait until a thread of `start_thread` has ended."""
    thread = process.threads.pop(as_int(thr_id, "thr_id"), None)
    if thread is None:
        raise bad_argument(f"thr_id: expected the id of a thread that acl.util.start_thread started, got {thr_id}")
    thread.join()


def get_ptr(held: bytes | Array) -> int:
    """Address of what an array or bytes hold."""
    return bytes_to_ptr(held) if isinstance(held, bytes) else numpy_to_ptr(held)


def _checked(array: object) -> Array:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"array: expected a numpy array, got {type(array).__name__}.")
    return array


def _address(array: Array) -> int:
    """Address of an array. The owner of the memory must stay alive; views of it may go."""
    owner: Array = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    size = array.nbytes if array.flags.c_contiguous or array.flags.f_contiguous else 0
    return process.memory.lend(owner, array.ctypes.data, size, bool(array.flags.writeable))


def __getattr__(name: str) -> NoReturn:
    raise unknown_name("acl.util", name, globals())
