"""Which operator of one run is which of another: by the values that they read and make, then by their kind.

MindSpore has the steps of a training in one graph, PyTorch in three, an exporter merges two operators into one, and a
program that was written anew has other operators. So all graphs of one iteration are one row of operators on each side
(`trace`), and what both compute tells what belongs together (`confirm`). Where a result is nowhere on the other side,
the operators that are left are paired by kind, shape and order: there is the difference.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msdump.analysis.compare.alignment import aligned, chained, is_another_part, is_one_size
from msdump.analysis.compare.chains import reads_others
from msdump.analysis.compare.common_tensors import host_shape, is_of_one_size
from msdump.analysis.compare.confirm import Confirmation
from msdump.analysis.compare.doubts import Doubts
from msdump.analysis.compare.faults import Fault, faults_of
from msdump.analysis.compare.iterations import iterations_of
from msdump.analysis.compare.mapping import OperatorMap
from msdump.analysis.compare.operands import Met
from msdump.analysis.compare.pairing import BY_INPUTS, BY_KIND, BY_VALUES, OperatorPair, Pairing, pair_by_mapping
from msdump.analysis.compare.states import States
from msdump.analysis.compare.trace import Look, Placed, Trace, are_of_one_use
from msdump.analysis.compare.values import Figures, Likeness, Value, figures_of
from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.memory_state import Moment
from msdump.analysis.steps import Operator, Slot, Step, StepKey
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.kinds import (
    has,
    has_same_slots,
    inputs_apart,
    is_commutative,
    is_mover,
    output_role,
)
from msdump.operators.traits import is_random, reads_shape_only

_MAX_CANDIDATES = 64  # operators with one result that are tried for one


@dataclass(frozen=True, slots=True)
class Crossing:
    """One step of mine and what it was paired with.

    golden       the step of golden that has most of its counterparts
    others       further steps of golden of the same iteration
    likenesses   how tensors agree that do so in another order of their axes, by the ids of both
    beyond       operators of golden that go on where mine ends, each with its step
    faults       where the iteration begins to differ, with its last step; None of runs that were paired by their names
    """

    mine: Step
    golden: Step
    pairing: Pairing
    others: tuple[Step, ...] = ()
    likenesses: Mapping[tuple[int, int], Likeness] = field(default_factory=dict)
    beyond: tuple[tuple[StepKey, Operator], ...] = ()
    faults: tuple[Fault, ...] | None = None


def cross(
    mine: Sequence[Step],
    golden: Sequence[Step],
    mapping: OperatorMap | None,
    tolerance: float | None,
    looks: tuple[Look, Look] = (figures_of, figures_of),
    graphs: tuple[GraphFiles | None, GraphFiles | None] = (None, None),
) -> list[Crossing]:
    """Pair the operators of two dumps by their values, iteration by iteration, in mine's order.

    looks    figures of a tensor of mine and of golden
    graphs   of both, where they are known
    """
    crossings: list[Crossing] = []
    traces: list[Trace | None] = [None, None]
    states = States()
    for my_steps, golden_steps in iterations_of(mine, golden, looks):
        own = Trace(my_steps, traces[0], looks[0], graphs[0])
        other = Trace(golden_steps, traces[1], looks[1], graphs[1])
        crossings += _Iteration(own, other, states, tolerance).paired(mapping)
        traces = [own, other]
    return crossings


class _Iteration:
    """State of pairing one iteration."""

    def __init__(self, mine: Trace, golden: Trace, states: States, tolerance: float | None) -> None:
        self._mine, self._golden, self._states = mine, golden, states
        self._confirmed = Confirmation(mine, golden, tolerance)
        self._matches, self._partners = self._confirmed.matches, self._confirmed.partners
        self._pairs: list[OperatorPair] = []
        self._placed: dict[int, tuple[Placed, Placed]] = {}  # of each pair, by the id of mine's operator
        self._moments = {id(step): Moment(step) for step in mine.steps}
        self._expected: list[Operator] = []
        self._likenesses: dict[tuple[int, int], Likeness] = {}

    def paired(self, mapping: OperatorMap | None) -> list[Crossing]:
        sides = self._mine, self._golden
        left = [[placed.operator for placed in side.row] for side in sides]
        if mapping is not None:
            mapped = pair_by_mapping(left[0], left[1], mapping)
            for pair in mapped.pairs:
                self._add(self._mine.placed(pair.mine), self._golden.placed(pair.golden), pair.how)
            self._expected += mapped.expected
            left = [list(mapped.only_mine), list(mapped.only_golden)]
        rows = [[side.placed(operator) for operator in operators] for side, operators in zip(sides, left, strict=True)]
        rows = list(self._join_by_values(rows[0], rows[1]))
        Doubts(self._confirmed).look_again(self._pairs, self._placed)
        open_rows = []
        for is_mine, row in zip((True, False), rows, strict=True):
            is_left = [self._confirmed.is_right(placed, is_mine) is False for placed in row]
            self._expected += [placed.operator for placed, is_open in zip(row, is_left, strict=True) if not is_open]
            open_rows.append([placed for placed, is_open in zip(row, is_left, strict=True) if is_open])
        deciding = [[placed for placed in row if _decides(placed)] for row in rows]
        self._join_each(deciding[0], deciding[1], BY_KIND, self._decides_otherwise)
        left_rows = self._with_chains(open_rows)
        joins = (
            self._join_states, self._join_what_reads_the_same, self._join_what_shares, self._join_in_order,
            self._join_by_inputs,
        )  # fmt: skip
        for join in joins:
            left_rows = join(*left_rows)
        left_rows = self._without_makeshift(left_rows[0]), self._without_makeshift(left_rows[1])
        return self._crossings(*left_rows)

    def _without_makeshift(self, row: Sequence[Placed]) -> list[Placed]:
        """The row without what fills memory, draws numbers or shows a tensor again, which needs no counterpart."""
        kept = []
        for placed in row:
            read = {figures.value for _, figures in placed.inputs}
            is_shown = placed.result is not None and placed.result.value in read
            if placed.kind in ("fill", "random") or is_shown:
                self._expected.append(placed.operator)
            else:
                kept.append(placed)
        return kept

    # -- pairs ---------------------------------------------------------------------------------------------------------

    def _join_by_values(self, mine: Sequence[Placed], golden: Sequence[Placed]) -> tuple[list[Placed], list[Placed]]:
        """Pair operators whose results agree: of one kind first, then those that read the same, then the nearest."""
        makers: dict[Value, list[Placed]] = defaultdict(list)
        for placed in golden:
            if placed.result is not None and not is_mover(placed.operator.op_type):
                makers[placed.result.value].append(placed)
        rest, used = [], set()
        for placed in mine:
            candidates = []
            for value in self._values_to_meet(placed):
                # One number may be made thousands of times, each time by the next operator of the other side.
                waiting = makers.get(value, [])
                while waiting and id(waiting[0]) in used:
                    del waiting[0]
                candidates += [
                    one
                    for one in waiting[:_MAX_CANDIDATES]
                    if id(one) not in used and one.part == placed.part and self._may_meet(placed, one)
                ]
            if not candidates:
                rest.append(placed)
                continue
            # Results of layers that add next to nothing agree with each other: what they read tells them apart.
            partner = candidates[0] if len(candidates) == 1 else min(
                candidates, key=lambda one: (
                    one.kind != placed.kind, self._is_turned(placed, one), -self._confirmed.shared_inputs(placed, one)
                )
            )  # fmt: skip
            used.add(id(partner))
            self._add(placed, partner, BY_VALUES)
        return rest, [placed for placed in golden if id(placed) not in used]

    def _is_turned(self, own: Placed, other: Placed) -> bool:
        """Whether two results agree with their axes in another order only."""
        if own.result is None or other.result is None or own.result.is_plain:
            return False
        likeness = self._confirmed.likeness(own.result, other.result)
        return likeness is not None and bool(likeness.axes)

    def _values_to_meet(self, placed: Placed) -> tuple[Value, ...]:
        """Values of golden that a result may be."""
        if placed.result is None or is_mover(placed.operator.op_type):
            return ()
        return (placed.result.value,) if placed.result.is_plain else self._partners[placed.result.value]

    def _may_meet(self, own: Placed, other: Placed) -> bool:
        """Whether two operators with one result are a pair: zeros show nothing, unless they are made of the same."""
        if own.result is None or not own.result.is_plain:
            return True
        return own.kind == other.kind and self._confirmed.shares(own, other)

    def _with_chains(self, rows: Sequence[Sequence[Placed]]) -> tuple[list[Placed], list[Placed]]:
        """Rows in which operators that are one on the other side are one."""
        changed = []
        for side, row, other in zip((self._mine, self._golden), rows, reversed(rows), strict=True):
            missing = Counter(placed.kind for placed in other)
            missing.subtract(placed.kind for placed in row)
            changed.append(chained(side, row, missing))
        return changed[0], changed[1]

    def _join_states(self, mine: Sequence[Placed], golden: Sequence[Placed]) -> tuple[list[Placed], list[Placed]]:
        """Pair what makes the state of an optimizer by the parameter that is updated with it: states themselves may be
        far apart, and resemble those of other parameters.
        """
        # test: sixth_points_in_bfloat16_rates
        left = [{id(placed.operator): placed for placed in row} for row in (mine, golden)]
        waiting = [self._placed[id(pair.mine)] for pair in self._pairs]
        while waiting:
            own, other = waiting.pop()
            if own.part != "optimizer" or own.operator.op_type != other.operator.op_type or own.operator.parts:
                continue
            for (_, figures), (_, others) in zip(own.inputs, other.inputs, strict=False):
                makers = [
                    side.maker_before(one.value, side.place[id(placed.operator)])
                    for side, placed, one in ((self._mine, own, figures), (self._golden, other, others))
                ]
                if makers[0] is None or makers[1] is None or self._confirmed.agree(figures, others):
                    continue
                both = self._mine.row[makers[0]], self._golden.row[makers[1]]
                is_open = id(both[0].operator) in left[0] and id(both[1].operator) in left[1]
                if is_open and both[0].operator.op_type == both[1].operator.op_type and is_one_size(*both):
                    del left[0][id(both[0].operator)], left[1][id(both[1].operator)]
                    self._add(*both, BY_KIND)
                    waiting.append(both)
        return list(left[0].values()), list(left[1].values())

    def _join_what_reads_the_same(
        self, mine: Sequence[Placed], golden: Sequence[Placed]
    ) -> tuple[list[Placed], list[Placed]]:
        """Pair operators of one kind whose inputs agree."""
        return self._join_each(
            mine,
            golden,
            BY_KIND,
            lambda own, other: (
                own.kind == other.kind and self._confirmed.shares(own, other) and not is_another_part(own, other)
            ),
        )

    def _decides_otherwise(self, own: Placed, other: Placed) -> bool:
        """Whether two comparisons of the same numbers say other things: at a border both may be right."""
        is_same = own.result is None or other.result is None or own.result.value == other.result.value
        return not is_same and own.kind == other.kind and is_one_size(own, other) and self._confirmed.shares(own, other)

    def _join_what_shares(self, mine: Sequence[Placed], golden: Sequence[Placed]) -> tuple[list[Placed], list[Placed]]:
        """Pair operators of one kind and size that have an operand in common, as noise that is scaled otherwise."""
        return self._join_each(
            mine,
            golden,
            BY_KIND,
            lambda own, other: (
                own.kind == other.kind
                and not own.is_random
                and is_one_size(own, other)
                and self._confirmed.shared_inputs(own, other) > 0
                and not is_another_part(own, other)
            ),
        )

    def _join_by_inputs(self, mine: Sequence[Placed], golden: Sequence[Placed]) -> tuple[list[Placed], list[Placed]]:
        """Pair what is left and computes something else out of the same."""
        left = {id(placed.operator) for placed in golden}
        return self._join_each(
            mine,
            golden,
            BY_INPUTS,
            lambda own, other: (
                self._updates_the_same(own, other)
                or (
                    self._confirmed.shares(own, other)
                    and not self._is_inserted(own, other, left)
                    and is_mover(own.operator.op_type) == is_mover(other.operator.op_type)
                    and (is_one_size(own, other) or _reduces(own) == _reduces(other) != "")
                )
            ),
        )

    def _join_each(
        self,
        mine: Sequence[Placed],
        golden: Sequence[Placed],
        how: str,
        fits: Callable[[Placed, Placed], bool],
    ) -> tuple[list[Placed], list[Placed]]:
        """Pair each operator with which mine begins to differ with the first one that fits it.

        fits    says so of no two operators that read no value that both sides have
        """
        rest: list[Placed] = []
        used: set[int] = set()
        one_part = self._confirmed.are_of_one_part
        readers: dict[Value, list[int]] = defaultdict(list)
        for index, other in enumerate(golden):
            for _, figures in other.inputs:
                readers[figures.value].append(index)
        for own in mine:
            values = {value for _, figures in own.inputs for value in self._partners[figures.value]}
            candidates = {index for value in values for index in readers.get(value, ())} - used
            found = next(
                (
                    index
                    for index in (sorted(candidates) if self._confirmed.begins(own, True) else ())
                    if one_part(own, golden[index]) and fits(own, golden[index])
                ),
                None,
            )
            if found is None:
                rest.append(own)
            else:
                used.add(found)
                self._add(own, golden[found], how)
        return rest, [other for index, other in enumerate(golden) if index not in used]

    def _updates_the_same(self, own: Placed, other: Placed) -> bool:
        """Whether both are updates of one parameter, which frameworks make out of other numbers of operators."""
        if own.part != "optimizer" or not own.inputs or not other.inputs or not is_one_size(own, other):
            return False
        return other.inputs[0][1].value in self._partners[own.inputs[0][1].value]

    def _is_inserted(self, own: Placed, other: Placed, left: Collection[int]) -> bool:
        """Whether an operator of golden stands before the one that golden has for mine's.

        left    ids of the operators of golden that have no partner
        """
        if own.kind == other.kind or own.is_mover:
            return False
        side = self._golden
        place = side.place[id((other.operator.parts or (other.operator,))[-1])]
        readers = (side.row[reader] for reader in side.readers_of(place))
        return any(id(one.operator) in left and are_of_one_use(own, one) and is_one_size(own, one) for one in readers)

    def _join_in_order(self, mine: Sequence[Placed], golden: Sequence[Placed]) -> tuple[list[Placed], list[Placed]]:
        """Pair operators of one kind, and if possible of one size, in the order in which they ran."""
        used: tuple[set[int], set[int]] = set(), set()
        for part in ("forward", "backward", "optimizer"):
            rows = [
                [placed for placed in side if placed.part == part and not is_random(placed.operator.op_type)]
                for side in (mine, golden)
            ]
            for own, other in aligned(*rows):
                self._add(own, other, BY_KIND)
                used[0].add(id(own))
                used[1].add(id(other))
        return (
            [placed for placed in mine if id(placed) not in used[0]],
            [placed for placed in golden if id(placed) not in used[1]],
        )

    def _add(self, own: Placed, other: Placed, how: str) -> None:
        """Remember a pair; the operator of golden gets the slots of mine."""
        inputs, swapped = self._operands(own, other, how)
        outputs: dict[Slot, DumpedTensor] = {}
        roles = {output_role(_last_type(other.operator), slot.number): (slot, tensor)
                 for slot, tensor in other.operator.outputs.items()}  # fmt: skip
        for index, (slot, tensor) in enumerate(own.operator.outputs.items()):
            found = roles.get(output_role(_last_type(own.operator), slot.number))
            if found is not None and (index == 0 or is_of_one_size(tensor, found[1])):
                outputs[slot] = found[1]
        is_read = any(slot in inputs and not figures.is_plain for slot, figures in own.read)
        is_without = own.part == "backward" and own.is_mover and not is_read and is_one_size(own, other)
        if how == BY_KIND and (is_without or _is_other_form(own, other)):
            outputs = {}  # what is made of such gradients shows whether they are right
        self._note_likeness(own.outputs, other.outputs)
        golden = dataclasses.replace(other.operator, inputs=inputs, outputs=outputs)
        self._pairs.append(OperatorPair(own.operator, golden, how, other.step.key, swapped))
        self._placed[id(own.operator)] = own, other

    def _operands(self, own: Placed, other: Placed, how: str) -> tuple[dict[Slot, DumpedTensor], tuple[Slot, ...]]:
        """Inputs of golden by slots of mine: those that agree, then those of one size, in their order; and slots of
        two that have changed their places.
        """
        if reads_shape_only(own.operator.op_type):
            return {}, ()
        waiting = dict(other.inputs)
        found: dict[Slot, DumpedTensor] = {}
        places: list[tuple[Slot, Slot]] = []
        for slot, figures in own.inputs:
            values = self._partners[figures.value]
            match = next((name for name, one in waiting.items() if one.value in values), None)
            if match is None and figures.is_plain:
                match = next((name for name, one in waiting.items() if one.value == figures.value), None)
            if match is not None:
                found[slot] = waiting[match].tensor
                places += [] if figures.is_plain else [(slot, match)]
                self._note_likeness(((slot, figures),), ((match, waiting.pop(match)),))
        is_apart = own.kind != other.kind or (
            how == BY_VALUES and not has_same_slots(own.kind, own.inputs, other.inputs)
        )
        if is_apart or reads_others(own.operator) or reads_others(other.operator):
            return dict(sorted(found.items())), ()  # what they read beside these are other quantities
        is_other_form = _is_other_form(own, other)
        apart = {*self._moments[id(own.step)].blind_slots(own.operator), *inputs_apart(own.kind)}
        for slot, figures in own.inputs:
            is_setting = figures.size == 1 and figures.value not in self._mine.made
            is_in_pieces = self._confirmed.is_known(figures, True) and not self._partners[figures.value]
            if slot in found or slot.number in apart or is_setting or figures.is_noise or is_in_pieces:
                continue
            # What mine has elsewhere is no other form of an operand: gradients read what the forward pass kept.
            match = next((name for name, one in waiting.items() if one.size == figures.size and not (
                is_other_form and self._confirmed.is_known(one, False))), None)  # fmt: skip
            is_one_type = own.operator.op_type == other.operator.op_type and how != BY_VALUES
            if match is None and slot in waiting and is_one_type and not is_other_form:
                match = slot  # another shape is a difference
            if match is not None:
                self._note_likeness(((slot, figures),), ((match, waiting[match]),))
                found[slot] = waiting.pop(match).tensor
        return dict(sorted(found.items())), _swapped(own, places)

    def _note_likeness(self, mine: Iterable[tuple[Slot, Figures]], golden: Iterable[tuple[Slot, Figures]]) -> None:
        for (_, own), (_, other) in zip(mine, golden, strict=False):
            if own.size == other.size and (not own.is_plain or self._confirmed.scale_of(own) != 1):
                likeness = self._confirmed.likeness(own, other) or self._matches.nearest(own, other)
                if likeness is not None and (likeness.axes or likeness.factor != 1):
                    self._likenesses[id(own.tensor), id(other.tensor)] = likeness

    # -- result --------------------------------------------------------------------------------------------------------

    def _crossings(self, mine: Sequence[Placed], golden: Sequence[Placed]) -> list[Crossing]:
        beyond = self._beyond(mine, golden)
        faults = self._faults()
        crossings = []
        steps = self._mine.steps
        for number, step in enumerate(steps):
            pairs = [pair for pair in self._pairs if self._mine.placed(pair.mine).step is step]
            pairs.sort(key=lambda pair: self._mine.place[id((pair.mine.parts or (pair.mine,))[-1])])
            keys = Counter(pair.golden_step for pair in pairs)
            key = keys.most_common(1)[0][0] if keys else self._golden.steps[0].key
            partner = next((one for one in self._golden.steps if one.key == key), self._golden.steps[0])
            is_last = number == len(steps) - 1
            pairing = Pairing(
                tuple(pairs),
                tuple(placed.operator for placed in mine if placed.step is step),
                tuple(placed.operator for placed in golden) if is_last else (),
                tuple(self._expected) if is_last else (),
            )
            crossings.append(
                Crossing(
                    step,
                    partner,
                    pairing,
                    tuple(self._golden.steps),
                    self._likenesses,
                    beyond if is_last else (),
                    faults if is_last else (),
                )
            )
        return crossings

    def _faults(self) -> tuple[Fault, ...]:
        pairs = []
        for pair in self._pairs:
            own, other = self._placed[id(pair.mine)]
            slots = {id(figures.tensor): slot for slot, figures in other.inputs}
            operands = {slot: slots[id(one)] for slot, one in pair.golden.inputs.items() if id(one) in slots}
            pairs.append(Met(own, other, operands))
        faults = faults_of(self._confirmed, pairs, set(map(id, self._expected)))
        self._states.note(self._confirmed)
        return self._states.traced_back(self._confirmed, faults)

    def _beyond(self, mine: Sequence[Placed], golden: Sequence[Placed]) -> tuple[tuple[StepKey, Operator], ...]:
        """Operators of golden that lead on from what mine ends with; () where mine has something left itself."""
        left = [placed for placed in mine if not is_mover(placed.operator.op_type) and placed.part == "forward"]
        ends = {
            value
            for placed in self._mine.row
            if placed.part == "forward" and not is_mover(placed.operator.op_type)
            for _, figures in placed.outputs[:1]
            if not figures.is_plain and not self._mine.readers[figures.value]
            for value in self._partners[figures.value]
        }
        waiting = [placed for placed in golden if placed.part == "forward" and not is_random(placed.operator.op_type)]
        makers = {figures.value: placed for placed in waiting for _, figures in placed.outputs}
        found: dict[int, Placed] = {}
        stack = [
            placed
            for placed in waiting
            if not is_mover(placed.operator.op_type) and any(figures.value in ends for _, figures in placed.inputs)
        ]
        while stack and not left:
            placed = stack.pop()
            if id(placed) not in found:
                found[id(placed)] = placed
                stack += [makers[figures.value] for _, figures in placed.inputs if figures.value in makers]
        order = [placed for placed in waiting if id(placed) in found and not is_mover(placed.operator.op_type)]
        computing = (one for one in order if not any(has(one.operator.op_type, each) for each in ("moves", "chooses")))
        if not any(one.telling is not None and one.telling.is_float for one in computing):
            return ()  # it only chooses, and keeps what it chose, as the next word
        return tuple((placed.step.key, placed.operator) for placed in order)


def _swapped(own: Placed, places: Sequence[tuple[Slot, Slot]]) -> tuple[Slot, ...]:
    """The first two operands of one shape that stand the other way round in golden; () where their order means nothing.

    places   slots of mine, in order, and the slot of golden that holds the same numbers
    """
    if own.operator.parts or is_commutative(own.operator.op_type):
        return ()
    shapes = {slot: host_shape(own.operator.inputs[slot]) for slot, _ in places}
    pairs = itertools.combinations(places, 2)
    return next(((x[0], y[0]) for x, y in pairs if shapes[x[0]] == shapes[y[0]] and x[1] > y[1]), ())


def _decides(placed: Placed) -> bool:
    """Whether its result jumps where two numbers are equal."""
    return has(placed.operator.op_type, "compares")


def _is_other_form(own: Placed, other: Placed) -> bool:
    """Whether two gradients are made of other tensors than each other, as of a picture with zeros in between."""
    sizes = [sorted(one.size for _, one in placed.inputs if not one.is_plain) for placed in (own, other)]
    return own.part == "backward" and not own.is_mover and sizes[0] != sizes[1]


def _last_type(operator: Operator) -> str:
    return operator.parts[-1].op_type if operator.parts else operator.op_type


def _reduces(placed: Placed) -> str:
    return "reduction" if placed.kind in ("sum", "mean", "amax", "amin", "prod", "norm") else ""
