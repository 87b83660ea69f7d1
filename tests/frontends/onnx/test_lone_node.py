"""One operator of a model alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402

from msdump.errors import ConfigError  # noqa: E402
from msdump.frontends.onnx.lone_node import ModelNodes  # noqa: E402
from tests.frontends.onnx.models import model_of, value  # noqa: E402

node = helper.make_node
X = np.array([[1.5, -2.0], [0.25, 3.0]], np.float32)


def nodes_of(*nodes: Any, **constants: Any) -> ModelNodes:
    made = [onnx.ValueInfoProto(name=name) for each in nodes for name in each.output if name]
    return ModelNodes(model_of(nodes, [value("x", np.float32, (2, 2))], made, constants), "net.onnx")


def test_constants_are_those_of_the_dump_where_it_holds_them() -> None:
    nodes = nodes_of(node("Add", ["x", "w"], ["y"], name="add"), w=np.ones((2, 2), np.float32))
    add = nodes.find(["add"], "Add")
    assert (nodes.operands(add), nodes.results(add)) == (("x", "w"), ("y",))
    np.testing.assert_array_equal(nodes.lone(add, {"x": X}).run({"x": X})[0], X + 1)
    lone = nodes.lone(add, {"x": X, "w": X})
    assert lone.feeds == ("x",)
    np.testing.assert_array_equal(lone.run({"x": X})[0], X + X)
    np.testing.assert_array_equal(lone.run_reference({"x": X})[0], X + X)


def test_another_precision_is_that_of_attributes_too() -> None:
    half = X.astype(np.float16)
    fill = helper.make_tensor("v", TensorProto.FLOAT16, [1], [0.5])
    nodes = nodes_of(
        node("Cast", ["x"], ["half"], name="cast", to=TensorProto.FLOAT16),
        node("ConstantOfShape", ["shape"], ["full"], name="full", value=fill),
        node("Shape", ["x"], ["sizes"], name="shape"),
        shape=np.array([2]),
    )
    for precision, dtype in (("", np.float16), ("float32", np.float32), ("float64", np.float64)):
        for name, arrays in (("cast", {"x": half}), ("full", {})):
            each = nodes.find([name], "")
            assert nodes.lone(each, arrays, precision).run(arrays)[0].dtype == dtype
    shape = nodes.find(["shape"], "Shape")
    assert nodes.lone(shape, {"x": X}, "float64").run({"x": X})[0].dtype == np.int64


def test_a_node_goes_by_every_name_that_a_dump_has_for_it() -> None:
    nodes = nodes_of(node("Abs", ["x"], ["y"], name="a/b.c:1"), node("Neg", ["x"], ["z"], name="a_b"))
    for name in ("a/b.c:1", "a_b_c:1", "a_b_c_1"):
        assert nodes.find([name], "Abs").op_type == "Abs"
    assert nodes_of(node("Abs", ["x"], ["y"])).find(["op1"], "Abs").op_type == "Abs"
    alike = nodes_of(node("Abs", ["x"], ["y"], name="a/b"), node("Abs", ["x"], ["z"], name="a.b"))
    assert alike.find(["a.b"], "Abs").proto.output[0] == "z"
    with pytest.raises(ConfigError, match="got 2 whose names files of a dump spell alike"):
        alike.find(["a_b"], "Abs")
    with pytest.raises(ConfigError, match="without an operator c"):
        alike.find(["c"], "Abs")


def test_bodies_are_looked_into() -> None:
    body = helper.make_graph([node("RandomNormalLike", ["x"], ["r"])], "b", [], [onnx.ValueInfoProto(name="r")])
    nodes = nodes_of(node("If", ["c"], ["y"], name="if", then_branch=body, else_branch=body), c=np.bool_(True))
    with pytest.raises(ConfigError, match="RandomNormalLike: it draws random numbers"):
        nodes.lone(nodes.find(["if"], "If"), {"x": X})


def test_the_model_of_a_script_takes_what_npy_files_hold() -> None:
    nodes = nodes_of(node("Cast", ["x"], ["y"], name="cast", to=TensorProto.BFLOAT16))
    lone = nodes.lone(nodes.find(["cast"], "Cast"), {"x": X})
    made = lone.run({"x": X})[0]
    model, feeds, results = lone.script_model([made.dtype.name])
    assert feeds == ("x",) and results == ("y_wide",)
    (cast,) = (each for each in onnx.load_from_string(model).graph.node if each.output[0] == "y_wide")
    assert cast.attribute[0].i == TensorProto.FLOAT


def test_what_onnxruntime_refuses_is_said_in_a_line() -> None:
    nodes = nodes_of(node("MatMul", ["x", "w"], ["y"], name="mm"), w=np.ones((3, 2), np.float32))
    lone = nodes.lone(nodes.find(["mm"], "MatMul"), {"x": X})
    with pytest.raises(ConfigError, match="onnxruntime refuses it: "):
        lone.run({"x": X})
    with pytest.raises(ConfigError, match=r"onnx\.reference cannot run it: "):
        lone.run_reference({"x": X})
