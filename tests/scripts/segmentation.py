"""A fully convolutional network: a class for each pixel, with a skip connection and an upsampling that learns."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(20)


class FCN(nn.Cell):
    def __init__(self, classes):
        super().__init__()
        self.first = nn.SequentialCell(nn.Conv2d(3, 8, 3, weight_init="xavier_uniform"), nn.BatchNorm2d(8), nn.ReLU())
        self.pool = nn.MaxPool2d(2, 2)
        self.second = nn.SequentialCell(nn.Conv2d(8, 16, 3, weight_init="xavier_uniform"), nn.ReLU(), nn.Dropout(p=0.1))
        self.score_skip = nn.Conv2d(8, classes, 1, weight_init="xavier_uniform")
        self.score = nn.Conv2d(16, classes, 1, weight_init="xavier_uniform")
        self.up2 = nn.Conv2dTranspose(classes, classes, 4, stride=2, weight_init="xavier_uniform")
        self.last = nn.Conv2dTranspose(classes, classes, 4, stride=2, weight_init="xavier_uniform")

    def construct(self, x):
        skip = self.pool(self.first(x))
        deep = self.pool(self.second(skip))
        return self.last(self.up2(self.score(deep)) + self.score_skip(skip))


rng = np.random.default_rng(20)
masks = np.zeros((6, 16, 16), np.int32)
for number in range(6):
    top, left = rng.integers(0, 8, 2)
    masks[number, top : top + 8, left : left + 8] = 1
images = 0.3 * rng.standard_normal((6, 3, 16, 16)).astype(np.float32) + masks[:, None]
network = FCN(2)
optimizer = nn.Adam(network.trainable_params(), 0.02)


def forward(image, mask):
    return ops.cross_entropy(network(image), mask)


step = ms.value_and_grad(forward, None, optimizer.parameters)
losses = []
for _ in range(12):
    loss, grads = step(Tensor(images.astype(np.float32)), Tensor(masks))
    optimizer(grads)
    losses.append(float(loss))
