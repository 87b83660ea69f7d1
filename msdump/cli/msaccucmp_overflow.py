"""`msaccucmp overflow`: msaccucmp's options and codes."""

from __future__ import annotations

import argparse
import os
from datetime import datetime
from typing import Any

from msdump.cli.msaccucmp import SUBCOMMANDS, log, path_argument


def add_parser(subparsers: Any) -> None:
    """Add this sub-command."""
    parser = subparsers.add_parser("overflow", help=SUBCOMMANDS["overflow"][1])
    add = parser.add_argument
    add("-d", "--dump_path", dest="dump_path", required=True, type=path_argument, help="folder of the dump")
    add("-out", "--output", dest="output", default="", type=path_argument, help="folder for the results (.)")
    add("-n", "--top_n", dest="top_num", type=int, choices=range(1, 6), default=1, help="how many overflows (1)")


def run(args: argparse.Namespace) -> int:
    """Summarize; the result is msaccucmp's code."""
    from msdump.analysis.exit_codes import ExitCode
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
