"""Which operator of one dump is which of another: by mapping file, by original name, by name, by scope, by type, shape
and order."""

from __future__ import annotations

import itertools
import zlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from msdump.analysis._payload import has_same_bytes
from msdump.analysis.compare.common_tensors import common_tensors, host_shape, is_of_one_size, sizes_of
from msdump.analysis.compare.mapping import OperatorMap
from msdump.analysis.compare.merged_operators import aligned_with, chains_of, fits_chain, is_meant
from msdump.analysis.steps import Operator, Slot, Step, StepKey
from msdump.errors import FormatError
from msdump.formats.dump_tensor import DumpedTensor
from msdump.tables.messages import messages
from msdump.tensors.makers import maker
from msdump.tensors.records import INPUT

# How a pair was found.
BY_MAPPING, BY_ORIGINAL, BY_NAME, BY_SCOPE, BY_TYPE, BY_VALUES, BY_KIND, BY_INPUTS = messages(
    "mapping", "original name", "name", "scope", "type and shape", "values", "kind", "inputs"
)
# Share of names that must mean the same operator on both sides before names alone decide: numbers of operators
# shift from compile to compile, and then nearly every name means something else.
_TRUSTED_SHARE = 0.9
_MAX_LOOKS = 16  # tensors whose bytes are looked at to find the next operator of a chain


@dataclass(frozen=True, slots=True)
class OperatorPair:
    """An operator of mine and its counterpart in golden; either may stand for a chain.

    golden_step   the step of golden where that is not the one of all pairs of a step
    swapped       slots of mine of two operands that golden has the other way round, of dumps of two frameworks
    """

    mine: Operator
    golden: Operator
    how: str
    golden_step: StepKey | None = None
    swapped: tuple[Slot, ...] = ()


_operator_pair = maker(OperatorPair)


@dataclass(frozen=True)
class Pairing:
    """Pairs in mine's execution order, and operators without a counterpart.

    expected   operators that have no counterpart by a mapping file, or because they are one step of several that an
               operator of the other side is
    """

    pairs: tuple[OperatorPair, ...]
    only_mine: tuple[Operator, ...]
    only_golden: tuple[Operator, ...]
    expected: tuple[Operator, ...] = ()


def pair_operators(mine: Sequence[Operator], golden: Sequence[Operator], mapping: OperatorMap | None = None) -> Pairing:
    """Pair the operators of two steps. Every operator is in one pair at most.

    Order of the rules: mapping file; original names where one side is a compiled graph; parameters by name; what reads
    the same bytes, where the operators of one scope, type and shape have other names or are more on one side; equal
    names, original or not, when nearly all of them mean operators of one type and shape; equal scopes, types and
    shapes; equal types and shapes in execution order, inputs included or not.
    """
    work = _OperatorPairing(mine, golden)
    if mapping is not None:
        work.apply(mapping)
    if any(operator.original is not None for operator in (*mine, *golden)):
        work.join(BY_ORIGINAL, written_name, _is_alike)
        work.join(BY_ORIGINAL, written_name)
    if any(operator.is_parameter for operator in mine):
        work.join(BY_NAME, lambda operator: operator.safe_name if operator.is_parameter else None)
    work.join_shifted()
    names = work.trusted_names()
    for name in names:
        work.join(BY_NAME, name, _is_alike)
    # Of several that would do, one of the very shapes comes before one of as many elements.
    for fits in (_has_equal_shapes, _is_alike):
        work.join(BY_SCOPE, _named(lambda operator: operator.scope), fits)
    work.join(BY_TYPE, _kind_with_inputs, _has_equal_shapes)
    work.join(BY_TYPE, _kind_with_inputs)
    work.join(BY_TYPE, _kind)
    for name in names:
        work.join(BY_NAME, name)
    if mapping is not None:
        work.forgive(mapping)
    work.forgive_what_is_in_between()
    return work.result()


def pair_by_mapping(mine: Sequence[Operator], golden: Sequence[Operator], mapping: OperatorMap) -> Pairing:
    """What a mapping file alone pairs, and takes out."""
    work = _OperatorPairing(mine, golden)
    work.apply(mapping)
    work.forgive(mapping)
    return work.result()


def written_name(operator: Operator) -> str | None:
    """What the user's program calls it; None for a parameter, and for an operator in between."""
    if operator.is_parameter:
        return None
    return operator.op_name if operator.original is None else operator.original or None


