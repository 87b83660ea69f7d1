"""Findings on a training that does not learn, grows or stands still; the first ones are those that began first.

from msdump.analysis.learning.findings import learning_findings
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.learning.activations import dead, explosion
from msdump.analysis.learning.averages import forgetting
from msdump.analysis.learning.axes import mixed_axes
from msdump.analysis.learning.buffers import thrown_away, unchanged_statistics
from msdump.analysis.learning.data import one_class, one_value, other_rows, same_rows
from msdump.analysis.learning.factors import decays, gains, too_small
from msdump.analysis.learning.gradients import (
    cleared_by_the_next,
    frozen,
    never_stepped,
    strays,
    without_gradient,
    without_optimizer,
    zero_gradients,
)
from msdump.analysis.learning.kinds import KINDS, LearningFinding
from msdump.analysis.learning.losses import wrong_losses
from msdump.analysis.learning.modes import evaluation
from msdump.analysis.learning.repeats import loss_still, repeats
from msdump.analysis.learning.series import Measured, Series
from msdump.analysis.learning.sizes import depth, growth, large_updates, rises, shrinking
from msdump.analysis.learning.symmetry import alike
from msdump.analysis.learning.updates import cleared, fallen, lost, renewed, skipped, still, without_rate
from msdump.analysis.steps import Step
from msdump.formats.learning_json import Learning


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
            of_rank = list(_of_rank(series))
            if not of_rank and series.learning is not None:
                of_rank = [*repeats(series), *same_rows(series), *loss_still(series, series.learning)]
            found += of_rank
        elif series.learning is not None:
            found += never_stepped(series, series.learning)
    return tuple(sorted(found, key=lambda one: (one.first, KINDS.index(one.kind))))


def _of_rank(series: Series) -> Iterator[LearningFinding]:
    grown, zero = list(growth(series)), list(zero_gradients(series))
    deep = [] if grown or zero else list(depth(series)) or list(explosion(series))
    yield from (*grown, *zero, *deep)
    if not zero:
        yield from dead(series)
    shrunk = list(shrinking(series))
    yield from shrunk
    yield from one_class(series)
    yield from one_value(series)
    yield from other_rows(series)
    yield from wrong_losses(series)
    yield from mixed_axes(series)
    yield from forgetting(series)
    yield from thrown_away(series)
    yield from unchanged_statistics(series)
    yield from (one for one in large_updates(series) if not grown or one.first < grown[0].first)
    if series.learning is not None:
        yield from _of_optimizers(series, series.learning)
        if not grown:
            yield from rises(series, series.learning)
        if not shrunk:
            yield from decays(series, series.learning)
    if series.learning is None:
        yield from without_rate(series)
    if not deep:
        standing = list(still(series, {name for one in zero for name in one.parameters}))
        yield from standing or (() if series.learning is None else _hardly_moving(series, series.learning))


def _of_optimizers(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    for look in (
        *(
            without_gradient,
            cleared_by_the_next,
            without_optimizer,
            never_stepped,
            frozen,
            strays,
            skipped,
            cleared,
            evaluation,
            renewed,
        ),
        *(alike, gains),
    ):
        yield from look(series, learning)


def _hardly_moving(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    yield from lost(series, learning)
    yield from list(fallen(series, learning)) or too_small(series, learning)
