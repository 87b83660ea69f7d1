"""MindSpore's strategy files: how the devices of a stage share each parameter. Protobuf, or JSON by its ending.

Source: `strategy_ckpt_config` of MindSpore (save_file), `merge_pipeline_strategys`; docs/formats/layout.md.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from msdump.errors import FormatError
from msdump.formats._proto import node_strategy_pb2
from msdump.storage.plain import read_plain, readable

_MAX_AXES = 16
_MAX_SIZE = 1 << 22


@dataclass(frozen=True, slots=True)
class ParameterStrategy:
    """Placement of a parameter over the devices of its stage.

    stage        of the pipeline, zero-based
    dev_matrix   sizes of the axes of devices, the last one running fastest
    tensor_map   for each dimension the axis that cuts it, counted from the last one; -1: none
    shard_step, shard_size  the parallel optimizer cuts the first dimension once more, among `shard_size` ranks that are
                            `shard_step` apart; size 0: it does not
    is_even      False: pieces are of different sizes, or fields, which these numbers do not tell
    """

    name: str
    stage: int
    dev_matrix: tuple[int, ...]
    tensor_map: tuple[int, ...]
    shard_step: int = 0
    shard_size: int = 0
    is_even: bool = True


def read_strategy(path: str | os.PathLike[str]) -> tuple[ParameterStrategy, ...]:
    """The parameters of a file, as they stand in it.

    Edges:  names of a merged file begin with the number of their stage and "-", which `stage` alone holds here.
    Raises: FormatError for a file that is damaged, is something else, or cannot be read.
    """
    where = os.fspath(path)
    with readable(path):
        data = read_plain(path)
    rows = _json_rows(where, data) if where.endswith(".json") else _proto_rows(where, data)
    return tuple(_strategy(f"{where}, {name}", stage, name, values) for stage, name, values in rows)


_Row = tuple[int, str, "dict[str, Any]"]


def _proto_rows(where: str, data: bytes) -> list[_Row]:
    content: Any = node_strategy_pb2.ParallelStrategyMap()
    try:
        content.ParseFromString(data)
    except DecodeError as error:
        raise FormatError(
            f"{where}: expected a strategy file of MindSpore, got something else: {error}. Name one in JSON .json."
        ) from error
    rows: list[_Row] = []
    for item in content.parallel_layout_item:
        layouts = item.parallel_layouts
        values = {
            "dev_matrix": [list(row.dim) for row in layouts.dev_matrix[:1]],
            "tensor_map": [list(row.dim) for row in layouts.tensor_map[:1]],
            "param_split_shape": [size for row in layouts.param_split_shape for size in row.dim],
            "field": layouts.field,
            "opt_weight_shard_step": layouts.opt_weight_shard_step,
            "opt_weight_shard_size": layouts.opt_weight_shard_size,
        }
        for key in ("dev_matrix", "tensor_map"):
            values[key] = values[key][0] if values[key] else []
        rows.append((content.current_stage, item.param_name, values))
    return rows


def _json_rows(where: str, data: bytes) -> list[_Row]:
    try:
        content = json.loads(data)
        items = content["parallel_layout_item"] or {}
        return [(content["current_stage"], name, {"field": 0, **values}) for name, values in items.items()]
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError) as error:
        raise FormatError(
            f"{where}: expected a strategy file of MindSpore with current_stage and parallel_layout_item, got "
            f"something else: {type(error).__name__} {error}."
        ) from error


def _strategy(where: str, stage: Any, name: str, values: dict[str, Any]) -> ParameterStrategy:
    prefix, is_merged, rest = name.partition("-")
    if is_merged and prefix.isascii() and prefix.isdigit():
        stage, name = int(prefix), rest
    matrix = _numbers(where, values, "dev_matrix", 1)
    tensor_map = _numbers(where, values, "tensor_map", -1)
    if math.prod(matrix) > _MAX_SIZE:
        raise FormatError(f"{where}: expected at most {_MAX_SIZE} devices in dev_matrix, got {list(matrix)}.")
    cutting = [axis for axis in tensor_map if axis >= 0]
    if not matrix or any(axis >= len(matrix) for axis in cutting) or len(set(cutting)) != len(cutting):
        raise FormatError(
            f"{where}: expected axes of dev_matrix {list(matrix)} in tensor_map, each once, got {list(tensor_map)}. "
            "Write the file again."
        )
    step, size = (
        _number(where, values.get(key, 0), key, -1) for key in ("opt_weight_shard_step", "opt_weight_shard_size")
    )
    is_even = not values.get("param_split_shape") and _number(where, values.get("field", 0), "field", -1) <= 0
    return ParameterStrategy(
        name, _number(where, stage, "current_stage", 0), matrix, tensor_map, max(step, 0), max(size, 0), is_even
    )


def _numbers(where: str, values: dict[str, Any], key: str, least: int) -> tuple[int, ...]:
    items = values.get(key)
    if not isinstance(items, Sequence) or isinstance(items, str) or len(items) > _MAX_AXES:
        raise FormatError(f"{where}: expected at most {_MAX_AXES} numbers in {key}, got {str(items)[:80]}.")
    return tuple(_number(where, item, key, least) for item in items)


def _number(where: str, value: Any, key: str, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MAX_SIZE:
        raise FormatError(f"{where}: expected a number from {least} to {_MAX_SIZE} in {key}, got {str(value)[:80]}.")
    return value
