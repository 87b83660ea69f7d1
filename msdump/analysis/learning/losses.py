"""Losses that are given what they are not made for: probabilities for scores, another shape, targets out of reach."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from msdump.analysis.graph_info import GraphFile, GraphNode, Origin
from msdump.analysis.learning.kinds import ERRORS, LOSSES, WRONG_LOSS, LearningFinding
from msdump.analysis.learning.series import Made, Series
from msdump.analysis.steps import Slot
from msdump.operators.kinds import is_product, kind_of
from msdump.operators.traits import only_moves

# Iterations, all that there are, in each of which it is so.
# test: losses_that_do_not_fall_softmax_twice
LEAST_WRONG = 4
# A logarithm of a probability is 0 at most; one to which a little is added, for the sake of 0, is hardly more.
LARGEST_LOG = 0.1
# What a score is at most, of classes so many times as likely for it as others at the best: no more is learned.
# test: late_scores_times_the_temperature
LARGEST_SCORE, LEAST_CLASSES = 0.5, 8
# What products of two vectors of length 1 are at most, but for rounding.
_COSINE = 1.001
# Rows of a batch: one is no batch, and few may be the channels of something else.
LEAST_ROWS = 4
_LOGITS = {"bce_with_logits": ("sigmoid", "softmax"), "bce": ("sigmoid",)}
_OF_DIFFERENCES = frozenset(("abs", "pow", "square"))
# What a function gives at least and at most.
_REACH = {"sigmoid": (0.0, 1.0), "hardsigmoid": (0.0, 1.0), "softmax": (0.0, 1.0), "tanh": (-1.0, 1.0)}
_COPIES = frozenset(("copy", "cast"))
_NO_REDUCTION = 0
_MOST = 1_000


@dataclass(frozen=True, slots=True)
class Misuse:
    """A loss that is given what it is not made for.

    how    "twice", "no logarithm", "axis", "shapes", "reach", "chances", "scale"
    made   the operator that is to blame
    """

    how: str
    made: Made
    numbers: dict[str, float] = field(default_factory=dict)
    shapes: tuple[tuple[int, ...], ...] = ()


def wrong_losses(series: Series) -> Iterator[LearningFinding]:
    """The first loss, or difference of a prediction and its target, that is misused in all iterations alike."""
    iterations = list(series.backwards)
    for step in series.by_iteration[iterations[-1]] if len(iterations) >= LEAST_WRONG else ():
        graph = series.graph(step)
        for operator in step.operators if graph is not None else ():
            kind = kind_of(operator.op_type)
            if (kind not in LOSSES and kind != "sub") or graph is None:
                continue
            if operator.stage != "forward":
                continue
            if _misuse(series, graph, kind, Made(step, operator, 0)) is None:
                continue
            found = [series.find(at, step.key.graph_id, operator.label) for at in iterations]
            wrong = [_misuse(series, graph, kind, Made(*one, 0)) for one in found if one is not None]
            # What runs before a module is called for the first time is not dumped.
            if len(wrong) < max(LEAST_WRONG, len(iterations) - 1):
                continue
            first = wrong[0]
            if first is not None and all(each is not None and each.how == first.how for each in wrong):
                node = series.node(first.made.step, first.made.operator)
                line = None if node is None else node.own_line
                yield LearningFinding(
                    WRONG_LOSS, (), first.made.step.key, iterations[-1], first.made.operator, line, first.how,
                    first.numbers, outside=first.shapes,
                )  # fmt: skip
                return  # the others are of the same cause


def _misuse(series: Series, graph: GraphFile, kind: str, loss: Made) -> Misuse | None:
    node = series.node(loss.step, loss.operator)
    if node is None or len(node.inputs) < 2:
        return None
    if kind == "nll_loss":
        return _of_classes(series, node, loss)
    if kind in _LOGITS:
        beyond = _beyond_chances(series, loss)
        if beyond is not None:
            return beyond
        read = series.before_moves(loss.step, node.inputs[0])
        if kind == "bce":  # it reads probabilities, made by one function
            read = read if read is not None and _is_of(read, ("sigmoid",)) else None
            read = None if read is None else _source(series, read)
        return Misuse("twice", loss) if read is not None and _is_of(read, _LOGITS[kind]) else None
    is_error = kind in ERRORS or _is_error(graph, loss.operator.label)
    return _of_shapes(series, graph, node, loss) or (_of_reach(series, node, loss) if is_error else None)


def _is_error(graph: GraphFile, label: str) -> bool:
    """Whether a difference is squared, or its sign left out, and nothing else is done with it."""
    readers = [node for node in graph.nodes if any(one is not None and one.name == label for one in node.inputs)]
    return bool(readers) and all(kind_of(node.op_type) in _OF_DIFFERENCES for node in readers)


def _is_of(made: Made, kinds: tuple[str, ...]) -> bool:
    return kind_of(made.operator.op_type) in kinds


def _source(series: Series, made: Made) -> Made | None:
    """Who made the first input of an operator, as it was before it was moved."""
    node = series.node(made.step, made.operator)
    return None if node is None or not node.inputs else series.before_moves(made.step, node.inputs[0])


def _of_classes(series: Series, node: GraphNode, loss: Made) -> Misuse | None:
    """Of a loss that takes the logarithms of probabilities of its classes."""
    scores = loss.operator.inputs.get(Slot(0))
    numbers = series.numbers(scores)
    read = series.before_moves(loss.step, node.inputs[0])
    if scores is None or numbers is None or numbers.max is None or numbers.min is None:
        return None
    if read is None or not _is_of(read, ("log_softmax",)):
        is_probability = numbers.min >= 0 and numbers.max > 0
        is_reduced = (node.attrs or {}).get("reduction") != _NO_REDUCTION
        if is_reduced and (numbers.max > LARGEST_LOG or is_probability):
            return Misuse("no logarithm", loss, {"most": float(numbers.max)})
        return None
    before = _source(series, read)
    if before is not None and _is_of(before, ("softmax",)):
        return Misuse("twice", read)
    if before is not None and (scale := _scale_of_cosines(series, before)):
        return Misuse("scale", before, {"most": scale})
    maker = series.node(read.step, read.operator)
    axis = None if maker is None else (maker.attrs or {}).get("dim")
    is_as_made = read.shape == tuple(scores.shape)
    if isinstance(axis, int) and is_as_made and len(scores.shape) > 1:
        axis %= len(scores.shape)
        if axis != 1 and _only_copies(series, loss, node.inputs[0]):
            return Misuse("axis", read, {"axis": float(axis)})
    return None


def _beyond_chances(series: Series, loss: Made) -> Misuse | None:
    """Targets of a binary cross entropy of which some are no probabilities: it has no least value."""
    numbers = series.numbers(loss.operator.inputs.get(Slot(1)))
    if numbers is None or numbers.min is None or numbers.max is None or 0 <= numbers.min <= numbers.max <= 1:
        return None
    return Misuse("chances", loss, {"least": float(numbers.min), "most": float(numbers.max)})


def _scale_of_cosines(series: Series, scores: Made) -> float:
    """A number below 1 that multiplies products of vectors of length 1 into scores of many classes; 0 where none does.
    Where it was meant to divide them, all classes stay nearly as likely as each other.
    """
    node = series.node(scores.step, scores.operator)
    kind, shape = kind_of(scores.operator.op_type), scores.shape
    if node is None or kind not in ("mul", "div") or len(shape) != 2 or shape[1] < LEAST_CLASSES:
        return 0.0
    number = (node.attrs or {}).get("other")
    if not isinstance(number, int | float) or number <= 0:
        return 0.0
    factor = float(number) if kind == "mul" else 1 / number
    cosines = series.before_moves(scores.step, node.inputs[0])
    if cosines is None or not is_product(cosines.operator.op_type) or factor > LARGEST_SCORE:
        return 0.0
    return factor if 0 < series.largest(cosines) <= _COSINE else 0.0


def _only_copies(series: Series, loss: Made, origin: Origin | None) -> bool:
    """Whether no axis has moved since an operator made what a loss reads."""
    made = series.maker(loss.step, origin)
    while made is not None and only_moves(made.operator.op_type):
        node = series.node(made.step, made.operator)
        if kind_of(made.operator.op_type) not in _COPIES or node is None:
            return False
        made = series.maker(made.step, node.inputs[0])
    return True


def _of_shapes(series: Series, graph: GraphFile, node: GraphNode, loss: Made) -> Misuse | None:
    """A column of predictions meets a row of targets, or a row a column, and all meet all. A script that compares
    all with all has made a column of a row by itself.
    """
    sides = [_as_given(series, loss, place, node.inputs[place]) for place in (0, 1)]
    shapes = [shape for shape, _, _ in sides]
    rows = max(map(len, shapes))
    column = next((side for side in sides if len(side[0]) == 2 and side[0][1] == 1), None)
    if rows != 2 or column is None or column[0][0] < LEAST_ROWS or (column[0][0],) not in shapes or column[1]:
        return None
    cuts = frozenset(cut.operator for cut in series.learning.cuts) if series.learning is not None else frozenset()
    of_data = [is_data(series, graph, origin, cuts) for _, _, origin in sides]
    return Misuse("shapes", loss, {}, (shapes[0], shapes[1])) if any(of_data) and not all(of_data) else None


def _as_given(series: Series, loss: Made, place: int, origin: Origin | None) -> tuple[tuple[int, ...], bool, Origin]:
    """The shape of an operand before a loss spread it out, whether the script has reshaped it, and where it is from."""
    tensor = loss.operator.inputs.get(Slot(place))
    shape = () if tensor is None else tuple(tensor.shape)
    made, where = series.maker(loss.step, origin), origin or Origin("", None)
    while made is not None and kind_of(made.operator.op_type) in ("expand", *_COPIES):
        node, read = series.node(made.step, made.operator), made.operator.inputs.get(Slot(0))
        if node is None or read is None:
            break
        shape, where = tuple(read.shape), node.inputs[0] or where
        made = series.maker(made.step, node.inputs[0])
    is_reshaped = made is not None and kind_of(made.operator.op_type) == "reshape"
    if is_reshaped and made is not None:
        read = made.operator.inputs.get(Slot(0))
        is_reshaped = read is None or len(read.shape) < 2
    return shape, is_reshaped, where


def is_data(series: Series, graph: GraphFile, origin: Origin, cuts: Set[str] = frozenset()) -> bool:
    """Whether nothing that an operand is computed of is a parameter, but for what some operators have cut off."""
    todo, seen = [origin], set[str]()
    while todo and len(seen) < _MOST:
        one = todo.pop()
        if one.name in series.parameters:
            return False
        node = graph.by_name.get(one.name) if one.slot is not None else None
        if node is not None and one.name not in seen and one.name not in cuts:
            seen.add(one.name)
            todo += [each for each in node.inputs if each is not None]
    return True


def _of_reach(series: Series, node: GraphNode, loss: Made) -> Misuse | None:
    """Targets whose mean is beyond all that a bounded function gives."""
    for given, wanted in ((0, 1), (1, 0)):
        made = series.before_moves(loss.step, node.inputs[given])
        bounds = None if made is None else _REACH.get(kind_of(made.operator.op_type))
        numbers = series.numbers(loss.operator.inputs.get(Slot(wanted)))
        mean = None if numbers is None else numbers.avg
        if bounds is not None and made is not None and mean is not None and not bounds[0] <= mean <= bounds[1]:
            return Misuse("reach", made, {"mean": float(mean), "least": bounds[0], "most": bounds[1]})
    return None
