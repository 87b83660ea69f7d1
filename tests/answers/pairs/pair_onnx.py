"""A small convolutional net was exported to ONNX and quantised, and one number in the file is wrong."""

import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

import msdump

ANSWER = {
    "kind": "an exported net and its int8 forms",
    "entry": "onnx",
    "ask": "compare {faulty} {golden}",
    "line": False,
    "variants": {
        "resize": {
            "goes_wrong": "Another exporter aligns the corners of a Resize.",
            "operator": "Resize",
            "says": ["coordinate_transformation_mode"],
            "wants": "the Resize, and its coordinate_transformation_mode",
        },
        "weight": {
            "goes_wrong": "The kernels of the second convolution are transposed.",
            "operator": "conv2",
            "says": ["weight"],
            "wants": "the second convolution, and that its weight differs",
        },
        "scale": {
            "goes_wrong": "The scale of the activation before the third convolution is a sixth of what it should be.",
            "operator": "QuantizeLinear",
            "says": ["clips"],
            "wants": "the activation that the third convolution reads, most of which is clipped",
        },
        "zero_point": {
            "goes_wrong": "The zero point of the activation before the third convolution is 40 too large.",
            "operator": "QuantizeLinear",
            "says": ["clips"],
            "wants": "the activation that the third convolution reads, whose range has moved",
        },
        "calibration": {
            "goes_wrong": "Ranges were measured on pictures of a tenth of the brightness.",
            "operator": "QuantizeLinear",
            "says": ["clips"],
            "wants": "an activation whose range clips its values",
        },
        "channel": {
            "goes_wrong": "The scale of the weight is three times too large in one channel of the third convolution.",
            "operator": "conv3",
            "says": ["channel 5"],
            "wants": "the third convolution, the weight of channel 5",
        },
        "pruned": {
            "goes_wrong": "The codes of the weight are 0 in one channel of the third convolution.",
            "operator": "conv3",
            "says": ["channel 3"],
            "wants": "the third convolution, the weight of channel 3",
        },
        "qdq": {
            "goes_wrong": "Nothing: the net is compared with its int8 form, QuantizeLinear around float operators.",
            "exit": 0,
            "says": ["agree"],
            "wants": "that both agree up to the quantisation",
        },
        "qoperator": {
            "goes_wrong": "Nothing: the net is compared with its int8 form, QLinearConv with float operators between.",
            "exit": 0,
            "says": ["agree"],
            "never": ["different weights or data"],
            "wants": "that both agree up to the quantisation",
        },
        "dynamic": {
            "goes_wrong": "Nothing: the net is compared with its int8 form that measures ranges while it runs.",
            "exit": 0,
            "says": ["agree"],
            "wants": "that both agree up to the quantisation",
        },
        "torch_int8": {
            "goes_wrong": "Nothing: the net in PyTorch is compared with the int8 form of its ONNX file.",
            "exit": 0,
            "says": ["agree"],
            "wants": "that both agree up to the quantisation",
        },
        "torch_scale": {
            "goes_wrong": "The net in PyTorch is compared with an int8 form, in which one scale is a sixth.",
            "operator": "QuantizeLinear",
            "wants": "the activation that the third convolution reads, most of which is clipped",
        },
    },
}

VARIANT = sys.argv[2]
INT8 = ("scale", "zero_point", "calibration", "channel", "pruned", "torch_int8", "torch_scale")

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = (torch.nn.Conv2d(size, 16, 3, padding=1) for size in (3, 16, 16))
        self.norm1, self.norm2, self.fc = torch.nn.BatchNorm2d(16), torch.nn.BatchNorm2d(16), torch.nn.Linear(16, 10)
        for norm in (self.norm1, self.norm2):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
            norm.weight.data.uniform_(0.5, 1.5)
            norm.bias.data.normal_()

    def forward(self, x):
        x = torch.relu(self.norm1(self.conv1(x)))
        x = torch.nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear")
        x = torch.nn.functional.hardswish(self.norm2(self.conv2(x)))
        x = x + torch.nn.functional.gelu(self.conv3(x))
        return self.fc(x.mean((2, 3)))


class Pictures(CalibrationDataReader):
    def __init__(self, brightness=1.0):
        self.rest = iter([{"x": x.numpy() * np.float32(brightness)}])

    def get_next(self):
        return next(self.rest, None)


net, x = Net().eval(), torch.randn(2, 3, 12, 12)


def exported():
    torch.onnx.export(net, (x,), "float.onnx", dynamo=False, opset_version=17, input_names=["x"], output_names=["y"])
    return onnx.load("float.onnx")


def quantised(form=QuantFormat.QDQ, brightness=1.0):
    exported()
    types = {"weight_type": QuantType.QInt8, "activation_type": QuantType.QUInt8, "per_channel": True}
    quantize_static("float.onnx", "int8.onnx", Pictures(brightness), quant_format=form, **types)
    return onnx.load("int8.onnx")


def conv(model, number):
    return next(node for node in model.graph.node if node.op_type == "Conv" and f"conv{number}" in node.name)


def change(model, name, function):
    (tensor,) = (each for each in model.graph.initializer if each.name == name)
    array = numpy_helper.to_array(tensor)
    changed = np.ascontiguousarray(function(array.copy())).astype(array.dtype)
    tensor.CopyFrom(numpy_helper.from_array(changed, name))


def put(array, index, value):
    array[index] = value
    return array


def made(variant):
    if variant in ("", "resize", "weight"):
        model = exported()
        if variant == "resize":
            (node,) = (node for node in model.graph.node if node.op_type == "Resize")
            for attribute in node.attribute:
                if attribute.name == "coordinate_transformation_mode":
                    attribute.s = b"align_corners"
        if variant == "weight":
            change(model, conv(model, 2).input[1], lambda array: array.transpose(0, 1, 3, 2))
        return model
    if variant == "dynamic":
        exported()
        quantize_dynamic("float.onnx", "int8.onnx", weight_type=QuantType.QUInt8)
        return onnx.load("int8.onnx")
    model = quantised(
        QuantFormat.QOperator if variant == "qoperator" else QuantFormat.QDQ, 0.1 if variant == "calibration" else 1.0
    )
    if variant in ("scale", "torch_scale", "zero_point", "channel", "pruned"):
        makers = {name: node for node in model.graph.node for name in node.output}
        activation, weight = (makers[name].input for name in conv(model, 3).input[:2])
        if variant in ("scale", "torch_scale"):
            change(model, activation[1], lambda array: array / 6)
        if variant == "zero_point":
            change(model, activation[2], lambda array: array + 40)
        if variant == "channel":
            change(model, weight[1], lambda array: put(array, 5, array[5] * 3))
        if variant == "pruned":
            change(model, weight[0], lambda array: put(array, 3, 0))
    return model


mode = sys.argv[1]
if mode == "golden" and VARIANT.startswith("torch"):
    with torch.no_grad(), msdump.watch(net, "golden.json"):
        net(x)
else:
    twin = "qdq" if VARIANT in INT8 and mode == "healthy" else ""
    model = made(VARIANT if mode == "faulty" else twin)
    Path(mode).mkdir()
    with msdump.acl.dump({"dump": {"dump_path": mode, "dump_list": [{}], "dump_mode": "all"}}):
        msdump.acl.load(model.SerializeToString())(x.numpy())
