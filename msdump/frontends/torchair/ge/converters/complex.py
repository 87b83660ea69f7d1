"""Complex numbers: made of pairs, taken apart, conjugated."""

from __future__ import annotations

from msdump.frontends.torchair.ge.builder import Builder
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import converter


@converter("aten.complex.default")
def complex_of(ge: Builder, real: GeTensor, imag: GeTensor) -> GeTensor:
    return ge.op("Complex", {"real": real, "imag": imag}, output="out")


@converter("aten.polar.default")
def polar(ge: Builder, length: GeTensor, angle: GeTensor) -> GeTensor:
    real, imag = (ge.op("Mul", {"x1": length, "x2": ge.op(part, {"x": angle})}) for part in ("Cos", "Sin"))
    return complex_of(ge, real, imag)


@converter("aten.view_as_real.default", "aten.view_as_real_copy.default")
def view_as_real(ge: Builder, x: GeTensor) -> GeTensor:
    """Real and imaginary part are the last axis. A copy, where ATen looks at the same memory."""
    parts = {"x0": ge.op("Real", {"input": x}, output="output"), "x1": ge.op("Imag", {"input": x}, output="output")}
    return ge.op("Pack", parts, {"N": 2, "axis": len(x.shape)})


@converter("aten.view_as_complex.default", "aten.view_as_complex_copy.default")
def view_as_complex(ge: Builder, x: GeTensor) -> GeTensor:
    real, imag = ge.multi_op("Unpack", {"x": x}, ("y0", "y1"), {"num": 2, "axis": len(x.shape) - 1})
    return complex_of(ge, real, imag)


@converter("aten._conj.default", "aten.conj_physical.default", "aten._conj_physical.default")
def conj(ge: Builder, x: GeTensor) -> GeTensor:
    """Of real numbers: the tensor under another name. GE has no bit that says that a tensor is to be conjugated."""
    if not x.dtype.is_complex:
        return ge.op("Identity", {"x": x}, hints={"is_alias": True})
    return ge.op("Conj", {"input": x}, output="output")


@converter("aten._neg_view.default")
def neg_view(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("Neg", {"x": x})
