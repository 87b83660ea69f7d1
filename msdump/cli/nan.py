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
from msdump.cli.printing import complain_of_damaged, print_table, progress_bar, say, say_answer, say_lost, say_next
from msdump.tables.messages import AND, COLON, COMMA, SEMICOLON, Message, counted, joined, message, messages, operand

if TYPE_CHECKING:
    from msdump.analysis.find.between import BadGradients
    from msdump.analysis.find.nan import BadTensor, BenignInf, Growth, NonFinite, NonFiniteReport
    from msdump.analysis.learning.kinds import LearningFinding
    from msdump.analysis.steps import Operator, StepKey

_EPILOG = """
Takes tensors or statistics alone (statistic.csv), of a whole dump, of one folder, or one file.
An Inf is benign when it comes from a constant, or when all that read it stop it: a softmax, a choice (where, gather),
an extreme (max, clamp, relu), a function with a bound (sigmoid). A NaN is benign when a choice drops it and no gradient
brings it back. A step that a scaler of the loss skipped is no finding. What grew: the first tensor whose largest
absolute value is 100 times that of the iteration before, where a NaN or Inf follows; with --all in any case.
Where all is finite, or before the first NaN: why a training does not learn, grows or stands still, with the line:
parameters without a gradient or with one of 0, without an optimizer, a learning rate of 0, updates too large or too
small, a loss that grows, gradients that vanish or explode.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Find the first NaN and the first unexpected Inf, the operators they infect, what grew before; and why a "
        "training does not learn."
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
    is_found = bool(report.steps or report.learning) or report.between is not None
    status = FOUND if is_found else INCOMPLETE if report.damaged or report.lost else FINE
    if not write_json(args, lambda: _value(report), is_brief=not args.shows_all):
        if args.brief:
            _print_brief(report, status)
            _print_outside(args.dump)
            say_lost(report.lost)
        else:
            _print_findings(report, args.dump, args.shows_all, status)
            _print_outside(args.dump)
            say_lost(report.lost)
            say_next(_next_steps(report, args.dump))
    complain_of_damaged(report.damaged)
    return status


def _value(report: NonFiniteReport) -> dict[str, Any]:
    # All of analysis, which only a document needs.
    from msdump.analysis.overview.answers import non_finite_value

    return non_finite_value(report)


def _print_brief(report: NonFiniteReport, status: int) -> None:
    from msdump.analysis.find.nan import HOW, initial_text
    from msdump.analysis.steps import operator_id

    _print_between(report.between)
    if report.first is None and report.learning:
        _print_learning(report.learning, is_brief=True)
        return
    if report.first is None:
        if status == INCOMPLETE:
            text = message("incomplete: no finding in {tensors} of {steps} that are there.", **_counts(report))
        else:
            text = message("finite: {tensors} of {steps}.", **_counts(report))
        say_answer([text], status)
        _print_untold(report)
        return
    first = report.first
    say_answer([_first_text(first)], FOUND)
    if first.line is not None:
        say(f"  {first.line}  {first.line.code.strip()}")
    if report.initial:
        say("  " + initial_text(report.initial))
    results = [*report.firsts, *(one for one in (*report.nan, *report.inf) if one not in report.firsts)]
    rows = [
        (one.kind, operator_id(one.step, one.operator), HOW[one.how], "-" if one.line is None else str(one.line))
        for one in results
    ]
    print_table(messages("verdict", "id", "how", "line"), rows, sys.stdout, most=FINDINGS)


def _counts(report: NonFiniteReport) -> dict[str, Message]:
    """How many tensors were looked at, in how many steps."""
    return {
        "tensors": counted(report.tensor_count - sum(report.untold.values()), "{count} tensor", "{count} tensors"),
        "steps": counted(report.step_count, "{count} iteration", "{count} iterations"),
    }


def _next_steps(report: NonFiniteReport, dump: str) -> Iterator[tuple[str, str]]:
    from msdump.analysis.find.hints import (
        command_line,
        inside_line,
        operator_line,
        path_word,
        whole_program_line,
        zoom_line,
    )  # fmt: skip
    from msdump.analysis.steps import STATISTIC

    first = report.first
    whole = whole_program_line(dump)
    if whole:
        yield whole, message("all of the program, outside of compiled regions too")
    if first is None and report.learning:
        one = report.learning[0]
        yield operator_line("show", dump, one.operator, one.step), message("its tensors, attributes and source")
    elif first is None:
        yield command_line("stat", path_word(dump), "--sort", "max"), message("the largest values")
    else:
        inside = inside_line(first.operator)
        if inside:
            yield inside, message("the operators inside of what torch.compile made")
        yield operator_line("show", dump, first.operator, first.step), message("its tensors, attributes and source")
        if first.tensors[0].tensor.file.form == STATISTIC:
            yield zoom_line(dump, first.operator), message("dumps its tensors")
        elif first.how == "made":
            yield operator_line("replay", dump, first.operator, first.step), message("the operator again on its inputs")
    yield command_line("view", path_word(dump)), message("all of it in the browser")


def _print_findings(report: NonFiniteReport, dump: str, shows_all: bool, status: int) -> None:
    from msdump.analysis.find.nan import INF, NAN, initial_text

    shown: list[NonFinite] = []
    _print_between(report.between)
    if not report.steps:
        _print_learning(report.learning)
        benign = {record.kind for record in report.benign}
        nan = message("no NaN that was not dropped") if NAN in benign else message("no NaN")
        inf = message("no Inf that was not meant") if INF in benign else message("no Inf")
        if status == INCOMPLETE:
            text = message(
                "incomplete: {tensors} of {steps} that are there hold {nan} and {inf}.",
                nan=nan, inf=inf, **_counts(report),
            )  # fmt: skip
        else:
            text = message("finite: {tensors} of {steps} hold {nan} and {inf}.", nan=nan, inf=inf, **_counts(report))
        if report.learning:
            say(text)
        else:
            say_answer([text], status)
    else:
        kinds = {NAN: (message("no NaN"), report.nan), INF: (message("no unexpected Inf"), report.inf)}
        for first in report.firsts:
            _, results = kinds.pop(first.kind)
            shown += results if shows_all else [first]
            for result in results if shows_all else [first]:
                _print_first(result, dump, is_all=report.between is None)
                if result is report.first and report.initial:
                    say("  " + initial_text(report.initial))
        for none, _ in kinds.values():
            say(none)
        if not shows_all:
            _print_others(report)
        _print_learning(report.learning)
    _print_untold(report)
    _print_skipped(report)
    _print_benign(report.benign, shows_all)
    if report.grew is not None and _leads(report.grew, report.first):
        _print_growth(report.grew, message("what grew first"))
    elif report.grew is not None and shows_all:
        _print_growth(report.grew, message("no finding, but this rose"))
    _print_infected(shown)


def _print_infected(found: Sequence[NonFinite]) -> None:
    """Each operator once, however many of the findings have reached it and in however many iterations."""
    origins = {result.operator.label for result in found}
    infected = {operator.label: operator for result in found for operator in result.infected}
    operators = [operator for label, operator in infected.items() if label not in origins]
    if operators:
        count = counted(len(operators), "{count} operator", "{count} operators")
        say(joined(COLON, (message("infects"), count)))
        for operator in operators[:_INFECTED]:
            say(f"  {operator.label}")
        if len(operators) > _INFECTED:
            say("  " + message("and {count} more", count=len(operators) - _INFECTED))


def _print_others(report: NonFiniteReport) -> None:
    """How much more there is than the first findings."""
    others = report.bad_step_count - 1
    if others > 0:
        text = counted(
            others, "{count} more iteration holds NaN or Inf (--all)", "{count} more iterations hold NaN or Inf (--all)"
        )
        say(text)
    elif len(report.steps) > 1:
        say(message("other graphs or ranks of this iteration hold NaN or Inf, too (--all)"))


def _print_learning(found: Sequence[LearningFinding], is_brief: bool = False) -> None:
    """Why the training does not learn, one finding after the other."""
    from msdump.analysis.learning.words import details, sentence

    for one in found[:FINDINGS] if is_brief else found[:_SHOWN]:
        say_answer([sentence(one)], FOUND)
        if one.line is not None:
            say(f"  {one.line}  {one.line.code.strip()}")
        for text in () if is_brief else details(one):
            say("  " + text)


def _print_outside(dump: str) -> None:
    """That the program has more than the dump."""
    from msdump.analysis.find.hints import is_compiled_only
    from msdump.analysis.missing import OUTSIDE

    if is_compiled_only(dump):
        say(OUTSIDE)


def _print_untold(report: NonFiniteReport) -> None:
    """Tensors of which nothing is known: their statistics are their number of elements."""
    for dtype, count in sorted(report.untold.items()):
        tensors = counted(count, "{count} tensor", "{count} tensors")
        say(message("not known: {tensors} of {dtype}, which have no statistics", tensors=tensors, dtype=dtype))


def _print_between(found: BadGradients | None) -> None:
    """Gradients of an iteration that was not dumped, where they came before all that was."""
    if found is not None:
        say_answer([message("first NaN or Inf: {gradients}, which was not dumped", gradients=found)], FOUND)
        say("  " + found.advice)


def _first_text(result: NonFinite) -> Message:
    from msdump.analysis.find.nan import NAN
    from msdump.analysis.steps import place_text

    operator = place_text(result.operator, result.step)
    if result.kind == NAN:
        return message("first NaN, {how}: {operator}", how=_head(result), operator=operator)
    return message("first unexpected Inf, {how}: {operator}", how=_head(result), operator=operator)


def _print_first(result: NonFinite, dump: str, is_all: bool) -> None:
    """is_all: whether no iteration before it was left out"""
    from msdump.analysis.find.hints import show_line

    operator, text = result.operator, _first_text(result)
    say_answer([text if is_all else message("of what was dumped, {finding}", finding=text)], FOUND)
    if result.line is not None:
        say(f"  {result.line}  {result.line.code.strip()}")
    if result.inner_line is not None:
        say("    " + message("in {line}", line=f"{result.inner_line}  {result.inner_line.code.strip()}"))
    for tensor in result.tensors:
        name = f" ({result.parameter})" if result.parameter is not None and tensor.io == "input" else ""
        say("  " + joined("", (operand(tensor.io, tensor.slot), name, COLON, _tensor_text(tensor))))
    if result.shows is not None:
        step, reader = result.shows
        text = message("nothing of its own iteration reads it; {name} does in {where}", name=reader.label, where=step)
        say("  " + text)
    for name, value in result.attributes:
        say("  " + message("attribute {name}: {value}", name=name, value=value))
    if result.stage:
        say("  " + _STAGES[result.stage])
    if result.after is not None:
        say("  " + message("{where} had ended without one just before", where=result.after))
    if result.how == "came in":
        line = show_line(dump, operator.label, result.step)
        say("  " + message("what came in, and what was there before: {command}", command=line))
    for label, operators in (
        (message("made of the Inf of"), result.sources),
        (message("stops at"), result.stopped),
        (message("comes back with the gradient, in"), result.returns),
        (message("made elsewhere too"), result.also_made),
    ):
        _print_operators(label, operators)
    if result.parameters:
        say("  " + message("parameters after the step: {names}", names=joined(COMMA, result.parameters)))


def _head(result: NonFinite) -> str:
    if result.how == "made":
        if result.attributes and not result.sources:
            return message("made by its attribute {name}", name=result.attributes[0][0])
        return message("made out of Inf") if result.sources else message("made out of finite inputs")
    return _HEADS[result.how]


def _print_operators(label: str, operators: Sequence[Operator]) -> None:
    if not operators:
        return
    count = counted(len(operators), "{count} operator", "{count} operators")
    say("  " + joined(COLON, (label, count)))
    for operator in operators[:_SHOWN]:
        say(f"    {operator.label}")
    if len(operators) > _SHOWN:
        say("    " + message("and {count} more", count=len(operators) - _SHOWN))


def _print_benign(benign: Sequence[BenignInf], shows_all: bool) -> None:
    """One line for each operator, independent of the number of its steps."""
    from msdump.analysis.steps import count_iterations

    steps: dict[str, list[StepKey]] = {}
    for record in benign:
        names = joined(COMMA, dict.fromkeys(stop.label for stop in record.stops[:3]))
        reasons = [message("from a constant")] if record.how == "constant" else []
        if names:
            is_inf = record.kind == "Inf"
            reasons.append(
                message("stopped by {names}", names=names) if is_inf else message("dropped by {names}", names=names)
            )
        text = message(
            "benign {kind}: {name} ({type})",
            kind=record.kind, name=record.operator.label, type=record.operator.op_type,
        )  # fmt: skip
        if reasons:
            text = joined(COMMA, (text, joined(SEMICOLON, reasons)))
        steps.setdefault(text, []).append(record.step)
    shown = list(steps.items()) if shows_all else list(steps.items())[:_SHOWN]
    for line, keys in shown:
        count = count_iterations(keys)
        say(message("{benign} (in {count} iterations)", benign=line, count=count) if count > 1 else line)
    if len(shown) < len(steps):
        say(message("benign: {count} more operators (--all)", count=len(steps) - len(shown)))


def _print_skipped(report: NonFiniteReport) -> None:
    """One line for all steps of training that came to nothing, as the scaler of the loss is there for."""
    if report.skipped:
        iterations = dict.fromkeys(result.step.iteration for result in report.skipped)
        shown: str = ", ".join(map(str, list(iterations)[:_SHOWN]))
        if len(iterations) > _SHOWN:
            shown = message("{numbers} and more", numbers=shown)
        say(message("skipped by the scaler of the loss, whose gradients were too large: iteration {numbers}",
            numbers=shown))  # fmt: skip


def _leads(growth: Growth, first: NonFinite | None) -> bool:
    """Whether what grew can have become what is not finite: it did so before, in the same process."""
    if first is None or growth.step.rank_id != first.step.rank_id:
        return False
    return (growth.step.iteration or 0) <= (first.step.iteration or 0)


def _print_growth(growth: Growth, what: str) -> None:
    from msdump.analysis.steps import place_text

    place = place_text(growth.operator, growth.step)
    text = message(
        "{what}: {operand} of {operator}", what=what, operand=operand(growth.io, growth.slot), operator=place
    )
    say(text)
    if growth.line is not None:
        say(f"  {growth.line}  {growth.line.code.strip()}")
    before = growth.before
    if before.iteration is not None:
        before = before._replace(rank_id=None, graph_id=None)
    text = message(
        "largest absolute value {largest:.6g}, {factor:.3g} times the {before:.6g} of {where}",
        largest=growth.largest, factor=growth.factor, before=growth.largest_before, where=before,
    )  # fmt: skip
    say("  " + text)


_SHOWN = 10
_INFECTED = 5
_HEADS = {
    "came in": message("came in from outside; the first operator that reads it"),
    "data": message("came in with the data; the first operator that reads it"),
    "unset": message("in memory that no operator has written; the first operator that reads it"),
    "received": message("brought from another process by a collective"),
    "unknown": message("made by an operator whose inputs are not in the dump, or by one before it"),
}
_STAGES = {
    "loss": message("made in the loss, after the model's output"),
    "after output": message(
        "made after the model's output, in code that is not in the dump: the loss, or code between graphs"
    ),
}


def _tensor_text(tensor: BadTensor) -> str:
    shape = list(tensor.tensor.shape)
    if tensor.nan is None or tensor.inf is None:
        return message("{dtype} {shape}, not finite", dtype=tensor.tensor.dtype, shape=shape)
    if not tensor.health.is_counted:
        kinds = joined(AND, (kind for kind, count in (("NaN", tensor.nan), ("Inf", tensor.inf)) if count))
        return message("{dtype} {shape}, holds {kinds}", dtype=tensor.tensor.dtype, shape=shape, kinds=kinds)
    return message(
        "{dtype} {shape}, {nan} NaN, {inf} Inf",
        dtype=tensor.tensor.dtype, shape=shape, nan=tensor.nan, inf=tensor.inf,
    )  # fmt: skip
