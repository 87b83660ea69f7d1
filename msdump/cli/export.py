"""`msdump export DIR --to FORM`: a dump in the forms of other tools."""

from __future__ import annotations

import argparse
import sys

from msdump.cli.exit_status import FINE, INCOMPLETE
from msdump.cli.options import add_output_option, add_step_options, selected_steps, write_text
from msdump.cli.printing import complain, complain_of_damaged, progress_bar, say

_EPILOG = """
That something was found does not change the exit status: `msdump nan` and `msdump compare` tell that by theirs.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    from msdump.analysis.exporting import FORMS

    width = max(map(len, FORMS))
    places = {name: form.path or "where its settings say" for name, form in FORMS.items()}
    forms = "\n".join(f"  {name:<{width}}  {form.meaning}; {places[name]}" for name, form in FORMS.items())
    parser.description = "Write a dump in the form of another tool."
    parser.epilog = f"forms, and where they go without -o:\n{forms}\n{_EPILOG}"
    add = parser.add_argument
    add("dump", metavar="DIR", help="a dump, any folder of one, or a statistic.csv")
    add("golden", metavar="GOLDEN", nargs="?", help="a dump to compare with, for forms that take two")
    add("--to", metavar="FORM", required=True, choices=list(FORMS), help="one of the forms below")
    add_output_option(parser, "file or folder to write; - for standard output, where it is text", "PATH")
    add("--mapping", metavar="FILE", help="json or csv file of pairs of operators")
    add_step_options(parser)
    add("--threads", type=int, metavar="N", help="threads (one for each core)")


def run(args: argparse.Namespace) -> int:
    """Write; the result is the exit status that `--help` explains."""
    from msdump.analysis.exporting import FORMS, export
    from msdump.formats.selection import StepSelection

    has_report = FORMS[args.to].has_report
    if has_report:  # the other forms need no viewer
        from msdump.viewing.report_file import write_report
    with progress_bar("export", sys.stderr) as advance:
        written, contents = export(
            args.dump, args.to, args.output, args.golden, StepSelection(**selected_steps(args)),
            write_report if has_report else None, mapping=args.mapping, thread_count=args.threads, progress=advance,
        )  # fmt: skip
    if written.text:
        write_text("-", written.text)
    for path in written.paths:
        say(path)
    for note in written.notes:
        complain(f"msdump export: {note}")
    complain_of_damaged(contents.damaged)
    return INCOMPLETE if contents.damaged else FINE
