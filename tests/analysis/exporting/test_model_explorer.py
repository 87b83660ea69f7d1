"""Model Explorer: the nodes are the operators, edges join them, and overlays give them numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msdump.analysis.exporting import export
from tests.analysis.exporting.conftest import HOSTILE


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def test_operators_are_nodes_that_edges_join(nan_dump: Path, tmp_path: Path) -> None:
    _, contents = export(nan_dump, "model-explorer", tmp_path / "x")
    first, *_ = read(tmp_path / "x", "graph")["graphs"]
    nodes = {node["id"]: node for node in first["nodes"]}
    assert len(nodes) == len(first["nodes"])
    step = contents.operators[0].step
    mine = [one for one in contents.operators if one.step == step and not one.operator.is_parameter]
    assert first["id"] == str(step) and len([one for one in nodes if one.startswith("operator ")]) == len(mine)
    (log,) = (node for node in nodes.values() if node["label"] == "Log")
    (edge,) = log["incomingEdges"]
    assert nodes[edge["sourceNodeId"]]["label"] == "BiasAdd" and log["namespace"].endswith("Net")
    assert all(edge["sourceNodeId"] in nodes for node in nodes.values() for edge in node["incomingEdges"])
    (weight,) = (node for node in nodes.values() if node["label"] == "fc1.weight")
    assert weight["namespace"] == "parameters"


def test_overlays_tell_where_the_nan_was_made(nan_dump: Path, tmp_path: Path) -> None:
    export(nan_dump, "model-explorer", tmp_path / "x")
    first = read(tmp_path / "x", "graph")["graphs"][0]
    labels = {node["id"]: node["label"] for node in first["nodes"]}
    health = read(tmp_path / "x", "health")[first["id"]]["results"]
    assert [labels[one] for one, data in health.items() if data["value"] == "not finite made here"] == ["Log"]
    counts = read(tmp_path / "x", "not_finite")[first["id"]]["results"]
    assert next(data["value"] for one, data in counts.items() if labels[one] == "Log") == 36


def test_two_dumps_have_a_mapping_and_errors(moved_dump: Path, golden_dump_folder: Path, tmp_path: Path) -> None:
    export(moved_dump, "model-explorer", tmp_path / "x", golden_dump_folder)
    mine, golden = (read(tmp_path / "x", name)["graphs"][0] for name in ("graph", "golden"))
    left, right = ({node["id"]: node["label"] for node in graph["nodes"]} for graph in (mine, golden))
    entries = read(tmp_path / "x", "mapping")["mappingEntries"]
    assert entries
    for entry in entries:
        assert [left[one] for one in entry["leftNodeIds"]] == [right[one] for one in entry["rightNodeIds"]]
    errors = read(tmp_path / "x", "error")[mine["id"]]["results"]
    assert max(data["value"] for data in errors.values()) > 0.1


def test_hostile_names_are_text_without_control_characters(hostile_dump: Path, tmp_path: Path) -> None:
    export(hostile_dump, "model-explorer", tmp_path / "x")
    text = (tmp_path / "x" / "graph.json").read_text(encoding="utf-8")
    labels = [node["label"] for graph in json.loads(text)["graphs"] for node in graph["nodes"]]
    assert len(labels) >= len(HOSTILE)
    assert not any(ord(letter) < 32 or letter == "\u202e" for label in labels for letter in label)
