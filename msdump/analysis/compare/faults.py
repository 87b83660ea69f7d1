"""Where two runs of one iteration begin to differ: operators that read nothing but what both sides have, or what came
in from outside, and make what the other side has not."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from msdump.analysis.compare.confirm import Confirmation
from msdump.analysis.compare.forms import Form, forms_of, loss_read, losses_of, place_in, results_of
from msdump.analysis.compare.instead import another_of_mine, holder_in_mine, is_step_of_noise, maker_in_mine
from msdump.analysis.compare.operands import Met, Source, reordered, source_of, turned
from msdump.analysis.compare.progress import PARTS, Progress
from msdump.analysis.compare.trace import Placed, Trace, are_of_one_use
from msdump.analysis.compare.values import Figures, Value
from msdump.analysis.distance.bounds import bounds_of
from msdump.analysis.steps import Operator, Slot, StepKey
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.kinds import has
from msdump.operators.traits import memory_use


@dataclass(frozen=True, slots=True)
class Fault:
    """An operator of one side with which a difference begins.

    side      "mine" or "golden"
    order     part of the training step, place among mine's operators, and distance behind it
    paired    mine's operator of the pair that it is in, or is a part of; None where it has no counterpart
    facing    of an operator of mine without a counterpart: what golden makes of the same, and in which step
    ends      mine's operators of the pairs that one without a counterpart leads to
    starts    numbers other than 1 that the backward pass of mine is given
    source    of a pair that was given other numbers: who made them on both sides
    results   of a computation that both sides make in their own form: what it ends in, in mine and in golden
    holder    of an operator of golden alone that writes a tensor: mine's operator that computes with it
    around    of an operator of golden alone: mine's operator that made what it reads, and that which goes on with that
    forms     of what both sides write in their own form: the operators of mine and of golden, of which one is wrong
    """

    side: str
    step: StepKey
    operator: Operator
    order: tuple[int, int, float]
    paired: Operator | None = None
    facing: tuple[StepKey, Operator] | None = None
    ends: tuple[Operator, ...] = ()
    results: tuple[DumpedTensor, DumpedTensor] | None = None
    starts: tuple[float, ...] = ()
    source: Source | None = None
    holder: tuple[StepKey, Operator] | None = None
    around: tuple[tuple[StepKey, Operator] | None, tuple[StepKey, Operator] | None] = (None, None)
    forms: tuple[Form, Form] = ((), ())


def faults_of(confirmed: Confirmation, pairs: Sequence[Met], forgiven: Collection[int]) -> tuple[Fault, ...]:
    """Faults of both sides in the order in which mine came to them.

    A pair is one where both of it begin a difference: what one side alone computes before them comes first, unless it
    leads to an operand that the other one of the pair has not, as parts of what is one operator there do.

    forgiven   ids of operators that need no counterpart
    """
    search = _Search(confirmed, pairs, forgiven)
    search.look_at_pairs()
    search.look_at_the_rest()
    if search.misses_the_forward_pass():
        confirmed.takes_parts = True
        search.look_at_the_rest(_computes_forward)
    faults = [one.fault for one in search.found]
    # That with which nothing computes is named only where nothing else is found.
    read = [fault for fault in faults if fault.paired is not None or not _is_unread(confirmed, fault)]
    starts = tuple({
        abs(figures.largest)
        for placed in confirmed.sides[0].row
        if placed.part == "backward"
        for _, figures in placed.inputs
        if figures.size == 1 and abs(figures.largest) != 1
    })  # fmt: skip
    ordered = sorted(read or faults, key=lambda fault: fault.order)
    multiplied = _multiplied_loss(confirmed, pairs, ordered[0]) if ordered else None
    if multiplied is not None:
        ordered.insert(0, multiplied)
    if ordered and ordered[0].paired is None:
        first = ordered[0]
        goes_on = first.ends[0] if first.ends else None if first.around[1] is None else first.around[1][1]
        facing = None if first.facing is None else first.facing[1]
        forms, met = forms_of(confirmed, pairs, first.operator, first.side == "mine", facing, goes_on)
        ordered[0] = replace(first, forms=forms, ends=first.ends if met is None else (met,))
    return tuple(replace(fault, starts=starts) if fault.order[0] == 1 else fault for fault in ordered)


def _multiplied_loss(confirmed: Confirmation, pairs: Sequence[Met], first: Fault) -> Fault | None:
    """The operator of one side alone that multiplies the loss, where the first gradient that differs is as many times
    that of the other side; None where that is not so, or where the run divides its gradients again.
    """
    pair = next((one for one in pairs if one.mine.operator is first.paired and one.mine.part == "backward"), None)
    own_result, other_result = (None, None) if pair is None else (pair.mine.result, pair.golden.result)
    # A gradient of zero is no multiple.
    if pair is None or not (own_result and own_result.length and other_result and other_result.length):
        return None
    share = own_result.length / other_result.length
    near = bounds_of(own_result.dtype, other_result.dtype, confirmed.tolerance).relative
    for side, own, other, times in (("mine", *confirmed.sides, share), ("golden", *confirmed.sides[::-1], 1 / share)):
        found = own.multiplied_loss
        if (
            found
            and other.multiplied_loss is None
            and own.loss_scale == 1
            and math.isclose(times, found[0], rel_tol=near)
        ):
            placed = own.row[found[1]]
            return Fault(side, placed.step.key, placed.operator, (0, found[1], 0.0), ends=(pair.mine.operator,))
    return None


@dataclass(slots=True)
class _Found:
    """A fault, the values of golden that its operator reads, and the numbers of the pairs that it comes to first."""

    fault: Fault
    read: set[Value]
    ends: set[int]

    def meets(self, golden: Fault, read: set[Value], ends: set[int]) -> bool:
        """Whether an operator of golden is a part of the same computation in another form: both make something of the
        same and neither has a counterpart, or both lead to the same pair.
        """
        if self.fault.side != "mine" or self.fault.order[0] != golden.order[0]:
            return False
        return bool(self.ends & ends) or bool(self.read & read)


class _Search:
    """Looks for the faults of one iteration."""

    def __init__(self, confirmed: Confirmation, pairs: Sequence[Met], forgiven: Collection[int]) -> None:
        self.found: list[_Found] = []
        self._confirmed, self._pairs, self._forgiven = confirmed, pairs, forgiven
        self._covered: set[int] = set()
        self._begun: list[Met] = []
        self._places = Progress(confirmed)
        self._pair_of = {
            id(part): number
            for number, pair in enumerate(pairs)
            for placed in (pair.mine, pair.golden)
            for part in (placed.operator, *placed.operator.parts)
        }

    def look_at_pairs(self) -> None:
        confirmed = self._confirmed
        for number, pair in enumerate(self._pairs):
            sides = [(True, pair.mine, set(pair.operands)), (False, pair.golden, set(pair.operands.values()))]
            own, other = pair.mine.telling, pair.golden.telling
            if own is not None and other is not None and confirmed.agree(own, other):
                continue  # both hand on what they read, as a norm whose weight is one does
            if not all(_is_open(confirmed, placed, is_mine) for is_mine, placed, _ in sides):
                continue
            if not all(confirmed.begins(placed, is_mine, slots) for is_mine, placed, slots in sides):
                sides = [
                    (is_mine, placed, slots - _made_up(confirmed, placed, is_mine, slots))
                    for is_mine, placed, slots in sides
                ]
                if not all(confirmed.begins(placed, is_mine, slots) for is_mine, placed, slots in sides):
                    continue
            leads = [
                (is_mine, placed.part, confirmed.open_lead(placed, is_mine, {at for at, _ in placed.inputs} - slots))
                for is_mine, placed, slots in sides
            ]
            if any(_is_of_an_earlier_part(confirmed, *lead) for lead in leads):
                continue  # a gradient of what differs already
            if any(self._pair_of.get(one, number) != number for _, _, lead in leads for one in lead):
                continue  # it reads what follows from another pair that differs
            self._begun.append(pair)
            ends = _next_pairs(confirmed, pair.mine, True, self._pair_of)
            self.found.append(_Found(self._of_pair(pair), set(), ends))
            self._covered |= {one for is_mine, _, lead in leads for one in self._with_twins(lead, is_mine)}

    def _with_twins(self, lead: set[int], is_mine: bool) -> set[int]:
        """Ids of some operators, and of those that make up the same as one of them, as two counts to one number."""
        side = self._confirmed.side(is_mine)
        made_up = [one.result.value for one in map(side.row.__getitem__, map(side.place.__getitem__, lead))
                   if one.result and not one.read]  # fmt: skip
        return lead | {id(one) for value in made_up for one in self._made_of_nothing[is_mine].get(value, ())}

    @functools.cached_property
    def _made_of_nothing(self) -> Mapping[bool, Mapping[Value, list[Operator]]]:
        """Of either side, by value: the operators that make it and read nothing."""
        found: dict[bool, dict[Value, list[Operator]]] = {True: {}, False: {}}
        for is_mine, made in found.items():
            for one in self._confirmed.side(is_mine).row:
                if one.result and not one.read:
                    made.setdefault(one.result.value, []).append(one.operator)
        return found

    def _of_pair(self, pair: Met) -> Fault:
        mine, order = pair.mine, self._places.of(pair.mine, True)
        mover = turned(self._confirmed, pair) or reordered(self._confirmed, mine, True)
        if mover is not None:
            name = "mine" if mover[0] else "golden"
            return Fault(name, mover[1].step.key, mover[1].operator, order, ends=(mine.operator,))
        source = source_of(self._confirmed, pair)
        return Fault("mine", mine.step.key, mine.operator, order, mine.operator, source=source)

    def look_at_the_rest(self, is_asked: Callable[[Placed], bool] = lambda _: True) -> None:
        confirmed = self._confirmed
        beginnings = {is_mine: list(_beginnings(confirmed, is_mine)) for is_mine in (True, False)}
        for is_mine in (True, False):
            behind = _Behind(confirmed, is_mine, self._begun)
            for placed in _without_idle(confirmed, beginnings, is_mine, self._pair_of):
                if is_asked(placed) and self._is_of_interest(placed) and not behind.meets(placed):
                    self._add(placed, is_mine)

    def misses_the_forward_pass(self) -> bool:
        """Whether something is wrong there, and nothing of what was found is."""
        sides = zip(self._confirmed.sides, self._confirmed.right, strict=True)
        rows = (zip(side.row, right, strict=True) for side, right in sides)
        is_wrong = any(_computes_forward(one) and answer is False for row in rows for one, answer in row)
        return is_wrong and all(one.fault.order[0] != 0 for one in self.found)

    def _is_of_interest(self, placed: Placed) -> bool:
        operator = placed.operator
        if id(operator) in self._covered or id(operator) in self._pair_of:
            return False
        if id(operator) in self._forgiven and placed.inputs and not placed.is_random:
            return False
        # What moves or sorts elements computes nothing: what computes with its result shows whether that is in order.
        return not ((placed.is_mover or has(operator.op_type, "sorts")) and placed.inputs)

    def _add(self, placed: Placed, is_mine: bool) -> None:
        confirmed = self._confirmed
        if is_step_of_noise(confirmed, placed, is_mine):
            return
        read, ends = _reads(confirmed, placed, is_mine), _next_pairs(confirmed, placed, is_mine, self._pair_of)
        next_ones = tuple(self._pairs[number].mine.operator for number in sorted(ends))
        order = self._places.of(placed, is_mine)
        fault = Fault("mine" if is_mine else "golden", placed.step.key, placed.operator, order, ends=next_ones)
        mover = reordered(confirmed, placed, is_mine)
        if mover is not None and (mover[0] or not is_mine):
            operator, name = mover[1].operator, "mine" if mover[0] else "golden"
            self.found.append(_Found(Fault(name, mover[1].step.key, operator, order, ends=next_ones), read, ends))
            return
        met = None if is_mine else next((one for one in self.found if one.meets(fault, read, ends)), None)
        if met is None:
            own = None if is_mine else _written_out(confirmed, placed) or another_of_mine(confirmed, placed)
            if own is not None:
                facing = placed.step.key, placed.operator
                fault = Fault("mine", own.step.key, own.operator, self._places.of(own, True), facing=facing)
            holder = None if is_mine or ends else holder_in_mine(confirmed, placed)
            results = losses_of(confirmed, placed, is_mine)
            around = (None, None) if is_mine else (maker_in_mine(confirmed, placed), None)
            self.found.append(_Found(replace(fault, results=results, holder=holder, around=around), read, ends))
        elif met.fault.paired is None and self._stands_before(placed, met.fault):
            goes_on = met.fault.step, met.fault.operator
            met.fault = replace(fault, ends=(), around=(maker_in_mine(confirmed, placed), goes_on))
        elif met.fault.paired is None and met.fault.facing is None:
            results = results_of(confirmed, met.fault.operator, placed)
            met.fault = replace(met.fault, facing=(fault.step, fault.operator), results=results)

    def _stands_before(self, placed: Placed, fault: Fault) -> bool:
        """Whether golden computes with the result of an operator what mine computes without it."""
        mine, golden = self._confirmed.sides
        own = mine.placed(fault.operator)
        readers = (golden.row[one] for one in golden.readers_of(golden.place[id(placed.operator)]))
        return own.kind != placed.kind and any(are_of_one_use(own, one) for one in readers)


def _computes_forward(placed: Placed) -> bool:
    return placed.part == "forward" and not placed.is_mover


class _Behind:
    """What follows from where one side begins to differ, looked at from its first operator on."""

    def __init__(self, confirmed: Confirmation, is_mine: bool, pairs: Sequence[Met]) -> None:
        self._side, self._right = confirmed.side(is_mine), confirmed.right[not is_mine]
        starts = (pair.mine if is_mine else pair.golden for pair in pairs)
        self._starts = sorted(place_in(self._side, placed.operator) for placed in starts)
        self._reached: set[int] = set()

    def meets(self, placed: Placed) -> bool:
        """Whether all that computes with its result reads what follows from an earlier beginning as well: nothing then
        shows whether it is in order. One that is not met is a beginning itself.
        """
        place = place_in(self._side, placed.operator)
        while self._starts and self._starts[0] < place:
            self._reach(self._starts.pop(0))
        readers = _computing(self._side, place)
        if readers and all(self._reads_reached(reader) for reader in readers):
            return True
        self._reach(place)
        return False

    def _reach(self, place: int) -> None:
        waiting = [place]
        while waiting:
            place = waiting.pop()
            if place not in self._reached:
                self._reached.add(place)
                waiting += self._side.readers_of(place)

    def _reads_reached(self, reader: int) -> bool:
        if self._right[reader]:
            return False
        makers = (self._side.maker_before(figures.value, reader) for _, figures in self._side.row[reader].inputs)
        return any(maker in self._reached for maker in makers)


def _made_up(confirmed: Confirmation, placed: Placed, is_mine: bool, slots: set[Slot]) -> set[Slot]:
    """Those of some inputs of an operator that a script computes of nothing that it was given, as indices: an exporter
    writes them down as constants.
    """
    place = confirmed.place_of(placed, is_mine)
    return {
        slot
        for slot, figures in placed.inputs
        if slot in slots and not figures.is_plain and _is_made_of_nothing(confirmed, is_mine, place, figures)
    }


def _is_made_of_nothing(confirmed: Confirmation, is_mine: bool, place: int, figures: Figures) -> bool:
    """Whether neither an entry, nor a value that the other side has, is among what a value is computed of."""
    side = confirmed.side(is_mine)
    waiting, seen = [(place, figures)], set[int]()
    while waiting:
        place, figures = waiting.pop()
        maker = None if confirmed.is_known(figures, is_mine) else side.maker_before(figures.value, place)
        if maker is None:
            return False
        if maker not in seen:
            seen.add(maker)
            read = [(maker, one) for _, one in side.row[maker].read if not one.is_plain]
            if any(confirmed.is_known(one, is_mine) for _, one in read):
                return False
            waiting += read
    return True


def _computing(side: Trace, place: int) -> set[int]:
    """Places of the operators that compute with the result of one, in its part of the step."""
    found, seen, waiting = set[int](), set[int](), [place]
    while waiting:
        for reader in side.readers_of(waiting.pop()):
            if reader in seen or side.row[reader].part != side.row[place].part:
                continue
            seen.add(reader)
            if side.row[reader].is_mover:
                waiting.append(reader)
            else:
                found.add(reader)
    return found


def _is_unread(confirmed: Confirmation, fault: Fault) -> bool:
    """Whether nothing in the iteration computes with what it makes: of what it makes of nothing but masks and indices,
    as those of rows in another order are other ones, and right; else nothing at all, as with weights of an attention
    that are averaged to be returned.
    """
    side = confirmed.side(fault.side == "mine")
    if fault.operator.inputs:
        place = side.place.get(id(fault.operator))
        if place is None or side.row[place].part != "forward" or side.is_update(place):
            return False
        return not side.readers_of(place)
    waiting, seen = [side.place[id(fault.operator)]], set[int]()
    while waiting:
        for reader in set(side.readers_of(waiting.pop())) - seen:
            seen.add(reader)
            telling = side.row[reader].telling
            if telling is None or not telling.is_float:
                waiting.append(reader)
            elif not side.row[reader].is_mover:
                return False
    return True


def _is_of_an_earlier_part(confirmed: Confirmation, is_mine: bool, part: str, lead: set[int]) -> bool:
    """Whether some operators run in an earlier part of a training step."""
    side = confirmed.side(is_mine)
    return any(PARTS.index(side.row[side.place[one]].part) < PARTS.index(part) for one in lead)


def _next_pairs(confirmed: Confirmation, placed: Placed, is_mine: bool, pair_of: Mapping[int, int]) -> set[int]:
    """Numbers of the pairs that the results of an operator come to first."""
    side = confirmed.side(is_mine)
    found: set[int] = set()
    waiting, seen = [place_in(side, placed.operator)], set[int]()
    while waiting:
        for reader in side.readers_of(waiting.pop()):
            if reader in seen:
                continue
            seen.add(reader)
            number = pair_of.get(id(side.row[reader].operator))
            if number is None:
                waiting.append(reader)
            else:
                found.add(number)
    return found


def _is_open(confirmed: Confirmation, placed: Placed, is_mine: bool) -> bool:
    """Whether it, or the last one of a chain, makes what the other side has not."""
    operator = placed.operator.parts[-1] if placed.operator.parts else placed.operator
    return confirmed.right[not is_mine][confirmed.side(is_mine).place[id(operator)]] is False


def _beginnings(confirmed: Confirmation, is_mine: bool) -> Iterator[Placed]:
    for placed, right in zip(confirmed.side(is_mine).row, confirmed.right[not is_mine], strict=True):
        if right is False and confirmed.begins(placed, is_mine):
            yield placed


def _without_idle(
    confirmed: Confirmation, beginnings: Mapping[bool, Collection[Placed]], is_mine: bool, pair_of: Mapping[int, int]
) -> Iterator[Placed]:
    """The beginnings but for those that nothing follows from: a norm that is printed, a count, where the other side
    makes nothing else of the same.
    """
    read_there = {value for placed in beginnings[not is_mine] for value in _reads(confirmed, placed, not is_mine)}
    sizes = {
        placed.telling.size
        for placed, right in zip(confirmed.side(not is_mine).row, confirmed.right[is_mine], strict=True)
        if not right and placed.telling is not None and not placed.is_mover and not placed.is_random
    }
    for placed in beginnings[is_mine]:
        if (
            not _is_idle(confirmed, placed, is_mine, sizes)
            or not read_there.isdisjoint(_reads(confirmed, placed, is_mine))
            or _next_pairs(confirmed, placed, is_mine, pair_of)
        ):
            yield placed


def _written_out(confirmed: Confirmation, placed: Placed) -> Placed | None:
    """Mine's last operator that makes what a fused one of golden makes on its way."""
    mine = confirmed.sides[0]
    values = [value for figures in placed.inner for value in confirmed.counterparts(figures, False)]
    made = [mine.makers[value] for value in values if value in mine.makers]
    return mine.row[max(made)] if made else None


