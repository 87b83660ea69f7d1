"""What ranks disagree about, in sentences."""

from __future__ import annotations

from msdump.analysis.ranks.job import JobReport, rows_as_values
from msdump.analysis.ranks.tables import shown_ranks

_MOST_NAMES = 8


def verdict(report: JobReport) -> list[str]:
    """What is wrong, in a sentence for each kind: who is outvoted, when and about what; what nothing declares equal."""
    sentences = []
    first = report.first_disagreement
    if first is not None:
        operand = f"{first['name']}, {first['io']} {first['slot']}"
        is_parameter = first["subject"] == first["name"]
        what = operand if first["subject"] is None else first["subject"]
        where = f"graph {first['graph']}" + ("" if what == operand or is_parameter else f", {operand}")
        if first["has_majority"]:
            who = f"{_ranks(first['suspects'])} {'is' if len(first['suspects']) == 1 else 'are'} outvoted"
        else:
            who = f"{_ranks(first['suspects'])} differ, without a majority"
        sentences.append(
            f"{who}, first in iteration {first['iteration']}: {what} ({where}), "
            f"which {_ranks(first['equal_ranks'])} must share"
        )
    undeclared = []
    for row in rows_as_values(report.undeclared):
        outvoted = f", {_ranks(row['suspects'])} outvoted" if row["suspects"] else ""
        undeclared.append(f"{row['name']} (from iteration {row['iteration']} on{outvoted})")
    if undeclared:
        more = f" and {len(undeclared) - _MOST_NAMES} more" if len(undeclared) > _MOST_NAMES else ""
        sentences.append(
            f"differs between ranks, not declared equal by anything: {', '.join(undeclared[:_MOST_NAMES])}{more}"
        )
    return sentences


def _ranks(ranks: list[int]) -> str:
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {shown_ranks(ranks)}"
