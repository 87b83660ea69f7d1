"""Golden tensors in another axis order than mine, and device formats against them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.analysis.msaccucmp.align import FusionOrigin, align
from msdump.analysis.msaccucmp.sides import DUMP, NPY, open_side
from msdump.tensors import device_layouts
from tests.analysis.msaccucmp.accuracy_dumps import compare, dump, golden_npy, op_json, result, write_json

Array = np.ndarray[Any, np.dtype[Any]]
ORDERS = ("NCHW", "NHWC", "HWCN")


@pytest.fixture
def tmp_path(plain_path: Path) -> Path:
    """msaccucmp takes no other paths."""
    return plain_path


def numbers(shape: tuple[int, ...]) -> Array:
    """No two elements are equal."""
    return np.arange(1, math.prod(shape) + 1, dtype=np.float32).reshape(shape)


def in_order(image: Array, order: str) -> Array:
    return np.ascontiguousarray(device_layouts.transpose_host(image, "NCHW", order))


@pytest.mark.parametrize("golden_order", ORDERS)
@pytest.mark.parametrize("form", ["NCHW", "NC1HWC0", "FRACTAL_Z"])
@pytest.mark.parametrize("declared", [*ORDERS, None])
def test_the_golden_order_is_found(tmp_path: Path, form: str, golden_order: str, declared: str | None) -> None:
    """TensorFlow's NHWC against a dump of a device; the json may tell either order, or none."""
    image = numbers((2, 3, 4, 5))
    mine = dump(tmp_path / "mine", {"Conv2D_c": {("output", 0): image}}, form)
    golden = golden_npy(tmp_path / "golden", {("conv", 0): in_order(image, golden_order)})
    fusion = write_json(tmp_path / "f.json", [op_json("Conv2D_c", "Conv2D", [], [("conv", 0)], form=declared)])
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-out", tmp_path / "out") == 0
    (row,) = result(tmp_path / "out")
    assert (row["CosineSimilarity"], row["MaxAbsoluteError"], row["CompareFailReason"]) == ("1.000000", "0.000000", "")
    assert row["Shape"] == str(list(in_order(image, golden_order).shape)).replace(" ", "")


@given(
    st.tuples(*[st.integers(1, 5)] * 4),
    st.sampled_from(["NCHW", "NC1HWC0", "FRACTAL_Z"]),
    st.sampled_from(ORDERS),
)
def test_what_the_json_declares_is_believed(
    tmp_path_factory: pytest.TempPathFactory, shape: tuple[int, int, int, int], form: str, order: str
) -> None:
    """Also where the axes are equally long and shapes tell nothing."""
    root = tmp_path_factory.mktemp("align")
    image = numbers(shape)
    mine = open_side(str(dump(root / "mine", {"Conv2D_c": {("output", 0): image}}, form)))
    golden = open_side(str(golden_npy(root / "golden", {("conv", 0): in_order(image, order)})))
    assert (mine.kind, golden.kind) == (DUMP, NPY)
    x, y = mine.find("Conv2D_c", "output", 0), golden.find("conv", "output", 0)
    assert x is not None and y is not None
    both = align(x, y, FusionOrigin(order))
    assert np.array_equal(both.mine.reshape(-1), both.golden.reshape(-1))


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
def test_padding_is_cut_where_no_file_tells_the_channels(tmp_path: Path, order: str) -> None:
    """The device's own files may lack the original shape."""
    from msdump.formats._proto import dump_data_pb2

    image = numbers((1, 3, 4, 5)).astype(np.float16)
    mine = dump(tmp_path / "mine", {"Conv2D_c": {("output", 0): image}}, "NC1HWC0")
    (path,) = mine.iterdir()
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    message = dump_data_pb2.DumpData.FromString(data[8 : 8 + length])
    message.output[0].ClearField("original_shape")
    header = message.SerializeToString()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data[8 + length :])
    golden = golden_npy(tmp_path / "golden", {("conv", 0): in_order(image, order).astype(np.float32)})
    fusion = write_json(tmp_path / "f.json", [op_json("Conv2D_c", "Conv2D", [], [("conv", 0)], form=order)])
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-out", tmp_path / "out") == 0
    (row,) = result(tmp_path / "out")
    assert row["CosineSimilarity"] == "1.000000" and row["MaxAbsoluteError"] == "0.000000"
    assert row["Shape"] == ("[1,3,4,5]" if order == "NCHW" else "[1,4,5,3]")


