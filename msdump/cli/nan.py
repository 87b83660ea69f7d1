"""`msdump nan DIR`: the first NaN, the first unexpected Inf, their source lines, and what grew before them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msdump.cli.exit_status import FINE, FOUND, INCOMPLETE
from msdump.cli.options import (
    FINDINGS,
    add_all_option,
    add_brief_option,
    add_json_option,
    add_step_options,
    selected_steps,
    write_json,
)
from msdump.cli.printing import complain_of_damaged, print_table, progress_bar, say, say_answer, say_next

if TYPE_CHECKING:
    from msdump.analysis.find.between import BadGradients
    from msdump.analysis.find.nan import BadTensor, BenignInf, Growth, NonFinite, NonFiniteReport
    from msdump.analysis.steps import Operator

_EPILOG = """
Takes tensors or statistics alone (statistic.csv), of a whole dump, of one folder, or one file.
An Inf is benign when it comes from a constant, or when all that read it stop it: a softmax, a choice (where, gather),
an extreme (max, clamp, relu), a function with a bound (sigmoid). A NaN is benign when a choice drops it and no gradient
brings it back. A step that a scaler of the loss skipped is no finding. What grew: the first tensor whose largest
absolute value is 100 times that of the iteration before, where a NaN or Inf follows; with --all in any case.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Find the first NaN and the first unexpected Inf, the operators they infect, and what grew before."
    )
    parser.epilog = _EPILOG
    parser.add_argument("dump", metavar="DIR", help="a dump, any folder of one, or a statistic.csv")
    add_step_options(parser)
    add_all_option(parser, "name those of every step, not only the first")
    add_brief_option(parser)
    add_json_option(parser)
    parser.add_argument("--threads", type=int, metavar="N", help="threads (one for each core)")


def run(args: argparse.Namespace) -> int:
    """Look; the result is the exit status that `--help` explains."""
    from msdump.analysis.find.nan import find_non_finite

    with progress_bar("nan", sys.stderr) as advance:
        report = find_non_finite(
            args.dump,
            **selected_steps(args),
            thread_count=args.threads,
            progress=advance,
        )
    is_found = bool(report.steps) or report.between is not None
    status = FOUND if is_found else INCOMPLETE if report.damaged else FINE
    if not write_json(args, lambda: _value(report), is_brief=not args.shows_all):
        if args.brief:
            _print_brief(report, status)
        else:
            _print_findings(report, args.dump, args.shows_all, status)
            say_next(_next_steps(report, args.dump))
    complain_of_damaged(report.damaged)
    return status


def _value(report: NonFiniteReport) -> dict[str, Any]:
    # All of analysis, which only a document needs.
    from msdump.analysis.overview.answers import non_finite_value

    return non_finite_value(report)


def _print_brief(report: NonFiniteReport, status: int) -> None:
    from msdump.analysis.find.nan import NAN
    from msdump.analysis.steps import operator_id

    _print_between(report.between)
    if report.first is None:
        say_answer([f"finite: {report.tensor_count} tensors of {report.step_count} steps."], status)
        return
    first = report.first
    kind = "NaN" if first.kind == NAN else "unexpected Inf"
    say_answer(
        [f"first {kind}, {_head(first)}: {first.operator.label} ({first.operator.op_type}), {first.step}"], FOUND
    )
    if first.line is not None:
        say(f"  {first.line}  {first.line.code.strip()}")
    results = [*report.firsts, *(one for one in (*report.nan, *report.inf) if one not in report.firsts)]
    rows = [
        (one.kind, operator_id(one.step, one.operator), one.how, "-" if one.line is None else str(one.line))
        for one in results
    ]
    print_table(("verdict", "id", "how", "line"), rows, sys.stdout, most=FINDINGS)


