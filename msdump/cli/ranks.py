"""`msdump ranks DUMP...`: the ranks of a job as one: what must be equal and is not, who is outvoted, who stands out."""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from msdump.cli.exit_status import FINE, FOUND, INCOMPLETE
from msdump.cli.options import (
    FINDINGS,
    add_all_option,
    add_brief_option,
    add_engine_options,
    add_json_option,
    add_sharding_options,
    parse_number_ranges,
    selected_shardings,
    write_json,
)
from msdump.cli.printing import (
    FILES,
    RANKS,
    ROWS,
    complain,
    complain_of_damaged,
    print_table,
    progress_bar,
    say,
    say_answer,
    say_next,
)
from msdump.cli.query import ASKS, QUERY_HELP, query_tables
from msdump.errors import ConfigError
from msdump.tables.messages import counted, message, messages, operand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from msdump.analysis.ranks.job import JobReport
    from msdump.analysis.ranks.questions import Answer
    from msdump.formats.selection import StepSelection

_EPILOG = """
What must be equal stands in layout.json of each rank: parameters and gradients of replicas, results of all-reduce,
all-gather and broadcast, replicated DTensors, and what a rank sends to another rank. Hashes are compared, or statistics
where a dump has nothing else, so no golden run is needed. A parameter or buffer that nothing declares equal and that
differs between replicas is named, too.

Where no layout.json says anything, as of a launcher that PyTorch does not know, nothing is read and nothing compared.
--replicated says that all ranks are replicas: their parameters and buffers, which a dump shows as each step left them,
must be equal where name and shape are.

Tables alone are enough: `msdump stat DIR --tables FOLDER` writes them, and then the dump is not read any more.
--ask and --sql query them, or those that are made of a dump for the moment (needs duckdb).
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Find what the ranks of a job disagree about although it must be equal, and who is outvoted."
    parser.epilog = f"{_EPILOG}\n{QUERY_HELP}"
    add = parser.add_argument
    add("dumps", metavar="DIR", nargs="+", help="dumps of one job, as of several machines; or folders of its tables")
    add("--ask", choices=ASKS, help="one question alone")
    add("--sql", metavar="SQL", help="a query of your own, about the table `tensors`")
    add("--read-only", action="store_true", help="of --sql: refuse what writes, or reads another file than the tables")
    add("--golden", metavar="TABLES", help="tables of another job: also name the first tensor of each rank that "
        "differs from it")  # fmt: skip
    add("--tolerance", type=float, default=1e-5, metavar="X", help="with --golden: relative difference of l2norm that "
        "agrees (%(default)s)")  # fmt: skip
    add("--tables", metavar="FOLDER", help="folder of the tables; existing tables are not measured again")
    add("--rank", type=parse_number_ranges, metavar="N|N-N", help="only these ranks")
    add("--iteration", type=parse_number_ranges, metavar="N|N-N", help="only these iterations")
    add_engine_options(parser)
    add("--replicated", action="store_true", help="all ranks are replicas: parameters and buffers of equal names and "
        "shapes must be equal after each step")  # fmt: skip
    add_sharding_options(parser)
    add_all_option(parser)
    add_brief_option(parser)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Judge; the result is the exit status that `--help` explains."""
    from msdump.analysis.ranks.job import job_report
    from msdump.analysis.ranks.questions import Tables
    from msdump.analysis.ranks.tables import are_tables
    from msdump.formats.selection import StepSelection

    given = [are_tables(path) for path in args.dumps]
    selection = StepSelection(args.rank, iteration=args.iteration)
    problems: list[str] = []
    with ExitStack() as stack:
        if any(given):
            _check_tables_alone(args, given)
            dumps, folders = [], args.dumps
        elif args.replicated or _declares_nothing(args):
            return _answer(_report_without_layouts(args, selection), args, problems)
        else:
            folder = args.tables or stack.enter_context(tempfile.TemporaryDirectory(prefix="msdump-tables-"))
            dumps, folders = args.dumps, [folder]
            problems = _measure(args, folder, selection)
        if args.ask is not None or args.sql is not None:
            status = query_tables(args, folders)
            return INCOMPLETE if status == FINE and problems else status
        tables = Tables(folders, args.golden, selection)
        report = job_report(tables, dumps, tolerance=args.tolerance)
    return _answer(report, args, problems)


def _answer(report: JobReport, args: argparse.Namespace, problems: list[str]) -> int:
    status = FOUND if report.has_finding else FINE
    if status == FINE and (report.gaps or problems or report.damaged):
        status = INCOMPLETE
    if not write_json(args, lambda: _value(report, problems), is_brief=not args.shows_all):
        _print(report, args, status)
    complain_of_damaged(report.damaged)
    return status


def _check_tables_alone(args: argparse.Namespace, given: list[bool]) -> None:
    if not all(given):
        raise ConfigError("DIR: expected dumps or folders of tables, got both. Measure the dumps with --tables first.")
    if args.tables or args.part or args.mesh or args.dims or args.strategy or args.replicated:
        raise ConfigError(
            "--tables, --part, --mesh, --dims, --strategy, --replicated: expected them with dumps, got tables."
        )


