"""How the verdict follows from a comparison: which operator is the fault, who made what it read, and what is not alike
beside its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from msdump.analysis.compare.common_tensors import host_shape
from msdump.analysis.compare.faults import Fault
from msdump.analysis.compare.laws import other_law, scaled, smoothed
from msdump.analysis.compare.operands import Source
from msdump.analysis.compare.repetition import Repetition, differing_repetition
from msdump.analysis.compare.result import (
    DIFFERS,
    NOT_COMPARED,
    Comparison,
    OperatorResult,
    TensorResult,
)
from msdump.analysis.compare.rounded import rounded_by
from msdump.analysis.compare.values import figures_of
from msdump.analysis.compare.verdict import (
    GOLDEN,
    MINE,
    Evidence,
    Finding,
    Makers,
    Operand,
    OtherAttribute,
    OtherDtype,
    OtherLayout,
    OtherNumbers,
    OtherOperator,
    Outcome,
    Place,
    Reason,
    Rounded,
    Swapped,
    Verdict,
)
from msdump.analysis.graph_info import GraphFiles, Origin
from msdump.analysis.steps import PARAMETER, Operator, Slot, StepKey
from msdump.errors import FormatError
from msdump.formats.dump_tensor import DumpedTensor
from msdump.graph.types import SourceLine
from msdump.operators.attributes import differing_attributes
from msdump.operators.kinds import argument_name, has, has_transposed_weight, is_mover, is_product, kind_of
from msdump.operators.traits import memory_use


def verdict_of(comparison: Comparison) -> Verdict:
    """Judge a comparison.   Edges: graph files are read again; what they do not tell is left out of the evidence."""
    repetition = None if comparison.hashes is not None else differing_repetition(comparison)
    return _Judge(comparison, repetition).verdict()


class _Judge:
    """Looks for the fault of one comparison, and for the evidence."""

    def __init__(self, comparison: Comparison, repetition: Repetition | None) -> None:
        self._comparison = comparison
        self._repetition = repetition
        self._graphs: dict[str, GraphFiles] = {}

    def verdict(self) -> Verdict:
        comparison = self._comparison
        quantised = comparison.quantised
        if quantised is not None and quantised.finding is not None:
            found = quantised.finding
            place = self._place(quantised.side, found.step, found.operator)
            return Verdict(Outcome.DIFFERS, (Finding(Reason.QUANTISED, place),), repeats=self._repetition)
        faults = comparison.faults
        goes_on = bool(faults) and any(one is faults[0][0].operator for _, one in comparison.beyond)
        if faults and quantised is None and not goes_on:
            return self._by_faults(faults)
        differing = comparison.first_differing
        if comparison.beyond and (differing is None or faults):
            beyond = tuple(self._place(GOLDEN, step, operator) for step, operator in comparison.beyond)
            return Verdict(Outcome.DIFFERS, (Finding(Reason.GOES_ON, beyond[0], beyond=beyond),))
        if differing is None:
            return Verdict(Outcome.INCOMPLETE if comparison.damaged else Outcome.AGREES)
        if quantised is not None and self._is_lost():
            return Verdict(Outcome.DIFFERS, (self._lost(comparison.differing[0]),))
        return self._differing(differing)

    def _by_faults(self, faults: Sequence[tuple[Fault, OperatorResult | None]]) -> Verdict:
        """Of runs whose values were confirmed: the operator with which the difference begins; and those that go wrong
        by themselves in that forward pass, which nothing before them explains.
        """
        first, *others = faults
        findings = [self._of_fault(*first)]
        if first[0].order[0] == 0 and findings[0].reason is not Reason.DRAW:
            findings += [
                self._wrong(result)
                for fault, result in others
                if result is not None and result.is_wrong and fault.order[0] == 0
                and fault.step[::2] == first[0].step[::2]
            ][:_MAX_OTHERS]  # fmt: skip
        came_in = (Reason.INPUT, Reason.PARAMETER, Reason.RESULT)
        is_none_wrong = findings[0].reason in came_in and len(findings) == 1 and _knows_inputs(findings[0])
        return Verdict(Outcome.DIFFERS, tuple(findings), is_none_wrong, self._repetition)

    def _of_fault(self, fault: Fault, result: OperatorResult | None) -> Finding:
        if result is not None:
            source = fault.source
            if result.is_wrong and source is not None and all(one.slot != source.slot for one in result.inputs):
                return self._of_state(result, source)
            found = self._wrong(result) if result.is_wrong else self._came_in(result, source)
            is_known = any(isinstance(one, OtherAttribute | OtherDtype | Swapped) for one in found.evidence)
            if found.reason is Reason.WRONG and found.tensor is not None and not is_known:
                of_result = _laws(fault, found.tensor.mine, found.tensor.golden)
                found = replace(found, evidence=(*of_result, *found.evidence))
            return found
        evidence = () if fault.results is None else _laws(fault, *fault.results)
        if fault.facing is not None:
            evidence = (*evidence, self._other_operator(*fault.facing))
        place = self._place(fault.side, fault.step, fault.operator)
        readers = (one for one in self._comparison.operators if fault.ends and one.pair.mine is fault.ends[0])
        before, goes_on = (None if one is None else self._place(MINE, *one) for one in fault.around)
        reader = next((self._place_of(one) for one in readers), goes_on)
        updated = self._updated(fault.side, fault.step, fault.operator)
        holder = None if fault.holder is None or fault.facing is not None else self._place(MINE, *fault.holder)
        return Finding(
            Reason.ONLY_ONE, place, evidence=evidence, reader=reader, holder=holder, before=before, updated=updated,
            forms=(self._form_lines(fault, MINE), self._form_lines(fault, GOLDEN)),
        )  # fmt: skip

    def _form_lines(self, fault: Fault, side: str) -> tuple[SourceLine, ...]:
        """The lines of one side's form but for those that are named anyway; () for more than a reader looks through."""
        places = [self._place(side, *one) for one in fault.forms[side == GOLDEN]]
        named = {self._place(side, *one).line for one in (
            *((fault.facing,) if side == GOLDEN and fault.facing is not None else ()),
            *(((fault.step, fault.operator),) if side == fault.side else ()),
        )}  # fmt: skip
        lines = list(dict.fromkeys(place.line for place in places if place.line is not None))
        return tuple(line for line in lines if line not in named) if len(lines) <= _MAX_LINES else ()

    def _is_lost(self) -> bool:
        """Whether rounding to codes explains all that differs, and no operator adds out of proportion."""
        comparison = self._comparison
        tensors = (tensor for result in comparison.operators for tensor in result.tensors if tensor.status == DIFFERS)
        if any(tensor.metrics is None or tensor.metrics.mismatched for tensor in tensors):
            return False
        ranking = () if comparison.quantised is None else comparison.quantised.ranking
        return any(one.is_quantised and one.added is not None for one in ranking)

    def _lost(self, first: OperatorResult) -> Finding:
        """Of the first operator with an error that is too large, or of who moves what it reads."""
        # Only these need it.
        from msdump.analysis.compare.quantised.movers import mover_before

        step = next(one for one in self._comparison.steps if one.mine == first.step)
        mover = mover_before(self._comparison, (*step.expected, *step.only_mine), first)
        if mover is None:
            return Finding(Reason.LOST, self._place_of(first), first)
        return Finding(Reason.LOST, self._place(MINE, first.step, mover), first, reader=self._place_of(first))

    def _differing(self, differing: OperatorResult) -> Verdict:
        comparison = self._comparison
        wrong = comparison.first_wrong
        findings = [] if wrong is None else [self._wrong(wrong)]
        if differing.draws_only:
            # A draw that nothing reads comes after what else differs.
            reached = {origin for result in comparison.operators for origin in self._differing_origins(result)}
            others = comparison.differing
            differing = next(
                (each for each in others if not each.draws_only or (each.step, each.pair.mine.label) in reached),
                differing,
            )
        if differing is wrong:
            return Verdict(Outcome.DIFFERS, tuple(findings), repeats=self._repetition)
        extra = self._begins_with(differing)
        if extra is not None:
            # It ran before all that goes wrong after it.
            tensor = next(tensor for tensor in differing.tensors if tensor.status == DIFFERS)
            line = self._place_of(differing).line
            alone = Finding(Reason.ONLY_ONE, self._place(*extra), differing, tensor=tensor, reader_line=line)
            findings.insert(0, alone)
            return Verdict(Outcome.DIFFERS, tuple(findings), repeats=self._repetition)
        findings.append(self._came_in(differing))
        has_types = bool(differing.pair.mine.op_type and differing.pair.golden.op_type)
        knows_inputs = comparison.hashes is None or comparison.hashes.has_inputs
        is_none_wrong = wrong is None and has_types and knows_inputs and findings[-1].reason is not Reason.DRAW
        return Verdict(
            Outcome.DIFFERS,
            tuple(findings),
            is_none_wrong and findings[-1].reason is not Reason.WRITER and _knows_inputs(findings[-1]),
            self._repetition,
        )

    def _wrong(self, result: OperatorResult) -> Finding:
        tensor = next(tensor for tensor in result.outputs if tensor.status == DIFFERS)
        return Finding(
            Reason.WRONG,
            self._place_of(result),
            result,
            self._evidence(result),
            tensor,
            Operand(tensor.io, tensor.slot),
            unseen=self._unseen(result),
            updated=self._updated(MINE, result.step, result.pair.mine),
        )

    def _updated(self, side: str, step: StepKey, operator: Operator) -> str:
        """The parameter that an operator of an optimizer reads; "" where the graph file names none."""
        if operator.stage != "optimizer" and not has(operator.op_type, "updates"):
            return ""
        origins = (self._origin(side, step, operator, slot.number) for slot in operator.inputs)
        return next((one.name for one in origins if one is not None and one.slot is None and not one.is_constant), "")

    def _unseen(self, result: OperatorResult) -> tuple[Operand, ...]:
        """Inputs of mine's operator that no file holds, that golden does not have, or that were not compared."""
        if self._comparison.hashes is not None or result.pair.mine.parts:
            return ()
        seen = {tensor.slot for tensor in result.inputs if tensor.status != NOT_COMPARED}
        if result.pair.golden_step is not None:
            # Values paired them: operands that another kind of operator has not were looked for, those of its own not.
            golden = result.pair.golden
            if kind_of(result.pair.mine.op_type) != kind_of(golden.op_type) and not golden.parts:
                return ()
            tensors = result.pair.mine.inputs.items()
            missing = [slot for slot, one in tensors if slot not in seen and math.prod(host_shape(one)) > 1]
            return tuple(self._operand(result, result.pair.mine, slot) for slot in sorted(missing))
        node = self._files(MINE).node(result.step, result.pair.mine)
        read = {Slot(number) for number, origin in enumerate(() if node is None else node.inputs)
                if origin is not None and not origin.is_constant}  # fmt: skip
        missing = sorted({*read, *result.pair.mine.inputs} - seen)
        return tuple(self._operand(result, result.pair.mine, slot) for slot in missing)

    def _of_state(self, result: OperatorResult, source: Source) -> Finding:
        """Of an operator that reads a state which golden's operator has not, or not as an operand of its own."""
        tensor = next(tensor for tensor in result.outputs if tensor.status == DIFFERS)
        operand = self._operand(result, result.pair.mine, source.slot)
        evidence, makers = self._evidence(result), self._makers(source)
        return Finding(Reason.INPUT, self._place_of(result), result, evidence, tensor, operand, makers=makers)

    def _makers(self, source: Source) -> Makers:
        sides = ((MINE, source.mine), (GOLDEN, source.golden), (GOLDEN, source.elsewhere))
        return Makers(*(None if one is None else self._place(side, *one) for side, one in sides))

    def _came_in(self, result: OperatorResult, source: Source | None = None) -> Finding:
        comparison, place = self._comparison, self._place_of(result)
        if result.draws_only:
            reached = len(comparison.differing) - 1
            return Finding(Reason.DRAW, place, result, _drawn(result), reached=reached)
        evidence = self._evidence(result)
        differing = next((tensor for tensor in result.outputs if tensor.status == DIFFERS), None)
        if comparison.hashes is not None and not comparison.hashes.has_inputs:
            return Finding(Reason.RESULT, place, result, evidence, differing)
        parameter = result if result.pair.mine.is_parameter else self._parameter_read(result)
        for writer in () if parameter is None else self._readers(parameter):
            # Statistics that run on are written by what reads them, which says so nowhere else.
            of_writer = self._evidence(writer)
            if parameter is not None and of_writer:
                tensor = next(tensor for tensor in parameter.outputs if tensor.status == DIFFERS)
                return Finding(
                    Reason.WRITER, self._place_of(writer), writer, of_writer, tensor, parameter=parameter.pair.mine
                )
        if parameter is result:
            return Finding(Reason.PARAMETER, place, result, evidence, differing)
        tensor_read = next((tensor for tensor in result.inputs if tensor.status == DIFFERS), None)
        if tensor_read is None:
            return Finding(Reason.RESULT, place, result, evidence, differing)
        if source is not None and (source.mine or source.golden or source.elsewhere):
            tensor_read = next((one for one in result.inputs if one.slot == source.slot), tensor_read)
            operand = self._operand(result, result.pair.mine, tensor_read.slot)
            return Finding(Reason.INPUT, place, result, evidence, tensor_read, operand, makers=self._makers(source))
        maker = self._maker(result, tensor_read)
        before = None if maker is not None else self._writer_before(result, tensor_read)
        if before is not None:
            return before
        constants = None if maker is not None else _two_numbers(tensor_read)
        operand = self._operand(result, result.pair.mine, tensor_read.slot)
        if constants is not None:
            # No weight and no data: the script, or a layer of the library, says it.
            called = argument_name(result.pair.mine.op_type, tensor_read.slot.number)
            operand = Operand(tensor_read.io, tensor_read.slot, called or "")
        made = None if maker is None else maker.pair.mine
        golden_maker = None if maker is not None or constants is not None else self._golden_maker(result, tensor_read)
        return Finding(
            Reason.INPUT, place, result, evidence, tensor_read, operand, made, constants, golden_maker=golden_maker
        )

    def _writer_before(self, result: OperatorResult, tensor: TensorResult) -> Finding | None:
        """The operator of the iteration before that wrote a state in another way, as its attributes tell."""
        origin = self._origin(MINE, result.step, result.pair.mine, tensor.slot.number)
        iteration = result.step.iteration
        if origin is None or origin.slot is not None or origin.maker is not None or not iteration:
            return None
        for writer in self._comparison.operators:
            if writer.step.rank_id != result.step.rank_id or writer.step.iteration != iteration - 1:
                continue
            for slot in memory_use(writer.pair.mine.op_type).overwrites:
                written = self._origin(MINE, writer.step, writer.pair.mine, slot)
                evidence = self._evidence(writer) if written is not None and written.name == origin.name else ()
                if evidence:
                    parameter = Operator(PARAMETER, origin.name)
                    place = self._place_of(writer)
                    return Finding(Reason.WRITER, place, writer, evidence, tensor, parameter=parameter)
        return None

    def _golden_maker(self, result: OperatorResult, tensor: TensorResult) -> Place | None:
        """Golden's operator of that iteration that made what golden reads, where mine has none."""
        comparison = self._comparison
        own = result.pair.golden_step
        if comparison.hashes is not None:
            return None
        for step in comparison.steps:
            if own is None and step.mine != result.step:
                continue
            pairs = ((each.pair.golden_step or step.golden, each.pair.golden) for each in step.operators)
            for key, operator in (*pairs, *((step.golden, one) for one in step.only_golden)):
                if own is not None and (key.rank_id, key.iteration) != (own.rank_id, own.iteration):
                    continue
                if operator is result.pair.golden or operator.is_parameter or is_mover(operator.op_type):
                    continue
                for output in operator.outputs.values():
                    if output.shape == tensor.golden.shape and comparison.is_same(output, tensor.golden):
                        return self._place(GOLDEN, key, operator)
        return None

    # -- places ------------------------------------------------------------------------------------------------------

    def _files(self, side: str) -> GraphFiles:
        if side not in self._graphs:
            self._graphs[side] = self._comparison.graphs_of(side == MINE)
        return self._graphs[side]

    def _place(self, side: str, step: StepKey, operator: Operator) -> Place:
        node = self._files(side).node(step, operator)
        return Place(side, step, operator, None if node is None else node.own_line)

    def _place_of(self, result: OperatorResult) -> Place:
        """Where mine's operator is; a log knows no lines, and golden is the same program."""
        pair = result.pair
        place = self._place(MINE, result.step, pair.mine)
        if place.line is None and self._comparison.hashes is not None and pair.golden_step is not None:
            line = self._place(GOLDEN, pair.golden_step, pair.golden).line
            return Place(MINE, result.step, pair.mine, line)
        return place

    def _operand(self, result: OperatorResult, operator: Operator, slot: Slot) -> Operand:
        origin = self._origin(MINE, result.step, operator, slot.number)
        return Operand("input", slot, "" if origin is None or origin.slot is not None else origin.name)

    def _origin(self, side: str, step: StepKey, operator: Operator, slot: int) -> Origin | None:
        """Where an input comes from, as the graph file tells."""
        node = self._files(side).node(step, operator)
        return node.inputs[slot] if node is not None and slot < len(node.inputs) else None

    # -- who made what -----------------------------------------------------------------------------------------------

    def _begins_with(self, result: OperatorResult) -> tuple[str, StepKey, Operator] | None:
        """Side, step and operator that one run alone has, where the difference of the first operator that differs
        begins with it.
        """
        hashes = self._comparison.hashes
        if result.draws_only or result.pair.mine.is_parameter or not (hashes is None or hashes.has_inputs):
            return None
        tensor = next((tensor for tensor in result.inputs if tensor.status == DIFFERS), None)
        if tensor is None:
            return None
        maker = self._maker(result, tensor)
        # Where what made it is right, the other side reads what another operator made of it.
        return self._extra_maker(result, tensor) if maker is None or maker.is_agreeing else None

    def _extra_maker(self, result: OperatorResult, tensor: TensorResult) -> tuple[str, StepKey, Operator] | None:
        """Side, step and operator of one side alone whose output is that input: by graph file, or by bytes."""
        step = next((step for step in self._comparison.steps if step.mine == result.step), None)
        if step is None:
            return None
        pair = result.pair
        sides = (
            (MINE, step.mine, step.only_mine, pair.mine, tensor.mine),
            (GOLDEN, step.golden, step.only_golden, pair.golden, tensor.golden),
        )
        for name, key, operators, reader, read in sides:
            origin = self._origin(name, key, reader, tensor.slot.number)
            for operator in operators:
                if pair.golden_step is not None and is_mover(operator.op_type):
                    continue  # frameworks turn and copy weights in their own ways
                if origin is not None:
                    is_maker = origin.slot is not None and origin.name in operator.names
                else:
                    outputs = operator.outputs.values()
                    is_maker = any(one.shape == read.shape and self._comparison.is_same(one, read) for one in outputs)
                if is_maker:
                    return name, key, operator
        return None

    def _maker(self, result: OperatorResult, tensor: TensorResult) -> OperatorResult | None:
        """Earlier operator of the same step whose output is that input."""
        for earlier in self._comparison.operators:
            if earlier is result:
                return None
            if earlier.step != result.step:
                continue
            for output in earlier.outputs:
                if output.mine.shape == tensor.mine.shape and self._comparison.is_same(output.mine, tensor.mine):
                    return earlier
        return None

    def _differing_origins(self, result: OperatorResult) -> Iterator[tuple[StepKey, str]]:
        """Operators that made the inputs of an operator that differ, as the graph file tells."""
        for tensor in result.inputs:
            origin = None
            if tensor.status == DIFFERS:
                origin = self._origin(MINE, result.step, result.pair.mine, tensor.slot.number)
            if origin is not None and origin.maker is not None:
                yield result.step._replace(graph_id=origin.maker[0]), origin.maker[1]
            elif origin is not None and origin.slot is not None:
                yield result.step, origin.name

    def _readers(self, result: OperatorResult) -> Iterator[OperatorResult]:
        """Operators of the same step that read a parameter, as the graph file tells."""
        name = result.pair.mine.op_name
        for reader in self._comparison.operators:
            node = self._files(MINE).node(reader.step, reader.pair.mine) if reader.step == result.step else None
            if node is not None and any(origin is not None and origin.name == name for origin in node.inputs):
                yield reader

    def _parameter_read(self, result: OperatorResult) -> OperatorResult | None:
        """A parameter that differs where an operator reads it, as the step that first left it different shows it."""
        origins = [
            self._origin(MINE, result.step, result.pair.mine, tensor.slot.number)
            for tensor in result.inputs
            if tensor.status == DIFFERS
        ]
        names = {origin.name for origin in origins if origin is not None and origin.slot is None}
        if not names:
            return None
        parameters = (other for other in self._comparison.differing if other.pair.mine.is_parameter)
        return next((other for other in parameters if other.pair.mine.op_name in names), None)

    # -- evidence ----------------------------------------------------------------------------------------------------

    def _evidence(self, result: OperatorResult) -> tuple[Evidence, ...]:
        """What two operators have that is not alike, as graph files tell."""
        if self._comparison.hashes is not None:
            return ()  # a log tells none
        if result.pair.golden_step is not None:
            return tuple(self._evidence_across(result))
        step = next((step for step in self._comparison.steps if result in step.operators), None)
        golden_step = None if step is None else step.golden
        return (*self._attributes(result, golden_step), *_other_dtype(result), *self._rounded(result))

    def _rounded(self, result: OperatorResult) -> Iterator[Rounded]:
        found = rounded_by(self._comparison, self._files, result) if result.is_wrong else None
        if found is not None:
            yield Rounded(self._place(*found), next(iter(found[2].outputs.values())).true_dtype)

    def _attributes(self, result: OperatorResult, golden_step: StepKey | None) -> Iterator[OtherAttribute]:
        mine = self._files(MINE).node(result.step, result.pair.mine)
        other = None if golden_step is None else self._files(GOLDEN).node(golden_step, result.pair.golden)
        if mine is None or other is None or mine.attrs is None or other.attrs is None:
            return
        names = [name for name in dict.fromkeys((*mine.attrs, *other.attrs)) if name not in _NO_ATTRIBUTES]
        if mine.op_type != other.op_type or not result.is_wrong:
            names = [name for name in names if name in mine.attrs and name in other.attrs]
        for name in names:
            values = [attrs.get(name, _MISSING) for attrs in (mine.attrs, other.attrs)]
            if not _is_equal(*values):
                texts = [None if value is _MISSING else str(value) for value in values]
                yield OtherAttribute(name, texts[0], texts[1])

    def _other_operator(self, step: StepKey, operator: Operator) -> OtherOperator:
        line = self._place(GOLDEN, step, operator.parts[-1] if operator.parts else operator).line
        return OtherOperator(operator.label, operator.op_type, line)

    def _evidence_across(self, result: OperatorResult) -> Iterator[Evidence]:
        """Of operators of two frameworks: attributes that say different things, whatever they are called; the numbers
        that each has beside its tensors where none does.
        """
        pair = result.pair
        assert pair.golden_step is not None
        sides = []
        for side, step, operator in ((MINE, result.step, pair.mine), (GOLDEN, pair.golden_step, pair.golden)):
            nodes = [(part.op_type, self._files(side).node(step, part)) for part in operator.parts or (operator,)]
            sides.append([(op_type, node.attrs or {}) for op_type, node in nodes if node is not None])
        kinds = {kind_of(side.op_type) for side in (pair.mine, pair.golden) if not side.parts}
        if len(kinds) == len(sides) and pair.golden.op_type:
            yield self._other_operator(pair.golden_step, pair.golden)
        found: list[Evidence] = [
            OtherAttribute(*texts)
            for mine in sides[0]
            for other in sides[1]
            for texts in differing_attributes(mine, other)
        ]
        if found and pair.mine.op_type == pair.golden.op_type:
            # Both call them alike.
            found = list(self._attributes(result, pair.golden_step)) or found
        if result.is_wrong and pair.swapped:
            found.append(Swapped(tuple(self._operand(result, pair.mine, slot) for slot in pair.swapped)))
        found += self._other_layout(result, sides)
        found += _other_dtype(result)
        found += self._rounded(result)
        if result.is_wrong and not found:
            numbers = [tuple(_numbers(one, side)) for one, side in zip((pair.mine, pair.golden), sides, strict=True)]
            if any(numbers) and numbers[0] != numbers[1]:
                found.append(OtherNumbers(numbers[0], numbers[1], (bool(sides[0]), bool(sides[1]))))
        yield from found

    def _other_layout(
        self, result: OperatorResult, sides: Sequence[Sequence[tuple[str, Mapping[str, Any]]]]
    ) -> Iterator[OtherLayout]:
        """What is wrong with the order of the weight of a product where its numbers are right."""
        products = [next((one for one in side if is_product(one[0])), None) for side in sides]
        weight = next((tensor for tensor in result.inputs if tensor.slot == Slot(1)), None)
        if products[0] is None or products[1] is None or weight is None:
            return
        one_transposes = has_transposed_weight(*products[0]) != has_transposed_weight(*products[1])
        product = next((part for part in result.pair.mine.parts if is_product(part.op_type)), result.pair.mine)
        operand = self._operand(result, product, Slot(1))
        shapes = host_shape(weight.mine), host_shape(weight.golden)
        if weight.status == DIFFERS or {len(shape) for shape in shapes} != {2}:
            return
        if bool(weight.axes) != one_transposes:
            yield OtherLayout(operand, None)
        elif not weight.axes and shapes[0] != shapes[1]:
            yield OtherLayout(operand, shapes)


