"""An exporter dropped the gate of a model; its ONNX file is compared with the PyTorch model."""

import sys
from pathlib import Path

import torch
from onnx import TensorProto, helper, numpy_helper

import msdump

ANSWER = {
    "kind": "ONNX models",
    "entry": "onnx",
    "ask": "compare {faulty} {golden}",
    "operator": "aten.sigmoid",
    "wants": "the sigmoid of the gate, which the exported model has not, with its line in the PyTorch model",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.gate = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)

    def forward(self, x):
        return torch.relu(self.fc(x)) * torch.sigmoid(self.gate(x))  # fault


net = Net()
x = torch.randn(2, 4)
if sys.argv[1] == "golden":
    with torch.no_grad(), msdump.watch(net, "golden.json"):
        net(x)
else:
    weights = [numpy_helper.from_array(value.detach().numpy(), name) for name, value in net.named_parameters()]
    fc = helper.make_node("Gemm", ["x", "fc.weight", "fc.bias"], ["h"], "/fc/Gemm", transB=1)
    gate = helper.make_node("Gemm", ["x", "gate.weight", "gate.bias"], ["g"], "/gate/Gemm", transB=1)
    relu = helper.make_node("Relu", ["h"], ["y" if FAULT else "r"], "/Relu")
    sigmoid, product = (
        helper.make_node("Sigmoid", ["g"], ["s"], "/Sigmoid"),
        helper.make_node("Mul", ["r", "s"], ["y"], "/Mul"),
    )
    nodes = [fc, relu] if FAULT else [fc, gate, relu, sigmoid, product]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, size]) for name, size in (("x", 4), ("y", 3))]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], weights[: 2 if FAULT else 4])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    Path(sys.argv[1]).mkdir()
    with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
        msdump.acl.load(model.SerializeToString())(x.numpy())
