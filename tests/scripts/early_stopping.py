"""Model.fit with validation, early stopping, a falling rate and the best checkpoint."""

import os
import tempfile

import mindspore as ms
import numpy as np
from mindspore import dataset as ds
from mindspore import nn
from mindspore.train import Callback, CheckpointConfig, EarlyStopping, Model, ModelCheckpoint, ReduceLROnPlateau

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(33)
rng = np.random.default_rng(33)
points = rng.standard_normal((64, 2)).astype(np.float32)
labels = (np.hypot(points[:, 0], points[:, 1]) > 1.1).astype(np.int32)


def split(start, stop):
    return ds.NumpySlicesDataset((points[start:stop], labels[start:stop]), ["x", "y"], shuffle=False).batch(16)


class Recorder(Callback):
    def __init__(self):
        super().__init__()
        self.losses = []

    def on_train_epoch_end(self, run_context):
        self.losses.append(float(run_context.original_args().net_outputs))


network = nn.SequentialCell(nn.Dense(2, 32, "he_uniform"), nn.ReLU(), nn.Dense(32, 2, "he_uniform"))
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Momentum(network.trainable_params(), 0.1, 0.9)
model = Model(network, loss, optimizer, metrics={"accuracy", "loss"})
recorder = Recorder()
with tempfile.TemporaryDirectory() as folder:
    keep = ModelCheckpoint("circle", folder, CheckpointConfig(save_checkpoint_steps=3, keep_checkpoint_max=2))
    stop = EarlyStopping(monitor="eval_loss", patience=4, verbose=False)
    slower = ReduceLROnPlateau(monitor="eval_loss", patience=2, verbose=False)
    model.fit(15, split(0, 48), split(48, 64), callbacks=[recorder, keep, stop, slower])
    kept = sorted(name for name in os.listdir(folder) if name.endswith(".ckpt"))
    assert 1 <= len(kept) <= 2, kept
    ms.load_param_into_net(network, ms.load_checkpoint(os.path.join(folder, kept[-1])))
assert model.eval(split(48, 64))["accuracy"] > 0.6
losses = recorder.losses