@pytest.mark.parametrize(("form", "shape"), [("ND", "[6]"), (None, "[6]"), ("NCHW", "[2,3]")])
def test_axes_without_names_are_shown_as_one(tmp_path: Path, form: str | None, shape: str) -> None:
    mine = dump(tmp_path / "mine", {"Add_a": {("output", 0): numbers((2, 3))}})
    golden = golden_npy(tmp_path / "golden", {("add", 0): numbers((6,))})
    fusion = write_json(tmp_path / "f.json", [op_json("Add_a", "Add", [], [("add", 0)], form=form)])
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-out", tmp_path / "out") == 0
    (row,) = result(tmp_path / "out")
    assert (row["Shape"], row["MaxAbsoluteError"]) == (shape, "0.000000")


def test_an_empty_tensor_keeps_its_shape(tmp_path: Path) -> None:
    mine = dump(tmp_path / "mine", {"Add_a": {("output", 0): numbers((0, 3))}})
    golden = golden_npy(tmp_path / "golden", {("add", 0): numbers((0, 3))})
    fusion = write_json(tmp_path / "f.json", [op_json("Add_a", "Add", [], [("add", 0)], form="ND")])
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-alg", "0", "-out", tmp_path / "out") == 0
    (row,) = result(tmp_path / "out")
    assert (row["Shape"], row["CosineSimilarity"]) == ("[0,3]", "1.0")


def test_a_larger_batch_of_mine_is_cut_and_a_smaller_one_refused(tmp_path: Path) -> None:
    image = numbers((4, 3, 2, 5))
    mine = open_side(str(dump(tmp_path / "mine", {"Conv2D_c": {("output", 0): image}}, "NC1HWC0")))
    golden = open_side(str(golden_npy(tmp_path / "golden", {
        ("less", 0): in_order(image[:2], "NHWC"), ("more", 0): in_order(np.concatenate([image, image]), "NHWC"),
    })))  # fmt: skip
    (x,) = mine.of("Conv2D_c")
    (less,), (more,) = golden.of("less"), golden.of("more")
    both = align(x, less, FusionOrigin("NHWC"))
    assert np.array_equal(both.mine, less.load())
    with pytest.raises(AnalysisError) as refused:
        align(x, more, FusionOrigin("NHWC"))
    assert refused.value.code == ExitCode.INVALID_SHAPE


def test_an_own_converter_wins(tmp_path: Path) -> None:
    scripts = tmp_path / "custom/format_convert"
    scripts.mkdir(parents=True)
    (scripts / "convert_NC1HWC0_to_NCHW.py").write_text(
        "def convert(shape_from, shape_to, array):\n    import numpy as np\n    return np.zeros(shape_to, np.float32)\n"
    )
    image = numbers((1, 3, 4, 5))
    mine = dump(tmp_path / "mine", {"Conv2D_c": {("output", 0): image}}, "NC1HWC0")
    golden = golden_npy(tmp_path / "golden", {("conv", 0): np.zeros_like(image)})
    fusion = write_json(tmp_path / "f.json", [op_json("Conv2D_c", "Conv2D", [], [("conv", 0)])])
    arguments = ("-m", mine, "-g", golden, "-f", fusion, "-c", tmp_path / "custom")
    assert compare(*arguments, "-out", tmp_path / "out") == 0
    (row,) = result(tmp_path / "out")
    assert row["MaxAbsoluteError"] == "0.000000"
