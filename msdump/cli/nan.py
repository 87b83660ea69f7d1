"""`msdump nan DIR`: the first operator that makes a NaN or Inf, its source line, and the operators it infects."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from msdump.cli.compare import add_step_options
from msdump.cli.main import COMMANDS
from msdump.cli.tables import progress_bar
from msdump.errors import MsdumpError

if TYPE_CHECKING:
    from msdump.analysis.nan import BadTensor, NonFinite

FINITE, FOUND, WRONG_USAGE, DAMAGED = 0, 1, 2, 4
_EPILOG = """
Takes tensors or statistics alone (statistic.csv), of a whole dump, of one folder, or one file.
exit status: 0 everything is finite; 1 a NaN or Inf was found; 2 wrong usage, or nothing to look at; 4 what could be
read is finite, but there are damaged files.
"""


def add_parser(subparsers: Any) -> None:
    """Add this command to the command line."""
    parser = subparsers.add_parser(
        "nan",
        help=COMMANDS["nan"],
        description="Find the first operator that makes a NaN or Inf out of finite inputs, and those it infects.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("dump", metavar="DIR", help="a dump, any folder of one, or a statistic.csv")
    add_step_options(parser)
    parser.add_argument("--all", action="store_true", dest="shows_all", help="say so of every step, not only the first")
    parser.add_argument("--threads", type=int, metavar="N", help="threads (one for each core)")


def run(args: argparse.Namespace) -> int:
    """Look; the result is the exit status that `--help` explains."""
    from msdump.analysis.nan import find_non_finite

    try:
        with progress_bar("nan", sys.stderr) as advance:
            found = find_non_finite(
                args.dump,
                rank=args.rank,
                graph=args.graph,
                iteration=args.iteration,
                thread_count=args.threads,
                progress=advance,
            )
    except MsdumpError as error:
        # 1 would say that something was found.
        print(f"msdump nan: {error}", file=sys.stderr)
        return WRONG_USAGE
    for step in found.steps if args.shows_all else found.steps[:1]:
        _print_step(step)
    if found.first is None:
        print(f"finite: {found.tensor_count} tensors of {found.step_count} steps hold no NaN and no Inf.")
    elif not args.shows_all and len(found.steps) > 1:
        print(f"{len(found.steps) - 1} more steps hold NaN or Inf (--all)")
    for _, problem in found.damaged:
        print(f"damaged: {problem}", file=sys.stderr)
    return FOUND if found.steps else DAMAGED if found.damaged else FINITE


def _print_step(step: NonFinite) -> None:
    operator = step.operator
    print(f"{_HEADS[step.how]}: {operator.label} ({operator.op_type}), {step.step}")
    if step.line is not None:
        print(f"  {step.line}  {step.line.code.strip()}")
    for tensor in step.tensors:
        name = f" ({step.parameter})" if step.parameter is not None and tensor.io == "input" else ""
        print(f"  {tensor.io} {tensor.slot}{name}: {_tensor_text(tensor)}")
    for label, operators in (
        ("infects", step.infected),
        ("stops at", step.stopped),
        ("made elsewhere too", step.also_made),
    ):
        if operators:
            print(f"  {label}: {len(operators)} operators")
            for other in operators[:_SHOWN]:
                print(f"    {other.label}")
            if len(operators) > _SHOWN:
                print(f"    and {len(operators) - _SHOWN} more")
    if step.parameters:
        print(f"  parameters after the step: {', '.join(step.parameters)}")


_SHOWN = 10
_HEADS = {
    "made": "first operator that makes NaN or Inf out of finite inputs",
    "came in": "NaN or Inf came in from outside; the first operator that reads it",
    "unknown": "first operator with NaN or Inf; its inputs are not in the dump",
}


def _tensor_text(tensor: BadTensor) -> str:
    shape = list(tensor.tensor.shape)
    if tensor.nan is None or tensor.inf is None:
        return f"{tensor.tensor.dtype} {shape}, not finite"
    return f"{tensor.tensor.dtype} {shape}, {tensor.nan} NaN, {tensor.inf} Inf"