def _next_steps(report: NonFiniteReport, dump: str) -> Iterator[tuple[str, str]]:
    from msdump.analysis.find.hints import command_line, operator_line, path_word, zoom_line
    from msdump.analysis.steps import STATISTIC

    first = report.first
    if first is None:
        yield command_line("stat", path_word(dump), "--sort", "max"), "the largest values"
    else:
        yield operator_line("show", dump, first.operator, first.step), "its tensors, attributes and source"
        if first.tensors[0].tensor.file.form == STATISTIC:
            yield zoom_line(dump, first.operator), "dumps its tensors"
        elif first.how == "made":
            yield operator_line("replay", dump, first.operator, first.step), "the operator again on its inputs"
    yield command_line("view", path_word(dump)), "all of it in the browser"


def _print_findings(report: NonFiniteReport, dump: str, shows_all: bool, status: int) -> None:
    from msdump.analysis.find.nan import INF, NAN

    _print_between(report.between)
    if not report.steps:
        benign = {record.kind for record in report.benign}
        nan = "no NaN that was not dropped" if NAN in benign else "no NaN"
        inf = "no Inf that was not meant" if INF in benign else "no Inf"
        say_answer(
            [f"finite: {report.tensor_count} tensors of {report.step_count} steps hold {nan} and {inf}."], status
        )
    else:
        kinds = {NAN: ("NaN", report.nan), INF: ("unexpected Inf", report.inf)}
        for first in report.firsts:
            name, results = kinds.pop(first.kind)
            where = "" if report.between is None else "of what was dumped, "
            for result in results if shows_all else [first]:
                _print_first(result, name, dump, where)
        for name, _ in kinds.values():
            say(f"no {name}")
        if not shows_all and len(report.steps) > 1:
            say(f"{len(report.steps) - 1} more steps hold NaN or Inf (--all)")
    _print_skipped(report)
    _print_benign(report.benign, shows_all)
    if report.grew is not None and _leads(report.grew, report.first):
        _print_growth(report.grew, "what grew first")
    elif report.grew is not None and shows_all:
        _print_growth(report.grew, "no finding, but this rose")


def _print_between(found: BadGradients | None) -> None:
    """Gradients of an iteration that was not dumped, where they came before all that was."""
    if found is not None:
        say_answer([f"first NaN or Inf: {found}, which was not dumped"], FOUND)
        say(f"  {found.advice}")


def _print_first(result: NonFinite, kind: str, dump: str, where: str = "") -> None:
    from msdump.analysis.find.hints import show_line

    operator = result.operator
    text = f"{where}first {kind}, {_head(result)}: {operator.label} ({operator.op_type}), {result.step}"
    say_answer([text], FOUND)
    if result.line is not None:
        say(f"  {result.line}  {result.line.code.strip()}")
    if result.inner_line is not None:
        say(f"    in {result.inner_line}  {result.inner_line.code.strip()}")
    for tensor in result.tensors:
        name = f" ({result.parameter})" if result.parameter is not None and tensor.io == "input" else ""
        say(f"  {tensor.io} {tensor.slot}{name}: {_tensor_text(tensor)}")
    if result.shows is not None:
        step, reader = result.shows
        say(f"  nothing of its own iteration reads it; {reader.label} does in {step}")
    for name, value in result.attributes:
        say(f"  attribute {name}: {value}")
    if result.stage:
        say(f"  {_STAGES[result.stage]}")
    if result.after is not None:
        say(f"  {result.after} had ended without one just before")
    if result.how == "came in":
        say(f"  what came in, and what was there before: {show_line(dump, operator.label, result.step)}")
    for label, operators in (
        ("made of the Inf of", result.sources),
        ("infects", result.infected),
        ("stops at", result.stopped),
        ("comes back with the gradient, in", result.returns),
        ("made elsewhere too", result.also_made),
    ):
        _print_operators(label, operators)
    if result.parameters:
        say(f"  parameters after the step: {', '.join(result.parameters)}")


