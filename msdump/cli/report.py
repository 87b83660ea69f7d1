"""`msdump report DUMP [GOLDEN] -o report.html`: a dump as one page that needs no server and no network."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from msdump.cli.exit_status import FINE, INCOMPLETE
from msdump.cli.options import add_step_options, selected_steps, write_text
from msdump.cli.printing import complain, complain_of_damaged, progress_bar, say, say_next
from msdump.tables.messages import message

_EPILOG = """
The page opens in any browser from the disk; it loads nothing. It holds numbers of all tensors, not their elements.
That something was found does not change the exit status: `msdump nan` and `msdump compare` tell that by theirs.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Write what is in a dump, and what is wrong with it, as one HTML file."
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("dump", metavar="DIR", help="a dump, any folder of one, or a statistic.csv")
    add("golden", metavar="GOLDEN", nargs="?", help="a dump to compare with")
    add("-o", "--output", metavar="FILE", default="report.html", help="file to write (default %(default)s)")
    add("--max-size", metavar="SIZE", help="largest file, such as 8M; the page lists what it leaves out")
    add("--md", metavar="FILE", help="also the verdict as Markdown, for an issue or a summary; - for standard output")
    add("--redact", action="store_true", help="leave out folders, lines of code, and names of user and machine")
    add("--mapping", metavar="FILE", help="json or csv file of pairs of operators")
    add_step_options(parser)
    add("--threads", type=int, metavar="N", help="threads (one for each core)")


def _next_steps(args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    from msdump.analysis.find.hints import command_line, path_word

    words = [path_word(path) for path in (args.dump, args.golden) if path is not None]
    yield command_line("view", *words), message("the same page, with the elements of the tensors")


def run(args: argparse.Namespace) -> int:
    """Write; the result is the exit status that `--help` explains."""
    from msdump.analysis.measurements import Measurements
    from msdump.analysis.overview.contents import Contents
    from msdump.config.environment import format_size, parse_size
    from msdump.formats.dump_dir import DumpDir
    from msdump.formats.selection import StepSelection
    from msdump.viewing.report_file import LARGEST_BYTES, markdown, write_report

    largest = LARGEST_BYTES if args.max_size is None else parse_size("--max-size", args.max_size)
    with progress_bar("report", sys.stderr) as advance:
        contents = Contents(
            DumpDir.open(args.dump, keeps_headers=True),
            None if args.golden is None else DumpDir.open(args.golden, keeps_headers=True),
            StepSelection(**selected_steps(args)),
            mapping=args.mapping,
            is_job=True,
            measurements=Measurements(has_exponents=True),
            thread_count=args.threads,
            progress=advance,
        )
        report = write_report(contents, args.output, max_bytes=largest, is_redacted=args.redact)
    overview = report.overview
    if args.md:
        write_text(args.md, markdown(overview), 0o600)
    if args.md != "-":
        say(overview["verdict"]["text"])
        for note in overview["notes"]:
            say(note)
        say(f"{report.path} ({format_size(report.size)}): open it in a browser.")
        say_next(_next_steps(args))
    for sentence in report.left_out:
        complain(f"msdump report: {sentence}")
    complain_of_damaged(contents.damaged)
    return INCOMPLETE if contents.damaged or contents.non_finite.lost else FINE
