"""Cast: the same values in another dtype."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msdump.arrays import Array
from msdump.graph.autodiff import GradBuilder, def_bprop
from msdump.graph.graph import Node, Value
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.kernels.checks import BOOLS, FLOATS, NUMBERS, dtype_attribute, expect_count, expect_dtype
from msdump.kernels.parallel import BLOCK, run_blocks

def_primitive("Cast", ("x",))


@def_infer("Cast")
def _infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: dtype."""
    expect_count(types, 1)
    expect_dtype(types[0], NUMBERS | BOOLS, "x")
    result = TensorType(dtype_attribute(attrs), types[0].shape)
    expect_dtype(result, NUMBERS | BOOLS, "attribute dtype as the result")
    return (result,)


@def_kernel("Cast")
def _cast(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: floats truncate toward zero to integers; NaN to bool is True; too large for float16 is Inf."""
    x, y = np.ascontiguousarray(inputs[0]).reshape(-1), out[0].reshape(-1)

    def block(start: int, stop: int) -> None:
        np.copyto(y[start:stop], x[start:stop], casting="unsafe")

    run_blocks(y.size, block, 8 * BLOCK)


@def_bprop("Cast")
def _grad(builder: GradBuilder, node: Node, outer: Sequence[Value | None]) -> Sequence[Value | None]:
    gradient, x = outer[0], node.inputs[0].type.dtype
    if gradient is None or x not in FLOATS or gradient.type.dtype not in FLOATS:
        return [None]
    return [gradient if gradient.type.dtype == x else builder.add("Cast", [gradient], {"dtype": x})]