def _is_asked_for_tables(args: argparse.Namespace) -> bool:
    return bool(args.ask or args.sql or args.golden or args.tables or args.part or args.local)


def _declares_nothing(args: argparse.Namespace) -> bool:
    """Whether neither a layout.json nor an option says what must be equal: then nothing need be measured."""
    from msdump.analysis.ranks.replicated import is_declared

    is_told = _is_asked_for_tables(args) or args.mesh or args.dims or args.strategy
    return not (is_told or is_declared(args.dumps))


def _report_without_layouts(args: argparse.Namespace, selection: StepSelection) -> JobReport:
    from msdump.analysis.ranks.replicated import replicated_report, undeclared_report

    if not args.replicated:
        return undeclared_report(args.dumps, selection)
    if _is_asked_for_tables(args) or args.mesh or args.dims or args.strategy:
        raise ConfigError(
            "--replicated: expected it alone, got it with --ask, --sql, --golden, --tables, --part, --local, --mesh, "
            "--dims or --strategy. It makes no tables and says itself what must be equal."
        )
    with progress_bar("ranks", sys.stderr, args.json == "-", RANKS) as advance:
        return replicated_report(args.dumps, selection, advance)


def _measure(args: argparse.Namespace, folder: str, selection: StepSelection) -> list[str]:
    """Write the tables of the dumps.   Returns: what is wrong with them, which is said as well."""
    from msdump.analysis.ranks.job import write_tables

    with progress_bar("ranks", sys.stderr, args.json == "-", FILES) as advance:
        parts = write_tables(
            args.dumps, folder, selection, engine=args.engine, jobs=args.jobs, part=args.part,
            is_forced=args.force, rules=selected_shardings(args), is_local=args.local, progress=advance,
        )  # fmt: skip
    problems = [f"{part.unit.part_name}: {part.problem}" for part in parts if part.problem]
    problems += [f"{path}: {error}" for part in parts for path, error in part.damaged]
    for problem in problems:
        complain(f"damaged: {problem}")
    return problems


