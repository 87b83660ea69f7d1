"""A verdict in a few sentences, as the terminal, pages and reports show it."""

from __future__ import annotations

from collections.abc import Mapping

from msdump.analysis.compare.hashes import log_place
from msdump.analysis.compare.judge import verdict_of
from msdump.analysis.compare.result import DIFFERS, Comparison, OperatorResult, TensorResult, Tie
from msdump.analysis.compare.ties import CANCELLED, MULTIPLIED, RAISED, why_settled
from msdump.analysis.compare.verdict import (
    MINE,
    Evidence,
    Finding,
    Makers,
    Operand,
    OtherAttribute,
    OtherDtype,
    OtherLaw,
    OtherLayout,
    OtherNumbers,
    OtherOperator,
    Outcome,
    Place,
    Reason,
    Rounded,
    Scaled,
    Smoothed,
    Swapped,
    Verdict,
)
from msdump.analysis.steps import place_text
from msdump.tables.messages import AND, COMMA, Message, counted, joined, message, messages, operand

SIDES: Mapping[str, Message] = {side: side for side in messages("mine", "golden")}
_DEFAULT = message("its default")
_MAX_NAMED = 5


def headline(comparison: Comparison, verdict: Verdict | None = None) -> list[str]:
    """The finding in a few lines, as `msdump compare` prints it: the operator that goes wrong comes first, what it
    repeats, then where differences come in at all.

    verdict  of the comparison, where the caller has it already
    Edges:   one sentence that says so where all agrees; lines after the first may begin with two blanks.
    """
    verdict = verdict_of(comparison) if verdict is None else verdict
    lines = _lines(comparison, verdict)
    if verdict.repeats is None or verdict.fault is None:
        return lines
    first = verdict.repeats.first
    remark = "  " + message(
        "it repeats {name} of the forward pass ({where}) with another result; in golden both are equal",
        name=first.pair.mine.label, where=first.step,
    )  # fmt: skip
    return [lines[0], remark, *lines[1:]]


def _lines(comparison: Comparison, verdict: Verdict) -> list[str]:
    if verdict.fault is None:
        return _agreeing(comparison, verdict)
    lines: list[str] = []
    for finding in verdict.findings:
        of_finding = _finding(comparison, verdict, finding)
        if verdict.is_none_wrong and finding is verdict.findings[-1]:
            lines.append(
                message("no operator goes wrong by itself: none has inputs that agree and an output that does not.")
            )
        lines += of_finding
    return lines


def _agreeing(comparison: Comparison, verdict: Verdict) -> list[str]:
    count = sum(1 for _ in comparison.operators)
    if verdict.outcome is Outcome.INCOMPLETE:
        text = message(
            "incomplete: {count} pairs of operators and parameters agree as far as they can be read; {damaged}.",
            count=count,
            damaged=counted(len(comparison.damaged), "{count} damaged file", "{count} damaged files"),
        )
        return [text]
    quantised = comparison.quantised
    if quantised is not None and any(one.is_quantised for one in quantised.ranking):
        from msdump.analysis.compare.quantised import words

        return [words.agreeing_line(comparison, quantised)]
    draws = comparison.idle_draws
    if draws:
        text = message(
            "agree: all {count} pairs of operators and parameters agree; {draws} of them drew other numbers at "
            "random, which nothing behind them shows.",
            count=count, draws=draws,
        )  # fmt: skip
        return [text]
    if comparison.hashes is not None:
        names = hash_names(comparison)
        return [message("agree: all {count} pairs of operators agree by their hashes ({names}).",
            count=count, names=names)]  # fmt: skip
    agreeing = message("agree: all {count} pairs of operators and parameters agree.", count=count)
    return [agreeing, *_form_notes(comparison), *_tie_lines(comparison)]


def _form_notes(comparison: Comparison) -> list[str]:
    """How many operators make something in another form than their partners, which was not compared."""
    count = sum(bool(one.pair.mine.outputs) and not one.outputs for one in comparison.operators)
    if not count:
        return []
    text = message(
        "not compared: {count}, which both write in their own form, and of which the same is made", count=count
    )
    return ["  " + text]


def _tie_lines(comparison: Comparison) -> list[str]:
    """Where both runs are right, and yet go apart."""
    tie = comparison.tie
    if tie is None:
        return []
    text = message(
        "{what}, in {count} of {size} elements; {reached} operators and parameters differ for such decisions",
        what=_what_decides(tie), count=tie.count, size=tie.size, reached=tie.reached,
    )  # fmt: skip
    if tie.error:
        text = message("{text}, by {error} in a forward pass", text=text, error=error_text(tie.error))
    node = comparison.graphs_of(True).node(tie.result.step, tie.result.pair.mine)
    line = None if node is None else node.own_line
    lines = ["  " + _named(Place(MINE, tie.result.step, tie.result.pair.mine, line)), "  " + text]
    if tie.lost is not None:
        text = message("from {where} on they are so far apart that a fault would not show", where=tie.lost)
        lines.append("  " + text)
    return lines