def _original_names(operator: Operator) -> str:
    """What its outputs were before the graph was compiled; its own name where the dump does not tell."""
    return "+".join(f"{name}:{index}" for name, index in operator.originals) or operator.op_name


def _safe_name(operator: Operator) -> str:
    return operator.safe_name


def _op_name(operator: Operator) -> str:
    return operator.op_name


def _kind(operator: Operator) -> tuple[str, tuple[int, ...]] | None:
    """Type and sizes of the outputs; None for what is no operator."""
    return None if operator.is_parameter else (operator.op_type, sizes_of(operator.outputs.values()))


def _kind_in_scope(operator: Operator) -> Hashable | None:
    """Scope, type and shapes; None for what is no operator."""
    sides = (operator.inputs, operator.outputs)
    shapes = tuple(tuple(map(host_shape, tensors.values())) for tensors in sides)
    return None if operator.is_parameter else (operator.scope, operator.op_type, shapes)


def _kind_with_inputs(operator: Operator) -> Hashable | None:
    """The same, and sizes of the inputs."""
    return _kind(operator) and (_kind(operator), sizes_of(operator.inputs.values()))


_KeyOf = Callable[[Operator], Hashable | None]
_Fits = Callable[[Operator, Operator], bool]


def _named(name_of: Callable[[Operator], str]) -> _KeyOf:
    def key(operator: Operator) -> Hashable | None:
        return None if operator.is_parameter else (name_of(operator), operator.op_type)

    return key


def _is_alike(mine: Operator, golden: Operator) -> bool:
    """True when the tensors that both have are of one size; a file may be missing on either side."""
    if mine is golden:
        return True
    for tensors, others in ((mine.inputs, golden.inputs), (mine.outputs, golden.outputs)):
        for slot, tensor in tensors.items():
            partner = others.get(slot)
            if partner is not None and not is_of_one_size(tensor, partner):
                return False
    return True


def _has_equal_shapes(mine: Operator, golden: Operator) -> bool:
    return all(host_shape(left) == host_shape(right) for _, _, left, right in common_tensors(mine, golden))


def is_gathered(steps: Iterable[Step]) -> bool:
    """True for a compiled graph whose operators were gathered under the names of the program."""
    return any(operator.original is not None for step in steps for operator in step.operators)


def _looked_up(operators: Iterable[Operator], keys: Iterable[Hashable]) -> _KeyOf:
    """The keys of these operators, which must outlive the function."""
    known = dict(zip(map(id, operators), keys, strict=True))
    return lambda operator: known.get(id(operator))


def _keyed(operators: Iterable[Operator], key: _KeyOf) -> tuple[list[Hashable], list[Operator]]:
    """Keys, and the operators that have them."""
    pairs = [(name, operator) for operator in operators if (name := key(operator)) is not None]
    return [name for name, _ in pairs], [operator for _, operator in pairs]


def _is_one_to_one(keys: Sequence[Hashable], others: Sequence[Hashable]) -> bool:
    """Whether both are the same keys in one order, each of them once."""
    return keys == others and len(set(keys)) == len(keys)


