"""`mindspore.ops`: operator classes, functions, and composite operations."""

from __future__ import annotations

from msdump.frontends.mindspore.missing import explain_missing
from msdump.frontends.mindspore.ops import composite, function, functional, operations, primitive
from msdump.frontends.mindspore.ops.composite import *  # noqa: F403
from msdump.frontends.mindspore.ops.function import *  # noqa: F403
from msdump.frontends.mindspore.ops.operations import *  # noqa: F403
from msdump.frontends.mindspore.ops.primitive import Primitive, PrimitiveWithCheck, PrimitiveWithInfer

__all__ = [
    "Primitive",
    "PrimitiveWithCheck",
    "PrimitiveWithInfer",
    "composite",
    "function",
    "functional",
    "operations",
    "primitive",
]
__all__ += composite.__all__
__all__ += function.__all__
__all__ += operations.__all__

__getattr__ = explain_missing(
    __name__, {"print": "Call the builtin print outside of a graph, or ops.Print() inside of it."}
)
