"""A decoder runs as a Loop that carries its state; in the fourth trip a mask leaves nothing of a row."""

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import msdump

ANSWER = {
    "kind": "ONNX models",
    "entry": "onnx",
    "ask": "nan {faulty}",
    "line": False,
    "operator": "decode/body/3/attend",
    "wants": "the division inside of the loop, in its fourth trip: nothing is left of the row",
    "never": ("made elsewhere",),
}

FAULT = sys.argv[1] == "faulty"


def value(name, kind=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


node = helper.make_node
body = helper.make_graph(
    [
        node("MatMul", ["state", "w"], ["scores"], "score"),
        node("Gather", ["masks", "trip"], ["mask"], "mask"),
        node("Exp", ["scores"], ["shares"], "share"),
        node("Mul", ["shares", "mask"], ["kept"], "hide"),
        node("ReduceSum", ["kept"], ["total"], "sum"),
        node("Div", ["kept", "total"], ["weights"], "attend"),
        node("Add", ["state", "weights"], ["after"], "step"),
        node("Identity", ["goes"], ["on"], "on"),
    ],
    "body",
    [value("trip", TensorProto.INT64, []), value("goes", TensorProto.BOOL, []), value("state")],
    [value("on", TensorProto.BOOL, []), value("after"), value("weights")],
)
masks = np.tri(6, 4, 0, np.float32)
masks[3] = [0 if FAULT else 1, 0, 0, 0]
constants = {
    "w": np.eye(4, dtype=np.float32),
    "masks": masks,
    "six": np.array(6),
}
nodes = [
    node("Tanh", ["x"], ["start"], "attend"),
    node("Loop", ["six", "", "start"], ["y", "all"], "decode", body=body),
    node("Exp", ["y"], ["z"], "end"),
]
tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
graph = helper.make_graph(nodes, "decoder", [value("x", shape=[1, 4])], [value("z"), value("all")], tensors)
model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
Path(sys.argv[1]).mkdir()
with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
    net = msdump.acl.load(model.SerializeToString())
    net(np.float32([[0.5, 2.0, -1.0, 0.1]]))
