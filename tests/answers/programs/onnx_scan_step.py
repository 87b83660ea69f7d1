"""Two exports of a recurrent model, whose cell stands in a Scan: the gate of one opens a little earlier."""

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import msdump

ANSWER = {
    "kind": "ONNX models",
    "entry": "onnx",
    "ask": "compare {faulty} {golden}",
    "line": False,
    "operator": "cells/body/2/gate",
    "wants": "the gate inside of the Scan, in the third step, where the models part; steps are paired with equal steps",
    "says": ("first wrong operator",),
}

FAULT = sys.argv[1] == "faulty"


def value(name, kind=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


node = helper.make_node
gate = node("HardSigmoid", ["mixed"], ["gated"], "gate", alpha=0.2, beta=0.503 if FAULT else 0.5)
body = helper.make_graph(
    [
        node("Mul", ["state", "rate"], ["less"], "forget"),
        node("Add", ["less", "row"], ["mixed"], "mix"),
        gate,
        node("Mul", ["gated", "mixed"], ["after"], "out"),
        node("Identity", ["after"], ["each"], "keep"),
    ],
    "body",
    [value("state", shape=[2]), value("row", shape=[2])],
    [value("after", shape=[2]), value("each", shape=[2])],
)
nodes = [
    node("Relu", ["x"], ["rows"], "gate"),
    node("Scan", ["start", "rows"], ["last", "all"], "cells", body=body, num_scan_inputs=1),
    node("Tanh", ["last"], ["y"], "end"),
]
constants = {"rate": np.float32(0.0625), "start": np.zeros(2, np.float32)}
tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
graph = helper.make_graph(nodes, "cells", [value("x", shape=[4, 2])], [value("y"), value("all")], tensors)
model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
Path(sys.argv[1]).mkdir()
with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
    net = msdump.acl.load(model.SerializeToString())
    # In the first two steps the gate is open as far as it goes.
    net(np.float32([[9, 9], [9, 9], [0.5, 1], [2, 1]]))
