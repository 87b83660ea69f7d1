"""How the verdict on a quantised model follows from what operators add: which of them adds out of proportion, and what
agrees for all that."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from msdump.analysis.compare.quantised.contributions import contributions_of
from msdump.analysis.compare.quantised.noise import ActivationNoise
from msdump.analysis.compare.quantised.pairs import QuantisedPairing
from msdump.analysis.compare.quantised.ranking import Contribution, QuantisedVerdict
from msdump.analysis.compare.quantised.vocabulary import computes_on_codes
from msdump.analysis.compare.result import (
    AGREES,
    DIFFERS,
    Comparison,
    OperatorResult,
    StepResult,
    TensorResult,
)

# An operator is out of proportion that adds so many times as much as the others usually do, and more than a few steps
# of its codes would.
_PROPORTION = 3.0
_STEPS = 4.0
# A range that clips nothing may be coarse because of what it has to hold: it must add more.
_STEPS_OF_A_WIDE_RANGE = 8.0
# Its weight, or its activation, has so many dB less than the others; half of them is what two bits make.
_FEWER_DB = 6.0
# Where there are no others: dB that codes of as many bits have less than the best that they can have.
_POOR_DB = 20.0
# A bias in codes of 32 bits has far more.
_POOR_BIAS_DB = 20.0
# A range of which less than one code in so many occurs is not that of the values.
_IDLE = 8
# Share of clipped values that is no accident of calibration.
_CLIPPED = 0.001
# Without a cause in the codes, only what no rounding makes is out of proportion.
_BLATANT = 0.25
_MANY = 10.0
# An error of which nothing is left: the model does not compute the same any more.
_LOST = 0.5
_USUAL_BITS = 8


def verdict_on(
    steps: Sequence[tuple[StepResult, QuantisedPairing]], is_mine: bool, tolerance: float | None
) -> QuantisedVerdict:
    """The ranking of all steps.   is_mine: whether mine is the side with codes; tolerance: what is no finding"""
    by_step = [contributions_of(result, pairing, is_mine) for result, pairing in steps]
    least = tolerance or 0.0
    findings = [found for rows in by_step if (found := _out_of_proportion(rows)) is not None and _added(found) > least]
    finding = findings[0] if findings else None
    measured = next((rows for rows in by_step if finding is None or finding in rows), [])
    ranking = sorted((one for rows in by_step for one in rows), key=lambda one: (not one.is_quantised, -_added(one)))
    side = "mine" if is_mine else "golden"
    unpaired = (operator for result, _ in steps for operator in (result.only_mine if is_mine else result.only_golden))
    unmeasured = tuple(operator for operator in unpaired if computes_on_codes(operator.op_type))
    # A finding without codes adds as well.
    total = sum(_added(one) for one in measured if one.is_quantised or one is finding)
    return QuantisedVerdict(side, tuple(ranking), finding, total, unmeasured)


def _added(contribution: Contribution) -> float:
    """What a contribution counts; what is not finite is no matter of rounding."""
    added = contribution.added
    return max(0.0, added) if added is not None and math.isfinite(added) else 0.0


# -- out of proportion ---------------------------------------------------------------------------------------------


def _out_of_proportion(rows: Sequence[Contribution]) -> Contribution | None:
    """The contribution of a step that adds far more than the others, for a reason that its codes show."""
    for row in sorted(rows, key=lambda one: -_added(one)):
        usual = median([_added(one) for one in rows if one is not row and one.is_quantised] or [0.0])
        bits = row.bits or _USUAL_BITS
        step = 2.0**-bits
        if _added(row) <= max(_STEPS * step, _PROPORTION * usual):
            return None
        is_wide = has_poor_range(row, rows) and (
            is_clipped(row.activation) or is_idle(row.activation) or _added(row) > _STEPS_OF_A_WIDE_RANGE * step
        )
        has_reason = has_poor_weight(row, rows) or has_poor_bias(row, rows) or row.misread > 0
        if has_reason or is_wide or _is_blatant(row, usual):
            return row
    return None


def _is_blatant(row: Contribution, usual: float) -> bool:
    """Whether no rounding makes such an error; without codes errors grow, and may do so several times."""
    if row.is_quantised:
        return _added(row) > max(_BLATANT, _MANY * usual)
    return _added(row) > max(_BLATANT, _MANY * (row.came_in or 0.0))


def has_poor_weight(row: Contribution, rows: Iterable[Contribution]) -> bool:
    """Whether the weight has far more noise than those of the other operators; where there are none, than codes of as
    many bits usually have."""
    if row.weight is None:
        return False
    others = [one.weight.sqnr_db for one in rows if one is not row and one.weight is not None]
    return _is_poor(row.weight.sqnr_db, others, row.weight.bits)


def has_poor_bias(row: Contribution, rows: Iterable[Contribution]) -> bool:
    """Whether the bias is further away than rounding makes one, and further than the others."""
    if row.bias_db is None or row.bias_db > _POOR_BIAS_DB:
        return False
    others = [one.bias_db for one in rows if one is not row and one.bias_db is not None]
    return not others or row.bias_db < median(others) - _FEWER_DB


def has_poor_range(row: Contribution, rows: Iterable[Contribution]) -> bool:
    """Whether the activation is clipped, or rounded far more coarsely than the others."""
    if row.activation is None:
        return False
    others = [one.activation.sqnr_db for one in rows if one is not row and one.activation is not None]
    return _is_poor(row.activation.sqnr_db, others, row.activation.bits)


def is_clipped(noise: ActivationNoise | None) -> bool:
    """Whether more values lie outside of the range than a calibration leaves out."""
    return noise is not None and noise.clipped > _CLIPPED


def is_idle(noise: ActivationNoise | None) -> bool:
    """Whether most codes of a range never occur: it is far wider than what it holds."""
    if noise is None or noise.used is None or noise.bits is None:
        return False
    return noise.used * _IDLE <= 1 << noise.bits


def _is_poor(noise_db: float, others: Sequence[float], bits: int | None) -> bool:
    if len(others) > 1:
        return noise_db < median(others) - _FEWER_DB
    return noise_db < 6.02 * (bits or _USUAL_BITS) - _POOR_DB


# -- what still differs --------------------------------------------------------------------------------------------


def settled(comparison: Comparison, verdict: QuantisedVerdict, tolerance: float | None) -> Comparison:
    """The comparison with the verdict: what rounding to codes explains agrees.

    tolerance   relative error that still agrees; None: behind a finding what is smaller than that adds, else whatever
                leaves something of the numbers where branches meet
    """
    finding = verdict.finding
    meeting = {id(one.operator) for one in verdict.ranking if one.is_meeting}
    steps = []
    is_behind = False
    for step in comparison.steps:
        operators = []
        for result in step.operators:
            is_finding = finding is not None and finding.operator in (result.pair.mine, result.pair.golden)
            is_behind = is_behind or is_finding
            codes = result.pair.mine if verdict.side == "mine" else result.pair.golden
            limit = _LOST if id(codes) in meeting else math.inf
            if finding is not None and is_behind:
                limit = finding.added or 0.0
            limit = limit if tolerance is None else tolerance
            operators.append(_settled_operator(result, limit, is_finding, tolerance is not None))
        steps.append(replace(step, operators=tuple(operators)))
    return replace(comparison, steps=tuple(steps), quantised=verdict)


def _settled_operator(result: OperatorResult, limit: float, is_finding: bool, is_strict: bool) -> OperatorResult:
    """is_strict: whether the limit holds for what an operator reads as well, where its results keep to it"""

    def settle(tensor: TensorResult, limit: float) -> TensorResult:
        error = tensor.error
        if tensor.status != DIFFERS or tensor.metrics is None or tensor.metrics.mismatched or error is None:
            return tensor
        if error > limit:
            return tensor
        return replace(tensor, status=AGREES, reason=f"{tensor.reason}, up to quantisation")

    outputs = tuple(one if is_finding else settle(one, limit) for one in result.outputs)
    if outputs and not is_strict and all(one.status != DIFFERS for one in outputs):
        # A small bias beside large products is rounded to nothing, and does no harm.
        limit = math.inf
    return replace(result, inputs=tuple(settle(one, limit) for one in result.inputs), outputs=outputs)
