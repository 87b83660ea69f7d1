"""ACL's Python interface, pyACL, for models from `.onnx` files on this machine's CPU; and a short one beside it.

Handles are ints, memory is real, and every call returns the aclError that CANN gives.

    with msdump.acl.dump("acl.json"):
        msdump.acl.load("resnet50.onnx")(images)
"""

from __future__ import annotations

import logging
from typing import NoReturn

import numpy as np

from msdump.engine.opening import DumpBlock as Dump
from msdump.errors import did_you_mean
from msdump.frontends.acl import const, mdl, media, op, rt, util
from msdump.frontends.acl.calls import as_int, as_text, bad_argument, report, returns_code, take_messages
from msdump.frontends.acl.codes import SUCCESS
from msdump.frontends.acl.const import *  # noqa: F403  every name begins with ACL_
from msdump.frontends.acl.dataset import (
    create_data_buffer,
    destroy_data_buffer,
    get_data_buffer_addr,
    get_data_buffer_size,
    get_data_buffer_size_v2,
    update_data_buffer,
)
from msdump.frontends.acl.process import process
from msdump.frontends.acl.short_api import Model, dump, load
from msdump.frontends.acl.tensor_desc import (
    create_tensor_desc,
    data_type_size,
    destroy_tensor_desc,
    get_tensor_desc_address,
    get_tensor_desc_by_index,
    get_tensor_desc_dim,
    get_tensor_desc_dim_range,
    get_tensor_desc_dim_v2,
    get_tensor_desc_element_count,
    get_tensor_desc_format,
    get_tensor_desc_name,
    get_tensor_desc_num_dims,
    get_tensor_desc_size,
    get_tensor_desc_type,
    set_tensor_const,
    set_tensor_desc_name,
    set_tensor_dynamic_input,
    set_tensor_format,
    set_tensor_origin_format,
    set_tensor_origin_shape,
    set_tensor_place_ment,
    set_tensor_shape,
    set_tensor_shape_range,
    set_tensor_storage_format,
    set_tensor_storage_shape,
    set_tensor_value_range,
    trans_tensor_desc_format,
)

log = logging.getLogger("msdump")

__all__ = [
    "Dump",
    "Model",
    "app_log",
    "const",
    "create_data_buffer",
    "create_tensor_desc",
    "data_type_size",
    "destroy_data_buffer",
    "destroy_tensor_desc",
    "dump",
    "finalize",
    "float16_to_float",
    "float_to_float16",
    "get_data_buffer_addr",
    "get_data_buffer_size",
    "get_data_buffer_size_v2",
    "get_recent_err_msg",
    "get_soc_name",
    "get_tensor_desc_address",
    "get_tensor_desc_by_index",
    "get_tensor_desc_dim",
    "get_tensor_desc_dim_range",
    "get_tensor_desc_dim_v2",
    "get_tensor_desc_element_count",
    "get_tensor_desc_format",
    "get_tensor_desc_name",
    "get_tensor_desc_num_dims",
    "get_tensor_desc_size",
    "get_tensor_desc_type",
    "get_version",
    "init",
    "load",
    "mdl",
    "media",
    "op",
    "rt",
    "set_tensor_const",
    "set_tensor_desc_name",
    "set_tensor_dynamic_input",
    "set_tensor_format",
    "set_tensor_origin_format",
    "set_tensor_origin_shape",
    "set_tensor_place_ment",
    "set_tensor_shape",
    "set_tensor_shape_range",
    "set_tensor_storage_format",
    "set_tensor_storage_shape",
    "set_tensor_value_range",
    "trans_tensor_desc_format",
    "update_data_buffer",
    "util",
]


_LOG_LEVELS = {0: logging.DEBUG, 1: logging.INFO, 2: logging.WARNING, 3: logging.ERROR}


@returns_code("aclInit")
def init(config_path: str | None = None) -> None:
    """Begin: `ret = acl.init()`; with an acl.json its dump is in force until `finalize`."""
    process.dump.init(None if config_path is None else as_text(config_path, "config_path"))


@returns_code("aclFinalize")
def finalize() -> None:
    """End: what streams still do is done, dumps are finished."""
    if process.dump.is_initialized:
        process.drain()
    process.dump.finalize()


def get_recent_err_msg() -> str:
    """Errors of this thread's calls since the last call of this function; "" when none failed."""
    return take_messages()


def app_log(log_level: int, message: str) -> None:
    """Log a message of the script: 0 debug, 1 info, 2 warning, 3 error.   Edges: another level is an error."""
    level = _LOG_LEVELS.get(as_int(log_level, "log_level"))
    if level is None:
        report("aclAppLog", bad_argument(f"log_level: expected 0, 1, 2 or 3, got {log_level}"))
        level = logging.ERROR
    log.log(level, "%s", as_text(message, "message"))


def float16_to_float(value: int) -> float:
    """Number of a float16 that is given by its bits: `acl.float16_to_float(0x3C00)` is 1.0."""
    return float(np.uint16(as_int(value, "value") & 0xFFFF).view(np.float16))


def float_to_float16(value: float) -> int:
    """Bits of the float16 that is nearest to a number, ties to even; too large ones become Inf."""
    with np.errstate(over="ignore"):
        return int(np.float32(value).astype(np.float16).view(np.uint16))


def get_soc_name() -> str:
    """Name of the chip. There is none."""
    return "CPU"


def get_version() -> tuple[int, int, int, int]:
    """`major, minor, patch, ret = acl.get_version()`: of the interface that this follows."""
    return 1, 0, 0, SUCCESS


def __getattr__(name: str) -> NoReturn:
    # The import system and inspect look these names up; they are not in the script.
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        f'acl: expected one of {", ".join(__all__)}, got "{name}". {did_you_mean(name, __all__)} '
        "Profiling, queues and image units of a device are not part of msdump; docs/acl-coverage.md has every name."
    )
