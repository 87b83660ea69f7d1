"""An encoder with a recurrent head was exported to ONNX, upgraded and quantised; the file has one fault."""

import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from torch import nn
from torch.nn import functional

import msdump

ANSWER = {
    "kind": "trial: an encoder in ONNX",
    "entry": "onnx",
    "ask": "compare {faulty} {golden}",
    "line": False,
    "variants": {
        "right": {
            "goes_wrong": "Nothing: the net in PyTorch is compared with the exported one.",
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree",
        },
        "upgraded": {
            "goes_wrong": "Nothing: the file of opset 17 is compared with that of opset 13, without LayerNorm.",
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree",
        },
        "int8": {
            "goes_wrong": "Nothing: the file is compared with its int8 form, weights and activations.",
            "exit": 0,
            "says": ["agree"],
            "never": ["different weights or data"],
            "wants": "that both agree up to the quantisation",
        },
        "weights": {
            "goes_wrong": "Nothing: the file is compared with its form of int8 weights whose activations are measured.",
            "exit": 0,
            "says": ["agree"],
            "never": ["different weights or data"],
            "wants": "that both agree up to the quantisation",
        },
        "epsilon": {
            "goes_wrong": "The epsilon of the second norm of the second block is 0.01 in place of 0.00001.",
            "operator": "blocks.1/norm2",
            "never": ["different weights or data"],
            "wants": "the second norm of the second block",
        },
        "axis": {
            "goes_wrong": "The softmax of the first block goes over the queries.",
            "operator": "blocks.0/Softmax",
            "never": ["different weights or data"],
            "wants": "the softmax of the first block",
        },
        "transposed": {
            "goes_wrong": "The square weight behind the attention of the second block is transposed.",
            "operator": "blocks.1/out",
            "wants": "the product of the second block, whose weight differs",
        },
        "bias": {
            "goes_wrong": "The first layer of the second feed-forward has lost its bias: it is 0.",
            "operator": "blocks.1/first",
            "wants": "the first layer of the second feed-forward, whose bias differs",
        },
        "int8_scale": {
            "goes_wrong": "The scale of the weight of the head is a half of what it should be.",
            "operator": "head",
            "wants": "the head, whose weight differs by a half",
        },
        "gates": {
            "goes_wrong": "The gates of the LSTM are in PyTorch's order in the file.",
            "operator": "LSTM",
            "wants": "the LSTM, whose weights are in another order",
        },
    },
}

VARIANT = sys.argv[2]
FAULT = VARIANT if sys.argv[1] == "faulty" else ""
WIDTH, HEADS, LENGTH = 32, 4, 8

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.first, self.second = nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        y = self.norm1(x)
        query, key, value = (
            each(y).reshape(2, LENGTH, HEADS, -1).transpose(1, 2) for each in (self.query, self.key, self.value)
        )
        share = torch.softmax(query @ key.transpose(-1, -2) / 8**0.5, -1)
        x = x + self.out((share @ value).transpose(1, 2).reshape(2, LENGTH, WIDTH))
        return x + self.second(functional.gelu(self.first(self.norm2(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.blocks = nn.Linear(12, WIDTH), nn.Sequential(Block(), Block())
        self.lstm, self.head = nn.LSTM(WIDTH, 24, batch_first=True), nn.Linear(24, 6)

    def forward(self, x):
        y, _ = self.lstm(0.3 * self.blocks(0.3 * self.enter(x)))
        return self.head(torch.tanh(y[:, -1]))


class Data(CalibrationDataReader):
    def __init__(self):
        self.rest = iter([{"x": x.numpy()}])

    def get_next(self):
        return next(self.rest, None)


net, x = Net().eval(), torch.randn(2, LENGTH, 12)
for module in net.modules():
    if isinstance(module, nn.LayerNorm):
        module.weight.data.uniform_(0.5, 1.5)
        module.bias.data.normal_(std=0.2)


def exported(opset=17):
    torch.onnx.export(net, (x,), "float.onnx", dynamo=False, opset_version=opset, input_names=["x"], output_names=["y"])
    return onnx.load("float.onnx")


def node_of(model, words, kinds):
    return next(node for node in model.graph.node if words in node.name and node.op_type in kinds)


def change(model, name, function):
    (tensor,) = (each for each in model.graph.initializer if each.name == name)
    array = numpy_helper.to_array(tensor)
    changed = np.ascontiguousarray(function(array.copy())).astype(array.dtype)
    tensor.CopyFrom(numpy_helper.from_array(changed, name))


def weight_of(node, model):
    names = {each.name for each in model.graph.initializer}
    return next(name for name in node.input if name in names)


def quantised():
    exported()
    types = {"weight_type": QuantType.QInt8, "activation_type": QuantType.QUInt8, "per_channel": True}
    kinds = ["MatMul", "Gemm"]
    quantize_static("float.onnx", "int8.onnx", Data(), QuantFormat.QDQ, op_types_to_quantize=kinds, **types)
    return onnx.load("int8.onnx")


def made(is_golden):
    if VARIANT in ("int8", "int8_scale") and not is_golden and (VARIANT == "int8_scale" or FAULT):
        model = quantised()
        if FAULT == "int8_scale":
            makers = {name: node for node in model.graph.node for name in node.output}
            change(model, makers[node_of(model, "head", ("Gemm",)).input[1]].input[1], lambda array: array / 2)
        return model
    if FAULT == "weights":
        exported()
        quantize_dynamic("float.onnx", "int8.onnx", weight_type=QuantType.QInt8)
        return onnx.load("int8.onnx")
    model = exported(13 if FAULT == "upgraded" else 17)
    if FAULT == "epsilon":
        for attribute in node_of(model, "blocks.1/norm2", ("LayerNormalization",)).attribute:
            if attribute.name == "epsilon":
                attribute.f = 0.01
    if FAULT == "axis":
        for attribute in node_of(model, "blocks.0/", ("Softmax",)).attribute:
            attribute.i = 2
    if FAULT == "transposed":
        change(model, weight_of(node_of(model, "blocks.1/out", ("MatMul",)), model), lambda array: array.T)
    if FAULT == "bias":
        change(model, weight_of(node_of(model, "blocks.1/first", ("Add",)), model), lambda array: 0 * array)
    if FAULT == "gates":
        for name in node_of(model, "", ("LSTM",)).input[1:4]:
            # ONNX: input, output, forget, cell; PyTorch: input, forget, cell, output.
            change(model, name, reordered)
    return model


def reordered(array):
    if array.shape[1] == 8 * 24:
        return np.concatenate([reordered(half) for half in np.split(array, 2, 1)], 1)
    first, output, forget, cell = np.split(array, 4, 1)
    return np.concatenate([first, forget, cell, output], 1)


mode = sys.argv[1]
if mode == "golden" and VARIANT in ("right", "gates", "transposed", "axis"):
    with torch.no_grad(), msdump.watch(net, "golden.json"):
        net(x)
else:
    model = made(mode == "golden")
    Path(mode).mkdir()
    with msdump.acl.dump({"dump": {"dump_path": mode, "dump_list": [{}], "dump_mode": "all"}}):
        print(msdump.acl.load(model.SerializeToString())(x.numpy()))
