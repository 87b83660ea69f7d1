"""The models of the rows beside MindSpore, in MindSpore's API alone: they run under both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops


def training_step(name: str, batch: int) -> Callable[[], Any]:
    """One training step in graph mode on random data; what it returns is the loss."""
    step, inputs, labels = training_cell(name, batch)
    return lambda: step(inputs, labels).asnumpy()


def training_cell(name: str, batch: int) -> tuple[Any, Any, Any]:
    """The cell of a training step, inputs and labels."""
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    ms.set_seed(1)
    rng = np.random.default_rng(0)
    net, shape = _MODELS[name]
    x = rng.integers(0, 1000, (batch, 128)) if shape is None else rng.standard_normal((batch, *shape))
    inputs = ms.Tensor(x.astype(np.int32 if shape is None else np.float32))
    labels = ms.Tensor(rng.integers(0, 10, batch).astype(np.int32))
    model = net()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(model.trainable_params(), 0.001, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(model, loss), optimizer)
    step.set_train()
    return step, inputs, labels


def chain(is_graph: bool, count: int, shape: tuple[int, ...] = (8,)) -> Callable[[], Any]:
    """`count` operators on eight numbers, each of which waits for the one before."""
    ms.set_context(mode=ms.GRAPH_MODE if is_graph else ms.PYNATIVE_MODE, device_target="CPU")
    net, x = Chain(count), ms.Tensor(np.ones(shape, np.float32))
    return lambda: net(x).asnumpy()


class Chain(nn.Cell):
    def __init__(self, count: int) -> None:
        super().__init__()
        # MindSpore's compiler calls itself once for each turn of a loop, and not much more than 500 times.
        self.turns = count // 10
        self.add, self.mul = ops.Add(), ops.Mul()

    def construct(self, x: Any) -> Any:
        y = x
        for _ in range(self.turns):
            y = self.mul(self.add(y, x), x)
            y = self.mul(self.add(y, x), x)
            y = self.mul(self.add(y, x), x)
            y = self.mul(self.add(y, x), x)
            y = self.mul(self.add(y, x), x)
        return y


class LeNet(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(400, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, 10)

    def construct(self, x: Any) -> Any:
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.fc1(self.flatten(x)))
        return self.fc3(self.relu(self.fc2(x)))


def alexnet() -> Any:
    """As benchmarks/torch_models.py has it."""
    layers: list[Any] = []
    for inputs, outputs, size, stride, padding, has_pool in (
        (3, 96, 11, 4, 0, True),
        (96, 256, 5, 1, 2, True),
        (256, 384, 3, 1, 1, False),
        (384, 384, 3, 1, 1, False),
        (384, 256, 3, 1, 1, True),
    ):
        pad_mode = "pad" if padding else "valid"
        layers += [nn.Conv2d(inputs, outputs, size, stride, pad_mode, padding, has_bias=True), nn.ReLU()]
        if has_pool:
            layers.append(nn.MaxPool2d(3, 2))
    dense = [nn.Dense(9216, 4096), nn.ReLU(), nn.Dense(4096, 4096), nn.ReLU(), nn.Dense(4096, 10)]
    return nn.SequentialCell([*layers, nn.Flatten(), *dense])


class Bottleneck(nn.Cell):
    """Three convolutions beside a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.SequentialCell(
            nn.Conv2d(inputs, width, 1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, "pad", 1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, outputs, 1),
            nn.BatchNorm2d(outputs),
        )
        self.is_changed = stride != 1 or inputs != outputs
        if self.is_changed:
            self.shortcut = nn.SequentialCell(nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))
        self.relu = nn.ReLU()

    def construct(self, x: Any) -> Any:
        y = self.body(x)
        if self.is_changed:
            x = self.shortcut(x)
        return self.relu(y + x)


class ResNet50(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Conv2d(3, 64, 7, 2, "pad", 3), nn.BatchNorm2d(64), nn.ReLU()]
        layers.append(nn.MaxPool2d(3, 2, "same"))
        inputs = 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for index in range(count):
                layers.append(Bottleneck(inputs, width, stride if index == 0 else 1))
                inputs = 4 * width
        self.features = nn.SequentialCell(layers)
        self.mean = ops.ReduceMean()
        self.head = nn.Dense(inputs, 1000)

    def construct(self, x: Any) -> Any:
        return self.head(self.mean(self.features(x), (2, 3)))


class Layer(nn.Cell):
    """Attention of eight heads and two dense layers, each behind its norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query = nn.Dense(width, width)
        self.key = nn.Dense(width, width)
        self.value = nn.Dense(width, width)
        self.joined = nn.Dense(width, width)
        self.norm1 = nn.LayerNorm((width,))
        self.norm2 = nn.LayerNorm((width,))
        self.wide = nn.Dense(width, 4 * width)
        self.narrow = nn.Dense(4 * width, width)
        self.relu = nn.ReLU()
        self.softmax = nn.Softmax(-1)
        self.scores = ops.BatchMatMul(transpose_b=True)
        self.weigh = ops.BatchMatMul()
        self.transpose = ops.Transpose()
        self.reshape = ops.Reshape()

    def split(self, x: Any, shape: Any) -> Any:
        return self.transpose(self.reshape(x, (shape[0], shape[1], self.heads, self.size)), (0, 2, 1, 3))

    def construct(self, x: Any) -> Any:
        shape = x.shape
        query = self.split(self.query(x), shape)
        key = self.split(self.key(x), shape)
        value = self.split(self.value(x), shape)
        weights = self.softmax(self.scores(query, key) / self.size**0.5)
        mixed = self.reshape(self.transpose(self.weigh(weights, value), (0, 2, 1, 3)), shape)
        x = self.norm1(x + self.joined(mixed))
        return self.norm2(x + self.narrow(self.relu(self.wide(x))))


class Transformer(nn.Cell):
    """Four encoder layers over tokens, and a classifier of the first one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, 256)
        self.layers = nn.SequentialCell([Layer(256, 8) for _ in range(4)])
        self.head = nn.Dense(256, 10)

    def construct(self, tokens: Any) -> Any:
        return self.head(self.layers(self.embedding(tokens))[:, 0])


# Model -> its class and the shape of one image; None for tokens.
_MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...] | None]] = {
    "lenet": (LeNet, (1, 32, 32)),
    "alexnet": (alexnet, (3, 227, 227)),
    "resnet50": (ResNet50, (3, 224, 224)),
    "transformer": (Transformer, None),
}
