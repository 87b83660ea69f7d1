"""What a comparison found, as a value: the outcome, each finding with its place, its reason and the evidence for it,
and what was not looked at. The terminal, pages, JSON and the exit status show it; none of them decides anything.

`judge.verdict_of` makes it:

    verdict_of(compare_dumps("mine", "golden")).findings[0]
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

from msdump.analysis.compare.repetition import Repetition
from msdump.analysis.compare.result import (
    OperatorResult,
    TensorResult,
)
from msdump.analysis.steps import Operator, Slot, StepKey
from msdump.graph.types import SourceLine

MINE, GOLDEN = "mine", "golden"


class Outcome(enum.Enum):
    """Three truth values: what could not be compared is never said to agree."""

    AGREES = "agrees"
    DIFFERS = "differs"
    INCOMPLETE = "incomplete"


class Reason(enum.Enum):
    """Why an operator is named, in the order in which reasons are looked for."""

    QUANTISED = "adds out of proportion"
    LOST = "too coarse everywhere"
    GOES_ON = "golden goes on"
    ONLY_ONE = "only one side has it"
    WRONG = "same inputs, other result"
    DRAW = "drew other numbers"
    WRITER = "writes what differs"
    PARAMETER = "a parameter differs"
    INPUT = "an input differs"
    RESULT = "result differs, inputs not known"


@dataclass(frozen=True, slots=True)
class Place:
    """An operator of one side, in one step, and the line of the script that calls it."""

    side: str
    step: StepKey
    operator: Operator
    line: SourceLine | None


@dataclass(frozen=True, slots=True)
class Operand:
    """An input or output, with the name of the parameter or argument that it is, where it is known."""

    io: str
    slot: Slot
    name: str = ""


# -- evidence beside numbers -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OtherAttribute:
    """An attribute with two values, as text; None stands for the default of its operator."""

    name: str
    mine: str | None
    golden: str | None


@dataclass(frozen=True, slots=True)
class OtherDtype:
    """An operator that computes in another dtype than golden's."""

    operand: Operand
    mine: str
    golden: str


@dataclass(frozen=True, slots=True)
class OtherOperator:
    """Golden has an operator of another kind in that place.   line: of the script that calls it"""

    name: str
    op_type: str
    line: SourceLine | None = None


@dataclass(frozen=True, slots=True)
class Rounded:
    """One side alone has rounded what it reads to a coarser dtype."""

    place: Place
    dtype: str


@dataclass(frozen=True, slots=True)
class Swapped:
    """Operands that have changed their places."""

    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class OtherLayout:
    """A weight with the right numbers in a wrong order.   shapes: None where one side alone transposes it"""

    operand: Operand
    shapes: tuple[tuple[int, ...], tuple[int, ...]] | None


@dataclass(frozen=True, slots=True)
class OtherNumbers:
    """Numbers that an operator has beside its tensors, by name.   is_known: whether each dump tells its own"""

    mine: tuple[tuple[Operand | str, float], ...]
    golden: tuple[tuple[Operand | str, float], ...]
    is_known: tuple[bool, bool]


@dataclass(frozen=True, slots=True)
class Scaled:
    """All elements are those of golden times one number.

    is_reduction   the number is that of elements, or of rows, which a mean divides by
    is_start       it is what the backward pass of one side starts with
    """

    factor: float
    is_reduction: bool = False
    is_start: bool = False


@dataclass(frozen=True, slots=True)
class Smoothed:
    """A loss that spreads a share of each label over all classes.   side: which one does"""

    side: str
    share: float


@dataclass(frozen=True, slots=True)
class OtherLaw:
    """Numbers drawn by another law: shares of elements that were set to zero, as text."""

    mine: str
    golden: str


Evidence: TypeAlias = (
    "OtherAttribute | OtherDtype | OtherOperator | Rounded | Swapped | OtherLayout | OtherNumbers | Scaled | Smoothed"
    " | OtherLaw"
)


@dataclass(frozen=True, slots=True)
class Makers:
    """Who made an operand on each side; None for what no operator made.   elsewhere: who makes mine's in golden"""

    mine: Place | None
    golden: Place | None
    elsewhere: Place | None


@dataclass(frozen=True, slots=True)
class Finding:
    """One operator that is named, and why.

    result     the pair that shows it, with its numbers
    evidence   what else is not alike
    tensor     of the pair: the one that differs
    operand    that tensor's name
    maker      of INPUT: who made it; None where no operator of the iteration did
    makers     of INPUT: who made that of each side, where values tell
    constants  of INPUT without a maker: two numbers, where it is one number on each side
    parameter  of WRITER: what it writes
    beyond     of GOES_ON: operators of golden
    reached    of DRAW: how many other operators and parameters differ
    unseen     inputs that were not compared: that the inputs agree is said of the others alone
    reader_line  of ONLY_ONE: line of the pair, which reads what the operator made
    reader     of ONLY_ONE: mine's operator that what it made comes to, or that goes on without it; of LOST: the first
               operator with such an error, where another one moves what it reads
    before     of ONLY_ONE, of golden's operator: mine's operator that made what it reads
    holder     of ONLY_ONE, where golden alone writes a tensor: mine's operator that computes with it
    golden_maker  of INPUT without a maker: golden's operator that made what golden reads there
    updated    of an optimizer's operator: the parameter that it reads first
    forms      of ONLY_ONE: the lines of mine and of golden after the first up to where both have one operator again
    """

    reason: Reason
    place: Place
    result: OperatorResult | None = None
    evidence: tuple[Evidence, ...] = ()
    tensor: TensorResult | None = None
    operand: Operand | None = None
    maker: Operator | None = None
    constants: tuple[float, float] | None = None
    parameter: Operator | None = None
    beyond: tuple[Place, ...] = ()
    reached: int = 0
    unseen: tuple[Operand, ...] = ()
    reader_line: SourceLine | None = None
    reader: Place | None = None
    holder: Place | None = None
    before: Place | None = None
    golden_maker: Place | None = None
    updated: str = ""
    makers: Makers | None = None
    forms: tuple[tuple[SourceLine, ...], tuple[SourceLine, ...]] = ((), ())


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said of a comparison.

    findings         the first is the fault
    is_none_wrong    something differs, and no operator was given what agrees and made what does not
    repeats          the operator of the forward pass that the fault repeats with another result
    """

    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    is_none_wrong: bool = False
    repeats: Repetition | None = None

    @property
    def fault(self) -> Finding | None:
        """What is named first."""
        return self.findings[0] if self.findings else None
