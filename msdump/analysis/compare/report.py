"""A comparison as text, as table rows, as msaccucmp's csv and as json."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msdump.analysis import json_values
from msdump.analysis.compare.hashes import log_place
from msdump.analysis.compare.metrics import METRICS, PairMetrics, metric_text
from msdump.analysis.compare.pairing import host_shape
from msdump.analysis.compare.repetition import differing_repetition
from msdump.analysis.compare.result import (
    AGREES,
    DIFFERS,
    IDENTICAL,
    NOT_COMPARED,
    Comparison,
    OperatorResult,
    TensorResult,
    Tie,
)
from msdump.analysis.compare.result_csv import NO_VALUE, ResultRow, SideCells, result_csv
from msdump.analysis.compare.ties import sums_up
from msdump.analysis.compare.values import figures_of
from msdump.analysis.graph_info import GraphFiles, Origin
from msdump.analysis.json_values import damaged_values, location_value, operator_value, step_value
from msdump.analysis.steps import Operator, Slot, StepKey, has_several_graphs, operator_id, place_text
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.attributes import differing_attributes
from msdump.operators.kinds import argument_name, has_transposed_weight, is_mover, is_product, kind_of
from msdump.tables.messages import AND, COMMA, SEMICOLON, Message, counted, joined, message, messages, operand

# What msaccucmp prints for equal tensors that are not zero.
_PERFECT = {name: "1.000000" if name == "CosineSimilarity" else "0.000000" for name in METRICS}
_PERFECT["StandardDeviation"] = ""
TABLE_TITLES = messages(
    "verdict", "operator", "golden", "iteration", "found by", "came in", "error", "added", "cosine", "why",
)  # fmt: skip
TABLE_NUMBERS = (5, 6, 7, 8)
_TOO_LARGE = "relative error"
WRONG = message("WRONG")


# -- words ---------------------------------------------------------------------------------------------------------


def headline(comparison: Comparison) -> list[str]:
    """The finding in a few lines, as `msdump compare` prints it: the operator that goes wrong comes first, what it
    repeats, then where differences come in at all.

    Edges:   one sentence that says so where all agrees; lines after the first may begin with two blanks.
    """
    repetition = None if comparison.hashes is not None else differing_repetition(comparison)
    if repetition is None:
        return _finding(comparison, repeats=False)
    name, step = repetition.first.pair.mine.label, repetition.first.step
    remark = "  " + message(
        "it repeats {name} of the forward pass ({where}) with another result; in golden both are equal",
        name=name, where=step,
    )  # fmt: skip
    first, *others = _finding(comparison, repeats=True)
    return [first, remark, *others]


def _finding(comparison: Comparison, *, repeats: bool) -> list[str]:
    """`headline` without what an operator repeats.   repeats: whether it repeats one, so that its draw has a reason"""
    quantised = comparison.quantised
    if quantised is not None:
        # Most comparisons need none of it, and start sooner without.
        from msdump.analysis.compare.quantised import words
    if quantised is not None and quantised.finding is not None:
        path = comparison.mine if quantised.side == "mine" else comparison.golden
        return words.finding_lines(quantised, quantised.finding, GraphFiles(DumpDir.open(path)))
    differing = comparison.first_differing
    wrong = None if differing is None else comparison.first_wrong
    if differing is None and comparison.beyond:
        return _goes_on(comparison)
    if differing is None:
        count = sum(1 for _ in comparison.operators)
        if comparison.damaged:
            text = message(
                "incomplete: {count} pairs of operators and parameters agree as far as they can be read; {damaged}.",
                count=count,
                damaged=counted(len(comparison.damaged), "{count} damaged file", "{count} damaged files"),
            )
            return [text]
        if quantised is not None and any(one.is_quantised for one in quantised.ranking):
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
            names = _hash_names(comparison)
            return [message("agree: all {count} pairs of operators agree by their hashes ({names}).",
                count=count, names=names)]  # fmt: skip
        agreeing = message("agree: all {count} pairs of operators and parameters agree.", count=count)
        return [agreeing, *_tie_lines(comparison)]
    if quantised is not None and (lost := words.lost_lines(comparison, quantised)):
        return lost
    graphs, golden = (GraphFiles(DumpDir.open(path)) for path in (comparison.mine, comparison.golden))
    lines: list[str] = []
    if wrong is not None:
        named = _named(wrong, graphs, _also(comparison, golden))
        lines.append(message("first wrong operator: {operator}", operator=named))
        lines += ["  " + text for text in _attribute_texts(comparison, wrong, graphs, golden)]
        how = _error_text(wrong.input_error)
        if comparison.hashes is not None:
            how = message("hash {names}", names=_hash_names(comparison))
        text = message("its inputs agree ({how}), {difference}", how=how, difference=_first_difference(wrong.outputs))
        lines.append("  " + text)
        if wrong.added_error is not None:
            lines.append("  " + message("it adds an error of {error}", error=_error_text(wrong.added_error)))
    if differing.draws_only:
        # A draw that nothing reads comes behind what else differs.
        reached = {origin for result in comparison.operators for origin in _differing_origins(result, graphs)}
        others = (result for result in comparison.operators if not result.is_agreeing)
        differing = next(
            (each for each in others if not each.draws_only or (each.step, each.pair.mine.label) in reached), differing
        )
    if differing is not wrong:
        extra = begins_with(comparison, differing, graphs, golden)
        if extra is not None:
            # It ran before all that goes wrong behind it.
            return [*_only_one_has(extra, differing, graphs, golden), *lines]
        lines += _came_in(comparison, differing, wrong is None, repeats, graphs, golden)
    return lines


def _tie_lines(comparison: Comparison) -> list[str]:
    """Where both runs are right, and yet go apart."""
    tie = comparison.tie
    if tie is None:
        return []
    graphs = GraphFiles(DumpDir.open(comparison.mine))
    text = message(
        "{what}, in {count} of {size} elements; {reached} operators and parameters differ for such decisions",
        what=_what_decides(tie), count=tie.count, size=tie.size, reached=tie.reached,
    )  # fmt: skip
    if tie.error:
        text = message("{text}, by {error} in a forward pass", text=text, error=_error_text(tie.error))
    lines = ["  " + _named(tie.result, graphs), "  " + text]
    if tie.lost is not None:
        text = message("from {where} on they are so far apart that a fault would not show", where=tie.lost)
        lines.append("  " + text)
    return lines


def _what_decides(tie: Tie) -> str:
    if sums_up(tie.result):
        return message("sums up terms that cancel, and is left with their rounding")
    return message("decides by a value that rounding moved across the border")


def _goes_on(comparison: Comparison) -> list[str]:
    """All that both have agrees, and golden computes further with what mine ends with."""
    graphs = GraphFiles(DumpDir.open(comparison.golden))
    operators = comparison.beyond
    count = len(operators)
    shown = [f"{operator.label} ({operator.op_type})" for _, operator in operators[:_MAX_NAMED]]
    names = joined(COMMA, [*shown, "..."] if count > _MAX_NAMED else shown)
    if count > 1:
        names = message("{count} operators that mine has not: {names}", count=count, names=names)
    lines: list[str] = [message("first difference: golden goes on where mine ends, with {names}", names=names)]
    lines += ["  " + _place(operator, step, graphs) for step, operator in operators[:_MAX_NAMED]]
    pairs = sum(1 for _ in comparison.operators)
    return [*lines, "  " + message("all {count} operators that both have agree", count=pairs)]


def _came_in(
    comparison: Comparison,
    result: OperatorResult,
    is_all: bool,
    repeats: bool,
    graphs: GraphFiles,
    golden: GraphFiles,
) -> list[str]:
    named = _named(result, graphs, _also(comparison, golden))
    lines: list[str] = [message("first difference: {operator}", operator=named)]
    if result.draws_only:
        reached = sum(not other.is_agreeing for other in comparison.operators) - 1
        seeds = message("a random operator, which drew other numbers: the runs had different seeds, or drew in another "
            "order")  # fmt: skip
        alone = message(
            "{count} other operators and parameters differ, and none of them goes wrong by itself", count=reached
        )
        others = message("{count} other operators and parameters differ", count=reached)
        return [
            *lines,
            "  " + (message("a random operator, which drew other numbers") if repeats else seeds),
            "  " + (alone if is_all else others),
        ]
    lines += ["  " + text for text in _attribute_texts(comparison, result, graphs, golden)]
    if comparison.hashes is not None and not comparison.hashes.has_inputs:
        text = message("{difference}; whether its inputs agree, no hash tells",
            difference=_first_difference(result.outputs))  # fmt: skip
        return [*lines, "  " + text]
    if is_all and (result.pair.mine.op_type and result.pair.golden.op_type):
        text = message("no operator goes wrong by itself: none has inputs that agree and an output that does not.")
        lines.insert(0, text)
    parameter = result if result.pair.mine.is_parameter else _parameter_read(comparison, result, graphs)
    for writer in () if parameter is None else _readers(comparison, parameter, graphs):
        # Statistics that run on are written by what reads them, which says so nowhere else.
        texts = _attribute_texts(comparison, writer, graphs, golden)
        if parameter is not None and texts:
            name = parameter.pair.mine.label
            reason = next(tensor.reason for tensor in parameter.outputs if tensor.status == DIFFERS)
            return [
                message("first difference: {operator}", operator=_named(writer, graphs)),
                *("  " + text for text in texts),
                "  " + message("{name}, which it reads, differs after the step: {reason}", name=name, reason=reason),
            ]
    if parameter is result:
        return [*lines, "  " + _first_difference(result.outputs)]
    for tensor in result.inputs:
        if tensor.status == DIFFERS:
            maker = _maker(comparison, result, tensor)
            name = _input_name(result, result.pair.mine, tensor.slot, graphs)
            lines.append("  " + message("{operand} differs already: {reason}", operand=name, reason=tensor.reason))
            if maker is not None:
                lines.append("  " + message("{name} made it", name=maker.pair.mine.label))
            elif (numbers := _two_numbers(tensor)) is not None:
                # No weight and no data: the script, or a layer of the library, says it.
                called = argument_name(result.pair.mine.op_type, tensor.slot.number)
                name = operand("input", tensor.slot)
                name = name if called is None else name + f" ({called})"
                text = message(
                    "{operand} is a constant: {mine} against {golden}", operand=name, mine=numbers[0], golden=numbers[1]
                )
                lines[-1] = "  " + text
            else:
                text = message("no operator before it made that input: the runs had different weights or data")
                lines.append("  " + text)
            return lines
    return [*lines, "  " + _first_difference(result.outputs)]


def begins_with(
    comparison: Comparison, result: OperatorResult, graphs: GraphFiles, golden: GraphFiles
) -> tuple[str, StepKey, Operator] | None:
    """Side, step and operator that one run alone has, where the difference of the first operator that differs begins
    with it.
    """
    has_inputs = comparison.hashes is None or comparison.hashes.has_inputs
    if result.draws_only or result.pair.mine.is_parameter or not has_inputs:
        return None
    extra = _extra_before(comparison, result)
    tensor = next((tensor for tensor in result.inputs if tensor.status == DIFFERS), None)
    if extra is not None or tensor is None:
        return extra
    maker = _maker(comparison, result, tensor)
    # Where what made it is right, the other side reads what another operator made of it.
    return _extra_maker(comparison, result, tensor, (graphs, golden)) if maker is None or maker.is_agreeing else None


def _two_numbers(tensor: TensorResult) -> tuple[str, str] | None:
    """The numbers of two tensors of one element; None for larger ones and what cannot be read."""
    found = [figures_of(side) for side in (tensor.mine, tensor.golden) if host_shape(side) == ()]
    numbers = [f"{one.total:.7g}" for one in found if one is not None]
    return (numbers[0], numbers[1]) if len(numbers) == len((tensor.mine, tensor.golden)) else None


def _only_one_has(
    extra: tuple[str, StepKey, Operator], result: OperatorResult, graphs: GraphFiles, golden: GraphFiles
) -> list[str]:
    """What only one run has comes before what it changes."""
    side, step, operator = extra
    reason = next(tensor.reason for tensor in result.tensors if tensor.status == DIFFERS)
    place = _place(operator, step, graphs if side == "mine" else golden)
    alone = message("first difference: only {side} has {operator}", side=_SIDES[side], operator=place)
    text = message("{operator} reads what it made: {reason}", operator=_named(result, graphs), reason=reason)
    return [alone, "  " + text]


def _attribute_texts(
    comparison: Comparison, result: OperatorResult, graphs: GraphFiles, golden: GraphFiles
) -> list[str]:
    """Attributes that have other values on the two sides, as graph files tell; one that a file does not name has the
    value that the operator has without it.
    """
    if comparison.hashes is not None:
        return []  # a log tells none
    if result.pair.golden_step is not None:
        return _attributes_across(result, graphs, golden)
    dtypes = _dtype_texts(result)
    step = next((step for step in comparison.steps if result in step.operators), None)
    mine = graphs.node(result.step, result.pair.mine)
    other = None if step is None else golden.node(step.golden, result.pair.golden)
    if mine is None or other is None or mine.attrs is None or other.attrs is None:
        return dtypes
    names = [name for name in dict.fromkeys((*mine.attrs, *other.attrs)) if name not in _NO_ATTRIBUTES]
    if mine.op_type != other.op_type or not result.is_wrong:
        names = [name for name in names if name in mine.attrs and name in other.attrs]
    values = {name: [attrs.get(name, _DEFAULT) for attrs in (mine.attrs, other.attrs)] for name in names}
    return [
        *(
            message("attribute {name}: {mine} against {golden}", name=name, mine=x, golden=y)
            for name, (x, y) in values.items()
            if not _is_equal(x, y)
        ),
        *dtypes,
    ]


def _dtype_texts(result: OperatorResult) -> list[str]:
    """Of an operator that goes wrong: that it computes in another dtype than golden's."""
    first = result.outputs[0] if result.is_wrong else None
    if first is None or first.mine.true_dtype == first.golden.true_dtype:
        return []
    text = message(
        "dtype of {operand}: {mine} against {golden}",
        operand=operand(first.io, first.slot), mine=first.mine.true_dtype, golden=first.golden.true_dtype,
    )  # fmt: skip
    return [text]


