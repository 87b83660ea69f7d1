"""A translator, two GRUs with an attention between them, was written anew: its gates and its RMSprop by hand."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

ANSWER = {
    "kind": "fourth trial: a translator written anew",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "gates": {
            "goes_wrong": "The reset gate and the update gate have changed places in both GRUs.",
            "wants": "the gates of the first step of the encoder",
        },
        "reset": {
            "goes_wrong": "The reset gate is applied before the product with the state, not after it.",
            "wants": "the product with the reset state, or the new state that is made with it",
        },
        "shifted": {
            "goes_wrong": "The decoder is given the word that it should tell, not the one before it.",
            "wants": "the words that are looked up for the decoder",
        },
        "last": {
            "goes_wrong": "The state goes on after the end of a sentence, through its padding.",
            "wants": "the state that the decoder begins with, or the choice between old and new state",
        },
        "padding": {
            "goes_wrong": "The loss is divided by all places, those of padding too.",
            "wants": "the division of the loss",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
WORDS, WIDTH, HIDDEN, BATCH, LONG, SHORT, STEPS, RATE = 21, 10, 12, 3, 6, 5, 3, 0.01
LENGTHS = torch.tensor([[6, 4, 3], [6, 5, 2], [5, 5, 3]])
TOLD = torch.tensor([[4, 3, 2], [2, 4, 4], [3, 4, 1]])

rng = np.random.default_rng(402)


def drawn(*shape, factor=1.0):
    return (factor * rng.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32)


weights = {"read.weight": drawn(WORDS, WIDTH, factor=3), "write.weight": drawn(WORDS, WIDTH, factor=3)}
for gru, into, ending in (("encoder", WIDTH, "_l0"), ("decoder", WIDTH + HIDDEN, "")):
    weights[f"{gru}.weight_ih{ending}"] = drawn(3 * HIDDEN, into, factor=1.5)
    weights[f"{gru}.weight_hh{ending}"] = drawn(3 * HIDDEN, HIDDEN, factor=1.5)
    weights[f"{gru}.bias_ih{ending}"] = drawn(3 * HIDDEN, factor=2)
    weights[f"{gru}.bias_hh{ending}"] = drawn(3 * HIDDEN, factor=2)
weights |= {"keys.weight": drawn(HIDDEN, HIDDEN), "query.weight": drawn(HIDDEN, HIDDEN), "query.bias": drawn(HIDDEN)}
weights |= {"energy.weight": drawn(1, HIDDEN, factor=3)}
weights |= {"head.weight": drawn(WORDS, 2 * HIDDEN, factor=1.5), "head.bias": drawn(WORDS)}
sources = torch.from_numpy(rng.integers(2, WORDS, (STEPS, BATCH, LONG)))
targets = torch.from_numpy(rng.integers(2, WORDS, (STEPS, BATCH, SHORT)))
targets[:, :, 0] = 1
targets = targets.masked_fill(torch.arange(SHORT) > TOLD[:, :, None], 0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.read, self.write = nn.Embedding(WORDS, WIDTH), nn.Embedding(WORDS, WIDTH)
        self.encoder = nn.GRU(WIDTH, HIDDEN, batch_first=True)
        self.decoder = nn.GRUCell(WIDTH + HIDDEN, HIDDEN)
        self.keys, self.query = nn.Linear(HIDDEN, HIDDEN, bias=False), nn.Linear(HIDDEN, HIDDEN)
        self.energy, self.head = nn.Linear(HIDDEN, 1, bias=False), nn.Linear(2 * HIDDEN, WORDS)

    def forward(self, source, lengths, target):
        packed = pack_padded_sequence(self.read(source), lengths, batch_first=True)
        packed, state = self.encoder(packed)
        seen, _ = pad_packed_sequence(packed, batch_first=True, total_length=LONG)
        keys, state, logits = self.keys(seen), state[0], []
        padding = torch.arange(LONG) >= lengths[:, None]
        for word in target[:, :-1].unbind(1):
            energy = self.energy(torch.tanh(keys + self.query(state)[:, None])).squeeze(-1)
            shares = energy.masked_fill(padding, -1e9).softmax(-1)
            context = torch.bmm(shares[:, None], seen).squeeze(1)
            state = self.decoder(torch.cat([self.write(word), context], -1), state)
            logits.append(self.head(torch.cat([state, context], -1)))
        return torch.stack(logits, 1)


def train_modules():
    net = Net()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    optimizer = torch.optim.RMSprop(net.parameters(), lr=RATE, alpha=0.9, eps=1e-5)
    for source, lengths, target in zip(sources, LENGTHS, targets, strict=True):
        optimizer.zero_grad()
        logits = net(source, lengths, target)
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0)
        loss.backward()
        optimizer.step()
        print(loss.item())


def gru(p, name, ending, x, state):
    """The next state."""
    ours = x @ p[f"{name}.weight_ih{ending}"].T + p[f"{name}.bias_ih{ending}"]
    weight, bias = p[f"{name}.weight_hh{ending}"], p[f"{name}.bias_hh{ending}"]
    both = ours[:, : 2 * HIDDEN] + state @ weight[: 2 * HIDDEN].T + bias[: 2 * HIDDEN]
    reset, update = torch.sigmoid(both).chunk(2, -1)  # fault gates
    if FAULT == "gates":
        reset, update = update, reset
    if FAULT == "reset":
        old = (reset * state) @ weight[2 * HIDDEN :].T + bias[2 * HIDDEN :]  # fault reset
    else:
        old = reset * (state @ weight[2 * HIDDEN :].T + bias[2 * HIDDEN :])  # fault gates
    new = torch.tanh(ours[:, 2 * HIDDEN :] + old)  # fault gates reset
    return (1 - update) * new + update * state  # fault gates


def encode(p, source, lengths):
    state, seen = torch.zeros(BATCH, HIDDEN), []
    for place, word in enumerate(source.unbind(1)):
        new = gru(p, "encoder", "_l0", p["read.weight"][word], state)
        is_inside = (place < lengths)[:, None]
        seen.append(new * is_inside)
        state = new if FAULT == "last" else torch.where(is_inside, new, state)  # fault last
    return torch.stack(seen, 1), state


def decode(p, seen, state, lengths, target):
    keys, logits = torch.einsum("bsi,oi->bso", seen, p["keys.weight"]), []
    hidden = torch.where(torch.arange(LONG) < lengths[:, None], 0.0, -torch.inf)
    for place in range(SHORT - 1):
        query = state @ p["query.weight"].T + p["query.bias"]  # fault last
        energy = torch.tanh(keys + query[:, None]) @ p["energy.weight"][0]
        shares = (energy + hidden).softmax(-1)
        context = torch.einsum("bs,bsh->bh", shares, seen)
        word = target[:, place + (FAULT == "shifted")]  # fault shifted
        x = torch.cat([p["write.weight"][word], context], -1)  # fault shifted
        state = gru(p, "decoder", "", x, state)
        logits.append(torch.cat([state, context], -1) @ p["head.weight"].T + p["head.bias"])
    return torch.stack(logits, 1)


def loss_of(logits, target):
    told = -logits.log_softmax(-1).gather(-1, target[:, :, None]).squeeze(-1)
    counted = (target != 0).float()
    number = counted.numel() if FAULT == "padding" else counted.sum()
    return (told * counted).sum() / number  # fault padding


def train_functions():
    p = {name: torch.from_numpy(array).requires_grad_() for name, array in weights.items()}
    squares = {name: torch.zeros_like(tensor) for name, tensor in p.items()}
    for source, lengths, target in zip(sources, LENGTHS, targets, strict=True):
        seen, state = encode(p, source, lengths)
        loss = loss_of(decode(p, seen, state, lengths, target), target[:, 1:])
        gradients = torch.autograd.grad(loss, list(p.values()))
        with torch.no_grad():
            for (name, tensor), gradient in zip(p.items(), gradients, strict=True):
                squares[name] = 0.9 * squares[name] + 0.1 * gradient**2
                tensor -= RATE * gradient / (squares[name].sqrt() + 1e-5)
        print(loss.item())


train_modules() if sys.argv[1] == "golden" else train_functions()
