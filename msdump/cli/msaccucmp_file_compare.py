"""`msaccucmp file_compare`: two npy files, eight metrics, one text file."""

from __future__ import annotations

import argparse
import time
from typing import Any

from msdump.cli.msaccucmp import SUBCOMMANDS, log, path_argument
from msdump.cli.msaccucmp_compare import write_result

# These two are of dumps only.
_LEFT_OUT = ("KullbackLeiblerDivergence", "StandardDeviation")


def add_parser(subparsers: Any) -> None:
    """Add this sub-command."""
    parser = subparsers.add_parser("file_compare", help=SUBCOMMANDS["file_compare"][1])
    add = parser.add_argument
    add("-m", "--my_dump_path", dest="mine", required=True, type=path_argument, help="my file, .npy")
    add("-g", "--golden_dump_path", dest="golden", required=True, type=path_argument, help="the golden file, .npy")
    add("-out", "--output", dest="output", default="", type=path_argument, help="folder for the result (.)")


def run(args: argparse.Namespace) -> int:
    """Compare; the result is msaccucmp's code."""
    from msdump.analysis.compare.metrics import METRICS
    from msdump.analysis.exit_codes import AnalysisError, ExitCode
    from msdump.analysis.msaccucmp.accuracy import Request, compare_files

    for path in (args.mine, args.golden):
        if not path.endswith(".npy"):
            raise AnalysisError(ExitCode.INVALID_TYPE, f"{path}: expected a .npy file.")
    request = Request(dict.fromkeys(name for name in METRICS if name not in _LEFT_OUT))
    lines = [f"{name}: {cell}" for name, cell in compare_files(args.mine, args.golden, request).items()]
    name = f"file_result_{time.strftime('%Y%m%d%H%M%S')}.txt"
    path = write_result(args.output, name, "\n".join(lines) + "\n")
    for line in lines:
        log("INFO", line)
    log("INFO", f"The comparison result is in {path}.")
    return ExitCode.NONE
