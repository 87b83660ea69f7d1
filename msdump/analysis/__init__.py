"""Analysis of dumps: compare, find, measure, replay. Everything loads on first use.

msdump.analysis.compare_dumps("mine", "golden").first_wrong
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msdump.analysis.compare.dumps import compare_dumps
    from msdump.analysis.compare.mapping import OperatorMap, read_mapping
    from msdump.analysis.compare.report import csv_text, json_text
    from msdump.analysis.compare.result import Comparison, OperatorResult, StepResult, TensorResult
    from msdump.analysis.compare.sentences import headline
    from msdump.analysis.compare.statistics import compare_statistics
    from msdump.analysis.convert.files import convert_dump
    from msdump.analysis.distance.metrics import PairMetrics, compare_arrays, metric_text
    from msdump.analysis.find.look_up import find_source_line, show_operator
    from msdump.analysis.find.nan import NonFiniteReport, find_non_finite
    from msdump.analysis.overview.listing import DumpListing, ListedStep, list_dump
    from msdump.analysis.replay.replay import Replay, replay_operator
    from msdump.analysis.replay.repro import write_repro
    from msdump.analysis.stat.rows import StatisticReport, write_parquet
    from msdump.analysis.stat.statistics import tensor_statistics, write_statistic_files

_MODULE_BY_NAME = {
    "Comparison": "compare.result",
    "DumpListing": "overview.listing",
    "ListedStep": "overview.listing",
    "NonFiniteReport": "find.nan",
    "OperatorMap": "compare.mapping",
    "OperatorResult": "compare.result",
    "PairMetrics": "distance.metrics",
    "Replay": "replay.replay",
    "StatisticReport": "stat.rows",
    "StepResult": "compare.result",
    "TensorResult": "compare.result",
    "compare_arrays": "distance.metrics",
    "compare_dumps": "compare.dumps",
    "compare_statistics": "compare.statistics",
    "convert_dump": "convert.files",
    "csv_text": "compare.report",
    "find_non_finite": "find.nan",
    "find_source_line": "find.look_up",
    "headline": "compare.sentences",
    "json_text": "compare.report",
    "list_dump": "overview.listing",
    "metric_text": "distance.metrics",
    "read_mapping": "compare.mapping",
    "replay_operator": "replay.replay",
    "show_operator": "find.look_up",
    "tensor_statistics": "stat.statistics",
    "write_parquet": "stat.rows",
    "write_repro": "replay.repro",
    "write_statistic_files": "stat.statistics",
}

__all__ = [
    "Comparison",
    "DumpListing",
    "ListedStep",
    "NonFiniteReport",
    "OperatorMap",
    "OperatorResult",
    "PairMetrics",
    "Replay",
    "StatisticReport",
    "StepResult",
    "TensorResult",
    "compare_arrays",
    "compare_dumps",
    "compare_statistics",
    "convert_dump",
    "csv_text",
    "find_non_finite",
    "find_source_line",
    "headline",
    "json_text",
    "list_dump",
    "metric_text",
    "read_mapping",
    "replay_operator",
    "show_operator",
    "tensor_statistics",
    "write_parquet",
    "write_repro",
    "write_statistic_files",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_BY_NAME.get(name)
    if module is None:
        raise AttributeError(f'module "msdump.analysis" has no attribute "{name}".')
    return getattr(importlib.import_module(f"msdump.analysis.{module}"), name)
