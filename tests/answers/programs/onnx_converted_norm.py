"""A converter drops the epsilon of a LayerNormalization, and the deployed model computes with its default."""

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, save

import msdump

ANSWER = {
    "kind": "ONNX models",
    "entry": "onnx",
    "ask": "replay {faulty} norm --model net.onnx --iteration 1",
    "line": False,
    "says": ["WRONG", "norm"],
    "wants": "the norm did not compute what its inputs and the attributes of the exported model give",
}

FAULT = sys.argv[1] == "faulty"

x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in "xy")
gain = helper.make_tensor("gain", TensorProto.FLOAT, [4], np.linspace(0.5, 2, 4, dtype=np.float32))
nodes = [
    helper.make_node("Tanh", ["x"], ["h"], "squash"),
    helper.make_node("LayerNormalization", ["h", "gain"], ["n"], "norm", epsilon=1e-2),
    helper.make_node("Softmax", ["n"], ["y"], "weights"),
]
graph = helper.make_graph(nodes, "net", [x], [y], [gain])
model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
save(model, "net.onnx")
if FAULT:
    del model.graph.node[1].attribute[:]
Path(sys.argv[1]).mkdir()
with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
    net = msdump.acl.load(model.SerializeToString())
    for run in range(2):
        net(np.arange(8, dtype=np.float32).reshape(2, 4) / (8 + run))