def _other_dtype(result: OperatorResult) -> Iterator[OtherDtype]:
    """Of an operator that goes wrong: that it computes in another dtype than golden's."""
    first = result.outputs[0] if result.is_wrong else None
    if first is not None and first.mine.true_dtype != first.golden.true_dtype:
        yield OtherDtype(Operand(first.io, first.slot), first.mine.true_dtype, first.golden.true_dtype)


def _laws(fault: Fault, mine: DumpedTensor, golden: DumpedTensor) -> tuple[Evidence, ...]:
    """What two results of one computation tell.   Edges: nothing where one cannot be read."""
    read = [tensor for part in fault.operator.parts or (fault.operator,) for tensor in part.inputs.values()]
    shapes = [host_shape(tensor) for tensor in read]
    counts = {length for shape in shapes for length in (*shape, math.prod(shape))}
    try:
        x, y = mine.load_host(), golden.load_host()
        of_scale = scaled(x, y, sorted(counts), fault.starts)
        if of_scale is not None:
            return (of_scale,)
        tables = [tensor.load_host() for tensor, shape in zip(read, shapes, strict=True) if len(shape) == _MATRIX]
    except (FormatError, OSError):
        return ()
    if x.size != 1 or not tables or not bool((tables[0] <= 0).all()):
        return ()
    of_labels = smoothed(tables[0], float(x.reshape(-1)[0]), float(y.reshape(-1)[0]))
    return () if of_labels is None else (of_labels,)


