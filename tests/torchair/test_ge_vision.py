"""Images and volumes as GE operators, equal to eager."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.torchair.ge_exact import check_exactly  # noqa: E402

aten = torch.ops.aten
IMAGE = torch.randn(2, 3, 5, 6)
GRID = torch.rand(2, 4, 3, 2) * 2.4 - 1.2
THETA = torch.randn(2, 2, 3)
VOLUME = torch.randn(2, 3, 5, 6, 7)
WINDOW = ([2, 3, 2], [2], [1], [1], True)
MEAN = ([2, 3, 2], [], [1], True, False, None)

CASES = [
    (aten.affine_grid_generator.default, (THETA, [2, 3, 4, 5], False), "AffineGrid(theta,output_size)"),
    (aten.affine_grid_generator.default, (THETA.double(), [2, 3, 4, 5], True), "AffineGrid(theta,output_size)"),
    (aten.grid_sampler_2d.default, (IMAGE, GRID, 0, 0, False), "GridSampler2D(x,grid)"),
    (aten.grid_sampler_2d.default, (IMAGE, GRID, 1, 1, True), "GridSampler2D(x,grid)"),
    (aten.grid_sampler_2d.default, (IMAGE, GRID, 2, 2, False), "GridSampler2D(x,grid)"),
    (
        aten.grid_sampler_2d_backward.default,
        (torch.randn(2, 3, 4, 3), IMAGE, GRID, 0, 1, False, [True, True]),
        "GridSampler2DGrad(grad,x,grid)",
    ),
    (aten.im2col.default, (IMAGE, [2, 3], [1, 2], [1, 0], [2, 1]), "Im2col(x)"),
    (aten.col2im.default, (torch.randn(2, 12, 20), [5, 6], [2, 2], [1, 1], [0, 0], [1, 1]), "Col2im(x,output_size)"),
    (aten._adaptive_avg_pool3d.default, (VOLUME, [2, 3, 1]), "AdaptiveAvgPool3d(x)"),
    (
        aten._adaptive_avg_pool3d_backward.default,
        (torch.randn(2, 3, 2, 2, 2), VOLUME),
        "AdaptiveAvgPool3dGrad(y_grad,x)",
    ),
    (aten.avg_pool3d.default, (VOLUME, *MEAN), "AvgPool3D(x)"),
    (aten.avg_pool3d.default, (VOLUME, [2], [1], [0], False, True, 3), "AvgPool3D(x)"),
]


@pytest.mark.parametrize(("target", "args", "spelled"), CASES, ids=[str(case[0]) for case in CASES])
def test_equals_eager(target: Any, args: Any, spelled: str) -> None:
    check_exactly(target, args, spelled)


def test_gradients_of_pooled_volumes() -> None:
    y, places = aten.max_pool3d_with_indices.default(VOLUME, *WINDOW)
    check_exactly(aten.max_pool3d_with_indices.default, (VOLUME, *WINDOW), "MaxPool3DWithArgmaxV2(x) Cast(x)")
    spelled = "Cast(x) MaxPool3DGradWithArgmax(x,grads,argmax)"
    given = (torch.randn(y.shape), VOLUME, *WINDOW, places)
    check_exactly(aten.max_pool3d_with_indices_backward.default, given, spelled)
    y = aten.avg_pool3d.default(VOLUME, *MEAN)
    given = (torch.randn(y.shape), VOLUME, *MEAN)
    check_exactly(aten.avg_pool3d_backward.default, given, "AvgPool3DGrad(orig_input_shape,grads)")
