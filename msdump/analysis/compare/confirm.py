"""Which values of one iteration both sides have, and which operators are right for it.

An operator whose result the other side has as well is right, however it is made there. One whose result the other side
has not is right where all that is made of it is: it is a part of another way to write the same. What is left is wrong,
or behind what is wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

import numpy as np

from msdump.analysis.compare.bounds import bounds_of
from msdump.analysis.compare.inner import inner_values
from msdump.analysis.compare.metrics import compare_arrays
from msdump.analysis.compare.pairing import host_shape
from msdump.analysis.compare.pieces import pieces_of
from msdump.analysis.compare.trace import Placed, Trace
from msdump.analysis.compare.values import Figures, Likeness, Matches, Value, is_row_of
from msdump.analysis.steps import Slot
from msdump.operators.kinds import has
from msdump.operators.traits import makes_unset, memory_use
from msdump.tensors.arrays import Array

# Results of one kind that are as near as this are meant to be the same; what is written in another way is further off,
# or the same.
_NEAR = 0.1
# Results whose elements all have one ratio are scaled in another place.
_SCALED = 1e-4
_PRODUCTS = frozenset({"matmul", "linear", "conv", "conv_transpose", "mul"})
# Bounds of half precisions are above.
_COARSE = 1e-3
# How many times the bound of a sum an operand may differ by without a trace in the sum.
_HIDDEN = 4.0


class Confirmation:
    """What both sides of one iteration have in common.

    right  of each operator of mine and of golden: whether the other side has its result, or all that is made of it;
           None where its result tells nothing
    """

    def __init__(self, mine: Trace, golden: Trace, tolerance: float | None) -> None:
        self.sides = mine, golden
        self.tolerance = tolerance
        self._joined: tuple[set[Value], set[Value]] = (set(), set())
        self._known_ends: dict[bool, set[int]] = {}
        self._confirm()
        if self._join_pieces():
            self.right = self._right(True), self._right(False)
        if self._look_inside():
            self._confirm()

    def _confirm(self) -> None:
        """Look for the values of both sides on the other one."""
        mine, golden = self.sides
        self.matches = Matches(golden.all_figures(), self.tolerance)
        self.partners: dict[Value, tuple[Value, ...]] = {}
        self._known: dict[Value, list[Value]] = {}  # values of golden that mine has, and which those are
        for figures in mine.all_figures():
            if figures.value not in self.partners:
                values = self.matches.of(figures) or self._of_scaled(figures)
                self.partners[figures.value] = tuple(one for one in values if self._may_be(figures, one))
                for value in self.partners[figures.value]:
                    self._known.setdefault(value, []).append(figures.value)
        self.right = self._right(True), self._right(False)

    def _may_be(self, figures: Figures, value: Value) -> bool:
        """Whether a value of mine may be one of golden that agrees: single numbers of a half precision agree by chance
        where they are not of one kind, or both what the forward pass ends in.
        """
        mine, golden = self.sides
        if figures.size > 1 or bounds_of(figures.dtype, figures.dtype, self.tolerance).relative < _COARSE:
            return True
        places = mine.makers.get(figures.value), golden.makers.get(value)
        if places[0] is None or places[1] is None:
            return places[0] is places[1]
        makers = mine.row[places[0]], golden.row[places[1]]
        ends = mine.is_end(places[0]), golden.is_end(places[1])
        return makers[0].part == makers[1].part and (makers[0].kind == makers[1].kind or ends == (True, True))

    def _of_scaled(self, figures: Figures) -> tuple[Value, ...]:
        """Values of golden that are the same but for the scale of the loss."""
        scale = self.scale_of(figures)
        return () if scale == 1 else self.matches.of(figures.scaled(scale))

    def scale_of(self, figures: Figures) -> float:
        """By what a value of mine is multiplied to have golden's scale of the loss; 1 where none is in it."""
        mine, golden = self.sides
        return golden.loss_scale / mine.loss_scale if mine.is_scaled(figures.value) else 1.0

    def likeness(self, mine: Figures, golden: Figures) -> Likeness | None:
        """How two values of one size agree; how far they are apart where the scale of the loss is in one of them, else
        None where they do not agree.
        """
        scale = self.scale_of(mine)
        found = self.matches.likeness(mine, golden)
        if found or scale == 1:
            return found
        scaled = mine.scaled(scale)
        found = self.matches.likeness(scaled, golden)
        return found if found is not None and found.axes else self.matches.apart(scaled, golden)

    def _look_inside(self) -> bool:
        """Whether fused operators with which a difference begins make on their way what the other side may have."""
        found = False
        for is_mine in (True, False):
            side = self.side(is_mine)
            for index, placed in enumerate(side.row):
                if self.right[not is_mine][index] is False and placed.result and self.begins(placed, is_mine):
                    inputs = [(slot.number, figures) for slot, figures in placed.inputs]
                    inner = inner_values(placed.kind, inputs, placed.result, self.tolerance)
                    if inner:
                        side.look_inside(index, inner)
                        found = True
        return found

    def side(self, is_mine: bool) -> Trace:
        return self.sides[not is_mine]

    def is_known(self, figures: Figures, is_mine: bool) -> bool:
        """Whether the other side has it."""
        if figures.value in self._joined[not is_mine]:
            return True
        return bool(self.partners.get(figures.value)) if is_mine else figures.value in self._known

    def counterparts(self, figures: Figures, is_mine: bool) -> Sequence[Value]:
        """The values of the other side that are the same; that with its very numbers alone where there is one."""
        if not is_mine and figures.value in self.partners:
            return (figures.value,)
        return self.partners[figures.value] if is_mine else self._known.get(figures.value, ())

    def agree(self, mine: Figures, golden: Figures) -> bool:
        """Whether two values are the same; plain ones where they are equal."""
        return mine.value == golden.value or golden.value in self.partners[mine.value]

    def is_right(self, placed: Placed, is_mine: bool) -> bool | None:
        return self.right[not is_mine][self.side(is_mine).place[id(placed.operator)]]

    def doubt(self, operators: set[int], is_mine: bool) -> None:
        """Take operators, by id, for wrong though all that is made of them is right."""
        right = self.right[not is_mine]
        place = self.side(is_mine).place
        for index in (place[one] for one in operators if right[place[one]]):
            right[index] = False

    def _is_made(self, part: str, result: Figures, is_mine: bool) -> bool:
        """Whether an operator of the same part makes it on the other side, or none does; an update that is written by
        hand belongs to no optimizer.
        """
        if result.value in self._joined[not is_mine]:
            return True
        own = self.partners[result.value] if is_mine else self._known.get(result.value, ())
        parts = self.side(not is_mine).parts
        alike = {"backward"} if part == "backward" else {"forward", "optimizer"}
        return any(not parts[value] or not alike.isdisjoint(parts[value]) for value in own)

    def _right(self, is_mine: bool) -> list[bool | None]:
        side = self.side(is_mine)
        right: list[bool | None] = [None] * len(side.row)
        idle: set[int] = set()
        for index in range(len(side.row) - 1, -1, -1):
            placed = side.row[index]
            telling = placed.telling
            if telling is None:
                continue
            # What is cut is there where all parts are; what is computed beside a result is made in other ways, too.
            made = [one for _, one in placed.outputs if not one.is_plain] if placed.is_mover else [telling]
            is_made = all(self._is_made(placed.part, one, is_mine) for one in made)
            if not is_made and placed.part == "backward" and not placed.is_mover and not side.readers[telling.value]:
                # A gradient of what needs none: what else it makes tells.
                rest = [one for _, one in placed.outputs if not one.is_plain and one is not telling]
                is_made = any(self._is_made(placed.part, one, is_mine) for one in rest)
            hands_on = is_made and self._only_hands_on(placed, telling, is_mine)
            if is_made and not hands_on:
                right[index] = True
                continue
            readers = self._readers(side, index, hands_on)
            answers = {right[reader] for reader in readers}
            if not readers and (is_made or self._is_written_into_known(side, index, telling, is_mine)):
                right[index] = True
            elif readers and all(reader in idle or _leaves_nothing(side.row[reader]) for reader in readers):
                idle.add(index)  # nothing is left of it: it is multiplied by zero
            else:
                # What is handed on is right where one reader makes the right thing of it.
                right[index] = True in answers and (False not in answers or (is_made and hands_on))
        return right

    def _readers(self, side: Trace, index: int, is_past_movers: bool) -> set[int]:
        """Later operators of one part that read what an operator made, or of what an optimizer made; past movers those
        that compute with it.
        """
        parts = {side.row[index].part, "forward"} if side.row[index].part == "optimizer" else {side.row[index].part}
        found: set[int] = set()
        waiting = [index]
        while waiting:
            for reader in side.readers_of(waiting.pop()):
                if reader not in found and side.row[reader].part in parts:
                    found.add(reader)
                    if is_past_movers and side.row[reader].is_mover:
                        waiting.append(reader)
        movers = {reader for reader in found if is_past_movers and side.row[reader].is_mover}
        return found - movers

    def _is_written_into_known(self, side: Trace, index: int, result: Figures, is_mine: bool) -> bool:
        """Whether a copy fills a row of memory that a later operator reads as a whole, and that the other side has."""
        placed, shape = side.row[index], host_shape(result.tensor)
        if not placed.is_mover or not memory_use(placed.operator.op_type).overwrites or not result.has_elements:
            return False
        seen: set[Value] = set()
        for later in side.row[index + 1 :]:
            for _, whole in later.read:
                if whole.value in seen or whole.is_plain or host_shape(whole.tensor)[1:] != shape:
                    continue
                seen.add(whole.value)
                if self.is_known(whole, is_mine) and any(
                    is_row_of(row, result, self.tolerance) for row in whole.tensor.load_host()
                ):
                    return True
        return False

    def _only_hands_on(self, placed: Placed, result: Figures, is_mine: bool) -> bool:
        """Whether what it computes is what it reads: then that the other side has it does not show that it has the
        operator as well.
        """
        if placed.is_mover:
            return False
        if not is_mine:
            return any(figures.value == result.value for _, figures in placed.inputs)
        read = {value for _, figures in placed.inputs for value in self.partners[figures.value]}
        return read >= set(self.partners[result.value])

    def begins(self, placed: Placed, is_mine: bool, slots: Collection[Slot] | None = None) -> bool:
        """Whether all that it reads and an operator made is right, and something that it reads tells that; of what
        reads nothing, whether it draws numbers, or they stand in the script. What reads mere rounding begins nothing.

        slots  of its inputs that count; None for all
        """
        side = self.side(is_mine)
        if any(figures.is_noise and figures.length for _, figures in placed.read):
            return False
        telling = [one for slot, one in placed.read if not one.is_plain and (slots is None or slot in slots)]
        # Beside larger tensors one number is a setting: powers of Adam's betas are computed in one framework alone.
        telling = [figures for figures in telling if figures.size > 1] or telling
        place = self._place(placed, is_mine)
        if not telling:
            is_made_up = not placed.inputs and not makes_unset(placed.operator.op_type)
            return placed.is_random or (is_made_up and placed.telling is not None)
        return all(self._comes_right(side, place, figures, is_mine) for figures in telling) and any(
            self.is_known(figures, is_mine) for figures in telling
        )

    def _place(self, placed: Placed, is_mine: bool) -> int:
        """Its place in the row, of a chain that of its last operator."""
        operator = placed.operator.parts[-1] if placed.operator.parts else placed.operator
        return self.side(is_mine).place[id(operator)]

    def open_lead(self, placed: Placed, is_mine: bool, slots: Collection[Slot]) -> set[int]:
        """Ids of the operators that lead from what both sides have to some inputs of an operator."""
        side, ends = self.side(is_mine), self._ends(is_mine)
        found: set[int] = set()
        for slot, figures in placed.inputs:
            if slot in slots and not figures.is_plain:
                found |= side.leading_to(self._place(placed, is_mine), figures.value, ends)
        return found

    def doubtful_lead(self, placed: Placed, is_mine: bool, slots: Collection[Slot]) -> set[int]:
        """As `open_lead`, for what a difference in an input may come from: behind the forward pass nothing in that, as
        its own results show what is wrong there.
        """
        side, lead = self.side(is_mine), self.open_lead(placed, is_mine, slots)
        start = side.first_gradient
        if self._place(placed, is_mine) < start:
            return lead
        return {one for one in lead if side.place[one] >= start or self._is_open_end(side.place[one], is_mine)}

    def _is_open_end(self, place: int, is_mine: bool) -> bool:
        """Whether no operator of its part is right for what it reads of an operator."""
        side, right = self.side(is_mine), self.right[not is_mine]
        return not any(right[reader] for reader in self._readers(side, place, True))

    def reads_unsteady(self, operators: set[int], is_mine: bool) -> bool:
        """Whether any operator, by id, reads what the rounding of an earlier sum has shaped."""
        side = self.side(is_mine)
        return any(
            figures.value in side.unsteady for one in operators for _, figures in side.row[side.place[one]].inputs
        )

    def _ends(self, is_mine: bool) -> set[int]:
        """Ids of the operators that are right for what they make."""
        if is_mine not in self._known_ends:
            self._known_ends[is_mine] = {
                id(one.operator)
                for one, right in zip(self.side(is_mine).row, self.right[not is_mine], strict=True)
                if right and one.telling is not None and self.is_known(one.telling, is_mine)
            }
        return self._known_ends[is_mine]

    def _comes_right(self, side: Trace, reader: int, figures: Figures, is_mine: bool) -> bool:
        """Whether no operator before a reader made it in another way than the other side: what is cut or put together
        is right where the whole is, and what no operator made is an entry.
        """
        seen = set()
        waiting = [(reader, figures)]
        while waiting:
            reader, figures = waiting.pop()
            if self.is_known(figures, is_mine):
                continue
            maker = side.maker_before(figures.value, reader)
            if figures.value in side.made:
                if maker is None or not self._is_beside(side.row[maker], figures, is_mine):
                    return False
                continue
            if maker is not None and maker not in seen:
                seen.add(maker)
                waiting += [(maker, one) for _, one in side.row[maker].inputs if not one.is_plain]
        return True

    def _is_beside(self, placed: Placed, figures: Figures, is_mine: bool) -> bool:
        """Whether an operator whose first result is right makes a value beside it, which one side alone may need."""
        return (
            placed.telling is not None
            and placed.telling.value != figures.value
            and bool(self.is_right(placed, is_mine))
        )

    def shares(self, own: Placed, other: Placed) -> bool:
        """Whether what one reads and operators made is what the other reads."""
        own_values = [figures for _, figures in own.read if not figures.is_plain and self.partners[figures.value]]
        read = {figures.value for _, figures in other.read}
        shared = [figures for figures in own_values if read & set(self.partners[figures.value])]
        return bool(shared) and len(shared) == len(own_values)

    def shares_some(self, placed: Placed, other: Placed, is_mine: bool) -> bool:
        """Whether two operators of one part, one of each side, read a value that both sides have."""
        own, golden = (placed, other) if is_mine else (other, placed)
        return own.part == golden.part and self.shared_inputs(own, golden) > 0

    def shared_inputs(self, own: Placed, other: Placed) -> int:
        """How many inputs of one the other reads as well."""
        read = {figures.value for _, figures in other.inputs}
        return sum(not read.isdisjoint(self.partners[figures.value]) for _, figures in own.inputs)

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _join_pieces(self) -> bool:
        """Find values that the other side has in pieces: queries, keys and values out of one product, a gradient of
        several weights that one side keeps as one. True where there are some.
        """
        found = False
        for is_mine in (True, False):
            pieces: dict[tuple[int, ...], list[Figures]] = defaultdict(list)
            for piece in self.open_values(not is_mine).values():
                pieces[piece.tensor.shape].append(piece)
            for whole in self.open_values(is_mine).values():
                tiles, is_whole = pieces_of(whole, pieces, self.tolerance)
                if is_whole:
                    self._joined[not is_mine].add(whole.value)
                self._joined[is_mine].update(tile.value for tile in tiles)
                found = found or bool(tiles)
        return found

    def open_values(self, is_mine: bool) -> dict[Value, Figures]:
        """Values, larger than one element, that the other side has not."""
        side = self.side(is_mine)
        return {
            figures.value: figures
            for placed in side.row
            for _, figures in (*placed.inputs, *placed.outputs)
            if figures.size > 1 and figures.has_elements and not figures.is_plain
            if not self.is_known(figures, is_mine)
        }

    # -- near misses ---------------------------------------------------------------------------------------------------

    def doubt_silent(self) -> None:
        """Take for wrong what makes something else of the same than an operator of its kind with which a difference
        begins, though its own result tells nothing, is what it reads, or is on the other side without an operator that
        made it.
        """
        for is_mine in (True, False):
            side, right = self.side(is_mine), self.right[is_mine]
            begun: dict[str, list[Placed]] = defaultdict(list)
            for placed, answer in zip(self.side(not is_mine).row, right, strict=True):
                if answer is False and self.begins(placed, not is_mine):
                    begun[placed.kind].append(placed)
            silent: dict[str, list[Placed]] = defaultdict(list)
            for placed in self.side(not is_mine).row:
                told = placed.telling
                made = [] if told is None else [side.makers.get(one) for one in self.counterparts(told, not is_mine)]
                is_silent = told is None or (made and not any(one is not None for one in made))
                if not placed.is_mover and (is_silent or (told and self._only_hands_on(placed, told, not is_mine))):
                    silent[placed.kind].append(placed)
            for placed, answer in zip(side.row, self.right[not is_mine], strict=True):
                if answer is not False or placed.kind not in silent or not self.begins(placed, is_mine):
                    continue
                if any(self.shares_some(placed, other, is_mine) for other in begun[placed.kind]):
                    continue  # one that shows more
                for other in silent[placed.kind]:
                    both = (placed, other) if is_mine else (other, placed)
                    if self.are_of_one_part(*both) and self.shares(*both) and _is_one_size(*both):
                        right[self._place(other, not is_mine)] = False
        self._known_ends.clear()

    def are_of_one_part(self, own: Placed, other: Placed) -> bool:
        """Whether both belong to one part of a step; an update that is written by hand belongs to no optimizer."""
        if own.part == other.part:
            return True
        is_update = all(
            self.side(is_mine).is_update(self._place(placed, is_mine))
            for is_mine, placed in ((True, own), (False, other))
        )
        return is_update and "optimizer" in (own.part, other.part)

    def trust_idle(self) -> None:
        """Take for right what adds a bias of zeros and its like, and so leaves its one operand that tells something as
        it is, unless the other side has an operator of its kind that reads nothing else that both sides have.
        """
        for is_mine in (True, False):
            side, right, others = self.side(is_mine), self.right[not is_mine], defaultdict[str, list[Placed]](list)
            for placed, answer in zip(self.side(not is_mine).row, self.right[is_mine], strict=True):
                if answer is False:
                    others[placed.kind].append(placed)
            for index, placed in enumerate(side.row):
                told = placed.telling
                if right[index] is not False or told is None or not self._is_made(placed.part, told, is_mine):
                    continue
                telling = [figures.value for _, figures in placed.inputs if not figures.is_plain]
                if telling == [told.value] and not any(
                    self._reads_no_more(other, placed, is_mine) for other in others[placed.kind]
                ):
                    right[index] = True
        self._known_ends.clear()

    def _reads_no_more(self, other: Placed, placed: Placed, is_mine: bool) -> bool:
        """Whether all that an operator of the other side reads and both have, an operator reads as well."""
        read = {value for _, figures in placed.inputs for value in self.counterparts(figures, is_mine)}
        both = [figures for _, figures in other.inputs if not figures.is_plain and self.is_known(figures, not is_mine)]
        return bool(both) and all(figures.value in read for figures in both)

    def may_hide(self, mine: Figures, golden: Figures, own: Placed) -> bool:
        """Whether two operands differ by no more than shows in a result that is taken for the same: a sum with larger
        numbers hides much, a product no more than its own share.
        """
        result = own.result
        assert result is not None
        if not (mine.has_elements and golden.has_elements) or mine.size != golden.size:
            return True
        x, y = (np.asarray(one.tensor.load_host(), np.float64).reshape(-1) for one in (mine, golden))
        limit = bounds_of(result.dtype, result.dtype, self.tolerance).relative
        with np.errstate(invalid="ignore"):
            length = golden.length if own.kind in _PRODUCTS else result.length
            return not float(np.linalg.norm(x - y)) > _HIDDEN * limit * length

    def doubt_near_misses(self, pairs: Sequence[tuple[Placed, Placed]]) -> None:
        """Take for wrong what leads to results of one kind that are nearly the same, and not the same: what is only
        written in another way gives the same, or something else altogether.

        pairs  operators that are right for what is made of them alone, of one kind
        """
        for own, other in pairs:
            distance = self._distance(own, other)
            if distance is None:
                continue
            is_of_the_same = self.shares(own, other) and self.shares_all(own, other)
            # Forms of a gradient may be near each other: their sums, which both have, tell more.
            is_far = distance > _NEAR or own.part == "backward"
            if not is_of_the_same and (is_far or self._reads_other_entries(own, other)):
                continue
            for is_mine, placed in ((True, own), (False, other)):
                lead = self.open_lead(placed, is_mine, [slot for slot, _ in placed.inputs])
                self.doubt({id(placed.operator), *lead}, is_mine)

    def shares_all(self, own: Placed, other: Placed) -> bool:
        """Whether both read the same values, plain ones included."""
        waiting = [figures for _, figures in other.inputs]
        for _, figures in own.inputs:
            match = next((one for one in waiting if self.agree(figures, one)), None)
            if match is None:
                return False
            waiting.remove(match)
        return not waiting

    def _distance(self, own: Placed, other: Placed) -> float | None:
        """Relative error of a result that differs; None where the results agree, tell nothing or are scaled."""
        mine, golden = own.telling, other.telling
        if mine is None or golden is None or self.agree(mine, golden) or "float" not in mine.dtype + golden.dtype:
            return None
        if has(own.operator.op_type, "random"):
            return None
        limit = bounds_of(mine.dtype, golden.dtype, self.tolerance).relative
        if not (mine.has_elements and golden.has_elements):
            distance = abs(mine.length - golden.length) / max(golden.length, mine.length)
            return distance if limit < distance <= _NEAR else None
        x, y = (figures.tensor.load_host() for figures in (mine, golden))
        if x.shape != y.shape:
            return None
        metrics = compare_arrays(x, y, False)
        if metrics.mismatched or metrics.relative_error <= limit:
            return None
        is_scaled = metrics.relative_error > _NEAR and _is_scaled(x, y)
        return None if is_scaled else metrics.relative_error

    def _reads_other_entries(self, own: Placed, other: Placed) -> bool:
        """Whether either is made of a parameter that the other side has not, as of folded weights."""
        for is_mine, placed in ((True, own), (False, other)):
            side = self.side(is_mine)
            waiting = [(side.place[id(placed.operator)], figures) for _, figures in placed.inputs]
            seen: set[int] = set()
            while waiting:
                reader, figures = waiting.pop()
                if figures.is_plain or figures.size == 1 or self.is_known(figures, is_mine):
                    continue
                maker = side.maker_before(figures.value, reader)
                if maker is None:
                    return True
                if maker not in seen:
                    seen.add(maker)
                    waiting += [(maker, one) for _, one in side.row[maker].inputs]
        return False


def _is_one_size(own: Placed, other: Placed) -> bool:
    return own.result is None or other.result is None or own.result.size == other.result.size


def _leaves_nothing(placed: Placed) -> bool:
    """Whether all elements of a result are alike, or it is zero. One number of few digits, as every one of float16 is,
    may be a loss.
    """
    result = placed.result
    return result is not None and result.is_plain and (result.size > 1 or result.length == 0)


def _is_scaled(x: Array, y: Array) -> bool:
    """Whether all elements of one are those of the other times one number."""
    a, b = (np.asarray(side, np.float64).reshape(-1) for side in (x, y))
    square = float(a @ a)
    return square > 0 and float(np.linalg.norm(b - a * (float(a @ b) / square))) <= _SCALED * float(np.linalg.norm(b))
