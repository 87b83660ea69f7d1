"""`mindspore.ops`: operator classes, functions, and composite operations."""

from __future__ import annotations

from msdump.frontends.mindspore.names import explain_missing, publish_all
from msdump.frontends.mindspore.ops import composite, function, operations, primitive
from msdump.frontends.mindspore.ops.composite import *
from msdump.frontends.mindspore.ops.custom import Custom, custom_info_register
from msdump.frontends.mindspore.ops.function import *
from msdump.frontends.mindspore.ops.jacobians import get_grad, jacfwd, jacrev, jvp, vjp
from msdump.frontends.mindspore.ops.loops import *
from msdump.frontends.mindspore.ops.operations import *
from msdump.frontends.mindspore.ops.primitive import Primitive, PrimitiveWithCheck, PrimitiveWithInfer

publish_all(__name__, "composite", "function", "functional", "operations", "primitive")

__getattr__ = explain_missing(
    __name__, {"print": "Call the builtin print outside of a graph, or ops.Print() inside of it."}
)
