"""What roundings of a quantised step round in the step in floats, and what both were given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from msdump.analysis.compare.quantised.float_form import FloatForm, Rounding, code_levels
from msdump.analysis.compare.quantised.numbers import ComputedTensor
from msdump.analysis.compare.quantised.tails import error_of, first_type, tails
from msdump.analysis.steps import Operator, Slot
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.codes import has_weight, is_activation, slot_in_floats
from msdump.operators.kinds import operand_slots

GIVES_DATA = frozenset({"Data", "Placeholder"})
_FIRST = Slot(0)
_FLOATS = ("float", "bfloat")


@dataclass(frozen=True, eq=False, slots=True)
class Reference:
    """A rounding, and what it rounds in the model in floats.

    tensor      None where the dump in floats has none
    operator    that made it
    is_folded   an activation that the quantised model has not is part of the rounding
    codes       the operator of a pair that the rounding is a part of; None for one that stands by itself
    """

    rounding: Rounding
    tensor: DumpedTensor | None
    operator: Operator | None
    is_folded: bool = False
    codes: Operator | None = None


@dataclass(frozen=True, eq=False, slots=True)
class References:
    """Finds them, once operators are paired.

    partners   id of an operator of the step with codes -> as it was paired, in floats
    weights    as `QuantisedPairing` has it; free: ids of the operators in floats without a partner
    """

    _codes: FloatForm
    _floats: FloatForm
    _partners: Mapping[int, tuple[Operator, Operator]]
    _weights: Mapping[int, Mapping[Slot, int | None]]
    _free: Collection[int]

    def of(self, rounding: Rounding) -> Reference:
        """What a rounding rounds in the model in floats, by the partner of the operator before it."""
        if rounding.reader is not None:
            codes, floats = self._partners.get(id(rounding.reader), (None, None))
            place = (
                None
                if codes is None
                else next((at for at, one in codes.inputs.items() if one is rounding.result), None)
            )
            tensor = None if floats is None or place is None else floats.inputs.get(place)
            return Reference(rounding, tensor, None, False, codes)
        if rounding.maker is None or id(rounding.maker) not in self._partners:
            return Reference(rounding, self._read_in_floats(rounding), None)
        codes, floats = self._partners[id(rounding.maker)]
        slot = self._made_as(rounding, codes)
        made = None if slot is None else floats.outputs.get(slot)
        if made is None:
            return Reference(rounding, None, None)
        if rounding.source is None:
            folded = any(is_activation(part.op_type) for part in floats.parts)
            return Reference(rounding, made, floats, folded, codes)
        if codes.outputs.get(_FIRST) is rounding.result:
            # A mapping file made the rounding part of the operator.
            return Reference(rounding, made, floats, True, codes)
        ends = [(floats, *tail) for tail in tails(self._floats, floats, self._free)] if slot == _FIRST else []
        reading = self._read_in_floats(rounding)
        read = None if reading is None else self._floats.wires.key(reading)
        for chain in ends if read is not None else ():
            # What reads the codes reads in floats what the whole chain makes.
            if self._floats.wires.key(chain[-1].outputs[_FIRST]) == read:
                return Reference(rounding, chain[-1].outputs[_FIRST], chain[-1], chain[-1] is not floats)
        errors = [error_of(rounding.result, chain[-1].outputs[_FIRST]) for chain in ends]
        if not errors:
            return Reference(rounding, made, floats)
        last = ends[errors.index(min(errors))][-1]
        return Reference(rounding, last.outputs[_FIRST], last, last is not floats)

    def _made_as(self, rounding: Rounding, codes: Operator) -> Slot | None:
        """The output of a pair that is rounded; None for what a part of it makes."""
        key = None if rounding.source is None else self._codes.wires.key(rounding.source)
        if key is None or codes.outputs.get(_FIRST) is rounding.result:
            return _FIRST
        return next((slot for slot, one in codes.outputs.items() if self._codes.wires.key(one) == key), None)

    def _read_in_floats(self, rounding: Rounding) -> DumpedTensor | None:
        """What is read in floats in the place of the numbers, or the codes, of a rounding."""
        key = self._codes.wires.key(rounding.result)
        for tensor in (rounding.result, rounding.codes):
            for number, slot in () if tensor is None else self._codes.wires.readers(tensor, -1):
                operator = self._codes.at.get(number)
                partner = None if operator is None else self._partners.get(id(operator))
                if operator is None or partner is None:
                    continue
                # A pair has its tensors in the slots of the operator in floats.
                own_side, floats = partner
                number = slot.number if tensor is rounding.result else slot_in_floats(operator.op_type, slot.number)
                own = operator.inputs.get(slot if number == slot.number else Slot(number))
                # Other numbers may have the same codes: half as large, by half the scale.
                is_same = own is not None and self._codes.wires.key(own) == key
                place = next((at for at, one in own_side.inputs.items() if is_same and one is own), None)
                if place is not None and place in floats.inputs:
                    return floats.inputs[place]
        return None

    def data(self) -> list[tuple[DumpedTensor, DumpedTensor]]:
        """What both models were given: with codes, in floats."""
        found = []
        for operator, (codes, floats) in self._partners_of_form():
            if operator.op_type in GIVES_DATA:
                found.append((codes.outputs.get(_FIRST), floats.outputs.get(_FIRST)))
                continue
            first = first_type(floats)
            place = Slot(operand_slots(first)[0] if has_weight(first) else 0)
            index, tensor = self._codes.index.get(id(operator)), codes.inputs.get(place)
            if tensor is None or index is None or place in self._weights.get(id(codes), {}):
                continue
            if self._codes.wires.maker(tensor, index) is None and not isinstance(tensor, ComputedTensor):
                found.append((tensor, floats.inputs.get(place)))
        for rounding in self._codes.roundings:
            if (rounding.maker is None or rounding.maker.op_type in GIVES_DATA) and rounding.source is not None:
                found.append((rounding.source, self._read_in_floats(rounding)))
        return [
            (one, other) for one, other in found if one is not None and other is not None and not is_code_of(one, other)
        ]

    def _partners_of_form(self) -> list[tuple[Operator, tuple[Operator, Operator]]]:
        return [
            (operator, self._partners[id(operator)])
            for operator in self._codes.operators
            if id(operator) in self._partners and not operator.is_parameter
        ]


def is_code_of(tensor: DumpedTensor, other: DumpedTensor | None) -> bool:
    """Whether a tensor holds codes where the other one holds numbers."""
    return other is not None and code_levels(tensor.true_dtype) is not None and other.true_dtype.startswith(_FLOATS)
