"""A model of PyTorch and what an exporter makes of it: decomposed, folded, and with faults."""

import json
from pathlib import Path

import numpy as np
import pytest

import msdump
from msdump.analysis.compare.result import Comparison
from msdump.analysis.compare.sentences import headline

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

_CONFIG = {
    "common_dump_settings": {
        "dump_mode": 0, "net_name": "Net", "iteration": "0", "saved_data": "tensor", "input_output": 0, "kernels": [],
        "support_device": [0],
    },
    "e2e_dump_settings": {"enable": True, "trans_flag": True},
}  # fmt: skip


class _Export:
    """Nodes and weights of an ONNX model, as an exporter writes them."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def add(self, op_type, name, *inputs, **attributes):
        self.nodes.append(helper.make_node(op_type, inputs, [name], f"/{name}", **attributes))
        return name

    def weight(self, name, value):
        array = np.asarray(value.detach() if isinstance(value, torch.Tensor) else value)
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def number(self, name, value):
        return self.weight(name, np.float32(value))

    def linear(self, name, x, layer):
        product = self.add("MatMul", f"{name}/MatMul", x, self.weight(f"{name}.weight", layer.weight.T))
        return self.add("Add", f"{name}/Add", self.weight(f"{name}.bias", layer.bias), product)

    def model(self, x, result):
        ends = [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape),
            helper.make_tensor_value_info(result, TensorProto.FLOAT, None),
        ]
        graph = helper.make_graph(self.nodes, "net", ends[:1], ends[1:], self.weights)
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])


class _Attending(torch.nn.Module):
    """One layer of a transformer."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.qkv, self.out, self.last = torch.nn.Linear(8, 24), torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        heads = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(heads.transpose(1, 2).flatten(2))
        return torch.nn.functional.gelu(self.last(x))


def _export_of_attending(net, x):
    export = _Export()
    norm = [export.weight(f"norm.{name}", value) for name, value in net.norm.named_parameters()]
    y = export.add("LayerNormalization", "norm", "x", *norm, epsilon=1e-5)
    whole = export.linear("qkv", y, net.qkv)
    export.nodes.append(helper.make_node("Split", [whole], ["q0", "k0", "v0"], "/split", axis=-1, num_outputs=3))
    shape = export.weight("shape", np.array([2, 5, 2, 4]))
    q, k, v = (export.add("Reshape", f"{name}1", f"{name}0", shape) for name in "qkv")
    q, v = (export.add("Transpose", f"{name[0]}2", name, perm=[0, 2, 1, 3]) for name in (q, v))
    k = export.add("Transpose", "k2", k, perm=[0, 2, 3, 1])
    # A half of the scale on either side, as the exporters have it.
    scale = export.number("scale", 4**-0.25)
    q, k = export.add("Mul", "q_scaled", q, scale), export.add("Mul", "k_scaled", k, scale)
    rows = export.add("Softmax", "rows", export.add("MatMul", "scores", q, k), axis=-1)
    heads = export.add("Transpose", "heads", export.add("MatMul", "mixed", rows, v), perm=[0, 2, 1, 3])
    joined = export.add("Reshape", "joined", heads, export.weight("joint", np.array([2, 5, 8])))
    y = export.linear("last", export.add("Add", "residual", "x", export.linear("out", joined, net.out)), net.last)
    # Gelu in its steps.
    error = export.add("Erf", "erf", export.add("Div", "scaled", y, export.number("root", 2**0.5)))
    gate = export.add("Add", "gate", error, export.number("one", 1))
    product = export.add("Mul", "product", y, gate)
    return export.model(x, export.add("Mul", "result", product, export.number("half", 0.5)))


class _Folding(torch.nn.Module):
    """Convolutions whose norms an exporter folds into them, and scales that leave nearly nothing of a branch."""

    def __init__(self):
        super().__init__()
        self.convs = torch.nn.ModuleList(torch.nn.Conv2d(4, 4, 3, padding=1, bias=False) for _ in range(3))
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(4) for _ in range(3))
        for norm in self.norms:
            torch.nn.init.normal_(norm.running_mean), torch.nn.init.uniform_(norm.running_var, 0.5, 2)

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = x + 1e-6 * torch.relu(norm(conv(x)))
        return torch.flatten(torch.nn.functional.adaptive_avg_pool2d(x, 1), 1)


def _export_of_folding(net, x):
    export, y = _Export(), "x"
    for index, (conv, norm) in enumerate(zip(net.convs, net.norms, strict=True)):
        factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        weight = export.weight(f"{index}.weight", conv.weight * factor[:, None, None, None])
        bias = export.weight(f"{index}.bias", norm.bias - norm.running_mean * factor)
        z = export.add("Conv", f"{index}/conv", y, weight, bias, kernel_shape=[3, 3], pads=[1] * 4)
        z = export.add("Mul", f"{index}/mul", export.add("Relu", f"{index}/relu", z), export.number(f"{index}.s", 1e-6))
        y = export.add("Add", f"{index}/add", y, z)
    return export.model(x, export.add("Flatten", "flat", export.add("GlobalAveragePool", "pool", y)))


