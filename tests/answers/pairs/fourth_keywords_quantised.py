"""A net that hears keywords, of depthwise and pointwise convolutions, was quantised to signed 8 bits by a script."""

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import msdump

ANSWER = {
    "kind": "fourth trial: a hearer of keywords quantised",
    "entry": "onnx",
    "ask": "compare {faulty} {golden}",
    "line": False,
    "variants": {
        "signed": {
            "goes_wrong": "The signed codes after an activation have a zero point of 0, so that half of them is lost.",
            "operator": "act_point1",
            "wants": "the quantiser after act_point1, which clips",
        },
        "padded": {
            "goes_wrong": "The codes are padded by 0, not by the code that stands for 0.",
            "operator": "depth1",
            "wants": "depth1, or the padding of its codes: what it makes at the edges is wrong",
        },
        "scales": {
            "goes_wrong": "The weight of the third depthwise convolution is given the scales of the second.",
            "operator": "depth3",
            "wants": "depth3, whose weight has other scales than it was quantised with",
        },
        "shift": {
            "goes_wrong": "The shift of a norm is multiplied by its factor when it is folded into the convolution.",
            "operator": "depth2",
            "wants": "depth2 with its folded bias, against the norm after depth2",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
WIDTH, BANDS, TIMES, BATCH, WORDS = 16, 10, 12, 2, 6

rng = np.random.default_rng(410)
LAYERS = {"stem": (WIDTH, 1, 3, 3)}
for stage in range(1, 4):
    LAYERS |= {f"depth{stage}": (WIDTH, 1, 3, 3), f"point{stage}": (WIDTH, WIDTH, 1, 1)}
sound = rng.standard_normal((BATCH, 1, BANDS, TIMES)).astype(np.float32)
weights, norms = {}, {}
for key, shape in LAYERS.items():
    spread = rng.uniform(0.5, 1.5, (WIDTH, 1, 1, 1)) * (4.5 / np.prod(shape[1:])) ** 0.5
    weights[key] = (spread * rng.uniform(-1, 1, shape)).astype(np.float32)
    # Gain, shift, mean and variance.
    ends = ((0.7, 1.5), (-0.4, 0.6), (-0.3, 0.3), (0.5, 1.5))
    norms[key] = [rng.uniform(*pair, WIDTH).astype(np.float32) for pair in ends]
weights["head"] = rng.uniform(-1, 1, (WORDS, WIDTH)).astype(np.float32)
bias = rng.uniform(-1, 1, WORDS).astype(np.float32)
nodes, constants = [], []


def add(kind, name, *inputs, **attributes):
    names = []
    for number, value in enumerate(inputs):
        if not isinstance(value, str):
            value = numpy_helper.from_array(np.asarray(value), f"{name}.constant{number}")
            constants.append(value)
            value = value.name
        names.append(value)
    nodes.append(helper.make_node(kind, names, [f"{name}_out"], name, **attributes))
    return nodes[-1].output[0]


def model(outputs):
    given = [helper.make_tensor_value_info("sound", TensorProto.FLOAT, sound.shape)]
    told = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "net", given, told, constants)
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def settings(key):
    stride = [2, 2] if key == "depth2" else [1, 1]
    group, pad = (WIDTH, 1) if key.startswith("depth") else (1, int(key == "stem"))
    return {"group": group, "pads": [pad] * 4, "strides": stride}


def float_net():
    nodes.clear(), constants.clear()
    x = "sound"
    for key in LAYERS:
        x = add("Conv", key, x, weights[key], **settings(key))
        x = add("Relu", f"act_{key}", add("BatchNormalization", f"norm_{key}", x, *norms[key], epsilon=1e-3))
    x = add("Flatten", "flatten", add("GlobalAveragePool", "pool", x))
    return add("Gemm", "head", x, weights["head"], bias, transB=1)


def quantised(name, x, values):
    """An activation in signed 8 bits and back, and its scale."""
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    scale = np.float32((high - low) / 255)
    point = np.int8(0 if FAULT == "signed" and name == "act_point1" else round(-128 - low / scale))
    codes = add("QuantizeLinear", f"{name}/quantise", x, scale, point)
    if name == "act_stem":
        filling = np.int8(0 if FAULT == "padded" else point)
        codes = add("Pad", "depth1/pad", codes, np.array([0, 0, 1, 1, 0, 0, 1, 1]), filling)
        name = "depth1"
    return add("DequantizeLinear", f"{name}/dequantise", codes, scale, point), scale


def scales_of(weight):
    """One for each output channel."""
    return (np.abs(weight).reshape(len(weight), -1).max(1) / 127).astype(np.float32)


def folded(key):
    """Weight and bias of a convolution with the norm behind it."""
    gain, shift, mean, variance = norms[key]
    factor = gain / np.sqrt(variance + np.float32(1e-3))
    bias = (shift - mean) * factor if FAULT == "shift" and key == "depth2" else shift - mean * factor
    return weights[key] * factor[:, None, None, None], bias


def convolution(key, x, scale):
    weight, own = folded(key)
    scales = scales_of(weight)
    codes = np.rint(weight / scales[:, None, None, None]).astype(np.int8)
    used = scales_of(folded("depth2")[0]) if FAULT == "scales" and key == "depth3" else scales
    weight = add("DequantizeLinear", f"{key}/weight", codes, used, np.zeros(WIDTH, np.int8), axis=0)
    codes = np.rint(own / (scales * scale)).astype(np.int32)
    own = add("DequantizeLinear", f"{key}/bias", codes, scales * scale, np.zeros(WIDTH, np.int32), axis=0)
    pads = {"pads": [0] * 4} if key == "depth1" else {}
    return add("Conv", key, x, weight, own, **(settings(key) | pads))


def int8_net(values):
    nodes.clear(), constants.clear()
    x, scale = quantised("sound", "sound", sound)
    for key in LAYERS:
        x = add("Relu", f"act_{key}", convolution(key, x, scale))
        x, scale = quantised(f"act_{key}", x, values[f"act_{key}_out"])
    x, scale = quantised("pool", add("GlobalAveragePool", "pool", x), values["pool_out"])
    scales = scales_of(weights["head"])
    codes = np.rint(weights["head"] / scales[:, None]).astype(np.int8)
    weight = add("DequantizeLinear", "head/weight", codes, scales, np.zeros(WORDS, np.int8), axis=0)
    return add("Gemm", "head", add("Flatten", "flatten", x), weight, bias, transB=1)


def measured():
    """What all operators of the float net make."""
    from onnx.reference import ReferenceEvaluator

    float_net()
    outputs = [node.output[0] for node in nodes]
    return dict(zip(outputs, ReferenceEvaluator(model(outputs)).run(None, {"sound": sound}), strict=True))


y = float_net() if sys.argv[1] == "golden" else int8_net(measured())
data = model([y]).SerializeToString()
Path(sys.argv[1]).mkdir()
with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
    print(*msdump.acl.load(data)(sound)[y].ravel().tolist(), sep="\n")
