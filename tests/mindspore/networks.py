"""Small networks and data for tests of the shim."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.graph.graph import Graph
from msdump.mindspore import Tensor, nn


class LeNet5(nn.Cell):
    """The network of the reference run."""

    def __init__(self, num_class: int = 10, num_channel: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(num_channel, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.fc1 = nn.Dense(16 * 5 * 5, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, num_class)
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()

    def construct(self, x: Tensor) -> Any:
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.max_pool2d(self.relu(self.conv2(x)))
        x = self.flatten(x)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


class Block(nn.Cell):
    """A residual block."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, weight_init="he_normal")
        self.bn = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Any:
        return self.relu(self.bn(self.conv(x)) + x)


class SmallResNet(nn.Cell):
    """A stem, two residual blocks, a list of dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, stride=2, weight_init="he_normal")
        self.pool = nn.MaxPool2d(3, 2, pad_mode="same")
        self.blocks = nn.SequentialCell([Block(4), Block(4)])
        self.mean = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.heads = nn.CellList([nn.Dense(4, 6, "xavier_uniform"), nn.Dense(6, 3, "xavier_uniform")])

    def construct(self, x: Tensor) -> Any:
        x = self.flatten(self.mean(self.blocks(self.pool(self.stem(x)))))
        for head in self.heads:
            x = head(x)
        return x


def digits(batch: int = 2, classes: int = 10) -> tuple[Tensor, Tensor]:
    """Images (batch, 1, 32, 32) and labels."""
    rng = np.random.default_rng(0)
    images = rng.standard_normal((batch, 1, 32, 32)).astype(np.float32)
    return Tensor(images), Tensor(rng.integers(0, classes, batch).astype(np.int32))


def rows(batch: int = 8, features: int = 5, classes: int = 3) -> tuple[Tensor, Tensor]:
    """Rows (batch, features) and labels."""
    rng = np.random.default_rng(1)
    data = rng.standard_normal((batch, features)).astype(np.float32)
    return Tensor(data), Tensor(rng.integers(0, classes, batch).astype(np.int32))


def training_step(net: nn.Cell, optimizer: Any, loss: Any = None) -> Any:
    """One-step cell of a net, switched to training."""
    loss = loss or nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer).set_train()


def graphs_of(cell: Any) -> list[Graph]:
    """All graphs that a cell was compiled to."""
    return [compiled.executor.graph for found in cell._cache.by_signature.values() for compiled in found]


class Batches:
    """A dataset of given batches, as far as Model uses one."""

    def __init__(self, batches: list[tuple[Tensor, ...]]) -> None:
        self.batches = batches

    def get_dataset_size(self) -> int:
        return len(self.batches)

    def create_tuple_iterator(self, num_epochs: int = -1, **options: Any) -> Any:
        return iter(list(batch) for batch in self.batches)
