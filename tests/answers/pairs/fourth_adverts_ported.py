"""A net that guesses clicks from tables and their crosses was ported from PyTorch to MindSpore."""

import sys

import numpy as np

ANSWER = {
    "kind": "fourth trial: a net of tables and crosses ported",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "step": 0,
    "variants": {
        "bag": {
            "goes_wrong": "The rows of a bag are averaged over its places, the empty ones too, not over its items.",
            "wants": "the division by the number of items of the first table, or the number",
        },
        "triangle": {
            "goes_wrong": "The crosses are taken by column of the triangle, the weight after them has them by row.",
            "wants": "the choice of crosses, or the numbers that go into the first product of the upper net",
        },
        "logarithm": {
            "goes_wrong": "The counts go into the net as they are, without a logarithm.",
            "wants": "the first product of the lower net, or what is done with the counts before it",
        },
        "positive": {
            "goes_wrong": "The weight of clicks in the loss was forgotten.",
            "wants": "the loss",
        },
        "accumulator": {
            "goes_wrong": "The sum of squares begins with 0.1, the default of the other library, not with 0.02.",
            "wants": "the update of a weight in the first step",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
SIZES, WIDTH, COUNTS, BAG, BATCH, STEPS, WEIGHT, BEGIN = (17, 11, 23), 6, 5, 4, 6, 3, 3.0, 0.02
FEATURES = len(SIZES) + 1
CROSSES = FEATURES * (FEATURES - 1) // 2
ROWS = np.array([row for row in range(FEATURES) for _ in range(row)], np.int32)
COLUMNS = np.array([column for row in range(FEATURES) for column in range(row)], np.int32)

rng = np.random.default_rng(404)


def drawn(*shape, factor=1.0):
    return (factor * rng.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32)


weights = {f"tables.{number}.weight": drawn(size, WIDTH, factor=2) for number, size in enumerate(SIZES)}
for number in range(len(SIZES)):
    weights[f"tables.{number}.weight"][0] = 0
for name, out, into in (
    ("lower1", 12, COUNTS),
    ("lower2", WIDTH, 12),
    ("upper1", 14, WIDTH + CROSSES),
    ("upper2", 8, 14),
    ("upper3", 1, 8),
):
    weights[f"{name}.weight"] = drawn(out, into, factor=1.5)
    weights[f"{name}.bias"] = rng.uniform(-0.3, 0.3, out).astype(np.float32)
counts = rng.poisson(6, (STEPS, BATCH, COUNTS)).astype(np.float32)
sizes = np.array(SIZES)[:, None]
items = rng.integers(1, sizes, (STEPS, BATCH, len(SIZES), BAG))
items[rng.random(items.shape) < 0.3] = 0
items[..., 0] = rng.integers(1, sizes[:, 0], items.shape[:-1])
items = items.astype(np.int32)
clicks = rng.integers(0, 2, (STEPS, BATCH)).astype(np.float32)

if sys.argv[1] == "golden":
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList(nn.EmbeddingBag(size, WIDTH, mode="mean", padding_idx=0) for size in SIZES)
            self.lower1, self.lower2 = nn.Linear(COUNTS, 12), nn.Linear(12, WIDTH)
            self.upper1, self.upper2 = nn.Linear(WIDTH + CROSSES, 14), nn.Linear(14, 8)
            self.upper3 = nn.Linear(8, 1)

        def forward(self, count, item):
            dense = torch.relu(self.lower2(torch.relu(self.lower1(torch.log1p(count)))))
            rows = [table(item[:, number]) for number, table in enumerate(self.tables)]
            features = torch.stack([dense, *rows], 1)
            crosses = torch.bmm(features, features.transpose(1, 2))
            crosses = crosses[:, torch.from_numpy(ROWS).long(), torch.from_numpy(COLUMNS).long()]
            x = torch.relu(self.upper1(torch.cat([dense, crosses], 1)))
            return self.upper3(torch.relu(self.upper2(x))).squeeze(1)

    net = Net()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.05, initial_accumulator_value=BEGIN)
    for count, item, click in zip(counts, items, clicks, strict=True):
        logits = net(torch.from_numpy(count), torch.from_numpy(item).long())
        loss = F.binary_cross_entropy_with_logits(logits, torch.from_numpy(click), pos_weight=torch.tensor(WEIGHT))
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
            self.tables = nn.CellList([nn.Embedding(size, WIDTH) for size in SIZES])
            self.lower1, self.lower2 = nn.Dense(COUNTS, 12), nn.Dense(12, WIDTH)
            self.upper1, self.upper2, self.upper3 = nn.Dense(WIDTH + CROSSES, 14), nn.Dense(14, 8), nn.Dense(8, 1)

        def bag(self, table, item):
            known = (item != 0).astype(ms.float32)
            total = (table(item) * known.expand_dims(2)).sum(1)
            number = ms.Tensor(float(BAG)) if FAULT == "bag" else known.sum(1).expand_dims(1)  # fault bag
            return total / number  # fault bag

        def construct(self, count, item):
            if FAULT != "logarithm":
                count = ops.log(count + 1)
            h = self.lower1(count)  # fault logarithm
            dense = ops.relu(self.lower2(ops.relu(h)))
            rows = [self.bag(table, item[:, number]) for number, table in enumerate(self.tables)]
            features = ops.stack([dense, *rows], 1)
            crosses = ops.bmm(features, features.swapaxes(1, 2)).reshape(-1, FEATURES * FEATURES)
            places = ROWS * FEATURES + COLUMNS
            if FAULT == "triangle":
                places = np.sort(COLUMNS * FEATURES + ROWS)
            picked = ops.gather(crosses, ms.Tensor(places), 1)  # fault triangle
            joined = ops.concat([dense, picked], 1)  # fault triangle
            x = self.upper1(joined)  # fault triangle
            return self.upper3(ops.relu(self.upper2(ops.relu(x)))).squeeze(1)

    class Step(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net, self.optimizer = net, optimizer
            self.gradients = ops.value_and_grad(self.forward, None, optimizer.parameters)

        def forward(self, count, item, click):
            logits = self.net(count, item)
            ones, heavy = ops.ones_like(click), ms.Tensor([1.0 if FAULT == "positive" else WEIGHT])
            return ops.binary_cross_entropy_with_logits(logits, click, ones, heavy)  # fault positive

        def construct(self, count, item, click):
            loss, gradients = self.gradients(count, item, click)
            self.optimizer(gradients)  # fault accumulator
            return loss

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    names = {name: name.replace("weight", "embedding_table") if "tables" in name else name for name in weights}
    ms.load_param_into_net(
        net, {names[name]: ms.Parameter(ms.Tensor(array), names[name]) for name, array in weights.items()}
    )
    begin = 0.1 if FAULT == "accumulator" else BEGIN
    optimizer = nn.Adagrad(net.trainable_params(), accum=begin, learning_rate=0.05)  # fault accumulator
    step = Step().set_train()
    for count, item, click in zip(counts, items, clicks, strict=True):
        print(float(step(ms.Tensor(count), ms.Tensor(item), ms.Tensor(click)).asnumpy()))
