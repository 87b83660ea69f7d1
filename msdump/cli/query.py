"""Queries of the tables of a job: of `msdump ranks --ask` and `--sql`, and `msdump query` as it was."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from msdump.cli.exit_status import FINE, FOUND, INCOMPLETE
from msdump.cli.options import add_all_option, add_json_option, write_json
from msdump.cli.printing import ROWS, complain_of_damaged, print_table, say

ASKS = ("hashes", "messages", "outliers", "first-divergence")
QUERY_HELP = """\
questions:
  hashes             tensors that must be equal on some ranks by layout.json and are not; who is outvoted
  messages           what one rank sent to another and did not arrive as it was sent
  outliers           tensors of ranks whose l2norm is far from the median of all ranks
  first-divergence   of each rank and of the job, the first tensor that differs from --golden

SQL is DuckDB's, about the table `tensors` (and `golden`), with the columns of docs/exports.md, `host`, `placements` and
`equal_ranks`, such as "select rank, max(l2norm) from tensors group by rank"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Ask the tables of a job, which `msdump stat DIR --tables FOLDER` writes (needs duckdb)."
    parser.epilog = QUERY_HELP
    add = parser.add_argument
    add("tables", metavar="TABLES", help="folder of tables, or one of them")
    add("sql", metavar="SQL", nargs="?", help="a question of your own")
    add("--ask", choices=ASKS, help="a ready question (without SQL: hashes)")
    add("--golden", metavar="TABLES", help="tables of a job to compare with")
    add("--read-only", action="store_true", help="refuse SQL that writes, or reads another file than the tables")
    add("--tolerance", type=float, default=1e-5, metavar="X", help="relative difference that agrees (%(default)s)")
    add_all_option(parser)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Ask; the result is the exit status that `--help` explains."""
    return query_tables(args, args.tables)


def query_tables(args: argparse.Namespace, folders: str | Sequence[str]) -> int:
    """Answer `args.sql` or `args.ask` from tables; the exit status."""
    from msdump.analysis.ranks.questions import Tables

    tables = Tables(folders, args.golden)
    if args.sql is not None:
        if args.read_only:
            tables.confine()
        answer = tables.answer(args.sql)
    elif args.ask == "outliers":
        answer = tables.outliers()
    elif args.ask == "messages":
        answer = tables.messages()
    elif args.ask == "first-divergence":
        answer = tables.first_divergence(args.tolerance)
    else:
        answer = tables.hashes()
    if not write_json(args, lambda: _value(answer)):
        if answer.rows:
            rows = [[_text(cell) for cell in row] for row in answer.rows]
            most = None if args.shows_all else ROWS
            print_table(answer.titles, rows, sys.stdout, named=range(len(answer.titles)), most=most)
        else:
            say("nothing found")
    complain_of_damaged(tables.damaged)
    if tables.damaged:
        return INCOMPLETE
    return FOUND if answer.rows and args.sql is None else FINE


def _value(answer: Any) -> dict[str, Any]:
    return {"columns": answer.titles, "rows": [[_plain(cell) for cell in row] for row in answer.rows]}


def _plain(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, (bool, int, float, str, list)) else str(cell)


def _text(cell: Any) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:g}"
    return ", ".join(map(str, cell)) if isinstance(cell, list) else str(cell)
