"""An encoder of two blocks that classifies padded sentences was ported from PyTorch and trains two steps."""

import sys

import numpy as np

ANSWER = {
    "kind": "trial: a ported encoder",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "step": 0,
    "never": ["different weights or data"],
    "variants": {
        "joined": {
            "goes_wrong": "Nothing: one product makes queries, keys and values in the port, three in the first.",
            "line": False,
            "step": None,
            "exit": 0,
            "says": ["agree"],
            "never": ["first difference", "first wrong"],
            "wants": "that both agree, in two forms",
        },
        "epsilon": {
            "goes_wrong": "The norm behind the embedding has the epsilon that is MindSpore's default.",
            "operator": "LayerNorm",
            "says": ["1e-05"],
            "wants": "the first LayerNorm, its line, and both epsilons",
        },
        "mask": {
            "goes_wrong": "The second block does not mask the padding.",
            "wants": "the line that masks the scores of the second block, or their softmax",
        },
        "scale": {
            "goes_wrong": "Scores are divided by the root of the width in place of that of a head.",
            "wants": "the line that scales the scores",
        },
        "residual": {
            "goes_wrong": "The feed-forward is added to what the norm made of its input.",
            "wants": "the line of the sum, one operand of which is that behind the norm",
        },
        "position": {
            "goes_wrong": "Positions begin at 1.",
            "wants": "the line that looks the positions up, or makes them",
        },
        "bias": {
            "goes_wrong": "The projection behind the attention of the second block has no bias.",
            "wants": "the projection of the second block, its line, which lacks its bias",
        },
        "transposed": {
            "goes_wrong": "The square weight behind the attention of the second block is loaded transposed.",
            "says": ["weight"],
            "never": [],
            "wants": "the projection of the second block, its line, and that its weight differs",
        },
        "betas": {
            "goes_wrong": "The second beta of Adam is 0.9 in place of 0.999.",
            "operator": "optimizer-",
            "line": False,
            "step": None,
            "says": ["0.999"],
            "wants": "the update, and its second beta",
        },
        "clip": {
            "goes_wrong": "Gradients are clipped to a norm of 0.5 in place of 0.1.",
            "wants": "the line that clips gradients, in step 0",
        },
        "activation": {
            "goes_wrong": "The feed-forward of the port has SiLU in place of GELU; both were dumped as statistics.",
            "saved": "statistic",
            "wants": "the activation of the first block, its line",
        },
    },
}

VARIANT = sys.argv[2]
FAULT = VARIANT if sys.argv[1] == "faulty" else ""
WIDTH, HEADS, LENGTH, BATCH = 32, 4, 12, 4

rng = np.random.default_rng(3)


def drawn(*shape):
    return (rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))).astype(np.float32)


weights = {"words.weight": 0.02 * drawn(60, WIDTH), "places.weight": 0.02 * drawn(LENGTH + 1, WIDTH)}
for number in range(2):
    for name, ends in {
        **dict.fromkeys(("query", "key", "value", "out"), (WIDTH, WIDTH)),
        "first": (64, WIDTH),
        "second": (WIDTH, 64),
    }.items():
        weights[f"block{number}.{name}.weight"], weights[f"block{number}.{name}.bias"] = (
            drawn(*ends),
            drawn(ends[0]) / 4,
        )
for name in ("norm", *(f"block{number}.norm{which}" for number in range(2) for which in (1, 2))):
    weights[f"{name}.weight"], weights[f"{name}.bias"] = 1 + drawn(WIDTH) / 10, drawn(WIDTH) / 10
weights["head.weight"], weights["head.bias"] = drawn(3, WIDTH), drawn(3) / 10
words, labels = rng.integers(0, 60, (BATCH, LENGTH)).astype(np.int32), rng.integers(0, 3, BATCH).astype(np.int32)
kept = np.arange(LENGTH) < np.array([12, 9, 7, 10])[:, None]
hidden = np.where(kept, 0, -1e4).astype(np.float32)[:, None, None]


