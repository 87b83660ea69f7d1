"""`msdump plot DUMP [OTHER]`: a statistic over layers, operators, iterations or ranks, as bars or as a picture."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msdump.cli.exit_status import FINE, INCOMPLETE
from msdump.cli.layout import terminal_width
from msdump.cli.options import (
    add_all_option,
    add_json_option,
    add_output_option,
    add_step_options,
    selected_steps,
    write_json,
)
from msdump.cli.printing import ROWS, bar, complain_of_damaged, print_table, progress_bar, say, say_next
from msdump.errors import ConfigError, FormatError, WriteError
from msdump.tables.messages import message

if TYPE_CHECKING:
    from msdump.analysis.stat.curve import Curve

_PICTURES = (".png", ".svg", ".pdf")
_WIDTH = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Draw a statistic of all outputs over layers, operators, iterations or ranks; of two dumps too."
    )
    parser.epilog = "Without -o the curve is drawn with bars in the terminal."
    add = parser.add_argument
    add("dump", metavar="DIR", help="a dump, any folder of one, or a statistic.csv")
    add("other", metavar="GOLDEN", nargs="?", help="a second one, drawn beside it")
    add("--y", metavar="COLUMN", help="l2norm, max, min, avg, nan, zero ... (l2norm; max of files without one)")
    add("--by", metavar="TYPE", default="layer", help="layer, operator, iteration or rank (default %(default)s)")
    add_output_option(parser, f"picture ({', '.join(_PICTURES)}) instead, by matplotlib")
    add_step_options(parser)
    add_all_option(parser)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Draw; the result is the exit status that `--help` explains."""
    from msdump.analysis.stat.curve import curve, usual_statistic
    from msdump.analysis.stat.statistics import tensor_statistics

    if args.output is not None and Path(args.output).suffix not in _PICTURES:
        raise ConfigError(f"--output: expected a name that ends in {', '.join(_PICTURES)}, got {args.output}.")
    paths = [path for path in (args.dump, args.other) if path is not None]
    curves: list[tuple[str, Curve]] = []
    damaged: list[tuple[str, FormatError]] = []
    statistic = args.y
    for path in paths:
        with progress_bar("measure", sys.stderr) as advance:
            report = tensor_statistics(path, **selected_steps(args), progress=advance)
        statistic = statistic or usual_statistic(row.numbers for row in report.rows)
        curves.append((path, curve(report, statistic, args.by)))
        damaged += report.damaged
    if args.output is not None:
        _draw(curves, statistic, args.by, args.output)
    most = None if args.shows_all else ROWS
    if not write_json(args, lambda: _value(curves, statistic, args.by)):
        if args.output is None:
            _print([one for _, one in curves], statistic, args.by, most)
            say_next(_next_steps(args, statistic))
        else:
            say(args.output)
    complain_of_damaged(damaged)
    return INCOMPLETE if damaged else FINE


def _names(curves: Sequence[Curve]) -> list[str]:
    """Of all curves, in the order of the first."""
    return list(dict.fromkeys(name for one in curves for name in one.names))


def _value(curves: Sequence[tuple[str, Curve]], statistic: str, by: str) -> dict[str, Any]:
    return {
        "statistic": statistic,
        "by": by,
        "curves": [
            {"dump": path, "points": [list(point) for point in zip(one.names, one.values, strict=True)]}
            for path, one in curves
        ],
    }


def _print(curves: Sequence[Curve], statistic: str, by: str, most: int | None) -> None:
    tables = [dict(zip(one.names, one.values, strict=True)) for one in curves]
    finite = [abs(value) for table in tables for value in table.values() if math.isfinite(value)]
    largest = max(finite, default=0.0)
    width = max(terminal_width(sys.stdout, sys.stderr) // 2, _WIDTH) // (2 * len(curves))
    rows = []
    for name in _names(curves):
        values = [table.get(name) for table in tables]
        texts = ["-" if value is None else f"{value:.4g}" for value in values]
        bars = [bar(value, largest, width) for value in values]
        rows.append((name, *(cell for pair in zip(texts, bars, strict=True) for cell in pair)))
    titles = [by]
    for number in range(len(curves)):
        titles += [f"{statistic}{' of GOLDEN' if number else ''}", ""]
    print_table(titles, rows, sys.stdout, numbers=range(1, 2 * len(curves), 2), named=range(len(titles)), most=most)


def _next_steps(args: argparse.Namespace, statistic: str) -> Iterator[tuple[str, str]]:
    from msdump.analysis.find.hints import command_line, path_word

    word = path_word(args.dump)
    column = statistic if statistic in ("max", "nan", "zero") else "l2norm"
    yield command_line("stat", word, "--sort", column, "--top", "10"), message("the tensors with the largest numbers")
    if args.other is not None:
        yield command_line("compare", word, path_word(args.other)), message("the first operator that differs")


def _draw(curves: Sequence[tuple[str, Curve]], statistic: str, by: str, path: str) -> None:
    from msdump.tables.frames import optional_package
    from msdump.tables.printable import printable

    figures = optional_package("matplotlib.figure", "--output", "leave out -o")
    names = _names([one for _, one in curves])
    positions = {name: position for position, name in enumerate(names)}
    figure = figures.Figure(figsize=(10, 4 if len(names) > 40 else 5), layout="constrained")
    axes = figure.subplots()
    for dump, one in curves:
        # A text of "$" would be a formula.
        label = printable(dump).replace("$", r"\$")
        axes.plot([positions[name] for name in one.names], one.values, marker=".", label=label)
    if len(names) <= 40:
        texts = [printable(name).replace("$", r"\$")[-40:] for name in names]
        axes.set_xticks(range(len(names)), texts, rotation=60, ha="right", fontsize="small")
    axes.set_xlabel(by)
    axes.set_ylabel(statistic)
    if len(curves) > 1:
        axes.legend()
    try:
        figure.savefig(path)
    except OSError as error:
        raise WriteError(f"{path}: expected to write the picture, got: {error.strerror}.") from error
