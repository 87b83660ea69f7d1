"""Findings on a training that does not learn, grows or stands still; the first ones are those that began first.

from msdump.analysis.learning.findings import learning_findings
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.learning.causes import Cause, apart_of, cut_of, who_made_zero
from msdump.analysis.learning.series import Made, Measured, Series, content_of, is_zero, norm_of
from msdump.analysis.steps import Operator, Step, StepKey
from msdump.formats.learning_json import Learning, LearningOptimizer, LearningParameter
from msdump.graph.types import SourceLine

# Kinds, in the order in which they are causes of one another.
NO_OPTIMIZER, NO_GRADIENT, ZERO, STRAY, EMPTY, KEPT, DEPTH, STILL, SKIPPED, LARGE_UPDATE, SHRINKS, GROWS = KINDS = (
    "no optimizer", "no gradient", "zero gradient", "not in the model", "cleared too early", "never cleared", "depth",
    "stands still", "skipped", "large update", "shrinks", "grows",
)  # fmt: skip

# Iterations at the end in which a gradient is 0: one batch may reach nothing.
# test: zero_gradient_of_one_batch, report_gate_of_one_expert
LEAST_ZERO = 2
# Iterations at the end in which a parameter is the same, with steps of its optimizer in between: a schedule may end
# with a rate of 0, and gradients may be added up for a step.   test: accumulated_gradients, weights_that_never_change
LEAST_STILL = 3
# Steps one after the other that a scaler of the loss skips: it halves the scale each time, from 2^16 on.
# test: scaler_skips_first_steps, scaler_skips_all_steps
LEAST_SKIPPED = 10
# Iterations in a row in each of which a loss rises to 1.5 times what it was, and by how much in all: a batch may be ten
# times as hard as the one before.   test: growing_loss, report_loss_grows
LEAST_RISES, RISE, TOTAL_RISE = 3, 1.5, 100.0
# What is left of a weight that falls in each iteration: a decay takes a hundredth of a weight, as a rule.
# test: report_weights_that_decay, healthy_trainings
LEAST_LEFT = 1e-3
# By how much the norm of a weight rises in one step, to a root mean square of 1 at least, where it was no more than one
# that is initialised.   test: healthy_warm_up, report_large_step
LARGE_FACTOR, LARGE_SIZE = 10.0, 1.0
# Gradients of the first and the last weight, by root mean square, in every iteration; and how many weights there are.
# Ten layers with PyTorch's own initial weights and ReLU: 1e-4.   test: healthy_deep_relu, report_deep_sigmoid
DEPTH_FACTOR, LEAST_DEPTH = 1e6, 4
# A float32 that is 1 stays 1 where less than half of its last bit is added.
_HALF_BIT = {"float32": 2.0**-25, "float16": 2.0**-12, "bfloat16": 2.0**-9}
_ROUGH = ("float16", "bfloat16")
_DIGITS = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class LearningFinding:
    """A finding.

    kind        one of KINDS
    parameters  that it is about; none for a loss
    step        where it begins: rank, graph and iteration
    last        the last iteration in which it is so
    operator    that made it so, or the parameter or loss itself
    line        of the user's script, where the dump tells it
    how         a word for the reason, of those that `words` knows; ""
    numbers     what was measured, by name
    dtype       of the parameters, where it matters
    optimizer   name of the optimizer that it is about
    outside     shapes of what the optimizer steps that no module has
    """

    kind: str
    parameters: tuple[str, ...]
    step: StepKey
    last: int
    operator: Operator
    line: SourceLine | None
    how: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    optimizer: str = ""
    outside: tuple[tuple[int, ...], ...] = ()
    dtype: str = ""

    @property
    def first(self) -> int:
        return self.step.iteration or 0


def learning_findings(
    steps: Sequence[Step],
    measured: Measured,
    graphs: GraphFiles,
    learning: Mapping[int, Learning],
    before: int | None = None,
) -> tuple[LearningFinding, ...]:
    """Of each rank, in the order in which they begin.

    steps     in the order in which they ran, with the inputs of their operators
    learning  what the dump tells of parameters, by rank
    before    the iteration from which on values are not finite, which is a finding of its own
    """
    found: list[LearningFinding] = []
    ranks: dict[int | None, list[Step]] = {}
    for step in steps:
        if step.key.iteration is not None and (before is None or step.key.iteration < before):
            ranks.setdefault(step.key.rank_id, []).append(step)
    for rank, own in ranks.items():
        series = Series(own, measured, graphs, learning.get(rank or 0))
        if len(series.by_iteration) > 1:
            found += _of_rank(series)
    return tuple(sorted(found, key=lambda one: (one.first, KINDS.index(one.kind))))


def _of_rank(series: Series) -> Iterator[LearningFinding]:
    grown, zero = list(_growth(series)), list(_zero(series))
    depth = [] if grown or zero else list(_depth(series))
    yield from (*grown, *zero, *depth)
    yield from _shrinking(series)
    yield from (one for one in _large_updates(series) if not grown or one.first < grown[0].first)
    if series.learning is not None:
        yield from _without_gradient(series, series.learning)
        yield from _without_optimizer(series, series.learning)
        yield from _strays(series, series.learning)
        yield from _skipped(series, series.learning)
        yield from _cleared(series, series.learning)
    if not depth:
        yield from _still(series, {name for one in zero for name in one.parameters})


# -- gradients -----------------------------------------------------------------------------------------------------


def _is_trained(series: Series, row: LearningParameter | None) -> bool:
    """Whether an optimizer steps it, as far as is known."""
    if series.learning is None:
        return True
    return row is not None and row.optimizer is not None


def _without_gradient(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Parameters that ask for a gradient, that an optimizer steps, and that operators of the forward pass read on the
    way to the loss, with no gradient in any backward pass.
    """
    if len(series.backwards) < LEAST_ZERO:
        return
    groups: dict[tuple[str, str], list[tuple[LearningParameter, Cause]]] = {}
    nothing_learns = not any(span.has for row in learning.parameters for _, span in series.spans(row))
    for row in learning.parameters:
        spans = list(series.spans(row))
        if row.optimizer is None or not all(span.asks and not span.has for _, span in spans) or len(spans) < LEAST_ZERO:
            continue
        cause = cut_of(series, learning, row.name, spans[0][0])
        if cause is None and nothing_learns:
            cause = apart_of(series, spans[0][0])
        if cause is not None:
            groups.setdefault((cause.how, cause.line_key), []).append((row, cause))
    for rows in groups.values():
        cause = rows[0][1]
        names = tuple(row.name for row, _ in rows)
        yield LearningFinding(
            NO_GRADIENT, names, cause.step, series.backwards[-1], cause.operator, cause.line, cause.how
        )


