"""Axes and masks that are mixed up: a reshape where a transpose was meant, attention whose shares sum to 1 along an
axis that its product does not sum along, a mask that leaves out all that it should keep, time along a batch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msdump.analysis.graph_info import Origin
from msdump.analysis.learning.data import draw_at
from msdump.analysis.learning.kinds import LOSSES, MIXED, LearningFinding
from msdump.analysis.learning.series import Made, Series
from msdump.analysis.steps import Slot, Step
from msdump.operators.kinds import is_product, kind_of
from msdump.operators.table import library_name
from msdump.operators.traits import only_moves

# Iterations, all that there are, in each of which it is so.
# test: trainings_that_mix_up_reshaped_time
LEAST_MIXED = 4
# Rows of a batch: an axis of fewer may have its length by chance.
# test: trainings_that_mix_up_reshaped_states
LEAST_ROWS = 4
# What a product may read after a softmax: nothing that makes other shares of it.
_KEEPS = frozenset(("dropout", "cast", "copy", "expand", "detach"))
# What is added to scores, or blots them out, before the softmax.
_MASKS = frozenset(("add", "sub", "mul", "div", "masked_fill", *_KEEPS))
# What puts a row or a column beside others: some code shifts rows by a reshape of what is padded.
_PADS = frozenset(("concat", "pad"))
_MOST = 16
# PyTorch's own, which has heads and rows in one axis for its product: no frame of PyTorch is in a dump to tell.
_OF_PYTORCH = "-MultiheadAttention"
_CELLS = frozenset(("lstm", "gru", "rnn"))
_NOTHING = -1e4  # what is added to a score that is to count for nothing is less
_NUMBERS = {"choice": ("axis", "count"), "mask": ("padding",), "attention": ("shares", "product")}


@dataclass(frozen=True, slots=True)
class Mix:
    """An operator that mixes up axes.

    how      "reshape", "choice", "rows", "mask", "time", "attention"
    shapes   of a reshape: before and after
    axes     of attention: along which shares sum to 1, and the product sums; of a choice: along which elements are
             chosen, and how many the other axis has
    """

    how: str
    made: Made
    shapes: tuple[tuple[int, ...], ...] = ()
    axes: tuple[int, ...] = ()


def mixed_axes(series: Series) -> Iterator[LearningFinding]:
    """The first operator of the forward pass that is so in all iterations alike."""
    iterations = list(series.backwards)
    rows = _rows_of_batch(series, iterations[-1]) if len(iterations) >= LEAST_MIXED else 0
    for step in series.by_iteration[iterations[-1]] if rows else ():
        for operator in step.operators:
            if operator.stage != "forward" or _mix(series, Made(step, operator, 0), rows) is None:
                continue
            each = [series.find(at, step.key.graph_id, operator.label) for at in iterations]
            found = [_mix(series, Made(*one, 0), rows) for one in each if one is not None]
            # Of the first two iterations the dump may not hold what ran before a module was called.
            found = list(itertools.dropwhile(lambda one: one is None, found))
            first = found[0] if found else None
            if first is None or None in found or len(found) < max(LEAST_MIXED, len(iterations) - 2):
                continue
            node = series.node(first.made.step, first.made.operator)
            numbers = dict(zip(_NUMBERS.get(first.how, ()), map(float, first.axes), strict=True))
            yield LearningFinding(
                MIXED, (), first.made.step.key, iterations[-1], first.made.operator,
                None if node is None else node.own_line, first.how, numbers, outside=first.shapes,
            )  # fmt: skip
            return  # the others are of the same cause


def _rows_of_batch(series: Series, iteration: int) -> int:
    """Rows of what a loss compares; 0 where the dump shows none."""
    lengths = [
        tensor.shape[0]
        for step in series.by_iteration[iteration]
        for operator in step.operators
        if operator.stage == "forward" and kind_of(operator.op_type) in LOSSES
        if (tensor := operator.inputs.get(Slot(0))) is not None and tensor.shape
    ]
    return lengths[-1] if lengths else 0


def _mix(series: Series, made: Made, rows: int) -> Mix | None:
    kind = kind_of(made.operator.op_type)
    if kind == "reshape":
        return _of_reshape(series, made, rows)
    if library_name(made.operator.op_type) == "gather":
        return _of_choice(series, made)
    if kind == "add":
        return _of_rows(series, made, rows)
    if kind in _CELLS:
        return _of_time(series, made)
    if kind == "masked_fill":
        return _of_mask(series, made)
    return _of_attention(series, made) if is_product(made.operator.op_type) else None


def _of_rows(series: Series, made: Made, rows: int) -> Mix | None:
    """A sum that gives each of a batch another row of what a module keeps, as the positions of words."""
    node, sides = series.node(made.step, made.operator), [made.operator.inputs.get(Slot(at)) for at in (0, 1)]
    if node is None or sides[0] is None or sides[1] is None or len(node.inputs) != 2:
        return None
    shape, other = tuple(sides[0].shape), tuple(sides[1].shape)
    cut = series.maker(made.step, node.inputs[1])
    maker = None if cut is None else series.node(cut.step, cut.operator)
    is_one_each = len(shape) == len(other) == 3 and shape[0] == other[0] == rows and other[1] == 1 < shape[1]
    if not is_one_each or cut is None or maker is None or kind_of(cut.operator.op_type) != "slice":
        return None
    attrs, kept = maker.attrs or {}, maker.inputs[0]
    is_kept = kept is not None and kept.name in series.parameters
    return Mix("rows", made, (shape, other)) if is_kept and not attrs.get("dim") and not attrs.get("start") else None


def _of_time(series: Series, made: Made) -> Mix | None:
    """A recurrent layer that takes a batch for time: axis 0 is that of the rows which the script takes of its data."""
    read = made.operator.inputs.get(Slot(0))
    if read is None or len(read.shape) != 3:
        return None
    reader: Made | None = made
    place, lengths = 0, tuple(read.shape[:2])
    for _ in range(_MOST):
        node = None if reader is None else series.node(reader.step, reader.operator)
        if reader is None or node is None or place >= len(node.inputs):
            return None
        draw = draw_at(series, reader.step, reader.operator, place)
        if draw is not None:
            return Mix("time", made, (tuple(read.shape),)) if draw.made.shape[:2] == lengths else None
        reader = series.maker(reader.step, node.inputs[place])
        places = () if reader is None else (
            slot.number for slot, tensor in reader.operator.inputs.items() if _has_lengths(tensor.shape, lengths)
        )  # fmt: skip
        place = next(iter(places), len(node.inputs))
        if reader is None or not _has_lengths(reader.shape, lengths):
            return None
    return None


def _has_lengths(shape: Sequence[int], lengths: tuple[int, ...]) -> bool:
    """Whether the first axes have two lengths, or the first one both."""
    return tuple(shape[:2]) == lengths or tuple(shape[:1]) == (math.prod(lengths),)


def _of_mask(series: Series, made: Made) -> Mix | None:
    """A fill with -Inf of all words but those that their table takes for padding."""
    node = series.node(made.step, made.operator)
    value = None if node is None else (node.attrs or {}).get("value")
    if node is None or len(node.inputs) < 2 or not isinstance(value, int | float) or value > _NOTHING:
        return None
    told = series.before_moves(made.step, node.inputs[1])
    test = None if told is None else series.node(told.step, told.operator)
    if told is None or test is None or kind_of(told.operator.op_type) != "ne" or not test.inputs:
        return None
    words, padding = test.inputs[0], (test.attrs or {}).get("other")
    for operator in told.step.operators:
        reader = series.node(told.step, operator) if kind_of(operator.op_type) == "embedding" else None
        is_reader = reader is not None and len(reader.inputs) > 1 and reader.inputs[1] == words
        if reader is not None and is_reader and (reader.attrs or {}).get("padding_idx") == padding:
            return Mix("mask", told, (), (int(padding or 0),))
    return None


def _of_reshape(series: Series, made: Made, rows: int) -> Mix | None:
    """A reshape that the script calls, after which axes of the same lengths stand in another order; or the batch, which
    stood elsewhere, stands first.
    """
    node, read = series.node(made.step, made.operator), made.operator.inputs.get(Slot(0))
    if node is None or read is None or node.inner_line is not None or not node.inputs:
        return None
    if made.operator.label.rpartition("/")[0].endswith(_OF_PYTORCH):
        return None
    before, after = tuple(read.shape), made.shape
    own, other = ([length for length in shape if length != 1] for shape in (before, after))
    if len(own) < 2 or own == other:
        return None
    is_turned = sorted(own) == sorted(other)
    is_batch = (
        rows >= LEAST_ROWS
        and len(other) > 1
        and other[0] == rows
        and own[0] != rows
        and own.count(rows) == 1
        and len(own) > 2
    )
    if not is_turned and not is_batch:
        return None
    maker = series.before_moves(made.step, node.inputs[0])
    # The order of numbers that a script makes up means nothing.
    is_shifted = is_turned and _is_padded(series, made.step, node.inputs[0])
    if is_shifted or (maker is not None and not maker.operator.inputs):
        return None
    return Mix("reshape", made, (before, after))


def _of_choice(series: Series, made: Made) -> Mix | None:
    """A choice of elements along one axis, which leaves out all but the first of the other one."""
    node, sides = series.node(made.step, made.operator), [made.operator.inputs.get(Slot(at)) for at in (0, 1)]
    axis = None if node is None else (node.attrs or {}).get("dim")
    if sides[0] is None or sides[1] is None or len(sides[0].shape) != 2 or not isinstance(axis, int):
        return None
    other = 1 - axis % 2
    is_first = sides[1].shape[other] == 1 < sides[0].shape[other]
    return Mix("choice", made, (), (axis % 2, sides[0].shape[other])) if is_first else None


def _is_padded(series: Series, step: Step, origin: Origin | None) -> bool:
    for made, _ in series.way_back(step, origin):
        if kind_of(made.operator.op_type) in _PADS or not only_moves(made.operator.op_type):
            return kind_of(made.operator.op_type) in _PADS
    return False


def _of_attention(series: Series, product: Made) -> Mix | None:
    """A product of shares that sum to 1 along an axis that it does not sum along.

    Edges: only of scores that are a product themselves of two values that are no parameters; others, as of a layer that
    gives each place to some clusters, are summed over places by intent.
    """
    node = series.node(product.step, product.operator)
    for place, from_end in enumerate((1, 2)) if node is not None and len(node.inputs) == 2 else ():
        read = product.operator.inputs.get(Slot(place))
        if node is None or read is None or len(read.shape) < 2:
            continue
        found = _shares(series, product.step, node.inputs[place], len(read.shape) - from_end)
        if found is not None and _are_scores(series, found[0]):
            softmax, along, summed = found
            return Mix("attention", softmax, (), (along, summed)) if along != summed else None
    return None


def _shares(series: Series, step: Step, origin: Origin | None, axis: int) -> tuple[Made, int, int] | None:
    """The softmax that makes an operand, its axis, and the one of its result that is a given axis of the operand; None
    where another operator makes it, or that axis is cut up on the way.
    """
    for made, node in series.way_back(step, origin):
        read, kind, attrs = made.operator.inputs.get(Slot(0)), kind_of(made.operator.op_type), node.attrs or {}
        if kind == "softmax":
            along = attrs.get("dim")
            return (made, along % len(made.shape), axis) if isinstance(along, int) and made.shape else None
        before = None if read is None else _axis_before(kind, attrs, tuple(read.shape), made.shape, axis)
        is_dropout = kind == "mul" and len(node.inputs) == 2 and _is_drawn(series, made.step, node.inputs[1])
        if before is None or not (kind in _KEEPS or kind in ("transpose", "reshape") or is_dropout):
            return None
        axis = before
    return None


def _axis_before(
    kind: str, attrs: Mapping[str, Any], before: tuple[int, ...], after: tuple[int, ...], axis: int
) -> int | None:
    """Which axis an operator reads as one of its result; None where that one is made of several, or of a part."""
    if kind == "transpose":
        order = list(range(len(before)))
        dims = [attrs.get(name) for name in ("dim0", "dim1")]
        if isinstance(attrs.get("dims"), list | tuple):
            order = [one % len(before) for one in attrs["dims"]]
        elif all(isinstance(one, int) for one in dims):
            first, second = (one % len(before) for one in dims if one is not None)
            order[first], order[second] = order[second], order[first]
        else:
            order.reverse()  # `t`
        return order[axis]
    if kind == "reshape":
        size = math.prod(after[:axis])
        fits = (at for at, length in enumerate(before) if length == after[axis] and math.prod(before[:at]) == size)
        return next(fits, None)
    return axis + len(before) - len(after)


def _is_drawn(series: Series, step: Step, origin: Origin | None) -> bool:
    """Whether an operand is the mask of a dropout."""
    return any(kind_of(made.operator.op_type) == "dropout" for made, _ in series.way_back(step, origin))


def _are_scores(series: Series, softmax: Made) -> bool:
    """Whether each of two values meets each of the other's: a product of what is no parameter, scaled and masked."""
    node = series.node(softmax.step, softmax.operator)
    for made, maker in series.way_back(softmax.step, node.inputs[0] if node is not None and node.inputs else None):
        if is_product(made.operator.op_type):
            entries = [series.entry_of(made.step, one) for one in maker.inputs]
            return len(entries) == 2 and not any(one is not None and one.name in series.parameters for one in entries)
        if kind_of(made.operator.op_type) not in _MASKS and not only_moves(made.operator.op_type):
            return False
    return False
