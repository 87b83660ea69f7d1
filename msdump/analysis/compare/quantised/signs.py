"""What tells that a dump is of a quantised model; every comparison asks."""

from __future__ import annotations

from collections.abc import Sequence

from msdump.analysis.steps import Operator, Slot, Step
from msdump.operators.codes import is_of_quantised_model, rescales
from msdump.tensors import dtypes

_HALF_BYTE = 4  # bits


def quantised_types(steps: Sequence[Step]) -> frozenset[str]:
    """Types of the operators of a dump by which it is that of a quantised model."""
    operators = [operator for step in steps for operator in step.operators]
    all_types = {operator.op_type for operator in operators}
    types = set(filter(is_of_quantised_model, all_types))
    # A weight in codes may be cast by an operator that any model has.
    casts = set(filter(rescales, all_types)) - types
    if casts:
        types |= {one.op_type for one in operators if one.op_type in casts and _casts_codes(one)}
    return frozenset(types)


def _casts_codes(operator: Operator) -> bool:
    first, output = operator.inputs.get(Slot(0)), operator.outputs.get(Slot(0))
    row = None if first is None else dtypes.BY_NAME.get(first.true_dtype)
    return (
        first is not None
        and output is not None
        and row is not None
        and len(first.shape) > 1
        and (row.name == "int8" or (row.bits == _HALF_BYTE and not row.is_float))
        and output.true_dtype.startswith(("float", "bfloat"))
    )
