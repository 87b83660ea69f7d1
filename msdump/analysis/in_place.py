"""Inputs that an operator overwrites: a dump shows them as they were read (msdump) or as they were left (MindSpore on
CPU), and tensors of different moments have nothing to say to each other."""

from __future__ import annotations

from msdump.analysis.operators import Operator, Slot
from msdump.analysis.payload import has_same_bytes

# Operator type -> slots of the inputs that it writes. Output 0 is the first of them, but for BatchNorm.
IN_PLACE = {
    "ApplyMomentum": (0, 1),
    "ApplyRMSProp": (0, 1, 2),
    "ApplyCenteredRMSProp": (0, 1, 2, 3),
    "Adam": (0, 1, 2),
    "AdamWeightDecay": (0, 1, 2),
    "Assign": (0,),
    "AssignAdd": (0,),
    "AssignSub": (0,),
    "SGD": (0, 3, 5),
}


OTHER_MOMENT = "written in place: one dump shows it before the operator ran, the other after"


def shows_result(operator: Operator) -> bool | None:
    """True when the first input already holds what the operator made of it; None when the dump does not tell."""
    if operator.op_type not in IN_PLACE:
        return None
    before, after = operator.inputs.get(Slot(0)), operator.outputs.get(Slot(0))
    return None if before is None or after is None else has_same_bytes(before, after)
