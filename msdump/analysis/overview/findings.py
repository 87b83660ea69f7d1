"""Findings on a dump, as sentences with a line of the user's script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msdump.analysis.compare.judge import verdict_of
from msdump.analysis.compare.result import Comparison
from msdump.analysis.compare.sentences import evidence_texts, headline
from msdump.analysis.compare.verdict import MINE, Place, Reason
from msdump.analysis.find.nan import HOW, MADE, NAN, NonFinite, initial_text
from msdump.analysis.learning.words import details, sentence
from msdump.analysis.overview.contents import Contents
from msdump.analysis.steps import Operator, StepKey, place_text
from msdump.graph.types import SourceLine
from msdump.tables.messages import COMMA, counted, joined, message, operand

# Kind of a finding -> how its title begins, and what it means.
KINDS = {
    "rank": (message("ranks disagree"), "The first tensor that must be equal on several ranks and is not."),
    "first-nan": (message("first NaN"), "The first operator of the dump that has a NaN."),
    "first-inf": (message("first Inf"), "The first operator of the dump that has an unexpected Inf."),
    "learning": (
        message("the training"),
        "What of the training learns nothing, stands still or grows, from its first iteration on.",
    ),
    "first-wrong": (
        message("first wrong operator"),
        "The first operator whose inputs agree with those of the golden dump and whose output does not.",
    ),
    "first-difference": (message("first difference"), "The first operator that differs from that of the golden dump."),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding.

    kind   of KINDS
    title  kind and operator
    text   what was seen, of several lines
    why    the cause, where it is known: what two operators have that is not alike, what ranks disagree about
    line   of the user's script; None where the dump does not tell it
    """

    kind: str
    title: str
    text: str
    step: StepKey
    operator: Operator
    line: SourceLine | None
    why: tuple[str, ...] = ()


def findings(contents: Contents) -> list[Finding]:
    """What the ranks disagree about, where that is asked; the first NaN and the first unexpected Inf, the earlier one
    first; why the training does not learn; and where the dump parts from its golden one. Each if it is there.

    Raises: as `Contents`.
    """
    report = contents.non_finite
    found = list(_of_job(contents))
    found += [_of_value(result, report.initial if result is report.first else ()) for result in report.firsts]
    found += [
        Finding("learning", sentence(one), joined("\n", details(one)), one.step, one.operator, one.line)
        for one in report.learning
    ]
    if contents.comparison is not None:
        found += _of_comparison(contents.comparison)
    return found


def _of_job(contents: Contents) -> Iterator[Finding]:
    """The vote of the ranks, at the operator of the rank that is outvoted, or of the first that differs."""
    job = contents.job
    if job is None:
        return
    from msdump.analysis.ranks.job import rows_as_values
    from msdump.analysis.ranks.words import headlines, verdict

    first = job.first_disagreement
    places = [] if first is None else [(first["name"], first["iteration"], first["suspects"], first["graph"])]
    if job.undeclared.rows:
        row = rows_as_values(job.undeclared)[0]
        places.append((row["name"], row["iteration"], row["suspects"] or row["ranks"], None))
    sentences = zip(headlines(job), verdict(job), places, strict=True)
    for title, text, (name, iteration, ranks, graph) in sentences:
        for each in contents.operators:
            names = each.operator.full_name, each.operator.op_name
            is_there = each.step.rank_id == ranks[0] and each.step.iteration == iteration and name in names
            if is_there and graph in (None, each.step.graph_id):
                yield Finding("rank", title, text, each.step, each.operator, each.line)
                break


def _of_value(result: NonFinite, initial: tuple[str, ...]) -> Finding:
    kind = "first-nan" if result.kind == NAN else "first-inf"
    operator = result.operator
    how = message("made out of finite inputs") if result.how == MADE and not result.sources else HOW[result.how]
    place = place_text(operator, result.step)
    lines: list[str] = [message("{operator}: {how}", operator=place, how=how)]
    for bad in result.tensors:
        what = {"operand": operand(bad.io, bad.slot), "dtype": bad.tensor.true_dtype, "shape": list(bad.tensor.shape)}
        if bad.nan is None or bad.inf is None:
            lines.append(message("{operand}: {dtype} {shape}, not finite", **what))
        else:
            lines.append(message("{operand}: {dtype} {shape}, {nan} NaN, {inf} Inf", **what, nan=bad.nan, inf=bad.inf))
    if initial:
        lines.append(initial_text(initial))
    if result.infected:
        lines.append(
            message(
                "infects {operators}", operators=counted(len(result.infected), "{count} operator", "{count} operators")
            )
        )
    if result.parameters:
        lines.append(message("parameters after the step: {names}", names=joined(COMMA, result.parameters)))
    return _finding(kind, lines, result.step, operator, result.line)


def _of_comparison(comparison: Comparison) -> Iterator[Finding]:
    """The fault of a comparison: the operator that goes wrong by itself, or adds out of proportion; or else the first
    that differs. Of one that golden alone has: mine's operator that lacks it.
    """
    verdict = verdict_of(comparison)
    fault = verdict.fault
    if fault is None:
        return
    place = fault.place
    if place.side != MINE:
        if fault.result is None:
            return
        place = Place(MINE, fault.result.step, fault.result.pair.mine, fault.reader_line)
    kind = "first-wrong" if fault.reason in (Reason.WRONG, Reason.QUANTISED) else "first-difference"
    lines = headline(comparison, verdict)
    # What codes of a model cost is said in its first line.
    why = [lines[0]] if fault.reason is Reason.QUANTISED else evidence_texts(fault)
    yield _finding(kind, lines, place.step, place.operator, place.line, tuple(why))


def _finding(
    kind: str,
    lines: list[str],
    step: StepKey,
    operator: Operator,
    line: SourceLine | None,
    why: tuple[str, ...] = (),
) -> Finding:
    title = message("{finding}: {name}", finding=KINDS[kind][0], name=operator.label)
    return Finding(kind, title, joined("\n", lines), step, operator, line, why)
