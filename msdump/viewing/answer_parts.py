"""Parts that answers of a viewer have in common: numbers, lines, attributes, tables. docs/viewer-data.md"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from msdump.analysis.compare.result import Comparison, TensorResult
from msdump.analysis.distance.bounds import bounds_of
from msdump.analysis.graph_info import GraphNode
from msdump.graph.types import SourceLine

Answer = dict[str, Any]
# Numbers of a tensor, as fields of its statistics have them.
NUMBERS = ("max", "min", "avg", "l2norm", "count", "nan", "negative_inf", "positive_inf", "zero")


def number(value: Any) -> Any:
    """A number; what is not finite as text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def tolerance_of(comparison: Comparison, result: TensorResult) -> float | None:
    """The relative error until which two tensors agree; None where no such number judges them.

    Edges: of a quantised model what operators add judges, and with a reference the error of the other run.
    """
    if comparison.quantised is not None or result.yardstick is not None:
        return None
    return bounds_of(result.mine.true_dtype, result.golden.true_dtype).relative


def line(source: SourceLine | None) -> list[Any] | None:
    """[path, line, code]; the path as commands print it."""
    return None if source is None else [source.shown_path, source.line, source.code.strip()]


def attributes(node: GraphNode | None) -> list[list[str]] | None:
    """[name, text] of each attribute; None where no graph file tells them."""
    attrs = None if node is None else node.attrs
    return None if attrs is None else [[name, str(value)] for name, value in attrs.items()]


def table(names: Iterable[str], rows: list[tuple[Any, ...]]) -> Answer:
    """Columns by name, from rows of as many values."""
    names = tuple(names)
    columns = zip(*rows, strict=True) if rows else (() for _ in names)
    return {name: list(column) for name, column in zip(names, columns, strict=True)}
