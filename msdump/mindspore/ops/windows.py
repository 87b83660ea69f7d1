"""Poolings that PyTorch computes, under MindSpore's types of operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msdump.mindspore.common.dtype import Type, int64
from msdump.mindspore.common.signatures import in_forms, of_axes
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call
from msdump.mindspore.names import publish
from msdump.mindspore.ops.arithmetic import abs, mul, pow, relu, sign
from msdump.mindspore.ops.array import expand_dims, squeeze
from msdump.mindspore.ops.declaration import operator

Sizes = tuple[int, ...]


def sizes(value: Any, ndim: int) -> Sizes:
    """One number per axis: of a number, or of the last `ndim` of a sequence.   Raises: ValueError for too few."""
    if isinstance(value, int):
        return (value,) * ndim
    items = tuple(int(item) for item in value)
    if len(items) == 1:
        return items * ndim
    if len(items) < ndim:
        raise ValueError(f"window: expected {ndim} sizes, got {value!r}.")
    return items[-ndim:]


def _same_pads(shape: Sequence[int], kernel: Sizes, stride: Sizes, dilation: Sizes) -> list[int]:
    """Pads of pad_mode "same" in the order of PyTorch: the last axis first, before and after."""
    pads: list[int] = []
    for length, size, step, spread in zip(shape, kernel, stride, dilation, strict=True):
        total = max((-(-length // step) - 1) * step + (size - 1) * spread + 1 - length, 0)
        pads = [total // 2, total - total // 2, *pads]
    return pads


def pads_of(mode: str, shape: Sequence[int], kernel: Sizes, stride: Sizes, dilation: Sizes, pad: Any) -> list[int]:
    """Pads in the order of PyTorch. `pad`: one number, one per axis, or two per axis, the first axis first."""
    ndim = len(kernel)
    if mode.lower() == "same":
        return _same_pads(shape, kernel, stride, dilation)
    if mode.lower() == "valid":
        return [0] * (2 * ndim)
    given = (pad,) * (2 * ndim) if isinstance(pad, int) else tuple(pad)
    if len(given) != 2 * ndim:
        given = tuple(item for item in sizes(given, ndim) for _ in range(2))
    return [item for axis in reversed(range(ndim)) for item in given[2 * axis : 2 * axis + 2]]


def only(op_type: str, name: str, value: Any, known: Any) -> None:
    """Raises: ValueError for another value of an argument than the only one that there is. None: it is not given."""
    if value is not None and value != known:
        raise ValueError(f"For '{op_type}', the '{name}' must be {known!r}, but got {value!r}.")


# -- poolings ----------------------------------------------------------------------------------------------------------


@operator("AdaptiveAvgPool3D")
def _adaptive_avg_pool3d(torch: Any, input: Tensor, output_size: Sizes) -> Tensor:
    return torch.nn.functional.adaptive_avg_pool3d(input, output_size)


@operator("AdaptiveMaxPool2D")
def _adaptive_max_pool2d(torch: Any, input: Tensor, output_size: Sizes) -> tuple[Tensor, Tensor]:
    return torch.nn.functional.adaptive_max_pool2d(input, output_size, True)


@operator("AdaptiveMaxPool3D", init="")
def _adaptive_max_pool3d(torch: Any, input: Tensor, output_size: Sizes) -> tuple[Tensor, Any]:
    values, places = torch.nn.functional.adaptive_max_pool3d(input, output_size, True)
    return values, places.to(torch.int32)


def _target(shape: Sequence[int], output_size: Any, ndim: int) -> Sizes:
    """Sizes of the result; None keeps one."""
    wanted = (output_size,) * ndim if output_size is None or isinstance(output_size, int) else tuple(output_size)
    return tuple(shape[-ndim:][axis] if size is None else int(size) for axis, size in enumerate(wanted))


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means of parts of (..., H, W), so that the result has the sizes asked of it; None keeps one."""
    return call("AdaptiveAvgPool2D", input, output_size=_target(input.shape, output_size, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means of parts of (..., D, H, W)."""
    return _adaptive_avg_pool3d(input, _target(input.shape, output_size, 3))


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Largest elements of parts of (..., H, W), and their places in the picture."""
    results = _adaptive_max_pool2d(input, _target(input.shape, output_size, 2))
    return results if return_indices else results[0]


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Largest elements of parts of (..., D, H, W), and their places."""
    results = _adaptive_max_pool3d(input, _target(input.shape, output_size, 3))
    return results if return_indices else results[0]


@operator("MaxPool3D")
def _max_pool3d(
    torch: Any, input: Tensor, kernel_size: Any = 1, strides: Any = 1, pad_mode: str = "VALID", pad_list: Any = 0,
    ceil_mode: bool | None = None, data_format: str = "NCDHW",
) -> Tensor:  # fmt: skip
    only("MaxPool3D", "data_format", data_format, "NCDHW")
    functional = torch.nn.functional
    kernel, stride = sizes(kernel_size, 3), sizes(strides, 3)
    pads = pads_of(pad_mode, input.shape[-3:], kernel, stride, (1, 1, 1), pad_list)
    padded = functional.pad(input, pads, value=-torch.inf) if any(pads) else input
    return functional.max_pool3d(padded, kernel, stride, ceil_mode=bool(ceil_mode))


@operator("MaxPool3DWithArgmax")
def _max_pool3d_with_argmax(
    torch: Any, x: Tensor, ksize: Sizes, strides: Sizes, pads: Any = 0, dilation: Any = (1, 1, 1),
    ceil_mode: bool = False, data_format: str = "NCDHW", argmax_type: Type = int64,
) -> tuple[Tensor, Any]:  # fmt: skip
    only("MaxPool3DWithArgmax", "data_format", data_format, "NCDHW")
    values, places = torch.nn.functional.max_pool3d(
        x, sizes(ksize, 3), sizes(strides, 3), sizes(pads, 3), sizes(dilation, 3), bool(ceil_mode), True
    )
    return values, places.to(argmax_type)


@operator("AvgPool3D")
def _avg_pool3d(
    torch: Any, input: Tensor, kernel_size: Any = 1, strides: Any = 1, pad_mode: str = "valid", pad: Any = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int = 0, data_format: str = "NCDHW",
) -> Tensor:  # fmt: skip
    """Source: zeros around count as elements in pad_mode "same", too, as MindSpore has it for three dimensions."""
    only("AvgPool3D", "data_format", data_format, "NCDHW")
    functional = torch.nn.functional
    kernel, stride = sizes(kernel_size, 3), sizes(strides, 3)
    pads = pads_of(pad_mode, input.shape[-3:], kernel, stride, (1, 1, 1), pad)
    divisor, is_ceil = divisor_override or None, bool(ceil_mode)
    if pads[::2] == pads[1::2]:
        each = tuple(reversed(pads[::2]))
        return functional.avg_pool3d(input, kernel, stride, each, is_ceil, count_include_pad, divisor)
    summed = functional.avg_pool3d(functional.pad(input, pads), kernel, stride, 0, is_ceil, True, divisor)
    if count_include_pad or divisor:
        return summed
    inside = functional.pad(torch.ones_like(input), pads)
    return summed / functional.avg_pool3d(inside, kernel, stride, 0, is_ceil, True)


def max_pool3d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """Largest elements under a window of (N, C, D, H, W), and their places."""
    steps = sizes(kernel_size if stride is None else stride, 3)
    pooled = _max_pool3d_with_argmax(x, sizes(kernel_size, 3), steps, sizes(padding, 3), sizes(dilation, 3), ceil_mode)
    return pooled if return_indices else pooled[0]


def _avg_pool(ndim: int, input: Tensor, kernel: Any, stride: Any, padding: Any, *options: Any) -> Tensor:
    """Means under a window of `ndim` axes, through the operator of three."""
    ahead = (1,) * (3 - ndim)
    pads = (0, 0) * (3 - ndim) + tuple(item for item in sizes(padding, ndim) for _ in range(2))
    for _ in ahead:
        input = expand_dims(input, 2)
    window, steps = (*ahead, *sizes(kernel, ndim)), (*ahead, *sizes(stride, ndim))
    result: Tensor = _avg_pool3d(input, window, steps, "pad", pads, *options)
    return squeeze(result, tuple(range(2, 5 - ndim))) if ahead else result


_AVG_POOL = "input_x kernel_size=1 stride=1 padding=0 ceil_mode=False count_include_pad=True"
_TABLE = f"""
    avg_pool1d {_AVG_POOL}
    avg_pool2d {_AVG_POOL} divisor_override=0
    avg_pool3d {_AVG_POOL} divisor_override=0
"""
_COMPUTING = of_axes("avg_pool{}d", _avg_pool, "Means under a window of the last axes, {}, of (N, C, ...).")
avg_pool1d, avg_pool2d, avg_pool3d = in_forms(_TABLE, _COMPUTING, __name__).values()


def _lp_pool(x: Tensor, ndim: int, norm_type: float, kernel: Any, stride: Any, ceil_mode: bool) -> Tensor:
    if isinstance(norm_type, bool) or not isinstance(norm_type, int | float):
        raise TypeError(f"For lp_pool{ndim}d, the type of norm_type must be float or int, but got {type(norm_type)}.")
    if norm_type == 0:
        raise ValueError(f"For lp_pool{ndim}d, norm_type should not be 0, but got 0.")
    step = kernel if stride is None else stride
    means = _avg_pool(ndim, pow(x, float(norm_type)), kernel, step, 0, ceil_mode)
    area = 1
    for size in sizes(kernel, ndim):
        area *= size
    return pow(mul(mul(sign(means), relu(abs(means))), area), 1.0 / norm_type)


def lp_pool1d(x: Tensor, norm_type: float, kernel_size: int, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """p-norms under a window of (N, C, L) or (C, L)."""
    batched = x if x.ndim == 3 else expand_dims(x, 0)
    result = _lp_pool(batched, 1, norm_type, kernel_size, stride, ceil_mode)
    return result if x.ndim == 3 else squeeze(result, 0)


def lp_pool2d(x: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """p-norms under a window of (N, C, H, W)."""
    return _lp_pool(x, 2, norm_type, kernel_size, stride, ceil_mode)


@operator("LRN")
def lrn(
    torch: Any, x: Tensor, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
    norm_region: str = "ACROSS_CHANNELS",
) -> Tensor:  # fmt: skip
    """x over (bias + alpha * sum of squares of the channels around it) ** beta."""
    only("LRN", "norm_region", norm_region, "ACROSS_CHANNELS")
    width = 2 * depth_radius + 1
    return torch.nn.functional.local_response_norm(x, width, alpha * width, beta, bias)


# -- back from the largest ---------------------------------------------------------------------------------------------


def _unpooled(torch: Any, ndim: int, x: Any, indices: Any, shape: Sizes) -> Any:
    """Zeros with the elements of x at their places in the last `ndim` axes."""
    lead = x.shape[: x.ndim - ndim]
    count = 1
    for size in shape:
        count *= size
    zeros = x.new_zeros((*lead, count))
    places = indices.long().reshape(*lead, -1)
    return zeros.scatter(-1, places, x.reshape(*lead, -1)).reshape(*lead, *shape)


@operator("MaxUnpool2D")
def _max_unpool2d(
    torch: Any, x: Tensor, argmax: Tensor, ksize: Any, strides: Any = 0, pads: Any = 0, output_shape: Sizes = (),
    data_format: str = "NCHW",
) -> Tensor:  # fmt: skip
    only("MaxUnpool2D", "data_format", data_format, "NCHW")
    return _unpooled(torch, 2, x, argmax, _unpooled_sizes(x, 2, ksize, strides, pads, output_shape))


def _unpooled_sizes(x: Any, ndim: int, kernel: Any, stride: Any, padding: Any, output_shape: Any) -> Sizes:
    """Sizes of the last `ndim` axes: of `output_shape` where it is given. `stride` None or 0: as the kernel."""
    if output_shape:
        return tuple(output_shape)[-ndim:]
    window, pads = sizes(kernel, ndim), sizes(padding, ndim)
    steps = tuple(step or size for step, size in zip(sizes(stride or 0, ndim), window, strict=True))
    lengths = zip(x.shape[-ndim:], window, steps, pads, strict=True)
    return tuple((length - 1) * step + size - 2 * pad for length, size, step, pad in lengths)


def max_unpool2d(
    x: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Zeros of (..., H, W) with elements put back to the places that a maximum pooling took them from."""
    return _max_unpool2d(x, indices, kernel_size, stride or 0, padding, tuple(output_size or ()))


publish(__name__)
