"""Eager execution: one primitive computed at once, into fresh arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import msdump.mindspore.kernels  # noqa: F401  (registers every operator)
from msdump.errors import KernelNotFoundError
from msdump.graph.primitive import Primitive, definition_of
from msdump.graph.types import TensorType
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array


def run(primitive: Primitive, inputs: Sequence[Array], types: Sequence[TensorType] | None = None) -> list[Array]:
    """Outputs of `primitive` on `inputs`.

    Edges:   an output that is a mutated input (ApplyMomentum) is that very array; an output that shows its
             input's bytes under another shape is a copy, so that later writes to one do not show in the other.
    Raises:  GraphError when operands do not fit, KernelNotFoundError, what the kernel raises.
    """
    definition = primitive.definition or definition_of(primitive.op_type)
    if definition.compute is not None:
        return list(definition.compute(inputs, primitive.attrs))
    if types is None:
        if definition.infer is None:
            raise KernelNotFoundError(f"{primitive.op_type} has no shape rule (infer).")
        types = definition.infer([type_of(array) for array in inputs], primitive.attrs)
    outputs = allocated(primitive, inputs, types)
    launch(primitive, inputs, outputs)
    return outputs


def allocated(primitive: Primitive, inputs: Sequence[Array], types: Sequence[TensorType]) -> list[Array]:
    """Memory for the outputs of `primitive`; those that show an input hold its bytes already."""
    definition = primitive.definition or definition_of(primitive.op_type)
    outputs: list[Array] = []
    for index, type_ in enumerate(types):
        if index in definition.aliases:
            outputs.append(inputs[definition.aliases[index]])
        elif index in definition.views:
            outputs.append(np.array(inputs[definition.views[index]], order="C").reshape(type_.shape))
        else:
            outputs.append(np.empty(type_.shape, dtypes.dtype(type_.dtype).numpy))
    return outputs


def launch(primitive: Primitive, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Compute `primitive` into memory that `allocated` gave."""
    definition = primitive.definition or definition_of(primitive.op_type)
    if not outputs or any(index not in definition.views for index in range(len(outputs))):
        definition.kernel(primitive.op_type)(inputs, primitive.attrs, outputs)


def type_of(array: Array) -> TensorType:
    """Type of an array."""
    return TensorType(dtypes.dtype_from_numpy(array.dtype).name, tuple(array.shape))
