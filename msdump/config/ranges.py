"""Numbers and ranges as text, such as "0|5-8|100-120": one grammar, read in the dialect of each configuration.

Both ends of a range belong to it. A dialect says which word means every number, whether a piece between two bars may be
empty, which number is the largest, and with which words a piece is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from msdump.config.acl_file import VALUE, item_refusal
from msdump.errors import ConfigError

LAST = 2**64 - 1  # "all" is one range up to here, so there is no second case to handle
_DIGITS = re.compile(r"[0-9]+")


@dataclass(frozen=True)
class NumberRanges(Collection[int]):
    """Inclusive ranges, sorted, disjoint, never touching."""

    ranges: tuple[tuple[int, int], ...]

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and any(first <= number <= last for first, last in self.ranges)

    def __iter__(self) -> Iterator[int]:
        return (number for first, last in self.ranges for number in range(first, last + 1))

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return bool(self.ranges)

    @property
    def count(self) -> int:
        """How many numbers are in the set, which may be more than `len` can tell: `LAST` + 1 for all of them."""
        return sum(last - first + 1 for first, last in self.ranges)

    def __str__(self) -> str:
        """Text that MindSpore's dialect reads back; the empty set, which only strict reading makes, is a bar."""
        if self == EVERY_NUMBER:
            return "all"
        pieces = (str(first) if first == last else f"{first}-{last}" for first, last in self.ranges)
        return "|".join(pieces) or "|"


EVERY_NUMBER = NumberRanges(((0, LAST),))


class RangeProblem(Enum):
    """Kind of error: of the whole text (the first three) or of a piece."""

    CHARACTER = auto()
    TOO_MANY = auto()
    NO_NUMBER = auto()
    DASHES = auto()
    NO_DIGITS = auto()
    TOO_LARGE = auto()
    BACKWARDS = auto()


@dataclass(frozen=True)
class Fault:
    """The first error in a text, to be worded by a dialect.

    piece    text between two bars, and its index among the pieces; "" and 0 for a problem of the whole text
    numbers  texts on both sides of the dash
    """

    problem: RangeProblem
    text: str
    piece: str = ""
    index: int = 0
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dialect:
    """How one configuration writes numbers and ranges.

    every            the text that means every number
    characters       what the whole text may hold; None: each piece is judged by itself
    has_empty_pieces  nothing between two bars counts for nothing; otherwise it is wrong
    most_pieces      None: any number of them
    largest          number
    is_cut           a larger number counts as the largest; otherwise it is wrong
    refusal          the error for a fault; None: a wrong piece matches nothing
    """

    every: str
    characters: re.Pattern[str] | None
    has_empty_pieces: bool
    most_pieces: int | None
    largest: int
    is_cut: bool
    refusal: Callable[[Fault], ConfigError | None]


def parse_ranges(text: str, dialect: Dialect | None = None) -> NumberRanges:
    """Read a text; None is MindSpore's dialect.   Raises: ConfigError in the words of the dialect."""
    dialect = dialect or MINDSPORE
    if text == dialect.every:
        return EVERY_NUMBER
    if dialect.characters is not None and not dialect.characters.fullmatch(text):
        _refuse(dialect, Fault(RangeProblem.CHARACTER, text))
    pieces = [piece for piece in text.split("|") if piece or not dialect.has_empty_pieces]
    if dialect.most_pieces is not None and len(pieces) > dialect.most_pieces:
        _refuse(dialect, Fault(RangeProblem.TOO_MANY, text))
    ranges = []
    for index, piece in enumerate(pieces):
        numbers = tuple(piece.split("-"))
        problem = _problem(numbers, dialect)
        if problem is None:
            ranges.append((_number(numbers[0], dialect), _number(numbers[-1], dialect)))
        else:
            _refuse(dialect, Fault(problem, text, piece, index, numbers))
    if not ranges:
        _refuse(dialect, Fault(RangeProblem.NO_NUMBER, text))
    return _merged(ranges)


def _refuse(dialect: Dialect, fault: Fault) -> None:
    error = dialect.refusal(fault)
    if error is not None:
        raise error


def _problem(numbers: tuple[str, ...], dialect: Dialect) -> RangeProblem | None:
    if len(numbers) > 2:
        return RangeProblem.DASHES
    if not all(map(_DIGITS.fullmatch, numbers)):
        return RangeProblem.NO_DIGITS
    if not dialect.is_cut and any(_is_larger(digits, dialect.largest) for digits in numbers):
        return RangeProblem.TOO_LARGE
    if _number(numbers[0], dialect) > _number(numbers[-1], dialect):
        return RangeProblem.BACKWARDS
    return None