def _zero(series: Series) -> Iterator[LearningFinding]:
    """Gradients that are 0 as a whole from some iteration on until the end, by who made them so."""
    groups: dict[tuple[int, str], list[tuple[str, Cause]]] = {}
    lasts: dict[tuple[int, str], int] = {}
    living: set[tuple[str, tuple[int, ...]]] = set()
    zeros: list[tuple[str, int, int, Made]] = []
    for name, made in series.gradients.items():
        rows = [(iteration, made[iteration], series.output(made[iteration])) for iteration in sorted(made)]
        rows = [row for row in rows if row[2] is not None]
        tail = list(itertools.takewhile(lambda row: is_zero(row[2]), reversed(rows)))
        if len(tail) >= LEAST_ZERO and _is_trained(series, series.rows.get(name)):
            first, one, _ = tail[-1]
            zeros.append((name, first, tail[0][0], one))
        elif rows:
            living.add((_DIGITS.sub("#", name), rows[-1][1].shape))
    for name, first, last, one in zeros:
        loss = series.losses.get(last)
        if loss is not None and loss.value == 0 and any(each.value for each in series.losses.values()):
            continue  # it has nothing more to learn
        blame = who_made_zero(series, one)
        if blame is None or (blame.is_sum and living):
            continue  # what cancels out, as the bias of a difference
        sibling = _DIGITS.sub("#", name), one.shape
        if blame.is_choice and _DIGITS.search(name) and sibling in living:
            continue  # one of several branches, of which a batch takes some
        key = first, blame.operator.label
        groups.setdefault(key, []).append((name, blame))
        lasts[key] = last
    for key, blamed in groups.items():
        cause = blamed[0][1]
        names = tuple(name for name, _ in blamed)
        step = cause.step._replace(iteration=key[0])
        yield LearningFinding(ZERO, names, step, lasts[key], cause.operator, cause.line, cause.how)


