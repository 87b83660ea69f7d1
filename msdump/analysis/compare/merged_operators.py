"""Operators of one side that are one on the other: chains that a mapping file names, each as one operator."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from msdump.analysis._payload import has_same_bytes
from msdump.analysis.compare.common_tensors import host_shape, sizes_of
from msdump.analysis.compare.mapping import is_spelled
from msdump.analysis.steps import Operator, Slot
from msdump.formats.dump_tensor import DumpedTensor

_MAX_LOOKS = 16  # tensors whose bytes are looked at to find the next operator of a chain


def is_meant(operator: Operator, name: str, by_name: bool) -> bool:
    return name in operator.names if by_name else is_spelled(name, (operator.op_type,))


def fits_chain(operator: Operator, merged: Operator, has_inputs: bool) -> bool:
    # One side may have outputs more: indices of maxima, a mask.
    sizes = zip(sizes_of(operator.outputs.values()), sizes_of(merged.outputs.values()), strict=False)
    if any(mine != golden for mine, golden in sizes):
        return False
    return not has_inputs or sizes_of(operator.inputs.values()) == sizes_of(merged.inputs.values())


def aligned_with(merged: Operator, single: Operator) -> Operator:
    """The chain with its inputs in the slots of those of the whole operator; it may read more, such as the scale and
    the zero point of a quantisation, and those are left out."""
    if len(merged.inputs) <= len(single.inputs):
        return merged
    waiting = list(merged.inputs.values())
    inputs: dict[Slot, DumpedTensor] = {}
    for slot, tensor in single.inputs.items():
        size = math.prod(host_shape(tensor))
        match = next((candidate for candidate in waiting if math.prod(host_shape(candidate)) == size), None)
        if match is None:
            return merged
        waiting.remove(match)
        inputs[slot] = match
    return dataclasses.replace(merged, inputs=inputs)


def chains_of(operators: Sequence[Operator], names: tuple[str, ...], by_name: bool) -> list[Operator]:
    """Chains of operators of these types or names, each as one operator: every next one reads what the one before it
    made. No operator is in two chains."""
    chains: list[Operator] = []
    used: set[int] = set()
    for start, operator in enumerate(operators):
        if id(operator) in used or not is_meant(operator, names[0], by_name):
            continue
        links: list[tuple[Operator, Slot | None]] = [(operator, None)]
        last_index = start
        for name in names[1:]:
            step = _next_link(operators, last_index, links[-1][0], name, by_name, used)
            if step is None:
                break
            last_index, slot = step
            links.append((operators[last_index], slot))
        if len(links) == len(names):
            used |= {id(part) for part, _ in links}
            chains.append(merged(links))
    return chains


def _next_link(
    operators: Sequence[Operator], last_index: int, before: Operator, name: str, by_name: bool, used: set[int]
) -> tuple[int, Slot | None] | None:
    """Nearest later operator that reads the first output of `before`, and the input that does so."""
    output = next(iter(before.outputs.values()), None)
    guesses: list[tuple[int, Slot | None]] = []
    for later in range(last_index + 1, len(operators)):
        operator = operators[later]
        if id(operator) in used or not is_meant(operator, name, by_name):
            continue
        if output is None or not operator.inputs:
            return later, None
        for slot, tensor in operator.inputs.items():
            if tensor.shape != output.shape:
                continue
            if len(guesses) < _MAX_LOOKS and has_same_bytes(tensor, output):
                return later, slot
            guesses.append((later, slot))
    # Where nothing holds the same bytes (an operator between them was left out), shape and order have to do.
    return guesses[0] if guesses else None


def merged(links: Sequence[tuple[Operator, Slot | None]]) -> Operator:
    """The chain as one operator: outputs of the last one, and every input that no part of the chain made."""
    parts = tuple(operator for operator, _ in links)
    outer = [
        tensor
        for operator, inner in links
        for slot, tensor in operator.inputs.items()
        if inner is None or slot != inner
    ]
    if len(parts) == 1:
        inputs = parts[0].inputs
    else:
        inputs = {Slot(index): tensor for index, tensor in enumerate(outer)}
    last = parts[-1]
    op_type = "+".join(part.op_type for part in parts)
    name = " + ".join(part.op_name for part in parts)
    return Operator(
        op_type, name, last.full_name, last.position, last.task_id, last.stream_id, inputs, last.outputs, parts
    )
