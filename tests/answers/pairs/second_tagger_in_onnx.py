"""An encoder that tags sentences, in PyTorch, was written down as an ONNX model by a converter of one's own."""

import sys
from pathlib import Path

import numpy as np

ANSWER = {
    "kind": "second trial: a tagger in ONNX",
    "entry": "onnx",
    "run": {"golden": "msdump run --config {config} --torch-eager {script} {mode}"},
    "ask": "compare {faulty} {golden}",
    "line": False,
    "variants": {
        "positions": {
            "goes_wrong": "The positions start at 0, the original leaves the first two rows of their table out.",
            "operator": "embeddings/position",
            "wants": "the rows of the table of positions that are taken, or the sum that they are added in",
        },
        "scale": {
            "goes_wrong": "The scores of the first attention are not divided by the root of the width of a head.",
            "operator": "layers.0/attention/scores",
            "wants": "the scores of the first attention, twice as large as they should be",
        },
        "mask": {
            "goes_wrong": "The mask of the second attention lets one key behind the end of each sentence through.",
            "operator": "layers.1/attention/mask",
            "wants": "the mask of the second attention, or where it is applied",
        },
        "gelu": {
            "goes_wrong": "The second GELU is the approximation by a hyperbolic tangent.",
            "operator": "layers.1/act",
            "wants": "the activation of the second layer",
        },
        "epsilon": {
            "goes_wrong": "The norm of the small embeddings has an epsilon of 1e-5, as other norms, not 1e-12.",
            "operator": "embeddings/norm",
            "wants": "the norm of the embeddings, with its epsilon",
        },
        "packed": {
            "goes_wrong": "The rows of query, key and value are taken as if each head had its three together.",
            "operator": "layers.0/attention/qkv",
            "wants": "the product that makes query, key and value, or its weight, whose rows are in another order",
        },
        "turned": {
            "goes_wrong": "The square weight behind the second attention is not transposed.",
            "operator": "layers.1/attention/out",
            "wants": "the product behind the second attention, whose weight is transposed",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
WORDS, WIDTH, HEADS, LENGTH, BATCH, LAYERS, TAGS = 30, 16, 4, 7, 2, 2, 5

rng = np.random.default_rng(11)


def drawn(*shape, factor=1.0):
    return (factor * rng.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32)


weights = {"embeddings.word.weight": drawn(WORDS, WIDTH, factor=0.1)}
weights["embeddings.position.weight"] = drawn(LENGTH + 2, WIDTH, factor=0.1)
weights |= {"embeddings.norm.weight": 1 + drawn(WIDTH), "embeddings.norm.bias": drawn(WIDTH)}
for number in range(LAYERS):
    for name, out, into in (("qkv", 48, 16), ("out", 16, 16), ("up", 32, 16), ("down", 16, 32)):
        weights[f"layers.{number}.{name}.weight"] = drawn(out, into, factor=1.7)
        weights[f"layers.{number}.{name}.bias"] = drawn(out)
    for name in ("norm1", "norm2"):
        weights[f"layers.{number}.{name}.weight"] = 1 + drawn(WIDTH)
        weights[f"layers.{number}.{name}.bias"] = drawn(WIDTH)
weights |= {"head.weight": drawn(TAGS, WIDTH), "head.bias": drawn(TAGS)}
text, lengths = rng.integers(0, WORDS, (BATCH, LENGTH)), np.array([4, 6])

if sys.argv[1] == "golden":
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
            self.norm1, self.norm2, self.act = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), nn.GELU()

        def forward(self, x, padding):
            q, k, v = (each.unflatten(-1, (HEADS, -1)).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
            scores = q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5
            scores = scores.masked_fill(padding[:, None, None], -1e9).softmax(-1)
            x = self.norm1(x + self.out((scores @ v).transpose(1, 2).flatten(2)))
            return self.norm2(x + self.down(self.act(self.up(x))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            tables = {"word": nn.Embedding(WORDS, WIDTH), "position": nn.Embedding(LENGTH + 2, WIDTH)}
            self.embeddings = nn.ModuleDict(tables | {"norm": nn.LayerNorm(WIDTH, eps=1e-12)})
            self.layers, self.head = nn.ModuleList(Layer() for _ in range(LAYERS)), nn.Linear(WIDTH, TAGS)

        def forward(self, text, length):
            x = self.embeddings["word"](text) + self.embeddings["position"](torch.arange(LENGTH) + 2)
            x = self.embeddings["norm"](x)
            padding = torch.arange(LENGTH) >= length[:, None]
            for layer in self.layers:
                x = layer(x, padding)
            return self.head(x)

    net = Net().eval()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    with torch.no_grad():
        print(*net(torch.from_numpy(text), torch.from_numpy(lengths)).flatten().tolist(), sep="\n")
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

    def linear(name, key, x, is_turned=True):
        weight = weights[f"{key}.weight"]
        return add("Add", name, add("MatMul", name, x, weight.T if is_turned else weight), weights[f"{key}.bias"])

    def norm(name, x, epsilon):
        centred = add("Sub", name, x, add("ReduceMean", f"{name}/mean", x, axes=[-1]))
        variance = add("ReduceMean", f"{name}/variance", add("Mul", f"{name}/square", centred, centred), axes=[-1])
        root = add("Sqrt", name, add("Add", f"{name}/epsilon", variance, np.float32(epsilon)))
        x = add("Mul", name, add("Div", name, centred, root), weights[f"{name.replace('/', '.')}.weight"])
        return add("Add", name, x, weights[f"{name.replace('/', '.')}.bias"])

    def attention(number, x):
        name, key = f"layers.{number}/attention", f"layers.{number}"
        qkv = linear(f"{name}/qkv", f"{key}.qkv", x)
        if FAULT == "packed" and number == 0:
            qkv = add("Reshape", f"{name}/qkv/heads", qkv, [BATCH, LENGTH, HEADS, 3, WIDTH // HEADS])
            qkv = add("Transpose", f"{name}/qkv/heads", qkv, perm=[3, 0, 2, 1, 4])
        else:
            qkv = add("Reshape", f"{name}/qkv/heads", qkv, [BATCH, LENGTH, 3, HEADS, WIDTH // HEADS])
            qkv = add("Transpose", f"{name}/qkv/heads", qkv, perm=[2, 0, 3, 1, 4])
        heads = [add("Gather", f"{name}/qkv/{which}", qkv, number, axis=0) for number, which in enumerate("qkv")]
        keys = add("Transpose", f"{name}/scores/keys", heads[1], perm=[0, 1, 3, 2])
        scores = add("MatMul", f"{name}/scores", heads[0], keys)
        if FAULT != "scale" or number != 0:
            scores = add("Mul", f"{name}/scores", scores, np.float32((WIDTH // HEADS) ** -0.5))
        ends = add("Reshape", f"{name}/mask/lengths", "lengths", [BATCH, 1, 1, 1])
        kind = "LessOrEqual" if FAULT == "mask" and number == 1 else "Less"
        kept = add(kind, f"{name}/mask", np.arange(LENGTH), ends)
        scores = add("Where", f"{name}/mask", kept, scores, np.float32(-1e9))
        mixed = add("MatMul", f"{name}/values", add("Softmax", f"{name}/weights", scores, axis=-1), heads[2])
        mixed = add("Transpose", f"{name}/values", mixed, perm=[0, 2, 1, 3])
        mixed = add("Reshape", f"{name}/values", mixed, [BATCH, LENGTH, WIDTH])
        return linear(f"{name}/out", f"{key}.out", mixed, FAULT != "turned" or number != 1)

    def gelu(number, x):
        name = f"layers.{number}/act"
        if FAULT == "gelu" and number == 1:
            cube = add("Mul", f"{name}/cube", add("Mul", f"{name}/square", x, x), x)
            inner = add("Add", f"{name}/inner", x, add("Mul", f"{name}/factor", cube, np.float32(0.044715)))
            part = add("Tanh", name, add("Mul", f"{name}/root", inner, np.float32((2 / np.pi) ** 0.5)))
        else:
            part = add("Erf", name, add("Div", name, x, np.float32(2**0.5)))
        return add("Mul", f"{name}/half", add("Mul", name, x, add("Add", name, part, np.float32(1))), np.float32(0.5))

    first = 0 if FAULT == "positions" else 2
    places = add("Gather", "embeddings/position", weights["embeddings.position.weight"], np.arange(LENGTH) + first)
    x = add(
        "Add",
        "embeddings/position",
        add("Gather", "embeddings/word", weights["embeddings.word.weight"], "text"),
        places,
    )
    x = norm("embeddings/norm", x, 1e-5 if FAULT == "epsilon" else 1e-12)
    for number in range(LAYERS):
        name = f"layers.{number}"
        x = add("Add", f"{name}/attention/skip", x, attention(number, x))
        x = norm(f"{name}/norm1", x, 1e-5)
        h = gelu(number, linear(f"{name}/up", f"{name}.up", x))
        x = norm(f"{name}/norm2", add("Add", f"{name}/skip", x, linear(f"{name}/down", f"{name}.down", h)), 1e-5)
    y = linear("head", "head", x)
    inputs = [helper.make_tensor_value_info("text", TensorProto.INT64, [BATCH, LENGTH])]
    inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT64, [BATCH]))
    outputs = [helper.make_tensor_value_info(y, TensorProto.FLOAT, [BATCH, LENGTH, TAGS])]
    graph = helper.make_graph(nodes, "net", inputs, outputs, constants)
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    Path(sys.argv[1]).mkdir()
    with msdump.acl.dump({"dump": {"dump_path": sys.argv[1], "dump_list": [{}], "dump_mode": "all"}}):
        net = msdump.acl.load(model.SerializeToString())
        print(*net(text, lengths)[y].ravel().tolist(), sep="\n")
