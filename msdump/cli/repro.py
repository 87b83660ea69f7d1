"""A stand-alone script for an operator, with its inputs: of `msdump replay -o DIR`, and `msdump repro` as it was."""

from __future__ import annotations

import argparse
import shlex

from msdump.cli.options import (
    GRAPHS_HELP,
    add_model_option,
    add_operator_argument,
    add_output_option,
    add_step_options,
    selected_steps,
)
from msdump.cli.printing import say, say_next
from msdump.tables.messages import message

WRITTEN = 0
TORCH_HELP = "a script for torch instead of numpy; that of an operator of PyTorch or ONNX runs its own library"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Write a script that runs one operator on its dumped inputs, with the inputs beside it."
    parser.add_argument("dump", metavar="DIR", help=GRAPHS_HELP)
    add_operator_argument(parser)
    add_output_option(parser, "new folder for the script (%(default)s)", "DIR", "repro")
    parser.add_argument("--torch", action="store_true", help=TORCH_HELP)
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
    say_next([(shlex.join(["python", str(script)]), message("runs the operator on the inputs beside it"))])
    return WRITTEN