def _attributes_across(result: OperatorResult, graphs: GraphFiles, golden: GraphFiles) -> list[str]:
    """Attributes of two operators of two frameworks that say different things, whatever they are called; the numbers
    that each of them has beside its tensors where none does.
    """
    assert result.pair.golden_step is not None
    texts: list[str] = []
    sides = []
    for step, operator, files in (
        (result.step, result.pair.mine, graphs),
        (result.pair.golden_step, result.pair.golden, golden),
    ):
        nodes = [(part.op_type, files.node(step, part)) for part in operator.parts or (operator,)]
        sides.append([(op_type, node.attrs or {}) for op_type, node in nodes if node is not None])
    for mine in sides[0]:
        for other in sides[1]:
            texts += [
                message("attribute {name}: {mine} against {golden}", name=name, mine=x, golden=y)
                for name, x, y in differing_attributes(mine, other)
            ]
    if result.is_wrong and result.pair.swapped:
        names = [_input_name(result, result.pair.mine, slot, graphs) for slot in result.pair.swapped]
        texts.append(message("{operands} have changed places", operands=joined(AND, names)))
    products = [next((one for one in side if is_product(one[0])), None) for side in sides]
    weight = next((tensor for tensor in result.inputs if tensor.slot == Slot(1)), None)
    if products[0] is not None and products[1] is not None and weight is not None:
        one_transposes = has_transposed_weight(*products[0]) != has_transposed_weight(*products[1])
        product = next((part for part in result.pair.mine.parts if is_product(part.op_type)), result.pair.mine)
        name = _input_name(result, product, Slot(1), graphs)
        texts += [joined(" ", (name, text)) for text in _layout_texts(weight, one_transposes)]
    texts += _dtype_texts(result)
    kinds = {kind_of(side.op_type) for side in (result.pair.mine, result.pair.golden) if not side.parts}
    there = message("golden has {name} ({type}) there", name=result.pair.golden.label, type=result.pair.golden.op_type)
    if result.is_wrong and not texts:
        numbers = [
            _numbers_text(operator, side)
            for operator, side in zip((result.pair.mine, result.pair.golden), sides, strict=True)
        ]
        if any(numbers) and numbers[0] != numbers[1]:
            texts.append(_against(numbers, [bool(side) for side in sides]))
    return [there, *texts] if len(kinds) == len(sides) and result.pair.golden.op_type else texts