def _what_decides(tie: Tie) -> str:
    why = why_settled(tie.result)
    if why == CANCELLED:
        return message("sums up terms that cancel, and is left with their rounding")
    if why == RAISED:
        return message("raises exponentials of large numbers, whose rounding they enlarge")
    if why == MULTIPLIED:
        return message("multiplies what it reads, whose errors lie in the largest elements")
    return message("decides by a value that rounding moved across the border")


# -- findings ----------------------------------------------------------------------------------------------------------


def _finding(comparison: Comparison, verdict: Verdict, finding: Finding) -> list[str]:
    quantised = comparison.quantised
    if finding.reason in (Reason.QUANTISED, Reason.LOST) and quantised is not None:
        # Most comparisons need none of it, and start sooner without.
        from msdump.analysis.compare.quantised import words

        if finding.reason is Reason.LOST:
            mover = None if finding.reader is None else finding.place.operator
            return words.lost_lines(comparison, quantised, mover)
        assert quantised.finding is not None
        graphs = comparison.graphs_of(quantised.side == "mine")
        return words.finding_lines(quantised, quantised.finding, graphs)
    if finding.reason is Reason.GOES_ON:
        return _goes_on(comparison, finding)
    if finding.reason is Reason.WRONG:
        return _wrong(comparison, finding)
    if finding.reason is Reason.ONLY_ONE:
        return _only_one_has(finding)
    first = message("first difference: {operator}", operator=_named(finding.place))
    return [first, *("  " + text for text in _came_in(comparison, verdict, finding))]


def _goes_on(comparison: Comparison, finding: Finding) -> list[str]:
    """All that both have agrees, and golden computes further with what mine ends with."""
    beyond = finding.beyond
    count = len(beyond)
    shown = [f"{place.operator.label} ({place.operator.op_type})" for place in beyond[:_MAX_NAMED]]
    names = joined(COMMA, [*shown, "..."] if count > _MAX_NAMED else shown)
    if count > 1:
        names = message("{count} operators that mine has not: {names}", count=count, names=names)
    lines: list[str] = [message("first difference: golden goes on where mine ends, with {names}", names=names)]
    lines += ["  " + _named(place) for place in beyond[:_MAX_NAMED]]
    pairs = sum(1 for _ in comparison.operators)
    return [*lines, "  " + message("all {count} operators that both have agree", count=pairs)]


def _wrong(comparison: Comparison, finding: Finding) -> list[str]:
    result = _result(finding)
    lines: list[str] = [message("first wrong operator: {operator}", operator=_named(finding.place))]
    if finding.updated:
        lines.append("  " + message("it reads the parameter {name}", name=finding.updated))
    lines += ["  " + text for text in evidence_texts(finding)]
    how = error_text(result.input_error)
    if comparison.hashes is not None:
        how = message("hash {names}", names=hash_names(comparison))
    difference = _first_difference(finding)
    if any(isinstance(one, Scaled) and one.is_start for one in finding.evidence):
        lines.append("  " + difference)
    elif finding.unseen:
        names = joined(COMMA, map(_operand_text, finding.unseen))
        text = message("what was compared of its inputs agrees ({how}), not {names}; {difference}",
            how=how, names=names, difference=difference)  # fmt: skip
        lines.append("  " + text)
    else:
        lines.append("  " + message("its inputs agree ({how}), {difference}", how=how, difference=difference))
    if result.added_error is not None:
        lines.append("  " + message("it adds an error of {error}", error=error_text(result.added_error)))
    return lines


