"""A language model of selective states got an engine that reads all of a prompt at once, then keeps the states."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "sixth trial: a model of states served",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "ends": {
            "goes_wrong": "The states that are kept are those behind the padding, not at the end of each prompt.",
            "wants": "the choice of the states that are kept, or the first step that reads them",
        },
        "window": {
            "goes_wrong": "The window of the convolution is rolled to the right, not to the left, for a new word.",
            "wants": "the roll of the window, or the convolution of the first new word",
        },
        "direct": {
            "goes_wrong": "A new word lacks the direct part, which goes past the state.",
            "wants": "what is read from the state of the first new word, or the product with its gate",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
WORDS, WIDTH, INNER, STATE, RANK, SPAN, LAYERS, PROMPT, NEW = 40, 16, 24, 4, 3, 4, 3, 6, 3

rng = np.random.default_rng(607)


def drawn(*shape, factor=1.4):
    return torch.from_numpy((factor * rng.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32))


weights = {"words.weight": drawn(WORDS, WIDTH, factor=3)}
for number in range(LAYERS):
    name = f"layers.{number}"
    weights |= {f"{name}.norm.weight": 1 + drawn(WIDTH), f"{name}.enter.weight": drawn(2 * INNER, WIDTH)}
    weights |= {f"{name}.conv.weight": drawn(INNER, 1, SPAN), f"{name}.conv.bias": drawn(INNER)}
    weights[f"{name}.select.weight"] = drawn(RANK + 2 * STATE, INNER)
    weights |= {f"{name}.pace.weight": drawn(INNER, RANK), f"{name}.pace.bias": drawn(INNER) - 0.5}
    weights[f"{name}.decay"] = torch.arange(1.0, STATE + 1).log().repeat(INNER, 1) + 0.3 * drawn(INNER, STATE)
    weights |= {f"{name}.direct": 1 + drawn(INNER), f"{name}.leave.weight": drawn(WIDTH, INNER)}
weights["norm.weight"] = 1 + drawn(WIDTH)
prompts = torch.from_numpy(rng.integers(1, WORDS, (3, PROMPT)))
lengths = torch.tensor([4, 6, 5])
prompts[torch.arange(PROMPT) >= lengths[:, None]] = 0
rows = torch.arange(len(prompts))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH, eps=1e-5)
        self.enter = nn.Linear(WIDTH, 2 * INNER, bias=False)
        self.conv = nn.Conv1d(INNER, INNER, SPAN, groups=INNER, padding=SPAN - 1)
        self.select, self.pace = nn.Linear(INNER, RANK + 2 * STATE, bias=False), nn.Linear(RANK, INNER)
        self.decay, self.direct = nn.Parameter(torch.empty(INNER, STATE)), nn.Parameter(torch.empty(INNER))
        self.leave = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x):
        length = x.shape[1]
        h, gate = self.enter(self.norm(x)).chunk(2, -1)
        h = F.silu(self.conv(h.transpose(1, 2))[..., :length].transpose(1, 2))
        pace, put, get = self.select(h).split([RANK, STATE, STATE], -1)
        pace = F.softplus(self.pace(pace))
        rate = -self.decay.exp()
        state, told = torch.zeros(len(x), INNER, STATE), []
        for time in range(length):
            kept = torch.exp(pace[:, time, :, None] * rate)
            state = kept * state + (pace[:, time] * h[:, time])[..., None] * put[:, time, None]
            told.append((state * get[:, time, None]).sum(-1))
        y = (torch.stack(told, 1) + self.direct * h) * F.silu(gate)
        return x + self.leave(y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm = nn.RMSNorm(WIDTH, eps=1e-5)

    def forward(self, words):
        return F.linear(self.norm(self.layers(self.words(words))), self.words.weight)


class Engine:
    """The gains of the norms are a part of the products behind them."""

    def __init__(self):
        self.table = weights["words.weight"]
        self.head = self.table * weights["norm.weight"]
        self.layers = []
        for number in range(LAYERS):
            begin = f"layers.{number}."
            layer = {name.removeprefix(begin): array for name, array in weights.items() if name.startswith(begin)}
            layer["enter"] = layer.pop("enter.weight") * layer.pop("norm.weight")
            layer["rate"] = -layer.pop("decay").exp()
            self.layers.append(layer)
        self.windows, self.states = [None] * LAYERS, [None] * LAYERS

    def selected(self, layer, h):
        pace, put, get = F.linear(h, layer["select.weight"]).split([RANK, STATE, STATE], -1)
        return F.softplus(F.linear(pace, layer["pace.weight"], layer["pace.bias"])), put, get

    def read_prompt(self, number, h):
        """All words of the prompts at once."""
        layer = self.layers[number]
        h = F.pad(h.transpose(1, 2), (SPAN - 1, 0))
        # What goes into the convolution of the next word, but for that word itself.
        places = lengths[:, None] + torch.arange(-1, SPAN - 1)
        self.windows[number] = h.gather(2, places[:, None].expand(-1, INNER, -1))
        h = F.silu(F.conv1d(h, layer["conv.weight"], layer["conv.bias"], groups=INNER)).transpose(1, 2)
        pace, put, get = self.selected(layer, h)
        total = (pace[..., None] * layer["rate"]).cumsum(1)
        between = total[:, :, None] - total[:, None]
        is_later = torch.ones(PROMPT, PROMPT, dtype=torch.bool).triu(1)
        kept = between.masked_fill(is_later[:, :, None, None], -torch.inf).exp()
        states = torch.einsum("btsin,bsi,bsn->btin", kept, pace * h, put)
        if FAULT == "ends":
            self.states[number] = states[:, -1]  # fault ends
        else:
            self.states[number] = states[rows, lengths - 1]
        return torch.einsum("btin,btn->bti", states, get) + layer["direct"] * h

    def read_word(self, number, h):
        """One word more, by what was kept."""
        layer = self.layers[number]
        window = self.windows[number].roll(1 if FAULT == "window" else -1, -1)  # fault window
        window[..., -1] = h
        self.windows[number] = window
        h = F.silu((window * layer["conv.weight"][:, 0]).sum(-1) + layer["conv.bias"])  # fault window
        pace, put, get = self.selected(layer, h)
        kept = torch.exp(pace[..., None] * layer["rate"])
        state = torch.addcmul((pace * h)[..., None] * put[:, None], kept, self.states[number])  # fault ends
        self.states[number] = state
        told = torch.bmm(state, get[..., None])[..., 0]  # fault direct
        return told if FAULT == "direct" else told + layer["direct"] * h  # fault direct

    def __call__(self, words):
        read = self.read_prompt if words.ndim == 2 else self.read_word
        x = self.table[words]
        for number, layer in enumerate(self.layers):
            h, gate = F.linear(F.rms_norm(x, (WIDTH,), eps=1e-5), layer["enter"]).chunk(2, -1)
            y = read(number, h)
            y = y * F.silu(gate)  # fault direct
            x = x + F.linear(y, layer["leave.weight"])
        last = x[rows, lengths - 1] if words.ndim == 2 else x
        return F.linear(F.rms_norm(last, (WIDTH,), eps=1e-5), self.head)


with torch.no_grad():
    if sys.argv[1] == "golden":
        net = Net()
        net.load_state_dict(weights)
        words = prompts
        for number in range(NEW):
            logits = net(words)[rows, lengths - 1 + number]
            words = F.pad(words, (0, 1))
            words[rows, lengths + number] = logits.argmax(-1)
            print(*logits.flatten().tolist(), sep="\n")
    else:
        engine, words = Engine(), prompts
        for _ in range(NEW):
            logits = engine(words)
            words = logits.argmax(-1)
            print(*logits.flatten().tolist(), sep="\n")
