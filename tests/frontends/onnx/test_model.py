"""Models run operator by operator: every tensor has the bits that onnxruntime gives it in the whole graph."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from msdump.errors import ConfigError, ExecutionError, FormatError, GraphError
from msdump.frontends.onnx import load_model
from msdump.frontends.onnx.nodes import _constant
from msdump.graph.ir import ir_text
from msdump.graph.listing import order_csv_text
from msdump.graph.pb import model_bytes
from msdump.tensors.packing import pack, unpack
from tests.frontends.onnx import models
from tests.frontends.onnx.models import Recorder, model_of, same_bits, true_values, value

node = helper.make_node
Feeds = dict[str, Any]
RNG = np.random.default_rng(7)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape, np.float32)


CASES: dict[str, tuple[Callable[[], onnx.ModelProto], Callable[[], Feeds]]] = {
    "cnn": (lambda: models.convolutions(np.random.default_rng(0)), lambda: {"data": floats(2, 3, 8, 8)}),
    "if, then": (models.branches, lambda: {"x": abs(floats(2, 300))}),
    "if, else": (models.branches, lambda: {"x": -abs(floats(2, 300))}),
    "loop, scan": (models.loops, lambda: {"x": floats(3), "count": np.array(4)}),
    "optional": (models.optional_outputs, lambda: {"x": floats(2, 4), "rows": floats(3, 2, 4)}),
    "int8": (lambda: models.quantized(np.random.default_rng(0)), lambda: {"x": floats(1, 3, 6, 6)}),
    "names": (models.names, lambda: {"x": floats(2, 20)}),
    "float16": (lambda: models.narrow(onnx.TensorProto.FLOAT16), lambda: {"x": floats(2, 6)}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("optimization", ["all", "none"])
def test_every_value_is_what_onnxruntime_computes(case: str, optimization: str) -> None:
    make, feed = CASES[case]
    model, feeds = make(), feed()
    seen = Recorder()
    outputs = load_model(model, [seen], optimization=optimization).run(feeds)
    truth = true_values(model, feeds, optimization=optimization)
    assert set(truth) == set(seen.by_value)
    for name, expected in truth.items():
        assert same_bits(seen.by_value[name], expected), name
    plain = load_model(model, optimization=optimization).run(feeds)
    assert list(plain) == list(outputs) == [output.name for output in model.graph.output]
    for name in outputs:
        assert same_bits(plain[name], truth[name])
        assert same_bits(outputs[name], truth[name])


def blocks() -> onnx.ModelProto:
    """Convolutions with as many channels as their blocked kernels like, what lies between them, and a mean over all."""
    constants = {"w1": floats(32, 16, 3, 3), "w2": floats(32, 32, 3, 3), "b": floats(32)}
    nodes = [
        node("Conv", ["x", "w1", "b"], ["c1"], name="one", pads=[1] * 4),
        node("Relu", ["c1"], ["r1"], name="relu"),
        node("Conv", ["r1", "w2"], ["c2"], name="two", pads=[1] * 4),
        node("Add", ["c2", "r1"], ["sum"], name="add"),
        node("AveragePool", ["sum"], ["small"], name="pool", kernel_shape=[3, 3], strides=[2, 2]),
        node("GlobalAveragePool", ["small"], ["y"], name="mean"),
    ]
    return model_of(nodes, [value("x", np.float32, [1, 16, 19, 17])], [value("y")], constants)


@pytest.mark.parametrize("optimization", ["all", "none"])
def test_blocked_kernels_are_those_of_the_whole_model(optimization: str) -> None:
    model, feeds, seen = blocks(), {"x": floats(1, 16, 19, 17)}, Recorder()
    load_model(model, [seen], optimization=optimization).run(feeds)
    for name, expected in true_values(model, feeds, optimization=optimization).items():
        assert same_bits(seen.by_value[name], expected), name


def test_the_environment_chooses_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    model, feeds = blocks(), {"x": floats(1, 16, 19, 17)}
    monkeypatch.setenv("MSDUMP_ONNX_OPTIMIZATION", "none")
    assert same_bits(load_model(model).run(feeds)["y"], load_model(model, optimization="none").run(feeds)["y"])
    monkeypatch.setenv("MSDUMP_ONNX_OPTIMIZATION", "")
    assert same_bits(load_model(model).run(feeds)["y"], load_model(model, optimization="all").run(feeds)["y"])
    monkeypatch.setenv("MSDUMP_ONNX_OPTIMIZATION", "some")
    with pytest.raises(ConfigError, match=r"^MSDUMP_ONNX_OPTIMIZATION: expected all .* got 'some'"):
        load_model(model)
    with pytest.raises(ConfigError, match=r"^optimization: "):
        load_model(model, optimization="")


@pytest.mark.parametrize("case", CASES)
def test_operands_are_results_constants_and_inputs(case: str) -> None:
    """What an operator reads is what another has made, before it runs and when the step has ended."""
    make, feed = CASES[case]
    feeds = feed()
    seen = Recorder()
    load_model(make(), [seen]).run(feeds)
    (graph,) = seen.graphs
    known: dict[int, Any] = {v.id: feeds[v.name] for v in graph.handed_in}
    known |= {v.id: v.constant for v in graph.constants}
    for one in (node for node in graph.kernels if node.owner is None):
        assert [same_bits(a, known[v.id]) for a, v in zip(seen.read[one.full_name], one.inputs, strict=True)]
        known.update({v.id: a for v, a in zip(one.outputs, seen.made[one.full_name], strict=True)})
        ends = [*seen.read[one.full_name], *seen.made[one.full_name]]
        assert all(same_bits(a, b) for a, b in zip(seen.kept[one.full_name], ends, strict=True))
        for made in one.outputs:
            assert made.type.dtype == known[made.id].dtype.name
            if -1 not in made.type.shape:
                assert made.type.shape == known[made.id].shape


@pytest.mark.parametrize("case", CASES)
def test_graphs_have_files(case: str) -> None:
    seen = Recorder()
    model = load_model(CASES[case][0](), [seen])
    model.run(CASES[case][1]())
    (graph,) = seen.graphs
    inside = [one.full_name for one in graph.kernels if one.owner is not None]
    order = order_csv_text(graph).splitlines()[1:]
    assert [name for name in order if name not in inside] == list(model.node_names)
    assert len(order) == len(model.node_names) + len(inside)
    assert all(name in ir_text(graph) for name in model.node_names)
    assert model_bytes(graph)


def test_bfloat16_is_shown_as_bfloat16() -> None:
    x = floats(2, 6)
    seen = Recorder()
    outputs = load_model(models.narrow(onnx.TensorProto.BFLOAT16), [seen]).run({"x": x})
    expected = x.astype(ml_dtypes.bfloat16)
    assert same_bits(seen.by_value["narrow"], expected)
    assert same_bits(outputs["wide"], expected.astype(np.float32).reshape(3, 4))


def test_bfloat16_inputs_and_outputs_cross_the_border() -> None:
    number = onnx.TensorProto.BFLOAT16
    model = model_of([node("Identity", ["x"], ["y"])], [value("x", number, [3])], [value("y", number)])
    x = np.array([1.5, -0.0, np.nan], ml_dtypes.bfloat16)
    assert same_bits(load_model(model).run({"x": x})["y"], x)


def test_bfloat16_weights() -> None:
    number = onnx.TensorProto.BFLOAT16
    bits = np.linspace(-2, 2, 2000, dtype=np.float32).astype(ml_dtypes.bfloat16)
    cast = node("Cast", ["w"], ["wide"], name="widen", to=onnx.TensorProto.FLOAT)
    proto = model_of([cast, node("Add", ["wide", "x"], ["y"])], [value("x", np.float32, [1])], [value("y")])
    proto.graph.initializer.add(name="w", data_type=number, dims=[2000], raw_data=bits.tobytes())
    seen = Recorder()
    load_model(proto, [seen]).run({"x": np.zeros(1, np.float32)})
    assert same_bits(seen.read["widen"][0], bits)
    assert same_bits(seen.by_value["wide"], bits.astype(np.float32))


# dtype of a model's input and output, and whether a file of a dump can hold it
NARROW = {
    "int4": (onnx.TensorProto.INT4, True),
    "uint4": (onnx.TensorProto.UINT4, False),
    "float8_e4m3fn": (onnx.TensorProto.FLOAT8E4M3FN, True),
    "float8_e5m2": (onnx.TensorProto.FLOAT8E5M2, True),
    "float8_e4m3fnuz": (onnx.TensorProto.FLOAT8E4M3FNUZ, False),
    "float8_e5m2fnuz": (onnx.TensorProto.FLOAT8E5M2FNUZ, False),
}
if hasattr(onnx.TensorProto, "INT2"):
    NARROW |= {"int2": (onnx.TensorProto.INT2, True), "uint2": (onnx.TensorProto.UINT2, True)}


def opset_of(dtype: str) -> int:
    """The opset of a model with that dtype at its border."""
    return 25 if dtype in ("int2", "uint2") else 21


def narrow_ends(dtype: str, size: int) -> onnx.ModelProto:
    """x becomes float32 and y again; wide = its sum with a weight, which is narrow as well."""
    number = NARROW[dtype][0]
    nodes = [
        node("Cast", ["x"], ["a"], name="widen", to=onnx.TensorProto.FLOAT),
        node("Cast", ["a"], ["y"], name="narrow", to=number, **({"saturate": 0} if "float8" in dtype else {})),
        node("Cast", ["w"], ["b"], name="widen_weight", to=onnx.TensorProto.FLOAT),
        node("Add", ["a", "b"], ["wide"], name="add"),
    ]
    outputs = [value("y", number, [size]), value("wide", np.float32, [size])]
    opset = opset_of(dtype)
    model = model_of(nodes, [value("x", number, [size])], outputs, opset=opset)
    weight = all_codes(dtype, size)[::-1]
    raw = pack(np.ascontiguousarray(weight), dtype).tobytes()
    model.graph.initializer.add(name="w", data_type=number, dims=[size], raw_data=raw)
    model.ir_version = 13 if opset == 25 else 10
    return model


def needs_opset(opset: int) -> None:
    """Skip the test where this onnxruntime has not got as far."""
    model = model_of([node("Identity", ["x"], ["y"])], [value("x")], [value("y")], opset=opset)
    try:
        load_model(model)
    except GraphError as error:
        if f"Opset {opset} is under development" not in str(error):
            raise
        pytest.skip(f"this onnxruntime has no opset {opset}")


def needs(dtype: str) -> None:
    """Skip the test where this onnxruntime has no Cast for a dtype."""
    needs_opset(opset_of(dtype))
    try:
        load_model(narrow_ends(dtype, 1))
    except GraphError as error:
        if "Could not find an implementation" not in str(error):
            raise
        pytest.skip(f"this onnxruntime has no Cast for {dtype}")


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float8_e5m2", "float8_e4m3fnuz"])
@pytest.mark.parametrize("field", ["raw_data", "int32_data"])
def test_narrow_weights_are_read_from_both_places(dtype: str, field: str) -> None:
    """onnx keeps their bytes in one of two fields; old releases of it decode them wrongly."""
    weight = all_codes(dtype, 9)
    raw = pack(weight, dtype)
    proto = onnx.TensorProto(name="w", data_type=NARROW[dtype][0], dims=[9])
    if field == "raw_data":
        proto.raw_data = raw.tobytes()
    else:
        proto.int32_data.extend(raw.tolist())
    assert same_bits(_constant("w", proto).array, weight)
    proto.dims[0] = 90
    with pytest.raises(FormatError, match=r"^initializer w: expected data for shape \[90\]"):
        _constant("w", proto)


def all_codes(dtype: str, size: int) -> Any:
    """Every value of the dtype, over and over."""
    return unpack((np.arange(size) * 37).astype(np.uint8), dtype, [size])


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("size", [1, 7, 1500])
def test_narrow_dtypes_cross_the_border(dtype: str, size: int) -> None:
    """Also an odd number of packed elements, and weights that stay in memory of their own."""
    needs(dtype)
    x, seen = all_codes(dtype, size), Recorder()
    model = load_model(narrow_ends(dtype, size), [seen])
    assert str(model.inputs[0]) == f"{dtype}[{size}]"
    outputs = model.run({"x": x})
    assert outputs["y"].dtype == x.dtype
    assert np.array_equal(outputs["y"].astype(np.float32), x.astype(np.float32), equal_nan=True)
    expected = x.astype(np.float32) + x[::-1].astype(np.float32)
    assert np.array_equal(outputs["wide"], expected, equal_nan=True)
    is_held = NARROW[dtype][1]
    assert ("y" in seen.by_value) == is_held
    assert model.skipped() == ({} if is_held else {f"dtype {dtype}": 3})
    if is_held:
        assert same_bits(seen.by_value["y"], outputs["y"])
        assert same_bits(seen.read["widen"][0], x) and same_bits(seen.read["widen_weight"][0], x[::-1])


def test_dtypes_without_an_array_are_refused_at_the_border() -> None:
    number = getattr(onnx.TensorProto, "FLOAT6E2M3", None)
    if number is None:
        pytest.skip("this onnx has no dtype that the table lacks")
    proto = model_of([node("Identity", ["x"], ["y"])], [value("x", number, [4])], [value("y", number)])
    with pytest.raises((GraphError, FormatError), match=r"float6|FLOAT6"):
        load_model(proto)


def test_float16_rounds_after_every_operator() -> None:
    """In a whole graph onnxruntime may keep float32 between operators that have no float16 kernel."""
    x = floats(2, 20).astype(np.float16)
    seen = Recorder()
    model = models.half()
    load_model(model, [seen]).run({"x": x})
    values = seen.by_value
    added = (values["a"].astype(np.float32) + np.float32(np.float16(0.3))).astype(np.float16)
    assert same_bits(values["c"], added)
    assert same_bits(values["d"], np.maximum(added, np.float16(0)))
    np.testing.assert_allclose(values["y"], true_values(model, {"x": x})["y"], rtol=1e-2)


def test_each_shape_is_a_graph() -> None:
    seen = Recorder()
    model = load_model(models.convolutions(np.random.default_rng(0)), [seen], iter(range(5, 9)))
    for batch in (1, 3, 1):
        assert model.run({"data": floats(batch, 3, 8, 8)})["probability"].shape == (batch, 10)
    assert [graph.graph_id for graph in seen.graphs] == [5, 6]
    assert [graph.nodes[0].outputs[0].type.shape for graph in seen.graphs] == [(1, 8, 8, 8), (3, 8, 8, 8)]
    assert seen.steps == [(5, 0), (6, 1), (5, 2)]


def negative_sizes() -> onnx.ModelProto:
    """Open sizes as Paddle's exporter writes them, -1: at the ends, between operators and in a branch."""
    bodies = {
        f"{name}_branch": helper.make_graph([node(kind, ["h"], [name])], name, [], [value(name, shape=[-1, 3, -1])])
        for name, kind in (("then", "Neg"), ("else", "Abs"))
    }
    nodes = [
        node("Relu", ["x"], ["h"], name="relu"),
        node("If", ["c"], ["z"], name="if", **bodies),
        node("Flatten", ["z"], ["flat"], name="flatten"),
        node("ReduceMax", ["flat"], ["y"], name="max", axes=[1]),
    ]
    inputs = [value("x", np.float32, [-1, 3, -1]), value("c", np.bool_, [])]
    model = model_of(nodes, inputs, [value("y", np.float32, [-1, 1])])
    model.graph.value_info.extend([value("h", np.float32, [-1, 3, -1]), value("flat", np.float32, [-1, -3])])
    return model


