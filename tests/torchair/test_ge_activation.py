"""Activation functions, softmax and their gradients as GE operators."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.torchair.ge_calls import check, graph_of  # noqa: E402

aten = torch.ops.aten
FLOATS = (torch.float32, torch.bfloat16)

FORWARD: list[tuple[Any, tuple[Any, ...], str]] = [
    (aten.relu.default, (), "Relu(x)"),
    (aten.sigmoid.default, (), "Sigmoid(x)"),
    (aten.tanh.default, (), "Tanh(x)"),
    (aten.gelu.default, (), "Gelu(x)"),
    (aten.silu.default, (), "Swish(x)"),
    (aten.mish.default, (), "Mish(x)"),
    (aten.hardswish.default, (), "HardSwish(x)"),
    (aten.hardsigmoid.default, (), "HardSigmoid(input_x)"),
    (aten.leaky_relu.default, (), "LeakyRelu(x)"),
    (aten.leaky_relu.default, (0.2,), "LeakyRelu(x)"),
    (aten.elu.default, (), "Elu(x)"),
    (aten.elu.default, (1.6, 1.05), "Elu(x)"),
    (aten.celu.default, (2.0,), "CeluV2(x)"),
    (aten.softplus.default, (), "SoftplusV2(x)"),
    (aten.softplus.default, (2, 1), "SoftplusV2(x)"),
    (aten.threshold.default, (0.5, 7), "ThresholdV2(x,threshold,value)"),
    (aten.glu.default, (1,), "GLU(x)"),
    (aten._softmax.default, (1, False), "SoftmaxV2(x)"),
    (aten._softmax.default, (0, False), "SoftmaxV2(x)"),
    (aten._log_softmax.default, (-1, False), "LogSoftmaxV2(logits)"),
]
# Gradient and one tensor first, then the rest.
BACKWARD: list[tuple[Any, tuple[Any, ...], str]] = [
    (aten.threshold_backward.default, (0,), "ReluGrad(gradients,features)"),
    (aten.threshold_backward.default, (0.5,), "ThresholdGradV2D(gradients,features)"),
    (aten.tanh_backward.default, (), "TanhGrad(y,dy)"),
    (aten.sigmoid_backward.default, (), "SigmoidGrad(y,dy)"),
    (aten.gelu_backward.default, (), "GeluGrad(dy,x,y)"),
    (aten.silu_backward.default, (), "SiluGrad(dy,x)"),
    (aten.mish_backward.default, (), "MishGrad(grad,x)"),
    (aten.hardswish_backward.default, (), "HardSwishGrad(grad,x)"),
    (aten.hardsigmoid_backward.default, (), "HardSigmoidGrad(grads,input_x)"),
    (aten.leaky_relu_backward.default, (0.2, False), "LeakyReluGrad(gradients,features)"),
    (aten.hardtanh_backward.default, (-1, 1), "HardtanhGrad(result,grad)"),
    (aten.softplus_backward.default, (1, 20), "SoftplusV2Grad(input_gradients,input_features)"),
]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("target", "rest", "spelled"), FORWARD, ids=lambda value: str(value))
def test_functions(target: Any, rest: tuple[Any, ...], spelled: str, dtype: Any) -> None:
    check(target, torch.randn(3, 4).to(dtype), *rest, spelled=spelled)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("target", "rest", "spelled"), BACKWARD, ids=lambda value: str(value))
def test_gradients(target: Any, rest: tuple[Any, ...], spelled: str, dtype: Any) -> None:
    check(target, torch.randn(3, 4).to(dtype), torch.randn(3, 4).to(dtype), *rest, spelled=spelled)


def test_both_formulas_of_gelu_are_one_operator() -> None:
    """GE has no attribute for it: nothing of it may show in a graph dump."""
    x, dy = torch.randn(64) * 2, torch.randn(64)
    for approximate in ("none", "tanh"):
        check(aten.gelu.default, x, approximate=approximate, spelled="Gelu(x)")
        check(aten.gelu_backward.default, dy, x, approximate=approximate, spelled="GeluGrad(dy,x,y)")
        graph, _ = graph_of(aten.gelu.default, x, approximate=approximate)
        assert graph.ops[1].attrs == {}
    graph, _ = graph_of(aten.gelu_backward.default, dy, x)
    grad = graph.ops[2]
    assert grad.inputs["y"] is grad.inputs["dy"]


def test_gradients_with_inputs_of_their_own() -> None:
    dy, x = torch.randn(3, 4), torch.randn(3, 4)
    check(aten.elu_backward.default, dy, 1.6, 1.05, 1.0, False, x, spelled="EluGradV2(grads,activations)")
    check(aten.elu_backward.default, dy, 1.0, 1.0, 1.0, True, x, spelled="EluGradV2(grads,activations)")
    check(aten.glu_backward.default, dy[:, :2], x, 1, spelled="GLUGrad(y_grad,x)")
    weight = torch.randn(1, 4)
    check(aten._prelu_kernel.default, x, weight, spelled="PRelu(x,weight)")
    check(aten._prelu_kernel_backward.default, dy, x, weight, spelled="PReluGrad(grads,features,weights)")
    _, buffer = aten.log_sigmoid_forward.default(x)
    check(aten.log_sigmoid_forward.default, x, spelled="LogSigmoid(x) Abs(x) Neg(x) Exp(x)")
    check(aten.log_sigmoid_backward.default, dy, x, buffer, spelled="LogSigmoidGrad(grads,features)")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_softmax_gradients(dtype: Any) -> None:
    x, dy = torch.randn(3, 4).to(dtype), torch.randn(3, 4).to(dtype)
    check(aten._softmax_backward_data.default, dy, x.softmax(1), 1, dtype, spelled="SoftmaxGrad(y,dy)")
    check(aten._log_softmax_backward_data.default, dy, x.log_softmax(0), 0, dtype, spelled="LogSoftmaxGrad(dy,y)")


def test_safe_softmax_gives_zeros_where_everything_is_masked() -> None:
    x = torch.randn(3, 4)
    x[1] = float("-inf")
    spelled = "SoftmaxV2(x) Equal(x1,x2) ReduceAll(x,axes) SelectV2(condition,then,else)"
    check(aten._safe_softmax.default, x, -1, spelled=spelled)
    check(aten._safe_softmax.default, x, -1, dtype=torch.float64, spelled=f"Cast(x) {spelled}")
