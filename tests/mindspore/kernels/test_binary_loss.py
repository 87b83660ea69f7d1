"""Cross entropy with targets in [0, 1]."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump.mindspore as ms
from msdump.errors import ExecutionError, OperandTypeError, OperandValueError
from msdump.mindspore import Tensor, nn, ops
from tests.mindspore.kernels.interpreter import check_gradient, run_op

REDUCTIONS = {"none": lambda losses: losses, "mean": np.mean, "sum": np.sum}
NO_WEIGHTS = {"absent": ("weight", "pos_weight")}


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from(sorted(REDUCTIONS)), st.integers(0, 99))
def test_losses_are_their_definition(rows: int, columns: int, reduction: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    logits, weight, pos_weight = (random.uniform(-4, 4, shape) for shape in ((rows, columns), (columns,), (rows, 1)))
    chances, labels = 1 / (1 + np.exp(-logits)), random.random((rows, columns))
    expected = -(labels * np.log(chances) + (1 - labels) * np.log(1 - chances)) * weight
    attrs = {"reduction": reduction}
    np.testing.assert_allclose(
        run_op("BinaryCrossEntropy", [chances, labels, weight], attrs)[0], REDUCTIONS[reduction](expected), rtol=1e-9
    )
    expected = -(pos_weight * labels * np.log(chances) + (1 - labels) * np.log(1 - chances)) * weight
    np.testing.assert_allclose(
        run_op("BCEWithLogitsLoss", [logits, labels, weight, pos_weight], attrs)[0],
        REDUCTIONS[reduction](expected),
        rtol=1e-9,
        atol=1e-12,
    )


@pytest.mark.parametrize("reduction", sorted(REDUCTIONS))
def test_bprops_agree_with_differences(reduction: str) -> None:
    random = np.random.default_rng(1)
    chances, labels = random.uniform(0.1, 0.9, (3, 4)), random.random((3, 4))
    logits, weight, pos_weight = random.standard_normal((3, 4)), random.random(4), random.random((3, 1))
    attrs = {"reduction": reduction}
    check_gradient("BinaryCrossEntropy", [chances, labels, weight], attrs, wrt=[0, 1])
    check_gradient("BinaryCrossEntropy", [chances, labels], attrs, wrt=[0, 1])
    dloss = random.standard_normal((3, 4)) if reduction == "none" else np.array(1.5)
    check_gradient("BinaryCrossEntropyGrad", [chances, labels, dloss, weight], attrs, wrt=[0, 1, 2])
    check_gradient("BCEWithLogitsLoss", [logits, labels, weight, pos_weight], attrs, wrt=[0, 1])
    check_gradient("BCEWithLogitsLoss", [logits, labels], {**attrs, **NO_WEIGHTS}, wrt=[0, 1])


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from(["float16", "float32", "float64"]), min_size=4, max_size=4),
    st.sampled_from(["none", "mean", "sum"]),
)
def test_operands_of_several_floats_give_a_loss_in_the_dtype_of_the_labels(dtypes: list[str], reduction: str) -> None:
    """Source: MindSpore 2.7 on a CPU; a gradient has the dtype of what it is the gradient of."""
    arrays = [[[0.5, -1.0, 2.0]], [[1.0, 0.0, 0.75]], [1.0, 2.0, 3.0], [3.0, 1.0, 0.5]]
    operands = [np.array(each, dtype) for each, dtype in zip(arrays, dtypes, strict=True)]
    expected = run_op("BCEWithLogitsLoss", [each.astype(np.float64) for each in operands], {"reduction": reduction})[0]
    loss = run_op("BCEWithLogitsLoss", operands, {"reduction": reduction})[0]
    assert loss.dtype == dtypes[1]
    np.testing.assert_allclose(loss, expected, rtol=2e-3 if dtypes[1] == "float16" else 1e-6)

    def total(logits: Tensor, labels: Tensor, weight: Tensor, pos_weight: Tensor) -> Tensor:
        return ops.binary_cross_entropy_with_logits(logits, labels, weight, pos_weight, reduction).sum()

    gradients = ms.grad(total, (0, 1, 2, 3))(*map(Tensor, operands))
    assert [each.array.dtype.name for each in gradients] == dtypes
    wide = ms.grad(total, (0, 1))(*(Tensor(each.astype(np.float64)) for each in operands))
    for gradient, other in zip(gradients[:2], wide, strict=True):
        np.testing.assert_allclose(gradient.array, other.array, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("layer", [nn.BCEWithLogitsLoss, ms.mint.nn.BCEWithLogitsLoss])
def test_a_layer_takes_weights_of_float32_with_data_of_float16(layer: Any, either_mode: int) -> None:
    x, weight = np.array([[0.5, -1.0, 2.0]], np.float16), Tensor(np.array([1.0, 2.0, 3.0], np.float32))
    loss = layer(reduction="none", pos_weight=weight)(Tensor(x), Tensor(np.array([[1, 0, 1]], np.float16)))
    assert loss.dtype == ms.float16
    # What MindSpore 2.7.0 gives on a CPU.
    np.testing.assert_allclose(loss.asnumpy(), [[0.47412109375, 0.313232421875, 0.380859375]], rtol=2e-3)


def test_certain_probabilities_have_finite_gradients() -> None:
    """Source: MindSpore 2.7 on a CPU."""
    x, y = np.array([0, 1, 0, 1], np.float32), np.array([0, 1, 1, 0], np.float32)
    one = np.array(1, np.float32)
    assert run_op("BinaryCrossEntropy", [x, y], {"reduction": "none"})[0].tolist() == [0, 0, 100, 100]
    gradient = run_op("BinaryCrossEntropyGrad", [x, y, one], {"reduction": "sum"})[0]
    np.testing.assert_allclose(gradient, [0, 0, -1e12, 1e12], rtol=1e-6)


def test_far_logits() -> None:
    x, y = np.array([200, -200, 0], np.float32), np.array([0, 1, 1], np.float32)
    losses = run_op("BCEWithLogitsLoss", [x, y], {"reduction": "none", **NO_WEIGHTS})[0]
    np.testing.assert_allclose(losses, [200, 200, np.log(2)], rtol=1e-6)


def test_operands_that_do_not_fit() -> None:
    x = np.array([0.5, 1.5], np.float32)
    with pytest.raises(ExecutionError, match=r"between 0 and 1, got 1\.5"):
        run_op("BinaryCrossEntropy", [x, x])
    assert np.isnan(run_op("BinaryCrossEntropy", [x[:1] * np.nan, x[:1]])[0])
    for op_type, attrs in (("BinaryCrossEntropy", {}), ("BCEWithLogitsLoss", NO_WEIGHTS)):
        with pytest.raises(OperandValueError, match="labels"):
            run_op(op_type, [x, x[:1]], attrs)
        with pytest.raises(OperandTypeError, match=r"one dtype|labels and weights of dtype"):
            run_op(op_type, [x, x.astype(np.int32)], attrs)
        with pytest.raises(OperandValueError, match="reduction none, mean or sum"):
            run_op(op_type, [x, x], {**attrs, "reduction": "all"})
    for others in ([x.astype(np.float16)], [x, x.astype(np.float16)]):
        with pytest.raises(OperandTypeError, match="one dtype"):
            run_op("BinaryCrossEntropy", [x, *others])
    with pytest.raises(OperandValueError, match="a weight that broadcasts"):
        run_op("BinaryCrossEntropy", [x, x, np.ones((2, 2), np.float32)])
