"""The model that the ONNX rows measure: ResNet-50, built operator by operator, with random weights."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# (width, blocks, stride of the first one)
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


class _Builder:
    """Nodes and weights so far. Batch normalisation is folded into the convolutions, as exporters do."""

    def __init__(self, seed: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._rng = np.random.default_rng(seed)

    def add(self, op_type: str, inputs: list[str], name: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(op_type, inputs, [f"{name}_out"], name, **attributes))
        return f"{name}_out"

    def weight(self, name: str, *shape: int) -> str:
        # He's initialisation, so that no value runs away in fifty layers.
        scale = (2 / max(1, int(np.prod(shape[1:])))) ** 0.5 if len(shape) > 1 else 0.0
        array = (self._rng.standard_normal(shape) * scale).astype(np.float32)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def convolution(self, x: str, name: str, inputs: int, outputs: int, size: int, stride: int = 1) -> str:
        operands = [x, self.weight(f"{name}.weight", outputs, inputs, size, size), self.weight(f"{name}.bias", outputs)]
        pads = [size // 2] * 4
        return self.add("Conv", operands, name, kernel_shape=[size] * 2, strides=[stride] * 2, pads=pads)


def resnet50(batch: int = 1, size: int = 224, seed: int = 0) -> onnx.ModelProto:
    """ResNet-50 for pictures (batch, 3, size, size) float32: 53 convolutions, 122 operators."""
    make = _Builder(seed)
    x = make.add("Relu", [make.convolution("data", "conv1", 3, 64, 7, 2)], "conv1/relu")
    x = make.add("MaxPool", [x], "pool1", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inputs = 64
    for stage, (width, count, first_stride) in enumerate(STAGES, 1):
        for block in range(count):
            name, stride = f"layer{stage}.{block}", first_stride if block == 0 else 1
            y = make.add("Relu", [make.convolution(x, f"{name}/conv1", inputs, width, 1)], f"{name}/relu1")
            y = make.add("Relu", [make.convolution(y, f"{name}/conv2", width, width, 3, stride)], f"{name}/relu2")
            y = make.convolution(y, f"{name}/conv3", width, 4 * width, 1)
            if block == 0:
                x = make.convolution(x, f"{name}/shortcut", inputs, 4 * width, 1, stride)
            x = make.add("Relu", [make.add("Add", [y, x], f"{name}/add")], f"{name}/relu3")
            inputs = 4 * width
    x = make.add("Flatten", [make.add("GlobalAveragePool", [x], "pool5")], "flatten")
    x = make.add("Gemm", [x, make.weight("fc.weight", 1000, inputs), make.weight("fc.bias", 1000)], "fc", transB=1)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        make.nodes,
        "resnet50",
        [info("data", TensorProto.FLOAT, [batch, 3, size, size])],
        [info(x, TensorProto.FLOAT, [batch, 1000])],
        make.weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
