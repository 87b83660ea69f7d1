"""What a finding on a training holds, and the kinds of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msdump.analysis.steps import Operator, StepKey
from msdump.graph.types import SourceLine

# Kinds, in the order in which they are causes of one another.
(
    NO_OPTIMIZER, NEVER_STEPPED, NO_GRADIENT, FROZEN, ZERO, DEAD, STRAY, EMPTY, KEPT, RENEWED, DEPTH, ALIKE,
    THROWN_AWAY, GAINS, FALLEN, STILL, EVALUATION, SKIPPED, LARGE_UPDATE, DECAYS, SHRINKS, WRONG_LOSS, GROWS,
    ONE_CLASS, ONE_VALUE, OTHER_ROWS, MIXED, FORGETS, REPEATS, SAME_ROWS, LOSS_STILL,
) = KINDS = (
    "no optimizer", "never stepped", "no gradient", "frozen", "zero gradient", "dead", "not in the model",
    "cleared too early", "never cleared", "made anew", "depth", "all alike", "thrown away", "steps grow", "rate falls",
    "stands still", "in evaluation", "skipped", "large update", "decays", "shrinks", "wrong loss", "grows",
    "one class", "one value", "other rows", "axes mixed up", "forgets", "repeats", "same rows", "loss stands still",
)  # fmt: skip

# Kinds of operators that compare what a model gives with what is wanted.
ERRORS = frozenset(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
LOSSES = ERRORS | {"nll_loss", "bce", "bce_with_logits"}

# Iterations at the end in which a gradient is 0: one batch may reach nothing.
# test: healthy_trainings_experts, report_gate_of_one_expert
LEAST_ZERO = 2


@dataclass(frozen=True, slots=True)
class LearningFinding:
    """A finding.

    kind        one of KINDS
    parameters  that it is about; none for a loss
    step        where it begins: rank, graph and iteration
    last        the last iteration in which it is so
    operator    that made it so, or the parameter or loss itself
    line        of the user's script, where the dump tells it
    how         a word for the reason, of those that `words` knows; ""
    numbers     what was measured, by name
    dtype       of the parameters, where it matters
    optimizer   name of the optimizer that it is about
    outside     shapes: of what the optimizer steps that no module has, of what a loss compares
    """

    kind: str
    parameters: tuple[str, ...]
    step: StepKey
    last: int
    operator: Operator
    line: SourceLine | None
    how: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    optimizer: str = ""
    outside: tuple[tuple[int, ...], ...] = ()
    dtype: str = ""

    @property
    def first(self) -> int:
        return self.step.iteration or 0
