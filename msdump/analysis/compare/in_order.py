"""Which operator of a run is which of another that knows no steps and no names of operators: by type and order."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from msdump.analysis.compare.across import Crossing
from msdump.analysis.compare.common_tensors import host_shape
from msdump.analysis.compare.mapping import OperatorMap
from msdump.analysis.compare.pairing import OperatorPair, Pairing, pair_by_mapping
from msdump.analysis.steps import Operator, Step, StepKey, as_they_ran
from msdump.tables.messages import message

BY_ORDER = message("type and order")
# What is compared with what, as far as equal operators go: the first ones that differ say what is wrong.
_MAX_MEETINGS = 20_000_000


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    step: Step
    operator: Operator


def align(mine: Sequence[Step], golden: Sequence[Step], mapping: OperatorMap) -> list[Crossing]:
    """Pair the operators of two runs in the order in which they ran, one crossing for each step of mine.

    Those of one type and of equal sizes first, and between them those of one type. Parameters, which a log does not
    know, have no counterpart.
    """
    my_steps, golden_steps = as_they_ran(mine), as_they_ran(golden)
    rows = [_row(my_steps), _row(golden_steps)]
    places = {id(placed.operator): placed.step for row in rows for placed in row}
    operators = [[placed.operator for placed in row] for row in rows]
    mapped = pair_by_mapping(operators[0], operators[1], mapping)
    parameters = [operator for step in (*mine, *golden) for operator in step.operators if operator.is_parameter]
    unmapped = {id(operator) for operator in (*mapped.only_mine, *mapped.only_golden)}
    rows = [[placed for placed in row if id(placed.operator) in unmapped] for row in rows]
    found = _aligned(rows[0], rows[1])
    pairs = [*mapped.pairs]
    pairs += [OperatorPair(rows[0][i].operator, rows[1][j].operator, BY_ORDER) for i, j in found]
    for operator in (side for pair in pairs for side in (pair.mine, pair.golden) if side.parts):
        places[id(operator)] = places[id(operator.parts[-1])]
    used = {index for index, _ in found}, {index for _, index in found}
    only = [
        [placed for index, placed in enumerate(row) if index not in taken]
        for row, taken in zip(rows, used, strict=True)
    ]
    is_several = len(golden_steps) > 1
    steps_by_key = {step.key: step for step in golden_steps}
    by_step: dict[int, list[OperatorPair]] = defaultdict(list)
    for pair in pairs:
        by_step[id(places[id(pair.mine)])].append(pair)
    only_mine: dict[int, list[Operator]] = defaultdict(list)
    for placed in only[0]:
        only_mine[id(placed.step)].append(placed.operator)
    crossings = []
    for number, step in enumerate(my_steps):
        is_last = number == len(my_steps) - 1
        own = by_step[id(step)]
        keys = Counter(places[id(pair.golden)].key for pair in own)
        key = keys.most_common(1)[0][0] if keys else golden_steps[0].key
        crossings.append(
            Crossing(
                step,
                steps_by_key[key],
                Pairing(
                    tuple(_with_step(pair, places[id(pair.golden)].key) for pair in _in_order(own, step)),
                    tuple(only_mine[id(step)]),
                    tuple(placed.operator for placed in only[1]) if is_last else (),
                    (*parameters, *mapped.expected) if is_last else (),
                ),
                tuple(golden_steps) if is_several else (),
            )
        )
    return crossings


def _with_step(pair: OperatorPair, key: StepKey) -> OperatorPair:
    return OperatorPair(pair.mine, pair.golden, pair.how, key)


def _in_order(pairs: Sequence[OperatorPair], step: Step) -> list[OperatorPair]:
    index = {id(operator): number for number, operator in enumerate(step.operators)}
    return sorted(pairs, key=lambda pair: index[id((pair.mine.parts or (pair.mine,))[-1])])


def _row(steps: Sequence[Step]) -> list[_Placed]:
    """Operators of all steps as they ran. Times tell how the graphs of one iteration took turns, where each graph has
    them in its order."""
    row = [_Placed(step, operator) for step in steps for operator in step.operators if not operator.is_parameter]
    times = {id(placed): _time(placed.operator) for placed in row}
    known = {key: time for key, time in times.items() if time is not None}
    last: dict[int, int] = {}
    for placed in row:
        time = known.get(id(placed), -1)
        if time < last.get(id(placed.step), 0):
            return row
        last[id(placed.step)] = time
    return sorted(row, key=lambda placed: (placed.step.key.iteration or 0, known[id(placed)]))


def _time(operator: Operator) -> int | None:
    times = [tensor.timestamp_us for _, _, tensor in operator.all_tensors() if tensor.timestamp_us is not None]
    return min(times, default=None)


def _aligned(mine: Sequence[_Placed], golden: Sequence[_Placed]) -> list[tuple[int, int]]:
    """Indices of pairs, rising on both sides."""
    pairs: list[tuple[int, int]] = []
    i = j = 0
    for start, other, size in (*_blocks(mine, golden, _kind_and_sizes), (len(mine), len(golden), 0)):
        for inner, inner_other, count in _blocks(mine[i:start], golden[j:other], _kind):
            pairs += [(i + inner + step, j + inner_other + step) for step in range(count)]
        pairs += [(start + step, other + step) for step in range(size)]
        i, j = start + size, other + size
    return pairs


def _blocks(
    mine: Sequence[_Placed], golden: Sequence[_Placed], key_of: Callable[[Operator], Hashable]
) -> list[tuple[int, int, int]]:
    """Runs of equal keys: where they begin on both sides, and how long they are."""
    keys = [[key_of(placed.operator) for placed in side] for side in (mine, golden)]
    limit = min(map(len, keys))
    start = next((index for index in range(limit) if keys[0][index] != keys[1][index]), limit)
    rest = [side[start:] for side in keys]
    counts = [Counter(side) for side in rest]
    while sum(count * counts[1][key] for key, count in counts[0].items()) > _MAX_MEETINGS:
        rest = [side[: max(1, len(side) // 2)] for side in rest]
        counts = [Counter(side) for side in rest]
    matcher = SequenceMatcher(None, rest[0], rest[1], autojunk=False)
    blocks = [(start + block.a, start + block.b, block.size) for block in matcher.get_matching_blocks() if block.size]
    return [(0, 0, start), *blocks] if start else blocks


def _kind(operator: Operator) -> Hashable:
    return operator.op_type


def _kind_and_sizes(operator: Operator) -> Hashable:
    sides = (operator.inputs, operator.outputs)
    return operator.op_type, *(tuple(math.prod(host_shape(one)) for one in side.values()) for side in sides)
