"""A small detector was quantised by a tool of one's own: QDQ of its activations and weights, norms folded in."""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import msdump

ANSWER = {
    "kind": "second trial: a detector quantised",
    "entry": "onnx",
    "ask": "compare {faulty} {golden}",
    "line": False,
    "variants": {
        "clipped": {
            "goes_wrong": "The range of one activation was measured as its mean, not as its greatest value.",
            "operator": "relu2",
            "wants": "the quantiser behind relu2, which clips",
        },
        "axis": {
            "goes_wrong": "The scales of the third weight, one for each output channel, are given to input channels.",
            "operator": "conv3",
            "wants": "the weight of conv3, dequantised along the wrong axis",
        },
        "zero_point": {
            "goes_wrong": "The sum is quantised with a zero point of 110 and dequantised with one of 128.",
            "operator": "sum",
            "wants": "the quantiser, or its counterpart, behind the sum",
        },
        "bias": {
            "goes_wrong": "The bias of conv4 has codes for the scale of the weight alone, without that of the input.",
            "operator": "conv4",
            "wants": "conv4, whose bias is far too small",
        },
        "wrapped": {
            "goes_wrong": "The codes of the second weight reach 128, which wraps to -128.",
            "operator": "conv2",
            "wants": "conv2: the greatest elements of its weight have the other sign",
        },
        "shared": {
            "goes_wrong": "The short cut of the sum has the scale of conv3, although its numbers are larger.",
            "operator": "conv1",
            "wants": "the second quantiser behind conv1, on the way to the sum, which clips",
        },
        "folded": {
            "goes_wrong": "The mean of the first norm is left out when it is folded into the convolution.",
            "operator": "conv1",
            "wants": "conv1 with its folded bias, against the norm behind conv1",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
CHANNELS, SIZE = 8, 10

rng = np.random.default_rng(21)
picture = rng.standard_normal((2, 3, SIZE, SIZE)).astype(np.float32)
weights, norms, biases = {}, {}, {}
for key, into in {"conv1": 3, "conv2": CHANNELS, "conv3": CHANNELS, "conv4": CHANNELS}.items():
    shape = (CHANNELS, into, 3, 3)
    spread = rng.uniform(0.4, 1.6, (CHANNELS, 1, 1, 1))
    weights[key] = (spread * rng.uniform(-1, 1, shape) * (3 / np.prod(shape[1:])) ** 0.5).astype(np.float32)
    biases[key] = rng.uniform(-1, 1, CHANNELS).astype(np.float32)
for key in ("conv1", "conv2", "conv3"):
    gain, shift, mean = (rng.uniform(*ends, CHANNELS) for ends in ((0.7, 1.3), (-0.3, 0.5), (-0.8, 0.8)))
    gain *= 3 if key == "conv1" else 1
    norms[key] = [each.astype(np.float32) for each in (gain, shift, mean, rng.uniform(0.5, 1.5, CHANNELS))]
weights["fc"] = rng.uniform(-1, 1, (CHANNELS, 5)).astype(np.float32)
nodes, constants = [], []


def add(kind, name, *inputs, output="", **attributes):
    names = []
    for number, value in enumerate(inputs):
        if not isinstance(value, str):
            value = numpy_helper.from_array(np.asarray(value), f"{name}.constant{number}")
            constants.append(value)
            value = value.name
        names.append(value)
    nodes.append(helper.make_node(kind, names, [output or f"{name}_out"], name, **attributes))
    return nodes[-1].output[0]


def model(y):
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, picture.shape),
        helper.make_tensor_value_info(y, TensorProto.FLOAT, [2, 5]),
    ]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], constants)
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def float_net(kept=()):
    """With normalisations; the tensors of these names are outputs, to measure their ranges."""
    nodes.clear(), constants.clear()
    x = "x"
    for number in range(1, 5):
        key = f"conv{number}"
        bias = [biases[key]] if key == "conv4" else []
        x = add("Conv", key, x, weights[key], *bias, pads=[1, 1, 1, 1])
        x = add("BatchNormalization", f"norm{number}", x, *norms[key]) if key in norms else x
        if key == "conv1":
            short = x
        x = add("Add", "sum", x, short) if key == "conv3" else add("Relu", f"relu{number}", x)
    x = add("Flatten", "flatten", add("GlobalAveragePool", "pool", x))
    return add("MatMul", "fc", x, weights["fc"])


