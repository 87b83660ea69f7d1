"""acl.media: the image units of a device. Their memory is there; what they compute is not.

DVPP scales, decodes and converts with rules of its own, which no library on a host has: numbers that look like those
of a device and are not would reach the dump. So a script decodes and scales images itself, with Pillow for example.
"""

from __future__ import annotations

from typing import Any

from msdump.frontends.acl.calls import as_int, returns_code, returns_value
from msdump.frontends.acl.memory import DEVICE
from msdump.frontends.acl.process import process

__all__ = ["dvpp_free", "dvpp_malloc"]


@returns_value("acldvppMalloc", 0)
def dvpp_malloc(size: int) -> int:
    """`ptr, ret = acl.media.dvpp_malloc(size)`: memory of the device, as that of `acl.rt.malloc`."""
    return process.memory.allocate(as_int(size, "size"), DEVICE)


@returns_code("acldvppFree")
def dvpp_free(dev_ptr: int) -> None:
    process.memory.free(as_int(dev_ptr, "dev_ptr"), DEVICE)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        f"acl.media.{name}: expected dvpp_malloc or dvpp_free, got a name of the image units of a device, which give "
        "other bits than any library of a host. Decode, scale and convert the image in the script, with Pillow for "
        "example, and copy the result to the input of the model."
    )
