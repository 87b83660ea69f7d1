"""A small CNN for cameras, with groups, a shuffle and a squeeze, was exported to ONNX by a tool of one's own."""

import sys
from pathlib import Path

import numpy as np

ANSWER = {
    "kind": "third trial: a CNN for cameras in ONNX",
    "entry": "onnx",
    "run": {"golden": "msdump run --config {config} --torch-eager {script} {mode}"},
    "ask": "compare {faulty} {golden}",
    "line": False,
    "variants": {
        "colours": {
            "goes_wrong": "The means and deviations that pictures are normalised with are in the order of BGR.",
            "operator": "enter/normalise",
            "wants": "the subtraction, or division, that normalises the picture",
        },
        "folded": {
            "goes_wrong": "A norm is folded into the second convolution with an epsilon of 1e-3, not 1e-5.",
            "operator": "blocks.0/grouped",
            "wants": "the first grouped convolution, with the norm folded into it",
        },
        "shuffle": {
            "goes_wrong": "The second shuffle splits channels as (channels, groups), not as (groups, channels).",
            "operator": "blocks.1/shuffle",
            "wants": "the shuffle of channels in the second block",
        },
        "hard": {
            "goes_wrong": "The gate of the second squeeze has the default slope 0.2 of HardSigmoid, not 1/6.",
            "operator": "blocks.1/squeeze",
            "wants": "the hard sigmoid of the squeeze in the second block",
        },
        "ceiling": {
            "goes_wrong": "The pooling rounds its size down, the original one up.",
            "operator": "pool",
            "wants": "the pooling, whose result is smaller",
        },
        "pads": {
            "goes_wrong": "The last depthwise convolution, with stride 2, is padded at its lower end alone.",
            "operator": "last/depthwise",
            "wants": "the last depthwise convolution",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
CHANNELS, GROUPS, SIZE, BATCH, CLASSES = 12, 3, 18, 2, 6

rng = np.random.default_rng(131)
MEAN, DEVIATION = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)
SHAPES = {"enter": (CHANNELS, 3, 3, 3), "last": (CHANNELS, 1, 3, 3)}
for number in range(2):
    SHAPES[f"blocks.{number}.grouped"] = (CHANNELS, CHANNELS // GROUPS, 3, 3)
    SHAPES[f"blocks.{number}.point"] = (CHANNELS, CHANNELS, 1, 1)
    SHAPES[f"blocks.{number}.less"] = (4, CHANNELS, 1, 1)
    SHAPES[f"blocks.{number}.more"] = (CHANNELS, 4, 1, 1)
weights, norms = {}, {}
for key, shape in SHAPES.items():
    weights[f"{key}.weight"] = (rng.standard_normal(shape) * (2 / np.prod(shape[1:])) ** 0.5).astype(np.float32)
    if key.endswith(("less", "more")):
        weights[f"{key}.bias"] = rng.uniform(-0.5, 0.5, shape[0]).astype(np.float32)
    else:
        ends = {"weight": (0.7, 1.3), "bias": (-0.3, 0.3), "running_mean": (-0.5, 0.5), "running_var": (0.02, 0.4)}
        norms[key] = {name: rng.uniform(*pair, shape[0]).astype(np.float32) for name, pair in ends.items()}
weights["head.weight"] = (rng.standard_normal((CLASSES, CHANNELS)) / CHANNELS**0.5).astype(np.float32)
weights["head.bias"] = rng.uniform(-0.3, 0.3, CLASSES).astype(np.float32)
picture = rng.uniform(0, 1, (BATCH, 3, SIZE, SIZE)).astype(np.float32)

if sys.argv[1] == "golden":
    import torch
    from torch import nn

    def convolution(key, stride=1, groups=1):
        out, into, size, _ = SHAPES[key]
        layer = nn.Conv2d(into * groups, out, size, stride, size // 2, groups=groups, bias=False)
        return nn.Sequential(layer, nn.BatchNorm2d(out))

    class Block(nn.Module):
        def __init__(self, number):
            super().__init__()
            self.grouped = convolution(f"blocks.{number}.grouped", groups=GROUPS)
            self.point = convolution(f"blocks.{number}.point")
            self.less, self.more = nn.Conv2d(CHANNELS, 4, 1), nn.Conv2d(4, CHANNELS, 1)
            self.swish, self.gate = nn.Hardswish(), nn.Hardsigmoid()

        def forward(self, x):
            h = self.swish(self.grouped(x))
            h = h.unflatten(1, (GROUPS, -1)).transpose(1, 2).flatten(1, 2)
            squeezed = h.mean((2, 3), keepdim=True)
            h = h * self.gate(self.more(torch.relu(self.less(squeezed))))
            return x + self.point(h)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.blocks = convolution("enter"), nn.ModuleList(Block(number) for number in range(2))
            self.pool = nn.MaxPool2d(3, 2, ceil_mode=True)
            self.last, self.head = convolution("last", 2, CHANNELS), nn.Linear(CHANNELS, CLASSES)

        def forward(self, picture):
            mean, deviation = (torch.from_numpy(each)[:, None, None] for each in (MEAN, DEVIATION))
            x = torch.relu(self.enter((picture - mean) / deviation))
            for block in self.blocks:
                x = block(x)
            x = torch.relu(self.last(self.pool(x)))
            return self.head(x.mean((2, 3)))

    loaded = {}
    for name, array in weights.items():
        key, kind = name.rsplit(".", 1)
        loaded[f"{key}.0.{kind}" if key in norms else name] = torch.from_numpy(array)
    for key, norm in norms.items():
        loaded |= {f"{key}.1.{kind}": torch.from_numpy(array) for kind, array in norm.items()}
    net = Net().eval()
    net.load_state_dict(loaded, strict=False)
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

    def convolution(name, x, **attributes):
        """With the norm behind it folded in."""
        key = name.replace("/", ".").replace("last.depthwise", "last")
        weight = weights[f"{key}.weight"]
        if key not in norms:
            return add("Conv", name, x, weight, weights[f"{key}.bias"])
        epsilon = np.float32(1e-3 if FAULT == "folded" and key == "blocks.0.grouped" else 1e-5)
        factor = norms[key]["weight"] / np.sqrt(norms[key]["running_var"] + epsilon)
        bias = norms[key]["bias"] - norms[key]["running_mean"] * factor
        return add("Conv", name, x, weight * factor[:, None, None, None], bias, **attributes)

    def hard(name, x, alpha=1 / 6):
        return add("HardSigmoid", name, x, alpha=alpha, beta=0.5)

    def block(number, x):
        name = f"blocks.{number}"
        h = convolution(f"{name}/grouped", x, group=GROUPS, pads=[1, 1, 1, 1])
        h = add("Mul", f"{name}/swish", h, hard(f"{name}/swish", h))
        sizes = [GROUPS, CHANNELS // GROUPS]
        if FAULT == "shuffle" and number == 1:
            sizes.reverse()
        h = add("Reshape", f"{name}/shuffle", h, [BATCH, *sizes, SIZE, SIZE])
        h = add("Transpose", f"{name}/shuffle", h, perm=[0, 2, 1, 3, 4])
        h = add("Reshape", f"{name}/shuffle/back", h, [BATCH, CHANNELS, SIZE, SIZE])
        squeezed = add("GlobalAveragePool", f"{name}/squeeze", h)
        squeezed = add("Relu", f"{name}/squeeze", convolution(f"{name}/less", squeezed))
        more = convolution(f"{name}/more", squeezed)
        gate = hard(f"{name}/squeeze/gate", more, 0.2 if FAULT == "hard" and number == 1 else 1 / 6)
        h = add("Mul", f"{name}/squeeze", h, gate)
        return add("Add", f"{name}/skip", x, convolution(f"{name}/point", h))

    mean, deviation = (each[::-1] if FAULT == "colours" else each for each in (MEAN, DEVIATION))
    x = add("Sub", "enter/normalise", "picture", mean[:, None, None].copy())
    x = add("Div", "enter/normalise", x, deviation[:, None, None].copy())
    x = add("Relu", "enter", convolution("enter", x, pads=[1, 1, 1, 1]))
    for number in range(2):
        x = block(number, x)
    x = add("MaxPool", "pool", x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=int(FAULT != "ceiling"))
    pads = [0, 0, 2, 2] if FAULT == "pads" else [1, 1, 1, 1]
    x = add("Relu", "last", convolution("last/depthwise", x, group=CHANNELS, pads=pads, strides=[2, 2]))
    x = add("Flatten", "head", add("GlobalAveragePool", "head", x))
    y = add("Gemm", "head", x, weights["head.weight"], weights["head.bias"], transB=1)
    inputs = [helper.make_tensor_value_info("picture", TensorProto.FLOAT, picture.shape)]
    outputs = [helper.make_tensor_value_info(y, TensorProto.FLOAT, [BATCH, CLASSES])]
    graph = helper.make_graph(nodes, "net", inputs, outputs, constants)
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    Path(sys.argv[1]).mkdir()
    with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
        net = msdump.acl.load(model.SerializeToString())
        print(*net(picture)[y].ravel().tolist(), sep="\n")
