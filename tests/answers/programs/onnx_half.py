"""A model was converted to float16 as a whole, and a normalisation squares numbers that are too large for it."""

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

import msdump

ANSWER = {
    "kind": "ONNX models",
    "entry": "onnx",
    "ask": "nan {faulty}",
    "line": False,
    "operator": "square",
    "wants": "the node whose square overflows in float16",
}

FAULT = sys.argv[1] == "faulty"

x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT16, [2, 4]) for name in "xy")
nodes = [
    helper.make_node("Mul", ["x", "x"], ["s"], "square"),
    helper.make_node("ReduceMean", ["s"], ["m"], "mean", axes=[1]),
    helper.make_node("Sqrt", ["m"], ["d"], "root"),
    helper.make_node("Div", ["x", "d"], ["y"], "normalise"),
]
graph = helper.make_graph(nodes, "net", [x], [y])
model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
Path(sys.argv[1]).mkdir()
with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
    net = msdump.acl.load(model.SerializeToString())
    net(np.arange(1, 9, dtype=np.float16).reshape(2, 4) * np.float16(400 if FAULT else 4))