def _only_one_has(finding: Finding) -> list[str]:
    """What only one run has comes before what it changes."""
    place = _named(finding.place)
    reader = finding.reader
    if finding.result is None and finding.place.side != MINE and reader is not None and reader.line is None:
        if finding.before is None:
            first = message("first difference: {operator} of mine goes on without {other}, which only golden has",
                            operator=_named(reader), other=place)  # fmt: skip
        else:
            first = message(
                "first difference: {operator} of mine goes on from {before} without {other}, which only golden has",
                operator=_named(reader), before=finding.before.operator.label, other=place,
            )  # fmt: skip
        return [first, *_form_texts(finding)]
    alone = message("first difference: only {side} has {operator}", side=SIDES[finding.place.side], operator=place)
    if finding.result is None:
        texts = evidence_texts(finding)
        if finding.updated:
            texts.insert(0, message("it reads the parameter {name}", name=finding.updated))
        if finding.reader is not None and finding.place.side == MINE:
            texts.append(message("it comes to {operator}", operator=_named(finding.reader)))
        elif finding.reader is not None:
            texts.append(message("{operator} of mine goes on without it", operator=_named(finding.reader)))
        if finding.holder is not None:
            texts.append(message("mine computes with it in {operator}", operator=_named(finding.holder)))
        return [alone, *("  " + text for text in texts), *_form_texts(finding)]
    result, tensor = finding.result, _tensor(finding)
    reads = _named(Place(MINE, result.step, result.pair.mine, finding.reader_line))
    text = message("{operator} reads what it made: {reason}", operator=reads, reason=tensor.reason)
    return [alone, "  " + text]


def _form_texts(finding: Finding) -> list[str]:
    """The other lines of what both sides write in their own form."""
    named = [(SIDES[side], line) for side, lines in zip(SIDES, finding.forms, strict=True) for line in lines]
    if not named:
        return []
    text = message("both write this in their own form, and values do not tell which line is wrong; it may also be")
    return ["  " + text, *(f"    {side}: {line}  {line.code.strip()}" for side, line in named)]


def _came_in(comparison: Comparison, verdict: Verdict, finding: Finding) -> list[str]:
    """What is to be said of a difference that no operator made by itself."""
    if finding.reason is Reason.DRAW:
        return _draw(verdict, finding)
    texts = evidence_texts(finding)
    if finding.reason is Reason.WRITER and finding.parameter is not None:
        text = message("{name}, which it reads, differs after the step: {reason}",
            name=finding.parameter.label, reason=_tensor(finding).reason)  # fmt: skip
        return [*texts, text]
    if finding.reason is Reason.INPUT:
        return [*texts, *_input_texts(finding)]
    if comparison.hashes is not None and not comparison.hashes.has_inputs:
        text = message("{difference}; whether its inputs agree, no hash tells", difference=_first_difference(finding))
        return [*texts, text]
    return [*texts, _first_difference(finding)]


def _draw(verdict: Verdict, finding: Finding) -> list[str]:
    count = finding.reached
    if any(other.reason is Reason.WRONG for other in verdict.findings):
        others = message("{count} other operators and parameters differ", count=count)
    else:
        others = message(
            "{count} other operators and parameters differ, and none of them goes wrong by itself", count=count
        )
    if verdict.repeats is not None:
        return [message("a random operator, which drew other numbers"), others]
    if finding.evidence:
        return [message("a random operator, which draws by another law"), *evidence_texts(finding), others]
    seeds = message("a random operator, which drew other numbers: the runs had different seeds, or drew in another "
        "order")  # fmt: skip
    return [seeds, others]


def _input_texts(finding: Finding) -> list[str]:
    tensor = _tensor(finding)
    assert finding.operand is not None
    if finding.maker is None and finding.constants is not None:
        name: str = operand(finding.operand.io, finding.operand.slot)
        name = name + f" ({finding.operand.name})" if finding.operand.name else name
        mine, golden = (f"{number:.7g}" for number in finding.constants)
        return [message("{operand} is a constant: {mine} against {golden}", operand=name, mine=mine, golden=golden)]
    name = _operand_text(finding.operand)
    differs = message("{operand} differs already: {reason}", operand=name, reason=tensor.reason)
    if finding.makers is not None and tensor.io == "output":
        alone = message("golden's operator has no {operand} like it", operand=name)
        return [_first_difference(finding), alone, *_makers_texts(finding.makers)]
    if finding.makers is not None:
        return [differs, *_makers_texts(finding.makers)]
    if finding.maker is not None:
        return [differs, message("{name} made it", name=finding.maker.label)]
    if finding.golden_maker is not None:
        maker = _named(finding.golden_maker)
        return [differs, message("golden's was made by {operator}", operator=maker)]
    return [differs, message("no operator before it made that input: the runs had different weights or data")]


def _makers_texts(makers: Makers) -> list[str]:
    """Who made an operand on each side."""
    entry = message("no operator of the dump")
    mine, golden = (entry if one is None else _named(one) for one in (makers.mine, makers.golden))
    if makers.golden is None and makers.elsewhere is None:
        return [message("{operator} made it", operator=mine)]
    texts: list[str] = [message("{operator} made it; golden's was made by {golden}", operator=mine, golden=golden)]
    if makers.elsewhere is not None:
        texts.append(message("golden has the same numbers from {operator}", operator=_named(makers.elsewhere)))
    return texts