@pytest.mark.parametrize("is_true", [True, False])
def test_negative_sizes_are_open(is_true: bool) -> None:
    """Inference that takes -1 for a size makes a flat tensor of -3 or even 3 elements of it."""
    model, seen = negative_sizes(), Recorder()
    before = model.SerializeToString()
    loaded = load_model(model, [seen])
    assert [str(spec) for spec in (*loaded.inputs, *loaded.outputs)] == ["float32[?, 3, ?]", "bool[]", "float32[?, 1]"]
    (relu, _, flatten, _) = (one for one in loaded.graph({}, 0).graph.kernels if one.owner is None)
    assert relu.outputs[0].type.shape == (-1, 3, -1) and flatten.outputs[0].type.shape == (-1, -1)
    feeds = {"x": floats(2, 3, 5), "c": np.array(is_true)}
    outputs = loaded.run(feeds)
    for name, expected in true_values(model, feeds).items():
        assert same_bits(seen.by_value[name], expected), name
    assert loaded.graph({"x": (2, 3, 5)}, 0).values["flat"].type.shape == (2, 15)
    assert same_bits(outputs["y"], load_model(before).run(feeds)["y"])
    assert model.SerializeToString() == before, "the caller's message was changed"


def test_what_only_the_data_decide_is_open() -> None:
    model = model_of(
        [node("NonZero", ["x"], ["y"], name="find")], [value("x", np.float32, [4])], [value("y", np.int64)]
    )
    seen = Recorder()
    found = load_model(model, [seen]).run({"x": np.array([0, 1, 0, 2], np.float32)})
    assert found["y"].tolist() == [[1, 3]]
    assert seen.graphs[0].nodes[0].outputs[0].type.shape == (1, -1)