class _OperatorPairing:
    """State of pairing the operators of two steps."""

    def __init__(self, mine: Sequence[Operator], golden: Sequence[Operator]) -> None:
        self._sides = list(mine), list(golden)
        self._index = {id(operator): index for index, operator in enumerate(mine)}
        self._pairs: list[OperatorPair] = []
        self._expected: list[Operator] = []

    def trusted_names(self) -> list[_KeyOf]:
        """Name and type of operators in the ways in which nearly all of the smaller side mean the same on the larger
        one."""
        trusted: list[_KeyOf] = []
        ways = [_safe_name, _op_name]
        if all(any(operator.originals for operator in side) for side in self._sides):
            # What a compiler calls an operator depends on how many of its kind it made before.
            ways.insert(0, _original_names)
        sides = [[operator for operator in side if not operator.is_parameter] for side in self._sides]
        seen: list[list[list[str]]] = []
        for name_of in ways:
            names = [list(map(name_of, side)) for side in sides]
            if names in seen:
                continue  # where two ways give the same names, the second finds nothing that the first has not
            seen.append(names)
            keys = [
                [(name, operator.op_type) for name, operator in zip(own, side, strict=True)]
                for own, side in zip(names, sides, strict=True)
            ]
            if _is_one_to_one(*keys):
                count, equal = len(keys[0]), sum(map(_is_alike, *sides))
            else:
                tables = [dict(zip(own, side, strict=True)) for own, side in zip(keys, sides, strict=True)]
                smaller, larger = sorted(tables, key=len)
                count = len(smaller)
                equal = sum(key in larger and _is_alike(item, larger[key]) for key, item in smaller.items())
            if equal >= _TRUSTED_SHARE * count:
                trusted.append(_looked_up(itertools.chain(*sides), itertools.chain(*keys)))
            if equal == len(sides[0]) == len(sides[1]):
                break  # another way would find nothing more
        return trusted

    def join(self, how: str, key: _KeyOf, fits: _Fits | None = None) -> None:
        """Pair each operator with the first one that is left of its key, and that fits it; None is no key."""
        (names, mine), (others, golden) = (_keyed(side, key) for side in self._sides)
        found: list[tuple[Operator, Operator]] = []
        if _is_one_to_one(names, others):
            found += zip(mine, golden, strict=True)
            if fits is not None:
                found = [pair for pair in found if fits(*pair)]
        else:
            waiting: dict[Hashable, list[Operator]] = defaultdict(list)
            for name, operator in zip(others, golden, strict=True):
                waiting[name].append(operator)
            for name, operator in zip(names, mine, strict=True):
                candidates = waiting.get(name, [])
                match = next((candidate for candidate in candidates if fits is None or fits(operator, candidate)), None)
                if match is not None:
                    candidates.remove(match)
                    found.append((operator, match))
        self._pairs += [_operator_pair(*pair, how) for pair in found]
        self._drop({id(operator) for pair in found for operator in pair})

    def join_shifted(self) -> None:
        """Pair operators whose numbers another operator has shifted, in one run alone: a name that both runs have may
        mean another operator there.

        Among those of one scope, type and shapes, inputs included, where their names differ or one run has more of
        them: first those that read the same bytes; of as many on both sides the rest in execution order.
        """
        mine, golden = self._sides
        if len(mine) == len(golden) and all(
            left.label == right.label or left.safe_name == right.safe_name
            for left, right in zip(mine, golden, strict=True)
        ):
            return
        sides: list[dict[Hashable, list[Operator]]] = []
        for side in self._sides:
            kinds: dict[Hashable, list[Operator]] = defaultdict(list)
            for kind, operator in zip(*_keyed(side, _kind_in_scope), strict=True):
                kinds[kind].append(operator)
            sides.append(kinds)
        found: list[tuple[Operator, Operator]] = []
        for kind, own in sides[0].items():
            others = sides[1].get(kind, [])
            if {operator.safe_name for operator in own} != {operator.safe_name for operator in others}:
                found += _by_use(own, others)
        self._pairs += [_operator_pair(*pair, BY_SCOPE) for pair in found]
        self._drop({id(operator) for pair in found for operator in pair})

    def apply(self, mapping: OperatorMap) -> None:
        """Rules of a mapping file: long chains first, so that they are not eaten up by shorter ones."""
        for by_name, rules in ((True, mapping.operators), (False, mapping.types)):
            for name, chain in sorted(rules.items(), key=lambda rule: -len(rule[1])):
                for side in (0, 1):
                    self._apply_rule(side, name, chain, by_name)

    def _apply_rule(self, side: int, name: str, chain: tuple[str, ...], by_name: bool) -> None:
        operators = [operator for operator in self._sides[side] if is_meant(operator, name, by_name)]
        if not operators or not chain:
            return
        chains = chains_of(self._sides[1 - side], chain, by_name)
        used: set[int] = set()
        for has_inputs in (True, False):
            for operator in operators:
                if id(operator) in used:
                    continue
                for merged in chains:
                    if not used & {id(part) for part in merged.parts} and fits_chain(operator, merged, has_inputs):
                        golden = aligned_with(merged, operator) if len(merged.parts) > 1 else merged.parts[0]
                        pair = (operator, golden) if side == 0 else (golden, operator)
                        self._pairs.append(OperatorPair(*pair, BY_MAPPING))
                        used |= {id(operator), *(id(part) for part in merged.parts)}
                        break
        self._drop(used)

    def forgive(self, mapping: OperatorMap) -> None:
        """Take out what is left over and needs no counterpart."""
        for by_name, rules in ((True, mapping.operators), (False, mapping.types)):
            for name in (name for name, chain in rules.items() if not chain):
                operators = [operator for side in self._sides for operator in side if is_meant(operator, name, by_name)]
                self._expected += operators
                self._drop({id(operator) for operator in operators})

    def forgive_what_is_in_between(self) -> None:
        """Take out operators of a compiled graph that are no operator of the program, as far as they are left."""
        inner = [operator for side in self._sides for operator in side if operator.original == ""]
        self._expected += inner
        self._drop({id(operator) for operator in inner})

    def _drop(self, used: set[int]) -> None:
        for side in self._sides if used else ():
            side[:] = [operator for operator in side if id(operator) not in used]

    def result(self) -> Pairing:
        def pair_index(pair: OperatorPair) -> int:
            # A chain is made while it is paired, and stands where its last operator does.
            last = pair.mine.parts[-1] if id(pair.mine) not in self._index else pair.mine
            return self._index[id(last)]

        mine, golden = self._sides
        return Pairing(tuple(sorted(self._pairs, key=pair_index)), tuple(mine), tuple(golden), tuple(self._expected))


