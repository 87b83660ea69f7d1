"""Which operator of a quantised step adds more than rounding does, and what of it is to blame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median

from msdump.analysis.compare.quantised.noise import ActivationNoise, poor_db
from msdump.analysis.compare.quantised.ranking import Contribution

# An operator is out of proportion that adds so many times as much as the others usually do, and more than a few steps
# of its codes would.
_PROPORTION = 3.0
_STEPS = 4.0
# A range that clips nothing may be coarse because of what it has to hold: it must add more.
_STEPS_OF_A_WIDE_RANGE = 8.0
# Its weight, or its activation, has so many dB less than the others; half of them is what two bits make.
_FEWER_DB = 6.0
# A bias in codes of 32 bits has far more.
_POOR_BIAS_DB = 20.0
# A range of which less than one code in so many occurs is not that of the values.
_IDLE = 8
# Share of clipped values that is no accident of calibration.
_CLIPPED = 0.001
# Without a cause in the codes, only what no rounding makes is out of proportion.
_BLATANT = 0.25
_MANY = 10.0
_USUAL_BITS = 8


def out_of_proportion(rows: Sequence[Contribution]) -> Contribution | None:
    """The contribution of a step that adds far more than the others, for a reason that its codes show."""
    for row in sorted(rows, key=lambda one: -added_by(one)):
        usual = median([added_by(one) for one in rows if one is not row and one.is_quantised] or [0.0])
        bits = row.bits or _USUAL_BITS
        step = 2.0**-bits
        if added_by(row) <= max(_STEPS * step, _PROPORTION * usual):
            return None
        is_wide = has_poor_range(row, rows) and (
            is_clipped(row.activation) or is_idle(row.activation) or added_by(row) > _STEPS_OF_A_WIDE_RANGE * step
        )
        has_reason = has_poor_weight(row, rows) or has_poor_bias(row, rows) or row.misread > 0 or row.lost
        if has_reason or is_wide or _is_blatant(row, usual):
            return row
    return None


def _is_blatant(row: Contribution, usual: float) -> bool:
    """Whether no rounding makes such an error; without codes errors grow, and may do so several times."""
    if row.is_quantised:
        return added_by(row) > max(_BLATANT, _MANY * usual)
    return added_by(row) > max(_BLATANT, _MANY * (row.came_in or 0.0))


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
    return noise_db < poor_db(bits)


def added_by(contribution: Contribution) -> float:
    """What a contribution counts; what is not finite is no matter of rounding."""
    added = contribution.added
    return max(0.0, added) if added is not None and math.isfinite(added) else 0.0
