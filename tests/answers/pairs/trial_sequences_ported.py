"""A tagger of two recurrent layers was ported from PyTorch, where its GRU is one operator; it reads two batches."""

import sys

import numpy as np

ANSWER = {
    "kind": "trial: a ported tagger",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "step": 0,
    "never": ["different weights or data"],
    "variants": {
        "written": {
            "goes_wrong": "Nothing: the port computes the steps of the GRU by itself.",
            "line": False,
            "step": None,
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, in two forms",
        },
        "reset": {
            "goes_wrong": "The reset gate is applied to the state before its product, not behind it.",
            "wants": "the line of the candidate, where the reset gate meets the state",
        },
        "update": {
            "goes_wrong": "The update gate weighs the candidate where it should weigh the state.",
            "wants": "the line that mixes candidate and state",
        },
        "order": {
            "goes_wrong": "The port splits its gates in the order update, reset, candidate.",
            "wants": "the line that splits the gates, or the sigmoid of one of them",
        },
        "carried": {
            "goes_wrong": "The last state of a batch is the first state of the next one; it should begin with zeros.",
            "step": 1,
            "wants": "the line of step 1 that hands the state in, or the first that reads it",
        },
        "steps": {
            "goes_wrong": "The second layer reads the sequence in time backwards.",
            "wants": "the line that turns the sequence around",
        },
        "embedding": {
            "goes_wrong": "Vectors of words are multiplied with the root of their width.",
            "wants": "the line of the product behind the embedding",
        },
        "reduction": {
            "goes_wrong": "The loss is divided by the number of all positions, padding included.",
            "wants": "the line of the loss",
        },
    },
}

VARIANT = sys.argv[2]
FAULT = VARIANT if sys.argv[1] == "faulty" else ""
WIDTH, STATE, LENGTH, BATCH, TAGS = 16, 24, 7, 3, 5

rng = np.random.default_rng(5)


def drawn(*shape):
    return (rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))).astype(np.float32)


weights = {"words.weight": drawn(40, WIDTH) * 2, "head.weight": drawn(TAGS, STATE), "head.bias": drawn(TAGS) / 5}
for layer, size in enumerate((WIDTH, STATE)):
    weights[f"gru.weight_ih_l{layer}"], weights[f"gru.weight_hh_l{layer}"] = (
        drawn(3 * STATE, size),
        drawn(3 * STATE, STATE),
    )
    weights[f"gru.bias_ih_l{layer}"], weights[f"gru.bias_hh_l{layer}"] = drawn(3 * STATE) / 5, drawn(3 * STATE) / 5
batches = [(rng.integers(0, 40, (BATCH, LENGTH)), rng.integers(0, TAGS, (BATCH, LENGTH))) for _ in range(2)]
for _, tags in batches:
    tags[1, 5:], tags[2, 4:] = -100, -100


def with_torch():
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.gru = nn.Embedding(40, WIDTH), nn.GRU(WIDTH, STATE, 2, batch_first=True)
            self.head = nn.Linear(STATE, TAGS)

        def forward(self, words):
            x, _ = self.gru(self.words(words))
            return self.head(x)

    net = Net()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for words, tags in batches:
        logits = net(torch.from_numpy(words)).flatten(0, 1)
        loss = nn.functional.cross_entropy(logits, torch.from_numpy(tags).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss


def with_mindspore():
    import mindspore as ms
    from mindspore import nn, ops

    class Layer(nn.Cell):
        def __init__(self, number, size):
            super().__init__()
            self.read, self.keep = nn.Dense(size, 3 * STATE), nn.Dense(STATE, 3 * STATE)
            self.number = number

        def construct(self, x, state):
            states = []
            for step in range(LENGTH):
                gates, kept = self.read(x[:, step]), self.keep(state)
                parts, old = ops.split(gates, STATE, 1), ops.split(kept, STATE, 1)  # fault order
                first, second = (1, 0) if FAULT == "order" else (0, 1)
                reset = ops.sigmoid(parts[first] + old[first])  # fault order
                update = ops.sigmoid(parts[second] + old[second])  # fault order
                if FAULT == "reset":
                    weight, bias = self.keep.weight[2 * STATE :], self.keep.bias[2 * STATE :]
                    fresh = ops.matmul(reset * state, weight.swapaxes(0, 1)) + bias  # fault reset
                    new = ops.tanh(parts[2] + fresh)  # fault reset
                else:
                    new = ops.tanh(parts[2] + reset * old[2])
                if FAULT == "update":
                    state = update * new + (1 - update) * state  # fault update
                else:
                    state = (1 - update) * new + update * state
                states.append(state)
            return ops.stack(states, 1), state

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.words, self.head = nn.Embedding(40, WIDTH), nn.Dense(STATE, TAGS)
            if VARIANT == "written" and not FAULT:
                self.gru = nn.GRU(WIDTH, STATE, 2, batch_first=True)
            else:
                self.layer0, self.layer1 = Layer(0, WIDTH), Layer(1, STATE)

        def construct(self, words, state):
            x = self.words(words)
            if FAULT == "embedding":
                x = x * WIDTH**0.5  # fault embedding
            if VARIANT == "written" and not FAULT:
                x, _ = self.gru(x)
                return self.head(x), state
            x, last = self.layer0(x, state)  # fault carried
            if FAULT == "steps":
                x = ops.flip(x, (1,))  # fault steps
            x, _ = self.layer1(x, ops.zeros_like(state))
            return self.head(x), last

    class Loss(nn.Cell):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def construct(self, words, tags, state):
            logits, last = self.net(words, state)
            if FAULT == "reduction":
                loss = ops.cross_entropy(logits.reshape(-1, TAGS), tags.reshape(-1), reduction="sum")  # fault reduction
                return loss / (BATCH * LENGTH), last  # fault reduction
            return ops.cross_entropy(logits.reshape(-1, TAGS), tags.reshape(-1)), last

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    loaded = {"words.embedding_table": weights["words.weight"], **weights}
    for layer in range(2):
        for kind in ("weight", "bias"):
            loaded[f"layer{layer}.read.{kind}"] = weights[f"gru.{kind}_ih_l{layer}"]
            loaded[f"layer{layer}.keep.{kind}"] = weights[f"gru.{kind}_hh_l{layer}"]
    names = {each.name for each in net.get_parameters()}
    ms.load_param_into_net(net, {name: ms.Parameter(ms.Tensor(loaded[name])) for name in names})
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    gradients = ms.value_and_grad(Loss(net), None, optimizer.parameters, has_aux=True)
    state = ms.Tensor(np.zeros((BATCH, STATE), np.float32))
    for words, tags in batches:
        (loss, last), changes = gradients(ms.Tensor(words.astype(np.int32)), ms.Tensor(tags.astype(np.int32)), state)
        optimizer(changes)
        if FAULT == "carried":
            state = last  # fault carried
    return loss.asnumpy()


print(float(with_torch() if sys.argv[1] == "golden" else with_mindspore()))
