"""A step of a quantised model as the model in floats would have it: codes become numbers, and what only turns one into
the other is taken out of the way."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msdump.analysis.compare.quantised.numbers import Grid, computed, fitted, grid, loaded
from msdump.analysis.compare.quantised.sums import ScaledSums, scaled_sums, split_scales
from msdump.analysis.compare.quantised.wires import ContentKey, Wires
from msdump.analysis.steps import Operator, Slot
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.codes import (
    CodeForm,
    CodeInput,
    code_form,
    computes_on_codes,
    dequantises,
    family,
    has_weight,
    integer_slots,
    multiplies_codes,
    prepares_weights,
    quantises,
    quantises_in_floats,
    rescales,
)
from msdump.operators.kinds import operand_slots
from msdump.tensors.arrays import Array

Attributes = Callable[[Operator], "Mapping[str, Any] | None"]
_CODES = re.compile(r"q?(?P<sign>u?)int(?P<bits>2|4|8|16)")
_FIRST, _SECOND = Slot(0), Slot(1)
_NO_KEY: ContentKey = ("", 0, b"")


@dataclass(frozen=True, eq=False, slots=True)
class Rounding:
    """A tensor that is rounded to codes.

    operator   what does so, as one operator from numbers to numbers
    source     the numbers before; None where the operator that makes them gives codes at once
    result     the numbers that the codes mean
    codes      None where the dump has none
    levels     smallest and largest code
    maker      operator of the float form that made the source or the codes; None for what came from outside
    reader     the operator that the rounding is a part of, where no operator is known to round for it
    written    the numbers that the codes mean by what rounded them, where another operator makes numbers of them
    """

    operator: Operator
    source: DumpedTensor | None
    result: DumpedTensor
    codes: DumpedTensor | None
    levels: tuple[int, int] | None
    maker: Operator | None
    written: DumpedTensor | None = None
    reader: Operator | None = None

    @property
    def bits(self) -> int | None:
        return None if self.levels is None else (self.levels[1] - self.levels[0]).bit_length()


@dataclass(frozen=True, eq=False)
class FloatForm:
    """A step in floats.

    operators   in execution order; those that compute on codes have their names and types, and numbers as tensors
    units       ids of those whose type a model in floats does not have
    weights     id of an operator -> slots whose numbers codes stand for, and the number of bits (None: unknown)
    hidden      operators of the dump that a model in floats has not
    wires       of the step as it was dumped
    index       id of an operator -> index of the last operator of the dump that it stands for
    at          index of an operator of the dump -> the one that stands for it
    written     id of the numbers that an operator reads codes as -> what they mean by the operator that wrote them, if
                their scales or zero points differ
    """

    operators: tuple[Operator, ...]
    units: frozenset[int]
    roundings: tuple[Rounding, ...]
    weights: Mapping[int, Mapping[Slot, int | None]]
    hidden: tuple[Operator, ...]
    source: Sequence[Operator]
    wires: Wires
    index: Mapping[int, int]
    at: Mapping[int, Operator]
    written: Mapping[int, DumpedTensor]


def code_levels(dtype: str) -> tuple[int, int] | None:
    """Smallest and largest code of a dtype, such as "uint8", "qint8" or "torch.int8"; None for what are no codes."""
    match = _CODES.fullmatch(dtype.removeprefix("torch.").lower())
    if match is None:
        return None
    count = 1 << int(match["bits"])
    return (0, count - 1) if match["sign"] else (-count // 2, count // 2 - 1)


def float_form(operators: Sequence[Operator], attributes: Attributes) -> FloatForm:
    """The float form of the operators of a step.   attributes: of an operator, where the dump tells them"""
    return _Former(operators, attributes).formed()


@dataclass(eq=False)
class _Former:
    """One step while it is turned into floats."""

    source: Sequence[Operator]
    attributes: Attributes
    operators: list[Operator] = field(default_factory=list)
    units: set[int] = field(default_factory=set)
    roundings: list[Rounding] = field(default_factory=list)
    weights: dict[int, dict[Slot, int | None]] = field(default_factory=dict)
    hidden: list[Operator] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._wires = Wires(self.source)
        self._grids: dict[ContentKey, Grid] = {}
        # Codes -> index of their rounding, and of the operator that makes them.
        self._rounding_of: dict[ContentKey, tuple[int, int]] = {}
        self._weight_numbers: dict[ContentKey, int | None] = {}
        # Numbers that were rounded and came from outside: weights where a product reads them as such.
        self._outside: dict[ContentKey, int | None] = {}
        self._rounded_weights: set[ContentKey] = set()
        self._moved: dict[ContentKey, ContentKey] = {}
        self._taken: set[int] = set()
        self._form_of: dict[int, Operator] = {}
        self._written: dict[int, DumpedTensor] = {}

    def formed(self) -> FloatForm:
        self._learn_grids()
        for index, operator in enumerate(self.source):
            if index not in self._taken:
                self._form(index, operator)
        return FloatForm(
            tuple(self.operators),
            frozenset(self.units),
            tuple(one for one in self.roundings if self._wires.key(one.result) not in self._rounded_weights),
            self.weights,
            tuple(self.hidden),
            self.source,
            self._wires,
            {id(operator): index for index, operator in self._form_of.items()},
            self._form_of,
            self._written,
        )

    def _form(self, index: int, operator: Operator) -> None:
        op_type = operator.op_type
        form = code_form(op_type)
        if operator.is_parameter:
            self.operators.append(operator)
        elif prepares_weights(op_type):
            self.hidden.append(operator)
        elif quantises(op_type):
            self._quantise(index, operator)
        elif dequantises(op_type):
            self._dequantise(index, operator)
        elif form is not None:
            self._compute(index, operator, form)
        elif self._is_integer(operator):
            self._sum_integers(index, operator)
        elif multiplies_codes(op_type):
            self._multiply(index, operator)
        elif computes_on_codes(op_type):
            self._keep(index, operator, is_unit=True)
        elif not self._sum_cast_codes(index, operator) and not self._pass_codes_on(index, operator):
            self._keep(index, operator)

    def _learn_grids(self) -> None:
        """What codes mean that operators hand on before they become numbers, as the rows of an embedding."""
        for operator in reversed(self.source):
            form = code_form(operator.op_type)
            for each in () if form is None else _code_inputs(operator, form):
                codes, own = operator.inputs.get(Slot(each.codes)), _grid_of_input(operator, each)
                if codes is not None and own is not None and (key := self._wires.key(codes)) is not None:
                    self._grids.setdefault(key, own)
            first, output = operator.inputs.get(_FIRST), operator.outputs.get(_FIRST)
            if first is None or output is None or operator.is_parameter or code_levels(first.true_dtype) is None:
                continue
            key = self._wires.key(first)
            if dequantises(operator.op_type):
                own = self._grid_of(operator, self.attributes(operator) or {}, output, first)
            else:
                is_moved = output.true_dtype == first.true_dtype and not quantises(operator.op_type)
                own = self._grids.get(self._wires.key(output) or _NO_KEY) if is_moved else None
                own = own if own is not None and own.scale.size == 1 else None
            if key is not None and own is not None:
                self._grids.setdefault(key, own)

    def _keep(self, index: int, operator: Operator, *, is_unit: bool = False) -> None:
        slots: dict[Slot, int | None] = {}
        place = Slot(operand_slots(operator.op_type)[1]) if has_weight(operator.op_type) else None
        for slot, tensor in operator.inputs.items():
            key = self._wires.key(tensor)
            if key is not None and key in self._weight_numbers:
                slots[slot] = self._weight_numbers[key]
            elif key is not None and key in self._outside and slot == place:
                slots[slot] = self._outside[key]
                self._rounded_weights.add(self._moved.get(key, key))
        self._hand_on(operator)
        self._add(index, operator, operator, slots, is_unit)

    def _hand_on(self, operator: Operator) -> None:
        """A weight that is only laid out anew remains one."""
        keys = [self._wires.key(tensor) for tensor in (*operator.inputs.values(), *operator.outputs.values())]
        if len(keys) != 2 or len(operator.inputs) != 1 or not _moves(operator):
            return
        before, after = keys
        for known in (self._weight_numbers, self._outside):
            if before is not None and after is not None and before in known:
                known.setdefault(after, known[before])
        if before in self._outside and after is not None and before is not None:
            self._moved[after] = self._moved.get(before, before)

    def _add(
        self, index: int, was: Operator, operator: Operator, weights: dict[Slot, int | None], is_unit: bool
    ) -> None:
        self.operators.append(operator)
        self._form_of[index] = operator
        if weights:
            self.weights[id(operator)] = weights
        if is_unit:
            self.units.add(id(operator))
        if was is not operator:
            self.hidden += operator.parts

    def _maker(self, tensor: DumpedTensor, index: int) -> Operator | None:
        """The operator of the float form that made a tensor, behind those that only round it."""
        maker = self._wires.maker(tensor, index)
        return None if maker is None else self._form_of.get(maker)

    # -- to codes and back -----------------------------------------------------------------------------------------

    def _quantise(self, index: int, operator: Operator) -> None:
        source, output = operator.inputs.get(_FIRST), operator.outputs.get(_FIRST)
        attrs = self.attributes(operator) or {}
        if source is None:
            self.hidden.append(operator)
            return
        levels = None if output is None else code_levels(output.true_dtype)
        is_in_floats = output is not None and (levels is None or quantises_in_floats(operator.op_type))
        levels = levels or code_levels(str(attrs.get("dtype", "")))
        if "quant_min" in attrs and "quant_max" in attrs:
            levels = int(attrs["quant_min"]), int(attrs["quant_max"])
        if output is not None and is_in_floats:
            self._round(index, operator, source, output, None, levels)
            return
        grid_of_codes = self._grid_of(operator, attrs, source, output)
        if grid_of_codes is None:
            self.hidden.append(operator)
        elif output is not None:
            if (key := self._wires.key(output)) is not None:
                self._grids[key] = grid_of_codes
                self._rounding_of[key] = len(self.roundings), index
            self._round(index, operator, source, grid_of_codes.of(output), output, levels)
        elif levels is not None:
            low, high = levels
            numbers = computed(source, lambda: grid_of_codes.rounded(source.load_host(), low, high), "rounded", index)
            self._round(index, operator, source, numbers, None, levels)
        else:
            self.hidden.append(operator)

    def _round(
        self,
        index: int,
        operator: Operator,
        source: DumpedTensor,
        result: DumpedTensor,
        codes: DumpedTensor | None,
        levels: tuple[int, int] | None,
    ) -> None:
        if (key := self._wires.key(result)) is not None and self._wires.maker(source, index) is None:
            self._outside[key] = None if levels is None else (levels[1] - levels[0]).bit_length()
        form = replace(operator, inputs={_FIRST: source}, outputs={_FIRST: result}, parts=(operator,))
        self._form_of[index] = form
        self.hidden.append(operator)
        self.roundings.append(Rounding(form, source, result, codes, levels, self._maker(source, index)))

    def _grid_of(
        self, operator: Operator, attrs: Mapping[str, Any], source: DumpedTensor, codes: DumpedTensor | None
    ) -> Grid | None:
        axis = attrs.get("axis")
        axis = axis if isinstance(axis, int) else None
        sides = operator.outputs if operator.op_type.startswith("Dynamic") else operator.inputs
        scale, zero = loaded(sides.get(Slot(1))), loaded(sides.get(Slot(2)))
        if scale is not None:
            return grid(scale, zero, axis)
        values = next((attrs[name] for name in ("scale", "scales") if _is_numeric(attrs.get(name))), None)
        if values is not None and operator.op_type.startswith(("aten", "quantized")):
            zeros = next((attrs[name] for name in ("zero_point", "zero_points") if _is_numeric(attrs.get(name))), None)
            return grid(values, zeros, axis)
        # Others say it in ways of their own: the numbers and the codes beside each other tell.
        arrays = loaded(codes), loaded(source)
        return None if arrays[0] is None or arrays[1] is None else fitted(arrays[0], arrays[1])

    def _dequantise(self, index: int, operator: Operator) -> None:
        self.hidden.append(operator)
        codes, result = operator.inputs.get(_FIRST), operator.outputs.get(_FIRST)
        key = None if codes is None else self._wires.key(codes)
        if codes is None or result is None or key is None:
            return
        found = self._rounding_of.get(key)
        maker = self._wires.maker(codes, index)
        if found is not None:
            number, quantiser = found
            rounding = self.roundings[number]
            parts = (*rounding.operator.parts, operator)
            form = replace(rounding.operator, outputs={_FIRST: result}, parts=parts)
            written = rounding.written or rounding.result
            self.roundings[number] = replace(rounding, operator=form, result=result, written=written)
            self._form_of[quantiser] = self._form_of[index] = form
        elif maker is None:
            if (result_key := self._wires.key(result)) is not None:
                self._weight_numbers[result_key] = _bits(codes)
        elif maker in self._form_of:
            self._form_of[index] = self._form_of[maker]

    # -- operators on codes ----------------------------------------------------------------------------------------

    def _compute(self, index: int, operator: Operator, form: CodeForm) -> None:
        inputs: dict[Slot, DumpedTensor] = {}
        weights: dict[Slot, int | None] = {}
        grids = []
        for each in _code_inputs(operator, form):
            codes, own = operator.inputs.get(Slot(each.codes)), _grid_of_input(operator, each)
            if codes is None or own is None:
                continue
            grids.append(own)
            numbers = inputs[Slot(each.slot)] = own.of(codes)
            written = self._grids.get(self._wires.key(codes) or _NO_KEY)
            if self._wires.maker(codes, index) is not None:
                if written is not None and not written.is_equal(own):
                    self._written[id(numbers)] = written.of(codes)
            elif each.is_weight:
                weights[Slot(each.slot)] = _bits(codes)
        for was, slot in form.plain:
            if (tensor := operator.inputs.get(Slot(was))) is not None:
                inputs[Slot(slot)] = tensor
        bias = None if form.bias is None else operator.inputs.get(Slot(form.bias[0]))
        if form.bias is not None and bias is not None and len(grids) == 2 and grids[0].scale.size == 1:
            inputs[Slot(form.bias[1])] = grids[0].times(grids[1]).of(bias)
            if self._wires.maker(bias, index) is None:
                weights[Slot(form.bias[1])] = _bits(bias)
        outputs = dict(operator.outputs)
        codes = outputs.get(_FIRST)
        scale = None if form.output is None else loaded(operator.inputs.get(Slot(form.output[0])))
        own_grid = None
        if codes is not None and scale is not None and form.output is not None:
            own_grid = grid(scale, loaded(operator.inputs.get(Slot(form.output[1]))))
            outputs = {_FIRST: own_grid.of(codes)}
            if (key := self._wires.key(codes)) is not None:
                self._grids[key] = own_grid
        unit = replace(operator, inputs=dict(sorted(inputs.items())), outputs=outputs, parts=(operator,))
        self._add(index, operator, unit, weights, True)
        if own_grid is not None and codes is not None:
            levels = code_levels(codes.true_dtype)
            self.roundings.append(Rounding(unit, None, outputs[_FIRST], codes, levels, unit))

    def _multiply(self, index: int, operator: Operator) -> None:
        """A product of codes that gives numbers: its scale is that of the weight where each row of the data has its
        own, else the product of both."""
        codes, weight = operator.inputs.get(_FIRST), operator.inputs.get(_SECOND)
        scale = loaded(operator.inputs.get(Slot(2)))
        own = None if codes is None else self._grids.get(self._wires.key(codes) or _NO_KEY)
        inputs: dict[Slot, DumpedTensor] = {}
        weights: dict[Slot, int | None] = {}
        if codes is not None and own is not None:
            inputs[_FIRST] = own.of(codes)
        if weight is not None and scale is not None and own is not None:
            by_both = grid(scale).scale.reshape(-1)
            factor = float(own.scale.reshape(())) or 1.0 if own.scale.size == 1 else 1.0
            inputs[_SECOND] = grid(by_both / factor, None, -1).of(weight)
            weights[_SECOND] = _bits(weight)
        self._add(index, operator, replace(operator, inputs=inputs, parts=(operator,)), weights, True)

    def _is_integer(self, operator: Operator) -> bool:
        """Whether an operator multiplies codes and gives sums of them."""
        if integer_slots(operator.op_type) is not None:
            return True
        first, output = operator.inputs.get(_FIRST), operator.outputs.get(_FIRST)
        return (
            family(operator.op_type) in ("linear", "conv")
            and first is not None
            and output is not None
            and code_levels(first.true_dtype) is not None
            and output.true_dtype == "int32"
        )

    def _sum_integers(self, index: int, operator: Operator) -> None:
        """Sums of products of codes, with the operators behind it that scale them, as one operator on numbers."""
        data, weight, weight_zero = integer_slots(operator.op_type) or (0, 1, -1)
        sums = scaled_sums(self.source, self._wires, index)
        if sums is None:
            self.hidden.append(operator)
            return
        codes, other = operator.inputs.get(Slot(data)), operator.inputs.get(Slot(weight))
        known = None if codes is None else self._grids.get(self._wires.key(codes) or _NO_KEY)
        array = None if sums.offset is None else loaded(other)
        own, scale = split_scales(sums, known, 0 if array is None else sums.zero_of_data(array))
        inputs: dict[Slot, DumpedTensor] = {} if codes is None or own is None else {_FIRST: own.of(codes)}
        zero = loaded(operator.inputs.get(Slot(weight_zero))) if weight_zero >= 0 else None
        weight_of = None if scale is None or other is None else (other, scale, zero)
        unit = self._add_sums(index, operator, sums, inputs, weight_of)
        if known is None and codes is not None and _FIRST in inputs:
            levels = code_levels(codes.true_dtype)
            self.roundings.append(Rounding(unit, None, inputs[_FIRST], codes, levels, None, reader=unit))

    def _sum_cast_codes(self, index: int, operator: Operator) -> bool:
        """Whether an operator multiplies numbers with codes that were cast and are scaled behind it: then it is
        added as one operator on numbers."""
        data, weight, _ = operand_slots(operator.op_type)
        tensor = operator.inputs.get(Slot(weight)) if has_weight(operator.op_type) else None
        maker = None if tensor is None else self._wires.maker(tensor, index)
        codes = None if maker is None else self.source[maker].inputs.get(_FIRST)
        if maker is None or codes is None or code_levels(codes.true_dtype) is None:
            return False
        sums = scaled_sums(self.source, self._wires, index) if rescales(self.source[maker].op_type) else None
        if sums is None or not sums.columns or sums.rows is not None or Slot(data) not in operator.inputs:
            return False
        self._add_sums(index, operator, sums, {_FIRST: operator.inputs[Slot(data)]}, (codes, sums.columns[0], None))
        return True

    def _add_sums(
        self,
        index: int,
        operator: Operator,
        sums: ScaledSums,
        inputs: dict[Slot, DumpedTensor],
        weight: tuple[DumpedTensor, Array, Array | None] | None,
    ) -> Operator:
        """weight: its codes, scale and zero point; None where its scale is not known"""
        weights: dict[Slot, int | None] = {}
        if weight is not None:
            codes, scale, zero = weight
            axis = 0 if family(operator.op_type) == "conv" else -1
            inputs[_SECOND] = grid(scale, zero, axis).of(codes)
            weights[_SECOND] = _bits(codes)
        self._taken.update(sums.parts)
        parts = (operator, *(self.source[number] for number in sums.parts))
        unit = replace(operator, inputs=inputs, outputs={_FIRST: sums.result}, parts=parts)
        self._add(index, operator, unit, weights, True)
        self._form_of[sums.parts[-1]] = unit
        return unit

    def _pass_codes_on(self, index: int, operator: Operator) -> bool:
        """Whether an operator hands codes on as they are, as pooling by maxima does: then its numbers are added."""
        found = {
            slot: own
            for slot, tensor in operator.inputs.items()
            if (key := self._wires.key(tensor)) is not None and (own := self._grids.get(key)) is not None
        }
        output = operator.outputs.get(_FIRST)
        if not found or output is None:
            return False
        first = next(iter(found))
        if output.true_dtype != operator.inputs[first].true_dtype or len({id(own) for own in found.values()}) > 1:
            return False
        own = found[first]
        inputs = {slot: found[slot].of(one) if slot in found else one for slot, one in operator.inputs.items()}
        if (key := self._wires.key(output)) is not None:
            self._grids[key] = own
        form = replace(operator, inputs=inputs, outputs={_FIRST: own.of(output)}, parts=(operator,))
        self._add(index, operator, form, {}, False)
        return True


def _code_inputs(operator: Operator, form: CodeForm) -> list[CodeInput]:
    inputs = list(form.inputs)
    while form.repeats and Slot(inputs[-1].codes + 3) in operator.inputs:
        last = inputs[-1]
        inputs.append(CodeInput(last.codes + 3, last.codes + 4, last.codes + 5, last.slot + 1))
    return inputs


def _grid_of_input(operator: Operator, each: CodeInput) -> Grid | None:
    scale, zero = (loaded(operator.inputs.get(_slot(number))) for number in (each.scale, each.zero))
    return None if scale is None else grid(scale, zero, each.axis, each.offset)


def _slot(number: int | None) -> Slot:
    return Slot(-1 if number is None else number)


def _bits(codes: DumpedTensor) -> int | None:
    """Bits of a code; None for what are no codes, as a bias in int32."""
    levels = code_levels(codes.true_dtype)
    return None if levels is None else (levels[1] - levels[0]).bit_length()


def _moves(operator: Operator) -> bool:
    return family(operator.op_type) in {"transpose", "t", "reshape", "view", "permute", "unsqueeze", "squeeze", "cast"}


def _is_numeric(value: object) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(one, int | float) for one in value)
    return isinstance(value, int | float) and not isinstance(value, bool)
