"""`msdump msaccucmp ...` and `python -m msdump.msaccucmp ...`: msaccucmp's command lines, codes and file names."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from msdump.analysis.exit_codes import AnalysisError, ExitCode, exit_code_of
from msdump.cli import msaccucmp_compare, msaccucmp_convert
from msdump.cli.exit_status import INTERRUPTED
from msdump.cli.msaccucmp_compare import write_result
from msdump.cli.options import path_argument
from msdump.cli.printing import PrintableParser, log, log_printable, open_standard_streams

NO_COMMAND = 6
# These two are of dumps only.
_NOT_OF_FILES = ("KullbackLeiblerDivergence", "StandardDeviation")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command to `msdump`; what follows it is parsed when it runs."""
    parser.description = "The command lines of CANN's msaccucmp.py, unchanged; exit status as in msaccucmp."
    width = max(map(len, SUBCOMMANDS))
    lines = [f"  {name:<{width}}  {command.summary}" for name, command in SUBCOMMANDS.items()]
    parser.epilog = "\n".join(["subcommands:", *lines])
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="SUBCOMMAND ...", help="its own --help tells more")


def run(args: argparse.Namespace) -> int:
    """Run the command line that follows `msdump msaccucmp`."""
    return main(args.rest, "msdump msaccucmp")


def main(argv: Sequence[str] | None = None, program: str = "msaccucmp") -> int:
    """Run one command line of msaccucmp; the result is the exit status of the process."""
    open_standard_streams()
    log_printable()
    arguments = sys.argv[1:] if argv is None else list(argv)
    parser = PrintableParser(prog=program)
    subparsers = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND")
    for name, command in SUBCOMMANDS.items():
        command.add_arguments(subparsers.add_parser(name, help=command.summary))
    args = parser.parse_args(arguments)
    if args.subcommand is None:
        log("ERROR", f"expected a sub-command, got none. Choose one of {', '.join(SUBCOMMANDS)}.")
        return NO_COMMAND
    return _run_subcommand(args)


def _run_subcommand(args: argparse.Namespace) -> int:
    """Errors become msaccucmp's codes."""
    from msdump.errors import MsdumpError

    try:
        return SUBCOMMANDS[args.subcommand].run(args)
    except BrokenPipeError:
        raise
    except (MsdumpError, OSError) as error:
        log("ERROR", str(error))
        return int(exit_code_of(error))
    except KeyboardInterrupt:
        log("ERROR", "interrupted")
        return INTERRUPTED


def _add_file_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-m", "--my_dump_path", dest="mine", required=True, type=path_argument, help="my file, .npy")
    add("-g", "--golden_dump_path", dest="golden", required=True, type=path_argument, help="the golden file, .npy")
    add("-out", "--output", dest="output", required=True, type=path_argument, help="folder for the result")


def _compare_files(args: argparse.Namespace) -> int:
    """Two npy files, eight metrics, one text file."""
    from msdump.analysis.distance.metrics import METRICS
    from msdump.analysis.msaccucmp.accuracy import AccuracyRequest, compare_files

    for path in (args.mine, args.golden):
        if not path.endswith(".npy"):
            raise AnalysisError(ExitCode.INVALID_TYPE, f"{path}: expected a .npy file.")
    request = AccuracyRequest(dict.fromkeys(name for name in METRICS if name not in _NOT_OF_FILES))
    lines = [f"{name}: {cell}" for name, cell in compare_files(args.mine, args.golden, request).items()]
    name = f"file_result_{time.strftime('%Y%m%d%H%M%S')}.txt"
    path = write_result(args.output, name, "\n".join(lines) + "\n")
    for line in lines:
        log("INFO", line)
    log("INFO", f"The comparison result is in {path}.")
    return ExitCode.NONE


def _add_overflow_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-d", "--dump_path", dest="dump_path", required=True, type=path_argument, help="folder of the dump")
    add("-out", "--output", dest="output", required=True, type=path_argument, help="folder for the results")
    add("-n", "--top_n", dest="top_num", type=int, choices=range(1, 6), default=1, help="how many overflows (1)")


def _summarize_overflows(args: argparse.Namespace) -> int:
    from msdump.analysis.msaccucmp.overflow import find_overflows, write_overflow_report

    if not os.path.isdir(args.dump_path):
        got = "a file" if os.path.exists(args.dump_path) else "nothing"
        log("ERROR", f"{args.dump_path}: expected a folder, got {got}.")
        return ExitCode.INVALID_PATH
    report = find_overflows(args.dump_path, args.top_num)
    if not report.total:
        log("WARNING", f"{args.dump_path}: no overflow file (Opdebug.Node_OpDebug...) is there.")
        return ExitCode.NONE
    for _, problem in report.damaged:
        log("ERROR", problem)
    text = write_overflow_report(report, args.output or ".", datetime.now())
    if report.overflows:
        log("INFO", f"{len(report.overflows)} of {report.total} overflows:\n{text}")
    if report.code:
        log("ERROR", "what is damaged ends the analysis; there is no summary file.")
    else:
        log("INFO", f"{report.written[-1]} is written.")
    return report.code


class _Subcommand(NamedTuple):
    """What `--help` says of it, and what it does."""

    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


SUBCOMMANDS = {
    "convert": _Subcommand(
        "convert dump files to npy, bin, torch or safetensors files",
        msaccucmp_convert.add_arguments,
        msaccucmp_convert.run,
    ),
    "compare": _Subcommand(
        "compare two folders of dump files, or two files", msaccucmp_compare.add_arguments, msaccucmp_compare.run
    ),
    "file_compare": _Subcommand("compare two npy files", _add_file_arguments, _compare_files),
    "overflow": _Subcommand("say which operators overflowed first", _add_overflow_arguments, _summarize_overflows),
}