def _is_larger(digits: str, largest: int) -> bool:
    """Python refuses to read numbers of thousands of digits, zeros in front included."""
    digits = digits.lstrip("0")
    return len(digits) > 20 or int(digits or "0") > largest


def _number(digits: str, dialect: Dialect) -> int:
    return dialect.largest if _is_larger(digits, dialect.largest) else int(digits.lstrip("0") or "0")


def _merged(ranges: Iterable[tuple[int, int]]) -> NumberRanges:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            first, last = merged[-1][0], max(last, merged.pop()[1])
        merged.append((first, last))
    return NumberRanges(tuple(merged))


def _iteration_refusal(fault: Fault) -> ConfigError:
    """Source: MindSpore for the first line of a wrong character; it has no words for the others."""
    where = f'common_dump_settings.iteration: expected "all" or ranges such as "0|5-8", got "{fault.text}". '
    if fault.problem is RangeProblem.CHARACTER:
        return ConfigError(
            f"iteration only supports digits, {{'-', '|'}}, or just \"all\" but got: {fault.text}\n"
            f"{where}{_character_advice(fault.text)}"
        )
    if fault.problem is RangeProblem.NO_NUMBER:
        return ConfigError(f"{where}It holds no number, so nothing would be dumped.")
    return ConfigError(f'{where}The piece "{fault.piece}" can never match: {_why_never(fault)}')


def _strict_iteration_refusal(fault: Fault) -> ConfigError | None:
    """MindSpore takes pieces that never match."""
    return _iteration_refusal(fault) if fault.problem is RangeProblem.CHARACTER else None


def _why_never(fault: Fault) -> str:
    """Why a piece matches no iteration and what to write instead."""
    piece, numbers = fault.piece, fault.numbers
    if fault.problem is RangeProblem.DASHES:
        return 'it has more than one "-". Write first and last iteration only, and "|" between ranges.'
    if fault.problem is RangeProblem.TOO_LARGE:
        large = next(number for number in numbers if _is_larger(number, LAST))
        return f"{large} is above the largest iteration, {LAST}."
    if fault.problem is RangeProblem.BACKWARDS:
        return f'it ends before it begins. Write "{numbers[1]}-{numbers[0]}".'
    if piece == "-":
        return 'it has no numbers. Write first and last iteration, such as "5-8".'
    if piece.endswith("-"):
        return f'the last iteration is missing after "-". Write "{piece}{LAST}" for everything from there on.'
    return f'the first iteration is missing before "-". Write "0{piece}".'


def _character_advice(text: str) -> str:
    if text.strip().lower() == "all":
        return 'Write it as "all": lower case, no blanks.'
    if not text:
        return 'Write "all", or the iterations to dump, counted from 0.'
    if re.search(r"[\s,;]", text):
        return 'Leave blanks out and separate ranges with "|".'
    return "Iterations are counted from 0 and written in digits."


def _step_refusal(fault: Fault) -> ConfigError:
    """Source: ACL, `dump_step`."""
    if fault.problem is RangeProblem.TOO_MANY:
        reason = f"the value exceeds the limit of {_MOST_STEPS} intervals"
        expected, count = f"at most {_MOST_STEPS} steps and ranges", fault.text.count("|") + 1
        return item_refusal(VALUE, "dump_step", reason, expected, count, "Join neighbouring steps into ranges.")
    if fault.problem is RangeProblem.DASHES:
        reason, fix = "the format is invalid, expected like 5-10", "Write first and last step only."
    elif fault.problem is RangeProblem.BACKWARDS:
        last, first = (_number(digits, ACL) for digits in fault.numbers)
        reason, fix = "the start must not exceed the end", f'Write "{first}-{last}".'
    else:
        wrong = next(digits for digits in fault.numbers if not _DIGITS.fullmatch(digits))
        reason = "the value contains a non-digit"
        fix = "Write steps in digits, without blanks." if wrong else "Put a number on each side of | and -."
    where, expected = f"dump_step[{fault.index}]", 'a step or a range such as "5-10"'
    return item_refusal(VALUE, where, reason, expected, fault.piece, fix)


_MOST_STEPS = 100
_ITERATION_CHARACTERS = re.compile(r"[0-9|-]+")
# `iteration` of MindSpore's JSON; strict takes what MindSpore takes: a piece that can never match matches nothing.
MINDSPORE = Dialect("all", _ITERATION_CHARACTERS, True, None, LAST, False, _iteration_refusal)
MINDSPORE_STRICT = Dialect("all", _ITERATION_CHARACTERS, True, None, LAST, False, _strict_iteration_refusal)
# `dump_step` of acl.json; CANN reads larger numbers as the largest.
ACL = Dialect("", None, False, _MOST_STEPS, 2**63 - 1, True, _step_refusal)