def _against(numbers: Sequence[str], have_graphs: Sequence[bool]) -> str:
    """The numbers of both sides; of one where the dump of the other does not tell them."""
    for own, other, name in ((0, 1, "mine"), (1, 0, "golden")):
        if not numbers[other] and not have_graphs[other]:
            return message(
                "its numbers: {numbers} in {side}; the other dump does not tell them",
                numbers=numbers[own], side=_SIDES[name],
            )  # fmt: skip
    none = message("none")
    return message("its numbers: {mine} against {golden}", mine=numbers[0] or none, golden=numbers[1] or none)


def _layout_texts(weight: TensorResult, one_transposes: bool) -> list[str]:
    """What is wrong with the order of the weight of a product where its numbers are right.

    one_transposes   whether one of the operators alone transposes it
    """
    shapes = host_shape(weight.mine), host_shape(weight.golden)
    if weight.status == DIFFERS or {len(shape) for shape in shapes} != {2}:
        return []
    if bool(weight.axes) != one_transposes:
        return [message("holds the same numbers, and one side alone transposes it")]
    if not weight.axes and shapes[0] != shapes[1]:
        mine, golden = (str(list(shape)) for shape in shapes)
        return [message("is {mine} against {golden} with the numbers in one order: reshaped, not transposed",
            mine=mine, golden=golden)]  # fmt: skip
    return []


