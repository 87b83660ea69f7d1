"""Operators of a compiled graph, gathered under the names that the user's program has for them.

One operator of the program may be several of the compiled graph: each of its outputs is made by one of them, and others
lie in between. Outputs alone have a counterpart; what the operators of a compiler read is in an order of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from msdump.analysis.mapping import GraphOriginals
from msdump.analysis.operators import Operator, Slot, Step, safe_text
from msdump.formats.dump_tensor import DumpedTensor
from msdump.records import OUTPUT

OriginalOf = Callable[[DumpedTensor], "tuple[str, int] | None"]


def gathered(sides: Sequence[Sequence[Step]], graphs: Mapping[str, GraphOriginals]) -> list[list[Step]]:
    """The steps of each dump; where some are of compiled graphs and others of the program, the former gathered.

    graphs   what graph dumps tell of tensors whose files tell nothing
    """
    original_of = _lookup(graphs)
    names = [_original_names(steps, original_of) for steps in sides]
    plain = {
        operator.op_name
        for steps, originals in zip(sides, names, strict=True)
        if not originals
        for step in steps
        for operator in step.operators
    }
    return [
        [_gathered(step, original_of) for step in steps] if originals & plain else list(steps)
        for steps, originals in zip(sides, names, strict=True)
    ]


def _lookup(graphs: Mapping[str, GraphOriginals]) -> OriginalOf:
    tables = {
        graph: {(safe_text(name), slot): original for (name, slot), original in originals.items()}
        for graph, originals in graphs.items()
    }

    def original_of(tensor: DumpedTensor) -> tuple[str, int] | None:
        if tensor.original is not None or tensor.io != OUTPUT or tensor.model not in tables:
            return tensor.original
        return tables[tensor.model].get((safe_text(tensor.full_name or tensor.op_name), tensor.slot))

    return original_of


def _original_names(steps: Sequence[Step], original_of: OriginalOf) -> set[str]:
    return {
        original[0]
        for step in steps
        for operator in step.operators
        for tensor in operator.outputs.values()
        if (original := original_of(tensor)) is not None
    }


def _gathered(step: Step, original_of: OriginalOf) -> Step:
    """Operators at the place of the last one that they are made of, so that all before them come first."""
    outputs: dict[str, dict[Slot, DumpedTensor]] = {}
    parts: dict[str, dict[int, Operator]] = {}
    operators: dict[str | int, Operator] = {}
    times = [0]
    for operator in step.operators:
        names = set()
        for tensor in operator.outputs.values():
            original = original_of(tensor)
            if original is not None:
                name, index = original
                names.add(name)
                outputs.setdefault(name, {})[Slot(index)] = tensor
                parts.setdefault(name, {})[id(operator)] = operator
            times.append(tensor.timestamp_us or 0)
        for name in names:
            operators.pop(name, None)
            operators[name] = _whole(name, tuple(parts[name].values()), outputs[name])
        if not names:
            operators[id(operator)] = operator if operator.is_parameter else replace(operator, original="")
    return replace(step, operators=tuple(operators.values()), time_us=max(times))


def _whole(name: str, parts: tuple[Operator, ...], outputs: Mapping[Slot, DumpedTensor]) -> Operator:
    first = parts[0]
    if len(parts) == 1:
        return replace(first, inputs={}, outputs=dict(sorted(outputs.items())), parts=parts, original=name)
    return Operator(
        "+".join(part.op_type for part in parts),
        "+".join(part.op_name for part in parts),
        position=first.position,
        task_id=first.task_id,
        stream_id=first.stream_id,
        outputs=dict(sorted(outputs.items())),
        parts=parts,
        original=name,
    )
