"""A net that makes pictures larger, of dense blocks in PyTorch, was quantised to unsigned 8 bits in ONNX."""

import sys
from pathlib import Path

import numpy as np

ANSWER = {
    "kind": "sixth trial: a net that makes pictures larger quantised",
    "entry": "onnx",
    "run": {"golden": "msdump run --config {config} --torch-eager {script} {mode}"},
    "ask": "compare {faulty} {golden}",
    "line": False,
    "variants": {
        "joined": {
            "goes_wrong": "The codes of two branches are put together, although each has a scale of its own.",
            "operator": "dense.1/join",
            "wants": "the concatenation in the second dense block, or what turns its codes into numbers",
        },
        "point": {
            "goes_wrong": "The codes of a weight that is not symmetric are read with 128 as their zero point.",
            "operator": "dense.0/fuse",
            "wants": "the product that joins the first dense block, or its weight",
        },
        "depth": {
            "goes_wrong": "Channels become pixels in ONNX's own order, DCR, the weight is for PyTorch's order, CRD.",
            "operator": "enlarge",
            "wants": "the operator that makes pixels of channels",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
WIDTH, GROWTH, BLOCKS, BATCH, SIDE = 12, 8, 3, 2, 8

rng = np.random.default_rng(604)
SHAPES = {"enter": (WIDTH, 3, 3, 3)}
for number in range(BLOCKS):
    SHAPES[f"dense.{number}.grow"] = (GROWTH, WIDTH, 3, 3)
    SHAPES[f"dense.{number}.fuse"] = (WIDTH, WIDTH + GROWTH, 1, 1)
SHAPES["leave"] = (3 * 4, WIDTH, 3, 3)
weights = {}
for key, shape in SHAPES.items():
    values = rng.standard_normal(shape) * (1.5 / np.prod(shape[1:])) ** 0.5
    if key.endswith("fuse"):
        values += 0.06
    if key == "dense.1.grow":
        values *= 0.3
    weights[f"{key}.weight"] = values.astype(np.float32)
    weights[f"{key}.bias"] = rng.uniform(-0.3, 0.3, shape[0]).astype(np.float32)
weights["slope.weight"] = rng.uniform(0.1, 0.4, WIDTH).astype(np.float32)
picture = rng.uniform(-1, 1, (BATCH, 3, SIDE, SIDE)).astype(np.float32)

if sys.argv[1] == "golden":
    import torch
    import torch.nn.functional as F
    from torch import nn

    def convolution(key):
        out, into, size, _ = SHAPES[key]
        return nn.Conv2d(into, out, size, padding=size // 2)

    class Dense(nn.Module):
        def __init__(self, number):
            super().__init__()
            self.grow, self.fuse = convolution(f"dense.{number}.grow"), convolution(f"dense.{number}.fuse")

        def forward(self, x):
            h = torch.cat([x, F.relu(self.grow(x))], 1)
            return x + self.fuse(h)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.slope = convolution("enter"), nn.PReLU(WIDTH)
            self.dense = nn.Sequential(*(Dense(number) for number in range(BLOCKS)))
            self.leave, self.enlarge = convolution("leave"), nn.PixelShuffle(2)

        def forward(self, x):
            h = self.dense(self.slope(self.enter(x)))
            return F.interpolate(x, scale_factor=2, mode="nearest") + self.enlarge(self.leave(h))

    net = Net().eval()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    with torch.no_grad():
        print(*net(torch.from_numpy(picture)).flatten().tolist(), sep="\n")
else:
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    import msdump

    nodes, constants = [], []
    ranges = {}

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

    def scale_of(low, high):
        low, high = min(0.0, float(low)), max(0.0, float(high))
        scale = np.float32((high - low) / 255)
        return scale, np.uint8(round(-low / scale))

    def coded(name, x, *of):
        """The codes of x, with the scale of all the tensors `of`, and that scale."""
        if not ranges:
            return x, ()
        lows, highs = zip(*(ranges[each] for each in of), strict=True)
        scale = scale_of(min(lows), max(highs))
        return add("QuantizeLinear", name, x, *scale), scale

    def read(name, codes, scale):
        return add("DequantizeLinear", name, codes, *scale) if scale else codes

    def quantised(x):
        name = x.rsplit("/", 1)[0]
        return read(name, *coded(name, x, x))

    def convolution(name, x):
        key = name.replace("/", ".")
        weight, pad = weights[f"{key}.weight"], SHAPES[key][2] // 2
        if ranges:
            scale, point = scale_of(weight.min(), weight.max())
            codes = np.clip(np.rint(weight / scale) + point, 0, 255).astype(np.uint8)
            if FAULT == "point" and name == "dense.0/fuse":
                point = np.uint8(128)
            weight = add("DequantizeLinear", f"{name}/weight", codes, scale, point)
        return add("Conv", name, x, weight, weights[f"{key}.bias"], pads=[pad] * 4)

    def dense(number, x):
        name = f"dense.{number}"
        h = add("Relu", f"{name}/act", convolution(f"{name}/grow", x))
        if FAULT == "joined" and number == 1:
            first, scale = coded(f"{name}/join/first", x, x)
            second, _ = coded(f"{name}/join/second", h, h)
        else:
            first, scale = coded(f"{name}/join/first", x, x, h)
            second, _ = coded(f"{name}/join/second", h, x, h)
        h = read(f"{name}/join", add("Concat", f"{name}/join", first, second, axis=1), scale)
        return quantised(add("Add", f"{name}/skip", x, quantised(convolution(f"{name}/fuse", h))))

    def build():
        nodes.clear(), constants.clear()
        entered = convolution("enter", quantised(add("Identity", "picture", "given")))
        x = quantised(add("PRelu", "slope", entered, weights["slope.weight"][:, None, None]))
        for number in range(BLOCKS):
            x = dense(number, x)
        x = quantised(convolution("leave", x))
        mode = "DCR" if FAULT == "depth" and ranges else "CRD"
        x = add("DepthToSpace", "enlarge", x, blocksize=2, mode=mode)
        sizes = np.array([1, 1, 2, 2], np.float32)
        settings = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return add("Add", "sum", add("Resize", "larger", "given", "", sizes, **settings), x)

    def model(outputs):
        given = [helper.make_tensor_value_info("given", TensorProto.FLOAT, picture.shape)]
        told = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(nodes, "net", given, told, constants)
        return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])

    build()
    names = [node.output[0] for node in nodes]
    for name, values in zip(names, ReferenceEvaluator(model(names)).run(None, {"given": picture}), strict=True):
        ranges[name] = values.min(), values.max()
    # The quantised net reads an activation under its new name.
    for name in list(ranges):
        ranges[f"{name.rsplit('/', 1)[0]}/DequantizeLinear_out"] = ranges[name]
    y = build()
    Path(sys.argv[1]).mkdir()
    with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
        net = msdump.acl.load(model([y]).SerializeToString())
        print(*net(picture)[y].ravel().tolist(), sep="\n")
