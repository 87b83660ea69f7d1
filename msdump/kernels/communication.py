"""Collective operators of a job with one process: everybody's sum is one's own tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msdump.arrays import Array
from msdump.graph.autodiff import GradBuilder, def_bprop
from msdump.graph.graph import Node, Value
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.kernels.checks import NUMBERS, expect, expect_count, expect_dtype

_OPERATIONS = ("sum", "max", "min", "prod")

def_primitive("AllReduce", ("x",))


@def_infer("AllReduce")
def _infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: op ("sum"), group."""
    expect_count(types, 1)
    expect_dtype(types[0], NUMBERS, "x")
    operation = attrs.get("op", "sum")
    expect(operation in _OPERATIONS, f"op to be one of {', '.join(_OPERATIONS)}", repr(operation))
    return (types[0],)


@def_kernel("AllReduce")
def _all_reduce(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    np.copyto(out[0], inputs[0])


@def_bprop("AllReduce")
def _grad(builder: GradBuilder, node: Node, outer: Sequence[Value | None]) -> Sequence[Value | None]:
    """The gradient of a sum is the sum of the gradients."""
    if outer[0] is None:
        return [None]
    return [builder.add("AllReduce", [outer[0]], dict(node.primitive.attrs))]
