"""What ranks disagree about, in sentences."""

from __future__ import annotations

from typing import Any

from msdump.analysis.ranks.job import JobReport, rows_as_values
from msdump.analysis.ranks.subjects import GRADIENT_OF
from msdump.analysis.ranks.tables import shown_ranks
from msdump.tables.messages import COMMA, Message, joined, message, operand

_MOST_NAMES = 8


def verdict(report: JobReport) -> list[str]:
    """What is wrong, in a sentence for each kind: who is outvoted, when and about what; what nothing declares equal."""
    sentences: list[str] = []
    first = report.first_disagreement
    if first is not None:
        read = joined(COMMA, (first["name"], operand(first["io"], first["slot"])))
        is_parameter = first["subject"] == first["name"]
        what = read if first["subject"] is None else shown_subject(first["subject"])
        where = message("graph {graph}", graph=first["graph"])
        sentence = message(
            "{who}, first in iteration {iteration}: {what} ({where}), which {ranks} must share",
            who=_outvoted(first), iteration=first["iteration"], what=what,
            where=where if what == read or is_parameter else joined(COMMA, (where, read)),
            ranks=_ranks(first["equal_ranks"]),
        )  # fmt: skip
        sentences.append(sentence)
    undeclared = [_undeclared(row) for row in rows_as_values(report.undeclared)]
    if undeclared:
        names = joined(COMMA, undeclared[:_MOST_NAMES])
        if len(undeclared) > _MOST_NAMES:
            names = message("{names} and {more} more", names=names, more=len(undeclared) - _MOST_NAMES)
        sentences.append(message("differs between ranks, not declared equal by anything: {names}", names=names))
    return sentences


def headlines(report: JobReport) -> list[str]:
    """`verdict` at a glance: who has what from which iteration on."""
    found: list[str] = []
    first = report.first_disagreement
    if first is not None:
        what = first["name"] if first["subject"] is None else shown_subject(first["subject"])
        of_rank = {"ranks": _ranks(first["suspects"]), "name": what, "iteration": first["iteration"]}
        later = {row["iteration"] for row in rows_as_values(report.unequal) if row["subject"] == first["subject"]}
        if len(later) > 1:
            found.append(message("{ranks}: {name} differs from iteration {iteration} on", **of_rank))
        else:
            found.append(message("{ranks}: {name} differs in iteration {iteration}", **of_rank))
    return found + verdict(report)[len(found) :]


def shown_subject(subject: str) -> str:
    """What a tensor is: a parameter by its name, or its gradient."""
    if subject.startswith(GRADIENT_OF):
        return message("gradient of {name}", name=subject.removeprefix(GRADIENT_OF))
    return subject


def _outvoted(row: dict[str, Any]) -> Message:
    ranks = _ranks(row["suspects"])
    if not row["has_majority"]:
        return message("{ranks} differ, without a majority", ranks=ranks)
    is_one = len(row["suspects"]) == 1
    return message("{ranks} is outvoted", ranks=ranks) if is_one else message("{ranks} are outvoted", ranks=ranks)


def _undeclared(row: dict[str, Any]) -> Message:
    name, iteration = row["name"], row["iteration"]
    if not row["suspects"]:
        return message("{name} (from iteration {iteration} on)", name=name, iteration=iteration)
    return message(
        "{name} (from iteration {iteration} on, {ranks} outvoted)",
        name=name, iteration=iteration, ranks=_ranks(row["suspects"]),
    )  # fmt: skip


def _ranks(ranks: list[int]) -> Message:
    shown = shown_ranks(ranks)
    return message("rank {rank}", rank=shown) if len(ranks) == 1 else message("ranks {ranks}", ranks=shown)
