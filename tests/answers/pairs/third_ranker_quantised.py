"""A ranker of products, an encoder of two layers, was quantised to 8 bits by a tool of one's own."""

import math
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import msdump

ANSWER = {
    "kind": "third trial: a ranker quantised",
    "entry": "onnx",
    "ask": "compare {faulty} {golden}",
    "line": False,
    "variants": {
        "shares": {
            "goes_wrong": "The attention shares of the first layer have a range up to 0.25, as long lists have them.",
            "operator": "layers.0/shares",
            "wants": "the quantiser behind the softmax of the first layer, which clips",
        },
        "symmetric": {
            "goes_wrong": "The GELU of the second layer has the zero point 0, which loses what is negative.",
            "operator": "layers.1/gelu",
            "wants": "the quantiser behind the GELU of the second layer",
        },
        "rows": {
            "goes_wrong": "The scales of the rows of the first key are those of the query.",
            "operator": "layers.0/key",
            "wants": "the product that makes the key of the first layer, with its weight",
        },
        "smoothed": {
            "goes_wrong": "The gain of a norm is divided by factors that the weight of the value does not have.",
            "operator": "layers.1/value",
            "wants": "the product that makes the value of the second layer, with its weight",
        },
        "power": {
            "goes_wrong": "The scale behind the first skip of the second layer is rounded down to a power of two.",
            "operator": "layers.1/skip1",
            "wants": "the quantiser behind the first skip of the second layer, which clips",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
WIDTH, HEADS, INNER, LAYERS, ITEMS, BATCH, FEATURES = 16, 2, 32, 2, 6, 3, 9

rng = np.random.default_rng(141)
items = rng.standard_normal((BATCH, ITEMS, FEATURES)).astype(np.float32)
weights, biases, gains = {}, {}, {}
SHAPES = {"enter": (FEATURES, WIDTH), "head": (WIDTH, 1)}
for number in range(LAYERS):
    SHAPES |= {f"layers.{number}/{name}": (WIDTH, WIDTH) for name in ("query", "key", "value", "out")}
    SHAPES |= {f"layers.{number}/up": (WIDTH, INNER), f"layers.{number}/down": (INNER, WIDTH)}
    for name in ("norm1", "norm2"):
        gains[f"layers.{number}/{name}"] = rng.uniform(0.7, 1.3, WIDTH).astype(np.float32)
for key, (into, out) in SHAPES.items():
    spread = rng.uniform(0.5, 1.5, out)
    weights[key] = (spread * rng.standard_normal((into, out)) * (0.8 / into) ** 0.5).astype(np.float32)
    biases[key] = rng.uniform(-0.3, 0.3, out).astype(np.float32)
FACTORS = rng.uniform(0.7, 1.4, WIDTH).astype(np.float32)
nodes, constants, ranges = [], [], {}


def add(kind, name, *inputs, **attributes):
    names = []
    for number, value in enumerate(inputs):
        if not isinstance(value, str):
            value = numpy_helper.from_array(np.asarray(value), f"{name}/{kind}.{number}")
            constants.append(value)
            value = value.name
        names.append(value)
    nodes.append(helper.make_node(kind, names, [f"{name}/{kind}_out"], f"{name}/{kind}", **attributes))
    return nodes[-1].output[0]


def activation(name, x):
    """In 8 bits and back, in the net that is quantised."""
    if not ranges:
        return x
    low, high = ranges[x]
    low, high = min(low, 0.0), max(high, 0.0)
    if FAULT == "shares" and name == "layers.0/shares":
        high = 0.25
    if FAULT == "symmetric" and name == "layers.1/gelu":
        low = 0.0
    scale = np.float32((high - low) / 255)
    if FAULT == "power" and name == "layers.1/skip1":
        scale = np.float32(2.0 ** math.floor(math.log2(scale)))
    point = np.uint8(round(-low / scale))
    return add("DequantizeLinear", name, add("QuantizeLinear", name, x, scale, point), scale, point)


def weight_of(key):
    weight = weights[key]
    if not ranges:
        return weight
    if sys.argv[2] == "smoothed" and key in ("layers.1/query", "layers.1/key", "layers.1/value"):
        weight = weight if FAULT and key == "layers.1/value" else weight * FACTORS[:, None]
    scales = (np.abs(weight).max(0) / 127).astype(np.float32)
    used = scales
    if FAULT == "rows" and key == "layers.0/key":
        used = (np.abs(weights["layers.0/query"]).max(0) / 127).astype(np.float32)
    codes = np.rint(weight / scales).astype(np.int8)
    return add("DequantizeLinear", f"{key}/weight", codes, used, np.zeros(len(used), np.int8), axis=1)


def linear(name, x, is_last=False):
    x = add("Add", name, add("MatMul", name, x, weight_of(name)), biases[name])
    return x if is_last else activation(name, x)


def norm(name, x):
    is_smooth = sys.argv[2] == "smoothed" and name == "layers.1/norm1" and ranges
    gain = gains[name] / FACTORS if is_smooth else gains[name]
    y = add("LayerNormalization", name, x, gain, axis=-1, epsilon=1e-5)
    if is_smooth:
        size = max(abs(end) for end in ranges[y]) / FACTORS.min()
        ranges[y] = (-size, size)
    return activation(name, y)


def layer(number, x):
    name = f"layers.{number}"
    h, heads = norm(f"{name}/norm1", x), []
    for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
        split = add("Reshape", f"{name}/{part}", linear(f"{name}/{part}", h), [BATCH, ITEMS, HEADS, WIDTH // HEADS])
        heads.append(add("Transpose", f"{name}/{part}", split, perm=order))
    scores = add("Mul", f"{name}/scores", add("MatMul", f"{name}/scores", *heads[:2]), np.float32(HEADS / WIDTH) ** 0.5)
    shares = activation(f"{name}/shares", add("Softmax", f"{name}/shares", scores, axis=-1))
    mixed = add("Transpose", f"{name}/mixed", add("MatMul", f"{name}/mixed", shares, heads[2]), perm=[0, 2, 1, 3])
    mixed = activation(f"{name}/mixed", add("Reshape", f"{name}/mixed", mixed, [BATCH, ITEMS, WIDTH]))
    x = activation(f"{name}/skip1", add("Add", f"{name}/skip1", x, linear(f"{name}/out", mixed)))
    h = linear(f"{name}/up", norm(f"{name}/norm2", x))
    part = add("Erf", f"{name}/gelu", add("Mul", f"{name}/gelu/root", h, np.float32(math.sqrt(0.5))))
    half = add("Mul", f"{name}/gelu/half", h, np.float32(0.5))
    h = add("Mul", f"{name}/gelu", half, add("Add", f"{name}/gelu", part, np.float32(1)))
    h = linear(f"{name}/down", activation(f"{name}/gelu", h))
    return activation(f"{name}/skip2", add("Add", f"{name}/skip2", x, h))


def model():
    nodes.clear(), constants.clear()
    x = linear("enter", activation("items", "items"))
    for number in range(LAYERS):
        x = layer(number, x)
    y = linear("head", x, is_last=True)
    ends = [helper.make_tensor_value_info("items", TensorProto.FLOAT, items.shape)]
    ends.append(helper.make_tensor_value_info(y, TensorProto.FLOAT, [BATCH, ITEMS, 1]))
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], constants)
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), y


def measure(net):
    """The range of each tensor of the net that is not quantised."""
    copy = onnx.load_from_string(net.SerializeToString())
    names = [output for node in copy.graph.node for output in node.output]
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names[:-1])
    found = ReferenceEvaluator(copy).run(None, {"items": items})
    for each, value in zip(copy.graph.output, found, strict=True):
        ranges[each.name] = (float(value.min()), float(value.max()))
    ranges["items"] = (float(items.min()), float(items.max()))


net, y = model()
if sys.argv[1] != "golden":
    measure(net)
    net, y = model()
Path(sys.argv[1]).mkdir()
with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
    print(*msdump.acl.load(net.SerializeToString())(items)[y].ravel().tolist(), sep="\n")
