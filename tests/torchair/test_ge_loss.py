"""Losses and their gradients as GE operators."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional  # noqa: E402

from tests.torchair.ge_exact import check_exactly, check_traced  # noqa: E402

aten = torch.ops.aten
X, Y = torch.randn(4, 5), torch.randn(4, 5)
P, LABELS = torch.rand(4, 5), torch.randint(0, 2, (4, 5)).float()
LOGITS, CLASSES = torch.randn(4, 5).log_softmax(1), torch.tensor([0, 4, -100, 2])
IMAGE, PIXELS = torch.randn(2, 5, 3, 3).log_softmax(1), torch.randint(0, 5, (2, 3, 3))
WEIGHT = torch.rand(5)
TOTAL = torch.tensor(3.0)
NONE, MEAN, SUM = 0, 1, 2

BCE = "SigmoidCrossEntropyWithLogitsV2(predict,target,"
CASES = [
    *[(aten.mse_loss.default, (X, Y, each), "MseLoss(predict,label)") for each in (NONE, MEAN, SUM)],
    (aten.mse_loss.default, (X.double(), Y), "Cast(x) MseLoss(predict,label)"),
    (aten.mse_loss_backward.default, (torch.tensor(0.5), X, Y, MEAN), "MseLossGrad(predict,label,dout)"),
    (aten.mse_loss_backward.default, (X, X, Y, NONE), "MseLossGrad(predict,label,dout)"),
    (aten.smooth_l1_loss.default, (X, Y, MEAN, 0.5), "SmoothL1LossV2(predict,label)"),
    (aten.smooth_l1_loss.default, (X.half(), Y.half(), NONE), "SmoothL1LossV2(predict,label)"),
    (aten.smooth_l1_loss_backward.default, (TOTAL, X, Y, SUM, 0.5), "SmoothL1LossGradV2(predict,label,dout)"),
    (aten.nll_loss_forward.default, (LOGITS, CLASSES, None, MEAN, -100), "Cast(x) NLLLoss(x,target,weight?)"),
    (aten.nll_loss_forward.default, (LOGITS, CLASSES, WEIGHT, SUM, -100), "Cast(x) NLLLoss(x,target,weight)"),
    (aten.nll_loss_forward.default, (LOGITS, CLASSES, WEIGHT, NONE, -100), "Cast(x) NLLLoss(x,target,weight)"),
    (aten.nll_loss_forward.default, (LOGITS[0], CLASSES[1], None, MEAN, 1), "Cast(x) NLLLoss(x,target,weight?)"),
    (aten.nll_loss2d_forward.default, (IMAGE, PIXELS, None, MEAN, -100), "Cast(x) NLLLoss(x,target,weight?)"),
    (
        aten.nll_loss_backward.default,
        (TOTAL, LOGITS, CLASSES, None, MEAN, -100, TOTAL),
        "Fill(dims,value) Cast(x) NLLLossGrad(x,y_grad,target,weight,total_weight)",
    ),
    (
        aten.nll_loss_backward.default,
        (TOTAL, LOGITS, CLASSES, WEIGHT, SUM, -100, TOTAL),
        "Cast(x) NLLLossGrad(x,y_grad,target,weight,total_weight)",
    ),
    (
        aten.nll_loss2d_backward.default,
        (TOTAL, IMAGE, PIXELS, None, MEAN, -100, TOTAL),
        "Fill(dims,value) Cast(x) NLLLossGrad(x,y_grad,target,weight,total_weight)",
    ),
    (aten.binary_cross_entropy.default, (P, LABELS), "BinaryCrossEntropy(x,y,weight?)"),
    (aten.binary_cross_entropy.default, (P, LABELS, P, NONE), "BinaryCrossEntropy(x,y,weight)"),
    (
        aten.binary_cross_entropy_backward.default,
        (TOTAL, P, LABELS, None, SUM),
        "BinaryCrossEntropyGrad(x,y,grad_output,weight?)",
    ),
    (aten.binary_cross_entropy_with_logits.default, (X, LABELS), BCE + "weight?,pos_weight?)"),
    (aten.binary_cross_entropy_with_logits.default, (X, LABELS, P, WEIGHT, SUM), BCE + "weight,pos_weight)"),
]


@pytest.mark.parametrize(("target", "args", "spelled"), CASES, ids=[str(case[0]) for case in CASES])
def test_is_spelled_and_computed(target: Any, args: Any, spelled: str) -> None:
    check_exactly(target, args, spelled)


def test_huber_loss_is_a_scaled_smooth_l1_loss() -> None:
    def function(x: Any, y: Any) -> Any:
        return functional.huber_loss(x, y, delta=2.0) + functional.huber_loss(x, y, reduction="sum", delta=0.5)

    graph = check_traced(torch.func.grad_and_value(function), X, Y)
    assert {"SmoothL1LossV2", "SmoothL1LossGradV2"} <= {op.type for op in graph.ops}


@pytest.mark.parametrize("symbolic", [False, True])
def test_gradients(symbolic: bool) -> None:
    def function(x: Any, classes: Any, y: Any) -> Any:
        loss = functional.cross_entropy(x, classes) + functional.mse_loss(x, y) + functional.smooth_l1_loss(x, y)
        return loss + functional.binary_cross_entropy_with_logits(x, y.sigmoid())

    def given(rows: int) -> Any:
        return torch.randn(rows, 5), torch.randint(0, 5, (rows,)), torch.randn(rows, 5)

    both = torch.func.grad_and_value(function)
    graph = check_traced(both, *given(4), also=[given(7)] if symbolic else [], symbolic=symbolic)
    assert {"NLLLoss", "NLLLossGrad", "MseLossGrad"} <= {op.type for op in graph.ops}


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_soft_margin(reduction: int) -> None:
    x, target = torch.randn(3, 4), torch.randn(3, 4).sign()
    loss = aten.soft_margin_loss.default(x, target, reduction)
    check_exactly(aten.soft_margin_loss.default, (x, target, reduction), "SoftMarginLoss(input_x,input_y)")
    given = (torch.randn(loss.shape), x, target, reduction)
    check_exactly(aten.soft_margin_loss_backward.default, given, "SoftMarginLossGrad(predict,label,dout)")
