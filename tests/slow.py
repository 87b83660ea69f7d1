"""Which tests are slow, as measured: `python -m tests.slow LOG`.

LOG is what `python -m pytest --durations=0 --durations-min=0.2` prints. `slow.txt` has a line for each test function
that takes `--least` seconds or more, with all its parameters. tests/conftest.py marks them slow, beside those that are
marked where they stand.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_LIST = Path(__file__).with_name("slow.txt")
_LINE = re.compile(r"\s*([\d.]+)s (?:call|setup|teardown)\s+(\S+?::[\w:]+)")


@cache
def slow_tests() -> frozenset[str]:
    """Test functions as FILE::NAME, without parameters."""
    return frozenset(line for line in _LIST.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))


def function_of(node: str) -> str:
    """The test function of a node's name: `a.py::test_b[1]` -> `a.py::test_b`."""
    return node.partition("[")[0]


def slow_of(log: Iterable[str], least: float) -> list[str]:
    """Functions that take at least so many seconds in the table of durations of a run."""
    seconds: Counter[str] = Counter()
    for line in log:
        if match := _LINE.match(line):
            seconds[match[2]] += float(match[1])  # type: ignore[assignment]
    return sorted(name for name, sum_of in seconds.items() if sum_of >= least)


def main() -> None:
    """Write the list anew."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--least", type=float, default=2.5, metavar="SECONDS")
    args = parser.parse_args()
    found = slow_of(args.log.read_text(encoding="utf-8").splitlines(), args.least)
    head = "# Written by `python -m tests.slow LOG`: test functions that take long."
    _LIST.write_text("\n".join((head, *found)) + "\n", encoding="utf-8")
    print(f"{len(found)} functions take {args.least:g} s or more")


if __name__ == "__main__":
    main()
