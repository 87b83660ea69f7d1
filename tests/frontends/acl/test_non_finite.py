"""`msdump nan` on an ONNX model with a mask of -Inf, run through ACL: from tensors, from statistics, as overflow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump
from msdump.analysis import find_non_finite

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def attention(folder: Path) -> Path:
    """Scores, a mask of -Inf, a softmax, and the square root of what may be negative."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    nodes = [
        helper.make_node("Where", ["mask", "minus_inf", "x"], ["masked"], "hide"),
        helper.make_node("Softmax", ["masked"], ["weights"], "weigh"),
        helper.make_node("Sub", ["weights", "half"], ["shifted"], "shift"),
        helper.make_node("Sqrt", ["shifted"], ["y"], "root"),
    ]
    constants = {
        "mask": np.array([[False, True, False]]), "minus_inf": np.array(-np.inf, np.float32),
        "half": np.array(0.5, np.float32),
    }  # fmt: skip
    ends = [[helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3])] for name in "xy"]
    graph = helper.make_graph(
        nodes, "net", *ends, [numpy_helper.from_array(array, name) for name, array in constants.items()]
    )
    path = folder / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def dumped(folder: Path, **settings: Any) -> Path:
    root = folder / "dump"
    root.mkdir()
    with msdump.acl.dump({"dump": {"dump_path": str(root), **settings}}):
        msdump.acl.load(attention(folder))({"x": np.ones((2, 3), np.float32)})
    return root


@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_the_mask_is_benign_and_the_square_root_is_named(data: str, tmp_path: Path) -> None:
    report = find_non_finite(dumped(tmp_path, dump_list=[{"model_name": "net"}], dump_mode="all", dump_data=data))
    assert report.first is not None and report.first is report.first_nan
    assert (report.first.operator.op_name, report.first.how) == ("root", "made")
    assert report.first_inf is None
    assert {one.operator.op_name for one in report.benign} == {"hide"}


def test_overflow_detection_names_the_square_root_alone(tmp_path: Path) -> None:
    root = dumped(tmp_path, dump_debug="on")
    assert {tensor.op_name for tensor in msdump.open(root).tensors()} == {"root"}
