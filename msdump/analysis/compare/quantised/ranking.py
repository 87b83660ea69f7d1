"""What each operator of a quantised model adds to the error, and which of them is out of proportion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msdump.analysis.compare.quantised.noise import ActivationNoise, LostChannel, WeightNoise
from msdump.analysis.steps import Operator, StepKey
from msdump.operators.codes import computes_on_codes


@dataclass(frozen=True, eq=False, slots=True)
class Contribution:
    """What one operator, or one rounding of an activation, adds.

    came_in     largest relative error of what it reads, weights left out, as the operators before it made it; None
                where it is not known
    error       relative error of its result
    weight      noise of its weight, activation: of its result in codes; None without codes
    bias_db     signal to noise of its bias; None without codes
    misread     relative error of codes that are read by another scale or zero point than they were written by; 0 for
                none
    lost        the output channel that its weight spoils most, if it spoils one
    """

    step: StepKey
    operator: Operator
    golden: Operator | None
    came_in: float | None
    error: float | None
    weight: WeightNoise | None = None
    activation: ActivationNoise | None = None
    bias_db: float | None = None
    misread: float = 0.0
    lost: LostChannel | None = None

    @property
    def added(self) -> float | None:
        """Error of its result, or of the channel that is lost, less that of what it reads; None where either is not
        known."""
        if self.lost is not None:
            return self.lost.error - (self.came_in or 0.0)
        return None if self.came_in is None or self.error is None else self.error - self.came_in

    @property
    def bits(self) -> int | None:
        """Bits of its codes; None for an operator without."""
        known = [one.bits for one in (self.weight, self.activation) if one is not None and one.bits is not None]
        return min(known, default=None)

    @property
    def is_on_codes(self) -> bool:
        """Whether a model in floats has another operator in its place."""
        return computes_on_codes(self.operator.op_type)

    @property
    def is_quantised(self) -> bool:
        return self.weight is not None or self.activation is not None or self.is_on_codes


@dataclass(frozen=True, eq=False)
class QuantisedVerdict:
    """The ranking of a comparison with a quantised model.

    side          "mine" or "golden": the one with codes
    ranking       all contributions: of operators with codes first, since the others only pass errors on, and of each
                  kind the largest first
    finding       the one that is out of proportion; None where there is none
    total         of the step of the finding, or of the first one: the sum of what operators with codes add
    unmeasured    operators on codes that have no counterpart
    """

    side: str
    ranking: tuple[Contribution, ...]
    finding: Contribution | None
    total: float
    unmeasured: tuple[Operator, ...] = ()

    @property
    def largest_error(self) -> float:
        return max((one.error for one in self.ranking if one.error is not None), default=0.0)

    @property
    def bits(self) -> int | None:
        return min((one.bits for one in self.ranking if one.bits is not None), default=None)

    def others(self, contribution: Contribution) -> Iterator[Contribution]:
        """The other contributions of the same step."""
        return (one for one in self.ranking if one is not contribution and one.step == contribution.step)
