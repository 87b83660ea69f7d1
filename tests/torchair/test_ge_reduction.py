"""Reductions, scans, searches and sorting as GE operators."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from tests.torchair.ge_calls import check  # noqa: E402

aten = torch.ops.aten

REDUCTIONS = {
    aten.sum.dim_IntList: "ReduceSum(x,axes)",
    aten.mean.dim: "ReduceMean(x,axes)",
    aten.amax.default: "ReduceMax(x,axes)",
    aten.amin.default: "ReduceMin(x,axes)",
    aten.logsumexp.default: "ReduceLogSumExp(x,axes)",
}
SPREADS = {
    aten.var.correction: "ReduceVar(x)",
    aten.std.correction: "ReduceVar(x) Sqrt(x)",
    aten.var_mean.correction: "ReduceVar(x)",
    aten.std_mean.correction: "ReduceVar(x) Sqrt(x)",
}
AXES = st.sets(st.integers(-3, -1), min_size=1).map(sorted)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(list(REDUCTIONS)), AXES, st.booleans(), st.sampled_from([torch.float32, torch.bfloat16]))
def test_reductions_along_axes(target: Any, axes: list[int], keepdim: bool, dtype: Any) -> None:
    check(target, torch.randn(2, 3, 4).to(dtype), axes, keepdim, spelled=REDUCTIONS[target])


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(list(SPREADS)), st.none() | AXES, st.sampled_from([None, 0, 1, 2, 0.5]), st.booleans())
def test_spread(target: Any, axes: list[int] | None, correction: Any, keepdim: bool) -> None:
    check(target, torch.randn(3, 4, 5), axes, correction=correction, keepdim=keepdim, spelled=SPREADS[target])


@pytest.mark.parametrize("x", [torch.randn(2, 3), torch.tensor(2.5), torch.randn(0, 3)], ids=["2x3", "0-d", "empty"])
def test_reductions_of_everything(x: Any) -> None:
    check(aten.sum.default, x, spelled="ReduceSum(x,axes)")
    check(aten.mean.default, x, spelled="ReduceMean(x,axes)")
    check(aten.prod.default, x, spelled="ReduceProd(x,axes)")
    check(aten.sum.dim_IntList, x, None, True, spelled="ReduceSum(x,axes)")
    check(aten.sum.dim_IntList, x, [], spelled="ReduceSum(x,axes)")
    check(aten.any.default, x, spelled="Cast(x) ReduceAny(x,axes)")
    if x.numel():
        check(aten.max.default, x, spelled="ReduceMax(x,axes)")
        check(aten.min.default, x, spelled="ReduceMin(x,axes)")
        check(aten.amax.default, x, spelled="ReduceMax(x,axes)")


def test_integers_and_truth_values_are_cast_before() -> None:
    x = torch.randint(-9, 9, (2, 3))
    check(aten.sum.default, x, spelled="ReduceSum(x,axes)")
    check(aten.sum.default, x.int(), spelled="Cast(x) ReduceSum(x,axes)")
    check(aten.sum.default, x > 0, spelled="Cast(x) ReduceSum(x,axes)")
    check(aten.mean.default, x, dtype=torch.float32, spelled="Cast(x) ReduceMean(x,axes)")
    check(aten.prod.default, x.int(), spelled="Cast(x) ReduceProd(x,axes)")
    check(aten.prod.dim_int, x, 1, True, spelled="ReduceProd(x,axes)")
    check(
        aten.sum.dim_IntList,
        torch.randn(2, 3).bfloat16(),
        [1],
        dtype=torch.float32,
        spelled="Cast(x) ReduceSum(x,axes)",
    )


@pytest.mark.parametrize("name", ["any", "all"])
def test_truth(name: str) -> None:
    packet, op = getattr(aten, name), f"Reduce{name.capitalize()}(x,axes)"
    x = torch.randint(0, 2, (2, 3))
    check(packet.default, x > 0, spelled=op)
    check(packet.dim, x, 1, True, spelled=f"Cast(x) {op}")
    check(packet.dims, x.float(), [0, 1], spelled=f"Cast(x) {op}")
    check(packet.default, x.to(torch.uint8), spelled=f"Cast(x) {op} Cast(x)")


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
def test_places_become_int64(dtype: Any) -> None:
    x = torch.randperm(12).reshape(3, 4).to(dtype)
    check(aten.max.dim, x, 1, spelled="ArgMaxWithValue(x) Cast(x)")
    check(aten.min.dim, x, -2, True, spelled="ArgMinWithValue(x) Cast(x)")
    check(aten.argmax.default, x, 1, spelled="ArgMaxV2(x,dimension)")
    check(aten.argmax.default, x, -1, True, spelled="ArgMaxV2(x,dimension) Unsqueeze(x)")
    check(aten.argmax.default, x, spelled="Reshape(x,shape) ArgMaxV2(x,dimension)")
    check(aten.argmin.default, x, None, True, spelled="Reshape(x,shape) ArgMin(x,dimension) Unsqueeze(x)")
    check(aten.topk.default, x, 2, spelled="TopKV2(x,k) Cast(x)")
    check(aten.topk.default, x, 2, 0, False, True, spelled="TopKV2(x,k) Cast(x)")
    check(aten.sort.default, x, 0, True, spelled="Sort(x) Cast(x)")
    check(aten.sort.stable, x % 3, stable=True, dim=1, descending=False, spelled="Sort(x) Cast(x)")


def test_scans() -> None:
    x = torch.randn(3, 4)
    check(aten.cumsum.default, x, 1, spelled="Cumsum(x,axis)")
    check(aten.cumsum.default, x > 0, 0, spelled="Cast(x) Cumsum(x,axis)")
    check(aten.cumprod.default, x, -1, dtype=torch.float64, spelled="Cast(x) Cumprod(x,axis)")


@pytest.mark.parametrize("order", [0, 1, 2, 3.5, float("inf"), float("-inf")])
def test_norms(order: float) -> None:
    x = torch.randn(3, 4)
    check(aten.linalg_vector_norm.default, x, order, spelled="LpNormV2(x)")
    check(aten.linalg_vector_norm.default, x, order, [1], True, spelled="LpNormV2(x)")
    check(aten.linalg_vector_norm.default, x, order, dtype=torch.float64, spelled="Cast(x) LpNormV2(x)")
    check(aten.norm.Scalar, x, order, spelled="LpNormV2(x)")
    check(aten.norm.ScalarOpt_dim, x, order, [0], spelled="LpNormV2(x)")


def test_reductions_of_two_kinds_at_once() -> None:
    x = torch.randint(-2, 3, (3, 4))
    check(aten.aminmax.default, x, dim=1, keepdim=True, spelled="ReduceMin(x,axes) ReduceMax(x,axes)")
    check(aten.aminmax.default, x.float(), spelled="ReduceMin(x,axes) ReduceMax(x,axes)")
    check(aten.count_nonzero.dim_IntList, x, [0], spelled="Cast(x) Cast(x) ReduceSum(x,axes)")
    check(aten.count_nonzero.default, x.float(), spelled="Cast(x) Cast(x) ReduceSum(x,axes)")