def test_names_are_unique_and_old_ones_are_known() -> None:
    model = load_model(models.names())
    assert len(set(model.node_names)) == 5
    assert model.node_names[0] == "layer"
    assert model.node_names[-1] == "block.0/relu:0"
    assert set(model.originals) == {"layer", "layer_1"}
    assert model.originals["layer"] == (model.node_names[1],)


def test_fused_operators_know_what_they_stand_for() -> None:
    proto = models.convolutions(np.random.default_rng(0))
    proto.graph.node[0].metadata_props.add(key="_datadump_original_op_names", value='["conv_a", "bn_a"]')
    proto.graph.node[1].metadata_props.add(key="_datadump_original_op_names", value="one, two")
    model = load_model(proto)
    fused = dict.fromkeys(("conv_a", "bn_a"), ("stem/conv",))
    assert model.originals == fused | dict.fromkeys(("one", "two"), ("stem/norm",))


def test_model_name_comes_from_metadata_then_graph(tmp_path: Any) -> None:
    proto = models.names()
    path = tmp_path / "a.file.onnx"
    onnx.save(proto, path)
    model = load_model(path)
    assert (model.file_name, model.model_name) == ("a.file", "small")
    proto.metadata_props.add(key="model_name", value="resnet")
    from_memory = load_model(proto.SerializeToString())
    assert (from_memory.file_name, from_memory.model_name) == ("", "resnet")
    assert from_memory.metadata == {"model_name": "resnet"}


