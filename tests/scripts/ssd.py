"""Boxes and classes from two maps of an image, with a loss that weighs the hard negatives."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(24)
CLASSES = 3


class SSD(nn.Cell):
    def __init__(self):
        super().__init__()
        self.body = nn.SequentialCell(
            nn.Conv2d(3, 16, 3, 2, pad_mode="same", weight_init="he_uniform"), nn.BatchNorm2d(16), nn.ReLU()
        )
        self.deeper = nn.SequentialCell(nn.Conv2d(16, 16, 3, 2, pad_mode="same", weight_init="he_uniform"), nn.ReLU6())
        self.boxes = nn.CellList([nn.Conv2d(16, 4, 3, weight_init="he_uniform") for _ in range(2)])
        self.classes = nn.CellList([nn.Conv2d(16, CLASSES, 3, weight_init="he_uniform") for _ in range(2)])

    def construct(self, x):
        first = self.body(x)
        maps = (first, self.deeper(first))
        boxes, classes = (), ()
        for index, features in enumerate(maps):
            box = ops.transpose(self.boxes[index](features), (0, 2, 3, 1))
            name = ops.transpose(self.classes[index](features), (0, 2, 3, 1))
            boxes += (ops.reshape(box, (box.shape[0], -1, 4)),)
            classes += (ops.reshape(name, (name.shape[0], -1, CLASSES)),)
        return ops.concat(boxes, 1), ops.concat(classes, 1)


class SSDLoss(nn.Cell):
    def __init__(self, network):
        super().__init__()
        self.network = network
        self.smooth = nn.SmoothL1Loss()

    def construct(self, image, boxes, classes, count):
        predicted, logits = self.network(image)
        mask = ops.cast(classes > 0, ms.float32)
        of_boxes = self.smooth(predicted, boxes) * ops.expand_dims(mask, -1)
        entropy = ops.cross_entropy(logits.reshape(-1, CLASSES), classes.reshape(-1), reduction="none")
        total = ops.reduce_sum(of_boxes) + ops.reduce_sum(entropy.reshape(classes.shape) * (0.2 + mask))
        return total / count


rng = np.random.default_rng(24)
PLACES = 8 * 8 + 4 * 4
images = 0.2 * rng.standard_normal((4, 3, 16, 16)).astype(np.float32)
classes = np.zeros((4, PLACES), np.int32)
boxes = np.zeros((4, PLACES, 4), np.float32)
for number in range(4):
    row, column, kind = rng.integers(1, 7), rng.integers(1, 7), rng.integers(1, CLASSES)
    images[number, kind, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2] += 2.0
    classes[number, row * 8 + column] = kind
    boxes[number, row * 8 + column] = 0.5
loss = SSDLoss(SSD())
optimizer = nn.Momentum(loss.trainable_params(), 0.02, 0.9, weight_decay=1e-4)
step = nn.TrainOneStepCell(loss, optimizer, sens=1.0)
step.set_train()
count = Tensor(float((classes > 0).sum()), ms.float32)
losses = [float(step(Tensor(images), Tensor(boxes), Tensor(classes), count)) for _ in range(12)]
