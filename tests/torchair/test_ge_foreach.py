"""Operators over lists of tensors, and the optimizers that are made of them."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from msdump.torchair.ge.graph import GeGraph  # noqa: E402
from tests.torchair.ge_exact import check_exactly  # noqa: E402
from tests.torchair.test_ge_core import compiled  # noqa: E402

aten = torch.ops.aten
XS, YS = [torch.rand(2, 3), torch.rand(4)], [torch.rand(2, 3) + 1, torch.rand(4) + 1]

CASES = [
    (aten._foreach_add.List, (XS, YS), "Add(x1,x2) Add(x1,x2)"),
    (aten._foreach_sub.Scalar, (XS, 0.1), "Sub(x1,x2) Sub(x1,x2)"),
    (aten._foreach_mul.ScalarList, (XS, [0.5, 2.0]), "Mul(x1,x2) Mul(x1,x2)"),
    (aten._foreach_mul.Tensor, (XS, torch.tensor(3.0)), "Mul(x1,x2) Mul(x1,x2)"),
    (aten._foreach_div.List, (XS, YS), "RealDiv(x1,x2) RealDiv(x1,x2)"),
    (aten._foreach_maximum.List, (XS, YS), "Maximum(x1,x2) Maximum(x1,x2)"),
    (aten._foreach_sqrt.default, (XS,), "Sqrt(x) Sqrt(x)"),
    (aten._foreach_addcdiv.ScalarList, (XS, YS, YS, [0.1, -1.0]), "Addcdiv(x,x1,x2,value) Addcdiv(x,x1,x2,value)"),
    (aten._foreach_addcmul.Scalar, (XS, YS, YS, 0.1), "Addcmul(x,x1,x2,value) Addcmul(x,x1,x2,value)"),
    (aten._foreach_lerp.Scalar, (XS, YS, 0.1), "Lerp(start,end,weight) Lerp(start,end,weight)"),
]


@pytest.mark.parametrize(("target", "args", "spelled"), CASES, ids=[str(case[0]) for case in CASES])
def test_is_the_plain_operator_tensor_by_tensor(target: Any, args: Any, spelled: str) -> None:
    check_exactly(target, args, spelled)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01, "foreach": False}),
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "foreach": True}),
        (torch.optim.Adam, {"lr": 0.01, "amsgrad": True, "foreach": False}),
        (torch.optim.AdamW, {"lr": 0.01, "foreach": True}),
    ],
    ids=["SGD", "SGD of lists", "Adam", "AdamW of lists"],
)
# torch itself, where it looks into an optimizer.
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_steps_of_optimizers(kind: Any, options: dict[str, Any]) -> None:
    ends = []
    graphs: list[GeGraph] = []
    for is_compiled in (False, True):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 4)
        optimizer = kind(model.parameters(), **options)
        step = compiled(optimizer.step, graphs) if is_compiled else optimizer.step
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(5, 3)).square().sum().backward()
            step()
        ends.append([parameter.detach() for parameter in model.parameters()])
    torch.testing.assert_close(ends[1], ends[0])
    assert graphs
