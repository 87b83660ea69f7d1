"""Operators of a line of the script: of `msdump show DIR 'x = self.conv3(x)'`, and `msdump where` as it was."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msdump.cli.exit_status import FINE, NOTHING
from msdump.cli.options import GRAPHS_HELP, add_json_option, add_step_options, selected_steps, write_json
from msdump.cli.printing import complain, say, say_next
from msdump.cli.report_text import format_count
from msdump.tables.messages import message

if TYPE_CHECKING:
    from msdump.analysis.find.look_up import SourceHit


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

    hits = find_source_line(args.dump, args.line, **selected_steps(args))
    shown = print_hits(hits, args, files="" if args.no_files else NAMES)
    if not hits:
        hint = nearest_lines(args.dump, args.line)
        complain(f'msdump where: no operator comes from "{args.line}". {hint}'.rstrip())
    return shown


NAMES, COUNTS = "names", "counts"


def print_hits(hits: Sequence[SourceHit], args: argparse.Namespace, files: str) -> int:
    """Lines, their operators, and their files by NAMES, or how many there are by COUNTS; the exit status."""
    from msdump.analysis.overview.answers import source_value

    if write_json(args, lambda: source_value(hits)) or not hits:
        return FINE if hits else NOTHING
    shown = None
    for hit in hits:
        if hit.line != shown:
            shown = hit.line
            say(f"{hit.line}  {hit.line.code.strip()}")
        say(f"  {hit.node.full_name}")
        if not files:
            continue
        paths = [os.path.relpath(path, args.dump) for path in hit.files]
        folders = Counter(os.path.dirname(path) for path in paths)
        for text in (
            paths if files == NAMES else [f"{format_count(n, 'file')} in {name}" for name, n in folders.items()]
        ):
            say(f"    {text}")
    say_next(_next_steps(hits, args.dump))
    return FINE


def _next_steps(hits: Sequence[SourceHit], dump: str) -> list[tuple[str, str]]:
    from msdump.analysis.find.hints import show_line
    from msdump.analysis.full_names import short_label

    return [(show_line(dump, short_label(hits[0].node.full_name)), message("its tensors, attributes and source"))]
