"""Grouped convolutions with a channel shuffle between them, as in ShuffleNet, through Model and a callback."""

import mindspore as ms
import numpy as np
from mindspore import dataset as ds
from mindspore import nn, ops
from mindspore.train import Callback, Model

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(19)


class Unit(nn.Cell):
    def __init__(self, channels_in, channels_out, group, stride):
        super().__init__()
        middle = channels_out // 4
        self.group, self.stride = group, stride
        rest = channels_out - channels_in if stride == 2 else channels_out
        self.squeeze = nn.SequentialCell(
            nn.Conv2d(channels_in, middle, 1, group=group), nn.BatchNorm2d(middle), nn.ReLU()
        )
        self.depthwise = nn.SequentialCell(
            nn.Conv2d(middle, middle, 3, stride, "pad", 1, group=middle), nn.BatchNorm2d(middle)
        )
        self.expand = nn.SequentialCell(nn.Conv2d(middle, rest, 1, group=group), nn.BatchNorm2d(rest))
        self.pool = nn.AvgPool2d(3, 2, pad_mode="same")
        self.relu = nn.ReLU()

    def shuffle(self, x):
        b, c, h, w = x.shape
        x = ops.reshape(x, (b, self.group, c // self.group, h, w))
        return ops.reshape(ops.transpose(x, (0, 2, 1, 3, 4)), (b, c, h, w))

    def construct(self, x):
        y = self.expand(self.depthwise(self.shuffle(self.squeeze(x))))
        return self.relu(ops.cat((y, self.pool(x)), axis=1) if self.stride == 2 else y + x)


network = nn.SequentialCell(
    nn.Conv2d(3, 8, 3),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    Unit(8, 24, 2, 2),
    Unit(24, 24, 2, 1),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Dense(24, 2),
)
rng = np.random.default_rng(19)
labels = rng.integers(0, 2, 32).astype(np.int32)
images = 0.5 * rng.standard_normal((32, 3, 8, 8)).astype(np.float32)
images[labels == 1, 0] += 1.0


class Recorder(Callback):
    def __init__(self):
        super().__init__()
        self.losses = []

    def step_end(self, run_context):
        self.losses.append(float(run_context.original_args().net_outputs))


data = ds.NumpySlicesDataset((images, labels), ["image", "label"], shuffle=False).batch(16)
optimizer = nn.Momentum(network.trainable_params(), 0.05, 0.9, weight_decay=4e-5)
model = Model(network, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), optimizer)
recorder = Recorder()
model.train(8, data, callbacks=recorder)
losses = recorder.losses