def test_weights_in_files_beside_the_model(tmp_path: Any) -> None:
    proto = models.convolutions(np.random.default_rng(0))
    data = floats(1, 3, 8, 8)
    expected = load_model(proto).run({"data": data})
    path = tmp_path / "big.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="weights", size_threshold=0)
    assert same_bits(load_model(path).run({"data": data})["probability"], expected["probability"])
    (tmp_path / "weights").unlink()
    with pytest.raises(Exception, match=r"big\.onnx: expected its weights in files beside it, got "):
        load_model(path)


def test_local_functions_run_as_their_operators() -> None:
    body = [node("Mul", ["a", "a"], ["s"]), node("Add", ["s", "a"], ["r"])]
    opsets = [helper.make_opsetid("", 17)]
    function = helper.make_function("local", "Square", ["a"], ["r"], body, opsets)
    proto = model_of(
        [node("Square", ["x"], ["y"], domain="local")],
        [value("x", np.float32, [3])],
        [value("y")],
        domains=[("local", 1)],
    )
    proto.functions.append(function)
    x = floats(3)
    seen = Recorder()
    assert same_bits(load_model(proto, [seen]).run({"x": x})["y"], x * x + x)
    assert [one.op_type for one in seen.graphs[0].nodes] == ["Mul", "Add"]


