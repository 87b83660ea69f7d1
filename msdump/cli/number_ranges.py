"""Numbers of ranks, graphs and iterations on a command line, in the form of the configuration: "0|5-8"."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class NumberRanges(Collection[int]):
    """Inclusive ranges, sorted and disjoint."""

    ranges: tuple[tuple[int, int], ...]

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and any(first <= number <= last for first, last in self.ranges)

    def __iter__(self) -> Iterator[int]:
        return (number for first, last in self.ranges for number in range(first, last + 1))

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __str__(self) -> str:
        return "|".join(str(first) if first == last else f"{first}-{last}" for first, last in self.ranges)


def parse_number_ranges(text: str) -> NumberRanges | None:
    """Read "all" (None, which selects everything), or ranges such as "0|5-8"; a comma separates as well as a bar.

    Raises: argparse.ArgumentTypeError, which the parser shows with the name of the option.
    """
    from msdump.config.iterations import parse_iterations
    from msdump.errors import ConfigError

    if text == "all":
        return None
    try:
        return NumberRanges(parse_iterations(text.replace(",", "|").replace(" ", "")).ranges)
    except ConfigError as error:
        reason = str(error).partition("The piece ")[2]
        detail = f" The piece {reason}" if reason else ""
        raise argparse.ArgumentTypeError(
            f'expected "all" or numbers and ranges such as "0|5-8" or 0,3, got "{text}".{detail}'
        ) from error