def _print(report: JobReport, args: argparse.Namespace, status: int) -> None:
    from msdump.analysis.ranks.job import rows_as_values
    from msdump.analysis.ranks.tables import shown_ranks
    from msdump.analysis.ranks.words import verdict

    most = None if args.shows_all else ROWS
    for sentence in verdict(report):
        say_answer([sentence], status)
    if args.brief:
        found = [
            (
                shown_ranks(row["suspects"]) or "-",
                f"{row['name']}@{(row['suspects'] or row['equal_ranks'])[0]}.{row['graph']}.{row['iteration']}",
                operand(row["io"], row["slot"]),
            )
            for row in rows_as_values(report.unequal)
        ]
        if found:
            print_table(messages("outvoted", "id", "tensor"), found, sys.stdout, most=FINDINGS)
        elif not report.compared:
            say(_nothing_to_compare(args))
        elif status == FINE:
            say_answer([message("equal: all ranks agree")], status)
        elif status == INCOMPLETE:
            say_answer([message("all of them are equal")], status)
            for gap in report.gaps[:FINDINGS]:
                say(message("incomplete: {gap}", gap=gap))
        return
    machines = len({host for host in report.hosts.values() if host is not None})
    ranks: str = counted(len(report.hosts), "{count} rank", "{count} ranks")
    if machines:
        on = counted(machines, "{count} machine", "{count} machines")
        ranks = message("{ranks} on {machines}", ranks=ranks, machines=on)
    tensors = counted(report.compared, "{count} tensor", "{count} tensors")
    say(message("{ranks}, {tensors} that must be equal", ranks=ranks, tensors=tensors))
    for gap in report.gaps:
        say(message("incomplete: {gap}", gap=gap))
    for note in report.notes:
        say(message("note: {note}", note=note))
    if not report.compared:
        say(_nothing_to_compare(args))
    if report.unhashed:
        why = message("as the dump has statistics alone: max, min and l2norm are compared, which do not show every "
            "difference")  # fmt: skip
        if report.unhashed == report.compared:
            say(message("note: no hashes, {why}", why=why))
        else:
            say(message("note: no hashes of {count} of them, {why}", count=report.unhashed, why=why))
    if report.unequal.rows:
        _print_unequal(report, most)
    if report.messages.rows:
        _print_messages(report, most)
    if report.suspects:
        others = message("suspects, outvoted by the other ranks:")
        say("\n" + (others if report.unequal.rows else message("suspects:")))
        rows = [(str(rank), report.hosts.get(rank) or "-", str(count)) for rank, count in report.suspects.items()]
        print_table(messages("rank", "host", "tensors"), rows, sys.stdout, numbers=(0, 2))
    if report.compared and not report.unequal.rows and not report.messages.rows:
        say(message("all of them are equal"))
    if report.outliers.rows:
        tensors = counted(len(report.outliers.rows), "{count} tensor", "{count} tensors")
        say("\n" + message("{tensors} far from the median of the ranks, the farthest first:", tensors=tensors))
        names = messages("rank", "name", "iteration", "io", "slot", "l2norm", "median", "deviations")
        _print_columns(report.outliers, names, most and most // 2)
    if report.first is not None:
        _print_first(report.first, most)
    say_next(_next_steps(report, args))


def _next_steps(report: JobReport, args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    from msdump.analysis.find.hints import command_line, operator_word, path_word
    from msdump.analysis.ranks.tables import are_tables

    word = path_word(args.dumps[0])
    if are_tables(args.dumps[0]):
        yield (
            command_line("ranks", word, "--ask", "outliers"),
            message("tensors that are far from those of other ranks"),
        )
        return
    row = report.first_disagreement
    if not report.compared and not args.replicated and len(report.hosts) > 1:
        yield (
            command_line("ranks", word, "--replicated"),
            message("if all ranks are replicas: parameters and buffers must be equal after each step"),
        )
        yield (
            command_line("ranks", word, "--ask", "outliers"),
            message("tensors that are far from those of other ranks"),
        )
    if row is not None:
        rank = (row["suspects"] or row["equal_ranks"])[0]
        steps = ("--rank", str(rank), "--graph", str(row["graph"]), "--iteration", str(row["iteration"]))
        yield (
            command_line("show", word, operator_word(row["name"]), *steps),
            message("its tensors on rank {rank}", rank=rank),
        )
    yield command_line("nan", word), message("where a NaN or Inf came from, on any rank")
    yield command_line("view", word), message("all ranks in the browser")


def _print_unequal(report: JobReport, most: int | None) -> None:
    say("\n" + message("tensors that must be equal and are not, the first on top:"))
    if not any(row[-1] for row in report.unequal.rows):
        say(message("no majority: with two ranks alone it is unknown which is wrong"))
    titles = messages("outvoted", "name", "tensor", "iteration", "graph", "what", "ranks")
    rows = [_cells(dict(zip(report.unequal.titles, row, strict=True))) for row in report.unequal.rows]
    print_table(titles, rows, sys.stdout, most=most)


def _print_messages(report: JobReport, most: int | None) -> None:
    say("\n" + message("messages that arrived as something else than was sent:"))
    _print_columns(report.messages, messages("suspects", "message", "iteration", "send", "receive", "cause"), most)


def _print_first(answer: Answer, most: int | None) -> None:
    if not answer.rows:
        say("\n" + message("all ranks agree with the golden job"))
        return
    ranks = counted(len(answer.rows), "{count} rank", "{count} ranks")
    names = messages("rank", "name", "iteration", "graph", "io", "slot", "l2norm", "golden l2norm", "error")
    text = message(
        "first tensor that differs from the golden job, of {ranks}, the first of the job on top:", ranks=ranks
    )
    say("\n" + text)
    _print_columns(answer, names, most and most // 2)


def _print_columns(answer: Answer, titles: Sequence[str], most: int | None) -> None:
    columns = [answer.titles.index(title) for title in titles]
    print_table(titles, [[_text(row[column]) for column in columns] for row in answer.rows], sys.stdout, most=most)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    from msdump.analysis.ranks.tables import shown_ranks
    from msdump.analysis.ranks.words import shown_subject

    suspects = shown_ranks(row["suspects"]) if row["has_majority"] else _NO_MAJORITY
    ranks = shown_ranks(row["equal_ranks"])
    tensor, what = operand(row["io"], row["slot"]), shown_subject(row["subject"] or "-")
    return suspects, row["name"], tensor, str(row["iteration"]), str(row["graph"]), what, ranks


_NO_MAJORITY = message("no majority")
_NOTHING_TO_COMPARE = message("nothing to compare: no layout.json says that tensors of several ranks must be equal")
_NOTHING_REPLICATED = message("nothing to compare: no parameter or buffer was dumped by several ranks")


def _nothing_to_compare(args: argparse.Namespace) -> str:
    return _NOTHING_REPLICATED if args.replicated else _NOTHING_TO_COMPARE


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else "-" if value is None else str(value)


def _value(report: JobReport, problems: list[str]) -> dict[str, Any]:
    from msdump.analysis.ranks.job import rows_as_values

    return {
        "ranks": [{"rank": rank, "host": host} for rank, host in report.hosts.items()],
        "gaps": report.gaps,
        "notes": report.notes,
        "compared": report.compared,
        "unequal": rows_as_values(report.unequal),
        "undeclared": rows_as_values(report.undeclared),
        "unhashed": report.unhashed,
        "messages": rows_as_values(report.messages),
        "suspects": [{"rank": rank, "tensors": count} for rank, count in report.suspects.items()],
        "outliers": rows_as_values(report.outliers),
        "first_divergence": None if report.first is None else rows_as_values(report.first),
        "problems": problems,
    }
