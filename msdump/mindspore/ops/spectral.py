"""Complex numbers and Fourier transforms."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops.array import swapaxes
from msdump.mindspore.ops.declaration import COMMON_FLOAT, FLOAT, operator
from msdump.mindspore.ops.elementary import conj

# -- complex numbers ---------------------------------------------------------------------------------------------------


@operator("Imag")
def imag(torch: Any, input: Tensor) -> Any:
    """The imaginary part; zeros for real numbers."""
    number: Any = input
    return number.imag.clone() if torch.is_complex(input) else torch.zeros_like(input)


@operator("Complex", operands=COMMON_FLOAT)
def _complex_of(torch: Any, real: Tensor, imag: Tensor) -> Any:
    """Complex numbers of two parts."""
    if real.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"expected parts of dtype float32 or float64, got {real.dtype}.")
    return torch.complex(real, imag)


@operator("ComplexAbs")
def _complex_abs(torch: Any, x: Tensor) -> Any:
    """The length of complex numbers."""
    return torch.abs(x)


@operator("ViewAsReal")
def view_as_real(torch: Any, input: Tensor) -> Any:
    """Real and imaginary parts along a new last axis."""
    return torch.clone(torch.view_as_real(input))


@operator("Sgn")
def sgn(torch: Any, input: Tensor) -> Any:
    """The sign; of a complex number the one of length 1 with its angle."""
    return torch.sgn(input)


@operator("IsReal", has_gradient=False)
def isreal(torch: Any, input: Tensor) -> Any:
    """Where the imaginary part is zero."""
    return torch.isreal(input)


@operator("ConjugateTranspose", init="")
def _conjugate_transpose(torch: Any, x: Tensor, perm: Any) -> Any:
    """Axes in another order, and complex conjugates."""
    return torch.conj_physical(torch.permute(x, perm)).contiguous()


def adjoint(x: Tensor) -> Any:
    """Matrices with their axes exchanged and complex conjugates."""
    turned = swapaxes(x, x.ndim - 2, x.ndim - 1)
    return conj(turned) if x.type_.dtype.startswith("complex") else turned


# -- Fourier transforms ------------------------------------------------------------------------------------------------


def _at_least_float(torch: Any, input: Any) -> Any:
    """Two-byte floats are transformed as float32."""
    return input.float() if input.dtype in (torch.float16, torch.bfloat16) else input


def _transform(op_type: str, name: str, doc: str) -> Any:
    """Along one axis, of n places."""

    def function(torch: Any, input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
        return getattr(torch.fft, name)(_at_least_float(torch, input), n, dim, norm)

    function.__doc__ = doc
    return operator(op_type, operands=FLOAT)(function)


def _transform_2(op_type: str, name: str, doc: str) -> Any:
    def function(torch: Any, input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
        return getattr(torch.fft, name)(_at_least_float(torch, input), s, dim, norm)

    function.__doc__ = doc
    return operator(op_type, operands=FLOAT)(function)


def _transform_n(op_type: str, name: str, doc: str) -> Any:
    def function(torch: Any, input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
        return getattr(torch.fft, name)(_at_least_float(torch, input), s, dim, norm)

    function.__doc__ = doc
    return operator(op_type, operands=FLOAT)(function)


fft = _transform("FFT", "fft", "Fourier transform along an axis.")
ifft = _transform("IFFT", "ifft", "Inverse Fourier transform along an axis.")
rfft = _transform("RFFT", "rfft", "Fourier transform of real numbers along an axis: the first half of it.")
irfft = _transform("IRFFT", "irfft", "Inverse of `rfft`.")
hfft = _transform("HFFT", "hfft", "Fourier transform of a signal whose second half is the conjugate of the first.")
ihfft = _transform("IHFFT", "ihfft", "Inverse of `hfft`.")
fft2 = _transform_2("FFT2", "fft2", "Fourier transform along two axes.")
ifft2 = _transform_2("IFFT2", "ifft2", "Inverse Fourier transform along two axes.")
rfft2 = _transform_2("RFFT2", "rfft2", "Fourier transform of real numbers along two axes.")
irfft2 = _transform_2("IRFFT2", "irfft2", "Inverse of `rfft2`.")
fftn = _transform_n("FFTN", "fftn", "Fourier transform along axes, else along all.")
ifftn = _transform_n("IFFTN", "ifftn", "Inverse Fourier transform along axes, else along all.")
rfftn = _transform_n("RFFTN", "rfftn", "Fourier transform of real numbers along axes, else along all.")
irfftn = _transform_n("IRFFTN", "irfftn", "Inverse of `rfftn`.")


@operator("FFTShift")
def fftshift(torch: Any, input: Tensor, dim: Any = None) -> Any:
    """Frequencies with zero in the middle."""
    return torch.fft.fftshift(input, dim)


@operator("IFFTShift")
def ifftshift(torch: Any, input: Tensor, dim: Any = None) -> Any:
    """Inverse of `fftshift`."""
    return torch.fft.ifftshift(input, dim)


@operator("FFTWithSize")
def _fft_with_size(
    torch: Any, x: Tensor, signal_ndim: int, inverse: bool, real: bool, norm: str = "backward", onesided: bool = True,
    signal_sizes: Any = (),
) -> Any:  # fmt: skip
    """Fourier transform along the last axes; real: of real numbers, onesided: only the half that says all."""
    axes = tuple(range(-signal_ndim, 0))
    if not real:
        return (torch.fft.ifftn if inverse else torch.fft.fftn)(x, None, axes, norm)
    if inverse:
        sizes = tuple(signal_sizes) or None
        if onesided:
            return torch.fft.irfftn(x, sizes, axes, norm)
        return torch.clone(torch.fft.ifftn(x, sizes, axes, norm).real)
    return (torch.fft.rfftn if onesided else torch.fft.fftn)(x, None, axes, norm)


publish(__name__)
