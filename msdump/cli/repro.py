"""`msdump repro DIR OP`: a script of its own for one operator, with its dumped inputs beside it."""

from __future__ import annotations

import argparse
from typing import Any

from msdump.cli.compare import add_step_options
from msdump.cli.main import COMMANDS
from msdump.cli.printing import complain, say
from msdump.cli.show import OP_HELP
from msdump.errors import MsdumpError

WRITTEN, WRONG_USAGE = 0, 2


def add_parser(subparsers: Any) -> None:
    """Add this command to the command line."""
    parser = subparsers.add_parser(
        "repro",
        help=COMMANDS["repro"],
        description="Write a script that runs one operator on its dumped inputs, with the inputs beside it.",
        epilog="exit status: 0 written; 2 wrong usage, or something that the script needs is not in the dump.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("dump", metavar="DIR", help="a dump with its graph files: the folder that holds rank_0")
    parser.add_argument("operator", metavar="OP", help=OP_HELP)
    parser.add_argument("-o", "--output", default="repro", metavar="DIR", help="new folder for the script (repro)")
    parser.add_argument("--torch", action="store_true", help="a script for torch instead of numpy")
    add_step_options(parser)


def run(args: argparse.Namespace) -> int:
    """Write; the result is the exit status that `--help` explains."""
    from msdump.analysis.replay.repro import write_repro

    try:
        script = write_repro(
            args.dump,
            args.operator,
            args.output,
            library="torch" if args.torch else "numpy",
            rank=args.rank,
            graph=args.graph,
            iteration=args.iteration,
        )
    except MsdumpError as error:
        complain(f"msdump repro: {error}")
        return WRONG_USAGE
    say(script)
    return WRITTEN
