"""Small models, and what onnxruntime itself computes in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from msdump.graph.graph import Graph
from msdump.graph.run import FinishedStep
from msdump.tensors.arrays import Array
from msdump.tensors.records import AFTER, BEFORE, KEEP, OpEvent

OPSET = 17


def value(name: str, dtype: Any = np.float32, shape: Sequence[int | str | None] | None = None) -> onnx.ValueInfoProto:
    number = dtype if isinstance(dtype, int) else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, number, shape)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: Mapping[str, Any] | None = None,
    opset: int = OPSET,
    name: str = "small",
    domains: Sequence[tuple[str, int]] = (),
) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(np.asarray(array), key) for key, array in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), name, list(inputs), list(outputs), tensors)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(*domain) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def true_values(
    model: onnx.ModelProto, feeds: Mapping[str, Any], without: Sequence[str] = (), optimization: str = "all"
) -> dict[str, Array]:
    """Every tensor that a node of the graph makes, as onnxruntime computes it with all of them as outputs.

    One session for the whole graph. Left alone, onnxruntime makes a BatchNormalization behind a convolution another
    convolution, an operator that the model does not have: there it gets the rest of the graph in another session.
    """
    level = onnxruntime.GraphOptimizationLevel
    known, values = dict(feeds), {}
    for part in _parts(model) if optimization == "all" else [list(model.graph.node)]:
        found = _run(_part_of(model, part, known, without), known, getattr(level, f"ORT_{_SWITCH[optimization]}_ALL"))
        known.update(found)
        values.update(found)
    return values


_SWITCH = {"all": "ENABLE", "none": "DISABLE"}


def _parts(model: onnx.ModelProto) -> list[list[onnx.NodeProto]]:
    parts: list[list[onnx.NodeProto]] = [[]]
    for node in model.graph.node:
        if node.op_type == "BatchNormalization" and parts[-1]:
            parts.append([])
        parts[-1].append(node)
    return parts


def _part_of(
    model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], known: Mapping[str, Any], without: Sequence[str]
) -> onnx.ModelProto:
    """These nodes, which read what is known, with all that they make as outputs."""
    part = onnx.ModelProto()
    part.CopyFrom(model)
    graph = part.graph
    declared = {one.name for one in graph.input}
    made = [name for node in nodes for name in node.output if name]
    del graph.node[:], graph.output[:]
    for node in nodes:
        # onnxruntime takes no name twice.
        graph.node.add().CopyFrom(node)
        graph.node[-1].name = ""
    graph.input.extend(value(name, a.dtype, a.shape) for name, a in known.items() if name not in declared)
    ends = {one.name: one for one in model.graph.output}
    graph.output.extend(ends.get(name, onnx.ValueInfoProto(name=name)) for name in made if name not in without)
    return part


def _run(model: onnx.ModelProto, feeds: Mapping[str, Any], level: Any) -> dict[str, Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    read = [one.name for one in session.get_inputs()]
    return dict(zip(names, session.run(names, {name: feeds[name] for name in read}), strict=True))


def same_bits(left: Any, right: Any) -> bool:
    left, right = np.asarray(left), np.asarray(right)
    return bool(left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes())


class Recorder:
    """Copies all that every operator reads and makes, at once and again at the end."""

    needs_all_values = False

    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self.read: dict[str, list[Array]] = {}
        self.made: dict[str, list[Array]] = {}
        self.kept: dict[str, list[Array]] = {}
        self.steps: list[tuple[int, int]] = []
        self.errors: list[str] = []
        self.by_value: dict[str, Array] = {}

    def on_graph(self, graph: Graph) -> Sequence[int]:
        self.graphs.append(graph)
        return [BEFORE | AFTER | KEEP] * len(graph.kernels)

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        return True

    def before_op(self, event: OpEvent) -> None:
        self.read[event.op.full_name] = [array.copy() for array in event.inputs]

    def after_op(self, event: OpEvent) -> None:
        self.made[event.op.full_name] = [array.copy() for array in event.outputs]
        node = self.graphs[-1].kernels[event.op.index]
        # Values of subgraphs may have names that others have.
        for made, array in zip(node.outputs if node.owner is None else (), event.outputs, strict=node.owner is None):
            self.by_value[made.name] = array.copy()

    def on_iteration_end(self, step: FinishedStep) -> None:
        self.steps.append((step.graph.graph_id, step.iteration))
        for event in step.events:
            self.kept[event.op.full_name] = [np.array(array) for array in (*event.inputs, *event.outputs)]

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        self.errors.append(event.op.full_name)

    def close(self) -> None: ...


def convolutions(rng: np.random.Generator) -> onnx.ModelProto:
    """Conv, BatchNormalization, Relu, MaxPool, Flatten, Gemm, Softmax; the batch is open."""
    node = helper.make_node
    nodes = [
        node("Conv", ["data", "w1", "b1"], ["conv"], name="stem/conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["conv", "scale", "shift", "mean", "var"], ["norm"], name="stem/norm"),
        node("Relu", ["norm"], ["act"], name="stem/relu"),
        node("MaxPool", ["act"], ["pool"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["pool"], ["flat"], name="flatten"),
        node("Gemm", ["flat", "w2", "b2"], ["logits"], name="head", transB=1),
        node("Softmax", ["logits"], ["probability"], name="softmax", axis=-1),
    ]
    constants = {
        "w1": rng.standard_normal((8, 3, 3, 3), np.float32),
        "b1": rng.standard_normal(8, np.float32),
        "scale": rng.standard_normal(8, np.float32),
        "shift": rng.standard_normal(8, np.float32),
        "mean": rng.standard_normal(8, np.float32),
        "var": rng.random(8, np.float32) + 0.5,
        "w2": rng.standard_normal((10, 8 * 4 * 4), np.float32),
        "b2": rng.standard_normal(10, np.float32),
    }
    inputs = [value("data", np.float32, ["N", 3, 8, 8])]
    return model_of(nodes, inputs, [value("probability", np.float32, ["N", 10])], constants, name="small_cnn")


def branches() -> onnx.ModelProto:
    """If whose branches read values from outside, constants among them."""
    node = helper.make_node
    then = helper.make_graph([node("Add", ["twice", "big"], ["t"])], "then", [], [value("t")])
    other = helper.make_graph([node("Sub", ["twice", "x"], ["e"])], "other", [], [value("e")])
    nodes = [
        node("Add", ["x", "x"], ["twice"], name="double"),
        node("ReduceSum", ["x"], ["sum"], name="sum", keepdims=0),
        node("Greater", ["sum", "zero"], ["is_positive"], name="compare"),
        node("If", ["is_positive"], ["y"], name="choose", then_branch=then, else_branch=other),
    ]
    big = np.linspace(0, 1, 600, dtype=np.float32).reshape(2, 300)
    return model_of(nodes, [value("x", np.float32, [2, 300])], [value("y")], {"zero": np.float32(0), "big": big})


def loops() -> onnx.ModelProto:
    """Loop that carries a value and collects one; Scan over rows."""
    node = helper.make_node
    body = helper.make_graph(
        [
            node("Mul", ["carried", "rate"], ["next"]),
            node("Identity", ["next"], ["collected"]),
            node("Identity", ["goes_on"], ["still"]),
        ],
        "body",
        [value("i", np.int64, []), value("goes_on", np.bool_, []), value("carried")],
        [value("still", np.bool_, []), value("next"), value("collected")],
    )
    scan = helper.make_graph(
        [node("Add", ["state", "row"], ["sum"]), node("Identity", ["sum"], ["running"])],
        "scan",
        [value("state"), value("row")],
        # onnxruntime wants to know these before it runs.
        [value("sum", np.float32, [3]), value("running", np.float32, [3])],
    )
    nodes = [
        node("Add", ["x", "x"], ["rate"]),
        node("Loop", ["count", "", "x"], ["last", "all"], name="loop", body=body),
        node("Scan", ["last", "all"], ["total", "sums"], name="scan", body=scan, num_scan_inputs=1),
    ]
    inputs = [value("x", np.float32, [3]), value("count", np.int64, [])]
    return model_of(nodes, inputs, [value("total"), value("sums")])


def optional_outputs() -> onnx.ModelProto:
    """Outputs and operands that are left out."""
    node = helper.make_node
    nodes = [
        node("LSTM", ["rows", "w", "r", "", "", "start"], ["", "hidden"], name="lstm", hidden_size=2),
        node("Clip", ["x", "", "high"], ["clipped"], name="clip"),
        node("Dropout", ["clipped"], ["kept", "mask"], name="drop"),
        node("Split", ["kept", "parts"], ["a", "b"], name="split", axis=1),
    ]
    constants: dict[str, Any] = {
        "w": np.linspace(-1, 1, 32, dtype=np.float32).reshape(1, 8, 4),
        "r": np.linspace(1, -1, 16, dtype=np.float32).reshape(1, 8, 2),
        "start": np.ones((1, 2, 2), np.float32),
        "high": np.float32(0.5),
        "parts": np.array([1, 3]),
    }
    inputs = [value("x", np.float32, [2, 4]), value("rows", np.float32, ["length", 2, 4])]
    return model_of(nodes, inputs, [value("hidden"), value("a"), value("b")], constants)


def quantized(rng: np.random.Generator) -> onnx.ModelProto:
    """int8 with QuantizeLinear and DequantizeLinear around a convolution, and an integer matmul."""
    node = helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "xs", "xz"], ["xq"], name="quantize"),
        node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"], name="dequantize"),
        node("DequantizeLinear", ["wq", "ws"], ["wd"], name="weight", axis=0),
        node("Conv", ["xd", "wd"], ["y"], name="conv"),
        node("QuantizeLinear", ["y", "ys", "yz"], ["yq"], name="requantize"),
        node("QLinearConv", ["xq", "xs", "xz", "wq", "ys", "wz", "ys", "yz"], ["direct"], name="direct"),
    ]
    constants: dict[str, Any] = {
        "xs": np.float32(0.02),
        "xz": np.int8(3),
        "wq": rng.integers(-127, 127, (4, 3, 3, 3), np.int8),
        "ws": np.array([0.01, 0.02, 0.03, 0.04], np.float32),
        "wz": np.int8(0),
        "ys": np.float32(0.1),
        "yz": np.int8(-5),
    }
    outputs = [value("yq", np.int8), value("direct", np.int8)]
    return model_of(nodes, [value("x", np.float32, [1, 3, 6, 6])], outputs, constants)


def narrow(number: int) -> onnx.ModelProto:
    """Casts to a narrow float and back."""
    node = helper.make_node
    nodes = [
        node("Cast", ["x"], ["narrow"], name="narrow", to=number),
        node("Reshape", ["narrow", "shape"], ["flat"], name="reshape"),
        node("Cast", ["flat"], ["wide"], name="widen", to=TensorProto.FLOAT),
    ]
    return model_of(nodes, [value("x", np.float32, [2, 6])], [value("wide")], {"shape": np.array([3, 4])})


def half() -> onnx.ModelProto:
    """float16 throughout."""
    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "w"], ["a"], name="matmul"),
        node("Add", ["a", "b"], ["c"], name="add"),
        node("Relu", ["c"], ["d"], name="relu"),
        node("Softmax", ["d"], ["y"], name="softmax"),
    ]
    constants = {"w": np.linspace(-1, 1, 800).astype(np.float16).reshape(20, 40), "b": np.full(40, 0.3, np.float16)}
    return model_of(nodes, [value("x", np.float16, [2, 20])], [value("y", np.float16)], constants)


def names() -> onnx.ModelProto:
    """Names that occur twice, are missing, or look like one that is made up; a weight that two operators share."""
    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "w"], ["a"], name="layer"),
        node("MatMul", ["a", "w"], ["b"], name="layer"),
        node("Relu", ["b"], ["layer_1"], name=""),
        node("Neg", ["layer_1"], ["d"], name="layer_1"),
        node("Relu", ["d"], ["y"], name="block.0/relu:0"),
    ]
    weight = np.linspace(-1, 1, 400, dtype=np.float32).reshape(20, 20)
    return model_of(nodes, [value("x", np.float32, [2, 20])], [value("y")], {"w": weight})


def graph_of(
    name: str,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto] = (),
    outputs: Sequence[onnx.ValueInfoProto] = (),
    constants: Mapping[str, Any] | None = None,
) -> onnx.GraphProto:
    tensors = [numpy_helper.from_array(np.asarray(array), key) for key, array in (constants or {}).items()]
    return helper.make_graph(list(nodes), name, list(inputs), list(outputs), tensors)


def recurrent(rank_of_number: int = 0) -> onnx.ModelProto:
    """h = tanh(w h + b), `count` times or until the sum is large; w from around the body, b in it."""
    shape = [1] * rank_of_number
    body = graph_of(
        "body",
        [
            helper.make_node("MatMul", ["w", "h"], ["m"], "mix"),
            helper.make_node("Add", ["m", "b"], ["a"], "add"),
            helper.make_node("Cast", ["i"], ["f"], "number", to=1),
            helper.make_node("Add", ["a", "f"], ["next"], "count"),
            helper.make_node("ReduceSum", ["next"], ["s"], "sum", keepdims=0),
            helper.make_node("Less", ["s", "bound"], ["on"], "test"),
        ],
        [value("i", np.int64, shape), value("c", np.bool_, shape), value("h")],
        [value("on", np.bool_, []), value("next"), value("a")],
        {"b": np.array([[1], [2]], np.float32), "bound": np.float32(1000)},
    )
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["w"], "add"),  # a name that the body has as well
        helper.make_node("Loop", ["count", "", "start"], ["last", "all"], "loop", body=body),
    ]
    inputs = [value("x", shape=[2, 2]), value("count", np.int64, []), value("start", shape=[2, 1])]
    return model_of(nodes, inputs, [value("last"), value("all")])


def nested() -> onnx.ModelProto:
    """A loop, a branch in it, a loop in that; values of all of them are read inside. Names come again and again."""
    deepest = graph_of(
        "deepest",
        [
            helper.make_node("Add", ["v", "outer"], ["t"], "add"),
            helper.make_node("Mul", ["t", "x"], ["n"], "mul"),
            helper.make_node("Identity", ["go"], ["on"], ""),
        ],
        [value("j", np.int64, []), value("go", np.bool_, []), value("v", shape=[2])],
        [value("on", np.bool_, []), value("n", shape=[2])],
    )
    then = graph_of(
        "then", [helper.make_node("Loop", ["i", "", "h"], ["r"], "loop", body=deepest)], outputs=[value("r", shape=[2])]
    )
    other = graph_of("other", [helper.make_node("Neg", ["h"], ["r"], "add")], outputs=[value("r", shape=[2])])
    body = graph_of(
        "body",
        [
            helper.make_node("Add", ["h", "x"], ["outer"], "add"),
            helper.make_node("Mod", ["i", "two"], ["m"], "mod"),
            helper.make_node("Cast", ["m"], ["odd"], "odd", to=9),
            helper.make_node("If", ["odd"], ["r"], "if", then_branch=then, else_branch=other),
            helper.make_node("Identity", ["c"], ["o"], "on"),
        ],
        [value("i", np.int64, []), value("c", np.bool_, []), value("h", shape=[2])],
        [value("o", np.bool_, []), value("r", shape=[2]), value("outer", shape=[2])],
    )
    nodes = [
        helper.make_node("Loop", ["four", "", "x"], ["y", "all"], "loop", body=body),
        helper.make_node("Add", ["y", "x"], ["z"], "add"),
    ]
    constants = {"two": np.array(2), "four": np.array(4)}
    return model_of(nodes, [value("x", shape=[2])], [value("y"), value("all"), value("z")], constants)