def _by_use(mine: Sequence[Operator], golden: Sequence[Operator]) -> list[tuple[Operator, Operator]]:
    """Pairs among operators of one kind; none where nothing tells which one is which."""
    is_one_to_one = len(mine) == len(golden)
    if is_one_to_one and len(mine) == 1:
        return [(mine[0], golden[0])]
    prints: dict[int, int] = {}
    pairs = []
    left = list(golden)
    rest = []
    for operator in mine:
        # The next one in execution order is the likeliest.
        partner = next((each for each in left[:_MAX_LOOKS] if _reads_the_same(operator, each, prints)), None)
        if partner is None:
            rest.append(operator)
        else:
            left.remove(partner)
            pairs.append((operator, partner))
    return [*pairs, *zip(rest, left, strict=True)] if is_one_to_one else pairs


def in_other_order(pairs: Sequence[OperatorPair]) -> dict[int, OperatorPair]:
    """New pairs for those of a step whose inputs differ: two runs may compute the same in another order, and then an
    operator has the name of another one.

    Among operators of one scope, type and shapes those that read the same bytes belong together.
    Returns: by index in `pairs`, of mine
    """
    kinds: dict[Hashable, list[int]] = defaultdict(list)
    for index, pair in enumerate(pairs):
        kind = _kind_in_scope(pair.mine)
        if kind is not None and kind == _kind_in_scope(pair.golden) and not pair.mine.parts and not pair.golden.parts:
            kinds[kind].append(index)
    found: dict[int, OperatorPair] = {}
    prints: dict[int, int] = {}
    for indices in kinds.values():
        mine, golden = ([getattr(pairs[index], side) for index in indices] for side in ("mine", "golden"))
        looks = itertools.product(mine, golden[:_MAX_LOOKS])
        if len(indices) < 2 or not any(_reads_the_same(one, other, prints) for one, other in looks):
            continue
        others = {id(one): other for one, other in _by_use(mine, golden)}
        for index in indices:
            other = others[id(pairs[index].mine)]
            if other is not pairs[index].golden:
                found[index] = _operator_pair(pairs[index].mine, other, BY_SCOPE)
    return found


def _reads_the_same(mine: Operator, golden: Operator, prints: dict[int, int]) -> bool:
    """Whether the inputs that both have hold the same bytes.

    prints  checksums by id of the tensor, kept here, as one is looked at for many operators
    """
    inputs = [(left, right) for io, _, left, right in common_tensors(mine, golden) if io == INPUT]
    return bool(inputs) and all(
        _print_of(left, prints) == _print_of(right, prints) and has_same_bytes(left, right) for left, right in inputs
    )


def _print_of(tensor: DumpedTensor, prints: dict[int, int]) -> int:
    """A checksum of its bytes; 0 where it cannot be read."""
    if id(tensor) not in prints:
        try:
            prints[id(tensor)] = zlib.crc32(np.ascontiguousarray(tensor.load()).view(np.uint8).data)
        except (OSError, FormatError):
            prints[id(tensor)] = 0
    return prints[id(tensor)]
