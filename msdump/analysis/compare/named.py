"""A dump of operators against tensors that somebody named: a dictionary of activations, a folder of .npy files.

Such files say no more than a name and a value for each tensor. A name may be that of an operator, of a parameter, or of
a module, whose result is what its last operator made; what has no name on the other side is found by its values.
Operators of the dump that nobody named have no counterpart, and are not missed. The dump tells the order.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from msdump.analysis.compare.across import Crossing
from msdump.analysis.compare.common_tensors import host_shape
from msdump.analysis.compare.iterations import iterations_of
from msdump.analysis.compare.mapping import OperatorMap
from msdump.analysis.compare.pairing import BY_NAME, BY_VALUES, OperatorPair, Pairing, pair_by_mapping
from msdump.analysis.compare.values import Figures, Matches, figures_of
from msdump.analysis.full_names import layer_of
from msdump.analysis.steps import Operator, Slot, Step
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.paths.parse import safe_text

_FIRST = Slot(0)


def is_named_only(steps: Iterable[Step]) -> bool:
    """Whether a dump has names of tensors in place of operators."""
    return not any(operator.op_type for step in steps for operator in step.operators)


def without_inputs(steps: Iterable[Step]) -> list[Step]:
    """Steps of named tensors by their results alone: which input of an operator one is, its name does not say."""
    return [
        replace(step, operators=tuple(replace(operator, inputs={}) for operator in step.operators if operator.outputs))
        for step in steps
    ]


def pair_named(
    mine: Sequence[Step], golden: Sequence[Step], mapping: OperatorMap, tolerance: float | None
) -> list[Crossing]:
    """Pair two dumps of which one is of named tensors, iteration by iteration; in the order of the other one."""
    is_mine_named = is_named_only(mine)
    crossings: list[Crossing] = []
    for my_steps, golden_steps in iterations_of(mine, golden):
        named, full = (my_steps, golden_steps) if is_mine_named else (golden_steps, my_steps)
        found = _Naming(named, full, tolerance).pairs(mapping, is_mine_named)
        crossings += _crossings(my_steps, golden_steps, found, is_mine_named)
    return crossings


@dataclass(frozen=True, slots=True)
class _Found:
    """Pairs of mine and golden in the order of the full dump, and the operators of both that are in none."""

    pairs: list[OperatorPair]
    named: list[Operator]
    full: list[Operator]


class _Naming:
    """State of pairing one iteration."""

    def __init__(self, named: Sequence[Step], full: Sequence[Step], tolerance: float | None) -> None:
        self._named = [operator for step in named for operator in step.operators]
        self._full = [operator for step in full for operator in step.operators]
        self._tolerance = tolerance
        self._place = {id(operator): index for index, operator in enumerate(self._full)}
        self._by_name: dict[str, Operator] = {}
        self._by_module: dict[str, list[Operator]] = defaultdict(list)
        for operator in self._full:
            for name in operator.names:
                self._by_name.setdefault(safe_text(name), operator)
            for module in _modules(operator):
                self._by_module[module].append(operator)

    def pairs(self, mapping: OperatorMap, is_mine_named: bool) -> _Found:
        sides = (self._named, self._full) if is_mine_named else (self._full, self._named)
        mapped = pair_by_mapping(*sides, mapping)
        pairs = list(mapped.pairs)
        left = {id(operator) for operator in (*mapped.only_mine, *mapped.only_golden)}
        # An operator of a wrapping module is that of the wrapped one as well: it may be named twice.
        named = [operator for operator in self._named if id(operator) in left]
        nameless: list[Operator] = []
        for operator in named:
            other = self._of_name(operator, left)
            if other is None:
                nameless.append(operator)
            else:
                pairs.append(_pair(operator, other, BY_NAME, is_mine_named))
        by_value = self._of_values(nameless, left)
        for operator in nameless:
            if id(operator) in by_value:
                pairs.append(_pair(operator, by_value[id(operator)], BY_VALUES, is_mine_named))
        used = {id(operator) for pair in pairs for side in (pair.mine, pair.golden) for operator in (side, *side.parts)}
        pairs.sort(key=lambda pair: self._place.get(id(_last(pair.golden if is_mine_named else pair.mine)), 0))
        return _Found(
            pairs,
            [operator for operator in self._named if id(operator) in left - used],
            [operator for operator in self._full if id(operator) not in used],
        )

    def _of_name(self, operator: Operator, left: set[int]) -> Operator | None:
        """What a name means, where it has a result of as many elements; of a module the last such operator."""
        name = safe_text(operator.label)
        own = self._by_name.get(name)
        candidates = [*self._by_module.get(name, ()), *(() if own is None else (own,))]
        count = _count(operator.outputs.get(_FIRST))
        fitting = [one for one in candidates if id(one) in left and _count(one.outputs.get(_FIRST)) == count]
        return fitting[-1] if fitting and count is not None else None

    def _of_values(self, named: Sequence[Operator], left: set[int]) -> Mapping[int, Operator]:
        """The first operator that made the numbers of a tensor, by the id of the tensor's operator."""
        wanted = _figures(named, lambda _: True)
        sizes = {figures.size for _, figures in wanted}
        made = _figures(
            (one for one in self._full if id(one) in left), lambda one: _count(one.outputs[_FIRST]) in sizes
        )
        matches = Matches((figures for _, figures in made), self._tolerance)
        makers: dict[object, Operator] = {}
        for operator, figures in made:
            makers.setdefault(figures.value, operator)
        found: dict[int, Operator] = {}
        for operator, figures in wanted:
            values = matches.of(figures)
            if values:
                found[id(operator)] = min((makers[value] for value in values), key=lambda one: self._place[id(one)])
        return found


