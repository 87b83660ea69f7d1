"""The bprop of every differentiable primitive of the broad families against central differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from msdump.errors import GraphError
from msdump.graph.graph import Graph
from msdump.graph.primitive import Primitive
from msdump.mindspore.program.autodiff import gradients
from msdump.tensors.arrays import Array
from tests.mindspore.kernels.interpreter import check_gradient, check_graph_gradient, run_graph, type_of

RNG = np.random.default_rng(11)


def reals(*shape: int) -> Array:
    """Away from 0, where Abs and Sign have their corner, and from each other."""
    count = int(np.prod(shape))
    values = (RNG.permutation(count) + 1.0) / (count + 1.0) + 0.25
    return np.asarray((values * RNG.choice([-1.0, 1.0], count)).reshape(shape))


def positive(*shape: int) -> Array:
    return np.abs(reals(*shape))


BINARY = ["Add", "Sub", "Mul", "Div", "RealDiv", "Maximum", "Minimum", "Mod", "FloorMod"]
SHAPES = [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((), ())]


@pytest.mark.parametrize("op_type", BINARY)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_binary(op_type: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    check_gradient(op_type, [reals(*shapes[0]) * 1.7, reals(*shapes[1])])


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_pow(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    check_gradient("Pow", [positive(*shapes[0]), reals(*shapes[1])])


UNARY = ["Neg", "Abs", "Square", "Exp", "Sin", "Cos", "Erf", "Log", "Sqrt", "Rsqrt", "Reciprocal"]


@pytest.mark.parametrize("op_type", UNARY)
@pytest.mark.parametrize("shape", [(), (4,), (2, 3)], ids=str)
def test_unary(op_type: str, shape: tuple[int, ...]) -> None:
    check_gradient(op_type, [positive(*shape) if op_type in ("Log", "Sqrt", "Rsqrt") else reals(*shape)])


def test_select_and_add_n() -> None:
    condition = np.array([[True, False, True], [False, True, False]])
    check_gradient("Select", [condition, reals(2, 3), reals(3)])
    check_gradient("Select", [np.asarray(True), reals(), reals(2, 1)])
    check_gradient("MaskedFill", [reals(2, 3), condition, reals()])
    check_gradient("MaskedFill", [reals(3), condition, reals()])
    check_gradient("AddN", [reals(2, 2), reals(2, 2), reals(2, 2)])


REDUCTIONS: list[Mapping[str, Any]] = [
    {"axis": 1},
    {"axis": (0, -1)},
    {"axis": (0, 2), "keep_dims": True},
    {"axis": ()},
    {"axis": (), "keep_dims": True},
]


@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("attrs", REDUCTIONS, ids=str)
def test_reductions(op_type: str, attrs: Mapping[str, Any]) -> None:
    check_gradient(op_type, [reals(2, 3, 2)], attrs)
    check_gradient(op_type, [reals()], {"keep_dims": attrs.get("keep_dims", False)})


@pytest.mark.parametrize("op_type", ["ArgMaxWithValue", "ArgMinWithValue"])
@pytest.mark.parametrize("attrs", [{"axis": 0}, {"axis": -1, "keep_dims": True}, {"axis": 1}], ids=str)
def test_extreme_with_index(op_type: str, attrs: Mapping[str, Any]) -> None:
    check_gradient(op_type, [reals(3, 4)], attrs, output=1)


def test_equal_extremes_share_the_gradient() -> None:
    graph = Graph()
    x = graph.add_input("x", type_of(np.zeros(3)))
    loss = graph.add_node(Primitive("ReduceMax"), [x], "").outputs[0]
    (gradient,) = gradients(graph, loss, [x])
    assert gradient is not None
    values = run_graph(graph, [np.array([2.0, 1.0, 2.0])])
    assert values[gradient.id].tolist() == [0.5, 0.0, 0.5]


ARRAYS: list[tuple[str, tuple[tuple[int, ...], ...], Mapping[str, Any]]] = [
    ("Reshape", ((2, 3),), {"shape": (3, -1)}),
    ("Flatten", ((2, 3, 2),), {}),
    ("ExpandDims", ((2, 3),), {"axis": 1}),
    ("Squeeze", ((1, 3, 1),), {}),
    ("Transpose", ((2, 3, 4),), {"perm": (2, 0, 1)}),
    ("Concat", ((2, 3), (1, 3)), {}),
    ("Concat", ((2, 3), (2, 1), (2, 2)), {"axis": -1}),
    ("Stack", ((2, 3), (2, 3)), {"axis": 1}),
    ("Unstack", ((3, 2),), {"axis": 1}),
    ("Split", ((4, 3),), {"axis": 0, "output_num": 2}),
    ("Tile", ((2, 3),), {"multiples": (2, 1, 3)}),
    ("Tile", ((2,),), {"multiples": (1,)}),
    ("Tile", ((),), {"multiples": ()}),
    ("BroadcastTo", ((2, 1),), {"shape": (4, -1, 3)}),
    ("Slice", ((4, 3),), {"begin": (1, 0), "size": (2, -1)}),
    ("Pad", ((2, 3),), {"paddings": ((1, 0), (0, 2))}),
    ("StridedSlice", ((5, 4),), {"begin": (1, 0), "end": (4, 4), "strides": (2, 1)}),
    (
        "StridedSlice",
        ((5, 4),),
        {"begin": (-1, 0), "end": (0, 0), "strides": (-2, 1), "end_mask": 1, "shrink_axis_mask": 2},
    ),
    ("CumSum", ((3, 4),), {"axis": 1}),
    ("CumSum", ((3, 4),), {"axis": 0, "exclusive": True}),
    ("CumSum", ((3, 4),), {"axis": 0, "exclusive": True, "reverse": True}),
    ("Depend", ((2, 3), (1,)), {}),
    ("AllReduce", ((2, 3),), {}),
    ("Dropout", ((3, 4),), {"keep_prob": 0.6, "Seed0": 5}),
    ("DropoutGrad", ((3, 4), (3, 4)), {"keep_prob": 0.6}),
]


@pytest.mark.parametrize(("op_type", "shapes", "attrs"), ARRAYS, ids=str)
def test_arrays(op_type: str, shapes: tuple[tuple[int, ...], ...], attrs: Mapping[str, Any]) -> None:
    wrt = [0] if op_type in ("Depend", "DropoutGrad") else None
    check_gradient(op_type, [reals(*shape) for shape in shapes], attrs, wrt=wrt)


def test_gathers() -> None:
    rows = np.array([[0, 2], [2, -1]], np.int32)
    check_gradient("Gather", [reals(4, 3), rows])
    check_gradient("Gather", [reals(2, 4, 3), rows], {"axis": 1})
    check_gradient("Gather", [reals(3, 4), np.array([1, 1], np.int64)], {"axis": -1})
    check_gradient("Gather", [reals(4), np.asarray(2, np.int32)])
    check_gradient("GatherD", [reals(2, 4), np.array([[0, 3, 3], [1, -1, 0]], np.int32)], {"dim": 1})
    check_gradient("GatherD", [reals(2, 4), np.array([[0, 1, 1]], np.int64)], {"dim": 0})


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize(
    ("shape", "format"), [((3, 2, 2, 2), "NCHW"), ((3, 2, 2, 2), "NHWC"), ((5, 2), "NCHW")], ids=str
)
def test_batch_norm(is_training: bool, shape: tuple[int, ...], format: str) -> None:
    attrs = {"is_training": is_training, "format": format, "epsilon": 1e-3}
    check_gradient("BatchNorm", [reals(*shape), reals(2), reals(2), reals(2), positive(2)], attrs, wrt=[0, 1, 2])


@pytest.mark.parametrize(("begin", "params"), [((2,), (3, 2)), ((1,), (3, 2)), ((-1,), (2,))], ids=str)
def test_layer_norm(begin: tuple[int], params: tuple[int, ...]) -> None:
    attrs = {"begin_norm_axis": begin[0], "begin_params_axis": 3 - len(params), "epsilon": 1e-3}
    check_gradient("LayerNorm", [reals(2, 3, 2), reals(*params), reals(*params)], attrs)


@pytest.mark.parametrize("shape", [(2, 4), (2, 4, 3), (1, 4, 2, 2)], ids=str)
def test_group_norm(shape: tuple[int, ...]) -> None:
    check_gradient("GroupNorm", [reals(*shape), reals(4), reals(4)], {"num_groups": 2, "eps": 1e-3})


def test_cast_keeps_the_dtype_of_each_side() -> None:
    graph = Graph()
    x = graph.add_input("x", type_of(np.zeros(3, np.float16)))
    wide = graph.add_node(Primitive("Cast", {"dtype": "float32"}), [x], "").outputs[0]
    loss = graph.add_node(Primitive("ReduceSum"), [wide], "").outputs[0]
    (gradient,) = gradients(graph, loss, [x])
    assert gradient is not None and gradient.type == x.type
    assert run_graph(graph, [np.zeros(3, np.float16)])[gradient.id].tolist() == [1.0, 1.0, 1.0]


def test_cast_of_integers_rounds_gradients_and_ends_behind_a_comparison() -> None:
    graph = Graph()
    number = graph.add_input("n", type_of(np.zeros(3, np.int32)))
    wide = graph.add_node(Primitive("Cast", {"dtype": "float32"}), [number], "").outputs[0]
    scaled = graph.add_node(Primitive("Mul"), [wide, graph.add_constant(np.float32([2.5, 1, 1]), "float32")], "")
    (gradient,) = gradients(graph, graph.add_node(Primitive("ReduceSum"), scaled.outputs, "").outputs[0], [number])
    assert gradient is not None and gradient.type == number.type
    assert run_graph(graph, [np.zeros(3, np.int32)])[gradient.id].tolist() == [2, 1, 1]
    compared = Graph()
    x = compared.add_input("x", type_of(np.zeros(3, np.float32)))
    is_less = compared.add_node(Primitive("Less"), [x, x], "").outputs[0]
    mask = compared.add_node(Primitive("Cast", {"dtype": "float32"}), [is_less], "").outputs[0]
    assert gradients(compared, compared.add_node(Primitive("ReduceSum"), [mask], "").outputs[0], [x]) == [None]


def test_a_value_used_twice_gets_one_sum() -> None:
    """x * x + broadcast x: the gradients meet in one AddN."""
    graph = Graph()
    x = graph.add_input("x", type_of(np.zeros((2, 1))))
    square = graph.add_node(Primitive("Mul"), [x, x], "Default").outputs[0]
    wide = graph.add_node(Primitive("BroadcastTo", {"shape": (2, 3)}), [x], "Default").outputs[0]
    total = graph.add_node(Primitive("Add"), [square, wide], "Default").outputs[0]
    check_graph_gradient(graph, total, [reals(2, 1)], [x])
    assert [node.op_type for node in graph.nodes].count("AddN") == 1


def test_nothing_flows_through_stop_gradient() -> None:
    graph = Graph()
    x = graph.add_input("x", type_of(np.zeros(2)))
    stopped = graph.add_node(Primitive("StopGradient"), [x], "").outputs[0]
    product = graph.add_node(Primitive("Mul"), [x, stopped], "").outputs[0]
    loss = graph.add_node(Primitive("ReduceSum"), [product], "").outputs[0]
    (gradient,) = gradients(graph, loss, [x])
    assert gradient is not None
    assert run_graph(graph, [np.array([3.0, 4.0])])[gradient.id].tolist() == [3.0, 4.0]


STEPS = ["Sign", "Floor", "Ceil", "Round", "Argmax", "IsNan", "ZerosLike", "OnesLike"]


@pytest.mark.parametrize("op_type", STEPS)
def test_steps_have_no_gradient(op_type: str) -> None:
    graph = Graph()
    x = graph.add_input("x", type_of(np.zeros(3)))
    result = graph.add_node(Primitive(op_type), [x], "").outputs[0]
    if result.type.dtype != "float64":
        result = graph.add_node(Primitive("Cast", {"dtype": "float64"}), [result], "").outputs[0]
    loss = graph.add_node(Primitive("ReduceSum"), [result], "").outputs[0]
    assert gradients(graph, loss, [x]) == [None]


def test_an_update_cannot_be_differentiated() -> None:
    graph = Graph()
    x, y = (graph.add_input(name, type_of(np.zeros(3))) for name in "xy")
    result = graph.add_node(Primitive("Assign"), [x, y], "").outputs[0]
    loss = graph.add_node(Primitive("ReduceSum"), [result], "").outputs[0]
    with pytest.raises(GraphError, match="Assign has no gradient rule"):
        gradients(graph, loss, [y])
