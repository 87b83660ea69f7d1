"""From the format in which a tensor was dumped to the one that the user asks for: the pairs of msaccucmp.

The user may bring converters: `format_convert/convert_{FROM}_to_{TO}.py` below a folder of theirs. Such a file has
`convert(shape_from, shape_to, array)`, which gets two lists and the flat array and returns an array.

Source: CANN, format conversion of dump files: built-in pairs and their shapes, custom format conversion.
"""

from __future__ import annotations

import importlib.util
import math
import os
import stat
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.errors import LayoutError
from msdump.tensors import device_layouts
from msdump.tensors.arrays import Array

_HOST_4D = ("NCHW", "NHWC", "HWCN")
_HOST_5D = ("NCDHW", "NDHWC", "DHWCN")
# Where N, C, H, W (or N, C, D, H, W) stand in a shape of that format.
_AXES = {
    "NCHW": (0, 1, 2, 3),
    "NHWC": (0, 3, 1, 2),
    "HWCN": (3, 2, 0, 1),
    "NCDHW": (0, 1, 2, 3, 4),
    "NDHWC": (0, 4, 1, 2, 3),
    "DHWCN": (4, 3, 0, 1, 2),
}
PAIRS = frozenset(
    [("FRACTAL_NZ", target) for target in ("NCHW", "NHWC", "ND")]
    + [("FRACTAL_Z", target) for target in ("NCHW", "HWCN")]
    + [("NC1HWC0", target) for target in _HOST_4D]
    + [("NDC1HWC0", target) for target in ("NCDHW", "ND")]
    + [("NCHW", "NHWC"), ("NCHW", "FRACTAL_Z")]
    + [("NHWC", "NCHW"), ("NHWC", "HWCN"), ("NHWC", "FRACTAL_Z")]
    + [("HWCN", "NCHW"), ("HWCN", "NHWC"), ("HWCN", "FRACTAL_Z")]
)
# Formats that msaccucmp has no name for, and short names that it has.
_NAMELESS = frozenset({"FRACTAL_ZZ", "NC", "NCL"})
_SHORT = {"DECONV_SP_STRIDE8_TRANS": "FRACTAL_DECONV_SP_STRIDE8_TRANS"} | {
    f"LOOKUP_{part}": f"HASHTABLE_LOOKUP_{part}" for part in ("LOOKUPS", "KEYS", "VALUE", "OUTPUT", "HITS")
}
_SHORT_NAME = {full: short for short, full in _SHORT.items()}
_C0 = 16  # of formats that are made here


