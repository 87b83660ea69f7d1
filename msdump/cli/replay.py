"""`msdump replay DIR OP`: one operator again on its dumped inputs, in numpy, torch and float64."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from msdump.cli.compare import add_step_options
from msdump.cli.main import COMMANDS
from msdump.cli.printing import complain, print_table, say
from msdump.cli.show import OP_HELP
from msdump.errors import MsdumpError

if TYPE_CHECKING:
    from msdump.analysis.replay.replay import ReplayRun

EXPLAINED, WRONG, WRONG_USAGE = 0, 1, 2
_TITLES = ("run", "output", "relative error", "largest error", "cosine")
_EPILOG = """
exit status: 0 the dumped output is what the dumped inputs give: look at the inputs; 1 it is not: look at the operator;
2 wrong usage, or something that a replay needs is not in the dump.
"""


def add_parser(subparsers: Any) -> None:
    """Add this command to the command line."""
    parser = subparsers.add_parser(
        "replay",
        help=COMMANDS["replay"],
        description="Run one operator again on its dumped inputs and say how far the dumped output is from that.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("dump", metavar="DIR", help="a dump with its graph files: the folder that holds rank_0")
    parser.add_argument("operator", metavar="OP", help=OP_HELP)
    add_step_options(parser)


def run(args: argparse.Namespace) -> int:
    """Replay; the result is the exit status that `--help` explains."""
    from msdump.analysis.replay.replay import replay_operator

    try:
        found = replay_operator(args.dump, args.operator, rank=args.rank, graph=args.graph, iteration=args.iteration)
    except MsdumpError as error:
        complain(f"msdump replay: {error}")
        return WRONG_USAGE
    operator = found.found.operator
    if found.is_explained:
        note = f" ({found.reason})" if found.reason else ""
        say(f"explained: {operator.label} computed what its inputs give{note}; look at its inputs.")
    else:
        say(f"WRONG: {operator.label} did not compute what its inputs give: {found.reason}.")
    say("the dumped output against a run in")
    rows = [row for name, replayed in found.runs.items() for row in _rows(name, replayed)]
    print_table(_TITLES, rows, sys.stdout, numbers=(2, 3, 4))
    return EXPLAINED if found.is_explained else WRONG


def _rows(name: str, replayed: ReplayRun) -> list[tuple[str, ...]]:
    if replayed.problem:
        return [(name, replayed.problem, "-", "-", "-")]
    return [
        (name, str(slot), f"{pair.relative_error:.3g}", f"{pair.worst_error:.3g}", f"{pair.cosine:.6f}")
        for slot, pair in replayed.errors.items()
    ]
