"""A net for flowers, of depthwise convolutions and gates of channels, was written down as an ONNX model by hand."""

import sys
from pathlib import Path

import numpy as np

ANSWER = {
    "kind": "fourth trial: a net for flowers in ONNX",
    "entry": "onnx",
    "run": {"golden": "msdump run --config {config} --torch-eager {script} {mode}"},
    "ask": "compare {faulty} {golden}",
    "line": False,
    "variants": {
        "pads": {
            "goes_wrong": "The four pads are in PyTorch's order: left, right, top, bottom.",
            "operator": "stem/conv",
            "wants": "the convolution of the stem, whose pads have another order",
        },
        "turned": {
            "goes_wrong": "The way back to channels first changes the places of height and width.",
            "operator": "blocks.0/branch/end",
            "wants": "the transposition at the end of the first block's branch, or the sum with it",
        },
        "gamma": {
            "goes_wrong": "The scale of the second block's branch was forgotten.",
            "operator": "blocks.1/branch",
            "wants": "the product or the sum at the end of the second block's branch",
        },
        "hard": {
            "goes_wrong": "The hard sigmoid has the slope that is the default of ONNX, 0.2, not a sixth.",
            "operator": "gate/hard",
            "wants": "the hard sigmoid of the gate",
        },
        "pooled": {
            "goes_wrong": "The average pooling leaves the padding out of its count, the default of ONNX.",
            "operator": "pool",
            "wants": "the average pooling",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
WIDTH, INNER, BATCH, CLASSES, BLOCKS = 10, 24, 2, 6, 2

rng = np.random.default_rng(406)


def drawn(*shape, factor=1.0):
    return (factor * rng.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32)


def row(size, base=0.0):
    return (base + rng.uniform(-0.4, 0.4, size)).astype(np.float32)


weights = {"stem.weight": drawn(WIDTH, 3, 4, 4, factor=1.5), "stem.bias": row(WIDTH)}
for number in range(BLOCKS):
    name = f"blocks.{number}"
    weights |= {f"{name}.depth.weight": drawn(WIDTH, 1, 5, 5, factor=1.5), f"{name}.depth.bias": row(WIDTH)}
    weights |= {f"{name}.norm.weight": row(WIDTH, 1), f"{name}.norm.bias": row(WIDTH)}
    weights |= {f"{name}.up.weight": drawn(INNER, WIDTH, factor=1.5), f"{name}.up.bias": row(INNER)}
    weights |= {f"{name}.down.weight": drawn(WIDTH, INNER, factor=1.5), f"{name}.down.bias": row(WIDTH)}
    weights[f"{name}.gamma"] = row(WIDTH, 0.6)
weights |= {"less.weight": drawn(4, WIDTH, 1, 1, factor=2), "less.bias": row(4)}
weights |= {"more.weight": drawn(WIDTH, 4, 1, 1, factor=2), "more.bias": row(WIDTH)}
weights |= {"head.weight": drawn(CLASSES, WIDTH, factor=2), "head.bias": row(CLASSES)}
picture = rng.standard_normal((BATCH, 3, 15, 13), dtype=np.float32)

if sys.argv[1] == "golden":
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.depth, self.norm = nn.Conv2d(WIDTH, WIDTH, 5, padding=2, groups=WIDTH), nn.LayerNorm(WIDTH, eps=1e-6)
            self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
            self.gamma = nn.Parameter(torch.empty(WIDTH))

        def forward(self, x):
            h = self.norm(self.depth(x).permute(0, 2, 3, 1))
            h = self.down(F.gelu(self.up(h))) * self.gamma
            return x + h.permute(0, 3, 1, 2)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, WIDTH, 4, stride=2)
            self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
            self.less, self.more = nn.Conv2d(WIDTH, 4, 1), nn.Conv2d(4, WIDTH, 1)
            self.pool, self.head = nn.AvgPool2d(3, stride=2, padding=1), nn.Linear(WIDTH, CLASSES)

        def forward(self, x):
            x = self.blocks(F.relu6(self.stem(F.pad(x, (1, 2, 0, 1)))))
            gate = F.hardsigmoid(self.more(torch.relu(self.less(x.mean((2, 3), keepdim=True)))))
            x = self.pool(F.hardswish(x * gate))
            return self.head(x.amax((2, 3)))

    net = Net().eval()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    with torch.no_grad():
        print(*net(torch.from_numpy(picture)).flatten().tolist(), sep="\n")
else:
    from onnx import TensorProto, helper, numpy_helper

    import msdump

    nodes, constants = [], []

    def add(kind, name, *inputs, **attributes):
        names = []
        for number, value in enumerate(inputs):
            if not isinstance(value, str):
                value = numpy_helper.from_array(np.asarray(value), f"{name}/{kind}.{number}")
                constants.append(value)
                value = value.name
            names.append(value)
        nodes.append(helper.make_node(kind, names, [f"{name}/{kind}_out"], f"/{name}/{kind}", **attributes))
        return nodes[-1].output[0]

    def conv(name, key, x, **attributes):
        return add("Conv", name, x, weights[f"{key}.weight"], weights[f"{key}.bias"], **attributes)

    def linear(name, key, x):
        return add("Add", name, add("MatMul", name, x, weights[f"{key}.weight"].T), weights[f"{key}.bias"])

    def block(number, x):
        name = f"blocks.{number}"
        h = conv(f"{name}/depth", f"{name}.depth", x, pads=[2, 2, 2, 2], group=WIDTH)
        h = add("Transpose", f"{name}/last", h, perm=[0, 2, 3, 1])
        gain, shift = weights[f"{name}.norm.weight"], weights[f"{name}.norm.bias"]
        h = add("LayerNormalization", f"{name}/norm", h, gain, shift, axis=-1, epsilon=1e-6)
        h = linear(f"{name}/up", f"{name}.up", h)
        part = add("Erf", f"{name}/act", add("Mul", f"{name}/act/root", h, np.float32(0.5**0.5)))
        part = add("Mul", f"{name}/act/half", add("Add", f"{name}/act", part, np.float32(1)), np.float32(0.5))
        h = linear(f"{name}/branch/down", f"{name}.down", add("Mul", f"{name}/act", h, part))
        if FAULT != "gamma" or number != 1:
            h = add("Mul", f"{name}/branch/gamma", h, weights[f"{name}.gamma"])
        back = [0, 3, 2, 1] if FAULT == "turned" and number == 0 else [0, 3, 1, 2]
        h = add("Transpose", f"{name}/branch/end/first", h, perm=back)
        return add("Add", f"{name}/branch/end/skip", x, h)

    pads = [1, 2, 0, 1] if FAULT == "pads" else [0, 1, 1, 2]
    x = conv("stem/conv", "stem", "picture", strides=[2, 2], pads=pads)
    x = add("Clip", "stem/act", x, np.float32(0), np.float32(6))
    for number in range(BLOCKS):
        x = block(number, x)
    gate = add("ReduceMean", "gate/mean", x, axes=[2, 3], keepdims=1)
    gate = conv("gate/more", "more", add("Relu", "gate/act", conv("gate/less", "less", gate)))
    slope = {} if FAULT == "hard" else {"alpha": 1 / 6}
    x = add("Mul", "gate", x, add("HardSigmoid", "gate/hard", gate, **slope))
    x = add("HardSwish", "swish", x)
    counted = int(FAULT != "pooled")
    x = add("AveragePool", "pool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=counted)
    y = linear("head", "head", add("ReduceMax", "greatest", x, axes=[2, 3], keepdims=0))
    inputs = [helper.make_tensor_value_info("picture", TensorProto.FLOAT, picture.shape)]
    outputs = [helper.make_tensor_value_info(y, TensorProto.FLOAT, [BATCH, CLASSES])]
    graph = helper.make_graph(nodes, "net", inputs, outputs, constants)
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    Path(sys.argv[1]).mkdir()
    with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
        net = msdump.acl.load(model.SerializeToString())
        print(*net(picture)[y].ravel().tolist(), sep="\n")
