"""Which operator of a quantised step is which of the step in floats: across other types, and across activations that a
range of codes, or the operator before it, has taken in."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msdump.analysis.compare.common_tensors import host_shape
from msdump.analysis.compare.mapping import OperatorMap
from msdump.analysis.compare.pairing import (
    BY_MAPPING,
    BY_NAME,
    BY_SCOPE,
    BY_TYPE,
    OperatorPair,
    Pairing,
    pair_operators,
)
from msdump.analysis.compare.quantised.float_form import FloatForm, Rounding, code_levels
from msdump.analysis.compare.quantised.numbers import computed, count_of, loaded
from msdump.analysis.compare.quantised.references import GIVES_DATA, Reference, References, is_code_of
from msdump.analysis.compare.quantised.tails import NEAR, Tail, chained, error_of, nearest_tails, tails, with_chains
from msdump.analysis.compare.quantised.wires import ContentKey, array_key
from msdump.analysis.steps import Operator, Slot
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.codes import dequantises, family, has_weight, is_activation, quantises
from msdump.operators.kinds import dialects_of, is_mover, operand_slots

BY_VALUES = "values"
_LOOKS = 16  # operators of the other side whose results are looked at
_EQUAL_DATA = 1e-3
_UNLIKE = 1.0  # relative error of zeros in the place of a result
_QUANTISED_NAME = re.compile(r"(?:_quant(?:ized|ised|ize|ise)?|_dequant\w*)+$", re.IGNORECASE)
_FIRST = Slot(0)
_KeyOf = Callable[[Operator], tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class QuantisedPairing:
    """Pairs of two steps in floats.

    weights      id of the operator with codes of a pair -> slot of its weight, and bits of a code
    references   of all roundings
    data         what both models were given: with codes, in floats
    floats       the step in floats
    written      as `FloatForm` has it, of the step with codes
    """

    pairing: Pairing
    weights: Mapping[int, Mapping[Slot, int | None]]
    references: tuple[Reference, ...]
    data: tuple[tuple[DumpedTensor, DumpedTensor], ...]
    floats: FloatForm
    written: Mapping[int, DumpedTensor]

    @property
    def has_equal_data(self) -> bool:
        """Whether both models were given the same: else what they make tells nothing of codes."""
        return all(error_of(codes, floats) <= _EQUAL_DATA for codes, floats in self.data)


def pair_forms(
    mine: FloatForm,
    golden: FloatForm,
    mapping: OperatorMap | None,
    is_mine: bool,
    prepared: Mapping[ContentKey, Rounding],
) -> QuantisedPairing:
    """Pair the operators of two steps.

    is_mine    whether mine is the side with codes; the other one is in floats, or is taken for such
    prepared   weights that were rounded before the step, by the bytes that they had in floats
    """
    work = _FormPairing(mine, golden, is_mine, prepared)
    if mapping is not None:
        work.apply(_without_roundings(mapping, (*mine.hidden, *golden.hidden)))
    work.join_units()
    work.join_rest()
    return work.result()


class _FormPairing:
    """State of pairing two steps. `codes` is the side with codes, `floats` the other one."""

    def __init__(
        self, mine: FloatForm, golden: FloatForm, is_mine: bool, prepared: Mapping[ContentKey, Rounding]
    ) -> None:
        self._is_mine = is_mine
        self._codes, self._floats = (mine, golden) if is_mine else (golden, mine)
        self._prepared = prepared
        self._left = [_without_codes(form.operators) for form in (self._codes, self._floats)]
        # Where both sides have codes, one of them may round where the other one has done so already.
        self._roundings = {id(one.operator): one.operator for one in self._floats.roundings if one.source is not None}
        self._left[1] += self._roundings.values()
        # (with codes, in floats, how)
        self._pairs: list[tuple[Operator, Operator, str]] = []
        self._weights: dict[int, dict[Slot, int | None]] = {}
        # id of an operator of the float form -> (as it was paired, in floats)
        self._partners: dict[int, tuple[Operator, Operator]] = {}
        self._expected: list[Operator] = []
        self._is_foreign = _words(self._codes).isdisjoint(_words(self._floats))
        self._kinds: dict[int, str] = {}  # of chains, by id

    def apply(self, mapping: OperatorMap) -> None:
        """What a mapping file says; the end of a chain may be folded into the codes."""
        found = self._joined(mapping)
        chains = [pair for pair in found.pairs if pair.how == BY_MAPPING]
        used: set[int] = set()
        for pair in chains:
            codes, floats = self._oriented(pair)
            used.update(id(part) for side in (codes, floats) for part in (side, *side.parts))
            self._pair(self._with_folded_end(codes, floats), floats, BY_MAPPING, codes)
        self._drop(used)
        self._expected += found.expected
        self._drop({id(operator) for operator in found.expected})

    def _with_folded_end(self, codes: Operator, floats: Operator) -> Operator:
        """The operator with the numbers behind its rounding as its result, where those are nearer."""
        result, golden = codes.outputs.get(_FIRST), floats.outputs.get(_FIRST)
        behind = (one for one in self._codes.roundings if one.maker is codes and one.source is not None)
        rounding = next(behind, None)
        if rounding is None or result is None or golden is None:
            return codes
        if error_of(rounding.result, golden) >= error_of(result, golden):
            return codes
        return replace(codes, outputs={_FIRST: rounding.result}, parts=codes.parts or (codes,))

    def join_units(self) -> None:
        """Operators of types that a model in floats has not: by name, by scope, by what they make; and so those that
        another framework calls otherwise, and activations of which some were folded: numbers of operators count those
        that are left."""
        self._join_chains()
        self._join(self._units(), BY_NAME, lambda one: (_plain_name(one), self._family(one)))
        self._join(self._units(), BY_SCOPE, lambda one: (_place(one), self._family(one)))
        units = [one for one in self._left[0] if is_activation(one.op_type) or self._is_unit(one)]
        if self._is_foreign:
            self._join(units, BY_VALUES, lambda one: (self._family(one),), NEAR)
            self._join(self._units(), BY_VALUES, lambda one: (_computes(one) or None,), NEAR)
        self._join(units, BY_VALUES, lambda one: (self._family(one),), _UNLIKE)
        if self._is_foreign:
            self._join(self._units(), BY_TYPE, lambda one: (self._family(one),))
            for side in self._left:
                own = [one for one in side if not _computes(one)]
                self._expected += own
                self._drop({id(one) for one in own})

    def _join(self, units: Iterable[Operator], how: str, key_of: _KeyOf, limit: float = math.inf) -> None:
        """Pair each with the one of its key and size whose result is nearest, if that is nearer than the limit; without
        a limit with the first one where all are far away."""
        waiting: dict[tuple[Any, ...], list[Operator]] = defaultdict(list)
        for operator in self._left[1]:
            waiting[_sized(operator, key_of)].append(operator)
        for unit in units:
            free = {id(one) for side in self._left for one in side}
            key = _sized(unit, key_of)
            if None in key or id(unit) not in free:
                continue
            candidates = [one for one in waiting[key] if id(one) in free][:_LOOKS]
            is_sure = limit == math.inf and len(candidates) == 1
            errors = [0.0 if is_sure else self._nearest(unit, one)[2] for one in candidates]
            least = min(errors, default=math.inf)
            if candidates and (least < limit or limit == math.inf):
                self._take(unit, candidates[errors.index(least) if least < _UNLIKE else 0], how)

    def _join_chains(self) -> None:
        """Several operators of one side that are one operator of another framework become one."""
        forms = self._codes, self._floats
        for side, form in enumerate(forms if self._is_foreign else ()):
            wanted = Counter(map(self._family, self._left[1 - side]))
            wanted.subtract(map(self._family, self._left[side]))
            self._left[side], kinds = with_chains(form, self._left[side], wanted)
            self._kinds.update(kinds)

    def _family(self, operator: Operator) -> str:
        return self._kinds.get(id(operator)) or family(operator.op_type)

    def _units(self) -> list[Operator]:
        return [operator for operator in self._left[0] if self._is_unit(operator)]

    def _is_unit(self, operator: Operator) -> bool:
        # A normalisation that was multiplied into a weight follows its operator in floats.
        is_own = id(operator) in self._codes.units or (
            id(operator) in self._codes.weights and has_weight(operator.op_type)
        )
        return is_own or (self._is_foreign and _computes(operator))

    def _take(self, unit: Operator, match: Operator, how: str) -> None:
        """Pair a unit with an operator; with what follows either, as far as that is part of the other."""
        own, tail, _ = self._nearest(unit, match)
        whole = match if not tail else chained(match, tail)
        self._drop({id(unit), id(match), *(id(part) for part in (*own, *tail))})
        aligned = self._aligned(unit, match)
        if own:
            weights = self._weights.pop(id(aligned), None)
            aligned = replace(aligned, outputs=own[-1].outputs, parts=(*aligned.parts, *own))
            if weights is not None:
                self._weights[id(aligned)] = weights
        self._pair(aligned, whole, how, unit)
        for part in own:
            self._partners[id(part)] = aligned, whole

    def _nearest(self, unit: Operator, match: Operator) -> tuple[Tail, Tail, float]:
        return nearest_tails(unit, self._tails(0, unit), match, self._tails(1, match))

    def _tails(self, side: int, operator: Operator) -> list[Tail]:
        """Left-over operators behind one.   side: 0 with codes, 1 in floats"""
        return tails((self._codes, self._floats)[side], operator, {id(one) for one in self._left[side]})

    def _aligned(self, unit: Operator, match: Operator) -> Operator:
        """The unit with its tensors in the slots of the operator in floats, and with its weight where that was rounded
        before the step."""
        places = (
            dict(zip(operand_slots(unit.op_type), operand_slots(match.op_type), strict=True))
            if has_weight(match.op_type)
            else {}
        )
        weights = self._codes.weights.get(id(unit), {})
        is_one_kind = self._family(unit) == self._family(match)
        inputs: dict[Slot, DumpedTensor] = {}
        own_weights: dict[Slot, int | None] = {}
        for slot, tensor in unit.inputs.items():
            place = Slot(places.get(slot.number, slot.number))
            partner = match.inputs.get(place)
            if partner is None or count_of(partner) != count_of(tensor):
                continue
            is_weight = slot in weights
            if not is_one_kind and error_of(tensor, partner) > NEAR:
                continue  # Another operator that makes the same reads other quantities.
            inputs[place] = _laid_out_as(tensor, partner) if is_weight else tensor
            if is_weight:
                own_weights[place] = weights[slot]
        place = Slot(operand_slots(match.op_type)[1])
        partner = match.inputs.get(place) if has_weight(match.op_type) else None
        if partner is not None and place not in inputs:
            found = self._prepared_weight(partner)
            if found is not None:
                inputs[place], own_weights[place] = found
        aligned = replace(unit, inputs=dict(sorted(inputs.items())), parts=unit.parts or (unit,))
        if own_weights:
            self._weights[id(aligned)] = own_weights
        return aligned

    def _prepared_weight(self, weight: DumpedTensor) -> tuple[DumpedTensor, int | None] | None:
        array = loaded(weight)
        if array is None or not self._prepared:
            return None
        rounding = self._prepared.get(array_key(array))
        if rounding is not None:
            return rounding.result, rounding.bits
        rounding = self._prepared.get(array_key(array.T)) if array.ndim == 2 else None
        if rounding is None:
            return None
        result = rounding.result
        turned = computed(result, lambda: result.load_host().T, "turned")
        return replace(turned, shape=tuple(reversed(host_shape(result)))), rounding.bits

    def join_rest(self) -> None:
        """All other operators as in any two dumps."""
        self._drop(set(self._roundings))
        found = self._joined(None)
        for pair in found.pairs:
            self._pair(*self._oriented(pair), pair.how)
        self._left = [list(side) for side in self._oriented_sides(found.only_mine, found.only_golden)]
        self._expected += found.expected

    def _joined(self, mapping: OperatorMap | None) -> Pairing:
        return pair_operators(*self._oriented_sides(*self._left), mapping)

    def _oriented_sides(
        self, first: Sequence[Operator], second: Sequence[Operator]
    ) -> tuple[Sequence[Operator], Sequence[Operator]]:
        return (first, second) if self._is_mine else (second, first)

    def _oriented(self, pair: OperatorPair) -> tuple[Operator, Operator]:
        return (pair.mine, pair.golden) if self._is_mine else (pair.golden, pair.mine)

    def _pair(self, codes: Operator, floats: Operator, how: str, was: Operator | None = None) -> None:
        """was: the operator of the float form, where what is paired is made of it"""
        self._pairs.append((codes, floats, how))
        # What a chain makes its last operator does.
        self._partners[id(was.parts[-1] if was is not None and id(was) in self._kinds else was or codes)] = (
            codes,
            floats,
        )
        own = self._codes.weights.get(id(was or codes))
        if own is not None:
            self._weights.setdefault(id(codes), dict(own))

    def _drop(self, used: set[int]) -> None:
        for side in self._left:
            side[:] = [operator for operator in side if id(operator) not in used]

    def result(self) -> QuantisedPairing:
        """References of roundings, and the pairs in mine's execution order."""
        self._leave_unknown_codes_out()
        free = {id(operator) for operator in self._left[1]}
        work = References(self._codes, self._floats, self._partners, self._weights, free)
        references = [work.of(rounding) for rounding in self._codes.roundings]
        for reference in references:
            if reference.is_folded and reference.operator is not None and reference.codes is None:
                self._pairs.append((reference.rounding.operator, reference.operator, BY_VALUES))
                self._drop({id(reference.operator)})
        self._hide_helpers()
        source = (self._codes if self._is_mine else self._floats).source
        order = {id(operator): index for index, operator in enumerate(source)}

        def place(pair: tuple[Operator, Operator, str]) -> int:
            operator = pair[0] if self._is_mine else pair[1]
            return max((order[id(part)] for part in parts_of(operator) if id(part) in order), default=len(order))

        pairs = tuple(
            OperatorPair(*self._oriented_pair(codes, floats), how)
            for codes, floats, how in sorted(self._pairs, key=place)
        )
        hidden = (*self._codes.hidden, *self._floats.hidden, *self._expected)
        only_mine, only_golden = self._oriented_sides(*self._left)
        pairing = Pairing(pairs, tuple(only_mine), tuple(only_golden), hidden)
        return QuantisedPairing(
            pairing, self._weights, tuple(references), tuple(work.data()), self._floats, self._codes.written
        )

    def _leave_unknown_codes_out(self) -> None:
        """Codes whose scale no operator tells are not compared with numbers."""
        kept = []
        for codes, floats, how in self._pairs:
            inputs, outputs = (
                {slot: one for slot, one in side.items() if not is_code_of(one, other.get(slot))}
                for side, other in ((codes.inputs, floats.inputs), (codes.outputs, floats.outputs))
            )
            if len(outputs) < len(codes.outputs) or (len(inputs) < len(codes.inputs) and not outputs):
                self._expected += [*parts_of(codes), *parts_of(floats)]
            elif len(inputs) < len(codes.inputs):
                kept.append((self._with_inputs(codes, inputs), floats, how))
            else:
                kept.append((codes, floats, how))
        self._pairs = kept

    def _with_inputs(self, codes: Operator, inputs: Mapping[Slot, DumpedTensor]) -> Operator:
        """A paired operator with other inputs."""
        changed = replace(codes, inputs=inputs, parts=codes.parts or (codes,))
        if id(codes) in self._weights:
            self._weights[id(changed)] = self._weights[id(codes)]
        for was, (one, floats) in list(self._partners.items()):
            if one is codes:
                self._partners[was] = changed, floats
        return changed

    def _hide_helpers(self) -> None:
        """Take out left-over operators whose results only parts of other operators read: a product of two scales, a
        bias in another shape."""
        form = self._codes
        paired = {id(part) for codes, _, _ in self._pairs if codes.parts for part in parts_of(codes)}
        absorbed = paired | {id(operator) for operator in form.hidden}
        for operator in reversed(list(self._left[0])):
            index = form.index.get(id(operator))
            outputs = () if index is None else operator.outputs.values()
            readers = [form.source[number] for one in outputs for number, _ in form.wires.readers(one, index or 0)]
            if readers and all(id(reader) in absorbed for reader in readers):
                absorbed.add(id(operator))
                self._expected.append(operator)
                self._drop({id(operator)})

    def _oriented_pair(self, codes: Operator, floats: Operator) -> tuple[Operator, Operator]:
        return (codes, floats) if self._is_mine else (floats, codes)


