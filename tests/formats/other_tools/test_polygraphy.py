"""Results that Polygraphy saved: runs, iterations and arrays, and what is no such JSON."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import msdump
from msdump.errors import FormatError
from msdump.formats.other_tools.polygraphy import is_polygraphy, read_polygraphy

GOLDEN = Path(__file__).parents[2] / "golden" / "other_tools" / "polygraphy"


def decoded(entry: dict[str, Any]) -> np.ndarray:
    text = entry["values"]["array"] if "values" in entry else entry["array"]
    array: np.ndarray = np.load(io.BytesIO(base64.b64decode(text)))
    return array


def test_results_are_steps_with_the_arrays_of_the_file() -> None:
    (run,) = json.loads((GOLDEN / "outputs.json").read_text())["lst"]
    dump = msdump.open(GOLDEN / "outputs.json")
    found = {(tensor.iteration, tensor.op_name): tensor for tensor in dump}
    assert len(found) == 4
    for number, iteration in enumerate(run[1]):
        for name, entry in iteration["outputs"].items():
            tensor = found.pop((number, name))
            assert (tensor.model, tensor.rank_id, tensor.graph_id) == (run[0], None, None)
            assert np.array_equal(tensor.load(), decoded(entry))
            assert tensor.shape == (2, 3)
            assert tensor.size_bytes == 24
    assert not found
    assert [tensor.op_name for tensor in dump.tensors(iteration=1)] == ["root", "/block/norm:0"]


def test_a_folder_of_iterations_holds_what_one_file_does() -> None:
    for file, folder in (("outputs.json", "folder"), ("inputs.json", "infolder")):
        sides = [
            [(tensor.iteration, tensor.op_name, tensor.load().tolist()) for tensor in msdump.open(GOLDEN / path)]
            for path in (file, folder)
        ]
        assert sides[0] == sides[1]
        assert {iteration for iteration, _, _ in sides[0]} == {0, 1}


def test_two_runners_are_two_graphs() -> None:
    tensors = list(msdump.open(GOLDEN / "two_runners.json"))
    assert [tensor.graph_id for tensor in tensors] == [0, 0, 1, 1]
    assert len({tensor.model for tensor in tensors}) == 2


def test_other_json_is_none_of_it(tmp_path: Path) -> None:
    for text in ("{}", "[]", '{"lst": []}', '{"x": {"array": [1]}}', "", '{"data": {}, "task": "statistics"}'):
        (tmp_path / "x.json").write_text(text)
        assert not is_polygraphy(str(tmp_path / "x.json"))
        assert list(msdump.open(tmp_path).files()) == []
        assert msdump.open(tmp_path).damaged == []


def test_a_file_that_was_cut_is_named(tmp_path: Path) -> None:
    content = (GOLDEN / "outputs.json").read_bytes()
    for size in range(600, len(content) - 1, 97):
        (tmp_path / "x.json").write_bytes(content[:size])
        with pytest.raises(FormatError, match=r"x\.json"):
            read_polygraphy(str(tmp_path / "x.json"))
    dump = msdump.open(tmp_path)
    assert list(dump) == []
    assert "cut off" in str(dump.damaged[0][1])


@pytest.mark.parametrize("entry", [{"tensor": "AAAA"}, {"values": 3}, {"array": "!!!"}, {"array": "AAAA"}, None])
def test_what_is_no_array_is_a_problem(tmp_path: Path, entry: Any) -> None:
    content = json.loads((GOLDEN / "inputs.json").read_text())
    content[0]["y"] = entry
    (tmp_path / "x.json").write_text(json.dumps(content))
    held = read_polygraphy(str(tmp_path / "x.json"))
    assert len(held.members) == 2
    assert "x.json, y: expected" in str(held.problems[0])


@given(st.integers(0, 1000), st.binary(min_size=1, max_size=4))
def test_damaged_bytes_give_tensors_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, place: int, put: bytes
) -> None:
    content = (GOLDEN / "inputs.json").read_bytes()
    path = tmp_path_factory.mktemp("p") / "x.json"
    path.write_bytes(content[:place] + put + content[place + len(put) :])
    dump = msdump.open(path)
    for tensor in dump:
        tensor.load()
    assert all(str(path) in str(error) for _, error in dump.damaged)
