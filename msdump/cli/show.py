"""`msdump show DIR OP`: tensors, attributes and source of one operator; or the operators of a line of the script."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msdump.cli.elements import add_element_options, check_element_options, print_elements
from msdump.cli.exit_status import FINE, INCOMPLETE
from msdump.cli.options import (
    OP_HELP,
    RAW_HELP,
    add_json_option,
    add_operator_argument,
    add_step_options,
    selected_steps,
    write_json,
)
from msdump.cli.printing import complain, exponent_bars, print_table, say, say_next, sparkline, value_verdict
from msdump.cli.where import COUNTS, NAMES, print_hits
from msdump.errors import MsdumpError, NothingFoundError
from msdump.tables.messages import message

if TYPE_CHECKING:
    from msdump.analysis.find.look_up import ShownOperator, ShownTensor
    from msdump.formats.statistic_row import StatisticRow
    from msdump.statistics.stats import Statistics

_TITLES = ("verdict", "tensor", "dtype", "shape", "max", "min", "avg", "l2norm", "NaN", "Inf", "first elements", "from")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Show one operator: inputs, outputs, shapes, statistics, first elements, attributes, source trace. Of a line "
        "of the script: the operators that it led to, and where their files lie. With --tensor: the elements."
    )
    parser.add_argument("dump", metavar="DIR", help="a dump, or any folder of one")
    add_operator_argument(parser, f"{OP_HELP}; or a part of a line of the script, or FILE:LINE")
    add_step_options(parser)
    parser.add_argument("--raw", action="store_true", help=RAW_HELP)
    add_element_options(parser)
    parser.add_argument("--files", action="store_true", help="of a line: name each file")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Show; the result is the exit status that `--help` explains."""
    from msdump.analysis.find.look_up import find_source_line, show_operator
    from msdump.analysis.overview.answers import shown_value

    check_element_options(args)
    if args.tensor is not None:
        return print_elements(args)
    try:
        shown = show_operator(args.dump, args.operator, **selected_steps(args), is_raw=args.raw)
    except NothingFoundError:
        try:
            hits = find_source_line(args.dump, args.operator, **selected_steps(args))
        except MsdumpError:
            hits = []  # what the operator lacks is the nearer answer
        if not hits:
            raise
        return print_hits(hits, args, NAMES if args.files else COUNTS)
    if not write_json(args, lambda: shown_value(shown)):
        _print(shown, args.dump)
    problems = [tensor for tensor in shown.tensors if tensor.problem]
    for tensor in problems:
        complain(f"{tensor.io} {tensor.slot}: {tensor.problem}")
    return INCOMPLETE if problems else FINE


def _print(shown: ShownOperator, dump: str) -> None:
    from msdump.analysis.steps import place_text

    operator = shown.found.operator
    say(place_text(operator, shown.found.key))
    rows = [_cells(tensor) for tensor in shown.tensors]
    print_table(_TITLES, rows, sys.stdout, numbers=range(4, 10), wraps=(10,))
    pictures = [cells for tensor in shown.tensors if any((cells := _pictures(tensor))[1:])]
    if pictures:
        say()
        print_table(("tensor", "exponents", "over iterations"), pictures, sys.stdout, wraps=(2,))
    if shown.attrs:
        say("attributes: " + ", ".join(f"{name}={value!r}" for name, value in shown.attrs.items()))
    for line in shown.source:
        say(f"  {line}  {line.code.strip()}")
    if shown.readers:
        say("read by: " + ", ".join(shown.readers))
    if shown.message:
        say(shown.message)
    if shown.found.table is not None:
        say("statistics only")
    say_next(_next_steps(shown, dump))


def _next_steps(shown: ShownOperator, dump: str) -> Iterator[tuple[str, str]]:
    from msdump.analysis.find.hints import command_line, operator_line, path_word, zoom_line

    operator, step = shown.found.operator, shown.found.key
    if shown.found.table is not None:
        yield zoom_line(dump, operator), message("dumps its tensors")
    elif operator.op_type and not operator.is_parameter:
        yield operator_line("replay", dump, operator, step), message("whether it computed what its inputs give")
    yield command_line("view", path_word(dump)), message("every element in the browser")


def _pictures(shown: ShownTensor) -> tuple[str, str, str]:
    bars = "" if shown.exponents is None else exponent_bars(shown.exponents)
    line = ""
    if shown.history:
        first, last = shown.history[0][0], shown.history[-1][0]
        from msdump.analysis.stat.curve import usual_statistic

        name = usual_statistic(numbers for _, numbers in shown.history)
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
        values = tuple("-" if value is None else f"{value:.4g}" for value in (*_extremes(numbers), *counts))
    origin = ""
    if shown.origin is not None:
        name = shown.origin.name.rsplit("/", 1)[-1]
        origin = name if shown.origin.slot is None else f"{name} output {shown.origin.slot}"
    shape = "x".join(map(str, shown.tensor.shape if shown.shape is None else shown.shape)) or "()"
    verdict = "damaged" if shown.problem else value_verdict(numbers, shown.is_unset)
    return (verdict, f"{shown.io} {shown.slot}", shown.tensor.true_dtype, shape, *values, shown.preview, origin)
