"""A language model of GRU cells was ported from PyTorch to MindSpore, with the cell written out."""

import sys

import numpy as np

ANSWER = {
    "kind": "second trial: a GRU ported to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "variants": {
        "gates": {
            "goes_wrong": "The gates are taken in the order update, reset; the weights have reset, update.",
            "wants": "the gates of the first cell: they have changed places",
        },
        "reset": {
            "goes_wrong": "The reset gate is applied to the state before the product, not to the product.",
            "wants": "the candidate of the first cell",
        },
        "mask": {
            "goes_wrong": "The last word of each sentence is masked, too: its place is compared one too far.",
            "wants": "the mask, or where the states are first chosen by it",
        },
        "weights": {
            "goes_wrong": "The weights of the input and of the state, of equal shapes, have changed places.",
            "wants": "the product of the input in the first cell, which has the weight of the state",
        },
        "reduction": {
            "goes_wrong": "The loss is the mean over all places, those behind the end of a sentence included.",
            "wants": "the division of the loss",
        },
        "epsilon": {
            "goes_wrong": "The norm has an epsilon of 1e-3, the original 1e-5.",
            "wants": "the norm, with its epsilon",
        },
        "nesterov": {
            "goes_wrong": "The optimizer looks ahead as Nesterov's, the original does not.",
            "wants": "the update of the first step",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
WORDS, WIDTH, LENGTH, BATCH, STEPS = 21, 12, 6, 4, 3

rng = np.random.default_rng(8)
SHAPES = {
    "embedding": (WORDS, WIDTH),
    "weight_ih": (3 * WIDTH, WIDTH),
    "weight_hh": (3 * WIDTH, WIDTH),
    "bias_ih": (3 * WIDTH,),
    "bias_hh": (3 * WIDTH,),
    "bias": (WORDS,),
}
weights = {key: (0.5 * rng.standard_normal(shape)).astype(np.float32) for key, shape in SHAPES.items()}
weights["gain"] = rng.uniform(0.5, 1.5, WIDTH).astype(np.float32)
weights["shift"] = rng.uniform(-0.3, 0.3, WIDTH).astype(np.float32)
weights["head"] = (0.4 * rng.standard_normal((WORDS, WIDTH))).astype(np.float32)
texts = rng.integers(1, WORDS, (STEPS, BATCH, LENGTH + 1)).astype(np.int32)
lengths = np.array([[6, 3, 5, 2], [4, 6, 1, 5], [2, 6, 6, 3]], np.int32)

if sys.argv[1] == "golden":
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.cell = nn.Embedding(WORDS, WIDTH), nn.GRUCell(WIDTH, WIDTH)
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

        def forward(self, text, length):
            words = self.embed(text[:, :-1])
            mask = torch.arange(LENGTH) < length[:, None]
            state, total = torch.zeros(BATCH, WIDTH), 0
            for place in range(LENGTH):
                state = torch.where(mask[:, place, None], self.cell(words[:, place], state), state)
                logits = self.head(self.norm(state))
                loss = F.cross_entropy(logits, text[:, place + 1], reduction="none")
                total = total + (loss * mask[:, place]).sum()
            return total / mask.sum()

    net = Net()
    names = ["embed.weight", "cell.weight_ih", "cell.weight_hh", "cell.bias_ih", "cell.bias_hh"]
    names += ["head.bias", "norm.weight", "norm.bias", "head.weight"]
    net.load_state_dict({name: torch.from_numpy(array) for name, array in zip(names, weights.values(), strict=True)})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    for text, length in zip(texts, lengths, strict=True):
        loss = net(torch.from_numpy(text).long(), torch.from_numpy(length))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            for key, array in weights.items():
                setattr(self, key, ms.Parameter(ms.Tensor(array), key))
            if FAULT == "weights":
                self.weight_ih.set_data(ms.Tensor(weights["weight_hh"]))
                self.weight_hh.set_data(ms.Tensor(weights["weight_ih"]))
            self.places = ms.Tensor(np.arange(1 if FAULT == "mask" else 0, LENGTH + (FAULT == "mask")), ms.int32)
            self.epsilon = 1e-3 if FAULT == "epsilon" else 1e-5

        def cell(self, x, state):
            from_x = ops.matmul(x, self.weight_ih.T) + self.bias_ih  # fault weights
            from_state = ops.matmul(state, self.weight_hh.T) + self.bias_hh
            x_reset, x_update, x_new = ops.split(from_x, WIDTH, 1)  # fault gates
            state_reset, state_update, state_new = ops.split(from_state, WIDTH, 1)  # fault gates
            reset, update = ops.sigmoid(x_reset + state_reset), ops.sigmoid(x_update + state_update)  # fault gates
            if FAULT == "gates":
                reset, update = update, reset
            if FAULT == "reset":
                weight, bias = self.weight_hh[2 * WIDTH :], self.bias_hh[2 * WIDTH :]
                new = ops.tanh(x_new + ops.matmul(reset * state, weight.T) + bias)  # fault reset
            else:
                new = ops.tanh(x_new + reset * state_new)  # fault gates
            return new + update * (state - new)  # fault gates

        def construct(self, text, length):
            words = ops.gather(self.embedding, text[:, :-1], 0)
            mask = self.places < length.expand_dims(1)  # fault mask
            state, total = ops.zeros((BATCH, WIDTH), ms.float32), 0
            for place in range(LENGTH):
                chosen = mask[:, place].expand_dims(1)
                state = ops.select(
                    chosen.broadcast_to((BATCH, WIDTH)), self.cell(words[:, place], state), state
                )  # fault mask
                mean = state.mean(-1, keep_dims=True)
                centred = state - mean
                variance = (centred * centred).mean(-1, keep_dims=True)
                h = centred * ops.rsqrt(variance + self.epsilon) * self.gain + self.shift  # fault epsilon
                logits = ops.log_softmax(ops.matmul(h, self.head.T) + self.bias, -1)
                own = ops.gather_elements(logits, 1, text[:, place + 1].expand_dims(1)).squeeze(1)
                total = total - (own * mask[:, place].astype(ms.float32)).sum()
            count = float(BATCH * LENGTH) if FAULT == "reduction" else mask.astype(ms.float32).sum()
            return total / count  # fault reduction

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    optimizer = nn.Momentum(net.trainable_params(), 0.2, 0.9, use_nesterov=FAULT == "nesterov")  # fault nesterov
    step = nn.TrainOneStepCell(net, optimizer).set_train()
    for text, length in zip(texts, lengths, strict=True):
        loss = step(ms.Tensor(text), ms.Tensor(length))  # fault nesterov
        print(float(loss.asnumpy()))
