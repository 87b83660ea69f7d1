"""Model.train with callbacks of MindSpore and one of its own, then Model.eval with metrics, in graph mode."""

import mindspore as ms
import numpy as np
from mindspore import dataset as ds
from mindspore import nn
from mindspore.train import Callback, LossMonitor, Model, TimeMonitor

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(5)
rng = np.random.default_rng(5)
points = rng.standard_normal((64, 2)).astype(np.float32)
classes = (points[:, 0] * points[:, 1] > 0).astype(np.int32)


def pairs():
    yield from zip(points, classes, strict=True)


def dataset():
    return ds.GeneratorDataset(pairs, ["data", "label"], shuffle=False).batch(16)


class Recorder(Callback):
    def __init__(self):
        super().__init__()
        self.losses = []

    def on_train_epoch_end(self, run_context):
        self.losses.append(float(run_context.original_args().net_outputs))


network = nn.SequentialCell(nn.Dense(2, 24, "xavier_uniform"), nn.Tanh(), nn.Dense(24, 2, "xavier_uniform"))
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Momentum(network.trainable_params(), 0.2, 0.9)
model = Model(network, loss, optimizer, metrics={"accuracy": nn.Accuracy(), "loss": nn.Loss()})
recorder = Recorder()
model.train(20, dataset(), callbacks=[recorder, LossMonitor(4), TimeMonitor()], dataset_sink_mode=False)
result = model.eval(dataset(), dataset_sink_mode=False)
assert set(result) == {"accuracy", "loss"} and result["accuracy"] > 0.7, result
losses = recorder.losses
