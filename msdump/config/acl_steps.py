"""`dump_step` as text -> IterationSet. ACL's grammar: `0|3-5|10`, both ends of a range belong to it.

It is not MindSpore's: there is no "all", empty pieces are wrong, and a piece may hold any number of zeros.
"""

from __future__ import annotations

import re

from msdump.config.acl_error import VALUE, AclConfigError, item_refusal
from msdump.config.iterations import ALL_ITERATIONS, IterationSet, parse_iterations

MOST_PIECES = 100
_LARGEST = 2**63 - 1  # CANN reads larger numbers as this one
_DIGITS = re.compile(r"[0-9]+")


def parse_steps(text: str) -> IterationSet:
    """Read `dump_step`; "" is every iteration.

    Raises: AclConfigError EP0003 naming dump_step[index] of the first wrong piece.
    """
    if not text:
        return ALL_ITERATIONS
    pieces = text.split("|")
    if len(pieces) > MOST_PIECES:
        raise item_refusal(
            VALUE,
            "dump_step",
            f"the value exceeds the limit of {MOST_PIECES} intervals",
            f"at most {MOST_PIECES} steps and ranges",
            len(pieces),
            "Join neighbouring steps into ranges.",
        )
    ranges = [_parse_piece(piece, index) for index, piece in enumerate(pieces)]
    return parse_iterations("|".join(f"{first}-{last}" for first, last in ranges))


def _parse_piece(piece: str, index: int) -> tuple[int, int]:
    numbers = piece.split("-")
    if len(numbers) > 2:
        raise _refusal(piece, index, "the format is invalid, expected like 5-10", "Write first and last step only.")
    for number in numbers:
        if not _DIGITS.fullmatch(number):
            fix = "Put a number on each side of | and -." if not number else "Write steps in digits, without blanks."
            raise _refusal(piece, index, "the value contains a non-digit", fix)
    first, last = _number(numbers[0]), _number(numbers[-1])
    if first > last:
        raise _refusal(piece, index, "the start must not exceed the end", f'Write "{last}-{first}".')
    return first, last


def _number(digits: str) -> int:
    digits = digits.lstrip("0")
    return min(int(digits or "0"), _LARGEST) if len(digits) < 20 else _LARGEST


def _refusal(piece: str, index: int, reason: str, fix: str) -> AclConfigError:
    return item_refusal(VALUE, f"dump_step[{index}]", reason, 'a step or a range such as "5-10"', piece, fix)