def test_operators_beyond_onnx() -> None:
    """Only onnxruntime knows what they give."""
    nodes = [
        node("FusedMatMul", ["x", "x"], ["m"], name="fused", domain="com.microsoft", transB=1),
        node("Relu", ["m"], ["y"], name="relu"),
    ]
    proto = model_of(nodes, [value("x", np.float32, [2, 3])], [value("y")], domains=[("com.microsoft", 1)])
    x = floats(2, 3)
    seen = Recorder()
    load_model(proto, [seen]).run({"x": x})
    truth = true_values(proto, {"x": x})
    assert all(same_bits(seen.by_value[name], truth[name]) for name in ("m", "y"))
    assert seen.graphs[0].nodes[0].primitive.attrs["domain"] == "com.microsoft"


OPSET_OF_EXPANDED = 27


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < OPSET_OF_EXPANDED, reason="this onnx has no such operators")
@pytest.mark.parametrize("op_type", ["LinearAttention", "CausalConvWithState"])
def test_operators_that_the_runtime_expands_by_their_shapes(op_type: str) -> None:
    """Behind another operator, so that their shapes are inferred."""
    needs_opset(OPSET_OF_EXPANDED)
    if op_type == "LinearAttention":
        names, shape = ["m", "m", "m"], [2, 3, 8]
        operator = node(op_type, names, ["y", "state"], name="it", q_num_heads=2, kv_num_heads=2, update_rule="linear")
        constants: dict[str, Any] = {"two": np.float32(2)}
    else:
        shape = [2, 4, 9]
        operator = node(op_type, ["m", "w"], ["y", "state"], name="it")
        constants = {"two": np.float32(2), "w": floats(4, 1, 3)}
    nodes = [node("Mul", ["x", "two"], ["m"], name="twice"), operator]
    outputs = [value("y"), value("state")]
    proto = model_of(nodes, [value("x", np.float32, shape)], outputs, constants, opset=OPSET_OF_EXPANDED)
    x = floats(*shape)
    truth = true_values(proto, {"x": x})
    seen = Recorder()
    load_model(proto, [seen]).run({"x": x})
    assert all(same_bits(seen.by_value[name], truth[name]) for name in ("m", "y", "state"))


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < OPSET_OF_EXPANDED, reason="this onnx has no such operators")
def test_an_operator_that_needs_shapes_says_so() -> None:
    operator = node("CausalConvWithState", ["x", "w"], ["y", "state"], name="it")
    inputs = [value("x", np.float32, None), value("w", np.float32, None)]
    proto = model_of([operator], inputs, [value("y"), value("state")], opset=OPSET_OF_EXPANDED)
    with pytest.raises(GraphError, match=r"expected operands of known shapes, .* expands CausalConvWithState, got"):
        load_model(proto, []).run({"x": floats(2, 4, 9), "w": floats(4, 1, 3)})


