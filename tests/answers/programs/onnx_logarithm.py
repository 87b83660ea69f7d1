"""An ONNX model takes the logarithm of a ratio, and one input of a batch makes it negative."""

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
    "operator": "scores",
    "step": 1,
    "wants": "the node that takes the logarithm, in the second run",
}

FAULT = sys.argv[1] == "faulty"

x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in "xy")
w = helper.make_tensor("w", TensorProto.FLOAT, [4, 4], np.eye(4, dtype=np.float32).ravel())
nodes = [
    helper.make_node("MatMul", ["x", "w"], ["h"], "project"),
    helper.make_node("Log", ["h"], ["l"], "scores"),
    helper.make_node("Softmax", ["l"], ["y"], "weights"),
]
graph = helper.make_graph(nodes, "net", [x], [y], [w])
model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
Path(sys.argv[1]).mkdir()
with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
    net = msdump.acl.load(model.SerializeToString())
    for run in range(3):
        values = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
        if FAULT and run == 1:
            values[1, 2] = -7
        net(values)
