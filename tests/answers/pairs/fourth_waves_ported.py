"""A net that makes sound sample by sample, of dilated convolutions, was ported from PyTorch to MindSpore."""

import sys

import numpy as np

ANSWER = {
    "kind": "fourth trial: dilated convolutions ported",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "step": 0,
    "variants": {
        "dilation": {
            "goes_wrong": "The third layer skips as many samples as the second one, it should be twice as many.",
            "wants": "the dilated convolution of the third layer, or its padding",
        },
        "causal": {
            "goes_wrong": "The convolutions pad on both sides, so that each sample sees those that come after it.",
            "wants": "the padding, or the convolution, of the second layer; the first has nothing to pad behind",
        },
        "halves": {
            "goes_wrong": "The sigmoid has the half of the channels that is for the tangent.",
            "wants": "the tangent, or the sigmoid, or the split, of the first layer",
        },
        "skip": {
            "goes_wrong": "The way to the end takes the sum with what went into the layer, not the layer's own part.",
            "wants": "the product for the way to the end of the first layer",
        },
        "speaker": {
            "goes_wrong": "The product of the speaker has no bias, which is the default of the other library.",
            "wants": "the product of the speaker of the first layer, or the sum after it",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
LEVELS, WIDTH, SKIP, SPEAKER, LAYERS, BATCH, LENGTH, STEPS = 16, 8, 10, 5, 4, 2, 20, 2

rng = np.random.default_rng(403)


def drawn(*shape, factor=1.0):
    return (factor * rng.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32)


weights = {"embed.weight": drawn(LEVELS, WIDTH, factor=3)}
for number in range(LAYERS):
    for name, shape in (
        ("dilated", (2 * WIDTH, WIDTH, 2)),
        ("speaker", (2 * WIDTH, SPEAKER)),
        ("out", (WIDTH, WIDTH, 1)),
        ("skip", (SKIP, WIDTH, 1)),
    ):
        weights[f"layers.{number}.{name}.weight"] = drawn(*shape, factor=1.4)
        weights[f"layers.{number}.{name}.bias"] = rng.uniform(-0.4, 0.4, shape[0]).astype(np.float32)
for name, out in (("end1", SKIP), ("end2", LEVELS)):
    weights[f"{name}.weight"] = drawn(out, SKIP, 1, factor=1.4)
    weights[f"{name}.bias"] = rng.uniform(-0.4, 0.4, out).astype(np.float32)
sounds = rng.integers(0, LEVELS, (STEPS, BATCH, LENGTH + 1)).astype(np.int32)
speakers = rng.standard_normal((STEPS, BATCH, SPEAKER), dtype=np.float32)

if sys.argv[1] == "golden":
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, dilation):
            super().__init__()
            self.dilation = dilation
            self.dilated = nn.Conv1d(WIDTH, 2 * WIDTH, 2, dilation=dilation)
            self.speaker = nn.Linear(SPEAKER, 2 * WIDTH)
            self.out, self.skip = nn.Conv1d(WIDTH, WIDTH, 1), nn.Conv1d(WIDTH, SKIP, 1)

        def forward(self, x, speaker):
            h = self.dilated(F.pad(x, (self.dilation, 0))) + self.speaker(speaker)[:, :, None]
            first, second = h.chunk(2, 1)
            h = torch.tanh(first) * torch.sigmoid(second)
            return x + self.out(h), self.skip(h)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(LEVELS, WIDTH)
            self.layers = nn.ModuleList(Layer(2**number) for number in range(LAYERS))
            self.end1, self.end2 = nn.Conv1d(SKIP, SKIP, 1), nn.Conv1d(SKIP, LEVELS, 1)

        def forward(self, sound, speaker):
            x, total = self.embed(sound).transpose(1, 2), 0
            for layer in self.layers:
                x, skip = layer(x, speaker)
                total = total + skip
            return self.end2(torch.relu(self.end1(torch.relu(total))))

    net = Net()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    for sound, speaker in zip(sounds, speakers, strict=True):
        sound = torch.from_numpy(sound).long()
        logits = net(sound[:, :-1], torch.from_numpy(speaker))
        loss = F.cross_entropy(logits, sound[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Layer(nn.Cell):
        def __init__(self, number):
            super().__init__()
            self.reach = 2 if FAULT == "dilation" and number == 2 else 2**number
            self.dilated = nn.Conv1d(WIDTH, 2 * WIDTH, 2, dilation=self.reach, pad_mode="valid", has_bias=True)
            self.speaker = nn.Dense(SPEAKER, 2 * WIDTH, has_bias=FAULT != "speaker")
            self.out = nn.Conv1d(WIDTH, WIDTH, 1, has_bias=True)
            self.skip = nn.Conv1d(WIDTH, SKIP, 1, has_bias=True)

        def construct(self, x, speaker):
            ends = ((self.reach + 1) // 2, self.reach // 2) if FAULT == "causal" else (self.reach, 0)
            padded = ops.pad(x, ends)  # fault causal dilation
            own = self.dilated(padded)  # fault causal dilation
            h = own + self.speaker(speaker).expand_dims(2)  # fault speaker
            first, second = ops.chunk(h, 2, 1)  # fault halves
            if FAULT == "halves":
                first, second = second, first
            h = ops.tanh(first) * ops.sigmoid(second)  # fault halves
            x = x + self.out(h)
            end = self.skip(x if FAULT == "skip" else h)  # fault skip
            return x, end

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(LEVELS, WIDTH)
            self.layers = nn.CellList([Layer(number) for number in range(LAYERS)])
            self.end1, self.end2 = nn.Conv1d(SKIP, SKIP, 1, has_bias=True), nn.Conv1d(SKIP, LEVELS, 1, has_bias=True)

        def construct(self, sound, speaker):
            x = self.embed(sound).swapaxes(1, 2)
            total = 0
            for layer in self.layers:
                x, skip = layer(x, speaker)
                total = total + skip
            return self.end2(ops.relu(self.end1(ops.relu(total))))

    class Step(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net, self.optimizer = net, optimizer
            self.gradients = ops.value_and_grad(self.forward, None, optimizer.parameters)

        def forward(self, sound, speaker):
            return ops.cross_entropy(self.net(sound[:, :-1], speaker), sound[:, 1:])

        def construct(self, sound, speaker):
            loss, gradients = self.gradients(sound, speaker)
            self.optimizer(gradients)
            return loss

    def ported(name, array):
        """Convolutions of one axis have a height of 1; the table of an embedding has a name of its own."""
        array = np.expand_dims(array, 2) if array.ndim == 3 else array
        name = name.replace("embed.weight", "embed.embedding_table")
        return name, ms.Parameter(ms.Tensor(array), name)

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    ms.load_param_into_net(net, dict(ported(name, array) for name, array in weights.items()))
    optimizer = nn.SGD(net.trainable_params(), 0.1, 0.9, nesterov=True)
    step = Step().set_train()
    for sound, speaker in zip(sounds, speakers, strict=True):
        print(float(step(ms.Tensor(sound), ms.Tensor(speaker)).asnumpy()))
