"""Callbacks that watch a training from outside: a profiler, a summary, hooks on a layer."""

import tempfile

import mindspore as ms
import numpy as np
from mindspore import SummaryCollector, Tensor, nn, ops
from mindspore import dataset as ds
from mindspore.train import History, Model

ms.set_seed(38)
rng = np.random.default_rng(38)
x = rng.standard_normal((32, 4)).astype(np.float32)
y = (x**2).sum(axis=1, keepdims=True).astype(np.float32)
network = nn.SequentialCell(nn.Dense(4, 24, "he_uniform"), nn.ReLU(), nn.Dense(24, 1, "he_uniform"))
seen = []


def keep_shape(cell, inputs, output):
    seen.append(output.shape)


handle = network[0].register_forward_hook(keep_shape)
network(Tensor(x))
handle.remove()
network(Tensor(x))
assert seen == [(32, 24)], seen

model = Model(network, nn.MSELoss(), nn.Adam(network.trainable_params(), 0.03), metrics={"mae"})
history = History()
with tempfile.TemporaryDirectory() as folder:
    data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(16)
    model.train(12, data, callbacks=[history, SummaryCollector(folder)])
losses = [float(np.asarray(value)) for value in history.epoch["loss"]] if "loss" in history.epoch else []
if not losses:
    losses = [float(np.mean(np.asarray(value))) for value in history.history["net_output"]]
assert float(ops.mean(network(Tensor(x)))) > 0
