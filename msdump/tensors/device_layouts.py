"""Device formats: which element of the host tensor stands where in NC1HWC0, FRACTAL_Z, FRACTAL_NZ and their kin.

Index rules both ways, as reshapes and transposes; padding is zero. Nothing here knows files or operators.
Source: CANN dump parsing, format conversion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.errors import LayoutError
from msdump.tensors import dtypes
from msdump.tensors.c_order import in_c_order

Array = np.ndarray[Any, np.dtype[Any]]

# OutputFormat of dump_data.proto: list index = number.
_NAMES = (  # noqa: SIM905  (fifty names in quotes would hide their order)
    "NCHW NHWC ND NC1HWC0 FRACTAL_Z NC1C0HWPAD NHWC1C0 FSR_NCHW FRACTAL_DECONV C1HWNC0 FRACTAL_DECONV_TRANSPOSE "
    "FRACTAL_DECONV_SP_STRIDE_TRANS NC1HWC0_C04 FRACTAL_Z_C04 CHWN FRACTAL_DECONV_SP_STRIDE8_TRANS HWCN "
    "NC1KHKWHWC0 BN_WEIGHT FILTER_HWCK HASHTABLE_LOOKUP_LOOKUPS HASHTABLE_LOOKUP_KEYS HASHTABLE_LOOKUP_VALUE "
    "HASHTABLE_LOOKUP_OUTPUT HASHTABLE_LOOKUP_HITS C1HWNCoC0 MD NDHWC FRACTAL_ZZ FRACTAL_NZ NCDHW DHWCN NDC1HWC0 "
    "FRACTAL_Z_3D CN NC DHWNC FRACTAL_Z_3D_TRANSPOSE FRACTAL_ZN_LSTM FRACTAL_Z_G RESERVED ALL NULL ND_RNN_BIAS "
    "FRACTAL_ZN_RNN YUV YUV_A NCL FRACTAL_Z_WINO C1HWC0"
).split()
FORMAT_NUMBER = {name: number for number, name in enumerate(_NAMES)} | {"MAX": 255}
FORMAT_NAME = {number: name for name, number in FORMAT_NUMBER.items()}

# Those with an index rule.
DEVICE_FORMATS = frozenset({"NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ", "NDC1HWC0", "FRACTAL_Z_3D"})

# N0 of every fractal format, and H0 of FRACTAL_NZ.
_N0 = 16
# 4-D host formats as positions of N, C, H, W.
_HOST_4D = {"NCHW": (0, 1, 2, 3), "NHWC": (0, 3, 1, 2), "HWCN": (3, 2, 0, 1), "CHWN": (3, 0, 1, 2)}
_HOST_5D = {"NCDHW": (0, 1, 2, 3, 4), "NDHWC": (0, 4, 1, 2, 3), "DHWCN": (4, 3, 0, 1, 2)}


def cube_size(dtype_name: str) -> int:
    """C0 that a compiler chooses for a dtype: 32 for one-byte elements, else 16."""
    return 32 if dtypes.dtype(dtype_name).bits <= 8 and dtype_name != "bool" else 16


def host_format(shape: Sequence[int]) -> str:
    """Format recorded for a host tensor that was given no other format.   Source: MindSpore async dump."""
    return "NCHW" if len(shape) == 4 else "ND"


def transpose_host(array: Array, source: str, target: str) -> Array:
    """Reorder axes between host formats of the same rank (NCHW, NHWC, HWCN, CHWN; NCDHW, NDHWC, DHWCN).

    Raises:  LayoutError when the formats are of different kinds or the rank does not fit.
    """
    if source == target:
        return array
    for table, ndim in ((_HOST_4D, 4), (_HOST_5D, 5)):
        if source in table and target in table:
            if array.ndim != ndim:
                raise LayoutError(f"{source} -> {target}: expected a {ndim}-D tensor, got shape {array.shape}.")
            canonical = array.transpose(table[source])
            return canonical.transpose(np.argsort(table[target]))
    raise LayoutError(f"{source} -> {target}: expected two host formats of one rank.")


def device_shape(shape: Sequence[int], device_format: str, c0: int, groups: int = 1) -> tuple[int, ...]:
    """Shape on the device of a host tensor: NCHW for 4-D formats, NCDHW for 5-D ones, any for FRACTAL_NZ.

    Raises:  LayoutError for a format without an index rule or a rank that does not fit.
    """
    if device_format == "FRACTAL_NZ":
        batch, height, width = _nz_parts(shape)
        return (*batch, _ceil(width, c0), _ceil(height, _N0), _N0, c0)
    if device_format in ("NC1HWC0", "FRACTAL_Z"):
        n, c, h, w = _expect(shape, 4, device_format)
        if device_format == "NC1HWC0":
            return (n, _ceil(c, c0), h, w, c0)
        if groups > 1:
            rule = _GroupRule(n, c, c0, groups)
            return (rule.blocks * rule.c1 * h * w, rule.n1, _N0, c0)
        return (_ceil(c, c0) * h * w, _ceil(n, _N0), _N0, c0)
    if device_format in ("NDC1HWC0", "FRACTAL_Z_3D"):
        n, c, d, h, w = _expect(shape, 5, device_format)
        if device_format == "NDC1HWC0":
            return (n, d, _ceil(c, c0), h, w, c0)
        return (d * _ceil(c, c0) * h * w, _ceil(n, _N0), _N0, c0)
    raise LayoutError(f"{device_format}: no index rule is known for this device format.")


def to_device(array: Array, device_format: str, c0: int, groups: int = 1) -> Array:
    """Host tensor (NCHW, NCDHW, or any rank for FRACTAL_NZ) in a device format, padded with zeros.

    Shapes:  see `device_shape`.
    Edges:   grouped FRACTAL_Z takes the weights of a grouped convolution, (cout, cin per group, H, W).
    Raises:  LayoutError.
    """
    target = device_shape(array.shape, device_format, c0, groups)
    if device_format == "FRACTAL_NZ":
        batch, height, width = _nz_parts(array.shape)
        padded = _padded(array.reshape(*batch, height, width), (*batch, target[-3] * _N0, target[-4] * c0))
        split = padded.reshape(*batch, target[-3], _N0, target[-4], c0)
        lead = len(batch)
        return in_c_order(split.transpose(*range(lead), lead + 2, lead, lead + 1, lead + 3))
    if device_format == "NC1HWC0":
        n, c1, h, w, _ = target
        padded = _padded(array, (n, c1 * c0, h, w))
        return in_c_order(padded.reshape(n, c1, c0, h, w).transpose(0, 1, 3, 4, 2))
    if device_format == "NDC1HWC0":
        n, d, c1, h, w, _ = target
        padded = _padded(array, (n, c1 * c0, d, h, w))
        return in_c_order(padded.reshape(n, c1, c0, d, h, w).transpose(0, 3, 1, 4, 5, 2))
    if device_format == "FRACTAL_Z_3D":
        n, c, d, h, w = array.shape
        c1, n1 = _ceil(c, c0), target[1]
        padded = _padded(array, (n1 * _N0, c1 * c0, d, h, w)).reshape(n1, _N0, c1, c0, d, h, w)
        return in_c_order(padded.transpose(4, 2, 5, 6, 0, 1, 3)).reshape(target)
    if groups > 1:
        return _grouped_fractal_z(array, c0, groups, target)
    n, c, h, w = array.shape
    c1, n1 = _ceil(c, c0), target[1]
    padded = _padded(array, (n1 * _N0, c1 * c0, h, w)).reshape(n1, _N0, c1, c0, h, w)
    return in_c_order(padded.transpose(2, 4, 5, 0, 1, 3)).reshape(target)


def from_device(array: Array, device_format: str, shape: Sequence[int], groups: int = 1) -> Array:
    """Inverse of `to_device`: host tensor of `shape` (NCHW, NCDHW, or any for FRACTAL_NZ) without the padding.

    C0 is the last dimension of `array`, as the device wrote it.
    Raises:  LayoutError when `array` cannot hold a tensor of `shape` in this format.
    """
    shape = tuple(shape)
    if array.ndim == 0:
        raise LayoutError(f"{device_format}: expected a tensor with a C0 axis, got a scalar.")
    c0 = int(array.shape[-1])
    expected = device_shape(shape, device_format, c0, groups)
    if math.prod(expected) != array.size:
        raise LayoutError(
            f"{device_format}: expected device shape {expected} for host shape {shape}, got {array.shape}."
        )
    array = array.reshape(expected)
    if device_format == "FRACTAL_NZ":
        batch, height, width = _nz_parts(shape)
        lead = len(batch)
        split = array.transpose(*range(lead), lead + 1, lead + 2, lead, lead + 3)
        full = split.reshape(*batch, expected[-3] * _N0, expected[-4] * c0)
        return in_c_order(full[..., :height, :width]).reshape(shape)
    if device_format == "NC1HWC0":
        n, c1, h, w, _ = expected
        return in_c_order(array.transpose(0, 1, 4, 2, 3).reshape(n, c1 * c0, h, w)[:, : shape[1]])
    if device_format == "NDC1HWC0":
        n, d, c1, h, w, _ = expected
        return in_c_order(array.transpose(0, 2, 5, 1, 3, 4).reshape(n, c1 * c0, d, h, w)[:, : shape[1]])
    if device_format == "FRACTAL_Z_3D":
        n, c, d, h, w = shape
        c1, n1 = _ceil(c, c0), expected[1]
        split = array.reshape(d, c1, h, w, n1, _N0, c0).transpose(4, 5, 1, 6, 0, 2, 3)
        return in_c_order(split.reshape(n1 * _N0, c1 * c0, d, h, w)[:n, :c])
    if groups > 1:
        return _from_grouped_fractal_z(array, shape, c0, groups)
    n, c, h, w = shape
    c1, n1 = _ceil(c, c0), expected[1]
    split = array.reshape(c1, h, w, n1, _N0, c0).transpose(3, 4, 0, 5, 1, 2)
    return in_c_order(split.reshape(n1 * _N0, c1 * c0, h, w)[:n, :c])


class _GroupRule:
    """Sizes of grouped FRACTAL_Z: `merged` groups share one block of channels."""

    def __init__(self, n: int, c: int, c0: int, groups: int) -> None:
        if n % groups:
            raise LayoutError(f"FRACTAL_Z: expected output channels divisible by {groups} groups, got {n}.")
        self.cin, self.cout = c, n // groups
        by_in = math.lcm(self.cin, c0) // self.cin
        by_out = math.lcm(self.cout, _N0) // self.cout
        self.merged = min(math.lcm(by_in, by_out), groups)
        self.c1 = _ceil(self.merged * self.cin, c0)
        self.n1 = _ceil(self.merged * self.cout, _N0)
        self.blocks = _ceil(groups, self.merged)


def _grouped_fractal_z(array: Array, c0: int, groups: int, target: tuple[int, ...]) -> Array:
    n, c, h, w = array.shape
    rule = _GroupRule(n, c, c0, groups)
    full = np.zeros((rule.blocks, rule.n1 * _N0, rule.c1 * c0, h, w), array.dtype)
    for group in range(groups):
        block, position = divmod(group, rule.merged)
        rows = slice(position * rule.cout, (position + 1) * rule.cout)
        columns = slice(position * rule.cin, (position + 1) * rule.cin)
        full[block, rows, columns] = array[group * rule.cout : (group + 1) * rule.cout]
    split = full.reshape(rule.blocks, rule.n1, _N0, rule.c1, c0, h, w)
    return in_c_order(split.transpose(0, 3, 5, 6, 1, 2, 4)).reshape(target)


def _from_grouped_fractal_z(array: Array, shape: tuple[int, ...], c0: int, groups: int) -> Array:
    n, c, h, w = shape
    rule = _GroupRule(n, c, c0, groups)
    split = array.reshape(rule.blocks, rule.c1, h, w, rule.n1, _N0, c0).transpose(0, 4, 5, 1, 6, 2, 3)
    full = split.reshape(rule.blocks, rule.n1 * _N0, rule.c1 * c0, h, w)
    result = np.empty(shape, array.dtype)
    for group in range(groups):
        block, position = divmod(group, rule.merged)
        rows = slice(position * rule.cout, (position + 1) * rule.cout)
        columns = slice(position * rule.cin, (position + 1) * rule.cin)
        result[group * rule.cout : (group + 1) * rule.cout] = full[block, rows, columns]
    return result


def _nz_parts(shape: Sequence[int]) -> tuple[tuple[int, ...], int, int]:
    """Batch dims, height, width; a 1-D tensor counts as one row, a 0-d one as one element."""
    if len(shape) < 2:
        return (), 1, shape[0] if shape else 1
    return tuple(shape[:-2]), shape[-2], shape[-1]


def _expect(shape: Sequence[int], ndim: int, device_format: str) -> tuple[int, ...]:
    if len(shape) != ndim:
        raise LayoutError(f"{device_format}: expected a {ndim}-D host shape, got {tuple(shape)}.")
    return tuple(shape)


def _padded(array: Array, shape: tuple[int, ...]) -> Array:
    if array.shape == shape:
        return array
    result = np.zeros(shape, array.dtype)
    result[tuple(slice(0, size) for size in array.shape)] = array
    return result


def _ceil(size: int, by: int) -> int:
    return -(-size // by)
