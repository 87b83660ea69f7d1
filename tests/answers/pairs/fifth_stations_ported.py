"""A forecast for weather stations, of convolutions and residual products, was ported from PyTorch to MindSpore."""

import sys

import numpy as np

ANSWER = {
    "kind": "fifth trial: a forecast of weather ported",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "step": 0,
    "variants": {
        "padding": {
            "goes_wrong": "The strided convolution pads as its default says, 'same', which pads the right and bottom.",
            "wants": "the second convolution",
        },
        "activation": {
            "goes_wrong": "The activation is GELU's approximation by a tangent, the default of the cell.",
            "wants": "the activation of the first residual block",
        },
        "transposed": {
            "goes_wrong": "The square weight of the second block was transposed when it was brought over.",
            "wants": "the second product of the second residual block, or its weight",
        },
        "decay": {
            "goes_wrong": "The optimizer has one list of weights, so it decays no gain or shift of a norm.",
            "wants": "the optimizer's step, or where the optimizer is made",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
FIELDS, WIDTH, HOURS, KINDS, BLOCKS, BATCH, SIDE, STEPS = 4, 12, 3, 5, 3, 4, 8, 2
RATE, DECAY, BETAS, EPSILON = 0.01, 0.1, (0.9, 0.98), 1e-8

rng = np.random.default_rng(502)


def drawn(*shape):
    return (1.5 * rng.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32)


def row(size, base=0.0):
    return (base + rng.uniform(-0.4, 0.4, size)).astype(np.float32)


weights = {"conv1.weight": drawn(WIDTH, FIELDS, 3, 3), "conv1.bias": row(WIDTH)}
weights |= {"conv2.weight": drawn(WIDTH, WIDTH, 3, 3), "conv2.bias": row(WIDTH)}
for number in range(BLOCKS):
    weights |= {f"blocks.{number}.norm.weight": row(WIDTH, 1), f"blocks.{number}.norm.bias": row(WIDTH)}
    for name in ("first", "second"):
        weights[f"blocks.{number}.{name}.weight"] = drawn(WIDTH, WIDTH)
        weights[f"blocks.{number}.{name}.bias"] = row(WIDTH)
weights |= {"warmth.weight": drawn(HOURS, WIDTH), "warmth.bias": row(HOURS)}
weights |= {"sky.weight": drawn(KINDS, WIDTH), "sky.bias": row(KINDS)}
fields = rng.standard_normal((STEPS, BATCH, FIELDS, SIDE, SIDE), dtype=np.float32)
degrees = rng.standard_normal((STEPS, BATCH, HOURS), dtype=np.float32)
skies = rng.integers(0, KINDS, (STEPS, BATCH)).astype(np.int32)

if sys.argv[1] == "golden":
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(WIDTH)
            self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            return x + self.second(F.gelu(self.first(self.norm(x))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(FIELDS, WIDTH, 3, padding=1)
            self.conv2 = nn.Conv2d(WIDTH, WIDTH, 3, stride=2, padding=1)
            self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
            self.warmth, self.sky = nn.Linear(WIDTH, HOURS), nn.Linear(WIDTH, KINDS)

        def forward(self, x):
            x = torch.relu(self.conv2(torch.relu(self.conv1(x))))
            x = self.blocks(x.flatten(2).transpose(1, 2)).mean(1)
            return self.warmth(x), self.sky(x)

    net = Net()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=DECAY)
    for field, degree, sky in zip(fields, degrees, skies, strict=True):
        warmth, kinds = net(torch.from_numpy(field))
        loss = F.mse_loss(warmth, torch.from_numpy(degree))
        loss = loss + 0.5 * F.cross_entropy(kinds, torch.from_numpy(sky).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Block(nn.Cell):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm((WIDTH,), epsilon=1e-5)
            self.first, self.second = nn.Dense(WIDTH, WIDTH), nn.Dense(WIDTH, WIDTH)
            self.activation = nn.GELU() if FAULT == "activation" else nn.GELU(approximate=False)  # fault activation

        def construct(self, x):
            h = self.first(self.norm(x))
            h = self.activation(h)  # fault activation
            h = self.second(h)  # fault transposed
            return x + h

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(FIELDS, WIDTH, 3, pad_mode="pad", padding=1, has_bias=True)
            if FAULT == "padding":
                self.conv2 = nn.Conv2d(WIDTH, WIDTH, 3, 2, has_bias=True)  # fault padding
            else:
                self.conv2 = nn.Conv2d(WIDTH, WIDTH, 3, 2, pad_mode="pad", padding=1, has_bias=True)
            self.blocks = nn.SequentialCell([Block() for _ in range(BLOCKS)])
            self.warmth, self.sky = nn.Dense(WIDTH, HOURS), nn.Dense(WIDTH, KINDS)

        def construct(self, x):
            x = ops.relu(self.conv1(x))
            x = ops.relu(self.conv2(x))  # fault padding
            x = x.reshape(BATCH, WIDTH, -1).swapaxes(1, 2)
            x = self.blocks(x).mean(1)
            return self.warmth(x), self.sky(x)

    def forward(field, degree, sky):
        warmth, kinds = net(field)
        return ops.mse_loss(warmth, degree) + 0.5 * ops.cross_entropy(kinds, sky)

    class Step(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net, self.optimizer = net, optimizer
            self.gradients = ms.value_and_grad(forward, None, optimizer.parameters)

        def construct(self, field, degree, sky):
            loss, gradients = self.gradients(field, degree, sky)
            self.optimizer(gradients)  # fault decay
            return loss

    def ported():
        for name, array in weights.items():
            if name.endswith("norm.weight"):
                name = name.replace("weight", "gamma")
            elif name.endswith("norm.bias"):
                name = name.replace("bias", "beta")
            if FAULT == "transposed" and name == "blocks.1.second.weight":
                array = np.ascontiguousarray(array.T)  # fault transposed
            yield name, ms.Parameter(ms.Tensor(array), name)

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    ms.load_param_into_net(net, dict(ported()))
    learnt = net.trainable_params()
    if FAULT == "decay":
        optimizer = nn.Adam(learnt, RATE, *BETAS, EPSILON, weight_decay=DECAY)  # fault decay
    else:
        optimizer = nn.Adam([{"params": learnt, "weight_decay": DECAY}], RATE, *BETAS, EPSILON)
    step = Step().set_train()
    for field, degree, sky in zip(fields, degrees, skies, strict=True):
        print(float(step(ms.Tensor(field), ms.Tensor(degree), ms.Tensor(sky)).asnumpy()))
