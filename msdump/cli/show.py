"""`msdump show DIR OP`: inputs, outputs, statistics, attributes and source trace of one operator."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from msdump.cli.exit_status import FINE, INCOMPLETE
from msdump.cli.options import OP_HELP, RAW_HELP, add_json_option, add_step_options, selected_steps, write_json
from msdump.cli.printing import complain, exponent_bars, print_table, say, sparkline

if TYPE_CHECKING:
    from msdump.analysis.find.look_up import ShownOperator, ShownTensor
    from msdump.formats.statistic_csv import StatisticRow
    from msdump.statistics.stats import Statistics

_TITLES = ("tensor", "dtype", "shape", "max", "min", "avg", "l2norm", "NaN", "Inf", "first elements", "from")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Show one operator: inputs, outputs, shapes, statistics, first elements, attributes, source trace."
    )
    parser.add_argument("dump", metavar="DIR", help="a dump, or any folder of one")
    parser.add_argument("operator", metavar="OP", help=OP_HELP)
    add_step_options(parser)
    parser.add_argument("--raw", action="store_true", help=RAW_HELP)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Show; the result is the exit status that `--help` explains."""
    from msdump.analysis.find.look_up import show_operator
    from msdump.analysis.overview.answers import shown_value

    shown = show_operator(args.dump, args.operator, **selected_steps(args), is_raw=args.raw)
    if not write_json(args, lambda: shown_value(shown)):
        _print(shown, args.dump)
    problems = [tensor for tensor in shown.tensors if tensor.problem]
    for tensor in problems:
        complain(f"{tensor.io} {tensor.slot}: {tensor.problem}")
    return INCOMPLETE if problems else FINE


def _print(shown: ShownOperator, dump: str) -> None:
    from msdump.analysis.find.hints import zoom_line

    operator = shown.found.operator
    say(f"{operator.label} ({operator.op_type}), {shown.found.key}")
    print_table(_TITLES, [_cells(tensor) for tensor in shown.tensors], sys.stdout, numbers=(3, 4, 5, 6, 7, 8))
    pictures = [cells for tensor in shown.tensors if any((cells := _pictures(tensor))[1:])]
    if pictures:
        say()
        print_table(("tensor", "exponents", "over iterations"), pictures, sys.stdout)
    if shown.attrs:
        say("attributes: " + ", ".join(f"{name}={value!r}" for name, value in shown.attrs.items()))
    for line in shown.source:
        say(f"  {line}  {line.code.strip()}")
    if shown.readers:
        say("read by: " + ", ".join(shown.readers))
    if shown.message:
        say(shown.message)
    if shown.found.table is not None:
        hint = zoom_line(dump, operator)
        say(f"statistics only; for the tensors: {hint}" if hint else "statistics only")


def _pictures(shown: ShownTensor) -> tuple[str, str, str]:
    bars = "" if shown.exponents is None else exponent_bars(shown.exponents)
    line = ""
    if shown.history:
        first, last = shown.history[0][0], shown.history[-1][0]
        # A statistic.csv of the classic columns has no l2norm.
        name = (
            "l2norm"
            if any(numbers is not None and numbers.l2norm is not None for _, numbers in shown.history)
            else "max"
        )
        line = f"{name} {first} {sparkline([getattr(numbers, name, None) for _, numbers in shown.history])} {last}"
    return f"{shown.io} {shown.slot}", bars, line


def _extremes(numbers: Statistics | StatisticRow) -> tuple[float | int | None, ...]:
    return numbers.max, numbers.min, numbers.avg, numbers.l2norm


def _cells(shown: ShownTensor) -> tuple[str, ...]:
    numbers = shown.numbers
    values: tuple[str, ...] = ("-",) * 6
    if numbers is not None:
        infinities = [count for count in (numbers.negative_inf, numbers.positive_inf) if count is not None]
        counts = (numbers.nan, sum(infinities) if infinities else None)
        values = tuple("-" if value is None else f"{value:g}" for value in (*_extremes(numbers), *counts))
    origin = ""
    if shown.origin is not None:
        name = shown.origin.name.rsplit("/", 1)[-1]
        origin = name if shown.origin.slot is None else f"{name} output {shown.origin.slot}"
    shape = "x".join(map(str, shown.tensor.shape if shown.shape is None else shown.shape)) or "()"
    return (f"{shown.io} {shown.slot}", shown.tensor.true_dtype, shape, *values, shown.preview, origin)