def _dump_of_onnx(model, x, folder):
    folder.mkdir()
    with msdump.acl.dump({"dump": {"dump_path": str(folder), "dump_list": [{}], "dump_mode": "all"}}):
        msdump.acl.load(model.SerializeToString())(x.numpy())


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """By name of a model: a folder with the dump of PyTorch, the input, and what the export is."""
    made = {}
    models = (
        ("attending", _Attending, (2, 5, 8), _export_of_attending),
        ("folding", _Folding, (1, 4, 6, 6), _export_of_folding),
    )
    for name, kind, shape, export in models:
        torch.manual_seed(0)
        net, x, folder = kind().eval(), torch.randn(shape), tmp_path_factory.mktemp(name)
        section = _CONFIG["common_dump_settings"] | {"path": str(folder / "torch")}
        config = folder / "config.json"
        config.write_text(json.dumps(_CONFIG | {"common_dump_settings": section}), encoding="utf-8")
        with torch.no_grad(), msdump.watch(net, str(config)):
            net(x)
        made[name] = folder, x, export(net, x)
    return made


def _both_ways(folder: Path, name: str) -> list[Comparison]:
    paths = folder / "torch", folder / name
    return [msdump.compare(*paths), msdump.compare(*reversed(paths))]


@pytest.mark.parametrize("name", ["attending", "folding"])
def test_an_export_agrees_both_ways_and_leaves_nothing(exports, name):
    folder, x, model = exports[name]
    _dump_of_onnx(model, x, folder / "whole")
    for comparison in _both_ways(folder, "whole"):
        assert comparison.is_agreeing, headline(comparison)
        for step in comparison.steps:
            assert not step.only_mine and not step.only_golden and not step.beyond


def test_operators_of_nearly_equal_results_are_paired_in_their_order(exports):
    folder, x, model = exports["folding"]
    _dump_of_onnx(model, x, folder / "ordered")
    pairs = [result.pair for result in msdump.compare(folder / "torch", folder / "ordered").operators]
    sums = [pair.golden.op_name for pair in pairs if pair.mine.op_type == "aten_add_Tensor"]
    assert [name.strip("_/")[0] for name in sums] == ["0", "1", "2"]


def _node(model, name):
    return next(node for node in model.graph.node if node.name == f"/{name}")


def _set(node, name, value):
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])


def _change(model, name, change):
    weight = next(weight for weight in model.graph.initializer if weight.name == name)
    weight.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(change(numpy_helper.to_array(weight))), name))


def _drop(model, name):
    node = _node(model, name)
    for other in model.graph.node:
        for index, read in enumerate(other.input):
            if read == node.output[0]:
                other.input[index] = node.input[0]
    model.graph.node.remove(node)


# Model, fault, and what the first sentence names with PyTorch as mine, then with ONNX as mine.
_FAULTS = {
    "another epsilon": (
        "attending", lambda model: _set(_node(model, "norm"), "epsilon", 0.5), "native_layer_norm", "/norm"
    ),
    "another axis": ("attending", lambda model: _set(_node(model, "rows"), "axis", 2), "scaled_dot_product", "/rows"),
    "a wrong weight": (
        "attending", lambda model: _change(model, "last.weight", lambda array: array[::-1]), "aten.addmm", "/last/"
    ),
    "another scale": (
        "attending", lambda model: _change(model, "scale", lambda array: array * 2), "scaled_dot_product", "/mixed"
    ),
    "no residual": ("attending", lambda model: _drop(model, "residual"), "aten.add.Tensor", "aten.add.Tensor"),
    "another activation": (
        "folding", lambda model: setattr(_node(model, "1/relu"), "op_type", "Gelu"), "aten.relu.default-op1", "/1/relu"
    ),
    "a folded weight": (
        "folding", lambda model: _change(model, "1.weight", lambda array: array[::-1]),
        "native_batch_norm.default-op1", "/1/conv",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", _FAULTS)
def test_the_first_sentence_names_a_fault_of_an_export(exports, fault):
    name, change, *named = _FAULTS[fault]
    folder, x, model = exports[name]
    faulty = onnx.ModelProto()
    faulty.CopyFrom(model)
    change(faulty)
    _dump_of_onnx(faulty, x, folder / fault)
    for comparison, operator in zip(_both_ways(folder, fault), named, strict=True):
        assert not comparison.is_agreeing
        sentence = next(line for line in headline(comparison) if not line.startswith("no operator goes wrong"))
        assert operator in sentence, headline(comparison)
