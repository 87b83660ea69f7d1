"""A pyACL program runs a float16 model twice; the second input overflows in a product."""

import json
import sys
from pathlib import Path

import acl
import numpy as np
from onnx import TensorProto, helper, save

ANSWER = {
    "kind": "pyACL",
    "entry": "acl",
    "ask": "nan {faulty}",
    "run": "msdump run {script} {mode}",
    "operator": "scale",
    "line": False,
    "step": 1,
    "wants": "the node whose product overflows in float16, in the second execution",
}

FAULT = sys.argv[1] == "faulty"

x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT16, [1, 4]) for name in "xy")
gain = helper.make_tensor("gain", TensorProto.FLOAT16, [4], np.full(4, 100, np.float16))
nodes = [
    helper.make_node("Mul", ["x", "gain"], ["h"], "scale"),
    helper.make_node("Softmax", ["h"], ["y"], "weights"),
]
graph = helper.make_graph(nodes, "net", [x], [y], [gain])
save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), "net.onnx")
Path(sys.argv[1]).mkdir()
settings = {"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}
Path("acl.json").write_text(json.dumps(settings))

assert acl.init() == 0
assert acl.rt.set_device(0) == 0
assert acl.mdl.init_dump() == 0
assert acl.mdl.set_dump("acl.json") == 0
model, status = acl.mdl.load_from_file("net.onnx")
assert status == 0, acl.get_recent_err_msg()


def dataset(size):
    memory, _ = acl.rt.malloc(size, acl.const.ACL_MEM_MALLOC_HUGE_FIRST)
    holder = acl.mdl.create_dataset()
    acl.mdl.add_dataset_buffer(holder, acl.create_data_buffer(memory, size))
    return memory, holder


memory, inputs = dataset(8)
_, outputs = dataset(8)
for run in range(2):
    row = np.array([[1, 2, 900 if FAULT and run == 1 else 3, 4]], np.float16).tobytes()
    acl.rt.memcpy(memory, 8, acl.util.bytes_to_ptr(row), 8, acl.const.ACL_MEMCPY_HOST_TO_DEVICE)
    assert acl.mdl.execute(model, inputs, outputs) == 0
assert acl.mdl.finalize_dump() == 0
assert acl.mdl.unload(model) == 0
assert acl.finalize() == 0