def _input_name(result: OperatorResult, operator: Operator, slot: Slot, graphs: GraphFiles) -> str:
    """An input, with the name of the parameter that it is, where the graph file tells it."""
    origin = _origin(graphs, result.step, operator, slot.number)
    name = operand("input", slot)
    return name if origin is None or origin.slot is not None else name + f" ({origin.name})"


def _numbers_text(operator: Operator, attributes: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Numbers that an operator has beside its tensors: inputs of one element, and attributes."""
    found: list[str] = []
    for part in operator.parts or (operator,):
        for slot, tensor in part.inputs.items():
            figures = figures_of(tensor) if math.prod(host_shape(tensor)) == 1 else None
            if figures is not None:
                found.append(operand("input", slot) + f" = {figures.total:g}")
    for _, values in attributes:
        found += [
            f"{name} = {value:g}"
            for name, value in values.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        ]
    return joined(COMMA, found)


def _is_equal(x: object, y: object) -> bool:
    """Whether two values of an attribute are the same; a list and a tuple of the same items are, NaN is itself."""
    if isinstance(x, list | tuple) and isinstance(y, list | tuple):
        return len(x) == len(y) and all(map(_is_equal, x, y))
    return repr(x) == repr(y)


# What a graph file says of an operator beside what the script chose.
_NO_ATTRIBUTES = frozenset({"input_names", "output_names"})
_DEFAULT = message("its default")
_SIDES: Mapping[str, Message] = {side: side for side in messages("mine", "golden")}
_MAX_NAMED = 5


def _differing_origins(result: OperatorResult, graphs: GraphFiles) -> Iterator[tuple[StepKey, str]]:
    """Operators that made the inputs of an operator that differ, as the graph file tells."""
    for tensor in result.inputs:
        origin = None
        if tensor.status == DIFFERS:
            origin = _origin(graphs, result.step, result.pair.mine, tensor.slot.number)
        if origin is not None and origin.maker is not None:
            yield result.step._replace(graph_id=origin.maker[0]), origin.maker[1]
        elif origin is not None and origin.slot is not None:
            yield result.step, origin.name


def _readers(comparison: Comparison, result: OperatorResult, graphs: GraphFiles) -> Iterator[OperatorResult]:
    """Operators of the same step that read a parameter, as the graph file tells."""
    name = result.pair.mine.op_name
    for reader in comparison.operators:
        node = graphs.node(reader.step, reader.pair.mine) if reader.step == result.step else None
        if node is not None and any(origin is not None and origin.name == name for origin in node.inputs):
            yield reader


def _parameter_read(comparison: Comparison, result: OperatorResult, graphs: GraphFiles) -> OperatorResult | None:
    """A parameter that differs where an operator reads it, as the step that first left it different shows it."""
    origins = [
        _origin(graphs, result.step, result.pair.mine, tensor.slot.number)
        for tensor in result.inputs
        if tensor.status == DIFFERS
    ]
    names = {origin.name for origin in origins if origin is not None and origin.slot is None}
    if not names:
        return None
    parameters = (other for other in comparison.operators if other.pair.mine.is_parameter and not other.is_agreeing)
    return next((other for other in parameters if other.pair.mine.op_name in names), None)


def _maker(comparison: Comparison, result: OperatorResult, tensor: TensorResult) -> OperatorResult | None:
    """Earlier operator of the same step whose output is that input."""
    for earlier in comparison.operators:
        if earlier is result:
            return None
        if earlier.step != result.step:
            continue
        for output in earlier.outputs:
            if output.mine.shape == tensor.mine.shape and comparison.is_same(output.mine, tensor.mine):
                return earlier
    return None


def _origin(graphs: GraphFiles, step: StepKey, operator: Operator, slot: int) -> Origin | None:
    """Where an input comes from, as the graph file tells."""
    node = graphs.node(step, operator)
    return node.inputs[slot] if node is not None and slot < len(node.inputs) else None


def _extra_before(comparison: Comparison, result: OperatorResult) -> tuple[str, StepKey, Operator] | None:
    """Side, step and operator without a counterpart with which a difference begins, as two frameworks show it."""
    extras = (step.extras.get(id(result.pair.mine)) for step in comparison.steps if step.mine == result.step)
    extra = next((one for one in extras if one is not None), None)
    return None if extra is None else (extra.side, extra.step, extra.operator)


def _extra_maker(
    comparison: Comparison, result: OperatorResult, tensor: TensorResult, files: tuple[GraphFiles, GraphFiles]
) -> tuple[str, StepKey, Operator] | None:
    """Side, step and operator without a counterpart there whose output is that input: by graph file, or by bytes."""
    step = next((step for step in comparison.steps if step.mine == result.step), None)
    if step is None:
        return None
    pair = result.pair
    sides = (
        ("mine", step.mine, step.only_mine, pair.mine, tensor.mine, files[0]),
        ("golden", step.golden, step.only_golden, pair.golden, tensor.golden, files[1]),
    )
    for name, key, operators, reader, read, graphs in sides:
        origin = _origin(graphs, key, reader, tensor.slot.number)
        for operator in operators:
            if pair.golden_step is not None and is_mover(operator.op_type):
                continue  # frameworks turn and copy weights in their own ways
            if origin is not None:
                is_maker = origin.slot is not None and origin.name in operator.names
            else:
                outputs = operator.outputs.values()
                is_maker = any(output.shape == read.shape and comparison.is_same(output, read) for output in outputs)
            if is_maker:
                return name, key, operator
    return None


def _named(result: OperatorResult, graphs: GraphFiles, golden: GraphFiles | None = None) -> str:
    """golden   where the line is looked up that mine does not tell"""
    pair = result.pair
    named = _place(pair.mine, result.step, graphs)
    if golden is None or pair.golden_step is None or _line_text(pair.mine, result.step, graphs):
        return named
    return named + _line_text(pair.golden, pair.golden_step, golden)


def _also(comparison: Comparison, golden: GraphFiles) -> GraphFiles | None:
    """golden, where it may know the lines that a log does not: both sides are one program."""
    return None if comparison.hashes is None else golden


def _hash_names(comparison: Comparison) -> str:
    return joined(AND, () if comparison.hashes is None else comparison.hashes.names)


def _place(operator: Operator, step: StepKey, graphs: GraphFiles) -> str:
    """An operator, its step, and its line."""
    where = log_place(operator) or str(step)
    return place_text(operator, where) + _line_text(operator, step, graphs)


def _line_text(operator: Operator, step: StepKey, graphs: GraphFiles) -> str:
    node = graphs.node(step, operator)
    line = None if node is None else node.own_line
    return "" if line is None else COMMA + f"{line}  {line.code.strip()}"


def _first_difference(tensors: tuple[TensorResult, ...]) -> str:
    difference = next(tensor for tensor in tensors if tensor.status == DIFFERS)
    name = operand(difference.io, difference.slot)
    return message("{operand} does not: {reason}", operand=name, reason=difference.reason)


def _error_text(error: float | None) -> str:
    return "-" if error is None else f"{error:.3g}"


def summary(comparison: Comparison) -> list[str]:
    """Counts, and all that has no counterpart."""
    operators = list(comparison.operators)
    wrong = sum(not operator.is_agreeing for operator in operators)
    tensors = Counter(tensor.status for operator in operators for tensor in operator.tensors)
    counts = joined(COMMA, (joined(" ", (str(count), status)) for status, count in sorted(tensors.items())))
    text = message(
        "{agreeing} of {all} operators and parameters agree; tensors: {counts}",
        agreeing=len(operators) - wrong, all=len(operators), counts=counts,
    )  # fmt: skip
    lines: list[str] = [text]
    # A log knows no ranks, and its operators are the program's own.
    ranks = {step.mine.rank_id: step.golden.rank_id for step in comparison.steps if comparison.hashes is None}
    lines += [
        message("rank {mine} of mine against rank {golden} of golden", mine=mine, golden=golden)
        for mine, golden in ranks.items()
        if mine != golden and None not in (mine, golden)
    ]
    for step in comparison.steps:
        for side, unpaired in (("mine", step.only_mine), ("golden", step.only_golden)):
            if unpaired:
                shown = [operator.label for operator in unpaired[:5]]
                text = message(
                    "only in {side}, {where}: {count}: {names}",
                    side=_SIDES[side], where=step.mine, count=len(unpaired),
                    names=joined(COMMA, [*shown, "..."] if len(unpaired) > 5 else shown),
                )  # fmt: skip
                lines.append(text)
    if comparison.hashes is None and any(step.only_mine and step.only_golden for step in comparison.steps):
        text = message(
            "operators that were fused or have other types elsewhere are paired by a mapping file (--mapping)"
        )
        lines.append(text)
    for side, keys in (("mine", comparison.only_mine), ("golden", comparison.only_golden)):
        if keys:
            text = message(
                "only in {side}: {count}: {steps}",
                side=_SIDES[side], count=counted(len(keys), "{count} step", "{count} steps"),
                steps=joined(SEMICOLON, map(str, keys[:5])),
            )  # fmt: skip
            lines.append(text)
    if comparison.quantised is not None:
        from msdump.analysis.compare.quantised import words

        lines += words.notes(comparison.quantised)
    lines += [f"damaged: {error}" for _, error in comparison.damaged]
    return [*lines, *comparison.notes]


def table_rows(comparison: Comparison, shows_all: bool) -> Iterator[tuple[str, ...]]:
    """One row per pair of operators, those that differ or all of them; columns `TABLE_TITLES`.

    "golden" is "-" for an operator of the same name, "why" for an error that is too large.
    """
    tells_graph = has_several_graphs(step.mine for step in comparison.steps)
    for result in comparison.operators:
        if result.is_agreeing and not shows_all:
            continue
        problem = next((t for t in (*result.outputs, *result.inputs) if t.status == DIFFERS), None)
        verdict = WRONG if result.is_wrong else _status(result) if problem is None else DIFFERS
        name, golden = short_name(result.pair.mine), short_name(result.pair.golden)
        is_error = problem is None or problem.reason.startswith(_TOO_LARGE)
        yield (
            verdict,
            name,
            "-" if golden == name else golden,
            result.step.iteration_text(tells_graph),
            result.pair.how,
            _error_text(result.input_error),
            _error_text(result.output_error),
            _error_text(result.added_error),
            _worst_cosine(result),
            "-"
            if problem is None or is_error
            else message("{operand}: {reason}", operand=operand(problem.io, problem.slot), reason=problem.reason),
        )


# From the operator on that runs it: detect/then_branch/log, loop/body/2/add.
_SUBGRAPH = re.compile(r"[^/]*/(?:(?:then|else)_branch|body/[0-9]+)/")


def short_name(operator: Operator) -> str:
    """Last part of a full name: what fits into a table. Of an operator in a subgraph it says in which run of which."""
    if len(operator.parts) > 1:
        return operator.op_name
    subgraph = _SUBGRAPH.search(operator.label)
    return operator.label.rsplit("/", 1)[-1] if subgraph is None else operator.label[subgraph.start() :]


def _status(result: OperatorResult) -> str:
    statuses = {tensor.status for tensor in result.tensors}
    if statuses == {IDENTICAL}:
        return IDENTICAL
    return AGREES if statuses & {IDENTICAL, AGREES} else NOT_COMPARED


def _worst_cosine(result: OperatorResult) -> str:
    values = [tensor.metrics.cosine for tensor in result.outputs if tensor.metrics is not None]
    if not values:
        return "1.000000" if any(tensor.status == IDENTICAL for tensor in result.outputs) else "-"
    return "nan" if any(map(math.isnan, values)) else f"{min(values):.6f}"


# -- files ---------------------------------------------------------------------------------------------------------


def csv_text(comparison: Comparison) -> str:
    """The result csv of CANN's msaccucmp: a row for each tensor that both sides have, in execution order.

    Edges:   cells that a spreadsheet would run as a formula get an apostrophe in front.
    Source:  msaccucmp compare.
    """
    tensors = [(operator, tensor) for operator in comparison.operators for tensor in operator.tensors]
    rows = [_row(number, operator, tensor) for number, (operator, tensor) in enumerate(tensors)]
    has_address = any(row.mine.address for row in rows), any(row.golden.address for row in rows)
    return result_csv(rows, METRICS, has_address)


def _row(number: int, operator: OperatorResult, tensor: TensorResult) -> ResultRow:
    mine, golden = operator.pair.mine, operator.pair.golden
    return ResultRow(
        number,
        mine.op_type,
        SideCells(mine.label, tensor.mine.true_dtype, _address(tensor.mine)),
        SideCells(golden.label, tensor.golden.true_dtype, _address(tensor.golden)),
        f"{mine.label}:{tensor.io}:{tensor.slot}",
        host_shape(tensor.mine),
        {name: _metric_cell(tensor, name) for name in METRICS},
        tensor.reason,
    )


def _address(tensor: DumpedTensor) -> str:
    """Place in the device's memory, which tells operators that write into each other's tensors."""
    return "" if tensor.block is None or tensor.file.form == "npy" else str(tensor.block.address)


def _metric_cell(tensor: TensorResult, name: str) -> str:
    if tensor.metrics is not None:
        return metric_text(tensor.metrics, name)[0]
    return _PERFECT[name] if tensor.status == IDENTICAL else NO_VALUE


def _quantised_value(comparison: Comparison) -> dict[str, object] | None:
    if comparison.quantised is None:
        return None
    from msdump.analysis.compare.quantised import words

    return words.json_value(comparison.quantised)


def json_value(comparison: Comparison, is_brief: bool = False) -> dict[str, object]:
    """Everything, for `json_values.json_text`.

    is_brief  of the operators the first that differ, and of their tensors those that do
    """
    differing = [result for result in comparison.operators if not result.is_agreeing]
    listed = set(map(id, differing[: json_values.BRIEF] if is_brief else comparison.operators))
    count = sum(1 for _ in comparison.operators)
    wrong, first = comparison.first_wrong, comparison.first_differing
    return {
        "mine": str(comparison.mine),
        "golden": str(comparison.golden),
        "reference": None if comparison.reference is None else str(comparison.reference),
        "answer": headline(comparison),
        "agree": comparison.is_agreeing,
        "first_wrong": None if wrong is None else location_value(wrong.step, wrong.pair.mine),
        "first_difference": None if first is None else location_value(first.step, first.pair.mine),
        "steps": [
            {
                "step": step_value(step.mine),
                "operators": [_operator_value(one, is_brief) for one in step.operators if id(one) in listed],
                "only_mine": [operator.label for operator in step.only_mine],
                "only_golden": [operator.label for operator in step.only_golden],
            }
            for step in comparison.steps
            if not is_brief or any(id(one) in listed for one in step.operators) or step.only_mine or step.only_golden
        ],
        "operators": count,
        "differing": len(differing),
        "omitted": {"steps.operators": count - len(listed)},
        "goes_on": [operator.label for _, operator in comparison.beyond],
        "notes": list(comparison.notes),
        "damaged": damaged_values(comparison.damaged),
        "quantised": _quantised_value(comparison),
        "tie": None if comparison.tie is None else _tie_value(comparison.tie),
        "hashes": None if comparison.hashes is None else list(comparison.hashes.names),
    }


def _tie_value(tie: Tie) -> dict[str, object]:
    return {
        **location_value(tie.result.step, tie.result.pair.mine),
        "elements": tie.count,
        "of": tie.size,
        "reached": tie.reached,
        "error": tie.error,
        "lost": None if tie.lost is None else step_value(tie.lost),
    }


def json_text(comparison: Comparison) -> str:
    """Everything as the JSON document of `msdump compare --json`, whose keys docs/json.md lists.

    Edges:   NaN and Inf, which JSON has not, are the texts "nan", "inf" and "-inf".
    """
    return json_values.json_text("compare", json_value(comparison))


def _operator_value(result: OperatorResult, is_brief: bool) -> dict[str, object]:
    tensors = [tensor for tensor in result.tensors if not is_brief or tensor.status == DIFFERS]
    return {
        "id": operator_id(result.step, result.pair.mine),
        **operator_value(result.pair.mine),
        "golden": result.pair.golden.label,
        "found_by": result.pair.how,
        "agrees": result.is_agreeing,
        "is_wrong": result.is_wrong,
        "input_error": result.input_error,
        "output_error": result.output_error,
        "added_error": result.added_error,
        "tensors": [_tensor_value(tensor) for tensor in tensors],
    }


def _tensor_value(tensor: TensorResult) -> dict[str, object]:
    return {
        "io": tensor.io,
        "slot": str(tensor.slot),
        "status": tensor.status,
        "reason": tensor.reason,
        "dtypes": [tensor.mine.true_dtype, tensor.golden.true_dtype],
        "shapes": [list(host_shape(tensor.mine)), list(host_shape(tensor.golden))],
        "files": [tensor.mine.path, tensor.golden.path],
        "error": tensor.error,
        "other_error": tensor.yardstick,
        "metrics": None if tensor.metrics is None else metrics_value(tensor.metrics),
    }


def metrics_value(metrics: PairMetrics) -> dict[str, object]:
    """All metrics of two tensors by name."""
    return {name: getattr(metrics, name) for name in PairMetrics.__slots__}
