"""Second looks at what is right for what is made of it alone."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from msdump.analysis.compare.alignment import aligned, may_be_of_one_size
from msdump.analysis.compare.confirm import Confirmation
from msdump.analysis.compare.pairing import BY_VALUES, OperatorPair
from msdump.analysis.compare.trace import Placed
from msdump.analysis.compare.values import Figures
from msdump.analysis.distance.bounds import bounds_of
from msdump.analysis.distance.metrics import compare_arrays
from msdump.analysis.steps import Slot
from msdump.operators.kinds import has
from msdump.tensors.arrays import Array

# Results of one kind that are as near as this are meant to be the same; what is written in another way is further off,
# or the same.
_NEAR = 0.1
# Results whose elements all have one ratio are scaled in another place.
_SCALED = 1e-4
# How many times the bound of a sum an operand may differ by without a trace in the sum.
_HIDDEN = 4.0
_PRODUCTS = frozenset({"matmul", "linear", "conv", "conv_transpose", "mul"})
# Kinds by which mine adds a bias to a product that golden makes together with it.
_BIASES = (("add", "linear"), ("bias_add", "linear"))


class Doubts:
    """Looks again at one iteration."""

    def __init__(self, confirmed: Confirmation) -> None:
        self._confirmed = confirmed

    def look_again(self, pairs: list[OperatorPair], placed: Mapping[int, tuple[Placed, Placed]]) -> None:
        """Look again at what is right for what is made of it alone: at what leads to an input in which a pair differs
        though its results agree, since sums with larger numbers hide what is wrong before them; and at results that are
        nearly the same.

        pairs   operands that stand in another form on either side are taken out of them
        placed  of each pair, by the id of mine's operator
        """
        confirmed = self._confirmed
        for number, pair in enumerate(pairs):
            own, other = placed[id(pair.mine)]
            if pair.how != BY_VALUES:
                continue
            own, operands = self._operands_to_doubt(pair, own, other)
            in_other_form = set()
            for slot, figures, found in operands:
                if figures.is_plain or confirmed.agree(figures, found[1]):
                    continue
                if own.result is not None and not self._may_hide(figures, found[1], own):
                    if figures.value in confirmed.sides[0].makers:
                        in_other_form.add(slot)  # what one operand has more the other one has less
                    continue
                leads = self._lead(own, True, (slot,)), self._lead(other, False, (found[0],))
                if confirmed.reads_unsteady(leads[0], True) or confirmed.reads_unsteady(leads[1], False):
                    in_other_form.add(slot)
                    continue
                confirmed.doubt(leads[0], True)
                confirmed.doubt(leads[1], False)
            if in_other_form and own.kind == other.kind:
                inputs = {slot: one for slot, one in pair.golden.inputs.items() if slot not in in_other_form}
                pairs[number] = dataclasses.replace(pair, golden=dataclasses.replace(pair.golden, inputs=inputs))
        self._doubt_silent()
        self._trust_idle()
        for part in ("forward", "backward"):
            rows = ([one for one in self._nameless(is_mine, placed) if one.part == part] for is_mine in (True, False))
            self._doubt_near_misses(aligned(*rows))

    def _nameless(self, is_mine: bool, placed: Mapping[int, tuple[Placed, Placed]]) -> Iterator[Placed]:
        """Operators of a side in no pair that are right for what is made of them alone."""
        confirmed = self._confirmed
        paired = {id(one.operator) for both in placed.values() for one in both}
        for one in confirmed.side(is_mine).row:
            if one.is_mover or one.telling is None or id(one.operator) in paired:
                continue
            if confirmed.is_right(one, is_mine) and not confirmed.is_known(one.telling, is_mine):
                yield one

    def _operands_to_doubt(
        self, pair: OperatorPair, own: Placed, other: Placed
    ) -> tuple[Placed, list[tuple[Slot, Figures, tuple[Slot, Figures]]]]:
        """Operator of mine and its operands, each with golden's: those of a pair of one kind; of a bias that mine adds
        by itself those of the product before it.
        """
        if own.kind == other.kind:
            read = {id(figures.tensor): (slot, figures) for slot, figures in other.inputs}
            found = ((slot, figures, read.get(id(pair.golden.inputs.get(slot)))) for slot, figures in own.inputs)
            return own, [(slot, figures, one) for slot, figures, one in found if one is not None]
        product = self._product_before(own) if (own.kind, other.kind) in _BIASES else None
        if product is None:
            return own, []
        confirmed = self._confirmed
        left = [one for one in other.inputs if not one[1].is_plain and not confirmed.is_known(one[1], False)]
        opened = [one for one in product.inputs if not one[1].is_plain and not confirmed.is_known(one[1], True)]
        return product, [(slot, figures, one) for (slot, figures), one in zip(opened, left, strict=False)
                         if figures.size == one[1].size]  # fmt: skip

    def _product_before(self, own: Placed) -> Placed | None:
        """The product to whose result an operator of mine adds a bias."""
        confirmed = self._confirmed
        mine = confirmed.sides[0]
        place = mine.place[id((own.operator.parts or (own.operator,))[0])]
        makers = (mine.maker_before(figures.value, place) for _, figures in own.inputs if not figures.is_plain)
        return next((mine.row[one] for one in makers if one is not None and mine.row[one].kind == "matmul"), None)

    def _lead(self, placed: Placed, is_mine: bool, slots: Collection[Slot]) -> set[int]:
        """As `open_lead`, for what a difference in an input may come from: behind the forward pass nothing in that, as
        its own results show what is wrong there.
        """
        confirmed = self._confirmed
        side, lead = confirmed.side(is_mine), confirmed.open_lead(placed, is_mine, slots)
        start = side.first_gradient
        if confirmed.place_of(placed, is_mine) < start:
            return lead
        return {one for one in lead if side.place[one] >= start or self._is_open_end(side.place[one], is_mine)}

    def _is_open_end(self, place: int, is_mine: bool) -> bool:
        """Whether no operator of its part is right for what it reads of an operator."""
        confirmed = self._confirmed
        side, right = confirmed.side(is_mine), confirmed.right[not is_mine]
        return not any(right[reader] for reader in confirmed.readers(side, place, True))

    def _doubt_silent(self) -> None:
        """Take for wrong what makes something else of the same than an operator of its kind with which a difference
        begins, though its own result tells nothing, is what it reads, or is on the other side without an operator that
        made it.
        """
        confirmed = self._confirmed
        for is_mine in (True, False):
            side, right = confirmed.side(is_mine), confirmed.right[is_mine]
            begun: dict[str, list[Placed]] = defaultdict(list)
            for placed, answer in zip(confirmed.side(not is_mine).row, right, strict=True):
                if answer is False and confirmed.begins(placed, not is_mine):
                    begun[placed.kind].append(placed)
            silent: dict[str, list[Placed]] = defaultdict(list)
            for placed in confirmed.side(not is_mine).row:
                told = placed.telling
                made = (
                    [] if told is None else [side.makers.get(one) for one in confirmed.counterparts(told, not is_mine)]
                )
                is_silent = told is None or (made and not any(one is not None for one in made))
                if not placed.is_mover and (is_silent or (told and confirmed.only_hands_on(placed, told, not is_mine))):
                    silent[placed.kind].append(placed)
            for placed, answer in zip(side.row, confirmed.right[not is_mine], strict=True):
                if answer is not False or placed.kind not in silent or not confirmed.begins(placed, is_mine):
                    continue
                if any(confirmed.shares_some(placed, other, is_mine) for other in begun[placed.kind]):
                    continue  # one that shows more
                for other in silent[placed.kind]:
                    both = (placed, other) if is_mine else (other, placed)
                    if confirmed.are_of_one_part(*both) and confirmed.shares(*both) and may_be_of_one_size(*both):
                        right[confirmed.place_of(other, not is_mine)] = False
        confirmed.forget_ends()

    def _trust_idle(self) -> None:
        """Take for right what adds a bias of zeros and its like, and so leaves its one operand that tells something as
        it is, unless the other side has an operator of its kind that reads nothing else that both sides have.
        """
        confirmed = self._confirmed
        for is_mine in (True, False):
            side, right, others = (
                confirmed.side(is_mine),
                confirmed.right[not is_mine],
                defaultdict[str, list[Placed]](list),
            )
            for placed, answer in zip(confirmed.side(not is_mine).row, confirmed.right[is_mine], strict=True):
                if answer is False:
                    others[placed.kind].append(placed)
            for index, placed in enumerate(side.row):
                told = placed.telling
                if right[index] is not False or told is None or not confirmed.is_made(placed.part, told, is_mine):
                    continue
                telling = [figures.value for _, figures in placed.inputs if not figures.is_plain]
                if telling == [told.value] and not any(
                    self._reads_no_more(other, placed, is_mine) for other in others[placed.kind]
                ):
                    right[index] = True
        confirmed.forget_ends()

    def _reads_no_more(self, other: Placed, placed: Placed, is_mine: bool) -> bool:
        """Whether all that an operator of the other side reads and both have, an operator reads as well."""
        confirmed = self._confirmed
        read = {value for _, figures in placed.inputs for value in confirmed.counterparts(figures, is_mine)}
        both = [
            figures for _, figures in other.inputs if not figures.is_plain and confirmed.is_known(figures, not is_mine)
        ]
        return bool(both) and all(figures.value in read for figures in both)

    def _may_hide(self, mine: Figures, golden: Figures, own: Placed) -> bool:
        """Whether two operands differ by no more than shows in a result that is taken for the same: a sum with larger
        numbers hides much, a product no more than its own share.
        """
        confirmed = self._confirmed
        result = own.result
        assert result is not None
        if not (mine.has_elements and golden.has_elements) or mine.size != golden.size:
            return True
        x, y = (np.asarray(one.tensor.load_host(), np.float64).reshape(-1) for one in (mine, golden))
        limit = bounds_of(result.dtype, result.dtype, confirmed.tolerance).relative
        with np.errstate(invalid="ignore"):
            length = golden.length if own.kind in _PRODUCTS else result.length
            return not float(np.linalg.norm(x - y)) > _HIDDEN * limit * length

    def _doubt_near_misses(self, pairs: Sequence[tuple[Placed, Placed]]) -> None:
        """Take for wrong what leads to results of one kind that are nearly the same, and not the same: what is only
        written in another way gives the same, or something else altogether.

        pairs  operators that are right for what is made of them alone, of one kind
        """
        confirmed = self._confirmed
        for own, other in pairs:
            distance = self._distance(own, other)
            if distance is None:
                continue
            is_of_the_same = confirmed.shares(own, other) and self._shares_all(own, other)
            # Forms of a gradient may be near each other: their sums, which both have, tell more.
            is_far = distance > _NEAR or own.part == "backward"
            if not is_of_the_same and (is_far or self._reads_other_entries(own, other)):
                continue
            for is_mine, placed in ((True, own), (False, other)):
                lead = confirmed.open_lead(placed, is_mine, [slot for slot, _ in placed.inputs])
                confirmed.doubt({id(placed.operator), *lead}, is_mine)

    def _shares_all(self, own: Placed, other: Placed) -> bool:
        """Whether both read the same values, plain ones included."""
        confirmed = self._confirmed
        waiting = [figures for _, figures in other.inputs]
        for _, figures in own.inputs:
            match = next((one for one in waiting if confirmed.agree(figures, one)), None)
            if match is None:
                return False
            waiting.remove(match)
        return not waiting

    def _distance(self, own: Placed, other: Placed) -> float | None:
        """Relative error of a result that differs; None where the results agree, tell nothing or are scaled."""
        confirmed = self._confirmed
        mine, golden = own.telling, other.telling
        if mine is None or golden is None or confirmed.agree(mine, golden) or "float" not in mine.dtype + golden.dtype:
            return None
        if has(own.operator.op_type, "random"):
            return None
        limit = bounds_of(mine.dtype, golden.dtype, confirmed.tolerance).relative
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
        confirmed = self._confirmed
        for is_mine, placed in ((True, own), (False, other)):
            side = confirmed.side(is_mine)
            waiting = [(side.place[id(placed.operator)], figures) for _, figures in placed.inputs]
            seen: set[int] = set()
            while waiting:
                reader, figures = waiting.pop()
                if figures.is_plain or figures.size == 1 or confirmed.is_known(figures, is_mine):
                    continue
                maker = side.maker_before(figures.value, reader)
                if maker is None:
                    return True
                if maker not in seen:
                    seen.add(maker)
                    waiting += [(maker, one) for _, one in side.row[maker].inputs]
        return False


def _is_scaled(x: Array, y: Array) -> bool:
    """Whether all elements of one are those of the other times one number."""
    a, b = (np.asarray(side, np.float64).reshape(-1) for side in (x, y))
    square = float(a @ a)
    return square > 0 and float(np.linalg.norm(b - a * (float(a @ b) / square))) <= _SCALED * float(np.linalg.norm(b))
