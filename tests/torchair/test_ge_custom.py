"""Converters that a script registers: what they build, what it computes, and what is said of their mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import msdump.torchair as torchair
from msdump.errors import ConfigError, GraphError
from msdump.process import sessions
from msdump.tensors import dtypes

torch = pytest.importorskip("torch")

from msdump.torchair.ge import registry  # noqa: E402
from msdump.torchair.ge.graph import CONST, DATA, NET_OUTPUT, GeGraph, GeOp  # noqa: E402
from msdump.torchair.ge.registry import NoConverterError  # noqa: E402
from msdump.torchair.graph_dump.emit import graph_text  # noqa: E402
from msdump.torchair.graph_dump.python import python_text  # noqa: E402
from tests.torchair.graph_mode_dumps import backend, files, values  # noqa: E402
from tests.torchair.test_ge_core import compiled  # noqa: E402

ge = torchair.ge
_library = torch.library.Library("msdump_custom", "DEF")
_library.define("my_op(Tensor x, Tensor? y, Tensor[] z, float attr1, int attr2) -> Tensor")
_library.define("halves(Tensor x) -> (Tensor low, Tensor high)")


def _my_op(x: Any, y: Any, z: Any, attr1: float, attr2: int) -> Any:
    return sum(z, x * attr1) + attr2 + (0 if y is None else y)


def _halves(x: Any) -> Any:
    middle = len(x) // 2
    return x[:middle].clone(), x[middle:].clone()


for _name, _function in (("my_op", _my_op), ("halves", _halves)):
    _library.impl(_name, _function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"msdump_custom::{_name}", _function, lib=_library)
my_op, halves = torch.ops.msdump_custom.my_op.default, torch.ops.msdump_custom.halves.default
X = torch.linspace(-1, 1, 6)


@pytest.fixture(autouse=True)
def own_converters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_OWN", {})


def graph_of(function: Any, *inputs: Any) -> GeGraph:
    """Its GE graph, which computes what it computes."""
    graphs: list[GeGraph] = []
    results, expected = compiled(function, graphs)(*inputs), function(*inputs)
    for result, value in zip(*((r if isinstance(r, tuple) else (r,)) for r in (results, expected)), strict=True):
        assert torch.equal(result, value)
    return graphs[0]


def ops_of(graph: GeGraph) -> list[GeOp]:
    return [op for op in graph.ops if op.type not in (DATA, CONST, NET_OUTPUT)]


def call(x: Any) -> Any:
    return my_op(x, None, [x + 1, x], 2.0, 5) * 2


def test_the_converter_of_the_documentation() -> None:
    @torchair.register_fx_node_ge_converter(my_op)
    def convert_npu_my_op(x: Any, y: Any, z: Any, attr1: float, attr2: int) -> Any:
        return torchair.ge.custom_op("MyOp", x, y, z, attr1, attr2)

    graph = graph_of(call, X)
    op = ops_of(graph)[1]
    assert (op.type, op.name) == ("MyOp", "MyOp")
    assert list(op.inputs) == ["x", "y", "z0", "z1"] and op.inputs["y"] is None
    assert op.attrs == {"attr1": 2.0, "attr2": 5}
    assert "MyOp_0 = ge.MyOp(" in python_text(graph) and 'type: "MyOp"' in graph_text(graph)


def test_inputs_attributes_and_outputs_by_name() -> None:
    @torchair.register_fx_node_ge_converter(my_op)
    def convert(x: Any, y: Any, z: Any, attr1: float, attr2: int, meta_outputs: Any = None) -> Any:
        assert (meta_outputs.dtype, meta_outputs.rank, meta_outputs.size) == (ge.DataType.DT_FLOAT, 1, [6])
        assert (x.dtype, x.rank, x.index) == (ge.DataType.DT_FLOAT, 1, 0)
        return ge.custom_op(
            "MyOp",
            inputs={"x": x, "y": y, "dy": z},
            attrs={"rattr": ge.attr.ListInt([1, 2, 3]), "oattr": ge.attr.Float(attr2), "name": ge.attr.Str("n")},
            outputs=["m"],
            node_name="mine",
        )

    op = ops_of(graph_of(call, X))[1]
    assert (op.name, op.output_names) == ("mine", ("m",))
    assert op.attrs == {"rattr": [1, 2, 3], "oattr": 5.0, "name": "n"} and type(op.attrs["oattr"]) is float


@pytest.mark.parametrize("is_swapped", [False, True])
def test_several_outputs(is_swapped: bool) -> None:
    @torchair.register_fx_node_ge_converter(halves)
    def convert(x: Any) -> Any:
        first, second = ge.custom_op("Halves", inputs={"x": x}, outputs=[("part", 2)])
        return (second, first) if is_swapped else (first, second)

    graph = graph_of(lambda x: tuple(part + 1 for part in halves(x)), X[:5])
    assert ops_of(graph)[0].output_names == ("part0", "part1")
    sizes = [tuple(tensor.shape) for tensor in ops_of(graph)[0].outputs]
    assert sizes == ([(3,), (2,)] if is_swapped else [(2,), (3,)])


def test_one_operator_for_each_result() -> None:
    @torchair.register_fx_node_ge_converter(halves)
    def convert(x: Any) -> Any:
        return ge.custom_op("Low", inputs={"x": x}), ge.custom_op("High", inputs={"x": x})

    # Without `outputs` an operator has one for each result of the node.
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="expected output"):
        graph_of(lambda x: halves(x), X)

    @torchair.register_fx_node_ge_converter(halves)
    def convert_again(x: Any) -> Any:
        return tuple(ge.custom_op(name, inputs={"x": x}, outputs=["y"]) for name in ("Low", "High"))

    assert [op.type for op in ops_of(graph_of(lambda x: halves(x), X))] == ["Low", "High"]


def test_operators_that_have_a_kernel_compute() -> None:
    """They replace the converter that there is, and are what an NPU would run."""

    @torchair.register_fx_node_ge_converter(torch.ops.aten.sin.default)
    def convert(self: Any, meta_outputs: Any = None) -> Any:
        x = ge.Clone(ge.Cast(self, dst_type=ge.DataType.DT_DOUBLE), dependencies=[self], node_name="copied")
        two = ge.Const(2, dtype=ge.DataType.DT_DOUBLE, node_name="two")
        product = ge.custom_op("Mul", inputs={"x1": x, "x2": two}, outputs=["y"])
        return ge.Cast(product, dst_type=ge.DataType.DT_FLOAT)

    graphs: list[GeGraph] = []
    assert torch.equal(compiled(lambda x: x.sin(), graphs)(X), X * 2)
    assert [(op.name, op.type) for op in ops_of(graphs[0])] == [
        ("Cast", "Cast"),
        ("copied", "TensorMove"),
        ("Mul", "Mul"),
        ("Cast_1", "Cast"),
    ]
    assert any(op.name == "two" for op in graphs[0].ops)


def test_what_it_read_and_made_is_dumped(own_dump: None, tmp_path: Path) -> None:
    @torchair.register_fx_node_ge_converter(halves)
    def convert(x: Any) -> Any:
        return ge.custom_op("Halves", inputs={"x": x}, outputs=["low", "high"])

    torch.compile(lambda x: halves(x * 3), backend=backend(tmp_path))(X)
    sessions.close_all()
    (of_folder,) = files(tmp_path).values()
    dumped = {key: value for key, value in values(of_folder).items() if key[0] == "Halves"}
    expected = {("input", 0): X * 3, ("output", 0): (X * 3)[:3], ("output", 1): (X * 3)[3:]}
    assert {key[1:] for key in dumped} == set(expected)
    for (_, io, slot), value in dumped.items():
        np.testing.assert_array_equal(value, expected[io, slot].numpy())


@pytest.mark.parametrize("mode", ["max-autotune", "npugraph_ex"])
def test_without_a_ge_graph_no_converter_is_asked(mode: str) -> None:
    @torchair.register_fx_node_ge_converter(torch.ops.aten.sin.default)
    def converter_aten_sin_default(self: Any, meta_outputs: Any = None) -> Any:
        raise NotImplementedError("torch.ops.aten.sin.default ge_converter is not implemented!")

    config = torchair.CompilerConfig()
    config.mode = mode
    function = torch.compile(lambda x: x.sin(), backend=torchair.get_npu_backend(compiler_config=config))
    assert torch.equal(function(X), X.sin())
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=r"sin\.default ge_converter is not"):
        graph_of(lambda x: x.sin(), X)


@pytest.mark.parametrize(
    ("convert", "says"),
    [
        (lambda x: ge.Cast(ge.custom_op("Inner", x), dst_type=0), "has a kernel for, got Inner"),
        (lambda x: ge.custom_op("Inner", x).dtype and None, "has a kernel for, got Inner"),
        (lambda x: [x, ge.custom_op("Unread", x)][0], "does not return"),
        (lambda x: ge.Cast(x, dst_type=ge.DataType.DT_INT32), "its converter gave torch.int32"),
        (lambda x: x + 1, "expected its registered converter to build operators, got TypeError"),
    ],
)
def test_mistakes_are_named(convert: Any, says: str) -> None:
    torchair.register_fx_node_ge_converter(torch.ops.aten.sin.default)(convert)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=says) as caught:
        graph_of(lambda x: x.sin(), X)
    assert "aten.sin.default" in str(caught.value)
    assert isinstance(caught.value.inner_exception, GraphError)


def test_where_it_cannot_be_called() -> None:
    for wrong in (torch.sin, torch.ops.aten.sin, "aten.sin.default"):
        with pytest.raises(ConfigError, match="expected an overload"):
            torchair.register_fx_node_ge_converter(wrong)
    with pytest.raises(ConfigError, match="inside of a converter"):
        ge.custom_op("MyOp")
    with pytest.raises(AttributeError, match="no attribute"):
        _ = ge.nothing
    assert issubclass(NoConverterError, NotImplementedError)


@given(st.sampled_from([row for row in dtypes.TABLE if row.ge_number is not None]))
def test_numbers_are_those_of_the_dtype_table(row: dtypes.Dtype) -> None:
    special = {"float32": "FLOAT", "float64": "DOUBLE", "bfloat16": "BF16"}
    assert ge.DataType(row.ge_number).name == f"DT_{special.get(row.name, row.name.upper())}"


def test_attributes_have_the_type_of_their_name() -> None:
    attr = ge.attr
    assert [attr.Bool(1), attr.Int(True), attr.Float(2), attr.Str("s"), attr.DataType(ge.DataType.DT_BF16)] == [
        True,
        1,
        2.0,
        "s",
        27,
    ]
    assert attr.ListListFloat([[1]]) == [[1.0]] and attr.ListListInt([[True]]) == [[1]]
    assert attr.ListBool([0]) == [False] and attr.ListStr(["a"]) == ["a"] and attr.ListDataType([1]) == [1]
