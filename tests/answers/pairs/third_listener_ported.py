"""A classifier of sounds, an LSTM of both directions, was ported from PyTorch to MindSpore; lengths differ."""

import sys

import numpy as np

ANSWER = {
    "kind": "third trial: an LSTM of both directions ported",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "step": 0,
    "variants": {
        "states": {
            "goes_wrong": "The first hidden state and the first cell state, both learnt, have changed places.",
            "wants": "the LSTM, or the product with the first state in it, or where the states are handed in",
        },
        "packed": {
            "goes_wrong": "The lengths are not handed to the LSTM, whose backward direction begins in the padding.",
            "wants": "the LSTM, whose backward direction differs",
        },
        "pooled": {
            "goes_wrong": "Behind the end of a sound the maximum sees 0, not something very small.",
            "wants": "the maximum over time, or the masking before it",
        },
        "clipped": {
            "goes_wrong": "Each number of the gradients is clipped by its value, not all of them by their norm.",
            "wants": "the clipping of the gradients",
        },
        "smoothed": {
            "goes_wrong": "The label smoothing of the loss was forgotten.",
            "wants": "the loss",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
BANDS, WIDTH, LENGTH, BATCH, CLASSES, STEPS, LIMIT = 10, 12, 8, 4, 5, 3, 0.5

rng = np.random.default_rng(121)


def drawn(*shape, factor=1.0):
    return (factor * rng.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32)


weights = {"enter.weight": drawn(WIDTH, BANDS, factor=1.4), "enter.bias": drawn(WIDTH)}
for direction in ("", "_reverse"):
    for kind in ("ih", "hh"):
        weights[f"lstm.weight_{kind}_l0{direction}"] = drawn(4 * WIDTH, WIDTH, factor=1.5)
        weights[f"lstm.bias_{kind}_l0{direction}"] = drawn(4 * WIDTH, factor=2)
weights |= {"hidden": drawn(2, 1, WIDTH, factor=2), "memory": drawn(2, 1, WIDTH, factor=2)}
weights |= {"first.weight": drawn(16, 2 * WIDTH, factor=1.5), "first.bias": drawn(16)}
weights |= {"head.weight": drawn(CLASSES, 16, factor=1.5), "head.bias": drawn(CLASSES)}
sounds = rng.standard_normal((STEPS, BATCH, LENGTH, BANDS), dtype=np.float32)
labels = rng.integers(0, CLASSES, (STEPS, BATCH)).astype(np.int32)
lengths = np.array([[8, 6, 5, 3], [7, 7, 4, 2], [8, 5, 5, 4]], np.int32)

if sys.argv[1] == "golden":
    import torch
    from torch import nn
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.lstm = nn.Linear(BANDS, WIDTH), nn.LSTM(WIDTH, WIDTH, batch_first=True, bidirectional=True)
            self.hidden, self.memory = (nn.Parameter(torch.zeros(2, 1, WIDTH)) for _ in range(2))
            self.first, self.head = nn.Linear(2 * WIDTH, 16), nn.Linear(16, CLASSES)

        def forward(self, sound, length):
            x = torch.relu(self.enter(sound))
            states = tuple(each.expand(-1, BATCH, -1).contiguous() for each in (self.hidden, self.memory))
            packed, _ = self.lstm(pack_padded_sequence(x, length, batch_first=True), states)
            x, _ = pad_packed_sequence(packed, batch_first=True, padding_value=-1e4, total_length=LENGTH)
            return self.head(torch.tanh(self.first(x.amax(1))))

    net = Net()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    for sound, length, label in zip(sounds, lengths, labels, strict=True):
        logits = net(torch.from_numpy(sound), torch.from_numpy(length).long())
        loss = nn.functional.cross_entropy(logits, torch.from_numpy(label).long(), label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), LIMIT)
        optimizer.step()
        print(loss.item())
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.enter = nn.Dense(BANDS, WIDTH)
            self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True, bidirectional=True)
            self.hidden = ms.Parameter(ms.Tensor(weights["hidden"]), "hidden")
            self.memory = ms.Parameter(ms.Tensor(weights["memory"]), "memory")
            self.first, self.head = nn.Dense(2 * WIDTH, 16), nn.Dense(16, CLASSES)

        def construct(self, sound, length):
            x = ops.relu(self.enter(sound))
            hidden, memory = (ops.broadcast_to(each, (2, BATCH, WIDTH)) for each in (self.hidden, self.memory))
            if FAULT == "states":
                hidden, memory = memory, hidden
            handed = None if FAULT == "packed" else length
            x, _ = self.lstm(x, (hidden, memory), handed)  # fault states packed
            known = (ops.arange(LENGTH) < length.expand_dims(1)).expand_dims(2)
            low = 0.0 if FAULT == "pooled" else -1e4
            x = ops.masked_fill(x, ops.logical_not(known), low)  # fault pooled
            x = ops.amax(x, 1)  # fault pooled
            return self.head(ops.tanh(self.first(x)))

    class Step(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net, self.optimizer = net, optimizer
            self.gradients = ops.value_and_grad(self.forward, None, optimizer.parameters)

        def forward(self, sound, length, label):
            logits = self.net(sound, length)
            smoothing = 0.0 if FAULT == "smoothed" else 0.1
            return ops.cross_entropy(logits, label, label_smoothing=smoothing)  # fault smoothed

        def construct(self, sound, length, label):
            loss, gradients = self.gradients(sound, length, label)
            if FAULT == "clipped":
                gradients = ops.clip_by_value(gradients, -LIMIT, LIMIT)  # fault clipped
            else:
                gradients = ops.clip_by_global_norm(gradients, LIMIT)
            self.optimizer(gradients)  # fault clipped
            return loss

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    ms.load_param_into_net(net, {name: ms.Parameter(ms.Tensor(array), name) for name, array in weights.items()})
    optimizer = nn.Momentum(net.trainable_params(), 0.2, 0.9)
    step = Step().set_train()
    for sound, length, label in zip(sounds, lengths, labels, strict=True):
        print(float(step(ms.Tensor(sound), ms.Tensor(length), ms.Tensor(label)).asnumpy()))