def _head(result: NonFinite) -> str:
    if result.how == "made":
        if result.attributes and not result.sources:
            return f"made by its attribute {result.attributes[0][0]}"
        return "made out of Inf" if result.sources else "made out of finite inputs"
    return _HEADS[result.how]


def _print_operators(label: str, operators: Sequence[Operator]) -> None:
    if not operators:
        return
    say(f"  {label}: {len(operators)} operators")
    for operator in operators[:_SHOWN]:
        say(f"    {operator.label}")
    if len(operators) > _SHOWN:
        say(f"    and {len(operators) - _SHOWN} more")


def _print_benign(benign: Sequence[BenignInf], shows_all: bool) -> None:
    """One line for each operator, independent of the number of its steps."""
    steps: dict[str, int] = {}
    for record in benign:
        verb = "stopped" if record.kind == "Inf" else "dropped"
        stops = ", ".join(dict.fromkeys(stop.label for stop in record.stops[:3]))
        reasons = ["from a constant"] if record.how == "constant" else []
        reasons += [f"{verb} by {stops}"] if stops else []
        text = f"{record.kind}: {record.operator.label} ({record.operator.op_type}), {'; '.join(reasons)}"
        steps[text] = steps.get(text, 0) + 1
    shown = list(steps.items()) if shows_all else list(steps.items())[:_SHOWN]
    for text, count in shown:
        say(f"benign {text}" + (f" (in {count} steps)" if count > 1 else ""))
    if len(shown) < len(steps):
        say(f"benign: {len(steps) - len(shown)} more operators (--all)")


def _print_skipped(report: NonFiniteReport) -> None:
    """One line for all steps of training that came to nothing, as the scaler of the loss is there for."""
    if report.skipped:
        iterations = dict.fromkeys(result.step.iteration for result in report.skipped)
        shown = ", ".join(map(str, list(iterations)[:_SHOWN])) + (" and more" if len(iterations) > _SHOWN else "")
        say(f"skipped by the scaler of the loss, whose gradients were too large: iteration {shown}")


def _leads(growth: Growth, first: NonFinite | None) -> bool:
    """Whether what grew can have become what is not finite: it did so before, in the same process."""
    if first is None or growth.step.rank_id != first.step.rank_id:
        return False
    return (growth.step.iteration or 0) <= (first.step.iteration or 0)


def _print_growth(growth: Growth, what: str) -> None:
    tensor = f"{growth.io} {growth.slot} of {growth.operator.label} ({growth.operator.op_type})"
    say(f"{what}: {tensor}, {growth.step}")
    if growth.line is not None:
        say(f"  {growth.line}  {growth.line.code.strip()}")
    before = f"iteration {growth.before.iteration}" if growth.before.iteration is not None else str(growth.before)
    say(
        f"  largest absolute value {growth.largest:.6g}, {growth.factor:.3g} times the {growth.largest_before:.6g} "
        f"of {before}"
    )


_SHOWN = 10
_HEADS = {
    "came in": "came in from outside; the first operator that reads it",
    "data": "came in with the data; the first operator that reads it",
    "received": "brought from another process by a collective",
    "unknown": "made by an operator whose inputs are not in the dump, or by one before it",
}
_STAGES = {
    "loss": "made in the loss, after the model's output",
    "after output": "made after the model's output, in code that is not in the dump: the loss, or code between graphs",
}


def _tensor_text(tensor: BadTensor) -> str:
    shape = list(tensor.tensor.shape)
    if tensor.nan is None or tensor.inf is None:
        return f"{tensor.tensor.dtype} {shape}, not finite"
    if not tensor.health.is_counted:
        kinds = " and ".join(kind for kind, count in (("NaN", tensor.nan), ("Inf", tensor.inf)) if count)
        return f"{tensor.tensor.dtype} {shape}, holds {kinds}"
    return f"{tensor.tensor.dtype} {shape}, {tensor.nan} NaN, {tensor.inf} Inf"
