"""A model in the form with QLinearConv is compared with the one in floats; the third weight has an outlier."""

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

import msdump

ANSWER = {
    "kind": "quantised models",
    "entry": "onnx",
    "ask": "compare {faulty} {golden}",
    "line": False,
    "operator": "conv3",
    "wants": "conv3: QLinearConv pairs with Conv, its codes are dequantised by the scales of the graph",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
weights = [(rng.uniform(-1, 1, (8, 8, 3, 3)) / 5).astype(np.float32) for _ in range(4)]
pictures = [rng.standard_normal((1, 8, 8, 8)).astype(np.float32) for _ in range(4)]
weights[2][1, 2, 0, 0] = 12


class Pictures(CalibrationDataReader):
    def __init__(self):
        self.rest = iter(pictures)

    def get_next(self):
        picture = next(self.rest, None)
        return None if picture is None else {"x": picture}


nodes, last = [], "x"
for number in range(1, 5):
    nodes.append(helper.make_node("Conv", [last, f"w{number}"], [f"c{number}"], f"conv{number}", pads=[1, 1, 1, 1]))
    last = "y" if number == 4 else f"r{number}"
    nodes.append(helper.make_node("Relu", [f"c{number}"], [last], f"relu{number}"))
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8, 8, 8]) for name in "xy")
constants = [numpy_helper.from_array(weight, f"w{number}") for number, weight in enumerate(weights, 1)]
graph = helper.make_graph(nodes, "net", [x], [y], constants)
model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
Path("float.onnx").write_bytes(model.SerializeToString())
quantize_static(
    "float.onnx", "int8.onnx", Pictures(), quant_format=QuantFormat.QOperator, activation_type=QuantType.QUInt8
)
Path(sys.argv[1]).mkdir()
with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
    msdump.acl.load("int8.onnx" if FAULT else "float.onnx")(pictures[0])