class CustomFormats:
    """Converters below one folder, loaded when the first tensor needs them. Any thread may call it.

    Raises:  AnalysisError when there is no `format_convert` in the folder.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder) / "format_convert"
        if not self.folder.is_dir():
            raise AnalysisError(
                ExitCode.INVALID_PATH,
                f'{folder}: expected a folder that holds "format_convert", got none. Give the folder above it.',
            )
        self._functions: dict[Path, Callable[..., Any]] = {}
        self._lock = threading.Lock()

    def has(self, source: str, target: str) -> bool:
        return self._path(source, target).is_file()

    def convert(self, array: Array, source: str, target: str, shape: Sequence[int] | None) -> Array:
        """What the user's function returns; an unknown target shape is that of the tensor.

        Raises:  AnalysisError: others may change the file, it has no `convert`, raises, or returns something else.
        """
        path = self._path(source, target)
        with self._lock:
            function = self._functions.get(path)
            if function is None:
                function = self._functions[path] = load_function(
                    path, "convert", "shape_from, shape_to, array", ExitCode.INVALID_CONVERT_FUNC
                )
        goal = list(array.shape if shape is None else shape)
        try:
            converted = function(list(array.shape), goal, array.reshape(-1))
        except Exception as error:  # the user's code may raise anything; reported as this tensor's failure
            raise AnalysisError(
                ExitCode.INVALID_CONVERT_FUNC, f"{path}: convert raised {type(error).__name__}: {error}."
            ) from error
        if not isinstance(converted, np.ndarray):
            raise AnalysisError(
                ExitCode.INVALID_CONVERT_FUNC,
                f"{path}: expected an array from convert, got {type(converted).__name__}.",
            )
        return converted

    def _path(self, source: str, target: str) -> Path:
        return self.folder / f"convert_{source}_to_{target}.py"


def load_function(path: Path, name: str, parameters: str, code: ExitCode) -> Callable[..., Any]:
    """A function of a Python file of the user's.

    Raises:  AnalysisError with `code` when the file does not load or has no such function, with DANGER_FILE when others
             than its owner may change it.
    """
    if path.stat().st_mode & stat.S_IWOTH:
        raise AnalysisError(
            ExitCode.DANGER_FILE,
            f"{path}: expected a file that only its owner can change, got one that anybody can. Run chmod o-w on it.",
        )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise AnalysisError(code, f"{path}: expected a Python file.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's code may raise anything
        raise AnalysisError(code, f"{path}: expected it to load, got {type(error).__name__}: {error}.") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise AnalysisError(code, f"{path}: expected a function {name}({parameters}), got none.")
    return function  # type: ignore[no-any-return]  # a user's function


def parse_format(name: str) -> str:
    """The format that the user means.   Raises: AnalysisError for a name that msaccucmp does not know."""
    full = _SHORT.get(name, name)
    if full not in device_layouts.FORMAT_NUMBER or full in _NAMELESS:
        targets = ", ".join(sorted({target for _, target in PAIRS}))
        raise AnalysisError(
            ExitCode.INVALID_PARAM,
            f'--format: expected the name of a format, got "{name}". Converters lead to {targets}.',
        )
    return full


def short_format(name: str) -> str:
    """The format as msaccucmp names it in file names."""
    return _SHORT_NAME.get(name, name)


def to_format(
    array: Array,
    source: str,
    target: str,
    shape: Sequence[int] | None,
    groups: int = 0,
    custom: CustomFormats | None = None,
) -> Array:
    """The tensor in another format.

    shape    what the tensor is without padding: what the user gives, else what the file gives; it is read in the
             axis order of `target` when it fits the padded shape that way, else in any other order that does
    groups   `sub_format` of the file, for FRACTAL_Z
    Edges:   NCHW, NHWC and HWCN with other than 4 axes count as ND. The same format: nothing changes.
    Raises:  AnalysisError: no converter for this pair, or the shape does not fit.
    """
    if source in _HOST_4D and array.ndim != 4:
        source = "ND"
    if source == target:
        return array
    if custom is not None and custom.has(source, target):
        return custom.convert(array, source, target, shape)
    if (source, target) not in PAIRS:
        raise AnalysisError(
            ExitCode.INVALID_FORMAT,
            f"expected a format with a way to {target}, got {source}. Write convert_{source}_to_{target}.py and give "
            "its folder with -c.",
        )
    try:
        if source == "FRACTAL_NZ":
            return _from_nz(array, shape)
        if source == "FRACTAL_Z":
            return _from_fractal_z(array, target, shape, groups)
        if source in ("NC1HWC0", "NDC1HWC0"):
            return _from_channels(array, source, target, shape)
        if target == "FRACTAL_Z":
            return device_layouts.to_device(device_layouts.transpose_host(array, source, "NCHW"), "FRACTAL_Z", _C0)
        return device_layouts.transpose_host(array, source, target)
    except (LayoutError, ZeroDivisionError) as error:
        raise AnalysisError(ExitCode.INVALID_SHAPE, f"{source} to {target}: {error}") from error


def _from_nz(array: Array, shape: Sequence[int] | None) -> Array:
    if not shape or array.ndim < 4:
        raise AnalysisError(
            ExitCode.INVALID_PARAM,
            f"FRACTAL_NZ: expected a shape to cut {array.shape} down to, got {shape}. Give it with -s.",
        )
    try:
        return device_layouts.from_device(array, "FRACTAL_NZ", shape)
    except LayoutError as error:
        raise AnalysisError(ExitCode.INVALID_PARAM, f"{error} Give the right shape with -s.") from error


def _from_fractal_z(array: Array, target: str, shape: Sequence[int] | None, groups: int) -> Array:
    groups = max(1, groups)
    for order in _orders(target, _HOST_4D) if array.ndim else ():
        logical = _logical(shape, order)
        if logical is None or min(logical) < 1 or logical[0] % groups:
            continue
        expected = device_layouts.device_shape(logical, "FRACTAL_Z", array.shape[-1], groups)
        if math.prod(expected) == array.size:
            return device_layouts.transpose_host(
                device_layouts.from_device(array, "FRACTAL_Z", logical, groups), "NCHW", target
            )
    raise AnalysisError(
        ExitCode.INVALID_SHAPE,
        f"FRACTAL_Z to {target}: expected a shape of four axes that fits {array.shape}, got {shape}. "
        "The file must hold the original shape.",
    )


def _from_channels(array: Array, source: str, target: str, shape: Sequence[int] | None) -> Array:
    """NC1HWC0 and NDC1HWC0: the channels come together, then their padding is cut off."""
    is_3d = source == "NDC1HWC0"
    if array.ndim != (6 if is_3d else 5):
        raise AnalysisError(ExitCode.INVALID_SHAPE, f"{source}: expected {6 if is_3d else 5} axes, got {array.shape}.")
    host = "NCDHW" if is_3d else "NCHW"
    axes = (0, 2, 5, 1, 3, 4) if is_3d else (0, 1, 4, 2, 3)
    parts = tuple(array.shape[axis] for axis in axes)
    padded = (parts[0], parts[1] * parts[2], *parts[3:])
    full = array.transpose(axes).reshape(padded)
    order = target if target in _AXES else host
    for candidate in _orders(order, _HOST_5D if is_3d else _HOST_4D):
        logical = _logical(shape, candidate)
        if logical is not None and _is_padded(logical, padded, array.shape[-1]):
            return device_layouts.transpose_host(full[:, : logical[1]], host, order)
    turned = device_layouts.transpose_host(full, host, order)
    if shape is not None and len(shape) == turned.ndim:
        return turned[tuple(slice(0, size) for size in shape)]
    return turned


def _orders(first: str, others: Sequence[str]) -> list[str]:
    return [first, *(order for order in others if order != first)]


def _logical(shape: Sequence[int] | None, order: str) -> tuple[int, ...] | None:
    """(N, C, H, W) or (N, C, D, H, W) of a shape in some order; None when it has other axes."""
    axes = _AXES[order]
    return None if shape is None or len(shape) != len(axes) else tuple(shape[axis] for axis in axes)


def _is_padded(logical: tuple[int, ...], padded: tuple[int, ...], c0: int) -> bool:
    rest = logical[0] == padded[0] and logical[2:] == padded[2:]
    return rest and c0 > 0 and -(-logical[1] // c0) * c0 == padded[1]
