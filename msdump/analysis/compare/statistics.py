"""Comparison of two dumps by statistics alone, as `compare` does it for tensors."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace

from msdump.analysis.compare.mapping import OperatorMap, read_mapping
from msdump.analysis.compare.pairing import OperatorPair
from msdump.analysis.compare.pipeline import ComparedSide, StepPair, compare_pairs, compare_sides
from msdump.analysis.compare.result import AGREES, DIFFERS, IDENTICAL, NOT_COMPARED, Comparison, TensorResult
from msdump.analysis.compare.values import figures_of_row
from msdump.analysis.distance.bounds import Bounds, bounds_of
from msdump.analysis.graph_info import GraphFiles, with_inputs
from msdump.analysis.memory_state import has_same_statistics
from msdump.analysis.steps import Slot, StatisticSteps, nothing_selected, opened, read_statistic_steps
from msdump.errors import FormatError, NothingFoundError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.selection import StepSelection
from msdump.formats.statistic_row import StatisticRow
from msdump.tables.messages import message

# Six digits are what a csv keeps.
_DIGITS = 2e-6


def compare_statistics(
    mine: DumpDir | str | os.PathLike[str],
    golden: DumpDir | str | os.PathLike[str],
    *,
    mapping: OperatorMap | str | os.PathLike[str] | None = None,
    rank: int | Collection[int] | None = None,
    graph: int | str | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
    tolerance: float | None = None,
) -> Comparison:
    """Compare what two dumps' statistic.csv say of the same operators.

    Tensors with one MD5 are identical. Others agree when their largest, smallest and mean values and norms are within
    the bounds of their dtype, and NaN and Inf are as many: tensors that differ may still agree in all of these.

    Raises:  ConfigError when a side has no statistics or they have no operator in common; FormatError when there is
             nothing at a path.
    """
    dumps = tuple(opened(dump) for dump in (mine, golden))
    selection = StepSelection(rank, graph, iteration)
    tables: list[StatisticSteps] = []
    damaged: list[tuple[str, FormatError]] = []
    for dump in dumps:
        table, problems = read_statistic_steps(dump, selection)
        if not table.steps:
            advice = "`msdump stat DIR --csv OUT` makes one."
            if not dump.has_statistics():
                raise NothingFoundError(f"{dump.path}: expected a statistic.csv, got none. {advice}")
            raise nothing_selected(dump, selection, expected="a statistic.csv", advice=advice)
        tables.append(table)
        damaged += problems
    operator_map = mapping if isinstance(mapping, OperatorMap) else read_mapping(mapping) if mapping else OperatorMap()
    one, other = (_side(dump, table) for dump, table in zip(dumps, tables, strict=True))

    def judge(pair: OperatorPair, io: str, slot: Slot, mine: DumpedTensor, golden: DumpedTensor) -> TensorResult:
        rows = tables[0].row(mine), tables[1].row(golden)
        return TensorResult(io, slot, mine, golden, *_verdict(*rows, bounds_of(mine.dtype, golden.dtype, tolerance)))

    paths = [dump.path for dump in dumps]

    def compared(pairs: Sequence[StepPair]) -> Comparison:
        return compare_pairs(paths, (one, other), pairs, operator_map, judge, lambda: damaged)

    comparison = compare_sides((one, other), paths, operator_map, tolerance, compared)
    note = message("by statistics alone: tensors with the same numbers in another order have the same statistics")
    return replace(comparison, notes=(*comparison.notes, note))


def _side(dump: DumpDir, table: StatisticSteps) -> ComparedSide:
    """Whether two of its tensors are the same, MD5 or equal numbers tell."""
    graphs = GraphFiles(dump)
    steps = [with_inputs(step, graphs.of(step.key)) for step in table.steps]
    return ComparedSide(
        steps,
        graphs,
        lambda left, right: has_same_statistics(table.row(left), table.row(right)),
        lambda tensor: figures_of_row(tensor, table.row(tensor)),
    )


def _verdict(mine: StatisticRow, golden: StatisticRow, bounds: Bounds) -> tuple[str, str]:
    if mine.md5 and mine.md5 == golden.md5 and mine.dtype == golden.dtype:
        return IDENTICAL, ""
    for name in ("count", "nan", "negative_inf", "positive_inf"):
        one, other = getattr(mine, name), getattr(golden, name)
        if one is not None and other is not None and one != other:
            return DIFFERS, message("{statistic} {mine} against {golden}", statistic=name, mine=one, golden=other)
    scale = max((abs(value) for value in (golden.max, golden.min) if value is not None), default=0.0)
    is_compared = False
    for name, limit in (
        ("max", bounds.worst),
        ("min", bounds.worst),
        ("avg", bounds.worst),
        ("l2norm", bounds.relative),
    ):
        left, right = getattr(mine, name), getattr(golden, name)
        if left is None or right is None:
            continue
        is_compared = True
        allowed = max(limit, _DIGITS) * (abs(right) if name == "l2norm" else scale)
        if left != right and not abs(left - right) <= allowed and not (left != left and right != right):
            return DIFFERS, message("{statistic} {mine:g} against {golden:g}", statistic=name, mine=left, golden=right)
    return (AGREES, "") if is_compared else (NOT_COMPARED, message("the statistics have no column in common"))
