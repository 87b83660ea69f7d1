"""Tensors that two operators both have, and their shapes as the host has them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msdump.analysis.steps import Operator, Slot
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.kinds import has
from msdump.tensors.records import INPUT, OUTPUT

_WORKSPACE = {INPUT: "reads-workspace", OUTPUT: "makes-workspace"}


def host_shape(tensor: DumpedTensor) -> tuple[int, ...]:
    """Shape without the padding of a device layout, as far as the file tells."""
    return tensor.shape if tensor.original_shape is None else tensor.original_shape


def common_tensors(mine: Operator, golden: Operator) -> list[tuple[str, Slot, DumpedTensor, DumpedTensor]]:
    """Side, slot, mine and golden of the tensors that both operators have, inputs first; not the memory of a kernel."""
    found = []
    for io, tensors, others in ((INPUT, mine.inputs, golden.inputs), (OUTPUT, mine.outputs, golden.outputs)):
        own = max(tensors, default=None) if has(mine.op_type, _WORKSPACE[io]) else None
        for slot, tensor in tensors.items():
            partner = others.get(slot)
            if partner is not None and slot != own:
                found.append((io, slot, tensor, partner))
    return found


def is_of_one_size(left: DumpedTensor, right: DumpedTensor) -> bool:
    """True when both have as many elements: two frameworks may see one tensor in two shapes."""
    if left is right:
        return True
    shapes = host_shape(left), host_shape(right)
    return shapes[0] == shapes[1] or math.prod(shapes[0]) == math.prod(shapes[1])


def sizes_of(tensors: Iterable[DumpedTensor]) -> tuple[int, ...]:
    """Numbers of elements: two frameworks may see one tensor in two shapes."""
    return tuple(math.prod(host_shape(tensor)) for tensor in tensors)
