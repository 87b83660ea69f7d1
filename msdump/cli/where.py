"""`msdump where DIR 'x = self.conv3(x)'`: the operators that a line of the script led to, and their files."""

from __future__ import annotations

import argparse
import os

from msdump.cli.exit_status import FINE, NOTHING
from msdump.cli.options import GRAPHS_HELP, add_json_option, add_step_options, selected_steps, write_json
from msdump.cli.printing import complain, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Name the operators that a line of the script led to, and the files that hold their tensors."
    parser.add_argument("dump", metavar="DIR", help=GRAPHS_HELP)
    parser.add_argument("line", metavar="LINE", help="a line of the script or a part of it, or FILE:LINE")
    add_step_options(parser)
    parser.add_argument("--no-files", action="store_true", help="operators only")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Look; the result is the exit status that `--help` explains."""
    from msdump.analysis.find.look_up import find_source_line, nearest_lines
    from msdump.analysis.overview.answers import source_value

    hits = find_source_line(args.dump, args.line, **selected_steps(args))
    takes_output = write_json(args, lambda: source_value(hits))
    if not hits:
        hint = nearest_lines(args.dump, args.line)
        complain(f'msdump where: no operator comes from "{args.line}". {hint}'.rstrip())
        return NOTHING
    if takes_output:
        return FINE
    shown = None
    for hit in hits:
        if hit.line != shown:
            shown = hit.line
            say(f"{hit.line}  {hit.line.code.strip()}")
        say(f"  {hit.node.full_name}")
        for path in () if args.no_files else hit.files:
            say(f"    {os.path.relpath(path, args.dump)}")
    return FINE
