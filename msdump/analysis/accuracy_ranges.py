"""Operators of `-r start,end,step` and `-s i,j,...`: sequence numbers of the fusion json.

Source: CANN, msaccucmp compare: parts may be empty, blanks do not count, an end of -1 is the last operator.
"""

from __future__ import annotations

from collections.abc import Callable

from msdump.analysis.exit_codes import AnalysisError, ExitCode


def parse_range(text: str) -> tuple[int, int | None, int]:
    """(start, end, step) of `-r`; end None for the last operator.   Raises: AnalysisError for another form."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 3 or not all(_is_number(part) for place, part in enumerate(parts) if (place, part) != (1, "-1")):
        raise AnalysisError(
            ExitCode.INVALID_PARAM, f'-r: expected start,end,step, such as 1,-1,1 or ",,2", got "{text}".'
        )
    start, end, step = parts
    return int(start or 1), int(end) if end not in ("", "-1") else None, int(step or 1)


def numbers_in_range(bounds: tuple[int, int | None, int], count: int) -> set[int]:
    """Sequence numbers of a range: every step-th from start on, and the end itself.

    count    of the model's operators
    Raises:  AnalysisError when a bound is not from 1 to `count`, or the step is not below it.
    """
    start, end, step = bounds[0], bounds[1] if bounds[1] is not None else count, bounds[2]
    if not (1 <= start <= end <= count and 1 <= step < max(count, 2)):
        raise AnalysisError(
            ExitCode.INDEX_OUT_OF_BOUNDS,
            f"-r: expected 1 <= start <= end <= {count} and a step from 1 to {max(1, count - 1)}, "
            f"got {start},{end},{step}.",
        )
    return {*range(start, end + 1, step), end}


def parse_selection(text: str) -> set[int]:
    """Sequence numbers of `-s`.   Raises: AnalysisError for another form."""
    parts = [part.strip() for part in text.split(",")]
    if not all(map(_is_number, parts)):
        raise AnalysisError(ExitCode.INVALID_PARAM, f'-s: expected numbers with commas, such as 1,3, got "{text}".')
    return {int(part) for part in parts if part}


def numbers_selected(numbers: set[int], count: int, warn: Callable[[str], None]) -> set[int]:
    """Numbers of operators that the model has.   Raises: AnalysisError when it has none of them."""
    beyond = sorted(number for number in numbers if number > count)
    if beyond and len(beyond) == len(numbers):
        raise AnalysisError(ExitCode.INVALID_PARAM, f"-s: expected operators 1 to {count}, got {beyond}.")
    if beyond:
        warn(f"-s: expected operators 1 to {count}, got {beyond} as well. They are left out.")
    return numbers.difference(beyond)


def _is_number(text: str) -> bool:
    return not text or (text.isascii() and text.isdecimal())
