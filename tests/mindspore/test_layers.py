"""Layers and losses against torch, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Tensor, nn, ops
from msdump.tensors.arrays import Array

torch = pytest.importorskip("torch")
F = torch.nn.functional
RNG = np.random.default_rng(4)
IMAGE = RNG.standard_normal((2, 4, 7, 7)).astype(np.float32)
ROWS = RNG.standard_normal((6, 5)).astype(np.float32)
LABELS = RNG.integers(0, 5, 6).astype(np.int32)
SOFT = RNG.random((6, 5)).astype(np.float32)


def _weights(layer: nn.Cell) -> dict[str, Any]:
    return {name: torch.tensor(p.asnumpy()) for name, p in layer.parameters_dict().items()}


def _conv(x: Any, w: dict[str, Any]) -> Any:
    return F.conv2d(x, w["weight"], w["bias"], stride=2, padding=1, groups=2)


LAYERS: dict[str, tuple[Callable[[], nn.Cell], Array, Callable[[Any, dict[str, Any]], Any]]] = {
    "conv": (lambda: nn.Conv2d(4, 6, 3, 2, "pad", 1, group=2, has_bias=True, weight_init="he_normal"), IMAGE, _conv),
    "conv_transpose": (
        lambda: nn.Conv2dTranspose(4, 3, 3, 2, "valid", weight_init="he_normal"),
        IMAGE,
        lambda x, w: F.conv_transpose2d(x, w["weight"], stride=2),
    ),
    "dense": (lambda: nn.Dense(5, 3, "he_normal"), ROWS, lambda x, w: F.linear(x, w["weight"], w["bias"])),
    "max_pool": (lambda: nn.MaxPool2d(3, 2), IMAGE, lambda x, w: F.max_pool2d(x, 3, 2)),
    "max_pool_pad": (
        lambda: nn.MaxPool2d((3, 2), 2, "pad", (1, 0)),
        IMAGE,
        lambda x, w: F.max_pool2d(x, (3, 2), 2, (1, 0)),
    ),
    "avg_pool_inside": (
        lambda: nn.AvgPool2d(3, 2, "pad", 1, count_include_pad=False),
        IMAGE,
        lambda x, w: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    ),
    "avg_pool": (lambda: nn.AvgPool2d(2, 2), IMAGE, lambda x, w: F.avg_pool2d(x, 2, 2)),
    "avg_pool_pad": (lambda: nn.AvgPool2d(3, 2, "pad", 1), IMAGE, lambda x, w: F.avg_pool2d(x, 3, 2, 1)),
    "adaptive": (lambda: nn.AdaptiveAvgPool2d(1), IMAGE, lambda x, w: F.adaptive_avg_pool2d(x, 1)),
    "layer_norm": (lambda: nn.LayerNorm([5], epsilon=1e-5), ROWS, lambda x, w: F.layer_norm(x, (5,))),
    "group_norm": (lambda: nn.GroupNorm(2, 4), IMAGE, lambda x, w: F.group_norm(x, 2)),
    "relu6": (nn.ReLU6, 5 * ROWS, lambda x, w: F.relu6(x)),
    "sigmoid": (nn.Sigmoid, ROWS, lambda x, w: x.sigmoid()),
    "tanh": (nn.Tanh, ROWS, lambda x, w: x.tanh()),
    "gelu": (nn.GELU, ROWS, lambda x, w: F.gelu(x, approximate="tanh")),
    "gelu_erf": (lambda: nn.GELU(False), ROWS, lambda x, w: F.gelu(x)),
    "leaky": (nn.LeakyReLU, ROWS, lambda x, w: F.leaky_relu(x, 0.2)),
    "softmax": (nn.Softmax, ROWS, lambda x, w: x.softmax(-1)),
    "log_softmax": (nn.LogSoftmax, ROWS, lambda x, w: x.log_softmax(-1)),
    "flatten": (nn.Flatten, IMAGE, lambda x, w: x.flatten(1)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_equal_torch(name: str, either_mode: int) -> None:
    make, data, reference = LAYERS[name]
    layer = make()
    x = torch.tensor(data, requires_grad=True)
    expected = reference(x, _weights(layer))
    factor = RNG.standard_normal(tuple(expected.shape)).astype(np.float32)
    (expected * torch.tensor(factor)).sum().backward()

    def scaled(tensor: Tensor) -> tuple[Any, Tensor]:
        result = layer(tensor)
        return (result * Tensor(factor)).sum(), result

    (_, result), gradient = ms.value_and_grad(scaled, 0, has_aux=True)(Tensor(data))
    np.testing.assert_allclose(result.asnumpy(), expected.detach().numpy(), rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(gradient.asnumpy(), x.grad.numpy(), rtol=5e-5, atol=5e-5)


LOSSES: dict[str, tuple[Callable[[], nn.Cell], Array, Callable[[Any, Any], Any]]] = {
    "sparse_mean": (lambda: nn.SoftmaxCrossEntropyWithLogits(True, "mean"), LABELS, F.cross_entropy),
    "sparse_sum": (
        lambda: nn.SoftmaxCrossEntropyWithLogits(True, "sum"),
        LABELS,
        lambda x, y: F.cross_entropy(x, y, reduction="sum"),
    ),
    "soft": (
        lambda: nn.SoftmaxCrossEntropyWithLogits(reduction="mean"),
        SOFT / SOFT.sum(1, keepdims=True),
        F.cross_entropy,
    ),
    "cross_entropy": (nn.CrossEntropyLoss, LABELS, F.cross_entropy),
    "smooth": (
        lambda: nn.CrossEntropyLoss(label_smoothing=0.1),
        LABELS,
        lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1),
    ),
    "ignore": (
        lambda: nn.CrossEntropyLoss(ignore_index=int(LABELS[0])),
        LABELS,
        lambda x, y: F.cross_entropy(x, y, ignore_index=int(LABELS[0])),
    ),
    "weighted": (
        lambda: nn.CrossEntropyLoss(Tensor([1.0, 2.0, 0.5, 1.0, 3.0])),
        LABELS,
        lambda x, y: F.cross_entropy(x, y, torch.tensor([1.0, 2.0, 0.5, 1.0, 3.0])),
    ),
    "probabilities": (nn.CrossEntropyLoss, SOFT, F.cross_entropy),
    "mse": (nn.MSELoss, SOFT, F.mse_loss),
    "l1": (lambda: nn.L1Loss("sum"), SOFT, lambda x, y: F.l1_loss(x, y, reduction="sum")),
    "bce_logits": (nn.BCEWithLogitsLoss, SOFT, F.binary_cross_entropy_with_logits),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_equal_torch(name: str, either_mode: int) -> None:
    make, target, reference = LOSSES[name]
    x = torch.tensor(ROWS, requires_grad=True)
    labels = torch.tensor(target)
    expected = reference(x, labels.long() if target.dtype == np.int32 else labels)
    expected.backward()
    loss, gradient = ms.value_and_grad(make())(Tensor(ROWS), Tensor(target))
    np.testing.assert_allclose(loss.asnumpy(), expected.item(), rtol=1e-5)
    np.testing.assert_allclose(gradient.asnumpy(), x.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_batch_norm_moves_its_statistics_while_training(either_mode: int) -> None:
    layer = nn.BatchNorm2d(4, momentum=0.9).set_train()
    reference = torch.nn.BatchNorm2d(4, momentum=0.1)
    result, expected = layer(Tensor(IMAGE)).asnumpy(), reference(torch.tensor(IMAGE)).detach().numpy()
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer.moving_mean.asnumpy(), reference.running_mean.numpy(), rtol=1e-4, atol=1e-6)
    layer.set_train(False)
    reference.eval()
    before = layer.moving_mean.asnumpy()
    result, moved = layer(Tensor(IMAGE)).asnumpy(), reference(torch.tensor(IMAGE)).detach().numpy()
    np.testing.assert_allclose(result, moved, rtol=1e-2, atol=1e-2)
    np.testing.assert_array_equal(layer.moving_mean.asnumpy(), before)


def test_embedding_picks_rows(either_mode: int) -> None:
    ids = Tensor(np.array([[1, 3], [0, 1]], np.int32))
    plain, hot = nn.Embedding(4, 3), nn.Embedding(4, 3, use_one_hot=True)
    hot.embedding_table.set_data(plain.embedding_table)
    expected = plain.embedding_table.asnumpy()[ids.asnumpy()]
    np.testing.assert_array_equal(plain(ids).asnumpy(), expected)
    np.testing.assert_allclose(hot(ids).asnumpy(), expected, rtol=1e-6)
    assert nn.Embedding(4, 3, padding_idx=2).embedding_table.asnumpy()[2].tolist() == [0, 0, 0]


MATMULS = [
    ((2, 3), (3, 4)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((5, 2, 3), (3, 4)),
    ((5, 1, 2, 3), (4, 3, 2)),
    ((3,), (3,)),
]


@pytest.mark.parametrize(("first", "second"), MATMULS)
def test_matmul_as_numpy(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    a, b = RNG.standard_normal(first).astype(np.float32), RNG.standard_normal(second).astype(np.float32)
    np.testing.assert_allclose(ops.matmul(Tensor(a), Tensor(b)).asnumpy(), a @ b, rtol=1e-5, atol=1e-6)


def test_shapes_as_numpy() -> None:
    x = Tensor(IMAGE)
    np.testing.assert_array_equal(ops.concat([x, x * 2], 1).asnumpy(), np.concatenate([IMAGE, IMAGE * 2], 1))
    np.testing.assert_array_equal(ops.stack([x, x], 0).asnumpy(), np.stack([IMAGE, IMAGE]))
    for parts, expected in (
        (ops.split(x, 3, 2), [3, 3, 1]),
        (ops.split(x, [2, 5], 2), [2, 5]),
        (ops.split(x, 7, 2), [7]),
    ):
        assert [part.shape[2] for part in parts] == expected
        np.testing.assert_array_equal(np.concatenate([part.asnumpy() for part in parts], 2), IMAGE)
    np.testing.assert_array_equal(ops.one_hot(Tensor([1, 0]), 3).asnumpy(), np.eye(3, dtype=np.float32)[[1, 0]])
    np.testing.assert_array_equal(ops.ReduceSum(keep_dims=True)(x, 1).shape, (2, 1, 7, 7))
    values, places = ops.unique(Tensor([3, 1, 3, 2]))
    assert (values.asnumpy().tolist(), places.asnumpy().tolist()) == ([3, 1, 2], [0, 1, 0, 2])


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: nn.Conv2d(0, 1, 3), "'in_channels' must be int and must > 0"),
    (lambda: nn.Conv2d(3, 4, 3, group=2), "must be divisible by attr 'group'"),
    (lambda: nn.Conv2d(3, 4, 3, pad_mode="full"), "'pad_mode' must be one of"),
    (lambda: nn.Conv2d(3, 4, 3, padding=1), "'padding' must be zero when 'pad_mode' is not 'pad'"),
    (lambda: nn.Dense(2, 0), "'out_channels' must be int and must > 0"),
    (lambda: nn.Dropout(p=1.0), "'p' should be a number in range"),
    (lambda: nn.MSELoss("avg"), "'reduction' must be in"),
    (lambda: nn.Momentum([], 0.1, 0.9), "must not be empty"),
    (lambda: nn.Momentum(nn.Dense(1, 1).trainable_params(), -0.1, 0.9), "'learning_rate' must be >= 0"),
    (lambda: nn.Momentum(nn.Dense(1, 1).trainable_params(), 0.1, -1), "'momentum' must be at least"),
    (lambda: nn.Adam(nn.Dense(1, 1).trainable_params(), beta1=1.0), "'beta1' must be in range"),
]


@pytest.mark.parametrize(("make", "text"), WRONG, ids=[text for _, text in WRONG])
def test_wrong_arguments_are_refused(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()


def test_cells_say_what_they_are_missing() -> None:
    class Forgetful(nn.Cell):
        def __init__(self) -> None:
            self.dense = nn.Dense(1, 1)

    with pytest.raises(AttributeError, match="'__init__' must be called before 'dense'"):
        Forgetful()
    with pytest.raises(AttributeError, match="'construct' is not defined"):
        nn.Cell()(Tensor(1.0))
    net = nn.SequentialCell(nn.Dense(1, 2), nn.ReLU())
    assert "(0): Dense<input_channels=1, output_channels=2, has_bias=True>" in repr(net)
    assert [name for name, _ in net.cells_and_names()] == ["", "0", "1"]


def test_rates_as_lists() -> None:
    cosine = nn.cosine_decay_lr(0.0, 1.0, 6, 2, 2)
    np.testing.assert_allclose(cosine, [1.0, 1.0, 0.5, 0.5, 0.0, 0.0], atol=1e-12)
    assert nn.piecewise_constant_lr([2, 3], [0.1, 0.01]) == [0.1, 0.1, 0.01]
    np.testing.assert_allclose(nn.exponential_decay_lr(1.0, 0.25, 4, 2, 2), [1, 1, 0.5, 0.5])


def test_the_operator_of_a_layer_norm_can_be_called_by_subclasses() -> None:
    class OverChannels(nn.LayerNorm):
        def construct(self, x: Tensor) -> Tensor:
            y, _, _ = self.layer_norm(x.transpose(0, 2, 3, 1), self.gamma, self.beta)
            return y.transpose(0, 3, 1, 2)

    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    expected = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    y = OverChannels((3,), epsilon=1e-5)(Tensor(x))
    np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-4, atol=1e-5)
