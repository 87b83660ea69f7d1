"""Batch, layer and group normalization as GE operators."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.torchair.ge_calls import check, results_of  # noqa: E402

aten = torch.ops.aten
EPS = 1e-5

affine = pytest.mark.parametrize("is_affine", [True, False], ids=["affine", "plain"])


def weights(shape: Any, is_affine: bool) -> tuple[Any, Any, list[bool], str]:
    """gamma and beta, which gradients there are, and the mark of what is not fed."""
    if is_affine:
        return torch.randn(shape), torch.randn(shape), [True, True, True], ""
    return None, None, [True, False, False], "?"


@affine
def test_batch_norm_in_training(is_affine: bool) -> None:
    x, mean, var = torch.randn(2, 4, 3, 3), torch.randn(4), torch.rand(4) + 0.1
    gamma, beta, mask, unfed = weights(4, is_affine)
    fed = f"x,weight{unfed},bias{unfed}"
    spelled = f"BatchNormV3({fed},running_mean,running_var)"
    check(aten._native_batch_norm_legit_functional.default, x, gamma, beta, mean, var, True, 0.1, EPS, spelled=spelled)
    spelled = f"BatchNormV3({fed},running_mean?,running_var?)"
    check(aten._native_batch_norm_legit.no_stats, x, gamma, beta, True, 0.1, EPS, spelled=spelled)
    _, save_mean, save_rstd = aten._native_batch_norm_legit.no_stats(x, gamma, beta, True, 0.1, EPS)
    spelled = f"BatchNormGradV3(dy,x,weight{unfed},running_mean,running_var,save_mean,save_rstd)"
    saved = (mean, var, save_mean, save_rstd, True, EPS, mask)
    check(aten.native_batch_norm_backward.default, torch.randn(x.shape), x, gamma, *saved, spelled=spelled)


@affine
def test_batch_norm_with_statistics_that_stay(is_affine: bool) -> None:
    x, mean, var = torch.randn(2, 4, 3, 3), torch.randn(4), torch.rand(4) + 0.1
    gamma, beta, mask, _ = weights(4, is_affine)
    spelled = "BNInfer(x,scale,offset,mean,variance)" if is_affine else (
        "OnesLike(x) ZerosLike(x) BNInfer(x,scale,offset,mean,variance)"
    )  # fmt: skip
    check(aten._native_batch_norm_legit_no_training.default, x, gamma, beta, mean, var, 0.1, EPS, spelled=spelled)
    check(aten._native_batch_norm_legit_functional.default, x, gamma, beta, mean, var, False, 0.1, EPS, spelled=spelled)
    saved = (mean, var, torch.empty(0), torch.empty(0), False, EPS, mask)
    check(aten.native_batch_norm_backward.default, torch.randn(x.shape), x, gamma, *saved)


@affine
@pytest.mark.parametrize("shape", [[3], [5, 3], [4, 5, 3]], ids=str)
def test_layer_norm(shape: list[int], is_affine: bool) -> None:
    x = torch.randn(2, 4, 5, 3)
    gamma, beta, mask, unfed = weights(shape, is_affine)
    spelled = f"LayerNormV4(x,normalized_shape,gamma{unfed},beta{unfed})"
    check(aten.native_layer_norm.default, x, shape, gamma, beta, EPS, spelled=spelled)
    _, mean, rstd = aten.native_layer_norm.default(x, shape, gamma, beta, EPS)
    spelled = "LayerNormGradV3(dy,x,rstd,mean,gamma)"
    given = (torch.randn(x.shape), x, shape, mean, rstd, gamma, beta, mask)
    check(
        aten.native_layer_norm_backward.default, *given, spelled=spelled if is_affine else f"Fill(dims,value) {spelled}"
    )


def test_layer_norm_with_a_gamma_alone() -> None:
    x, gamma = torch.randn(2, 5, 3), torch.randn(3)
    check(aten.native_layer_norm.default, x, [3], gamma, None, EPS)
    _, mean, rstd = aten.native_layer_norm.default(x, [3], gamma, None, EPS)
    check(aten.native_layer_norm_backward.default, x * 2, x, [3], mean, rstd, gamma, None, [True, True, False])


@affine
def test_group_norm(is_affine: bool) -> None:
    x = torch.randn(2, 4, 3, 3)
    gamma, beta, mask, unfed = weights(4, is_affine)
    spelled = f"GroupNorm(x,gamma{unfed},beta{unfed}) Add(x1,x2) Rsqrt(x)"
    check(aten.native_group_norm.default, x, gamma, beta, 2, 4, 9, 2, EPS, spelled=spelled)
    _, mean, rstd = aten.native_group_norm.default(x, gamma, beta, 2, 4, 9, 2, EPS)
    spelled = f"GroupNormGrad(dy,mean,rstd,x,gamma{unfed})"
    given = (torch.randn(x.shape), x, mean, rstd, gamma, 2, 4, 9, 2, mask)
    check(aten.native_group_norm_backward.default, *given, spelled=spelled)


@pytest.mark.parametrize("dim", [0, 1])
def test_weight_norm(dim: int) -> None:
    v, g = torch.randn(3, 4), torch.rand([3, 1] if dim == 0 else [1, 4])
    spelled = "LpNormV2(x) RealDiv(x1,x2) Mul(x1,x2)"
    check(aten._weight_norm_interface.default, v, g, dim, spelled=spelled)
    _, length = aten._weight_norm_interface.default(v, g, dim)
    _, actual = results_of(aten._weight_norm_interface_backward.default, torch.randn(3, 4), v, g, length, dim)
    assert [value.shape for value in actual] == [v.shape, g.shape]
    given = (torch.ones(3, 4), v, g, length, dim)
    _, actual = results_of(aten._weight_norm_interface_backward.default, *given)
    for mine, theirs in zip(actual, aten._weight_norm_interface_backward.default(*given), strict=True):
        torch.testing.assert_close(mine, theirs)
