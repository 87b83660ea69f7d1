"""`msdump query TABLES [SQL]`: ready questions about the tables of a job, and questions of your own."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from msdump.cli.exit_status import FINE, FOUND, INCOMPLETE
from msdump.cli.options import add_json_option, write_json
from msdump.cli.printing import complain_of_damaged, print_table, say

_ASKS = ("hashes", "messages", "outliers", "first-divergence")
_EPILOG = """
questions:
  hashes             tensors that must be equal on some ranks by layout.json and are not; who is outvoted
  messages           what one rank sent to another and did not arrive as it was sent
  outliers           tensors of ranks whose l2norm is far from the median of all ranks
  first-divergence   of each rank and of the job, the first tensor that differs from --golden

SQL is DuckDB's, about the table `tensors` (and `golden`), with the columns of docs/exports.md, `host`, `placements` and
`equal_ranks`: msdump query tables "select rank, max(l2norm) from tensors group by rank"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Ask the tables of a job, which `msdump stat DIR --tables FOLDER` writes (needs duckdb)."
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("tables", metavar="TABLES", help="folder of tables, or one of them")
    add("sql", metavar="SQL", nargs="?", help="a question of your own")
    add("--ask", choices=_ASKS, help="a ready question (without SQL: hashes)")
    add("--golden", metavar="TABLES", help="tables of a job to compare with")
    add("--tolerance", type=float, default=1e-5, metavar="X", help="relative difference that agrees (%(default)s)")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Ask; the result is the exit status that `--help` explains."""
    from msdump.analysis.ranks.questions import Answer, Tables

    tables = Tables(args.tables, args.golden)
    if args.sql is not None:
        relation = tables.sql(args.sql)
        answer = Answer(tuple(relation.columns), tuple(relation.fetchall())) if relation is not None else Answer((), ())
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
            print_table(answer.titles, [[_text(cell) for cell in row] for row in answer.rows], sys.stdout)
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
