"""A voice detector does all of its work inside of an If, and the branch takes the logarithm of a negative energy."""

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
    "operator": "detect/then_branch/log",
    "wants": "the logarithm inside of the branch that ran; the If only hands on what it made",
    "never": ("made elsewhere",),
}

FAULT = sys.argv[1] == "faulty"


def branch(name, nodes):
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info("out_" + name, TensorProto.FLOAT, [4])])


x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
loud = branch(
    "loud", [helper.make_node("Log", ["x"], ["l"], "log"), helper.make_node("Abs", ["l"], ["out_loud"], "abs")]
)
quiet = branch("quiet", [helper.make_node("Neg", ["x"], ["out_quiet"], "neg")])
bound = helper.make_tensor("bound", TensorProto.FLOAT, [], [0.0])
nodes = [
    helper.make_node("ReduceMax", ["x"], ["top"], "loudest", keepdims=0),
    helper.make_node("Greater", ["top", "bound"], ["c"], "above"),
    helper.make_node("If", ["c"], ["o"], "detect", then_branch=loud, else_branch=quiet),
    helper.make_node("Mul", ["o", "o"], ["y"], "energy"),
]
graph = helper.make_graph(nodes, "vad", [x], [y], [bound])
model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
Path(sys.argv[1]).mkdir()
with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
    net = msdump.acl.load(model.SerializeToString())
    net(np.float32([0.5, 2.0, -1.0 if FAULT else 1.0, 0.1]))
