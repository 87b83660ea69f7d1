"""Layers of pictures: measures of likeness, and another size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.mindspore.common.declared import KINDS, Kind
from msdump.mindspore.common.dtype import uint8
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import execute
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.declared import Declared
from msdump.mindspore.nn.layer.container import CellList
from msdump.mindspore.nn.layer.conv import Conv2d
from msdump.mindspore.nn.layer.pooling import AvgPool2d
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops.primitive import functional_classes

KINDS["positive"] = Kind((int, float), lambda value: value > 0, "be > 0")
KINDS["fraction"] = Kind((float,), lambda value: 0 < value <= 1, "be in range (0.0, 1.0]")
_BELL = "filter_size:positive=11 filter_sigma:positive=1.5 k1:positive=0.01 k2:positive=0.03"


class PSNR(Declared, takes="max_val:positive=1.0"):
    """Peak signal to noise ratio of two pictures, in dB."""

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        img1, img2, top = _scaled(self, img1, img2)
        ratio = F.div(top**2, F.mean(F.square(F.sub(img1, img2)), (-3, -2, -1)))
        return F.div(F.mul(F.log(ratio), 10), math.log(10.0))


def _scaled(cell: Declared, img1: Tensor, img2: Tensor) -> tuple[Tensor, Tensor, float]:
    """Both pictures as float32, bytes up to 1, and the largest value.   Raises: ValueError for what are no two."""
    if img1.ndim != 4 or img1.shape != img2.shape or img1.dtype != img2.dtype:
        raise ValueError(
            f"For '{cell.cls_name}', expected two images (N, C, H, W) of one shape and dtype, but got {img1.shape} "
            f"{img1.dtype} and {img2.shape} {img2.dtype}."
        )
    scale = 1 / 255 if img1.dtype == uint8 else 1.0
    img1, img2 = (
        F.mul(F.cast(each, "float32"), scale) if scale < 1 else F.cast(each, "float32") for each in (img1, img2)
    )
    return img1, img2, float(cell.max_val * scale)


class SSIM(Declared, takes=f"max_val:positive=1.0 {_BELL}"):
    """Structural similarity of two pictures."""

    def _set_up(self, filter_sigma: float) -> None:
        self.conv = _blur(self.filter_size, filter_sigma)

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        img1, img2, top = _scaled(self, img1, img2)
        return F.mean(_likeness(img1, img2, self.conv, (self.k1 * top) ** 2, (self.k2 * top) ** 2)[0], -1)


class MSSSIM(Declared, takes=f"max_val:positive=1.0 power_factors=(0.0448,0.2856,0.3001,0.2363,0.1333) {_BELL}"):
    """Structural similarity of two pictures on several scales, each half the one before."""

    def _set_up(self, power_factors: Sequence[float], filter_sigma: float) -> None:
        if not isinstance(power_factors, tuple | list):
            raise TypeError(f"For 'MSSSIM', the type of 'power_factors' must be tuple, but got {type(power_factors)}.")
        self.weight_tensor = Tensor(np.array(power_factors, np.float32))
        self.multi_convs_list = CellList([_blur(self.filter_size, filter_sigma) for _ in power_factors])
        self.avg_pool = AvgPool2d(2, 2)

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        img1, img2, top = _scaled(self, img1, img2)
        parts: list[Tensor] = []
        for conv in self.multi_convs_list:
            pair = _likeness(img1, img2, conv, (self.k1 * top) ** 2, (self.k2 * top) ** 2)
            parts.append(F.relu(pair[len(parts) < len(self.multi_convs_list) - 1]))
            img1, img2 = self.avg_pool(img1), self.avg_pool(img2)
        return F.mean(F.prod(F.pow(F.stack(parts, -1), self.weight_tensor), -1), -1)


def _blur(size: int, sigma: float) -> Conv2d:
    """Convolution with a bell whose sum is 1."""
    places = np.arange(-size // 2 + 1, size // 2 + 1, dtype=np.float32)
    bell = np.exp(-(places[:, None] ** 2 + places[None, :] ** 2) / np.float32(2 * sigma**2))
    layer = Conv2d(1, 1, size, pad_mode="valid", weight_init=Tensor((bell / bell.sum()).astype(np.float32)[None, None]))
    layer.weight.requires_grad = False
    return layer


def _likeness(first: Tensor, second: Tensor, blur: Any, *constants: float) -> tuple[Tensor, Tensor]:
    """(structural similarity, its part of contrast), each the mean of a channel: (N, C)."""
    attrs = {"axis": 1, "output_num": first.shape[1]}
    pairs = zip(execute("Split", [first], attrs), execute("Split", [second], attrs), strict=True)
    both, contrast = zip(*(_of_channel(x, y, blur, *constants) for x, y in pairs), strict=True)
    return F.mean(F.concat(both, 1), (2, 3)), F.mean(F.concat(contrast, 1), (2, 3))


def _of_channel(x: Tensor, y: Tensor, blur: Any, c1: float, c2: float) -> tuple[Tensor, Tensor]:
    mean_x, mean_y = blur(x), blur(y)
    square_x, square_y, product = F.mul(mean_x, mean_x), F.mul(mean_y, mean_y), F.mul(mean_x, mean_y)
    spread = F.add(F.sub(blur(F.mul(x, x)), square_x), F.sub(blur(F.mul(y, y)), square_y))
    common = F.sub(blur(F.mul(x, y)), product)
    light = F.div(F.add(F.mul(product, 2), c1), F.add(F.add(square_x, square_y), c1))
    contrast = F.div(F.add(F.mul(common, 2), c2), F.add(spread, c2))
    return F.mul(light, contrast), contrast


class CentralCrop(Declared, takes="central_fraction:fraction"):
    """The middle of pictures (..., H, W): a fraction of their height and of their width."""

    def construct(self, image: Tensor) -> Tensor:
        cuts = [int((size - size * self.central_fraction) / 2) for size in image.shape[-2:]]
        begin = (*(0,) * (image.ndim - 2), *cuts)
        return F.slice(image, begin, tuple(n - 2 * cut for n, cut in zip(image.shape, begin, strict=True)))


class ResizeBilinear(Declared, takes="half_pixel_centers=False"):
    """Pictures of another size, by straight lines between elements; the layer of MindSpore 2.0."""

    def construct(
        self, x: Tensor, size: Sequence[int] | None = None, scale_factor: int | None = None, align_corners: bool = False
    ) -> Any:
        """Raises: ValueError for neither or both of `size`, (height, width), and `scale_factor`."""
        if (size is None) == (scale_factor is None):
            what = "none" if size is None else "not none"
            raise ValueError(f"For 'ResizeBilinear', the 'size' and 'scale' both {what}.")
        sizes = size or [each * (scale_factor or 1) for each in x.shape[2:]]
        make: Any = functional_classes["ResizeBilinear"]
        return make(sizes, align_corners, self.half_pixel_centers)(x)


publish(__name__)

__getattr__ = explain_missing(__name__)
