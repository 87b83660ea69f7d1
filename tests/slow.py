"""Which tests are slow, as measured: `python -m tests.slow LOG`.

LOG is what `python -m pytest --durations=0 --durations-min=0.2` prints. `slow.txt` has a line for each test function
that takes `--least` seconds or more, with all its parameters, and for each file with a fixture that takes twice as
long, as any test of it would pay for that. tests/conftest.py marks them slow, beside those that are marked where they
stand.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_LIST = Path(__file__).with_name("slow.txt")
_LINE = re.compile(r"\s*([\d.]+)s (call|setup|teardown)\s+(\S+?::[\w:]+)")


@cache
def slow_tests() -> frozenset[str]:
    """Test functions as FILE::NAME, without parameters, and files."""
    return frozenset(line for line in _LIST.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))


def is_slow(node: str) -> bool:
    """Whether the list has a test, by the name of its node."""
    function = function_of(node)
    return function in slow_tests() or function.partition("::")[0] in slow_tests()


def function_of(node: str) -> str:
    """The test function of a node's name: `a.py::test_b[1]` -> `a.py::test_b`."""
    return node.partition("[")[0]


def slow_of(logs: Iterable[Iterable[str]], least: float) -> list[str]:
    """Functions and files that are slow by the tables of durations of some runs; the longest time of each counts."""
    longest: dict[str, float] = {}
    for log in logs:
        seconds: dict[str, float] = {}
        for line in log:
            if match := _LINE.match(line):
                name = match[3]
                seconds[name] = seconds.get(name, 0.0) + float(match[1])
                if match[2] == "setup" and float(match[1]) >= 2 * least:
                    seconds[name.partition("::")[0]] = float(match[1])
        longest.update({name: max(longest.get(name, 0.0), one) for name, one in seconds.items()})
    found = {name for name, one in longest.items() if one >= least}
    return sorted(name for name in found if "::" not in name or name.partition("::")[0] not in found)


def main() -> None:
    """Write the list anew."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("logs", type=Path, nargs="+", metavar="LOG")
    parser.add_argument("--least", type=float, default=4, metavar="SECONDS")
    args = parser.parse_args()
    found = slow_of([log.read_text(encoding="utf-8").splitlines() for log in args.logs], args.least)
    head = "# Written by `python -m tests.slow LOG`: test functions that take long, and files with such fixtures."
    _LIST.write_text("\n".join((head, *found)) + "\n", encoding="utf-8")
    print(f"{len(found)} functions and files take {args.least:g} s or more")


if __name__ == "__main__":
    main()
