"""What follows an operator that one side may have taken in: a bias, a normalisation, an activation; and operators in a
row that are one operator of another framework."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from msdump.analysis.compare.chains import CHAINS
from msdump.analysis.compare.common_tensors import host_shape
from msdump.analysis.compare.merged_operators import merged
from msdump.analysis.compare.quantised.float_form import FloatForm
from msdump.analysis.compare.quantised.noise import relative_error
from msdump.analysis.compare.quantised.numbers import count_of, loaded
from msdump.analysis.steps import Operator, Slot
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.codes import dequantises, family, has_weight, may_be_folded, quantises, slot_in_floats
from msdump.operators.kinds import operand_slots

Tail = tuple[Operator, ...]
_LONGEST = 3
_AS_NEAR = 1.5  # times the smallest error: as good as that, where that is what rounding makes
NEAR = 0.1  # relative error until which two operators make the same
_FIRST = Slot(0)


def tails(form: FloatForm, operator: Operator, free: Collection[int]) -> list[Tail]:
    """Chains of operators behind one that it may have taken in, the empty one first; none for one without a result.

    free   ids of the operators that are not paired yet
    """
    if _FIRST not in operator.outputs:
        return []
    chains: list[Tail] = [()]
    while len(chains) <= _LONGEST:
        following = _follower(form, (operator, *chains[-1])[-1], free)
        if following is None:
            break
        chains.append((*chains[-1], following))
    return chains


def nearest_tails(
    unit: Operator, own_tails: Sequence[Tail], match: Operator, its_tails: Sequence[Tail]
) -> tuple[Tail, Tail, float]:
    """What follows an operator with codes, and one in floats, up to where both make the same numbers; their error.

    Edges: of several such places the first one where both have added a bias, or neither has.
    """
    found = [
        (error_of((unit, *own)[-1].outputs[_FIRST], (match, *its)[-1].outputs[_FIRST]), own, its)
        for own in own_tails
        for its in its_tails
    ]
    least = min((error for error, _, _ in found), default=math.inf)
    near = [one for one in found if one[0] <= (_AS_NEAR if least < NEAR else 1) * least]
    if not near:
        return (), (), math.inf
    error, own, its = min(
        near, key=lambda one: (not _has_equal_bias(unit, one[1], match, one[2]), len(one[1]) + len(one[2]))
    )
    return own, its, error


def chained(operator: Operator, tail: Tail) -> Operator:
    """An operator and what follows it as one."""
    parts = (operator, *tail)
    return replace(
        operator,
        op_type="+".join(part.op_type for part in parts),
        op_name=" + ".join(part.op_name for part in parts),
        outputs=parts[-1].outputs,
        parts=parts,
    )


def first_type(operator: Operator) -> str:
    """The type of an operator; of a chain that of its first one, whose operands it has."""
    return operator.op_type.partition("+")[0]


def with_chains(
    form: FloatForm, operators: Sequence[Operator], wanted: Mapping[str, int]
) -> tuple[list[Operator], dict[int, str]]:
    """The operators, with chains of kinds that the other side has more of as one operator each, the longest first.

    Returns: also the kinds of the chains by their ids
    """
    left, kinds = list(operators), dict[int, str]()
    # What follows a product or a convolution are its tails.
    for chain in sorted((one for one in CHAINS if not has_weight(one.kind)), key=lambda one: -len(one.parts)):
        for _ in range(wanted.get(chain.kind, 0) - list(kinds.values()).count(chain.kind)):
            free = {id(one) for one in left}
            links = next((found for one in left if (found := _links(form, one, chain.parts, free))), None)
            if links is None:
                break
            whole = merged(links)
            kinds[id(whole)] = chain.kind
            left[left.index(links[-1][0])] = whole
            left = [one for one in left if all(one is not part for part, _ in links)]
    return left, kinds


def _links(
    form: FloatForm, first: Operator, kinds: Sequence[str], free: Collection[int]
) -> list[tuple[Operator, Slot | None]] | None:
    """Operators of these kinds from one on, and the slot by which each reads the one before, rounded or not."""
    if family(first.op_type) != kinds[0]:
        return None
    links: list[tuple[Operator, Slot | None]] = [(first, None)]
    for kind in kinds[1:]:
        index = form.index.get(id(links[-1][0]))
        readers = () if index is None else _readers(form, index, free)
        link = next((one for one in readers if family(one[0].op_type) == kind), None)
        if link is None:
            return None
        links.append(link)
    return links


def _readers(form: FloatForm, index: int, free: Collection[int]) -> Iterator[tuple[Operator, Slot]]:
    """Free operators that read what one of the dump makes, as numbers or as codes."""
    for tensor in form.source[index].outputs.values():
        for number, slot in form.wires.readers(tensor, index):
            op_type = form.source[number].op_type
            reader = form.at.get(number, form.source[number])
            if id(reader) in free:
                yield reader, Slot(slot_in_floats(op_type, slot.number))
            elif quantises(op_type) or dequantises(op_type):
                yield from _readers(form, number, free)


def error_of(mine: DumpedTensor, golden: DumpedTensor) -> float:
    """Relative error; Inf where sizes differ, or one cannot be read."""
    if count_of(mine) != count_of(golden):
        return math.inf
    left, right = loaded(mine), loaded(golden)
    return math.inf if left is None or right is None else relative_error(left, right)


def _follower(form: FloatForm, operator: Operator, free: Collection[int]) -> Operator | None:
    last = operator if id(operator) in form.index or not operator.parts else operator.parts[-1]
    index, output = form.index.get(id(last)), operator.outputs.get(_FIRST)
    if index is None or output is None:
        return None
    for reader, slot in _readers(form, index, free):
        result = reader.outputs.get(_FIRST)
        if not may_be_folded(reader.op_type) or result is None:
            continue
        others = [one for other, one in reader.inputs.items() if other != slot]
        if count_of(result) == count_of(output) and all(_is_for_channels(one, output) for one in others):
            return reader
    return None


def _has_equal_bias(unit: Operator, own: Tail, match: Operator, its: Tail) -> bool:
    """Whether both sides have added a bias, or neither; what an operator has packed is not known."""
    if not has_weight(match.op_type) or Slot(operand_slots(unit.op_type)[1]) not in unit.inputs:
        return True
    return _has_bias(unit, own) == _has_bias(match, its)


def _has_bias(operator: Operator, tail: Tail) -> bool:
    is_own = Slot(operand_slots(operator.op_type)[2]) in operator.inputs
    return is_own or any(family(part.op_type) in ("add", "bias_add") for part in tail)


def _is_for_channels(tensor: DumpedTensor, output: DumpedTensor) -> bool:
    """Whether a tensor has one number for many of the other one, as a bias has."""
    return count_of(tensor) < count_of(output) or len(host_shape(tensor)) < len(host_shape(output))
