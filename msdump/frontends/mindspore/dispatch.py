"""Dispatch: the one door through which every operator of the shim goes, into a graph or at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msdump import dtypes
from msdump.frontends.mindspore import eager
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.precision import compute_dtype
from msdump.frontends.mindspore.tracer import current_tracer
from msdump.graph.primitive import Primitive, definition_of

Attrs = Mapping[str, Any]


def execute(op_type: str, inputs: Sequence[Tensor], attrs: Attrs | None = None) -> tuple[Tensor, ...]:
    """All outputs of one operator: a node of the active graph, or computed now.

    Raises: GraphError when operands do not fit; KernelNotFoundError with the nearest known operator.
    """
    primitive = Primitive(op_type, dict(attrs or {}))
    wanted = compute_dtype()
    if wanted is not None and op_type != "Cast" and not definition_of(op_type).mutates:
        inputs = [_lowered(tensor, wanted) for tensor in inputs]
    tracer = current_tracer()
    if tracer is not None:
        return tracer.add(primitive, inputs)
    return tuple(Tensor.of_array(array) for array in eager.run(primitive, [tensor.array for tensor in inputs]))


def call(op_type: str, *inputs: Tensor, **attrs: Any) -> Tensor:
    """First output of one operator."""
    return execute(op_type, inputs, attrs)[0]


def _lowered(tensor: Tensor, wanted: str) -> Tensor:
    name = tensor.type_.dtype
    if name == wanted or not dtypes.dtype(name).is_float:
        return tensor
    return call("Cast", tensor, dtype=wanted)
