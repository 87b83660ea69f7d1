"""Folders of other tools as dumps: every tensor under a name of its own, by rank and iteration; and nothing that a
reader of dumps owns is read by another rule."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import msdump
from msdump.formats.dump_dir import DumpDir
from msdump.formats.paths import parse
from msdump.formats.paths.parse import BARE, MEMBER, parse_dump_name, parse_msprobe_name

GOLDEN = Path(__file__).parents[2] / "golden"


def save(path: Path, *numbers: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.array(numbers, np.float32))
    return path


def found(path: Path, **selection: Any) -> list[tuple[int | None, int | None, str, list[float]]]:
    dump = msdump.open(path)
    tensors = [
        (tensor.rank_id, tensor.iteration, tensor.op_name, tensor.load().reshape(-1).tolist())
        for tensor in dump.tensors(**selection)
    ]
    assert dump.damaged == []
    return tensors


def test_nested_folders_are_scopes_and_names_sort_as_numbers_do(tmp_path: Path) -> None:
    for name in ("enc/layer.10", "enc/layer.2", "dec/layer.2", "top"):
        save(tmp_path / f"{name}.npy", 1)
    assert [name for _, _, name, _ in found(tmp_path)] == ["top", "dec/layer.2", "enc/layer.2", "enc/layer.10"]


def test_a_nan_is_found_in_each_of_two_folders_with_equal_names(tmp_path: Path) -> None:
    save(tmp_path / "a" / "x.npy", float("nan"))
    save(tmp_path / "b" / "x.npy", 1)
    first = msdump.find_nan(tmp_path).first
    assert first is not None
    assert first.operator.op_name == "a/x"


def test_debug_tensors_of_tensorrt_llm(tmp_path: Path) -> None:
    for rank in (0, 1):
        for iteration in (3, 10):
            save(
                tmp_path / "tllm_debug" / "PP_0" / f"TP_{rank}" / f"iteration_{iteration}" / "a.b.npy", rank, iteration
            )
    assert found(tmp_path) == [
        (rank, iteration, "a.b", [rank, iteration]) for rank in (0, 1) for iteration in (3, 10)
    ]  # fmt: skip
    assert found(tmp_path, rank=1, iteration=10) == [(1, 10, "a.b", [1, 10])]


def test_npy_files_as_tensorrt_llm_writes_them(tmp_path: Path) -> None:
    """Without a byte order in the dtype, and with a blank behind the comma of a single axis."""
    for descr, shape, data in (("f4", "(3, )", np.float32([1, 2, 3])), ("i4", "(1, 2)", np.int32([[4, 5]]))):
        header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}"
        header += " " * (-(len(header) + 11) % 16) + "\n"
        content = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + data.tobytes()
        (tmp_path / "PP_1" / "TP_1" / "iteration_2").mkdir(parents=True, exist_ok=True)
        (tmp_path / "PP_1" / "TP_1" / "iteration_2" / f"{descr}.npy").write_bytes(content)
    assert found(tmp_path) == [(None, 2, "f4", [1, 2, 3]), (None, 2, "i4", [4, 5])]


def test_a_dumper_s_files_of_sglang(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    folder = tmp_path / "dump_20260101_120000_123456"
    folder.mkdir()
    index = 0
    for step in (0, 1):
        for rank in (0, 1):
            for layer in (10, 2, 2):
                index += 1
                tags = {"step": step, "rank": rank, "dump_index": index, "name": "attn", "layer_id": layer}
                name = "___".join(f"{key}={value}" for key, value in tags.items())
                value = torch.tensor([float(index)])
                torch.save({"value": value, "meta": {**tags, "sizes": torch.ones(1)}}, folder / f"{name}.pt")
    tensors = found(tmp_path)
    assert [one[:3] for one in tensors[:3]] == [
        (0, 0, "attn/layer_id=10"), (0, 0, "attn/layer_id=2"), (0, 0, "attn/layer_id=2#2"),
    ]  # fmt: skip
    assert sorted(one[3][0] for one in tensors) == list(range(1, 13))
    assert Counter(one[:2] for one in tensors) == {(rank, step): 3 for rank in (0, 1) for step in (0, 1)}


def test_passes_of_sglang_s_hooks(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for rank in (0, 1):
        folder = tmp_path / f"TP{rank}_PP0_Rank{rank}_pid5{rank}"
        folder.mkdir()
        for number in (0, 1):
            torch.save({"model.b": torch.ones(1), "model.a": [torch.zeros(1)]}, folder / f"Pass{number:05d}.pt")
    assert [one[:3] for one in found(tmp_path)] == [
        (rank, number, name) for rank in (0, 1) for number in (0, 1) for name in ("model.b", "model.a/0")
    ]


def test_shards_go_together_and_equal_names_get_that_of_their_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "model-1-of-2.npz", a=np.ones(1))
    np.savez(tmp_path / "model-2-of-2.npz", b=np.ones(1))
    assert [name for _, _, name, _ in found(tmp_path)] == ["a", "b"]
    np.savez(tmp_path / "other.npz", a=np.zeros(1))
    assert [name for _, _, name, _ in found(tmp_path)] == ["model-1-of-2/a", "model-2-of-2/b", "other/a"]


def test_inputs_and_outputs_of_a_module_are_one_operator(tmp_path: Path) -> None:
    arrays: Any = {"fc.input": np.ones(1), "fc.output": np.zeros(1), "fc": np.full(1, 2.0)}
    np.savez(tmp_path / "x.npz", **arrays)
    tensors = [(tensor.op_name, tensor.io, tensor.load()[0]) for tensor in msdump.open(tmp_path)]
    assert tensors == [("fc", "input", 1), ("fc", "output", 0), ("fc#2", "output", 2)]


def test_a_file_alone_is_a_dump(tmp_path: Path) -> None:
    np.savez(tmp_path / "step_4.npz", a=np.ones(1))
    assert found(tmp_path / "step_4.npz") == [(None, 4, "a", [1])]


def test_a_tree_like_msprobe_s_without_its_records_is_anyone_s(tmp_path: Path) -> None:
    (tmp_path / "step3" / "rank1").mkdir(parents=True)
    np.savez(tmp_path / "step3" / "rank1" / "acts.npz", a=np.ones(1))
    assert found(tmp_path) == [(1, 3, "a", [1])]


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(["a", "rank_1", "step_3", "x.output"]), max_size=2),
            st.sampled_from(["t", "t.output", "u.input.1", "step3", "u_step3"]),
            st.sampled_from(["npy", "npz"]),
        ),
        unique_by=str,
        min_size=1,
        max_size=6,
    )
)
@example([(["x.output"], "step3", "npz"), (["step_3", "x.output"], "t", "npy")])
def test_no_tensor_hides_another(files: list[tuple[list[str], str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, (parts, stem, suffix) in enumerate(files):
            path = Path(folder, *parts)
            path.mkdir(parents=True, exist_ok=True)
            if suffix == "npy":
                np.save(path / f"{stem}.npy", np.float32(number))
            else:
                np.savez(path / f"{stem}.npz", t=np.float32(number))
        dump = msdump.open(folder)
        assert sorted(float(tensor.load()) for tensor in dump) == list(range(len(files)))
        places = Counter((tensor.rank_id, tensor.iteration, tensor.op_name, tensor.io, tensor.slot) for tensor in dump)
        assert set(places.values()) == {1}


# -- what readers of dumps own ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tree", ["sync", "msprobe", "torchair", "opdebug", "msaccucmp", "graph"])
def test_no_file_of_a_dump_is_read_by_another_rule(tree: str) -> None:
    dump = DumpDir.open(GOLDEN / tree)
    for folder in dump.folders():
        known = parse_msprobe_name if folder.levels.grammar == parse.MSPROBE else parse_dump_name
        for file in dump._files_of(folder):
            assert file.form != MEMBER
            name = known(file.original_name)
            assert name is not None
            assert name.is_bare or file.name == name
            assert file.levels == folder.levels


@pytest.mark.parametrize(
    "folder",
    ["rank_0/Net/0/3", "rank_0/Net/0/constants", "20260101120000/0/Net/1/3", "worldsize2_global_rank1/graph_0/3"],
)
def test_files_of_other_tools_in_the_folders_of_a_dump_stay_foreign(tmp_path: Path, folder: str) -> None:
    where = tmp_path / folder
    where.mkdir(parents=True)
    name = "Add.Add-op1.0.0.1700000000000000.output.0.DefaultFormat.npy"
    save(where / name, 1)
    np.savez(where / "x.npz", a=np.ones(1))
    dump = msdump.open(tmp_path)
    assert [Path(file.path).name for file in dump.files()] == [name]
    assert [Path(path).name for path in dump.foreign] == ["x.npz"]


def test_a_name_of_a_dump_keeps_its_meaning_in_any_folder(tmp_path: Path) -> None:
    save(tmp_path / "rank_0" / "Add.Add-op1.0.0.1700000000000000.input.1.DefaultFormat.npy", 1)
    save(tmp_path / "sub" / "relu.0.1700000000000000.npy", 1)
    files = {file.op_name: file for file in msdump.open(tmp_path).files()}
    assert files["Add-op1"].op_type == "Add"
    assert files["relu"].timestamp_us == 1700000000000000
    assert {file.levels.grammar for file in files.values()} == {BARE}
