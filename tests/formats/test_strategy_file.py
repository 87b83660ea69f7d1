"""MindSpore's strategy files: both forms say the same, and what is damaged is told with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msdump.errors import FormatError
from msdump.formats._proto import node_strategy_pb2
from msdump.formats.strategy_file import ParameterStrategy, read_strategy

LAYOUT = {"dev_matrix": [2, 2], "tensor_map": [0, -1], "tensor_shape": [8, 4], "field": 0,
          "opt_weight_shard_step": 2, "opt_weight_shard_size": 2}  # fmt: skip


def write_json(path: Path, items: Any, stage: Any = 1) -> Path:
    path.write_text(json.dumps({"current_stage": stage, "parallel_strategy_item": {}, "parallel_layout_item": items}))
    return path


def test_both_forms_say_the_same(tmp_path: Path) -> None:
    content: Any = node_strategy_pb2.ParallelStrategyMap()
    content.current_stage = 1
    item = content.parallel_layout_item.add()
    item.param_name = "fc.weight"
    layouts = item.parallel_layouts
    layouts.dev_matrix.add().dim.extend([2, 2])
    layouts.tensor_map.add().dim.extend([0, -1])
    layouts.param_split_shape.add()
    layouts.field, layouts.opt_weight_shard_step, layouts.opt_weight_shard_size = 0, 2, 2
    (tmp_path / "strategy.ckpt").write_bytes(content.SerializeToString())
    write_json(tmp_path / "strategy.json", {"fc.weight": LAYOUT})
    expected = (ParameterStrategy("fc.weight", 1, (2, 2), (0, -1), 2, 2),)
    assert read_strategy(tmp_path / "strategy.ckpt") == read_strategy(tmp_path / "strategy.json") == expected


def test_a_merged_file_tells_stages_by_names(tmp_path: Path) -> None:
    path = write_json(tmp_path / "all.json", {"0-fc.weight": LAYOUT, "1-fc-weight": LAYOUT, "fc-bias": LAYOUT}, 5)
    assert [(one.stage, one.name) for one in read_strategy(path)] == [
        (0, "fc.weight"),
        (1, "fc-weight"),
        (5, "fc-bias"),
    ]


def test_uneven_pieces_are_marked(tmp_path: Path) -> None:
    items = {
        "a": {**LAYOUT, "param_split_shape": [5, 3], "indices_offset": [0, 5]},
        "b": {**LAYOUT, "field": 3},
        "c": LAYOUT,
    }
    assert [one.is_even for one in read_strategy(write_json(tmp_path / "s.json", items))] == [False, False, True]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ({"a": {**LAYOUT, "tensor_map": [2, -1]}}, r"a: expected axes of dev_matrix \[2, 2\] in tensor_map"),
        ({"a": {**LAYOUT, "dev_matrix": "22"}}, "expected at most 16 numbers in dev_matrix, got 22"),
        ({"a": {**LAYOUT, "dev_matrix": [True]}}, "in dev_matrix, got True"),
        ({"a": {**LAYOUT, "opt_weight_shard_size": -2}}, "expected a number from -1 to"),
        ({"a": {**LAYOUT, "tensor_map": [1, 1]}}, r"each once, got \[1, 1\]"),
        ({"a": {**LAYOUT, "dev_matrix": [4096] * 16}}, "expected at most 4194304 devices in dev_matrix"),
        ({"a": 7}, "expected a strategy file of MindSpore with current_stage"),
        ([1], "expected a strategy file of MindSpore with current_stage"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(items: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message):
        read_strategy(write_json(tmp_path / "s.json", items))


def test_files_that_are_something_else(tmp_path: Path) -> None:
    (tmp_path / "a.ckpt").write_bytes(b"\xff{}")
    with pytest.raises(FormatError, match=r"Name one in JSON \.json"):
        read_strategy(tmp_path / "a.ckpt")
    with pytest.raises(FormatError, match=r"none\.ckpt"):
        read_strategy(tmp_path / "none.ckpt")