def prepared_weights(forms: Iterable[FloatForm]) -> dict[ContentKey, Rounding]:
    """Roundings of what no operator of the model made, by the bytes in floats: weights, among others."""
    found: dict[ContentKey, Rounding] = {}
    for form in forms:
        for rounding in form.roundings:
            key = None if rounding.source is None else form.wires.key(rounding.source)
            if key is not None:
                found.setdefault(key, rounding)
    return found


def _without_roundings(mapping: OperatorMap, hidden: Sequence[Operator]) -> OperatorMap:
    """The rules without what turns numbers into codes and back, which the float form of a step has not."""
    names = {name for operator in hidden if _converts(operator.op_type) for name in operator.names}
    types, operators = (
        {name: tuple(part for part in chain if not is_out(part)) or chain for name, chain in rules.items()}
        for rules, is_out in ((mapping.types, _converts), (mapping.operators, names.__contains__))
    )
    return replace(mapping, types=types, operators=operators)


def _converts(op_type: str) -> bool:
    return quantises(op_type) or dequantises(op_type)


def _without_codes(operators: Iterable[Operator]) -> list[Operator]:
    """Operators but for parameters in codes, which are compared where they are read, as numbers."""
    return [
        operator
        for operator in operators
        if not operator.is_parameter or not any(code_levels(tensor.true_dtype) for tensor in operator.outputs.values())
    ]