def test_what_is_no_tensor_of_numbers_passes_unseen() -> None:
    nodes = [
        node("SequenceConstruct", ["x", "x"], ["pair"], name="pack"),
        node("SequenceAt", ["pair", "one"], ["y"], name="unpack"),
        node("Identity", ["s"], ["t"], name="text"),
        node("ZipMap", ["x"], ["map"], name="zip", domain="ai.onnx.ml", classlabels_int64s=[7, 8, 9]),
    ]
    sequence = helper.make_tensor_sequence_value_info("pair", onnx.TensorProto.FLOAT, None)
    strings = value("t", onnx.TensorProto.STRING)
    inputs = [value("x", np.float32, [2, 3]), value("s", onnx.TensorProto.STRING, [2])]
    maps = onnx.ValueInfoProto(name="map")
    proto = model_of(
        nodes, inputs, [value("y"), sequence, strings, maps], {"one": np.array(1)}, domains=[("ai.onnx.ml", 3)]
    )
    x = floats(2, 3)
    seen = Recorder()
    model = load_model(proto, [seen])
    outputs = model.run({"x": x, "s": np.array(["AB", "cD"], object)})
    assert same_bits(outputs["y"], x)
    assert [same_bits(item, x) for item in outputs["pair"]] == [True, True]
    assert outputs["t"].tolist() == ["AB", "cD"]
    assert [list(row) for row in outputs["map"]] == [[7, 8, 9]] * 2
    assert [one.full_name for one in seen.graphs[0].nodes] == ["pack", "unpack", "zip"]
    assert model.skipped() == {"sequence": 2, "dtype string": 2}
    assert same_bits(seen.by_value["y"], x)


