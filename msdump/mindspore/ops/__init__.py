"""`mindspore.ops`: operator classes, functions, and composite operations."""

from __future__ import annotations

from msdump.mindspore.names import explain_missing, publish_all
from msdump.mindspore.ops import composite, function, operations, primitive
from msdump.mindspore.ops.composite import *
from msdump.mindspore.ops.custom import Custom, custom_info_register
from msdump.mindspore.ops.function import *
from msdump.mindspore.ops.jacobians import get_grad, jacfwd, jacrev, jvp, vjp
from msdump.mindspore.ops.operations import *
from msdump.mindspore.ops.primitive import Primitive, PrimitiveWithCheck, PrimitiveWithInfer

publish_all(__name__, "composite", "function", "functional", "operations", "primitive")

__getattr__ = explain_missing(
    __name__, {"print": "Call the builtin print outside of a graph, or ops.Print() inside of it."}
)
