"""A net that sorts the requests of customers, of convolutions over words, was ported from MindSpore to PyTorch."""

import sys

import numpy as np

ANSWER = {
    "kind": "sixth trial: a sorter of requests ported",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "run": {"golden": "msdump run --config {config} {script} {mode}"},
    "step": 0,
    "variants": {
        "highway": {
            "goes_wrong": "The gate of the second highway opens the way round, not the way through the layer.",
            "wants": "the sum of the two ways in the second highway, or the product with the gate",
        },
        "filler": {
            "goes_wrong": "The table of words is made with padding_idx, so that the row of the filler is not trained.",
            "wants": "the gradient of the table of words, or the first step's update of it",
        },
        "ones": {
            "goes_wrong": "The mean squares of RMSprop begin with 0, as in PyTorch; those of MindSpore begin with 1.",
            "wants": "the first update of the mean squares, or where they are made",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
WORDS, WIDTH, LENGTH, BATCH, FOUND, KINDS, STEPS = 30, 12, 9, 4, 6, 5, 3
SPANS, FILLER = (2, 3, 4), 0
RATE, KEPT, EPSILON = 0.02, 0.9, 1e-10
JOINED = FOUND * len(SPANS)

rng = np.random.default_rng(601)


def drawn(*shape):
    return (1.4 * rng.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32)


def row(size, base=0.0):
    return (base + rng.uniform(-0.3, 0.3, size)).astype(np.float32)


weights = {"words.embedding_table": 2 * drawn(WORDS, WIDTH)}
for number, span in enumerate(SPANS):
    weights |= {f"convs.{number}.weight": drawn(FOUND, 1, span, WIDTH), f"convs.{number}.bias": row(FOUND)}
for number in range(2):
    for name in ("gate", "layer"):
        weights[f"highways.{number}.{name}.weight"] = drawn(JOINED, JOINED)
        weights[f"highways.{number}.{name}.bias"] = row(JOINED, -0.5 if name == "gate" else 0)
weights |= {"norm.gamma": row(JOINED, 1), "norm.beta": row(JOINED)}
weights |= {"head.weight": drawn(KINDS, JOINED), "head.bias": row(KINDS)}
requests = rng.integers(1, WORDS, (STEPS, BATCH, LENGTH)).astype(np.int32)
for number, length in enumerate(rng.integers(5, LENGTH, STEPS * BATCH)):
    requests.reshape(-1, LENGTH)[number, length:] = FILLER
kinds = rng.integers(0, KINDS, (STEPS, BATCH)).astype(np.int32)

if sys.argv[1] == "golden":
    import mindspore as ms
    from mindspore import nn, ops

    class Highway(nn.Cell):
        def __init__(self):
            super().__init__()
            self.gate, self.layer = nn.Dense(JOINED, JOINED), nn.Dense(JOINED, JOINED)

        def construct(self, x):
            gate = ops.sigmoid(self.gate(x))
            return gate * ops.relu(self.layer(x)) + (1 - gate) * x

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(WORDS, WIDTH)
            self.convs = nn.CellList(
                [nn.Conv2d(1, FOUND, (span, WIDTH), pad_mode="valid", has_bias=True) for span in SPANS]
            )
            self.highways = nn.SequentialCell([Highway() for _ in range(2)])
            self.norm, self.head = nn.LayerNorm((JOINED,), epsilon=1e-5), nn.Dense(JOINED, KINDS)

        def construct(self, request):
            x = self.words(request).expand_dims(1)
            found = []
            for conv in self.convs:
                found.append(ops.relu(conv(x)).max((2, 3)))
            return self.head(self.norm(self.highways(ops.concat(found, 1))))

    def forward(request, kind):
        return ops.cross_entropy(net(request), kind)

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    ms.load_param_into_net(net, {name: ms.Parameter(ms.Tensor(array), name) for name, array in weights.items()})
    optimizer = nn.RMSProp(net.trainable_params(), RATE, KEPT, epsilon=EPSILON)

    class Step(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net, self.optimizer = net, optimizer
            self.gradients = ms.value_and_grad(forward, None, optimizer.parameters)

        def construct(self, request, kind):
            loss, gradients = self.gradients(request, kind)
            self.optimizer(gradients)
            return loss

    step = Step().set_train()
    for request, kind in zip(requests, kinds, strict=True):
        print(float(step(ms.Tensor(request), ms.Tensor(kind)).asnumpy()))
else:
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Highway(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.layer = nn.Linear(JOINED, JOINED), nn.Linear(JOINED, JOINED)
            self.is_turned = False

        def forward(self, x):
            gate = torch.sigmoid(self.gate(x))
            through = F.relu(self.layer(x))
            if self.is_turned:
                return (1 - gate) * through + gate * x  # fault highway
            return gate * through + (1 - gate) * x

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            if FAULT == "filler":
                self.words = nn.Embedding(WORDS, WIDTH, padding_idx=FILLER)  # fault filler
            else:
                self.words = nn.Embedding(WORDS, WIDTH)
            self.convs = nn.ModuleList(nn.Conv1d(WIDTH, FOUND, span) for span in SPANS)
            self.highways = nn.Sequential(Highway(), Highway())
            self.norm, self.head = nn.LayerNorm(JOINED), nn.Linear(JOINED, KINDS)

        def forward(self, request):
            x = self.words(request)  # fault filler
            x = x.transpose(1, 2)
            found = [F.relu(conv(x)).amax(2) for conv in self.convs]
            return self.head(self.norm(self.highways(torch.cat(found, 1))))

    class RMSprop:
        """MindSpore's: epsilon is under the root."""

        def __init__(self, parameters):
            self.parameters = list(parameters)
            begin = torch.zeros_like if FAULT == "ones" else torch.ones_like  # fault ones
            self.squares = [begin(parameter) for parameter in self.parameters]  # fault ones

        @torch.no_grad()
        def step(self):
            for parameter, square in zip(self.parameters, self.squares, strict=True):
                gradient = parameter.grad
                square.mul_(KEPT).addcmul_(gradient, gradient, value=1 - KEPT)  # fault ones
                parameter.sub_(RATE * gradient * torch.rsqrt(square + EPSILON))  # fault filler
                parameter.grad = None

    def ported():
        for name, array in weights.items():
            if name.startswith("convs") and array.ndim == 4:
                array = np.ascontiguousarray(array[:, 0].transpose(0, 2, 1))
            for old, new in (("embedding_table", "weight"), ("gamma", "weight"), ("beta", "bias")):
                name = name.replace(old, new)
            yield name, torch.from_numpy(array)

    net = Net()
    net.load_state_dict(dict(ported()))
    if FAULT == "highway":
        net.highways[1].is_turned = True  # fault highway
    optimizer = RMSprop(net.parameters())
    for request, kind in zip(requests, kinds, strict=True):
        loss = F.cross_entropy(net(torch.from_numpy(request).long()), torch.from_numpy(kind).long())
        loss.backward()
        optimizer.step()
        print(loss.item())