def with_torch():
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
            self.first, self.second = nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH)
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

        def forward(self, x, mask):
            y = self.norm1(x)
            query, key, value = (
                each(y).reshape(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for each in (self.query, self.key, self.value)
            )
            share = torch.softmax(query @ key.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5 + mask, -1)
            x = x + self.out((share @ value).transpose(1, 2).reshape(x.shape))
            return x + self.second(nn.functional.gelu(self.first(self.norm2(x))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(60, WIDTH), nn.Embedding(LENGTH + 1, WIDTH)
            self.norm, self.block0, self.block1 = nn.LayerNorm(WIDTH), Block(), Block()
            self.head = nn.Linear(WIDTH, 3)

        def forward(self, words, mask):
            x = self.norm(self.words(words) + self.places(torch.arange(LENGTH)))
            return self.head(self.block1(self.block0(x, mask), mask)[:, 0])

    net = Net()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    if VARIANT == "betas":
        optimizer = torch.optim.Adam(net.parameters(), 0.001)
    else:
        optimizer = torch.optim.SGD(net.parameters(), 0.05, 0.9)
    for _ in range(2):
        logits = net(torch.from_numpy(words), torch.from_numpy(hidden))
        loss = nn.functional.cross_entropy(logits, torch.from_numpy(labels).long())
        optimizer.zero_grad()
        loss.backward()
        if VARIANT == "clip":
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        optimizer.step()
    return loss


def with_mindspore():
    import mindspore as ms
    from mindspore import nn, ops

    is_joined = FAULT == "joined"

    class Block(nn.Cell):
        def __init__(self, number):
            super().__init__()
            self.number = number
            if is_joined:
                self.joined = nn.Dense(WIDTH, 3 * WIDTH)
            else:
                self.query, self.key, self.value = (nn.Dense(WIDTH, WIDTH) for _ in range(3))
            self.out = nn.Dense(WIDTH, WIDTH, has_bias=FAULT != "bias" or number == 0)
            self.first, self.second = nn.Dense(WIDTH, 64), nn.Dense(64, WIDTH)
            self.norm1, self.norm2 = (nn.LayerNorm((WIDTH,), epsilon=1e-5) for _ in range(2))
            self.act = nn.SiLU() if FAULT == "activation" else nn.GELU(approximate=False)

        def heads(self, x):
            return ops.transpose(ops.reshape(x, (BATCH, LENGTH, HEADS, WIDTH // HEADS)), (0, 2, 1, 3))

        def construct(self, x, mask):
            y = self.norm1(x)
            parts = ops.split(self.joined(y), WIDTH, 2) if is_joined else (self.query(y), self.key(y), self.value(y))
            query, key, value = self.heads(parts[0]), self.heads(parts[1]), self.heads(parts[2])
            root = (WIDTH if FAULT == "scale" else WIDTH // HEADS) ** 0.5
            scores = ops.matmul(query, key.swapaxes(-1, -2)) / root  # fault scale
            if FAULT != "mask" or self.number == 0:
                scores = scores + mask  # fault mask
            share = ops.softmax(scores, -1)  # fault mask
            together = ops.reshape(ops.transpose(ops.matmul(share, value), (0, 2, 1, 3)), (BATCH, LENGTH, WIDTH))
            x = x + self.out(together)  # fault bias transposed
            y = self.norm2(x)
            rest = y if FAULT == "residual" else x
            z = self.act(self.first(y))  # fault activation
            return rest + self.second(z)  # fault residual

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(60, WIDTH), nn.Embedding(LENGTH + 1, WIDTH)
            self.norm = nn.LayerNorm((WIDTH,)) if FAULT == "epsilon" else nn.LayerNorm((WIDTH,), epsilon=1e-5)
            self.block0, self.block1, self.head = Block(0), Block(1), nn.Dense(WIDTH, 3)
            first = int(FAULT == "position")
            self.numbers = ms.Tensor(np.arange(first, LENGTH + first, dtype=np.int32))

        def construct(self, words, mask):
            x = self.words(words) + self.places(self.numbers)  # fault position
            x = self.norm(x)  # fault epsilon
            return self.head(self.block1(self.block0(x, mask), mask)[:, 0])

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    loaded = dict(weights)
    for number in range(2):
        for kind in ("weight", "bias"):
            parts = [weights[f"block{number}.{name}.{kind}"] for name in ("query", "key", "value")]
            loaded[f"block{number}.joined.{kind}"] = np.concatenate(parts)
    if FAULT == "transposed":
        loaded["block1.out.weight"] = np.ascontiguousarray(loaded["block1.out.weight"].T)  # fault transposed
    for name in weights:
        owner, kind = name.rsplit(".", 1)
        if "norm" in owner:
            loaded[f"{owner}.{'gamma' if kind == 'weight' else 'beta'}"] = loaded.pop(name)
        if owner in ("words", "places"):
            loaded[f"{owner}.embedding_table"] = loaded.pop(name)
    names = {each.name for each in net.get_parameters()}
    ms.load_param_into_net(net, {name: ms.Parameter(ms.Tensor(loaded[name])) for name in names})
    parameters = net.trainable_params()
    if VARIANT == "betas":
        optimizer = nn.Adam(parameters, 0.001, beta2=0.9 if FAULT else 0.999)
    else:
        optimizer = nn.Momentum(parameters, 0.05, 0.9)
    loss = nn.CrossEntropyLoss()

    class Step(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net, self.loss, self.optimizer = net, loss, optimizer
            self.gradients = ops.value_and_grad(self.forward, None, optimizer.parameters)

        def forward(self, words, mask, labels):
            return self.loss(self.net(words, mask), labels)

        def construct(self, words, mask, labels):
            loss, gradients = self.gradients(words, mask, labels)
            if VARIANT == "clip":
                gradients = ops.clip_by_global_norm(gradients, 0.5 if FAULT else 0.1)  # fault clip
            self.optimizer(gradients)
            return loss

    step = Step()
    step.set_train()
    for _ in range(2):
        loss = step(ms.Tensor(words), ms.Tensor(hidden), ms.Tensor(labels))
    return loss.asnumpy()


print(float(with_torch() if sys.argv[1] == "golden" else with_mindspore()))
