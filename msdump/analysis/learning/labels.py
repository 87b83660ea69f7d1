"""Labels that are one class in all iterations, since a cast has made whole numbers of what lay between two of them."""

from __future__ import annotations

from collections.abc import Iterator

from msdump.analysis.learning.kinds import ONE_CLASS, LearningFinding
from msdump.analysis.learning.series import Made, Numbers, Series, count_of
from msdump.analysis.steps import Slot
from msdump.operators.kinds import kind_of
from msdump.tensors import dtypes

# Iterations, all that there are, and labels in each of them: a small batch may be of one class.
# test: blind_scores_cast_to_labels
LEAST_ALIKE, LEAST_LABELS = 4, 4
_LOSSES = ("nll_loss", "nllloss2d")
_MOST = 64


def one_class(series: Series) -> Iterator[LearningFinding]:
    """Labels of a loss over several classes that a cast has made one class. Those that a script writes down, as where
    the first of all candidates is the right one, are none of them.
    """
    iterations = list(series.backwards)
    for step in series.by_iteration[iterations[-1]] if len(iterations) >= LEAST_ALIKE else ():
        for operator in step.operators:
            if kind_of(operator.op_type) not in _LOSSES or operator.stage != "forward":
                continue
            found = [series.find(at, step.key.graph_id, operator.label) for at in iterations]
            labels = [None if one is None else series.numbers(one[1].inputs.get(Slot(1))) for one in found]
            scores = operator.inputs.get(Slot(0))
            classes = 0 if scores is None or len(scores.shape) < 2 else scores.shape[1]
            if (
                classes < 2
                or not all(map(_is_one, labels))
                or len({each.max for each in labels if each is not None}) > 1
            ):
                continue
            casts = [cast for one in found if one is not None and (cast := _cast_of(series, Made(*one, 0))) is not None]
            if len(casts) < LEAST_ALIKE - 1:  # what runs before a module is called for the first time is not dumped
                continue
            made, read = casts[0]
            node = series.node(made.step, made.operator)
            label = 0.0 if labels[0] is None else labels[0].max
            numbers = {"label": label or 0.0, "least": read.min or 0.0, "most": read.max or 0.0}
            line = None if node is None else node.own_line
            yield LearningFinding(
                ONE_CLASS, (), made.step.key, iterations[-1], made.operator, line, numbers=numbers
            )  # fmt: skip
            return  # the others are of the same cause


def _is_one(numbers: Numbers | None) -> bool:
    return numbers is not None and numbers.max == numbers.min and count_of(numbers) >= LEAST_LABELS


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
