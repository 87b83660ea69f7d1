"""Windows of signals, and the Fourier transform of short times."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import Type, dtype_name, float32
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops.declaration import operator, plain
from msdump.mindspore.ops.primitive import operator_class
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array


def _cosines(*factors: float) -> Any:
    """Window of sum(factors[k] * cos(k * angle)), the angle from 0 to 2 pi."""

    def window(places: Array) -> Array:
        angle = 2 * np.pi * places
        result: Array = np.zeros_like(angle)
        for k, factor in enumerate(factors):
            result = result + factor * np.cos(k * angle)
        return result

    return window


def _window(name: str, length: Any, periodic: bool, dtype: Any, shape: Any) -> Tensor:
    """`shape` of places from 0 to 1; a periodic window is one longer, without its last element."""
    size = plain(length, "window_length")
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"For '{name}', 'window_length' must be an integer, but got {size!r}.")
    if size < 0:
        raise ValueError(f"For '{name}', 'window_length' must be a non negative integer, but got {size}.")
    steps = max(size if periodic else size - 1, 1)
    values = shape(np.arange(size) / steps) if size != 1 else np.ones(1)
    return Tensor.of_array(np.asarray(values).astype(dtypes.dtype(dtype_name(dtype or float32)).numpy))


@operator_class("BartlettWindow", init="periodic dtype", dtype=float32)
def bartlett_window(window_length: Any, periodic: bool = True, *, dtype: Type | None = None) -> Tensor:
    """Triangle from 0 to 1 and back."""
    return _window("bartlett_window", window_length, periodic, dtype, lambda places: 1 - np.abs(2 * places - 1))


def hann_window(window_length: Any, periodic: bool = True, *, dtype: Type | None = None) -> Tensor:
    """0.5 - 0.5 cos."""
    return _window("hann_window", window_length, periodic, dtype, _cosines(0.5, -0.5))


@operator_class("BlackmanWindow", init="periodic dtype", dtype=float32)
def blackman_window(window_length: Any, periodic: bool = True, *, dtype: Type | None = None) -> Tensor:
    """0.42 - 0.5 cos + 0.08 cos of the double angle."""
    return _window("blackman_window", window_length, periodic, dtype, _cosines(0.42, -0.5, 0.08))


@operator_class("HammingWindow", init="periodic alpha beta dtype", dtype=float32)
def hamming_window(
    window_length: Any, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Type | None = None
) -> Tensor:
    """alpha - beta cos."""
    return _window("hamming_window", window_length, periodic, dtype, _cosines(alpha, -beta))


def kaiser_window(
    window_length: Any, periodic: bool = True, beta: float = 12.0, *, dtype: Type | None = None
) -> Tensor:
    """i0(beta sqrt(1 - x ** 2)) / i0(beta), x from -1 to 1."""

    def shape(places: Array) -> Array:
        inside = np.sqrt(np.maximum(1 - (2 * places - 1) ** 2, 0))
        return np.i0(beta * inside) / np.i0(beta)

    return _window("kaiser_window", window_length, periodic, dtype, shape)


@operator("STFT", init="n_fft hop_length win_length normalized onesided return_complex")
def _stft(
    torch: Any, x: Tensor, window: Tensor, n_fft: int, hop_length: int, win_length: int, normalized: bool,
    onesided: bool, return_complex: bool,
) -> Any:  # fmt: skip
    """Spectra of windows of a signal: (..., frequency, time), or with real and imaginary parts as a last axis."""
    if {x.dtype, window.dtype} & {torch.float16, torch.bfloat16}:
        raise TypeError(f"expected numbers of at least 4 bytes, got {x.dtype} and {window.dtype}.")
    result = torch.stft(x, n_fft, hop_length, win_length, window, False, "reflect", normalized, onesided, True)
    return result if return_complex else torch.view_as_real(result)


def stft(
    x: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
    center: bool = True, pad_mode: str = "REFLECT", normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Any:  # fmt: skip
    """Fourier transforms of parts of a signal, each of `n_fft` elements, `hop_length` apart."""
    from msdump.mindspore.ops.array import expand_dims, ones, squeeze
    from msdump.mindspore.ops.padding import pad

    length = n_fft if win_length is None else win_length
    step = n_fft // 4 if hop_length is None else hop_length
    is_complex = x.type_.dtype.startswith("complex")
    if center:
        padded = pad(expand_dims(x, 0) if x.ndim == 1 else x, [n_fft // 2, n_fft // 2], mode=pad_mode.lower())
        x = squeeze(padded, 0) if x.ndim == 1 else padded
    half = not is_complex if onesided is None else onesided
    whole = is_complex if return_complex is None else return_complex
    weights = ones((length,), float32) if window is None else window
    return _stft(x, weights, n_fft, step, length, bool(normalized), half, whole)


publish(__name__)
