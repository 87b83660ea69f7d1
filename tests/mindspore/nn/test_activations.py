"""Activations against PyTorch, forward and backward, in both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Tensor, nn
from tests.mindspore.nn.against_torch import check, numbers

torch = pytest.importorskip("torch")
F = torch.nn.functional

X = 3 * numbers(3, 4)
IMAGE = numbers(2, 4, 3, 3)

CASES: dict[str, tuple[Any, Any, Any]] = {
    "celu": (nn.CELU(0.5), lambda x: F.celu(x, 0.5), X),
    "elu": (nn.ELU(1.5), lambda x: F.elu(x, 1.5), X),
    "fast_gelu": (nn.FastGelu(), lambda x: x * torch.sigmoid(1.702 * x), X),
    "glu": (nn.GLU(), lambda x: F.glu(x), X),
    "hardtanh": (nn.Hardtanh(-0.5, 2.0), lambda x: F.hardtanh(x, -0.5, 2.0), X),
    "hshrink": (nn.HShrink(0.7), lambda x: F.hardshrink(x, 0.7), X),
    "hsigmoid": (nn.HSigmoid(), F.hardsigmoid, X),
    "hswish": (nn.HSwish(), F.hardswish, X),
    "log_sigmoid": (nn.LogSigmoid(), F.logsigmoid, X),
    "mish": (nn.Mish(), F.mish, X),
    "prelu": (nn.PReLU(4, 0.3), lambda x, a: F.prelu(x, a), IMAGE),
    "selu": (nn.SeLU(), F.selu, X),
    "silu": (nn.SiLU(), F.silu, X),
    "soft_shrink": (nn.SoftShrink(0.3), lambda x: F.softshrink(x, 0.3), X),
    "softmax_2d": (nn.Softmax2d(), lambda x: x.softmax(-3), IMAGE),
    "softmin": (nn.Softmin(0), lambda x: F.softmin(x, 0), X),
    "softsign": (nn.Softsign(), F.softsign, X),
    "tanhshrink": (nn.Tanhshrink(), F.tanhshrink, X),
    "threshold": (nn.Threshold(0.1, 20.0), lambda x: F.threshold(x, 0.1, 20.0), X),
}


@pytest.mark.parametrize("name", CASES)
def test_activations_equal_torch(name: str, either_mode: int) -> None:
    layer, reference, data = CASES[name]
    check(layer, reference, [data])


@pytest.mark.parametrize("name", ["relu", "silu", "hswish", "fast_gelu", "logsigmoid", "prelu", "mish", "softsign"])
def test_activations_by_name(name: str) -> None:
    layer = nn.get_activation(name)
    assert type(layer).__name__.lower() == name.replace("_", "")
    assert layer(Tensor(X.astype(np.float16))).dtype == Tensor(X.astype(np.float16)).dtype


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: nn.get_activation("swish"), KeyError),
        (lambda: nn.CELU(0.0), ValueError),
        (lambda: nn.Hardtanh(1.0, -1.0), ValueError),
        (lambda: nn.PReLU(2, [0.1]), ValueError),
        (lambda: nn.ELU("steep"), TypeError),
    ],
)
def test_bad_arguments(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


@pytest.mark.parametrize(("data", "weight"), [("float16", "float32"), ("float32", "float16")])
def test_prelu_has_the_dtype_of_its_data(data: str, weight: str) -> None:
    x = ms.Tensor(np.array([[-2.0, 4.0]], data))
    w = ms.Tensor(np.array([0.5, 0.25], weight))
    gradients = ms.grad(lambda x, w: ms.ops.prelu(x, w).sum(), (0, 1))(x, w)
    assert ms.ops.prelu(x, w).dtype == x.dtype and ms.ops.prelu(x, w).asnumpy().tolist() == [[-1, 4]]
    assert [each.dtype for each in gradients] == [x.dtype, w.dtype]