def test_nothing_is_copied() -> None:
    """Inputs are read in place; weights are those of the graph; what is handed out is not written again."""
    proto = model_of([node("Identity", ["x"], ["y"], name="same")], [value("x", np.float32, [4, 5])], [value("y")])

    class Borrowing(Recorder):
        def before_op(self, event: Any) -> None:
            assert event.inputs[0].ctypes.data == x.ctypes.data

        def after_op(self, event: Any) -> None:
            self.address = event.outputs[0].ctypes.data

    x = floats(4, 5)
    watcher = Borrowing()
    y = load_model(proto, [watcher]).run({"x": x})["y"]
    assert y.ctypes.data == watcher.address
    assert not y.flags.writeable


def test_results_outlive_the_model() -> None:
    found = load_model(models.names()).run({"x": np.ones((2, 20), np.float32)})["y"]
    again = load_model(models.names()).run({"x": np.ones((2, 20), np.float32)})["y"]
    assert same_bits(found, again)


def test_outputs_that_no_operator_makes() -> None:
    proto = model_of(
        [node("Neg", ["x"], ["y"])],
        [value("x", np.float32, [2])],
        [value("x", np.float32, [2]), value("c", np.float32, [1]), value("y")],
        {"c": np.ones(1, np.float32)},
    )
    x = floats(2)
    outputs = load_model(proto, [Recorder()])(x)
    assert same_bits(outputs[0], x)
    assert outputs[0] is not x
    assert outputs[1].tolist() == [1]


def test_empty_and_zero_dimensional_tensors() -> None:
    proto = model_of(
        [node("Concat", ["x", "x"], ["y"], axis=0), node("ReduceSum", ["y"], ["z"], keepdims=0)],
        [value("x", np.float32, ["n", 3])],
        [value("y"), value("z")],
    )
    seen = Recorder()
    found = load_model(proto, [seen]).run({"x": np.empty((0, 3), np.float32)})
    assert found["y"].shape == (0, 3)
    assert (found["z"].shape, float(found["z"])) == ((), 0.0)


def test_inputs_of_any_layout() -> None:
    proto = model_of([node("Neg", ["x"], ["y"])], [value("x", np.float32, [3, 2])], [value("y")])
    x = floats(2, 3).T
    assert same_bits(load_model(proto).run({"x": x})["y"], np.ascontiguousarray(-x))
    assert same_bits(load_model(proto).run({"x": x.astype(">f4")})["y"], np.ascontiguousarray(-x))


