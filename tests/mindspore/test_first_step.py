"""ResNet-50 and an encoder like BERT's: loss and all gradients of the first step are those of PyTorch.

Layers that follow each other magnify the rounding of float32; in float64 what is left are differences of formulas.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Tensor, nn, ops

torch = pytest.importorskip("torch")
F = torch.nn.functional
RNG = np.random.default_rng(5)


# -- ResNet-50 ---------------------------------------------------------------------------------------------------------

# Channels, blocks and stride of the stages.
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


class Bottleneck(nn.Cell):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 1), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, pad_mode="pad", padding=1)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU()
        self.down = None
        if stride > 1 or channels != 4 * width:
            self.down = nn.SequentialCell(nn.Conv2d(channels, 4 * width, 1, stride), nn.BatchNorm2d(4 * width))

    def construct(self, x: Any) -> Any:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(y)))))
        return self.relu(y + (x if self.down is None else self.down(x)))


class ResNet50(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 7, 2, pad_mode="pad", padding=3)
        self.bn, self.relu = nn.BatchNorm2d(64), nn.ReLU()
        self.pool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        blocks, channels = [], 64
        for width, count, stride in STAGES:
            for number in range(count):
                blocks.append(Bottleneck(channels, width, 1 if number else stride))
                channels = 4 * width
        self.blocks = nn.SequentialCell(blocks)
        self.fc = nn.Dense(channels, 10)

    def construct(self, x: Any) -> Any:
        x = self.blocks(self.pool(self.relu(self.bn(self.conv(x)))))
        return self.fc(x.mean((2, 3)))


class TorchBottleneck(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        conv, norm = torch.nn.Conv2d, torch.nn.BatchNorm2d
        self.conv1, self.bn1 = conv(channels, width, 1, bias=False), norm(width)
        self.conv2, self.bn2 = conv(width, width, 3, stride, 1, bias=False), norm(width)
        self.conv3, self.bn3 = conv(width, 4 * width, 1, bias=False), norm(4 * width)
        self.down = None
        if stride > 1 or channels != 4 * width:
            self.down = torch.nn.Sequential(conv(channels, 4 * width, 1, stride, bias=False), norm(4 * width))

    def forward(self, x: Any) -> Any:
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(F.relu(self.bn2(self.conv2(y)))))
        return F.relu(y + (x if self.down is None else self.down(x)))


class TorchResNet50(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = torch.nn.Conv2d(3, 64, 7, 2, 3, bias=False), torch.nn.BatchNorm2d(64)
        blocks, channels = [], 64
        for width, count, stride in STAGES:
            for number in range(count):
                blocks.append(TorchBottleneck(channels, width, 1 if number else stride))
                channels = 4 * width
        self.blocks, self.fc = torch.nn.Sequential(*blocks), torch.nn.Linear(channels, 10)

    def forward(self, x: Any) -> Any:
        return self.fc(self.blocks(F.max_pool2d(F.relu(self.bn(self.conv(x))), 3, 2, 1)).mean((2, 3)))


# -- an encoder --------------------------------------------------------------------------------------------------------

WORDS, LENGTH, WIDTH, HEADS = 30, 6, 16, 4


class EncoderLayer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Dense(WIDTH, 3 * WIDTH), nn.Dense(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Dense(WIDTH, 4 * WIDTH, activation="gelu"), nn.Dense(4 * WIDTH, WIDTH)
        self.norm1, self.norm2 = (nn.LayerNorm((WIDTH,), epsilon=1e-5) for _ in range(2))
        self.softmax, self.product = nn.Softmax(-1), ops.BatchMatMul()
        self.product_of_rows = ops.BatchMatMul(transpose_b=True)

    def construct(self, x: Any, is_padding: Any) -> Any:
        shape = (x.shape[0], LENGTH, 3, HEADS, WIDTH // HEADS)
        q, k, v = ops.unstack(self.qkv(x).reshape(shape).transpose(2, 0, 3, 1, 4))
        scores = self.product_of_rows(q, k) / (WIDTH // HEADS) ** 0.5
        scores = scores.masked_fill(is_padding[:, None, None, :], -1e9)
        mixed = self.product(self.softmax(scores), v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = self.norm1(x + self.out(mixed))
        return self.norm2(x + self.narrow(self.wide(x)))


class Encoder(nn.Cell):
    """Words, positions, two layers and a word for each place."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.norm = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.layers = nn.CellList([EncoderLayer() for _ in range(2)])
        self.head = nn.Dense(WIDTH, WORDS)

    def construct(self, ids: Any) -> Any:
        x = self.norm(self.words(ids) + self.places(ops.arange(LENGTH)))
        for layer in self.layers:
            x = layer(x, ids == 0)
        return self.head(x).reshape(-1, WORDS)


