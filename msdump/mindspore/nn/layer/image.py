"""Layers of pictures: measures of likeness, gradients, crops, and pixels moved between channels and places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import as_layer
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops.layer_operators import extract_image_patches
from msdump.mindspore.ops.primitive import functional_classes


@as_layer()
def PixelShuffle(input: Tensor, *, upscale_factor: int) -> Tensor:
    """(..., C * r * r, H, W) -> (..., C, H * r, W * r)."""
    return F.pixel_shuffle(input, upscale_factor)


@as_layer()
def PixelUnshuffle(input: Tensor, *, downscale_factor: int) -> Tensor:
    """(..., C, H * r, W * r) -> (..., C * r * r, H, W)."""
    return F.pixel_unshuffle(input, downscale_factor)


class ResizeBilinear(Cell):
    """Pictures of another size, by straight lines between elements; the layer of MindSpore 2.0."""

    def __init__(self, half_pixel_centers: bool = False) -> None:
        super().__init__()
        self.half_pixel_centers = half_pixel_centers

    def construct(
        self, x: Tensor, size: Sequence[int] | None = None, scale_factor: int | None = None, align_corners: bool = False
    ) -> Tensor:
        """Raises: ValueError for neither or both of `size`, (height, width), and `scale_factor`."""
        if (size is None) == (scale_factor is None):
            what = "none" if size is None else "not none"
            raise ValueError(f"For 'ResizeBilinear', the 'size' and 'scale' both {what}.")
        sizes = size or [each * (scale_factor or 1) for each in x.shape[2:]]
        make: Any = functional_classes["ResizeBilinear"]
        result: Tensor = make(sizes, align_corners, self.half_pixel_centers)(x)
        return result


class Unfold(Cell):
    """Patches of (N, C, H, W) as channels; sizes are (1, rows, columns, 1)."""

    def __init__(self, ksizes: Any, strides: Any, rates: Any, padding: str = "valid") -> None:
        super().__init__()
        for name, sizes in (("ksizes", ksizes), ("strides", strides), ("rates", rates)):
            if not isinstance(sizes, tuple | list) or len(sizes) != 4 or sizes[0] != 1 or sizes[3] != 1:
                raise ValueError(f"For 'Unfold', '{name}' must be [1, rows, columns, 1], but got {sizes}.")
        if padding.lower() not in ("valid", "same"):
            raise ValueError(f"For 'Unfold', the 'padding' must be 'valid' or 'same', but got {padding}.")
        self._window = tuple((sizes[0], sizes[3], sizes[1], sizes[2]) for sizes in (ksizes, strides, rates))
        self.padding = padding

    def construct(self, input_x: Tensor) -> Any:
        return extract_image_patches(input_x, *self._window, self.padding)


@as_layer()
def Upsample(
    x: Tensor,
    *,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Any:
    """Pictures of another size: nearest, linear, bilinear, bicubic, trilinear or area."""
    options = (size, scale_factor, mode, align_corners, recompute_scale_factor)
    return F.interpolate(x, *options)


publish(__name__)