def parts_of(operator: Operator) -> Iterable[Operator]:
    """The operators of the dump that one stands for."""
    yield operator
    for part in operator.parts:
        yield from parts_of(part)


def _words(form: FloatForm) -> set[str]:
    """Whose words most operators of a step are."""
    types = (operator.op_type for operator in form.source if operator.op_type not in GIVES_DATA)
    counts = Counter(dialect for op_type in types for dialect in dialects_of(op_type))
    return {dialect for dialect, count in counts.items() if count == max(counts.values())}


def _plain_name(operator: Operator) -> str | None:
    """The name without what a quantiser appends to it."""
    return None if operator.is_parameter else _QUANTISED_NAME.sub("", operator.scope).lower()


def _place(operator: Operator) -> str | None:
    """The scope in which it lies; None for one of no scope of its own."""
    folder = operator.label.rpartition("/")[0]
    return None if operator.is_parameter or "/" not in folder else folder


def _sized(operator: Operator, key_of: _KeyOf) -> tuple[Any, ...]:
    """The key of an operator and the size of its result; None in it where it has none."""
    output = operator.outputs.get(_FIRST)
    return (*key_of(operator), None if output is None else count_of(output))


def _computes(operator: Operator) -> bool:
    """False for what another framework need not have: data, parameters, what only lays numbers out anew."""
    return not (operator.is_parameter or is_mover(operator.op_type) or operator.op_type in GIVES_DATA)


def _laid_out_as(weight: DumpedTensor, other: DumpedTensor) -> DumpedTensor:
    """A weight in the layout of the other one: two frameworks may keep a matrix in either way."""
    shape, wanted = host_shape(weight), host_shape(other)
    if len(shape) != 2 or shape != wanted[::-1]:
        return weight
    turned = computed(weight, lambda: weight.load_host().T, "turned")
    turned = replace(turned, shape=wanted)
    return turned if shape != wanted or error_of(turned, other) < error_of(weight, other) else weight
