"""`msdump where DIR 'x = self.conv3(x)'`: the operators that a line of the script led to, and their files."""

from __future__ import annotations

import argparse
import os
from typing import Any

from msdump.cli.compare import add_step_options
from msdump.cli.main import COMMANDS
from msdump.cli.printing import complain, say
from msdump.errors import MsdumpError

FOUND, NOT_FOUND, WRONG_USAGE = 0, 1, 2


def add_parser(subparsers: Any) -> None:
    """Add this command to the command line."""
    parser = subparsers.add_parser(
        "where",
        help=COMMANDS["where"],
        description="Name the operators that a line of the script led to, and the files that hold their tensors.",
        epilog="exit status: 0 found; 1 no operator comes from such a line; 2 wrong usage, or no graph file.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("dump", metavar="DIR", help="a dump with its graph files: the folder that holds rank_0")
    parser.add_argument("line", metavar="LINE", help="a line of the script or a part of it, or FILE:LINE")
    add_step_options(parser)
    parser.add_argument("--no-files", action="store_true", help="operators only")


def run(args: argparse.Namespace) -> int:
    """Look; the result is the exit status that `--help` explains."""
    from msdump.analysis.find.look_up import find_source_line, nearest_lines

    try:
        hits = find_source_line(args.dump, args.line, rank=args.rank, graph=args.graph, iteration=args.iteration)
        if not hits:
            hint = nearest_lines(args.dump, args.line)
            complain(f'msdump where: no operator comes from "{args.line}". {hint}'.rstrip())
            return NOT_FOUND
    except MsdumpError as error:
        complain(f"msdump where: {error}")
        return WRONG_USAGE
    shown = None
    for hit in hits:
        if hit.line != shown:
            shown = hit.line
            say(f"{hit.line}  {hit.line.code.strip()}")
        say(f"  {hit.node.full_name}")
        for path in () if args.no_files else hit.files:
            say(f"    {os.path.relpath(path, args.dump)}")
    return FOUND
