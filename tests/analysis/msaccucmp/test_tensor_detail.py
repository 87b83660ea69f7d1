"""Files of msaccucmp compare -op: names, lines with tabs, the largest errors, names that are too long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdump.analysis.msaccucmp.tensor_detail import MAPPING_FILE, Detail, DetailRequest, write_detail
from tests.analysis.msaccucmp.accuracy_dumps import compare, dump, golden_npy, op_json, write_json

Array = np.ndarray[Any, np.dtype[Any]]
X = np.random.default_rng(11).standard_normal((2, 3)).astype(np.float32)
HEADER = "Index,N C H W,NPUDump,GroundTruth,AbsoluteError,RelativeError"
# Of msaccucmp for the same tensors.
LINES = [
    "0,0 0 0 0,0.102578\t,1.102578\t,1.000000\t,0.906965\t",
    "1,0 1 0 0,4.079243\t,5.079243\t,1.000000\t,0.196880\t",
    "2,0 2 0 0,3.674163\t,4.674163\t,1.000000\t,0.213942\t",
    "3,1 0 0 0,-1.530921\t,-0.530921\t,1.000000\t,1.883519\t",
    "4,1 1 0 0,-0.893909\t,0.106091\t,1.000000\t,9.425831\t",
    "5,1 2 0 0,-1.582153\t,-0.582153\t,1.000000\t,1.717763\t",
]


@pytest.fixture
def tmp_path(plain_path: Path) -> Path:
    """msaccucmp takes no other paths."""
    return plain_path


def lines(path: Path) -> list[str]:
    text = path.read_text()
    assert text.endswith("\n")
    return text.split("\n")[:-1]


@pytest.mark.parametrize("tensor", [("-o", "0"), ()])
def test_one_tensor_in_detail(tmp_path: Path, tensor: tuple[str, ...]) -> None:
    """Without -o and -i it is output 0."""
    mine = dump(tmp_path / "mine", {"Add_add": {("output", 0): X * 3}})
    golden = golden_npy(tmp_path / "golden", {("net/add", 0): X * 3 + 1})
    fusion = write_json(
        tmp_path / "f.json", [op_json("Add_add", "Add", [], [("net/add", 0)], names=["net/mul", "net/add"])]
    )
    out = tmp_path / "out"
    arguments = ("-m", mine, "-g", golden, "-f", fusion, "-op", "Add_add", *tensor, "-n", "2", "-out", out)
    assert compare(*arguments) == 0
    assert {path.name for path in out.iterdir()} == {
        "Add_add_output_0.npy", "Add_add_output_0_0.csv", "Add_add_output_0_summary.txt",
        "Add_add_output_0_absolute_error_topn.csv", "Add_add_output_0_relative_error_topn.csv",
    }  # fmt: skip
    assert np.array_equal(np.load(out / "Add_add_output_0.npy"), X * 3)
    assert lines(out / "Add_add_output_0_0.csv") == [HEADER, *LINES]
    assert lines(out / "Add_add_output_0_relative_error_topn.csv") == [HEADER, LINES[4], LINES[3]]
    assert lines(out / "Add_add_output_0_summary.txt") == [
        "TotalCount:6", "NPUDump:Add_add", "GroundTruth:net/mul net/add", "Format:N C H W",
        "MinAbsoluteError:1.000000", "MaxAbsoluteError:1.000000",
        "MinRelativeError:0.196880", "MaxRelativeError:9.425831",
    ]  # fmt: skip
    assert compare(*arguments, "--ignore_single_op_result") == 0
    assert not (out / "Add_add_output_0_0.csv").exists()  # an older run's files of that tensor are gone


def test_two_dumps_without_a_json(tmp_path: Path) -> None:
    sides = [
        dump(tmp_path / name, {"Add_add": {("input", 0): array, ("output", 0): array}})
        for name, array in (("a", X), ("b", X + 1))
    ]
    out = tmp_path / "out"
    assert compare("-m", sides[0], "-g", sides[1], "-op", "Add_add", "-i", "0", "-out", out) == 0
    assert "GroundTruth:Add_add" in lines(out / "Add_add_input_0_summary.txt")


def test_device_tensors_are_listed_by_n_c_h_w(tmp_path: Path) -> None:
    image = np.arange(24, dtype=np.float32).reshape(1, 3, 4, 2)
    mine = dump(tmp_path / "mine", {"Conv2D_c": {("output", 0): image}}, "NC1HWC0")
    golden = golden_npy(tmp_path / "golden", {("conv", 0): np.ascontiguousarray(image.transpose(0, 2, 3, 1))})
    fusion = write_json(tmp_path / "f.json", [op_json("Conv2D_c", "Conv2D", [], [("conv", 0)], form="NHWC")])
    out = tmp_path / "out"
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-op", "Conv2D_c", "-out", out) == 0
    rows = lines(out / "Conv2D_c_output_0_0.csv")
    assert rows[0] == HEADER and rows[9] == "8,0 1 0 0,8.000000\t,8.000000\t,0.000000\t,0.000000\t"
    assert np.load(out / "Conv2D_c_output_0.npy").shape == (1, 3, 4, 2)


def written(
    folder: Path, mine: Array, golden: Array, request: DetailRequest, name: str = "op_output_0"
) -> dict[str, list[str]]:
    detail = Detail(name, "Op.op.1.0.1700000000000000", ("op", "op"), "ND", mine, golden)
    return {path.name: lines(path) for path in write_detail(folder, detail, request) if path.suffix != ".npy"}


def test_numbers_that_are_none_are_dashes(tmp_path: Path) -> None:
    mine = np.array([1, np.nan, np.inf, 2, 0], np.float32)
    golden = np.array([0, 1, 1, 2.5, 0], np.float32)
    files = written(tmp_path, mine, golden, DetailRequest(3))
    assert [line.split(",", 2)[2] for line in files["op_output_0_0.csv"][1:]] == [
        "1.000000\t,0.000000\t,1.000000\t,-",
        "nan\t,1.000000\t,nan\t,-",
        "inf\t,1.000000\t,nan\t,-",
        "2.000000\t,2.500000\t,0.500000\t,0.200000\t",
        "0.000000\t,0.000000\t,0.000000\t,-",
    ]
    top = files["op_output_0_absolute_error_topn.csv"][1:]
    assert top[:2] == [
        "0,0 0 0 0,1.000000\t,0.000000\t,1.000000\t,-\t",
        "3,3 0 0 0,2.000000\t,2.500000\t,0.500000\t,0.200000\t",
    ]
    assert "MaxRelativeError:0.200000" in files["op_output_0_summary.txt"]


def test_bool_tensors_have_no_errors(tmp_path: Path) -> None:
    files = written(tmp_path, np.array([True, False]), np.array([True, True]), DetailRequest(1))
    assert files["op_output_0_0.csv"][1:] == ["0,0 0 0 0,True\t,True\t,-\t,-", "1,1 0 0 0,False\t,True\t,-\t,-"]
    assert files["op_output_0_absolute_error_topn.csv"][1:] == ["0,0 0 0 0,True\t,True\t,-\t,-\t"]
    assert "MaxAbsoluteError:-" in files["op_output_0_summary.txt"]


@pytest.mark.parametrize(("shape", "axes"), [((), "ID"), ((1, 1), "N C H W")])
def test_a_scalar_has_one_axis(tmp_path: Path, shape: tuple[int, ...], axes: str) -> None:
    array = np.full(shape, 2.5, np.float32)
    mine = dump(tmp_path / "mine", {"Add_add": {("output", 0): array}})
    golden = golden_npy(tmp_path / "golden", {("net/add", 0): array})
    fusion = write_json(tmp_path / "f.json", [op_json("Add_add", "Add", [], [("net/add", 0)])])
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-op", "Add_add", "-out", tmp_path / "out") == 0
    rows = lines(tmp_path / "out/Add_add_output_0_0.csv")
    assert rows == [HEADER.replace("N C H W", axes), "0,0 0 0 0,2.500000\t,2.500000\t,0.000000\t,0.000000\t"]
    assert np.load(tmp_path / "out/Add_add_output_0.npy").shape == (1,)


def test_integers_do_not_wrap_around(tmp_path: Path) -> None:
    files = written(tmp_path, np.array([3], np.uint8), np.array([5], np.uint8), DetailRequest())
    assert files["op_output_0_0.csv"][1:] == ["0,0 0 0 0,3.000000\t,5.000000\t,2.000000\t,0.400000\t"]


@pytest.mark.parametrize(("size", "top", "expected"), [(6, 20, 5), (6, 6, 6), (6, 2, 2), (1, 20, 1), (0, 20, 0)])
def test_fewer_elements_than_rows(tmp_path: Path, size: int, top: int, expected: int) -> None:
    mine = np.arange(size, dtype=np.float32)
    files = written(tmp_path, mine, np.zeros_like(mine), DetailRequest(top))
    places = [line.split(",")[0] for line in files["op_output_0_absolute_error_topn.csv"][1:]]
    assert places == [str(place) for place in range(size)][::-1][:expected]


def test_long_names_are_told_in_a_mapping(tmp_path: Path) -> None:
    name = f"{'x' * 250}_output_0"
    files = written(tmp_path, X, X, DetailRequest(), name)
    short = "Op_op_1_0_1700000000000000_output_0"
    assert {f"{short}_0.csv", f"{short}_summary.txt"} <= set(files)
    mapping = lines(tmp_path / MAPPING_FILE)
    assert f"{short}.npy,{name}.npy" in mapping and f"{short}_0.csv,{name}_0.csv" in mapping
    again = written(tmp_path, X, X, DetailRequest(has_elements=False), name)
    assert f"{short}_0.csv" not in {path.name for path in tmp_path.iterdir()} and set(again) < set(files)
    assert len(lines(tmp_path / MAPPING_FILE)) == len(mapping) - 1