def _reads(confirmed: Confirmation, placed: Placed, is_mine: bool) -> set[Value]:
    """The values of golden that an operator reads, or makes on its way."""
    if not is_mine:
        return {figures.value for figures in (*(one for _, one in placed.read), *placed.inner) if not figures.is_plain}
    read = (*(one for _, one in placed.read), *placed.inner)
    return {value for figures in read for value in confirmed.partners[figures.value]}


def _is_idle(confirmed: Confirmation, placed: Placed, is_mine: bool, sizes: Collection[int]) -> bool:
    """Whether all that an operator leads to has no reader, and is one number where the other side has something left
    that it could be.

    sizes   of what the other side has left
    """
    side = confirmed.side(is_mine)
    right = confirmed.right[not is_mine]
    # A compiler may hide all updates of one side.
    shows_updates = confirmed.side(not is_mine).shows_updates
    if placed.is_random and not _computing(side, side.place[id(placed.operator)]):
        return True  # memory that is filled, and filled once more before anything computes with it
    waiting, seen = [side.place[id(placed.operator)]], set[int]()
    while waiting:
        index = waiting.pop()
        if index in seen:
            continue
        seen.add(index)
        if shows_updates and side.is_update(index) and _writes_known(confirmed, side.row[index], is_mine):
            return False  # a parameter of both, which the next iteration reads
        readers = side.readers_of(index)
        if any(right[reader] for reader in readers) or loss_read(confirmed, side.row[index], is_mine) is not None:
            return False
        result = side.row[index].result
        is_left = bool(sizes) and (result is None or result.size != 1)
        if is_left and result is not None and side.is_update(index):
            is_left = result.size in sizes  # a compiler may hide the update that it would be
        if not readers and is_left and not _is_dead(side, index):
            return False
        waiting += readers
    return True


def _is_dead(side: Trace, place: int) -> bool:
    """Whether a result that nothing reads is lost, as the end of a layer from which a training takes something else."""
    return side.is_training and not memory_use(side.row[place].operator.op_type).overwrites


def _writes_known(confirmed: Confirmation, placed: Placed, is_mine: bool) -> bool:
    """Whether it overwrites what the other side has as well."""
    written = memory_use(placed.operator.op_type).overwrites
    return any(slot.number in written and confirmed.is_known(figures, is_mine) for slot, figures in placed.inputs)
