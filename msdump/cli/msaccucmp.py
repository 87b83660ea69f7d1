"""`msdump msaccucmp ...` and `python -m msdump.msaccucmp ...`: the original's command lines, codes and file names."""

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

# Each sub-command is a module with `add_parser(subparsers)` and `run(args) -> int`; only the chosen one is imported.
SUBCOMMANDS = {
    "convert": ("msdump.cli.msaccucmp_convert", "convert dump files to npy, bin, torch or safetensors files"),
    "overflow": ("msdump.cli.msaccucmp_overflow", "say which operators overflowed first"),
}
NO_COMMAND = 6
_PATH = re.compile(r"[_A-Za-z0-9/.,-]+")


def add_parser(subparsers: Any) -> None:
    """Add this command to `msdump`."""
    parser = subparsers.add_parser(
        "msaccucmp",
        help=COMMANDS["msaccucmp"],
        description="The command lines of CANN's msaccucmp.py, unchanged; exit status as in the original.",
        allow_abbrev=False,
    )
    _add_subcommands(parser, sys.argv)


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m msdump.msaccucmp`: the result is the exit status of the process."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    parser = argparse.ArgumentParser(prog="msaccucmp", allow_abbrev=False)
    _add_subcommands(parser, arguments)
    return run(parser.parse_args(arguments), parser)


def run(args: argparse.Namespace, parser: argparse.ArgumentParser | None = None) -> int:
    """Run the chosen sub-command; errors become the original's codes."""
    from msdump.analysis.exit_codes import exit_code_of
    from msdump.errors import MsdumpError

    if args.subcommand is None:
        log("ERROR", f"expected a sub-command, got none. Choose one of {', '.join(SUBCOMMANDS)}.")
        return NO_COMMAND
    try:
        return int(importlib.import_module(SUBCOMMANDS[args.subcommand][0]).run(args))
    except (MsdumpError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        log("ERROR", str(error))
        return int(exit_code_of(error))
    except KeyboardInterrupt:
        log("ERROR", "interrupted")
        return INTERRUPTED


def log(level: str, text: str) -> None:
    """One line in the original's form."""
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} ({os.getpid()}) - [{level}] {text}", flush=True)


def path_argument(text: str) -> str:
    """A path as the original takes it.   Raises: argparse's error, which ends the process with 2."""
    if not _PATH.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected letters, digits and _ / . , - only. `msdump convert` takes any path."
        )
    return text


def _add_subcommands(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    subparsers = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND")
    for name, (module, summary) in SUBCOMMANDS.items():
        if name in arguments:
            importlib.import_module(module).add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=summary)