def _first_difference(finding: Finding) -> str:
    tensor = _tensor(finding)
    return message("{operand} does not: {reason}", operand=operand(tensor.io, tensor.slot), reason=tensor.reason)


def _result(finding: Finding) -> OperatorResult:
    assert finding.result is not None
    return finding.result


def _tensor(finding: Finding) -> TensorResult:
    if finding.tensor is not None:
        return finding.tensor
    return next(tensor for tensor in _result(finding).tensors if tensor.status == DIFFERS)


# -- evidence ----------------------------------------------------------------------------------------------------------


def evidence_texts(finding: Finding) -> list[str]:
    """What two operators have that is not alike, a sentence each."""
    return [_evidence_text(one) for one in finding.evidence]


def _evidence_text(one: Evidence) -> str:
    if isinstance(one, OtherAttribute):
        mine, golden = (_DEFAULT if value is None else value for value in (one.mine, one.golden))
        return message("attribute {name}: {mine} against {golden}", name=one.name, mine=mine, golden=golden)
    if isinstance(one, OtherDtype):
        name = operand(one.operand.io, one.operand.slot)
        return message("dtype of {operand}: {mine} against {golden}", operand=name, mine=one.mine, golden=one.golden)
    if isinstance(one, OtherOperator):
        text = message("golden has {name} ({type}) there", name=one.name, type=one.op_type)
        return text if one.line is None else text + COMMA + f"{one.line}  {one.line.code.strip()}"
    if isinstance(one, Rounded):
        side = SIDES[one.place.side]
        return message("only {side} has rounded what it reads to {dtype}: {operator}",
            side=side, dtype=one.dtype, operator=_named(one.place))  # fmt: skip
    if isinstance(one, Swapped):
        return message("{operands} have changed places", operands=joined(AND, map(_operand_text, one.operands)))
    if isinstance(one, OtherLayout):
        return joined(" ", (_operand_text(one.operand), _layout_text(one)))
    if isinstance(one, OtherNumbers):
        return _numbers_text(one)
    if isinstance(one, Smoothed):
        return message(
            "the loss of {side} has a label smoothing of {share}", side=SIDES[one.side], share=f"{one.share:g}"
        )
    if isinstance(one, OtherLaw):
        return message("it sets {mine} of the elements to zero, golden {golden}", mine=one.mine, golden=one.golden)
    text = message("the result is {factor} times that of golden", factor=f"{one.factor:.6g}")
    if one.is_start:
        return message("{text}: the backward pass starts at {start} in place of 1", text=text, start=f"{one.factor:g}")
    if one.is_reduction:
        return message("{text}: another reduction, a sum in place of a mean or the other way round", text=text)
    return text


def _layout_text(one: OtherLayout) -> str:
    if one.shapes is None:
        return message("holds the same numbers, and one side alone transposes it")
    mine, golden = (str(list(shape)) for shape in one.shapes)
    return message("is {mine} against {golden} with the numbers in one order: reshaped, not transposed",
        mine=mine, golden=golden)  # fmt: skip


def _numbers_text(one: OtherNumbers) -> str:
    """The numbers of both sides; of one where the dump of the other does not tell them."""
    numbers = [
        joined(COMMA, [f"{name if isinstance(name, str) else operand(name.io, name.slot)} = {value:g}"
                       for name, value in side])
        for side in (one.mine, one.golden)
    ]  # fmt: skip
    for own, other, name in ((0, 1, "mine"), (1, 0, "golden")):
        if not numbers[other] and not one.is_known[other]:
            return message(
                "its numbers: {numbers} in {side}; the other dump does not tell them",
                numbers=numbers[own], side=SIDES[name],
            )  # fmt: skip
    none = message("none")
    return message("its numbers: {mine} against {golden}", mine=numbers[0] or none, golden=numbers[1] or none)


# -- names -------------------------------------------------------------------------------------------------------------


def _named(place: Place) -> str:
    """An operator, its step, and its line."""
    text = place_text(place.operator, log_place(place.operator) or str(place.step))
    return text if place.line is None else text + COMMA + f"{place.line}  {place.line.code.strip()}"


def _operand_text(one: Operand) -> str:
    name = operand(one.io, one.slot)
    return name + f" ({one.name})" if one.name else name


def hash_names(comparison: Comparison) -> str:
    """The hashes that both sides have, joined."""
    return joined(AND, () if comparison.hashes is None else comparison.hashes.names)


def error_text(error: float | None) -> str:
    """An error in three digits; "-" where there is none."""
    return "-" if error is None else f"{error:.3g}"