def test_models_run_side_by_side() -> None:
    first, second = load_model(models.names()), load_model(models.branches())
    x, z = floats(2, 20), abs(floats(2, 300))
    expected = first.run({"x": x})["y"].copy(), second.run({"x": z})["y"].copy()
    wrong: list[str] = []

    def work() -> None:
        for _ in range(20):
            if not (same_bits(first.run({"x": x})["y"], expected[0]) and same_bits(second(z)[0], expected[1])):
                wrong.append("bits")

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_operator_that_fails_is_named() -> None:
    nodes = [node("Neg", ["x"], ["n"], name="fine"), node("Reshape", ["n", "shape"], ["y"], name="bad")]
    inputs = [value("x", np.float32, ["n"]), value("shape", np.int64, [2])]
    proto = model_of(nodes, inputs, [value("y")])
    seen = Recorder()
    feeds: Mapping[str, Any] = {"x": floats(5), "shape": np.array([2, 2])}
    for model in (load_model(proto), load_model(proto, [seen])):
        with pytest.raises(ExecutionError, match=r"^%bad = Reshape\(n, shape\): expected operands.*\.$"):
            model.run(feeds)
    assert seen.errors == ["bad"]
    assert seen.steps == []
    good = load_model(proto, [seen]).run({"x": floats(4), "shape": np.array([2, 2])})
    assert good["y"].shape == (2, 2)


def test_a_node_onnxruntime_does_not_know_is_named() -> None:
    proto = model_of([node("NoSuchThing", ["x"], ["y"], name="odd")], [value("x", np.float32, [1])], [value("y")])
    with pytest.raises(GraphError, match=r"^%odd = NoSuchThing\(x\): expected an operator that onnxruntime "):
        load_model(proto)


# -- random graphs ------------------------------------------------------------------------------------

_UNARY = ("Relu", "Neg", "Sigmoid", "Tanh", "Exp", "Identity", "Softmax", "Transpose", "Flatten")
_BINARY = ("Add", "Sub", "Mul", "Max", "MatMul", "Where")


@st.composite
def chains(draw: st.DrawFn) -> onnx.ModelProto:
    """Operators on square matrices: any may read any earlier value, any may be an output; names are careless."""
    size = draw(st.integers(1, 20))
    known = ["x", "w"]
    nodes = []
    for at in range(draw(st.integers(1, 8))):
        name = draw(st.sampled_from(["", "a", "b/c", f"n{at}", "v0"]))
        out = f"v{at}"
        if draw(st.booleans()):
            nodes.append(node(draw(st.sampled_from(_UNARY)), [draw(st.sampled_from(known))], [out], name=name))
        else:
            op = draw(st.sampled_from(_BINARY))
            pair = [draw(st.sampled_from(known)), draw(st.sampled_from(known))]
            if op == "Where":
                nodes.append(node("Less", pair, [f"{out}.less"]))
                pair = [f"{out}.less", *pair]
            nodes.append(node(op, pair, [out], name=name))
        known.append(out)
    outputs = draw(st.lists(st.sampled_from(known[2:]), min_size=1, unique=True))
    weight = np.linspace(-1, 1, size * size, dtype=np.float32).reshape(size, size)
    return model_of(nodes, [value("x", np.float32, ["n", size])], [value(name) for name in outputs], {"w": weight})


@settings(max_examples=40, deadline=None)
@given(chains(), st.integers(0, 2**32 - 1))
def test_random_graphs(model: onnx.ModelProto, seed: int) -> None:
    size = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    x = np.random.default_rng(seed).standard_normal((size, size), np.float32)
    truth = true_values(model, {"x": x})
    seen = Recorder()
    watched = load_model(model, [seen])
    plain = load_model(model)
    outputs, alone = watched.run({"x": x}), plain.run({"x": x})
    assert set(seen.by_value) == set(truth)
    assert all(same_bits(seen.by_value[name], expected) for name, expected in truth.items())
    assert all(same_bits(outputs[name], truth[name]) and same_bits(alone[name], truth[name]) for name in outputs)
    assert len(set(watched.node_names)) == len(model.graph.node)
    (graph,) = seen.graphs
    for one in graph.nodes:
        for made in one.outputs:
            assert made.type.shape == truth[made.name].shape