def _figures(operators: Iterable[Operator], is_wanted: Callable[[Operator], bool]) -> list[tuple[Operator, Figures]]:
    return [
        (operator, figures)
        for operator in operators
        if _FIRST in operator.outputs and is_wanted(operator)
        if (figures := figures_of(operator.outputs[_FIRST])) is not None
    ]


def _count(tensor: DumpedTensor | None) -> int | None:
    return None if tensor is None else math.prod(host_shape(tensor))


def _modules(operator: Operator) -> list[str]:
    """Names of the modules around an operator of the forward pass, as names of files spell them."""
    layer = None if operator.is_parameter or operator.stage != "forward" else layer_of(operator.label)
    parts = [] if layer is None else layer.split(".")
    return [safe_text(".".join(parts[: index + 1])) for index in range(len(parts))]


def _pair(named: Operator, full: Operator, how: str, is_mine_named: bool) -> OperatorPair:
    mine, golden = (named, full) if is_mine_named else (full, named)
    return OperatorPair(mine, golden, how)


def _last(operator: Operator) -> Operator:
    return operator.parts[-1] if operator.parts else operator


def _crossings(mine: Sequence[Step], golden: Sequence[Step], found: _Found, is_mine_named: bool) -> list[Crossing]:
    """One for each step of mine; what golden alone has is told with the last one."""
    steps = [
        {id(part): step for step in side for operator in step.operators for part in (operator, *operator.parts)}
        for side in (mine, golden)
    ]
    by_step: dict[int, list[OperatorPair]] = defaultdict(list)
    for pair in found.pairs:
        by_step[id(steps[0][id(_last(pair.mine))])].append(pair)
    only_mine, only_golden = (found.named, []) if is_mine_named else ([], found.named)
    crossings: list[Crossing] = []
    for step in mine:
        own = by_step[id(step)]
        places = [steps[1][id(_last(pair.golden))] for pair in own]
        counts = Counter(map(id, places))
        main = max(golden, key=lambda one: counts[id(one)])
        is_last = step is mine[-1]
        crossings.append(
            Crossing(
                step,
                main,
                Pairing(
                    tuple(replace(pair, golden_step=place.key) for pair, place in zip(own, places, strict=True)),
                    tuple(one for one in only_mine if steps[0][id(one)] is step),
                    tuple(only_golden) if is_last else (),
                    tuple(found.full) if is_last else (),
                ),
                tuple(golden) if len(golden) > 1 else (),
            )
        )
    return crossings
