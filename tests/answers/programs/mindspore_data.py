"""A pipeline scales each row by its deviation, and a row of equal numbers becomes NaN before it reaches the
network."""

import sys

import mindspore as ms
import numpy as np
from mindspore import dataset, nn

ANSWER = {
    "kind": "MindSpore, data",
    "entry": "mindspore",
    "ask": "nan {faulty}",
    "step": 2,
    "says": ["outside"],
    "wants": "the batch of step 2 came in with NaN, at the line of the loop that feeds it",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
rows = rng.standard_normal((8, 4)).astype(np.float32)
if FAULT:
    rows[5] = 0.25


def scaled(row):
    with np.errstate(all="ignore"):
        return ((row - row.mean()) / row.std()).astype(np.float32)


ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
ms.set_seed(0)
pipeline = dataset.NumpySlicesDataset({"x": rows}, shuffle=False).map(scaled, ["x"]).batch(2)
net = nn.SequentialCell(nn.Dense(4, 4), nn.Sigmoid(), nn.Dense(4, 1))
for batch in pipeline.create_dict_iterator(num_epochs=1):
    net(batch["x"])  # fault
