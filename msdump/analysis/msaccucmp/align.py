"""My tensor and the golden one in one axis order, which msaccucmp compare brings about before it measures.

A golden tensor comes from another framework: its axes may stand in another order than the fusion json says, as
NHWC does in TensorFlow, and mine may carry the padding of a device format.   Source: CANN, msaccucmp compare.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from msdump.analysis.convert.target_format import PAIRS, CustomFormats, to_format
from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.analysis.msaccucmp.sides import SideTensor
from msdump.tensors import device_layouts
from msdump.tensors.arrays import Array
from msdump.tensors.records import DEFAULT_FORMAT

ND, NCHW = "ND", "NCHW"
# Orders in which a golden tensor may stand when its shape is not the one of the declared order.
_ORDERS_4D = (NCHW, "NHWC", "HWCN")
_DEVICE_4D = ("NC1HWC0", "FRACTAL_Z")
# Formats whose axes have no names: elements in C order are enough.
_NAMELESS = (ND, DEFAULT_FORMAT)
# Formats that are unfolded even where the golden tensor has no named axes.
_ALWAYS_UNFOLDED = ("FRACTAL_NZ", "NDC1HWC0")


@dataclass(frozen=True, slots=True)
class FusionOrigin:
    """What the fusion json tells of the original output; None where it does not."""

    format: str | None = None
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Aligned:
    """Two arrays of one size whose elements belong together in C order.

    format    axis order of both; "ND" where the axes have no names
    shape     what the result file shows of mine
    """

    mine: Array
    golden: Array
    format: str
    shape: tuple[int, ...]


def align(mine: SideTensor, golden: SideTensor, origin: FusionOrigin, custom: CustomFormats | None = None) -> Aligned:
    """Both tensors of one row.

    Edges:   the declared order of the golden tensor counts when its shape fits; else the first of NCHW, NHWC, HWCN in
             which it does. A tensor of mine that is larger on an axis is cut to the golden size, which takes the
             padding of a device away where the file tells no original shape.
    Raises:  AnalysisError when the shapes do not fit; FormatError, OSError as loading.
    """
    y = golden.load()
    if golden.is_device_dump:
        x = mine.load()
        if _long_axes(x.shape) != _long_axes(y.shape):
            raise _unfit(x.shape, y.shape)
        return Aligned(x, y, device_layouts.host_format(x.shape), mine.shape)
    source = mine.source.format
    is_scalar = all(size == 1 for size in mine.shape)
    if not is_scalar and custom is not None and origin.format is not None and custom.has(source, origin.format):
        x = _cut(custom.convert(mine.load_stored(), source, origin.format, y.shape), y.shape)
        return Aligned(x, y, origin.format, x.shape)
    is_flat = is_scalar or (source not in _ALWAYS_UNFOLDED and (origin.format or source) == ND and y.size > 0)
    if not is_scalar and _has_named_axes(mine):
        declared = _declared_order(source, origin)
        both = _unfolded(mine, y, declared) if source in _DEVICE_4D else None
        both = both or _in_one_order(_as_nchw(mine, y.shape, origin), y, declared)
        if both is not None:
            return replace(both, shape=(both.mine.size,)) if is_flat else both
    x = _host(mine, y.shape, origin)
    if x.size != y.size or not (is_flat or source in _NAMELESS):
        x = _cut(x, y.shape)
    return Aligned(x, y, ND, (x.size,) if is_flat else x.shape)


def detail_arrays(aligned: Aligned, source: str) -> tuple[Array, Array, str]:
    """Mine, golden and their axis order for a list of elements: NCHW but for FRACTAL_Z, which keeps golden's order.

    Edges:   a scalar has one axis; the order of one without axes is "ID".
    """
    order = aligned.format
    if aligned.shape == (1,):
        return aligned.mine.reshape(1), aligned.golden.reshape(1), order if aligned.mine.shape else "ID"
    if order not in _ORDERS_4D or source == "FRACTAL_Z":
        return aligned.mine, aligned.golden, order
    mine, golden = (device_layouts.transpose_host(array, order, NCHW) for array in (aligned.mine, aligned.golden))
    return mine, golden, NCHW


def _host(mine: SideTensor, golden_shape: tuple[int, ...], origin: FusionOrigin) -> Array:
    if mine.source.format == "FRACTAL_NZ" and mine.original_shape is None:
        return to_format(mine.load_stored(), "FRACTAL_NZ", ND, origin.shape or golden_shape)
    return mine.load()


def _has_named_axes(mine: SideTensor) -> bool:
    source = mine.source.format
    return source in _DEVICE_4D or (source in _ORDERS_4D and len(mine.shape) == 4)


def _unfolded(mine: SideTensor, golden: Array, declared: str | None) -> Aligned | None:
    """A tensor in a device format by the golden shape; None when it has the shape of no order.

    The file's original shape may stand in any order, which the golden shape in the declared order tells.
    """
    array, source, groups = mine.load_stored(), mine.source.format, max(1, mine.source.sub_format)
    if golden.ndim != 4 or array.ndim == 0:
        return None
    for order in dict.fromkeys((declared or NCHW, *_ORDERS_4D)):
        logical = _turned_shape(golden.shape, order, NCHW)
        arrangements = [_turned_shape(logical, NCHW, order) for order in _ORDERS_4D]
        if (mine.original_shape or logical) not in arrangements or logical[0] % groups or min(logical) < 1:
            continue
        if device_layouts.device_shape(logical, source, array.shape[-1], groups) == array.shape:
            host = device_layouts.from_device(array, source, logical, groups)
            turned = device_layouts.transpose_host(host, NCHW, order)
            return Aligned(turned, golden, order, turned.shape)
    return None


def _turned_shape(shape: tuple[int, ...], source: str, target: str) -> tuple[int, ...]:
    return tuple(device_layouts.transpose_host(np.broadcast_to(np.False_, shape), source, target).shape)


def _as_nchw(mine: SideTensor, golden_shape: tuple[int, ...], origin: FusionOrigin) -> Array:
    """Edges:  without an original shape the golden one tells where the channels end, if it fits."""
    source = mine.source.format
    array = mine.load_stored()
    if source in _ORDERS_4D:
        return device_layouts.transpose_host(array, source, NCHW)
    shape = mine.original_shape or origin.shape or golden_shape
    target = origin.format if origin.format is not None and (source, origin.format) in PAIRS else NCHW
    host = to_format(array, source, target, shape, mine.source.sub_format)
    return device_layouts.transpose_host(host, target, NCHW)


def _declared_order(source: str, origin: FusionOrigin) -> str | None:
    """Axis order that the golden tensor should have; None where the json says that its axes have no names."""
    if origin.format in _ORDERS_4D:
        return origin.format
    return None if origin.format == ND else source if source in _ORDERS_4D else NCHW


def _in_one_order(host: Array, golden: Array, declared: str | None) -> Aligned | None:
    """None when the shapes are not those of one tensor and no order is declared that would tell what to cut."""
    for order in dict.fromkeys((declared or NCHW, *_ORDERS_4D)):
        turned = device_layouts.transpose_host(host, NCHW, order)
        if turned.shape == golden.shape:
            return Aligned(turned, golden, order, turned.shape)
    if declared is None:
        return None
    cut = _cut(device_layouts.transpose_host(host, NCHW, declared), golden.shape)
    return Aligned(cut, golden, declared if cut.shape == golden.shape else ND, cut.shape)


def _cut(array: Array, shape: tuple[int, ...]) -> Array:
    """The beginning of every axis that is longer than the golden one.

    Edges:   missing axes count as 1, of four at least; a tensor with one long axis may stand on any axis.
    Raises:  AnalysisError when an axis is shorter, or sizes still differ.
    """
    if array.shape == shape or (array.size == math.prod(shape) and _long_axes(array.shape) == _long_axes(shape)):
        return array
    if array.ndim < len(shape):
        raise _unfit(array.shape, shape)
    padded, target = _padded(array.shape, 4), _padded(shape, max(4, array.ndim))
    if any(have < want for have, want in zip(padded, target, strict=True)):
        raise _unfit(array.shape, shape)
    return array.reshape(padded)[tuple(slice(0, size) for size in target)]


def _long_axes(shape: Sequence[int]) -> list[int]:
    return [size for size in shape if size != 1]


def _padded(shape: Sequence[int], count: int) -> tuple[int, ...]:
    return (*shape, *[1] * (count - len(shape)))


def _unfit(mine: Sequence[int], golden: Sequence[int]) -> AnalysisError:
    shapes = f"Shapes {list(mine)} and {list(golden)} do not fit."
    return AnalysisError(ExitCode.INVALID_SHAPE, f"{shapes} Did the batch size or an optimization change the shape?")