def _without_optimizer(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Parameters that have gradients, that no optimizer steps and that stay what they are, where that is no choice.

    It is one where they are those that the forward pass reads first, as where a head is trained on a body that is not
    frozen, or more than those that are trained, or of other kinds, as where biases alone are trained.
    """
    if not learning.optimizers:
        return
    with_gradient = [
        row for row in learning.parameters if sum(span.asks and span.has for _, span in series.spans(row)) >= LEAST_ZERO
    ]
    trained = [row for row in with_gradient if row.optimizer is not None]
    left = [row for row in with_gradient if row.optimizer is None and _never_changes(series, row.name)]
    if not left:
        return
    outside = [one for one in learning.optimizers if one.outside and one.steps]
    order = _order_of_use(series)
    first_trained = min((order.get(row.name, -1) for row in trained), default=-1)
    if not outside and trained:
        left = [row for row in left if order.get(row.name, -1) > first_trained]
        kinds = {_kind(row.name) for row in trained}
        if not left or len(left) >= len(trained) or kinds.isdisjoint(_kind(row.name) for row in left):
            return
    made = series.gradients.get(left[0].name, {})
    first = min(made, default=series.backwards[0])
    step, operator = _place(series, left[0].name, first, made.get(first))
    one = outside[0] if outside else learning.optimizers[0]
    line = _line_of(one)
    names = tuple(row.name for row in left)
    yield LearningFinding(
        NO_OPTIMIZER, names, step, series.backwards[-1], operator, line, "", {}, one.name, one.outside
    )


def _strays(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Parameters that operators read and that have gradients, in no module and in no optimizer."""
    if not learning.optimizers or not any(row.optimizer is not None for row in learning.parameters):
        return
    for stray in learning.strays:
        if stray.optimizer:
            continue
        for iteration in series.backwards[:1]:
            found = series.find(iteration, stray.graph, stray.operator)
            if found is not None:
                step, operator = found
                node = series.node(step, operator)
                line = None if node is None else node.own_line
                yield LearningFinding(
                    STRAY, (), step.key, series.backwards[-1], operator, line, "", {}, "", (stray.shape,)
                )
        return  # the others are of the same cause, as a rule


def _kind(name: str) -> str:
    """`weight`, of fc.weight."""
    return name.rpartition(".")[2]


def _never_changes(series: Series, name: str) -> bool:
    rows = series.parameters.get(name, {})
    return len(rows) > 1 and len({content_of(numbers) for numbers, _ in rows.values()}) == 1


def _order_of_use(series: Series) -> dict[str, int]:
    """By name of a parameter: the place of the first operator that reads it."""
    order: dict[str, int] = {}
    for step in next(iter(series.by_iteration.values())):
        graph = series.graph(step)
        for node in () if graph is None else graph.nodes:
            for origin in node.inputs:
                if origin is not None and origin.slot is None:
                    order.setdefault(origin.name, len(order))
    return order


def _place(series: Series, name: str, iteration: int, made: Made | None) -> tuple[StepKey, Operator]:
    """Where a finding on a parameter points: the parameter as it was dumped, or who made its gradient."""
    for step in series.by_iteration.get(iteration, ()):
        for operator in reversed(step.operators):
            if operator.is_parameter and operator.op_name == name:
                return step.key, operator
    if made is not None:
        return made.step.key, made.operator
    step = series.by_iteration[iteration][0]
    return step.key, step.operators[-1]


def _line_of(optimizer: LearningOptimizer) -> SourceLine | None:
    """Of its steps."""
    return SourceLine(optimizer.path, optimizer.line, optimizer.code) if optimizer.line else None


def _step_line(series: Series, name: str, iteration: int) -> SourceLine | None:
    """The line at which the optimizer of a parameter makes its step; None where nothing tells."""
    row = series.rows.get(name)
    if series.learning is not None and row is not None and row.optimizer is not None:
        return _line_of(series.learning.optimizers[row.optimizer])
    for step in reversed(series.by_iteration.get(iteration, ())):
        for operator in step.operators:
            if "optimizer-" in operator.label:
                node = series.node(step, operator)
                return None if node is None else node.own_line
    return None


# -- steps ---------------------------------------------------------------------------------------------------------


def _steps_in(spans: Iterable[tuple[int, int]], first: int, last: int) -> int:
    return sum(max(0, min(end, last) - max(begin, first) + 1) for begin, end in spans)


def _rate_at(optimizer: LearningOptimizer, iteration: int) -> float | None:
    known = [rate for begin, rate in optimizer.rates if begin <= iteration]
    return known[-1] if known else None


def _still(series: Series, told: set[str]) -> Iterator[LearningFinding]:
    """Parameters that are the same in the last iterations though they have gradients and an optimizer steps them."""
    groups: dict[tuple[str, int, int], list[tuple[str, float, str]]] = {}
    for name, rows in series.parameters.items():
        iterations = sorted(rows)
        if name in told or len(iterations) < LEAST_STILL or not (made := series.gradients.get(name)):
            continue
        tail = _same_at_end({at: content_of(rows[at][0]) for at in iterations})
        first, last = tail[-1], tail[0]
        if len(tail) < LEAST_STILL:
            continue
        largest = [_largest(series, made[at]) for at in made if first < at <= last]
        gradient = max(largest, default=0.0)
        if not gradient or len([one for one in largest if one]) < LEAST_ZERO:
            continue
        how = _why_still(series, name, rows[last][1].true_dtype, first, last, gradient, rows[last][0].max)
        if how:
            groups.setdefault((how, first, last), []).append((name, gradient, rows[last][1].true_dtype))
    for (how, began, last), rows_of in groups.items():
        name, _, dtype = rows_of[0]
        first = began if began == min(series.by_iteration) else began + 1
        step, operator = _place(series, name, first, None)
        names = tuple(one for one, _, _ in rows_of)
        numbers = {"gradient": max(size for _, size, _ in rows_of)}
        yield LearningFinding(
            STILL, names, step, last, operator, _step_line(series, name, first), how, numbers, dtype=dtype
        )


def _same_at_end(contents: Mapping[int, object]) -> list[int]:
    """The last iterations that have one content, the latest first."""
    latest = sorted(contents, reverse=True)
    return list(itertools.takewhile(lambda at: contents[at] == contents[latest[0]], latest))


def _largest(series: Series, made: Made) -> float:
    numbers = series.output(made)
    values = () if numbers is None else (numbers.max, numbers.min)
    return max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)


