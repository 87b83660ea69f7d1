"""`msdump stat DIR`: statistics of every tensor of a dump; `--golden OTHER` compares those of two."""

from __future__ import annotations

import argparse
import functools
import re
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from msdump.cli.exit_status import FINE, FOUND, INCOMPLETE, status_of
from msdump.cli.options import (
    RAW_HELP,
    add_all_option,
    add_engine_options,
    add_json_option,
    add_old_spellings,
    add_sharding_options,
    add_step_options,
    print_lines,
    selected_shardings,
    selected_steps,
    write_json,
    write_text,
)
from msdump.cli.printing import (
    FILES,
    ROWS,
    complain,
    complain_of_damaged,
    print_table,
    progress_bar,
    say,
    say_answer,
    say_lost,
    say_next,
    value_verdict,
)
from msdump.errors import ConfigError
from msdump.tables.messages import COMMA, joined, message, messages, operand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from msdump.analysis.compare.result import Comparison, OperatorResult
    from msdump.analysis.roles import Role
    from msdump.analysis.stat.rows import StatisticReport, TensorStatistics
    from msdump.analysis.steps import StepKey
    from msdump.tables.frames import Column

_ROLE_TITLES = messages("parameter", "layer", "is_gradient")
_TITLES = messages(
    "verdict", "operator", "tensor", "iteration", "dtype", "shape", "max", "min", "avg", "l2norm", "NaN", "Inf", "zero",
) + _ROLE_TITLES  # fmt: skip
_YES = message("yes")
_NO_NORM = """\
msdump stat: a statistic.csv without the column "L2Norm Value" has no l2norm. Name l2norm in statistic_category,
or dump tensors ("saved_data": "tensor")."""
_EPILOG = """
--where joins comparisons of columns by and, or, not and parentheses; signs are == != < <= > >=, and ~ for a glob of at
most 1000 characters.
Columns are those of --parquet, and inf: docs/exports.md lists them. A wrong name is answered with all of them.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Measure every tensor of a dump, or compare the statistics of two dumps without their tensors."
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("dump", metavar="DIR", help="a dump, any folder of one, or a statistic.csv")
    add("--golden", metavar="DIR", help="compare with the statistics of another dump; no tensor is read")
    add_old_spellings(parser, "golden", "--diff")
    add("--mapping", metavar="FILE", help="with --golden: json or csv file of pairs of operators")
    add("--tolerance", type=float, metavar="X", help="with --golden: relative error that still agrees")
    add("--unchanged", action="store_true", help="which parameters no iteration has changed, with their gradients")
    add("--csv", metavar="OUT", help="write statistic.csv, as a dump would have had it, for each folder below OUT")
    add("--parquet", metavar="FILE", help="write one table of all rows (needs pyarrow)")
    add(
        "--tables",
        metavar="FOLDER",
        help="write a Parquet file with hashes for each rank and iteration, for `msdump ranks`",
    )
    add_engine_options(parser)
    add_sharding_options(parser)
    add("--md5", action="store_true", help="with --parquet: also the MD5 of each tensor")
    add("--where", metavar="CONDITION", help="only tensors that meet it: 'nan>0', 'op_type==MatMul and max>1e4'")
    add("--sort", metavar="COLUMN", help="by this column: the largest number first, NaN before it; texts from A on")
    add("--reverse", action="store_true", help="with --sort: the other way round")
    add_all_option(parser)
    add("--top", type=int, metavar="N", help="only the first N tensors")
    add("--columns", metavar="A,B", help="print these columns")
    add("--op-type", action="append", metavar="TYPE", help="only operators of this type; may be given several times")
    add_json_option(parser)
    add_step_options(parser)
    add("--raw", action="store_true", help=RAW_HELP)
    add("--threads", type=int, metavar="N", help="threads (one for each core)")


def run(args: argparse.Namespace) -> int:
    """Measure or compare; the result is the exit status that `--help` explains."""
    if (args.golden or args.csv) and (args.where or args.sort or args.top or args.columns):
        raise ConfigError("--where, --sort, --top, --columns: expected them without --golden and --csv, got both.")
    if args.reverse and args.sort is None:
        raise ConfigError("--reverse: expected --sort COLUMN with it, got none.")
    if args.golden is not None:
        return _diff(args)
    if args.unchanged:
        return _unchanged(args)
    if args.csv is not None:
        return _write_csv(args)
    return _measure(args) if args.tables is None else _write_tables(args)


def _write_tables(args: argparse.Namespace) -> int:
    from msdump.analysis.find.hints import command_line, path_word
    from msdump.analysis.ranks.job import write_tables
    from msdump.formats.selection import StepSelection

    if args.graph is not None or args.parquet or args.where:
        raise ConfigError(
            "--tables: expected no --graph, --parquet and --where with it. To query the tables: msdump ranks."
        )
    with progress_bar("stat", sys.stderr, args.json == "-", FILES) as advance:
        parts = write_tables(
            [args.dump], args.tables, StepSelection(args.rank, iteration=args.iteration), engine=args.engine,
            jobs=args.jobs, part=args.part, is_forced=args.force, rules=selected_shardings(args), is_local=args.local,
            progress=advance,
        )  # fmt: skip
    new = sum(part.is_new and not part.problem for part in parts)
    if not write_json(args, lambda: {"tensors": [], "damaged": [], "tables": [part.path for part in parts]}):
        old = sum(not part.is_new for part in parts)
        say(message("{folder}: {new} tables written, {old} were there", folder=args.tables, new=new, old=old))
        say_next([(command_line("ranks", path_word(args.tables)), message("what the ranks disagree about"))])
    problems = [(part.unit.part_name, part.problem) for part in parts if part.problem]
    problems += [pair for part in parts for pair in part.damaged]
    for where, problem in problems:
        complain(f"damaged: {where}: {problem}")
    return INCOMPLETE if _is_lost(args) or problems else FINE


def _unchanged(args: argparse.Namespace) -> int:
    from msdump.analysis.missing import lost_values
    from msdump.analysis.overview.unchanged import unchanged_parameters

    with progress_bar("stat", sys.stderr, args.json == "-") as advance:
        report = unchanged_parameters(args.dump, **selected_steps(args), thread_count=args.threads, progress=advance)
    trained = [one for one in report.parameters if one.largest_gradient]
    if not write_json(
        args,
        lambda: {
            "unchanged": [asdict(one) for one in report.parameters], "lost": lost_values(report.lost), "damaged": [],
        },
    ):  # fmt: skip
        for one in trained:
            what: list[str] = [one.name, f"{one.dtype} {list(one.shape)}"]
            if one.rank_id is not None:
                what.append(message("rank {rank}", rank=one.rank_id))
            first, last = one.iterations
            text = message(
                "never changed: {parameter}, iterations {first} to {last}",
                parameter=joined(COMMA, what), first=first, last=last,
            )  # fmt: skip
            say_answer([text], FOUND)
            text = message(
                "its gradients are up to {gradient:g}: updates may be too small for {dtype}",
                gradient=one.largest_gradient, dtype=one.dtype,
            )  # fmt: skip
            if one.is_stepped is False:
                text = message("it has a gradient and belongs to no optimizer")
            say("  " + text)
        still = [one.name for one in report.parameters if not one.largest_gradient]
        if still:
            names = joined(COMMA, still)
            say(message("note: without a gradient, and so the same in all iterations: {names}", names=names))
        count = report.parameter_count - len(report.parameters)
        say(message("{count} of {all} parameters have changed", count=count, all=report.parameter_count))
        say_lost(report.lost)
        say_next([_nan_step(args.dump)])
    complain_of_damaged(report.damaged)
    if trained:
        return FOUND
    return INCOMPLETE if report.damaged or report.lost else FINE


def _diff(args: argparse.Namespace) -> int:
    from msdump.analysis.compare.judge import verdict_of
    from msdump.analysis.compare.report import csv_text, json_value
    from msdump.analysis.compare.statistics import compare_statistics

    comparison = compare_statistics(
        args.dump, args.golden, mapping=args.mapping, **selected_steps(args),
        tolerance=args.tolerance,
    )  # fmt: skip
    status = status_of(verdict_of(comparison).outcome.value)
    if args.csv is not None:
        write_text(args.csv, csv_text(comparison))
    is_brief = not args.shows_all
    if not write_json(args, lambda: json_value(comparison, is_brief), is_brief=is_brief):
        _print_differences(comparison, args, status)
    return status


def _print_differences(comparison: Comparison, args: argparse.Namespace, status: int) -> None:
    from msdump.analysis.compare.quantised.words import note_on_statistics
    from msdump.analysis.compare.report import TABLE_TITLES, summary, table_rows
    from msdump.analysis.compare.sentences import headline
    from msdump.analysis.find.hints import operator_line

    say_answer(headline(comparison), status)
    differing = [result for result in comparison.operators if not result.is_agreeing]
    rows = list(zip(table_rows(comparison, shows_all=False), _roles(args.dump, differing), strict=True))
    if rows:
        say()
        # Errors and cosines are not known of statistics.
        cells = [(*row[:5], *_role_cells(role), row[-1]) for row, role in rows]
        titles = [*TABLE_TITLES[:5], *_ROLE_TITLES, TABLE_TITLES[-1]]
        print_table(titles, cells, sys.stdout, wraps=(len(titles) - 1,), most=None if args.shows_all else ROWS)
        say()
    print_lines([*summary(comparison), *note_on_statistics(comparison)])
    result = comparison.first_wrong or comparison.first_differing
    if result is None:
        say_next([_nan_step(args.dump)])
    else:
        line = operator_line("show", args.dump, result.pair.mine, result.step)
        say_next([(line, message("its statistics, attributes and source"))])


def _roles(dump: str, results: Sequence[OperatorResult]) -> list[Role]:
    """What the first tensor that differs of each operator is in the model."""
    from msdump.analysis.compare.result import DIFFERS
    from msdump.analysis.graph_info import GraphFiles
    from msdump.analysis.roles import Roles
    from msdump.formats.dump_dir import DumpDir

    roles = Roles(GraphFiles(DumpDir.open(dump)))
    tensors = [next(tensor for tensor in (*r.outputs, *r.inputs) if tensor.status == DIFFERS) for r in results]
    return [
        roles.of(result.step, result.pair.mine, tensor.io, tensor.slot)
        for result, tensor in zip(results, tensors, strict=True)
    ]


def _role_cells(role: Role) -> tuple[str, str, str]:
    return role.parameter or "-", role.layer or "-", _YES if role.is_gradient else "-"


def _write_csv(args: argparse.Namespace) -> int:
    from msdump.analysis.stat.statistics import write_statistic_files

    if args.op_type or args.parquet or args.json:
        raise ConfigError(
            "--csv: expected it without --op-type, --parquet and --json. It writes what a dump would have had."
        )
    written, damaged = write_statistic_files(
        args.dump, args.csv, **selected_steps(args), is_raw=args.raw,
        thread_count=args.threads,
    )  # fmt: skip
    for path in written:
        say(path)
    complain_of_damaged(damaged)
    return INCOMPLETE if _is_lost(args) or damaged else FINE


def _is_lost(args: argparse.Namespace) -> bool:
    """Whether the dump is not complete; then it is said, but beside a document."""
    from msdump.analysis.missing import lost_of
    from msdump.formats.dump_dir import DumpDir
    from msdump.formats.selection import StepSelection

    lost = lost_of(DumpDir.open(args.dump), StepSelection(args.rank))
    if args.json is None:
        say_lost(lost)
    return bool(lost)


def _measure(args: argparse.Namespace) -> int:
    from msdump.analysis.stat.rows import write_parquet
    from msdump.analysis.stat.selection import columns_named, select_rows
    from msdump.analysis.stat.statistics import tensor_statistics

    selected = {"where": args.where, "sort": args.sort, "is_reversed": args.reverse, "top": args.top}
    columns = None if args.columns is None else columns_named(re.split(r" *, *", args.columns.strip()), "--columns")
    select_rows((), **selected)  # raises before the dump is read
    with progress_bar("stat", sys.stderr) as advance:
        report = tensor_statistics(
            args.dump, **selected_steps(args), op_type=args.op_type,
            has_md5=args.md5, is_raw=args.raw, thread_count=args.threads, progress=advance,
        )  # fmt: skip
    rows = select_rows(report.rows, **selected)
    if args.parquet is not None:
        write_parquet(replace(report, rows=rows), args.parquet)
    if not write_json(args, lambda: _value(report, rows), is_brief=not (args.shows_all or args.top)):
        if args.parquet is None:
            _print_rows(rows, columns, None if args.shows_all or args.top else ROWS)
        say_lost(report.lost)
        if args.parquet is None:
            say_next(_next_steps(rows, args.dump))
    # Complex numbers have no statistics but their count, unset memory has none.
    if any(
        row.numbers.l2norm is None and not row.is_unset and "complex" not in row.tensor.true_dtype
        for row in report.rows
    ):
        complain(_NO_NORM)
    complain_of_damaged(report.damaged)
    return INCOMPLETE if report.damaged or report.lost else FINE


def _value(report: StatisticReport, rows: Sequence[TensorStatistics]) -> dict[str, Any]:
    # All of analysis, which only a document needs.
    from msdump.analysis.overview.answers import statistics_value

    return statistics_value(report, rows)


def _nan_step(dump: str) -> tuple[str, str]:
    from msdump.analysis.find.hints import command_line, path_word

    return command_line("nan", path_word(dump)), message("where a NaN or Inf came from")


def _next_steps(rows: Sequence[TensorStatistics], dump: str) -> Iterator[tuple[str, str]]:
    from msdump.analysis.find.hints import command_line, operator_word, path_word
    from msdump.analysis.full_names import short_label

    word = path_word(dump)
    if any(value_verdict(row.numbers) in ("NaN", "Inf") for row in rows):
        yield _nan_step(dump)
    elif rows:
        yield command_line("stat", word, "--sort", "max", "--top", "10"), message("the largest values")
    if rows:
        name = short_label(rows[0].tensor.op_name or rows[0].tensor.op_type)
        yield command_line("show", word, operator_word(name)), message("one operator: tensors, attributes, source")
        yield command_line("plot", word), message("the l2norm over the layers")


def _print_rows(rows: Sequence[TensorStatistics], columns: Sequence[Column] | None, most: int | None) -> None:
    from msdump.analysis.stat.selection import cells
    from msdump.analysis.steps import has_several_graphs
    from msdump.tables.frames import INTEGER, NUMBER

    if columns is None:
        tells_graph = has_several_graphs(row.step for row in rows)
        lines = [_cells(row, tells_graph) for row in rows]
        print_table(_TITLES, lines, sys.stdout, numbers=range(6, 13), named=(0, 1, 2), most=most)
        return
    titles = [column.name for column in columns]
    numbers = [number for number, column in enumerate(columns) if column.kind in (INTEGER, NUMBER)]
    print_table(titles, [cells(row, columns) for row in rows], sys.stdout, numbers, named=range(len(titles)), most=most)


def _cells(row: TensorStatistics, tells_graph: bool) -> tuple[str, ...]:
    numbers, tensor = row.numbers, row.tensor
    negative, positive = numbers.negative_inf, numbers.positive_inf
    share = "-"
    if numbers.zero is not None and numbers.count:
        share = f"{100 * numbers.zero / numbers.count:.0f} %"
    return (
        value_verdict(numbers, row.is_unset),
        tensor.op_name or tensor.op_type,
        operand(tensor.io, tensor.slot_text),
        _iteration_text(row.step, tells_graph),
        tensor.true_dtype,
        _shape_text(row.shape),
        _number(numbers.max),
        _number(numbers.min),
        _number(numbers.avg),
        _number(numbers.l2norm),
        _number(numbers.nan),
        _number(negative if positive is None else positive + (negative or 0)),
        share,
        *_role_cells(row.role),
    )


# Rows by the thousand share a few steps and shapes.
@functools.lru_cache(maxsize=1024)
def _iteration_text(step: StepKey, tells_graph: bool) -> str:
    return step.iteration_text(tells_graph)


@functools.lru_cache(maxsize=1024)
def _shape_text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "()"


def _number(value: float | int | None) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
