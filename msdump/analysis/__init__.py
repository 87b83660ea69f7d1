"""What the files of a dump mean: compare, find, measure, replay. Everything loads on first use.

import msdump.analysis
msdump.analysis.compare_dumps("mine", "golden").first_wrong
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msdump.analysis.compare import compare_dumps
    from msdump.analysis.comparison import Comparison, OperatorResult, StepResult, TensorResult
    from msdump.analysis.comparison_report import csv_text, headline, json_text
    from msdump.analysis.convert import convert_dump
    from msdump.analysis.look_up import find_source_line, show_operator
    from msdump.analysis.mapping import OperatorMap, read_mapping
    from msdump.analysis.metrics import PairMetrics, compare_arrays, metric_text
    from msdump.analysis.nan import NonFiniteReport, find_non_finite
    from msdump.analysis.replay import Replay, replay_operator
    from msdump.analysis.repro import write_repro
    from msdump.analysis.stat import StatisticReport, tensor_statistics, write_parquet, write_statistic_files
    from msdump.analysis.stat_diff import compare_statistics

_MODULE_BY_NAME = {
    "Comparison": "comparison",
    "NonFiniteReport": "nan",
    "OperatorMap": "mapping",
    "OperatorResult": "comparison",
    "PairMetrics": "metrics",
    "Replay": "replay",
    "StatisticReport": "stat",
    "StepResult": "comparison",
    "TensorResult": "comparison",
    "compare_arrays": "metrics",
    "compare_dumps": "compare",
    "compare_statistics": "stat_diff",
    "convert_dump": "convert",
    "csv_text": "comparison_report",
    "find_non_finite": "nan",
    "find_source_line": "look_up",
    "headline": "comparison_report",
    "json_text": "comparison_report",
    "metric_text": "metrics",
    "read_mapping": "mapping",
    "replay_operator": "replay",
    "show_operator": "look_up",
    "tensor_statistics": "stat",
    "write_parquet": "stat",
    "write_repro": "repro",
    "write_statistic_files": "stat",
}

__all__ = [
    "Comparison",
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
