"""`msdump repro DIR OP`: a stand-alone script for an operator, with its dumped inputs."""

from __future__ import annotations

import argparse

from msdump.cli.options import GRAPHS_HELP, OP_HELP, add_model_option, add_step_options, selected_steps
from msdump.cli.printing import say

WRITTEN = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Write a script that runs one operator on its dumped inputs, with the inputs beside it."
    parser.add_argument("dump", metavar="DIR", help=GRAPHS_HELP)
    parser.add_argument("operator", metavar="OP", help=OP_HELP)
    parser.add_argument("-o", "--output", default="repro", metavar="DIR", help="new folder for the script (repro)")
    parser.add_argument(
        "--torch",
        action="store_true",
        help="a script for torch instead of numpy; that of an operator of PyTorch or ONNX runs its own library",
    )
    add_model_option(parser)
    add_step_options(parser)


def run(args: argparse.Namespace) -> int:
    """Write; the result is the exit status that `--help` explains."""
    from msdump.analysis.replay.repro import write_repro

    script = write_repro(
        args.dump,
        args.operator,
        args.output,
        library="torch" if args.torch else "numpy",
        model=args.model,
        **selected_steps(args),
    )
    say(script)
    return WRITTEN
