"""Two dumps against each other by their statistics alone: what `compare` does for tensors, without tensors."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from msdump.analysis.compare.bounds import Bounds, bounds_of
from msdump.analysis.compare.mapping import OperatorMap, read_mapping
from msdump.analysis.compare.pairing import OperatorPair, pair_operators, pair_steps
from msdump.analysis.compare.result import (
    AGREES,
    DIFFERS,
    IDENTICAL,
    NOT_COMPARED,
    Comparison,
    OperatorResult,
    StepResult,
    TensorResult,
)
from msdump.analysis.graph_info import GraphFiles, with_inputs
from msdump.analysis.in_place import OTHER_MOMENT, Moment, SameBytes, slots_of_other_moments
from msdump.analysis.steps import Slot, StatisticSteps, StepKey, nothing_selected, read_statistic_steps
from msdump.analysis.unset import UNSET, UnsetTensors, has_same_statistics
from msdump.errors import ConfigError, FormatError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.statistic_csv import StatisticRow
from msdump.records import INPUT, OUTPUT

# Six digits are what a csv keeps.
_DIGITS = 2e-6
_Sides = tuple[StatisticSteps, StatisticSteps]


def compare_statistics(
    mine: DumpDir | str | os.PathLike[str],
    golden: DumpDir | str | os.PathLike[str],
    *,
    mapping: OperatorMap | str | os.PathLike[str] | None = None,
    rank: int | Collection[int] | None = None,
    graph: int | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
    tolerance: float | None = None,
) -> Comparison:
    """Compare what two dumps' statistic.csv say of the same operators.

    Tensors with one MD5 are identical. Others agree when their largest, smallest and mean values and norms are within
    the bounds of their dtype, and NaN and Inf are as many: tensors that differ may still agree in all of these.

    Raises:  ConfigError when a side has no statistics or they have no operator in common; FormatError when there is
             nothing at a path.
    """
    dumps = tuple(dump if isinstance(dump, DumpDir) else DumpDir.open(dump) for dump in (mine, golden))
    tables: list[StatisticSteps] = []
    damaged: list[tuple[str, FormatError]] = []
    for dump in dumps:
        table, problems = read_statistic_steps(dump, rank=rank, graph=graph, iteration=iteration)
        if not table.steps:
            advice = "`msdump stat DIR --csv OUT` makes one."
            if not (dump.statistic_files() or dump.statistic_dump_files()):
                raise ConfigError(f"{dump.path}: expected a statistic.csv, got none. {advice}")
            raise nothing_selected(
                dump, expected="a statistic.csv", rank=rank, graph=graph, iteration=iteration, advice=advice
            )
        tables.append(table)
        damaged += problems
    operator_map = mapping if isinstance(mapping, OperatorMap) or mapping is None else read_mapping(mapping)
    graphs = [GraphFiles(dump) for dump in dumps]
    sides = [
        [with_inputs(step, files.of(step.key)) for step in table.steps]
        for table, files in zip(tables, graphs, strict=True)
    ]
    pairs = pair_steps(*sides)
    steps = []
    for one, other in pairs:
        pairing = pair_operators(one.operators, other.operators, operator_map)
        steps_and_graphs = ((one, graphs[0].of(one.key)), (other, graphs[1].of(other.key)))
        moments = (
            Moment(*steps_and_graphs[0], _has_same_rows(tables[0])),
            Moment(*steps_and_graphs[1], _has_same_rows(tables[1])),
        )
        unset = tuple(
            UnsetTensors(step, graph, _has_same_rows(table))
            for (step, graph), table in zip(steps_and_graphs, tables, strict=True)
        )
        sources = (tables[0], tables[1])
        results = [
            _without_unset(_operator(one.key, pair, sources, moments, tolerance), unset) for pair in pairing.pairs
        ]
        results.sort(key=lambda result: result.pair.mine.is_parameter)
        steps.append(
            StepResult(one.key, other.key, tuple(results), pairing.only_mine, pairing.only_golden, pairing.expected)
        )
    if not any(step.operators for step in steps):
        raise ConfigError(
            f"{dumps[0].path} and {dumps[1].path}: expected operators in common, got none. Say with a mapping file "
            "which operator is which (--mapping FILE)."
        )
    used = {id(one) for one, _ in pairs}, {id(other) for _, other in pairs}
    only = [
        tuple(step.key for step in side if id(step) not in paired) for side, paired in zip(sides, used, strict=True)
    ]
    return Comparison(dumps[0].path, dumps[1].path, None, tuple(steps), only[0], only[1], tuple(damaged))


def _operator(
    key: StepKey, pair: OperatorPair, tables: _Sides, moments: tuple[Moment, Moment], tolerance: float | None
) -> OperatorResult:
    sides = {io: tuple(_tensors(pair, io, tables, tolerance)) for io in (INPUT, OUTPUT)}
    blind = slots_of_other_moments(pair.mine, pair.golden, moments)
    inputs = tuple(
        replace(result, status=NOT_COMPARED, reason=OTHER_MOMENT) if result.slot.number in blind else result
        for result in sides[INPUT]
    )
    return OperatorResult(key, pair, inputs, sides[OUTPUT])


def _has_same_rows(table: StatisticSteps) -> SameBytes:
    """Whether two tensors of a table are the same, told by MD5 or by equal numbers."""
    return lambda one, other: has_same_statistics(table.row(one), table.row(other))


def _without_unset(result: OperatorResult, unset: Sequence[UnsetTensors]) -> OperatorResult:
    """The result, where memory that no operator has written yet differs in nothing."""
    sides = tuple(zip(unset, (result.pair.mine, result.pair.golden), strict=True))

    def judged(result: TensorResult) -> TensorResult:
        if result.status == DIFFERS and any(side.has(operator, result.io, result.slot) for side, operator in sides):
            return replace(result, status=NOT_COMPARED, reason=UNSET)
        return result

    return replace(result, inputs=tuple(map(judged, result.inputs)), outputs=tuple(map(judged, result.outputs)))


def _tensors(pair: OperatorPair, io: str, tables: _Sides, tolerance: float | None) -> Iterator[TensorResult]:
    golden = pair.golden.tensors(io)
    for slot, mine in pair.mine.tensors(io).items():
        if slot in golden:
            rows = tables[0].row(mine), tables[1].row(golden[slot])
            status, reason = _verdict(*rows, bounds_of(mine.dtype, golden[slot].dtype, tolerance))
            yield TensorResult(io, Slot(*slot), mine, golden[slot], status, reason)


def _verdict(mine: StatisticRow, golden: StatisticRow, bounds: Bounds) -> tuple[str, str]:
    if mine.md5 and mine.md5 == golden.md5 and mine.dtype == golden.dtype:
        return IDENTICAL, ""
    for name in ("count", "nan", "negative_inf", "positive_inf"):
        one, other = getattr(mine, name), getattr(golden, name)
        if one is not None and other is not None and one != other:
            return DIFFERS, f"{name} {one} against {other}"
    scale = max((abs(value) for value in (golden.max, golden.min) if value is not None), default=0.0)
    is_compared = False
    for name, limit in (
        ("max", bounds.worst),
        ("min", bounds.worst),
        ("avg", bounds.worst),
        ("l2norm", bounds.relative),
    ):
        one, other = getattr(mine, name), getattr(golden, name)
        if one is None or other is None:
            continue
        is_compared = True
        allowed = max(limit, _DIGITS) * (abs(other) if name == "l2norm" else scale)
        if one != other and not abs(one - other) <= allowed and not (one != one and other != other):
            return DIFFERS, f"{name} {one:g} against {other:g}"
    return (AGREES, "") if is_compared else (NOT_COMPARED, "the statistics have no column in common")
