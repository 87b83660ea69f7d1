"""How the verdict on a quantised model follows from what operators add: which of them adds out of proportion, and what
agrees for all that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from msdump.analysis.compare.quantised.contributions import contributions_of, error_beside_terms
from msdump.analysis.compare.quantised.pairs import QuantisedPairing
from msdump.analysis.compare.quantised.proportion import added_by, out_of_proportion
from msdump.analysis.compare.quantised.ranking import QuantisedVerdict
from msdump.analysis.compare.result import (
    AGREES,
    DIFFERS,
    Comparison,
    OperatorResult,
    StepResult,
    TensorResult,
)
from msdump.operators.codes import computes_on_codes
from msdump.tables.messages import COMMA, joined, message

# An error of which nothing is left: the model does not compute the same any more.
_LOST = 0.5
_QUANTISED = message("up to quantisation")


def verdict_on(
    steps: Sequence[tuple[StepResult, QuantisedPairing]], is_mine: bool, tolerance: float | None
) -> QuantisedVerdict:
    """The ranking of all steps.   is_mine: whether mine is the side with codes; tolerance: what is no finding"""
    by_step = [list(contributions_of(result, pairing, is_mine)) for result, pairing in steps]
    least = tolerance or 0.0
    findings = [found for rows in by_step if (found := out_of_proportion(rows)) is not None and added_by(found) > least]
    finding = findings[0] if findings else None
    measured = next((rows for rows in by_step if finding is None or finding in rows), [])
    ranking = sorted((one for rows in by_step for one in rows), key=lambda one: (not one.is_quantised, -added_by(one)))
    side = "mine" if is_mine else "golden"
    unpaired = (operator for result, _ in steps for operator in (result.only_mine if is_mine else result.only_golden))
    unmeasured = tuple(operator for operator in unpaired if computes_on_codes(operator.op_type))
    # A finding without codes adds as well.
    total = sum(added_by(one) for one in measured if one.is_quantised or one is finding)
    return QuantisedVerdict(side, tuple(ranking), finding, total, unmeasured)


def settled(comparison: Comparison, verdict: QuantisedVerdict, tolerance: float | None) -> Comparison:
    """The comparison with the verdict: what rounding to codes explains agrees.

    tolerance   relative error that still agrees; None: behind a finding what is smaller than that adds, else whatever
                leaves something of the numbers
    """
    finding = verdict.finding
    steps = []
    is_behind = False
    for step in comparison.steps:
        operators = []
        for result in step.operators:
            is_finding = finding is not None and finding.operator in (result.pair.mine, result.pair.golden)
            is_behind = is_behind or is_finding
            limit = _LOST
            if finding is not None and is_behind:
                limit = finding.added or 0.0
            limit = limit if tolerance is None else tolerance
            if (result.output_error or 0.0) > limit >= (error_beside_terms(result) or 0.0):
                limit = math.inf
            operators.append(_settled_operator(result, limit, is_finding, tolerance is not None))
        steps.append(replace(step, operators=tuple(operators)))
    return replace(comparison, steps=tuple(steps), quantised=verdict)


def _settled_operator(result: OperatorResult, limit: float, is_finding: bool, is_strict: bool) -> OperatorResult:
    """is_strict: whether the limit holds for what an operator reads as well, where its results keep to it"""

    def settle(tensor: TensorResult, limit: float) -> TensorResult:
        error = tensor.error
        if tensor.status != DIFFERS or tensor.metrics is None or tensor.metrics.mismatched or error is None:
            return tensor
        # Bounds of dtypes judge none of this.
        is_by_bound = not tensor.metrics.unequal and tensor.yardstick is None
        if error > limit:
            above = message("relative error {error:.3g} > {limit:.3g}", error=error, limit=limit)
            return replace(tensor, reason=above) if is_by_bound else tensor
        reason = message("relative error {error:.3g}", error=error) if is_by_bound else tensor.reason
        return replace(tensor, status=AGREES, reason=joined(COMMA, (reason, _QUANTISED)))

    def found(tensor: TensorResult) -> TensorResult:
        """Of the operator that is named: by what it adds, however small the error is beside that of others."""
        is_by_bound = tensor.metrics is not None and not tensor.metrics.unequal and tensor.yardstick is None
        if tensor.status != DIFFERS or not is_by_bound or not math.isfinite(tensor.error or 0.0) or is_strict:
            return tensor
        text = message("relative error {error:.3g}; what it adds is out of proportion", error=tensor.error)
        return replace(tensor, reason=text)

    outputs = tuple(found(one) if is_finding else settle(one, limit) for one in result.outputs)
    if outputs and not is_strict and all(one.status != DIFFERS for one in outputs):
        # A small bias beside large products is rounded to nothing, and does no harm.
        limit = math.inf
    return replace(result, inputs=tuple(settle(one, limit) for one in result.inputs), outputs=outputs)
