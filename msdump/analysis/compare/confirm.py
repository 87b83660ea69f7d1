"""Which values of one iteration both sides have, and which operators are right for it.

An operator whose result the other side has as well is right, however it is made there. One whose result the other side
has not is right where all that is made of it is: it is a part of another way to write the same. What is left is wrong,
or behind what is wrong.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from msdump.analysis.compare.common_tensors import host_shape
from msdump.analysis.compare.inner import inner_values
from msdump.analysis.compare.pieces import may_have_part, parts_of, pieces_of
from msdump.analysis.compare.rows import ValuesWithRows, has_rows
from msdump.analysis.compare.trace import Placed, Trace
from msdump.analysis.compare.values import Figures, Likeness, Matches, Value, is_row_of
from msdump.analysis.distance.bounds import bounds_of
from msdump.analysis.steps import Slot
from msdump.operators.kinds import has
from msdump.operators.traits import makes_unset, memory_use

# Bounds of half precisions are above.
_COARSE = 1e-3
_FIRST_GRADIENTS = 4
_MAX_WHOLES = 64  # values that later operators read in which a part that was written is looked for
_MAX_TRIES = 64  # results that golden has not whose rows are looked up, as long as none is found


class Confirmation:
    """What both sides of one iteration have in common.

    takes_parts  whether a part of a known value tells as much as the whole: of a run that differs and of which nothing
           else says where
    right  of each operator of mine and of golden: whether the other side has its result, or all that is made of it;
           None where its result tells nothing
    """

    def __init__(self, mine: Trace, golden: Trace, tolerance: float | None) -> None:
        self.sides = mine, golden
        self.tolerance = tolerance
        self.takes_parts = False
        self._joined: tuple[set[Value], set[Value]] = (set(), set())
        self._known_ends: dict[bool, set[int]] = {}
        self._has_rows = False
        self._confirm()
        if self._join_pieces():
            self.right = self._right(True), self._right(False)
        if self._look_inside():
            self._confirm()
        self._has_rows = self._join_rows()
        if self._has_rows:
            self.right = self._right(True), self._right(False)

    def _confirm(self) -> None:
        """Look for the values of both sides on the other one."""
        mine, golden = self.sides
        self.matches = Matches(golden.all_figures(), self.tolerance)
        self.partners: dict[Value, tuple[Value, ...]] = {}
        self._known: dict[Value, list[Value]] = {}  # values of golden that mine has, and which those are
        # Single numbers last: whether the loss tells anything, gradients show.
        for figures in sorted(mine.all_figures(), key=lambda one: one.size == 1):
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
        if makers[0].part == makers[1].part == "forward" and all(ends) and not self._has_first_gradients:
            return False
        return makers[0].part == makers[1].part and (makers[0].kind == makers[1].kind or all(ends))

    @functools.cached_property
    def _has_first_gradients(self) -> bool:
        """Whether golden has the first gradients of a step of training: else a loss of a half precision is alike by
        chance, as every loss of a net that has learned nothing yet. True without a backward pass, and where one side
        multiplies its loss.
        """
        mine = self.sides[0]
        if any(side.multiplied_loss for side in self.sides):
            return True
        made = (placed.telling for placed in mine.row[mine.first_gradient :] if not placed.is_mover)
        telling = (one for one in made if one is not None and one.size > 1)
        return all(self.partners.get(one.value) for one in itertools.islice(telling, _FIRST_GRADIENTS))

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

    def forget_ends(self) -> None:
        """Others are right now."""
        self._known_ends.clear()

    def is_made(self, part: str, result: Figures, is_mine: bool) -> bool:
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
        loose: set[int] = set()  # hands on what nothing reads, as the last state of a cell
        for index in range(len(side.row) - 1, -1, -1):
            placed = side.row[index]
            telling = placed.telling
            if telling is None:
                continue
            # What is cut is there where all parts are; what is computed beside a result is made in other ways, too.
            made = [one for _, one in placed.outputs if not one.is_plain] if placed.is_mover else [telling]
            is_made = all(self.is_made(placed.part, one, is_mine) for one in made)
            if not is_made and placed.part == "backward" and not placed.is_mover and not side.readers[telling.value]:
                # A gradient of what needs none: what else it makes tells.
                rest = [one for _, one in placed.outputs if not one.is_plain and one is not telling]
                is_made = any(self.is_made(placed.part, one, is_mine) for one in rest)
            hands_on = is_made and self.only_hands_on(placed, telling, is_mine)
            if is_made and not hands_on:
                right[index] = True
                continue
            readers = self.readers(side, index, hands_on)
            answers = {right[reader] for reader in readers if reader not in loose}
            is_view = (
                placed.is_mover and placed.part == "forward" and not memory_use(placed.operator.op_type).overwrites
            )
            if is_view and not is_made and readers <= loose:
                loose.add(index)
            if not readers and (is_made or self._is_written_into_known(side, index, telling, is_mine)):
                right[index] = True
            elif readers and all(reader in idle or _leaves_nothing(side.row[reader]) for reader in readers):
                idle.add(index)  # nothing is left of it: it is multiplied by zero
            else:
                # What is handed on is right where one reader makes the right thing of it, and so are known values that
                # are put into another form: weights that are joined, and used once for each word.
                is_form = placed.is_mover and all(self.is_known(one, is_mine) for _, one in placed.read)
                right[index] = True in answers and (False not in answers or is_form or (is_made and hands_on))
        return right

    def readers(self, side: Trace, index: int, is_past_movers: bool) -> set[int]:
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
        """Whether a copy fills a part of memory that a later operator reads as a whole, and that the other side has."""
        placed, shape = side.row[index], host_shape(result.tensor)
        if not placed.is_mover or not memory_use(placed.operator.op_type).overwrites or not result.has_elements:
            return False
        wholes = side.read_after(index, lambda whole: may_have_part(whole, shape))
        return any(
            is_row_of(part, result, self.tolerance)
            for whole in itertools.islice(wholes, _MAX_WHOLES)
            if self.is_known(whole, is_mine)
            for part in parts_of(whole.tensor.load_host(), shape)
        )

    def only_hands_on(self, placed: Placed, result: Figures, is_mine: bool) -> bool:
        """Whether what it computes is what it reads: then that the other side has it does not show that it has the
        operator as well.
        """
        if placed.is_mover:
            return False
        if not is_mine:
            return any(figures.value == result.value for _, figures in placed.inputs)
        read = {value for _, figures in placed.inputs for value in self.partners[figures.value]}
        # What is known by its pieces or rows has no partner.
        return bool(self.partners[result.value]) and read >= set(self.partners[result.value])

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
        if self._has_rows:
            # Where one side has rows in an order of its own, its indices are others.
            telling = [figures for figures in telling if figures.is_float] or telling
        place = self.place_of(placed, is_mine)
        if not telling:
            is_made_up = not placed.inputs and not makes_unset(placed.operator.op_type)
            return placed.is_random or (is_made_up and placed.telling is not None)
        origins = [one for figures in telling for one in self._origins(side, place, figures, is_mine)]
        return False not in origins and True in origins

    def place_of(self, placed: Placed, is_mine: bool) -> int:
        """Its place in the row, of a chain that of its last operator."""
        operator = placed.operator.parts[-1] if placed.operator.parts else placed.operator
        return self.side(is_mine).place[id(operator)]

    def open_lead(self, placed: Placed, is_mine: bool, slots: Collection[Slot]) -> set[int]:
        """Ids of the operators that lead from what both sides have to some inputs of an operator."""
        side, ends = self.side(is_mine), self._ends(is_mine)
        found: set[int] = set()
        for slot, figures in placed.inputs:
            if slot in slots and not figures.is_plain:
                found |= side.leading_to(self.place_of(placed, is_mine), figures.value, ends)
        return found

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

    def _origins(self, side: Trace, reader: int, figures: Figures, is_mine: bool) -> Iterator[bool | None]:
        """Of what a reader's value is cut from or put together of: True for each value that the other side has, False
        for each that an operator made in another way, None for each entry that is cut.
        """
        seen = set[int]()
        waiting = [(reader, figures)]
        while waiting:
            is_whole = not seen
            reader, figures = waiting.pop()
            if self.is_known(figures, is_mine):
                yield True if is_whole or self.takes_parts else None
                continue
            maker = side.maker_before(figures.value, reader)
            if figures.value in side.made:
                is_beside = maker is not None and self._is_beside(side.row[maker], figures, is_mine)
                yield None if is_beside else False
            elif maker is None:
                yield None
            elif maker not in seen:
                seen.add(maker)
                waiting += [(maker, one) for _, one in side.row[maker].inputs if not one.is_plain]

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
            for piece in self.open_values(not is_mine, 1).values():
                pieces[piece.tensor.shape].append(piece)
            for whole in self.open_values(is_mine).values():
                tiles, is_whole = pieces_of(whole, pieces, self.tolerance)
                if is_whole:
                    self._joined[not is_mine].add(whole.value)
                else:
                    tiles = [tile for tile in tiles if tile.size > 1]  # one number alone proves nothing
                self._joined[is_mine].update(tile.value for tile in tiles)
                found = found or bool(tiles)
        return found

    def _join_rows(self) -> bool:
        """Find results of mine that golden has not, and whose rows it has in another order or among others: in all of
        mine if one of the first is such a result. True where there are some; False where the order is that of the data
        or of a parameter, which is what differs then.
        """
        if self._has_other_entries():
            return False
        tries = 0
        found = False
        others: dict[str, ValuesWithRows] = {}
        for placed in self.sides[0].row:
            figures = placed.telling
            if figures is None or not has_rows(figures) or self.is_known(figures, True):
                continue
            if not found and (_brings_rows(placed) or tries == _MAX_TRIES):
                continue
            tries += 1
            if placed.part not in others:
                others[placed.part] = ValuesWithRows(self._results_beside(placed.part), self.tolerance)
            other = others[placed.part].with_rows_of(figures)
            if other is not None:
                self._joined[False].add(figures.value)
                self._joined[True].add(other.value)
                found = True
        return found

    def _has_other_entries(self) -> bool:
        """Whether mine reads tensors of floats that no operator made and that golden has not."""
        side = self.sides[0]
        return any(
            figures.is_float and figures.size > 1 and not figures.is_plain and not self.is_known(figures, True)
            and side.is_entry(place, slot, figures.value)
            for place, placed in enumerate(side.row) for slot, figures in placed.read
        )  # fmt: skip

    def _results_beside(self, part: str) -> list[Figures]:
        """What operators of a part make in golden; neither draws, nor memory that nobody wrote, nor what mine has as it
        is.
        """
        rows = (one for one in self.sides[1].row if one.part == part and not one.is_random)
        made = (one.telling for one in rows if not makes_unset(one.operator.op_type))
        return [one for one in made if one is not None and one.value not in self._known]

    def open_values(self, is_mine: bool, least: int = 2) -> dict[Value, Figures]:
        """Values of so many elements, or more, that the other side has not."""
        side = self.side(is_mine)
        return {
            figures.value: figures
            for placed in side.row
            for _, figures in (*placed.inputs, *placed.outputs)
            if figures.size >= least and figures.has_elements and not figures.is_plain
            if not self.is_known(figures, is_mine)
        }

    def are_of_one_part(self, own: Placed, other: Placed) -> bool:
        """Whether both belong to one part of a step; an update that is written by hand belongs to no optimizer."""
        if own.part == other.part:
            return True
        is_update = all(
            self.side(is_mine).is_update(self.place_of(placed, is_mine))
            for is_mine, placed in ((True, own), (False, other))
        )
        return is_update and "optimizer" in (own.part, other.part)


def _brings_rows(placed: Placed) -> bool:
    """Whether all that it makes are elements, or rows, of what it reads."""
    return placed.is_mover or has(placed.operator.op_type, "chooses")


def _leaves_nothing(placed: Placed) -> bool:
    """Whether all elements of a result are alike, or it is zero. One number of few digits, as every one of float16 is,
    may be a loss.
    """
    result = placed.result
    return result is not None and result.is_plain and (result.size > 1 or result.length == 0)
