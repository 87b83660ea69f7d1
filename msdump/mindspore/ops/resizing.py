"""Pictures, lines and volumes of another size, under MindSpore's types of operators."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.signatures import in_forms
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops.array import expand_dims, squeeze
from msdump.mindspore.ops.declaration import operator
from msdump.mindspore.ops.windows import adaptive_avg_pool2d, adaptive_avg_pool3d

Sizes = tuple[int, ...]


def _resized(torch: Any, x: Any, size: Sizes, mode: str, align_corners: bool | None = None) -> Any:
    return torch.nn.functional.interpolate(x, tuple(size), mode=mode, align_corners=align_corners)


@operator("ResizeNearestNeighborV2", init="align_corners half_pixel_centers")
def _nearest(torch: Any, x: Tensor, size: Sizes, align_corners: bool = False, half_pixel_centers: bool = False) -> Any:
    """The nearest element; with align_corners or half_pixel_centers by the other rules of MindSpore."""
    if align_corners:
        places = [
            torch.round(torch.linspace(0, length - 1, wanted, device=x.device)).long()  # type: ignore[attr-defined]
            for length, wanted in zip(x.shape[-2:], size, strict=True)
        ]
        return x[..., places[0][:, None], places[1]]
    return _resized(torch, x, size, "nearest-exact" if half_pixel_centers else "nearest")


@operator("ResizeBilinearV2", init="align_corners half_pixel_centers")
def _bilinear(
    torch: Any, image: Tensor, size: Sizes, align_corners: bool = False, half_pixel_centers: bool = False
) -> Any:
    """Straight lines between elements."""
    return _by_lines(torch, image, size, align_corners, half_pixel_centers)


@operator("ResizeBilinear", init="size align_corners half_pixel_centers")
def _bilinear_of_2_0(
    torch: Any, x: Tensor, size: Sizes, align_corners: bool = False, half_pixel_centers: bool = False
) -> Any:
    """The operator of MindSpore 2.0, which has its sizes as an attribute.

    Raises: ValueError for both rules at once.
    """
    if align_corners and half_pixel_centers:
        raise ValueError(
            "For 'ResizeBilinear', expected one of 'align_corners' and 'half_pixel_centers' at most, got both."
        )
    return _by_lines(torch, x, size, align_corners, half_pixel_centers)


def _by_lines(torch: Any, image: Any, size: Sizes, align_corners: bool, half_pixel_centers: bool) -> Any:
    if not align_corners and not half_pixel_centers:
        return _at_corners(torch, image, size)
    return _resized(torch, image, size, "bilinear", align_corners)


def _at_corners(torch: Any, image: Any, size: Sizes) -> Any:
    """Bilinear, where element i of the result stands at i * (old size / new size)."""
    result = image
    for axis, wanted in zip((-2, -1), size, strict=True):
        length = image.shape[axis]
        places = torch.arange(wanted, device=image.device) * (length / wanted)
        before = places.long().clamp(max=length - 1)
        after = (before + 1).clamp(max=length - 1)
        part = _along(places - before, axis, image)
        first, second = result.index_select(axis, before), result.index_select(axis, after)
        result = first + (second - first) * part
    return result


def _by_curves(torch: Any, image: Any, size: Sizes, is_centered: bool) -> Any:
    """Cubic curves, where element i of the result stands at i * (old size / new size).

    is_centered  the middle of element i stands there; the slope is -0.5 instead of -0.75, and elements outside count
                 as none instead of as the last one
    Source: MindSpore's CPU kernel, which rounds the part between two elements to 1/1024.
    """
    result = image
    for axis, wanted in zip((-2, -1), size, strict=True):
        length = image.shape[axis]
        places = torch.arange(wanted, device=image.device)
        places = (places + 0.5) * (length / wanted) - 0.5 if is_centered else places * (length / wanted)
        before = torch.floor(places).long()
        part = torch.round((places - before) * 1024) / 1024
        taken = [before + step for step in (-1, 0, 1, 2)]
        weights = [_weight(part - step, -0.5 if is_centered else -0.75) for step in (-1, 0, 1, 2)]
        if is_centered:
            weights = [weight * ((at >= 0) & (at < length)) for weight, at in zip(weights, taken, strict=True)]
            whole = weights[0] + weights[1] + weights[2] + weights[3]
            weights = [weight / whole for weight in weights]
        rows = [
            result.index_select(axis, at.clamp(0, length - 1)) * _along(weight, axis, image)
            for at, weight in zip(taken, weights, strict=True)
        ]
        result = rows[0] + rows[1] + rows[2] + rows[3]
    return result


def _weight(distance: Any, slope: float) -> Any:
    """Of an element at a distance below 2, in cubic convolution."""
    x = distance.abs()
    near = ((slope + 2) * x - (slope + 3)) * x * x + 1
    far = ((slope * x - 5 * slope) * x + 8 * slope) * x - 4 * slope
    return near * (x <= 1) + far * (x > 1)


def _along(values: Any, axis: int, image: Any) -> Any:
    values = values.to(image.dtype)
    return values[:, None] if axis == -2 else values


@operator("ResizeLinear1D", init="coordinate_transformation_mode")
def _linear(torch: Any, images: Tensor, size: Sizes, coordinate_transformation_mode: str = "align_corners") -> Any:
    """Straight lines between elements of (N, C, L)."""
    return _resized(torch, images, size, "linear", coordinate_transformation_mode == "align_corners")


@operator("ResizeBicubic", init="align_corners half_pixel_centers")
def _bicubic(
    torch: Any, images: Tensor, size: Sizes, align_corners: bool = False, half_pixel_centers: bool = False
) -> Any:
    """Cubic curves through elements."""
    if align_corners:
        return _resized(torch, images, size, "bicubic", align_corners)
    return _by_curves(torch, images, size, half_pixel_centers)


@operator("UpsampleBicubic2D", init="")
def _bicubic_of_torch(torch: Any, images: Tensor, size: Sizes, align_corners: bool = False) -> Any:
    """Cubic curves through elements, as PyTorch has them."""
    return _resized(torch, images, size, "bicubic", align_corners)


@operator("UpsampleNearest3D", init="")
def _nearest_3d(torch: Any, x: Tensor, output_size: Sizes) -> Any:
    """The nearest element of a volume."""
    return _resized(torch, x, output_size, "nearest")


@operator("UpsampleTrilinear3D", init="align_corners")
def _trilinear(torch: Any, x: Tensor, output_size: Sizes, align_corners: bool = False) -> Any:
    """Straight lines between elements of a volume."""
    return _resized(torch, x, output_size, "trilinear", align_corners)


# Mode -> numbers of axes (N and C included) that it takes.
_NDIMS = {
    "nearest": (3, 4, 5), "linear": (3,), "bilinear": (4,), "bicubic": (4,), "trilinear": (5,), "area": (3, 4, 5),
    "nearest-exact": (3, 4),
}  # fmt: skip


def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Any:  # fmt: skip
    """Data (N, C, ...) of another size, given as sizes or as factors.

    Edges:  "bicubic" without align_corners takes the slope -0.5, as MindSpore's kernel, where PyTorch takes -0.75.
    Raises: ValueError for a mode that does not take the number of axes, for both or neither of sizes and factors.
    """
    if mode not in _NDIMS or input.ndim not in _NDIMS[mode]:
        raise ValueError(
            f"For 'interpolate', expected a mode and its number of axes of {_NDIMS}, got {mode!r}, {input.ndim}."
        )
    if (size is None) == (scale_factor is None):
        raise ValueError("For 'interpolate', expected one of 'size' and 'scale_factor', got both or none of them.")
    if align_corners is not None and mode in ("nearest", "area", "nearest-exact"):
        raise ValueError(f"For 'interpolate', align_corners must be None when mode is {mode}, but got {align_corners}.")
    target = _target(input.shape[2:], size, scale_factor)
    is_aligned = bool(align_corners)
    if mode == "area":
        return _area(input, target)
    if mode in ("nearest", "nearest-exact"):
        return _nearest_of(input, target, mode == "nearest-exact")
    if mode == "linear":
        return _linear(input, target, "align_corners" if is_aligned else "half_pixel")
    if mode == "bilinear":
        return _bilinear(input, target, is_aligned, not is_aligned)
    if mode == "bicubic":
        return _bicubic(input, target, is_aligned, not is_aligned)
    return _trilinear(input, target, is_aligned)


def _target(shape: Sizes, size: Any, scale_factor: Any) -> Sizes:
    count = len(shape)
    if size is not None:
        target = (size,) * count if isinstance(size, int) else tuple(int(item) for item in size)
    else:
        factors = (scale_factor,) * count if isinstance(scale_factor, int | float) else tuple(scale_factor)
        target = tuple(int(length * factor) for length, factor in zip(shape, factors, strict=False))
    if len(target) != count or min(target) < 1:
        raise ValueError(f"For 'interpolate', expected {count} positive sizes, got {size or scale_factor}.")
    return target


def _nearest_of(input: Tensor, target: Sizes, is_centred: bool) -> Any:
    if input.ndim == 5:
        return _nearest_3d(input, target)
    if input.ndim == 4:
        return _nearest(input, target, False, is_centred)
    return squeeze(_nearest(expand_dims(input, -1), (*target, 1), False, is_centred), -1)


def _area(input: Tensor, target: Sizes) -> Tensor:
    if input.ndim == 5:
        return adaptive_avg_pool3d(input, target)
    if input.ndim == 4:
        return adaptive_avg_pool2d(input, target)
    return squeeze(adaptive_avg_pool2d(expand_dims(input, 2), (1, *target)), 2)


_INTERPOLATE = "size=None scale_factor=None mode='nearest' align_corners=None recompute_scale_factor=None"
globals().update(in_forms(f"upsample:interpolate input {_INTERPOLATE}", {"interpolate": interpolate}, __name__))

publish(__name__)
