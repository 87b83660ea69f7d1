"""The range of one activation was measured on another data set and clips what is above a tenth of its largest
value."""

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

import msdump

ANSWER = {
    "kind": "quantised models",
    "entry": "onnx",
    "ask": "compare {faulty} {golden}",
    "line": False,
    "operator": "r2",
    "says": ["clip"],
    "wants": "the activation r2, whose range clips most of its values, ahead of the layers that merely round",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
weights = [(rng.uniform(-1, 1, (8, 8, 3, 3)) / 5).astype(np.float32) for _ in range(4)]
pictures = [rng.standard_normal((1, 8, 8, 8)).astype(np.float32) for _ in range(4)]


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
narrow = {"r2": [{"scale": np.array(0.002, np.float32), "zero_point": np.array(0, np.int8)}]}
options = {"TensorQuantOverrides": narrow}
quantize_static("float.onnx", "int8.onnx", Pictures(), activation_type=QuantType.QInt8, extra_options=options)
Path(sys.argv[1]).mkdir()
with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
    msdump.acl.load("int8.onnx" if FAULT else "float.onnx")(pictures[0])
