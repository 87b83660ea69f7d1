"""Data that a training cannot learn from: labels of one class, inputs of one number, the same few rows each time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from msdump.analysis.graph_info import Origin
from msdump.analysis.learning.activations import products
from msdump.analysis.learning.kinds import LOSSES, ONE_CLASS, ONE_VALUE, OTHER_ROWS, SAME_ROWS, LearningFinding
from msdump.analysis.learning.losses import is_data
from msdump.analysis.learning.series import Made, Numbers, Series, content_of, count_of
from msdump.analysis.steps import Operator, Slot, Step
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.kinds import kind_of
from msdump.operators.traits import only_moves
from msdump.tensors import dtypes

# Iterations, all that there are, and labels in each of them: a small batch may be of one class.
# test: blind_scores_cast_to_labels, losses_that_do_not_fall_labels_of_a_loader
LEAST_ALIKE, LEAST_LABELS = 4, 4
# Elements of an input, and rows of a table of words, one of which is read alone: one of kinds of words has two rows.
# test: losses_that_do_not_fall_one_number
LEAST_ELEMENTS, LEAST_WORDS = 16, 8
# From the smallest to the largest of data, of the largest one: less is what should have been scaled otherwise.
# test: late_pictures_mean_of_bytes
LEAST_RANGE = 0.01
# Iterations with the same rows, and by how much all rows are more: a script may take the half that it trains on anew in
# each iteration.   test: blind_first_batch_again, losses_that_do_not_fall_first_rows
LEAST_REPEATED, MANY_ROWS = 8, 4
_SCALES = frozenset(("add", "sub", "mul", "div", "cast"))
_MOST = 64


class Draw(NamedTuple):
    """An operator that takes some rows of what the script has, how many, and how many there are."""

    made: Made
    taken: int
    rows: int


def one_class(series: Series) -> Iterator[LearningFinding]:
    """Labels that are one class in all iterations: those that a cast has made so, and those that are rows of data.
    Those that a script writes down, as where the first of all candidates is the right one, are none of them.
    """
    for _, operator, found in _alike(series, LOSSES):
        labels = [series.numbers(one[1].inputs.get(Slot(1))) for one in found]
        scores = operator.inputs.get(Slot(0))
        is_class = kind_of(operator.op_type) == "nll_loss"
        classes = 0 if scores is None or len(scores.shape) < 2 else scores.shape[1]
        if (is_class and classes < 2) or not _are_one(labels, LEAST_LABELS):
            continue
        label = {"label": (0.0 if labels[0] is None else labels[0].max) or 0.0}
        casts = [cast for one in found if is_class and (cast := _cast_of(series, Made(*one, 0))) is not None]
        # What runs before a module is called for the first time is not dumped.
        if len(casts) >= LEAST_ALIKE - 1:
            made, read = casts[0]
            label |= {"least": read.min or 0.0, "most": read.max or 0.0}
            yield _finding(series, ONE_CLASS, made, label)
            return  # the others are of the same cause
        if _are_drawn(series, found, 1):
            yield _finding(series, ONE_CLASS, Made(*found[0], 0), label)
            return


def one_value(series: Series) -> Iterator[LearningFinding]:
    """Rows of data that the first product with a weight, or the only table of words, reads, and that are one number."""
    iterations = list(series.backwards)
    if len(iterations) < LEAST_ALIKE:
        return
    tables = list(_alike(series, frozenset(("embedding",))))
    tables = [row for row in tables if _words_of(series, row[0], row[1]) >= LEAST_WORDS]
    first = next(iter(products(series, iterations[-1]).values()), None)
    weights = [] if first is None else [(first.step, first.operator, _each(series, first, iterations))]
    for step, operator, found in (tables if len(tables) == 1 else []) + ([] if tables else weights):
        node = series.node(step, operator)
        for place in range(len(node.inputs)) if node is not None else ():
            read = [series.numbers(one[1].inputs.get(Slot(place))) for one in found]
            if _are_one(read, LEAST_ELEMENTS) and _are_drawn(series, found, place):
                value = (0.0 if read[0] is None else read[0].max) or 0.0
                yield _finding(series, ONE_VALUE, Made(*found[0], 0), {"value": value})
                return
            graph = series.graph(step)
            origin = None if node is None else node.inputs[place]
            is_close = len(read) >= LEAST_ALIKE and all(map(_hardly_differ, read))
            if is_close and graph is not None and origin is not None and is_data(series, graph, origin):
                numbers = {"least": (read[0] and read[0].min) or 0.0, "most": (read[0] and read[0].max) or 0.0}
                yield replace(_finding(series, ONE_VALUE, Made(*found[0], 0), numbers), how="hardly")
                return


def same_rows(series: Series) -> Iterator[LearningFinding]:
    """A few rows of many, which a script takes anew in each iteration for its first product and for its loss."""
    iterations = list(series.backwards)[1:]  # what the first one draws before a module is called is no part of it
    if len(iterations) < LEAST_REPEATED:
        return
    first = next(iter(products(series, iterations[0]).values()), None)
    loss = series.losses.get(iterations[0])
    if first is None or loss is None:
        return
    readers = [Made(first.step, first.operator, 0)]
    readers += [Made(step, operator, 1) for step, operator, _ in _alike(series, LOSSES)]
    repeated: list[Draw] = []
    for reader in readers:
        slots = [slot.number for slot in reader.operator.inputs if slot.number >= reader.slot]
        places = [(at, draw) for at in slots if (draw := draw_at(series, reader.step, reader.operator, at)) is not None]
        same = [draw for at, draw in places if _repeats(series, reader, at, iterations)]
        few = [draw for draw in same if MANY_ROWS * draw.taken <= draw.rows]
        if len(few) < len(places) or not (repeated or few):
            return
        repeated += few
    draw = repeated[0]
    yield _finding(series, SAME_ROWS, draw.made, {"count": draw.taken, "rows": draw.rows})


def other_rows(series: Series) -> Iterator[LearningFinding]:
    """Labels that a script takes by other indices than all of its data, in each iteration: of as many rows."""
    iterations = list(series.backwards)[1:]  # what the first one draws before a module is called is no part of it
    for step, operator, _ in _alike(series, LOSSES) if len(iterations) >= LEAST_ALIKE else ():
        each = _each(series, Made(step, operator, 0), iterations)
        found = [_apart(series, *one) for one in each]
        if found and len(found) == len(iterations) and found[0] is not None and None not in found:
            draw = found[0]
            yield _finding(series, OTHER_ROWS, draw.made, {"count": draw.taken, "rows": draw.rows})
            return


def _apart(series: Series, step: Step, loss: Operator) -> Draw | None:
    """Who takes the labels of a loss, where other rows of as many are taken as well, and none by the same indices."""
    node = series.node(step, loss)
    labels = _draw_of(series, step, node.inputs[1]) if node is not None and len(node.inputs) > 1 else None
    if labels is None or labels.taken == labels.rows:
        return None
    own, source, is_apart = _indices(series, labels.made), _source(series, labels.made), False
    for one in step.operators if own is not None else ():
        if one.stage == "forward" and kind_of(one.op_type) in ("embedding", "slice"):
            draw = _drawn_by(series, Made(step, one, 0))
            is_drawn_here = draw is not None and draw.made.operator is one and draw[1:] == labels[1:]
            if draw is not None and is_drawn_here and _source(series, draw.made) != source:
                indices = _indices(series, draw.made)
                if indices is None or indices == own:
                    return None
                is_apart = True
    return labels if is_apart else None


def _source(series: Series, made: Made) -> object:
    """What an operator takes rows of."""
    node = series.node(made.step, made.operator)
    origin = node.inputs[0] if node is not None and node.inputs else None
    return _content(series, made.operator.inputs.get(Slot(0))) or (None if origin is None else origin.name)


def _indices(series: Series, made: Made) -> object:
    """Which rows an operator takes, in their order; None where the dump does not tell."""
    node, index = series.node(made.step, made.operator), made.operator.inputs.get(Slot(1))
    if kind_of(made.operator.op_type) == "slice":
        attrs = {} if node is None else node.attrs or {}
        return attrs.get("start"), attrs.get("end"), attrs.get("step")
    if node is None or index is None or len(node.inputs) < 2 or node.inputs[1] is None:
        return None
    origin = node.inputs[1]
    return (origin.name, _content(series, index)) if origin.slot is None else _content(series, index)


def _finding(series: Series, kind: str, made: Made, numbers: dict[str, float]) -> LearningFinding:
    node = series.node(made.step, made.operator)
    line = None if node is None else node.own_line
    return LearningFinding(kind, (), made.step.key, series.backwards[-1], made.operator, line, numbers=numbers)


def _alike(series: Series, kinds: Iterable[str]) -> Iterator[tuple[Step, Operator, list[tuple[Step, Operator]]]]:
    """Operators of some kinds in the forward pass of the last iteration, each with itself in all iterations."""
    iterations = list(series.backwards)
    for step in series.by_iteration[iterations[-1]] if len(iterations) >= LEAST_ALIKE else ():
        for operator in step.operators:
            if kind_of(operator.op_type) in kinds and operator.stage == "forward":
                yield step, operator, _each(series, Made(step, operator, 0), iterations)


def _each(series: Series, made: Made, iterations: Sequence[int]) -> list[tuple[Step, Operator]]:
    found = [series.find(at, made.step.key.graph_id, made.operator.label) for at in iterations]
    return [one for one in found if one is not None]


def _words_of(series: Series, step: Step, operator: Operator) -> int:
    """Rows of the parameter that an operator looks up; 0 where it is none."""
    node, tensor = series.node(step, operator), operator.inputs.get(Slot(0))
    origin = node.inputs[0] if node is not None and node.inputs else None
    is_table = origin is not None and origin.name in series.parameters
    return tensor.shape[0] if is_table and tensor is not None and tensor.shape else 0


def _is_one(numbers: Numbers | None, least: int = LEAST_LABELS) -> bool:
    return numbers is not None and numbers.max == numbers.min and count_of(numbers) >= least


def _hardly_differ(numbers: Numbers | None) -> bool:
    """Whether some values lie close to each other, and far from 0."""
    if numbers is None or numbers.min is None or numbers.max is None or count_of(numbers) < LEAST_ELEMENTS:
        return False
    largest = max(abs(numbers.min), abs(numbers.max))
    return 0 < numbers.max - numbers.min <= LEAST_RANGE * largest


def _are_one(each: Sequence[Numbers | None], least: int) -> bool:
    """Whether tensors of several iterations are one number, the same in each."""
    values = {numbers.max for numbers in each if numbers is not None}
    return len(each) >= LEAST_ALIKE and len(values) == 1 and all(_is_one(numbers, least) for numbers in each)


def _are_drawn(series: Series, found: Sequence[tuple[Step, Operator]], place: int) -> bool:
    """Whether an operator reads rows of data in all iterations but two, of which the dump may not hold who took them,
    and not always the first rows: a script may shorten what it has written down.
    """
    draws = [draw_at(series, step, operator, place) for step, operator in found[1:]]
    known = [draw for draw in draws if draw is not None]
    is_all_there = len(known) >= max(len(found) - 2, LEAST_ALIKE - 1)
    return is_all_there and not all(_begins(series, draw) for draw in known)


def _begins(series: Series, draw: Draw) -> bool:
    node = series.node(draw.made.step, draw.made.operator)
    is_slice = kind_of(draw.made.operator.op_type) == "slice"
    return is_slice and node is not None and not (node.attrs or {}).get("start")


def draw_at(series: Series, step: Step, operator: Operator, place: int) -> Draw | None:
    """Who has drawn what an operator reads, in this iteration or after the step of the one before."""
    node, tensor = series.node(step, operator), operator.inputs.get(Slot(place))
    origin = node.inputs[place] if node is not None and place < len(node.inputs) else None
    if not _is_of_script(series, origin):
        return _draw_of(series, step, origin)
    content = _content(series, tensor)
    for before in series.by_iteration.get((step.key.iteration or 0) - 1, ()) if content is not None else ():
        for other in before.operators:
            is_draw = kind_of(other.op_type) in ("stack", "embedding", "slice") and other.stage == "forward"
            if is_draw and _content(series, other.outputs.get(Slot(0))) == content:
                return _drawn_by(series, Made(before, other, 0))
    return None


def _content(series: Series, tensor: DumpedTensor | None) -> object:
    numbers = series.numbers(tensor)
    return None if numbers is None or tensor is None else (tuple(tensor.shape), content_of(numbers))


def _draw_of(series: Series, step: Step, origin: Origin | None) -> Draw | None:
    """Who takes rows of data, on the way to an operand; None where nobody does."""
    made = series.maker(step, origin)
    return None if made is None else _drawn_by(series, made)


def _drawn_by(series: Series, last: Made) -> Draw | None:
    """The same, of what an operator has made."""
    made: Made | None = last
    for _ in range(_MOST):
        node = None if made is None else series.node(made.step, made.operator)
        if made is None or node is None or not node.inputs:
            return None
        kind, read = kind_of(made.operator.op_type), made.operator.inputs.get(Slot(0))
        source = node.inputs[0]
        if kind == "stack":
            rows = _draw_of(series, made.step, source)
            return None if rows is None else Draw(made, len(node.inputs), rows.rows)
        if kind in ("embedding", "slice") and read is not None and read.shape and _is_of_script(series, source):
            is_first_axis = not (node.attrs or {}).get("dim")
            return Draw(made, made.shape[0] if made.shape else 1, read.shape[0]) if is_first_axis else None
        if kind not in _SCALES and not only_moves(made.operator.op_type):
            return None
        made = series.maker(made.step, source)
    return None


def _is_of_script(series: Series, origin: Origin | None) -> bool:
    """Whether an operand is data that no operator of the iteration has made."""
    is_made = origin is None or origin.slot is not None or origin.maker is not None
    return not is_made and origin is not None and origin.name not in series.parameters


def _repeats(series: Series, reader: Made, place: int, iterations: Sequence[int]) -> bool:
    """Whether what an operator reads is the same in some iterations."""
    found = _each(series, reader, iterations)
    contents = {_content(series, operator.inputs.get(Slot(place))) for _, operator in found}
    return len(found) == len(iterations) and None not in contents and len(contents) == 1


def _cast_of(series: Series, loss: Made) -> tuple[Made, Numbers] | None:
    """Who made whole numbers that are one of floats that are not, on the way to the labels of a loss; and these."""
    node = series.node(loss.step, loss.operator)
    made = None if node is None or len(node.inputs) < 2 else series.maker(loss.step, node.inputs[1])
    for _ in range(_MOST):
        node = None if made is None else series.node(made.step, made.operator)
        if made is None or node is None or not _is_one(series.output(made)):
            return None
        read = made.operator.inputs.get(Slot(0))
        kind = None if read is None else dtypes.BY_NAME.get(read.dtype)
        if kind is not None and kind.is_float:
            numbers = series.numbers(read)
            is_cast = kind_of(made.operator.op_type) == "cast" and numbers is not None and not _is_one(numbers)
            return (made, numbers) if is_cast and numbers is not None else None
        made = series.maker(made.step, node.inputs[0]) if node.inputs else None
    return None