def _drawn(result: OperatorResult) -> tuple[Evidence, ...]:
    """Whether a random operator draws by another law.   Edges: nothing where a tensor cannot be read."""
    if not result.inputs or not result.outputs:
        return ()
    tensors = result.inputs[0].mine, result.outputs[0].mine, result.outputs[0].golden
    try:
        found = other_law(*(tensor.load_host() for tensor in tensors))
    except (FormatError, OSError):
        return ()
    return () if found is None else (found,)


def _numbers(
    operator: Operator, attributes: Sequence[tuple[str, Mapping[str, Any]]]
) -> Iterator[tuple[Operand | str, float]]:
    """Numbers that an operator has beside its tensors: inputs of one element, and attributes."""
    for part in operator.parts or (operator,):
        for slot, tensor in part.inputs.items():
            figures = figures_of(tensor) if math.prod(host_shape(tensor)) == 1 else None
            if figures is not None:
                yield Operand("input", slot), figures.total
    for _, values in attributes:
        for name, value in values.items():
            if isinstance(value, (int, float)) and value is not False:
                yield name, float(value)


def _two_numbers(tensor: TensorResult) -> tuple[float, float] | None:
    """The numbers of two tensors of one element; None for larger ones and what cannot be read."""
    found = [figures_of(side) for side in (tensor.mine, tensor.golden) if host_shape(side) == ()]
    numbers = [one.total for one in found if one is not None]
    return (numbers[0], numbers[1]) if len(numbers) == len((tensor.mine, tensor.golden)) else None


def _is_equal(x: object, y: object) -> bool:
    """Whether two values of an attribute are the same; a list and a tuple of the same items are, NaN is itself."""
    if isinstance(x, list | tuple) and isinstance(y, list | tuple):
        return len(x) == len(y) and all(map(_is_equal, x, y))
    return repr(x) == repr(y)


# What a graph file says of an operator beside what the script chose.
_MATRIX = 2  # axes


def _knows_inputs(finding: Finding) -> bool:
    """Whether any input of the operator was compared, where that it differs is all there is to say."""
    return finding.reason is not Reason.RESULT or finding.result is None or bool(finding.result.inputs)


_MAX_OTHERS = 2  # findings behind the first one
_MAX_LINES = 6  # of a form that is written otherwise in golden
_NO_ATTRIBUTES = frozenset({"input_names", "output_names"})
_MISSING = object()
