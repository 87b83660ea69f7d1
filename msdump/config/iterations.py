"""`common_dump_settings.iteration` as text <-> IterationSet. The first decision after the JSON is read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from msdump.errors import ConfigError

WHERE = "common_dump_settings.iteration"
LAST = 2**64 - 1  # "all" is one range up to here, so there is no second case to handle
_CHARACTERS = re.compile(r"[0-9|-]+")
_PIECE = re.compile(r"([0-9]+)(?:-([0-9]+))?")


@dataclass(frozen=True)
class IterationSet:
    """Zero-based iterations to dump: inclusive ranges, sorted, disjoint, never touching."""

    ranges: tuple[tuple[int, int], ...]

    def __contains__(self, iteration: int) -> bool:
        return any(first <= iteration <= last for first, last in self.ranges)

    @property
    def count(self) -> int:
        """How many iterations are in the set; `LAST` + 1 for all of them."""
        return sum(last - first + 1 for first, last in self.ranges)


ALL_ITERATIONS = IterationSet(((0, LAST),))


def parse_iterations(text: str, is_strict: bool = False) -> IterationSet:
    """Read "all" or ranges such as "0|5-8|100-120"; empty pieces between bars count for nothing.

    Edges:  is_strict takes what MindSpore takes: a piece that can never match matches nothing.
    Raises: ConfigError for other characters and, unless strict, for a piece that can never match.
    Source: MindSpore dump guide, `iteration`.
    """
    if text == "all":
        return ALL_ITERATIONS
    if not _CHARACTERS.fullmatch(text):
        raise ConfigError(
            f"iteration only supports digits, {{'-', '|'}}, or just \"all\" but got: {text}\n"
            f'{WHERE}: expected "all" or ranges such as "0|5-8", got "{text}". {_character_advice(text)}'
        )
    ranges: list[tuple[int, int]] = []
    for piece in filter(None, text.split("|")):
        reason = _why_never(piece)
        if not reason:
            first, _, last = piece.partition("-")
            ranges.append((int(first), int(last or first)))
        elif not is_strict:
            raise ConfigError(
                f'{WHERE}: expected "all" or ranges such as "0|5-8", got "{text}". '
                f'The piece "{piece}" can never match: {reason}'
            )
    if not ranges and not is_strict:
        raise ConfigError(
            f'{WHERE}: expected "all" or ranges such as "0|5-8", got "{text}". '
            f"It holds no number, so nothing would be dumped."
        )
    return _merged(ranges)


def format_iterations(iterations: IterationSet) -> str:
    """Text that `parse_iterations` reads back; the empty set, which only strict reading makes, is a bar."""
    if iterations == ALL_ITERATIONS:
        return "all"
    pieces = (str(first) if first == last else f"{first}-{last}" for first, last in iterations.ranges)
    return "|".join(pieces) or "|"


def _merged(ranges: Iterable[tuple[int, int]]) -> IterationSet:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            first, last = merged[-1][0], max(last, merged.pop()[1])
        merged.append((first, last))
    return IterationSet(tuple(merged))


def _why_never(piece: str) -> str:
    """Why a piece matches no iteration and what to write instead, or ""."""
    match = _PIECE.fullmatch(piece)
    if match is None:
        if piece.count("-") > 1:
            return 'it has more than one "-". Write first and last iteration only, and "|" between ranges.'
        if piece == "-":
            return 'it has no numbers. Write first and last iteration, such as "5-8".'
        if piece.endswith("-"):
            return f'the last iteration is missing after "-". Write "{piece}{LAST}" for everything from there on.'
        return f'the first iteration is missing before "-". Write "0{piece}".'
    numbers = [number for number in match.groups() if number is not None]
    for number in numbers:
        if len(number.lstrip("0")) > 20 or int(number) > LAST:
            return f"{number} is above the largest iteration, {LAST}."
    if len(numbers) == 2 and int(numbers[0]) > int(numbers[1]):
        return f'it ends before it begins. Write "{numbers[1]}-{numbers[0]}".'
    return ""


def _character_advice(text: str) -> str:
    if text.strip().lower() == "all":
        return 'Write it as "all": lower case, no blanks.'
    if not text:
        return 'Write "all", or the iterations to dump, counted from 0.'
    if re.search(r"[\s,;]", text):
        return 'Leave blanks out and separate ranges with "|".'
    return "Iterations are counted from 0 and written in digits."