def _why_still(
    series: Series, name: str, dtype: str, first: int, last: int, gradient: float, size: float | None
) -> str:
    """ "rate", "rounding", or "" where nothing tells that it is a fault."""
    row = series.rows.get(name)
    if series.learning is None:
        return "rounding" if dtype in _ROUGH else ""
    if row is None or row.optimizer is None:
        return ""
    optimizer = series.learning.optimizers[row.optimizer]
    # A dump shows what the step of the first of these iterations has left.
    if _steps_in(optimizer.steps, first + 1, last) < LEAST_ZERO:
        return ""
    rates = [_rate_at(optimizer, at) for at in range(first + 1, last + 1)]
    known = [rate for rate in rates if rate is not None]
    if known and max(known) == 0:
        return "rate"
    if known and known[-1] > known[0]:
        return ""  # it warms up
    if dtype in _ROUGH:
        return "rounding"
    update = max(known, default=math.inf) * (gradient if optimizer.name == "SGD" else 1.0)
    return "rounding" if size and update < _HALF_BIT.get(dtype, 0.0) * abs(size) else ""


def _skipped(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Optimizers whose last steps a scaler of the loss has left out."""
    for optimizer in learning.optimizers:
        if not optimizer.skipped:
            continue
        last = optimizer.skipped[-1][1]
        began = max((end for _, end in optimizer.steps), default=-1) + 1
        count = _steps_in(optimizer.skipped, began, last)
        if began > last or count < LEAST_SKIPPED or began not in series.by_iteration:
            continue
        step = series.by_iteration[began][-1]
        yield LearningFinding(
            SKIPPED, (), step.key, last, step.operators[0], _line_of(optimizer), "", {"skipped": count}, optimizer.name
        )


def _cleared(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Optimizers that never find a gradient though there was one, and those whose gradients nobody clears."""
    for number, optimizer in enumerate(learning.optimizers):
        steps = [at for at in series.backwards if _steps_in(optimizer.steps, at, at)]
        if len(steps) <= LEAST_ZERO:
            continue
        own = [row for row in learning.parameters if row.optimizer == number]
        has = any(span.has for row in own for _, span in series.spans(row))
        is_empty = has and all(_steps_in(optimizer.empty, at, at) for at in steps)
        if is_empty or (optimizer.kept >= LEAST_ZERO and not optimizer.cleared):
            step, operator = _place(series, own[0].name if own else "", steps[0], None)
            kind, names = (EMPTY if is_empty else KEPT), tuple(row.name for row in own)
            yield LearningFinding(kind, names, step, steps[-1], operator, _line_of(optimizer), optimizer=optimizer.name)


# -- sizes ---------------------------------------------------------------------------------------------------------


def _growth(series: Series) -> Iterator[LearningFinding]:
    """A loss that rises steeply in each of the last iterations."""
    losses = series.losses
    iterations = sorted(losses)
    sizes = [abs(losses[at].value) for at in iterations]  # one may fall below 0, without an end
    first = len(iterations) - 1
    while first > 0 and 0 < sizes[first - 1] * RISE <= sizes[first]:
        first -= 1
    if len(iterations) - 1 - first < LEAST_RISES:
        return
    begin, end = losses[iterations[first]], losses[iterations[-1]]
    if sizes[-1] < TOTAL_RISE * sizes[first]:
        return
    # The first rise is that of the iteration behind the smallest loss.
    rises = losses[iterations[first + 1]]
    numbers = {"before": begin.value, "last": end.value}
    fastest = _fastest(series, iterations[first], iterations[-1])
    names = () if fastest is None else (fastest[0],)
    if fastest is not None:
        numbers["factor"] = fastest[1]
    rate, earlier = _rate_jump(series, iterations[first])
    if rate is not None and earlier is not None:
        numbers |= {"rate": rate, "rate before": earlier}
    yield LearningFinding(GROWS, names, rises.key, iterations[-1], rises.operator, rises.line, "", numbers)


def _fastest(series: Series, first: int, last: int) -> tuple[str, float] | None:
    """The parameter whose norm rises most from one iteration to another, and by which factor."""
    factors = [
        (norm_of(rows[last][0]) / before, name)
        for name, rows in series.parameters.items()
        if first in rows and last in rows and (before := norm_of(rows[first][0])) > 0
    ]
    factor, name = max(factors, default=(0.0, ""))
    return (name, factor) if factor >= RISE else None


def _rate_jump(series: Series, iteration: int) -> tuple[float | None, float | None]:
    """A learning rate that has risen to ten times what it was, in the iteration or the one before."""
    for optimizer in () if series.learning is None else series.learning.optimizers:
        for (_, before), (begin, rate) in itertools.pairwise(optimizer.rates):
            if begin in (iteration - 1, iteration) and rate >= 10 * before > 0:
                return rate, before
    return None, None


def _large_updates(series: Series) -> Iterator[LearningFinding]:
    """The first weights whose norm rises at once far beyond that of a weight."""
    found: dict[int, list[tuple[float, str]]] = {}
    for name, rows in series.parameters.items():
        if series.learning is not None and name not in series.rows:
            continue  # a buffer
        for before, after in itertools.pairwise(sorted(rows)):
            tensor = rows[after][1]
            if len(tensor.shape) < 2:
                break
            old, new = norm_of(rows[before][0]), norm_of(rows[after][0])
            if 0 < old * LARGE_FACTOR <= new and new >= LARGE_SIZE:
                found.setdefault(after, []).append((new / old, name))
                break
    if found:
        after = min(found)
        factor, name = max(found[after])
        step, operator = _place(series, name, after, None)
        names = tuple(each for _, each in sorted(found[after], reverse=True))
        line = _step_line(series, name, after)
        yield LearningFinding(LARGE_UPDATE, names, step, after, operator, line, "", {"factor": factor})


def _shrinking(series: Series) -> Iterator[LearningFinding]:
    """Weights that fall towards 0 in each iteration."""
    names: list[tuple[float, str]] = []
    for name, rows in series.parameters.items():
        sizes = [norm_of(rows[at][0]) for at in sorted(rows)]
        is_weight = len(next(iter(rows.values()))[1].shape) > 1 and (series.learning is None or name in series.rows)
        falls = [after <= before / RISE for before, after in itertools.pairwise(sizes) if before]
        if is_weight and len(falls) >= LEAST_RISES and all(falls) and sizes[-1] <= sizes[0] * LEAST_LEFT:
            names.append((sizes[-1] / sizes[0], name))
    if names:
        factor, name = min(names)
        iterations = sorted(series.parameters[name])
        step, operator = _place(series, name, iterations[0], None)
        line, blamed = _step_line(series, name, iterations[0]), tuple(each for _, each in sorted(names))
        yield LearningFinding(SHRINKS, blamed, step, iterations[-1], operator, line, "", {"factor": factor})


def _depth(series: Series) -> Iterator[LearningFinding]:
    """Gradients of weights, or of biases, that fall or rise through the model, in every iteration."""
    order = _order_of_use(series)
    for has_axes in (True, False):
        names = [
            name
            for name, made in series.gradients.items()
            if name in order and (len(next(iter(made.values())).shape) > 1) == has_axes
        ]
        names.sort(key=order.__getitem__)
        found = _depth_of(series, names) if len(names) >= LEAST_DEPTH else None
        if found is not None:
            yield found
            return


def _depth_of(series: Series, names: Sequence[str]) -> LearningFinding | None:
    """names: of parameters, in the order in which the forward pass reads them"""
    iterations = [at for at in series.backwards if all(at in series.gradients[name] for name in names)]
    sizes = {at: [_norm(series, series.gradients[name][at]) for name in names] for at in iterations}
    if len(iterations) < LEAST_ZERO or not all(all(row) for row in sizes.values()):
        return None
    for how, sign in (("vanishes", 1), ("explodes", -1)):
        least = min(math.log10(row[-1] / row[0]) * sign for row in sizes.values())
        if least < math.log10(DEPTH_FACTOR):
            continue
        row = sizes[iterations[0]]
        steps = [math.log10(after / before) * sign for before, after in itertools.pairwise(row)]
        usual = least / len(steps) / 2
        begin = next((at for at in range(len(steps) - 1, -1, -1) if steps[at] >= usual), len(steps) - 1)
        made = series.gradients[names[begin]][iterations[0]]
        numbers = {"first": row[0], "last": row[-1], "ratio": 10 ** (sum(steps) / len(steps))}
        line, blamed = _first_line(series, made), (names[begin], names[0], names[-1])
        return LearningFinding(DEPTH, blamed, made.step.key, iterations[-1], made.operator, line, how, numbers)
    return None


def _first_line(series: Series, made: Made) -> SourceLine | None:
    """The line of the forward pass whose gradient an operator hands on."""
    while True:
        node = series.node(made.step, made.operator)
        if node is None:
            return None
        if len(set(node.source)) > 1:
            return node.own_line
        source = series.maker(made.step, node.inputs[0]) if node.inputs else None
        if source is None:
            return node.own_line
        made = source


def _norm(series: Series, made: Made) -> float:
    numbers = series.output(made)
    return 0.0 if numbers is None else norm_of(numbers)
