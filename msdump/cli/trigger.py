"""`msdump trigger PATH`: a job whose flight recorder writes to this folder keeps its last steps."""

from __future__ import annotations

import argparse
from pathlib import Path

from msdump.cli.exit_status import FINE
from msdump.cli.printing import say, say_next
from msdump.errors import NothingFoundError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Ask a running job to keep its last steps, those of all ranks: the recorder sees it within a step."
    )
    parser.add_argument("path", metavar="PATH", help="the folder that the recorder was given")
    parser.add_argument("--why", default="msdump trigger", metavar="TEXT", help="for people who read the incident")
    parser.add_argument("--in", dest="offset", type=_steps, default=0, metavar="STEPS", help="so many steps from now")


def _steps(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise argparse.ArgumentTypeError(f'expected a number of steps from 0 to 999999, got "{text}".')
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Write the file that asks.   Raises: ConfigError; WriteError."""
    from msdump.analysis.find.hints import command_line, path_word
    from msdump.engine.recording.collecting import survey
    from msdump.engine.recording.incidents import request

    path = Path(args.path)
    recorders = survey(path)
    if not recorders.alive and not recorders.elsewhere:
        raise NothingFoundError(
            f"{path}: expected a folder that a flight recorder writes to, got one without a running recorder. "
            "`msdump recorder list` shows what is there."
        )
    request(path, args.why, args.offset)
    ranks = len(recorders.alive) + len(recorders.elsewhere)
    say(f"{path}: {ranks} {'recorder' if ranks == 1 else 'recorders'} will keep the last steps when this one ends.")
    say_next([(command_line("recorder", "list", path_word(path)), "what they have kept")])
    return FINE