def quantised(name, x, low=None, high=None):
    """An activation in 8 bits and back."""
    low, high = (min(0.0, low), max(0.0, high))
    scale = np.float32((high - low) / 255)
    point = round(-low / scale)
    back = 128 if FAULT == "zero_point" and name == "sum" else point
    codes = add("QuantizeLinear", f"{name}/quantise", x, scale, np.uint8(point))
    return add("DequantizeLinear", f"{name}/dequantise", codes, scale, np.uint8(back)), scale


def weight_of(key, weight):
    """A weight in 8 bits by output channel, and its scales."""
    scales = np.abs(weight).max((1, 2, 3)) / (128 if FAULT == "wrapped" and key == "conv2" else 127)
    codes = np.rint(weight / scales[:, None, None, None]).astype(np.int64).astype(np.int8)
    axis = 1 if FAULT == "axis" and key == "conv3" else 0
    points = np.zeros(CHANNELS, np.int8)
    scales = scales.astype(np.float32)
    return add("DequantizeLinear", f"{key}/weight", codes, scales, points, axis=axis), scales


def bias_of(key, bias, scales, scale):
    """A bias in 32 bits, with the product of the scales of the input and the weight."""
    codes = np.rint(bias / (scales if FAULT == "bias" and key == "conv4" else scales * scale)).astype(np.int32)
    return add("DequantizeLinear", f"{key}/bias", codes, scales * scale, np.zeros(CHANNELS, np.int32), axis=0)


def int8_net(ranges):
    nodes.clear(), constants.clear()
    x, scale = quantised("x", "x", picture.min(), picture.max())
    for number in range(1, 5):
        key = f"conv{number}"
        weight, bias = weights[key], biases[key]
        if key in norms:
            gain, shift, mean, variance = norms[key]
            factor = gain / np.sqrt(variance + 1e-5)
            weight = weight * factor[:, None, None, None]
            bias = shift if FAULT == "folded" and key == "conv1" else shift - mean * factor
        codes, scales = weight_of(key, weight)
        last, before = f"relu{number}", x
        x = add("Conv", key, before, codes, bias_of(key, bias, scales, scale), pads=[1, 1, 1, 1])
        if key == "conv1":
            low, high = ranges["norm3" if FAULT == "shared" else "norm1"]
            short, _ = quantised("conv1", x, low, high)
        if key == "conv3":
            last = "sum"
            x = add("Add", "sum", quantised("conv3", x, *ranges["norm3"])[0], short)
        else:
            x = add("Relu", last, x)
        low, high = ranges[last]
        if FAULT == "clipped" and last == "relu2":
            high = ranges["mean"][0]
        x, scale = quantised(last, x, low, high)
    x = add("Flatten", "flatten", quantised("pool", add("GlobalAveragePool", "pool", x), *ranges["pool"])[0])
    return add("MatMul", "fc", x, weights["fc"])


def measured():
    """The ranges of all activations of the float net."""

    net = onnx.load_from_string(model(float_net()))
    names = [output for node in net.graph.node for output in node.output]
    net.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names[:-1])
    results = ReferenceEvaluator(net).run(None, {"x": picture})
    values = dict(zip([each.name for each in net.graph.output], results, strict=True))
    found = {name.removesuffix("_out"): (float(value.min()), float(value.max())) for name, value in values.items()}
    return found | {"mean": (float(values["relu2_out"].mean()), 0.0)}


data = model(float_net()) if sys.argv[1] == "golden" else model(int8_net(measured()))
Path(sys.argv[1]).mkdir()
with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
    print(*msdump.acl.load(data)(picture)["fc_out"].ravel().tolist(), sep="\n")