class TorchEncoder(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = torch.nn.Embedding(WORDS, WIDTH), torch.nn.Embedding(LENGTH, WIDTH)
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(
                WIDTH, HEADS, 4 * WIDTH, 0.0, lambda x: F.gelu(x, approximate="tanh"), batch_first=True
            )
            for _ in range(2)
        )
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, ids: Any) -> Any:
        x = self.norm(self.words(ids) + self.places(torch.arange(LENGTH)))
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=ids == 0)
        return self.head(x).reshape(-1, WORDS)


# -- both --------------------------------------------------------------------------------------------------------------


def set_weights(network: Any, reference: Any, dtype: Any) -> tuple[list[Any], list[Any]]:
    """Both get the same weights: normal ones, of the size that keeps values as large as they are."""
    for _, cell in network.cells_and_names():
        for name, old in list(cell._params.items()):
            array = old.asnumpy()
            if old.requires_grad:
                spread = (2 / np.prod(array.shape[1:])) ** 0.5
                array = RNG.normal(0, spread, array.shape) if array.ndim > 1 else RNG.uniform(0.5, 1, array.shape)
            setattr(cell, name, ms.Parameter(Tensor(array.astype(dtype)), old.name, old.requires_grad))
    ours, theirs = list(network.trainable_params()), list(reference.to(getattr(torch, dtype)).parameters())
    for weight, other in zip(ours, theirs, strict=True):
        assert weight.shape == other.shape
        other.data = torch.tensor(weight.asnumpy())
    return ours, theirs


def compare(network: Any, reference: Any, x: Any, labels: Any, dtype: str, has_gradients: bool = True) -> None:
    """The loss, and each gradient as a whole, within 1e-5."""
    weights, theirs = set_weights(network, reference, dtype)
    expected = F.cross_entropy(reference(torch.tensor(x)), torch.tensor(labels).long(), ignore_index=-1)
    expected.backward()

    def forward(data: Any, target: Any) -> Any:
        return ops.cross_entropy(network(data), target, ignore_index=-1)

    loss, gradients = ms.value_and_grad(forward, None, weights)(Tensor(x), Tensor(labels))
    assert float(loss) == pytest.approx(expected.item(), rel=1e-5)
    for weight, gradient, other in zip(weights, gradients, theirs, strict=True):
        exact = other.grad.numpy()
        error = np.linalg.norm(gradient.asnumpy() - exact) / max(np.linalg.norm(exact), 1e-3)
        assert error <= 1e-5 or not has_gradients, weight.name


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_resnet50(dtype: str) -> None:
    network = ResNet50().set_train()
    x = RNG.standard_normal((2, 3, 64, 64)).astype(dtype)
    # In float32 the statistics of eight numbers, at the end of 50 layers, make each library's rounding a hundredth of
    # a gradient: float64 shows that the formulas are the same.
    compare(network, TorchResNet50().train(), x, np.array([3, 7], np.int32), dtype, dtype == "float64")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_encoder(dtype: str, either_mode: int) -> None:
    ids = RNG.integers(1, WORDS, (3, LENGTH)).astype(np.int32)
    ids[1, 4:] = ids[2, 5:] = 0
    labels = np.where(ids.reshape(-1) % 3 == 1, ids.reshape(-1), -1).astype(np.int32)
    compare(Encoder(), TorchEncoder().eval(), ids, labels, dtype)
