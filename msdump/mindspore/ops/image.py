"""Pictures: resizing, sampling, crops and boxes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops.declaration import operator

# -- resizing beyond `resizing.py` -------------------------------------------------------------------------------------


def _nearest(torch: Any, image: Any, axis: int, size: int, align_corners: bool, half_pixel_centers: bool) -> Any:
    """The nearest element for each of `size` places along an axis."""
    given = image.shape[axis]
    index = torch.arange(size, dtype=torch.float32)
    if align_corners and size > 1:
        places = (index * ((given - 1) / (size - 1)) + 0.5).floor()
    else:
        places = ((index + 0.5 * half_pixel_centers) * (given / size)).floor()
    return image.index_select(axis, places.long().clamp(0, given - 1).to(image.device))


@operator("ResizeNearestNeighbor")
def _resize_nearest(
    torch: Any, input_x: Tensor, size: Any, align_corners: bool = False, half_pixel_centers: bool = False
) -> Any:
    """(N, C, H, W) to another height and width, each element the nearest one."""
    for axis in (2, 3):
        input_x = _nearest(torch, input_x, axis, size[axis - 2], align_corners, half_pixel_centers)
    return input_x


@operator("ResizeArea", init="align_corners", has_gradient=False)
def _resize_area(torch: Any, images: Tensor, size: Any, align_corners: bool = False) -> Any:
    """(N, C, H, W) to another height and width, each element the mean of an area."""
    return torch.nn.functional.interpolate(images, size, mode="area")


# -- sampling ----------------------------------------------------------------------------------------------------------


def _sampler(op_type: str, doc: str) -> Callable[..., Any]:
    def sampled(
        torch: Any, input_x: Tensor, grid: Tensor, interpolation_mode: str = "bilinear", padding_mode: str = "zeros",
        align_corners: bool = False,
    ) -> Any:  # fmt: skip
        sample = torch.nn.functional.grid_sample
        return sample(input_x, grid, interpolation_mode, padding_mode, bool(align_corners))

    sampled.__doc__ = doc
    return operator(op_type, init="interpolation_mode padding_mode align_corners")(sampled)


_grid_sampler2d = _sampler("GridSampler2D", "(N, C, H, W) read at the places (x, y) of a grid, both from -1 to 1.")
_grid_sampler3d = _sampler("GridSampler3D", "(N, C, D, H, W) read at the places (x, y, z) of a grid, from -1 to 1.")


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = False
) -> Any:
    """A picture or a volume read at the places of a grid."""
    sampler = _grid_sampler2d if input.ndim == 4 else _grid_sampler3d
    return sampler(input, grid, mode, padding_mode, bool(align_corners))


@operator("AffineGrid", init="align_corners")
def affine_grid(torch: Any, theta: Tensor, size: Any, align_corners: bool = False) -> Any:
    """Grid of an affine map, for `grid_sample`."""
    return torch.nn.functional.affine_grid(theta, list(size), bool(align_corners))


# -- parts of pictures -------------------------------------------------------------------------------------------------


def _read(torch: Any, image: Any, y: Any, x: Any) -> Any:
    """(C, H, W) between its neighbours at (rows) x (columns), places inside."""
    height, width = image.shape[-2:]
    y0, x0 = y.floor().long().clamp(0, height - 1), x.floor().long().clamp(0, width - 1)
    y1, x1 = (y0 + 1).clamp(max=height - 1), (x0 + 1).clamp(max=width - 1)
    dy, dx = (y - y0)[:, None], (x - x0)[None, :]
    above = image[:, y0][:, :, x0] * (1 - dx) + image[:, y0][:, :, x1] * dx
    below = image[:, y1][:, :, x0] * (1 - dx) + image[:, y1][:, :, x1] * dx
    return above * (1 - dy) + below * dy


_METHODS = ("bilinear", "nearest", "bilinear_v2")


@operator("CropAndResize", init="method extrapolation_value", constants=(1, 2))
def crop_and_resize(
    torch: Any, image: Tensor, boxes: Tensor, box_indices: Tensor, crop_size: Any, method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Any:  # fmt: skip
    """Boxes (y1, x1, y2, x2), from 0 to 1, of pictures (N, H, W, C), each as a picture of `crop_size`."""
    if method not in _METHODS:
        raise ValueError(f"expected method bilinear, nearest or bilinear_v2, got {method!r}.")
    if image.device.type == "meta":  # type: ignore[attr-defined]
        return torch.empty((boxes.shape[0], *crop_size, image.shape[-1]), device="meta")
    (height, width), pictures = image.shape[1:3], torch.movedim(image, 3, 1).float()
    crops = []
    for (y0, x0, y1, x1), index in zip(boxes.tolist(), box_indices.tolist(), strict=True):
        y = _span(torch, y0, y1, height, crop_size[0], method == "bilinear_v2")
        x = _span(torch, x0, x1, width, crop_size[1], method == "bilinear_v2")
        inside = ((y >= 0) & (y <= height - 1))[:, None] & ((x >= 0) & (x <= width - 1))[None, :]
        if method == "nearest":
            y, x = (y + 0.5).floor(), (x + 0.5).floor()
        crop = _read(torch, pictures[index], y.clamp(0, height - 1), x.clamp(0, width - 1))
        crops.append(torch.where(inside, crop, extrapolation_value).permute(1, 2, 0))
    return torch.stack(crops)


def _span(torch: Any, first: float, last: float, given: int, size: int, is_second: bool) -> Any:
    """Places of `size` elements between two ends; of the second method in the whole pixels that the ends lie in.

    Source: MindSpore's kernel of the second method reads beyond the last pixel; here it is repeated.
    """
    if is_second:
        low, count = math.floor(first * given), math.floor(last * given) - math.floor(first * given) + 1
        return (low + ((torch.arange(size) + 0.5) * (count / size) - 0.5).clamp(0, count - 1)).clamp(0, given - 1)
    if size == 1:
        return torch.tensor([0.5 * (first + last) * (given - 1)])
    return first * (given - 1) + torch.arange(size) * ((last - first) * (given - 1) / (size - 1))


@operator("ROIAlign", constants=(1,))
def _roi_align(
    torch: Any, features: Tensor, rois: Tensor, pooled_height: int, pooled_width: int, spatial_scale: float,
    sample_num: int = 2, roi_end_mode: int = 1,
) -> Any:  # fmt: skip
    """Parts (row, x0, y0, x1, y1) of (N, C, H, W), each as `pooled_height` x `pooled_width` means of samples."""
    if features.device.type == "meta":  # type: ignore[attr-defined]
        return features.new_empty(rois.shape[0], features.shape[1], pooled_height, pooled_width)  # type: ignore[attr-defined]
    (height, width), pictures = features.shape[-2:], torch.as_tensor(features).float()
    results = []
    for index, *ends in rois.tolist():
        left, top, right, bottom = (
            (end + roi_end_mode * (place > 1)) * spatial_scale for place, end in enumerate(ends)
        )
        y = _samples(torch, top, bottom, pooled_height, sample_num)
        x = _samples(torch, left, right, pooled_width, sample_num)
        part = _read(torch, pictures[int(index)], y.clamp(0, height - 1), x.clamp(0, width - 1))
        inside = ((y >= -1) & (y <= height))[:, None] & ((x >= -1) & (x <= width))[None, :]
        cells = torch.where(inside, part, 0.0).unflatten(2, (pooled_width, -1)).unflatten(1, (pooled_height, -1))
        results.append(cells.mean((2, 4)))
    return torch.stack(results).to(features.dtype)


def _samples(torch: Any, first: float, last: float, parts: int, count: int) -> Any:
    """Places of the samples of each part, the parts one after another."""
    step = max(last - first, 1.0) / parts
    number = count if count > 0 else max(int(step), 1)
    inner = (torch.arange(number) + 0.5) / number
    return (first + (torch.arange(parts)[:, None] + inner[None, :]) * step).reshape(-1)


# -- colours -----------------------------------------------------------------------------------------------------------


@operator("RGBToHSV")
def _rgb_to_hsv(torch: Any, images: Tensor) -> Any:
    """Hue, saturation and value in [0, 1] of red, green and blue in [0, 1], along the last axis."""
    if not images.ndim or images.shape[-1] != 3:
        raise ValueError(f"expected images with 3 channels in the last axis, got shape {tuple(images.shape)}.")
    (value, place), spread = torch.max(images, -1), torch.amax(images, -1) - torch.amin(images, -1)
    width = torch.where(spread > 0, spread, torch.ones_like(spread))
    # How far the two lower channels are apart, from the third of the circle that belongs to the largest.
    ahead, behind = (torch.gather(images, -1, ((place + k) % 3)[..., None])[..., 0] for k in (1, 2))
    hue = torch.remainder((ahead - behind) / width / 6 + place.to(value.dtype) / 3, 1)
    saturation = spread / torch.where(value > 0, value, torch.ones_like(value))
    return torch.stack([torch.where(spread > 0, hue, torch.zeros_like(hue)), saturation, value], -1)


# -- boxes -------------------------------------------------------------------------------------------------------------


def _areas(boxes: Any) -> Any:
    return (boxes[:, 2] - boxes[:, 0] + 1) * (boxes[:, 3] - boxes[:, 1] + 1)


def _overlap(library: Any, first: Any, second: Any) -> Any:
    """Common areas of boxes (n, 4) and (m, 4): (m, n).   Source: sizes count both ends, as MindSpore has it."""
    low = library.maximum(second[:, None, :2], first[None, :, :2])
    high = library.minimum(second[:, None, 2:], first[None, :, 2:])
    sides = library.clip(high - low + 1, 0, None)
    return sides[..., 0] * sides[..., 1]


@operator("IOU", init="mode", has_gradient=False)
def iou(torch: Any, anchor_boxes: Tensor, gt_boxes: Tensor, mode: str = "iou") -> Any:
    """Common area of boxes (x0, y0, x1, y1) over that of both ("iou") or of the second ("iof"): (m, n)."""
    common = _overlap(torch, anchor_boxes, gt_boxes)
    if mode == "iof":
        return common / _areas(gt_boxes)[:, None]
    return common / (_areas(anchor_boxes)[None, :] + _areas(gt_boxes)[:, None] - common)


def _kept(np: Any, bboxes: Any, iou_threshold: float) -> tuple[Any, ...]:
    """Boxes in falling order of score; one that overlaps a kept one by more than the threshold is not kept."""
    order = np.argsort(-bboxes[:, 4], kind="stable")
    boxes = bboxes[order]
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:4], boxes[None, :, 2:4])
    sides = np.clip(high - low, 0, None)
    common = sides[..., 0] * sides[..., 1]
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    shares = common / (area[:, None] + area[None, :] - common)
    mask = np.ones(len(boxes), bool)
    for place in range(len(boxes)):
        if mask[place]:
            mask[place + 1 :] &= ~(shares[place, place + 1 :] > iou_threshold)
    return boxes, np.arange(len(boxes), dtype=np.int32), mask


@operator("NMSWithMask", has_gradient=False)
def _nms_with_mask(torch: Any, bboxes: Tensor, iou_threshold: float = 0.5) -> tuple[Any, ...]:
    """Boxes (x0, y0, x1, y1, score) by falling score, their numbers in that order, and which of them are kept."""
    import numpy as np

    from msdump.tensors.torch_arrays import array_like, tensor_of

    if bboxes.device.type == "meta":  # type: ignore[attr-defined]
        rows = bboxes.shape[0]
        return bboxes, torch.empty(rows, dtype=torch.int32), torch.empty(rows, dtype=torch.bool)
    with np.errstate(all="ignore"):
        boxes, rows, is_kept = _kept(np, array_like(bboxes), iou_threshold)
    return tuple(tensor_of(np.ascontiguousarray(each)) for each in (boxes, rows, is_kept))


publish(__name__)
