"""Layers of pictures: measures of likeness, gradients, crops, and pixels moved between channels and places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import DType, float16, float32, float64, uint8
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import execute
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import as_layer
from msdump.mindspore.nn.layer.container import CellList
from msdump.mindspore.nn.layer.conv import Conv2d
from msdump.mindspore.nn.layer.pooling import AvgPool2d
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops.layer_operators import extract_image_patches
from msdump.mindspore.ops.primitive import functional_classes


def _check_pictures(cls_name: str, *pictures: Tensor, dtypes: Sequence[DType] = ()) -> None:
    """Raises: ValueError for what is no (N, C, H, W) or of different shapes, TypeError for another dtype."""
    for picture in pictures:
        if picture.ndim != 4:
            raise ValueError(f"For '{cls_name}', the dimension of 'img' must be 4d, but got {picture.ndim}.")
        if dtypes and picture.dtype not in dtypes:
            raise TypeError(f"For '{cls_name}', the dtype of 'img' must be one of {dtypes}, but got {picture.dtype}.")
    if len({picture.shape for picture in pictures}) > 1 or len({str(picture.dtype) for picture in pictures}) > 1:
        raise ValueError(f"For '{cls_name}', both images must be of one shape and dtype, but got {pictures}.")


def _as_float(picture: Any, largest: float) -> Any:
    """Numbers up to `largest` as float32 up to 1."""
    if not isinstance(picture, Tensor):
        return picture / largest if largest > 1 else picture
    picture = F.cast(picture, "float32")
    return F.mul(picture, 1.0 / largest) if largest > 1 else picture


def _largest(picture: Tensor) -> float:
    return 255.0 if picture.dtype == uint8 else 1.0


def _window(size: int, sigma: float) -> Tensor:
    """A bell of (1, 1, size, size) whose sum is 1."""
    places = np.arange(-size // 2 + 1, size // 2 + 1, dtype=np.float32)
    squares = places[:, None] ** 2 + places[None, :] ** 2
    bell = np.exp(-squares / np.float32(2 * sigma**2))
    return Tensor((bell / bell.sum()).astype(np.float32)[None, None])


def _blur(size: int, window: Tensor) -> Conv2d:
    layer = Conv2d(1, 1, size, pad_mode="valid", weight_init=window)
    layer.weight.requires_grad = False
    return layer


def _likeness(first: Tensor, second: Tensor, blur: Any, constants: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """(structural similarity, its part of contrast), each the mean of a channel: (N, C)."""
    channels = first.shape[1]
    attrs = {"axis": 1, "output_num": channels}
    pairs = zip(execute("Split", [first], attrs), execute("Split", [second], attrs), strict=True)
    results = [_of_channel(x, y, blur, constants) for x, y in pairs]
    return tuple(F.mean(F.concat(each, 1), (2, 3)) for each in zip(*results, strict=True))  # type: ignore[return-value]


def _of_channel(x: Tensor, y: Tensor, blur: Any, constants: tuple[float, float]) -> tuple[Tensor, Tensor]:
    mean_x, mean_y = blur(x), blur(y)
    square_x, square_y, product = F.mul(mean_x, mean_x), F.mul(mean_y, mean_y), F.mul(mean_x, mean_y)
    spread = F.add(F.sub(blur(F.mul(x, x)), square_x), F.sub(blur(F.mul(y, y)), square_y))
    common = F.sub(blur(F.mul(x, y)), product)
    light = F.div(F.add(F.mul(product, 2), constants[0]), F.add(F.add(square_x, square_y), constants[0]))
    contrast = F.div(F.add(F.mul(common, 2), constants[1]), F.add(spread, constants[1]))
    return F.mul(light, contrast), contrast


class SSIM(Cell):
    """Structural similarity of two pictures."""

    def __init__(
        self,
        max_val: float = 1.0,
        filter_size: int = 11,
        filter_sigma: float = 1.5,
        k1: float = 0.01,
        k2: float = 0.03,
    ) -> None:
        super().__init__()
        _check_filter(self.cls_name, max_val, filter_size, filter_sigma, k1, k2)
        self.max_val, self.filter_size, self.k1, self.k2 = max_val, filter_size, k1, k2
        self.conv = _blur(filter_size, _window(filter_size, filter_sigma))

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        _check_pictures(self.cls_name, img1, img2, dtypes=(float16, float32, float64, uint8))
        largest = _largest(img1)
        top = _as_float(self.max_val, largest)
        constants = ((self.k1 * top) ** 2, (self.k2 * top) ** 2)
        likeness, _ = _likeness(_as_float(img1, largest), _as_float(img2, largest), self.conv, constants)
        return F.mean(likeness, -1)


def _check_filter(cls_name: str, max_val: float, size: int, sigma: float, k1: float, k2: float) -> None:
    for name, number in (("max_val", max_val), ("filter_size", size), ("filter_sigma", sigma), ("k1", k1), ("k2", k2)):
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise TypeError(f"For '{cls_name}', the type of '{name}' must be a number, but got {type(number)}.")
        if number <= 0:
            raise ValueError(f"For '{cls_name}', the '{name}' must be > 0, but got {number}.")


class MSSSIM(Cell):
    """Structural similarity of two pictures on several scales, each half the one before."""

    def __init__(
        self,
        max_val: float = 1.0,
        power_factors: Sequence[float] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
        filter_size: int = 11,
        filter_sigma: float = 1.5,
        k1: float = 0.01,
        k2: float = 0.03,
    ) -> None:
        super().__init__()
        _check_filter(self.cls_name, max_val, filter_size, filter_sigma, k1, k2)
        if not isinstance(power_factors, tuple | list):
            raise TypeError(f"For 'MSSSIM', the type of 'power_factors' must be tuple, but got {type(power_factors)}.")
        self.max_val, self.filter_size, self.k1, self.k2 = max_val, filter_size, k1, k2
        self.level, self.weight_tensor = len(power_factors), Tensor(np.array(power_factors, np.float32))
        window = _window(filter_size, filter_sigma)
        self.multi_convs_list = CellList([_blur(filter_size, window) for _ in power_factors])
        self.avg_pool = AvgPool2d(2, 2)

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        _check_pictures(self.cls_name, img1, img2, dtypes=(float16, float32, float64, uint8))
        largest = _largest(img1)
        top = _as_float(self.max_val, largest)
        constants = ((self.k1 * top) ** 2, (self.k2 * top) ** 2)
        img1, img2 = _as_float(img1, largest), _as_float(img2, largest)
        parts: list[Tensor] = []
        for number in range(self.level):
            likeness, contrast = _likeness(img1, img2, self.multi_convs_list[number], constants)
            parts.append(F.relu(contrast if number < self.level - 1 else likeness))
            img1, img2 = self.avg_pool(img1), self.avg_pool(img2)
        return F.mean(F.prod(F.pow(F.stack(parts, -1), self.weight_tensor), -1), -1)


class PSNR(Cell):
    """Peak signal to noise ratio of two pictures, in dB."""

    def __init__(self, max_val: float = 1.0) -> None:
        super().__init__()
        if isinstance(max_val, bool) or not isinstance(max_val, int | float):
            raise TypeError(f"For 'PSNR', the type of 'max_val' must be a number, but got {type(max_val)}.")
        if max_val <= 0:
            raise ValueError(f"For 'PSNR', the 'max_val' must be > 0, but got {max_val}.")
        self.max_val = max_val

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        _check_pictures(self.cls_name, img1, img2)
        largest = _largest(img1)
        top = _as_float(self.max_val, largest)
        square = F.square(F.sub(_as_float(img1, largest), _as_float(img2, largest)))
        ratio = F.div(float(top * top), F.mean(square, (-3, -2, -1)))
        return F.div(F.mul(F.log(ratio), 10), math.log(10.0))


class ImageGradients(Cell):
    """(differences between rows, differences between columns) of (N, C, H, W); 0 in the last ones."""

    def construct(self, images: Tensor) -> tuple[Tensor, Tensor]:
        _check_pictures(self.cls_name, images)
        return _differences(images, 2), _differences(images, 3)


def _differences(images: Tensor, axis: int) -> Tensor:
    size = images.shape[axis]
    last = F.zeros([1 if place == axis else length for place, length in enumerate(images.shape)], images.dtype)
    if size == 1:
        return last
    after = (slice(None),) * axis + (slice(1, None),)
    before = (slice(None),) * axis + (slice(0, size - 1),)
    return F.concat([F.sub(images[after], images[before]), last], axis)


class CentralCrop(Cell):
    """The middle of a picture (N, C, H, W) or (C, H, W): `central_fraction` of each side."""

    def __init__(self, central_fraction: float) -> None:
        super().__init__()
        if not isinstance(central_fraction, float):
            raise TypeError(f"For 'CentralCrop', 'central_fraction' must be float, got {central_fraction!r}.")
        if not 0 < central_fraction <= 1:
            raise ValueError(f"For 'CentralCrop', the 'central_fraction' must be in (0, 1], got {central_fraction}.")
        self.central_fraction = central_fraction

    def construct(self, image: Tensor) -> Tensor:
        if image.ndim not in (3, 4):
            raise ValueError(f"For 'CentralCrop', the image must be 3d or 4d, but got shape {image.shape}")
        if self.central_fraction == 1.0:
            return image
        starts = [int((size - size * self.central_fraction) / 2) for size in image.shape[-2:]]
        stops = [size - start for size, start in zip(image.shape[-2:], starts, strict=True)]
        return image[..., starts[0] : stops[0], starts[1] : stops[1]]


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


class ChannelShuffle(Cell):
    """Channels of all groups by turns."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        if isinstance(groups, bool) or not isinstance(groups, int):
            raise TypeError(f"For 'ChannelShuffle', the param `groups` must be int, but got {groups!r}.")
        if groups < 1:
            raise ValueError(f"For 'ChannelShuffle', the param `groups` must be larger than 0, but got {groups}.")
        self.groups = groups

    def construct(self, x: Tensor) -> Tensor:
        """Source: MindSpore composes it of Reshape, Transpose and Reshape."""
        shape, groups = x.shape, self.groups
        split = F.reshape(x, (shape[0], groups, shape[1] // groups, *shape[2:]))
        return F.reshape(F.transpose(split, (0, 2, 1, *range(3, x.ndim + 1))), shape)


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
