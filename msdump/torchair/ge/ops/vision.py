"""Images (NCHW): sampled on a grid, cut into patches and put together again."""

from __future__ import annotations

from msdump.torchair.ge.rows import Attr, Fixed, Sizes, choice, lists, row

_INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


_SAMPLING = choice("interpolation_mode", _INTERPOLATIONS), choice("padding_mode", _PADDINGS), Attr("align_corners")

row("aten.affine_grid_generator.default", "AffineGrid", "theta", Sizes("output_size"), Attr("align_corners"))
row("aten.grid_sampler_2d.default", "GridSampler2D", "x", "grid", *_SAMPLING)
# Both gradients, whichever of them is read.
row("aten.grid_sampler_2d_backward.default", "GridSampler2DGrad", "grad", "x", "grid", *_SAMPLING, Fixed([True, True]),
    output="dx dgrid")  # fmt: skip
row("aten.im2col.default", "Im2col", "x", *lists("ksizes", "dilations", "pads", "strides"),
    order="x ksizes strides dilations padding_mode pads", attrs={"padding_mode": "CALCULATED"})  # fmt: skip
row("aten.col2im.default", "Col2im", "x", Sizes("output_size"), *lists("kernel_size", "dilation", "padding", "stride"))
