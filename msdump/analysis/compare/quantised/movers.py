"""Who puts numbers into other places, between an operator of a quantised model that is right and one that is not."""

from __future__ import annotations

from collections.abc import Sequence

from msdump.analysis.compare.result import DIFFERS, Comparison, OperatorResult
from msdump.analysis.steps import Operator
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.codes import dequantises, quantises
from msdump.operators.kinds import has, is_mover


def mover_before(comparison: Comparison, operators: Sequence[Operator], result: OperatorResult) -> Operator | None:
    """The last operator of mine that moves what an operator reads and golden's does not, past what only makes codes or
    numbers of it; None where another operator made it.

    operators   of mine's step, those without a counterpart
    """
    for tensor in result.inputs:
        read = tensor.mine if tensor.status == DIFFERS else None
        for _ in operators:
            maker = None if read is None else _maker_of(comparison, operators, read)
            if maker is None or not maker.inputs:
                break
            makes_codes = quantises(maker.op_type) or dequantises(maker.op_type)
            if not makes_codes and not is_mover(maker.op_type):
                break
            if not makes_codes and not has(maker.op_type, "foldable"):
                return maker
            read = next(iter(maker.inputs.values()))
    return None


def _maker_of(comparison: Comparison, operators: Sequence[Operator], read: DumpedTensor) -> Operator | None:
    """Who made a tensor, as its bytes tell: formats of ONNX tell no edges."""
    for operator in operators:
        for made in operator.outputs.values():
            if made.shape == read.shape and not operator.is_parameter and comparison.is_same(made, read):
                return operator
    return None
