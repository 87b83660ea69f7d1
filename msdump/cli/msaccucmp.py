"""`msdump msaccucmp ...` and `python -m msdump.msaccucmp ...`: msaccucmp's command lines, codes and file names."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
import time
from collections.abc import Sequence
from typing import Any

from msdump.cli.main import COMMANDS, INTERRUPTED
from msdump.cli.printing import log_printable, open_standard_streams, say

# Each sub-command is a module with `add_parser(subparsers)` and `run(args) -> int`; only the chosen one is imported.
SUBCOMMANDS = {
    "convert": ("msdump.cli.msaccucmp_convert", "convert dump files to npy, bin, torch or safetensors files"),
    "compare": ("msdump.cli.msaccucmp_compare", "compare two folders of dump files, or two files"),
    "file_compare": ("msdump.cli.msaccucmp_file_compare", "compare two npy files"),
    "overflow": ("msdump.cli.msaccucmp_overflow", "say which operators overflowed first"),
}
NO_COMMAND = 6
_PATH = re.compile(r"[_A-Za-z0-9/.,-]*")


def add_parser(subparsers: Any) -> None:
    """Add this command to `msdump`; what follows it is parsed when it runs."""
    parser = subparsers.add_parser(
        "msaccucmp",
        help=COMMANDS["msaccucmp"],
        description="The command lines of CANN's msaccucmp.py, unchanged; exit status as in msaccucmp.",
        epilog="; ".join(f"{name}: {summary}" for name, (_, summary) in SUBCOMMANDS.items()),
        allow_abbrev=False,
    )
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="SUBCOMMAND ...", help="its own --help tells more")


def run(args: argparse.Namespace) -> int:
    """Run the command line that follows `msdump msaccucmp`."""
    return main(args.rest, "msdump msaccucmp")


def main(argv: Sequence[str] | None = None, program: str = "msaccucmp") -> int:
    """Run one command line of msaccucmp; the result is the exit status of the process."""
    open_standard_streams()
    log_printable()
    arguments = sys.argv[1:] if argv is None else list(argv)
    parser = argparse.ArgumentParser(prog=program)
    _add_subcommands(parser, arguments)
    args = parser.parse_args(arguments)
    if args.subcommand is None:
        log("ERROR", f"expected a sub-command, got none. Choose one of {', '.join(SUBCOMMANDS)}.")
        return NO_COMMAND
    return _run_subcommand(args)


def _run_subcommand(args: argparse.Namespace) -> int:
    """Errors become msaccucmp's codes."""
    from msdump.analysis.exit_codes import exit_code_of
    from msdump.errors import MsdumpError

    try:
        return int(importlib.import_module(SUBCOMMANDS[args.subcommand][0]).run(args))
    except BrokenPipeError:
        raise
    except (MsdumpError, OSError) as error:
        log("ERROR", str(error))
        return int(exit_code_of(error))
    except KeyboardInterrupt:
        log("ERROR", "interrupted")
        return INTERRUPTED


def log(level: str, text: str) -> None:
    """One line in msaccucmp's form."""
    say(f"{time.strftime('%Y-%m-%d %H:%M:%S')} ({os.getpid()}) - [{level}] {text}", flush=True)


def path_argument(text: str) -> str:
    """A path as msaccucmp takes it, "" included.   Raises: argparse's error, which ends the process with 2."""
    if not _PATH.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected letters, digits and _ / . , - only. `msdump convert` takes any path."
        )
    return text


def _add_subcommands(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    subparsers = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND")
    chosen = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, (module, summary) in SUBCOMMANDS.items():
        if name == chosen:
            importlib.import_module(module).add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=summary)
