"""Lists of mixed precision: which cells and operators are lowered, and which keep float32.

Source: the documentation of `mindspore.amp`. Names that are not there yet are left out of the lists.
"""

from __future__ import annotations

from typing import Any

from msdump.mindspore import nn
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.ops import operations
from msdump.mindspore.ops.primitive import Primitive

_WHITE_CELLS = ("Conv1d", "Conv2d", "Conv3d", "Conv1dTranspose", "Conv2dTranspose", "Conv3dTranspose", "Dense",
                "LSTMCell", "RNNCell", "GRUCell")  # fmt: skip
_WHITE_OPERATORS = ("Conv2D", "Conv3D", "Conv2DTranspose", "Conv3DTranspose", "Conv2DBackpropInput", "MatMul",
                    "BatchMatMul", "PReLU", "ReLU", "Ger")  # fmt: skip
_BLACK_CELLS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm")

# Operators of level auto: computed in the low dtype, in float32, and in the widest dtype of their operands.
AUTO_LOWERED = frozenset({
    "Conv2D", "Conv2DExt", "Conv3D", "Conv3DExt", "Conv2DTranspose", "ConvTranspose2D", "Conv3DTranspose",
    "Convolution", "MatMul", "MatMulExt", "BatchMatMul", "BatchMatMulExt", "PReLU", "Einsum", "Dense", "Addmm",
    "Addbmm", "Addmv", "Baddbmm", "Mv",
})  # fmt: skip
AUTO_RAISED = frozenset({
    "Pow", "ACos", "Asin", "Cosh", "Erfinv", "Exp", "Expm1", "Log", "Log10", "Log1p", "Log2", "Reciprocal", "Rsqrt",
    "Sinh", "Tan", "Softplus", "SoftplusExt", "LayerNorm", "LayerNormExt", "BatchNorm", "BatchNormExt", "GroupNorm",
    "KLDivLoss", "SmoothL1Loss", "MultilabelMarginLoss", "SoftMarginLoss", "TripletMarginLoss", "MultiMarginLoss",
    "BCEWithLogitsLoss", "Pdist", "Cdist", "Renorm", "ReduceProd", "Softmax", "LogSoftmax", "LogSoftmaxExt",
    "CumProd", "CumSum", "CumsumExt", "ProdExt", "SumExt", "Norm", "L1LossExt", "MSELossExt", "NLLLoss", "NLLLoss2d",
})  # fmt: skip
AUTO_PROMOTED = frozenset({
    "Addcdiv", "Addcmul", "Cross", "Dot", "GridSampler2D", "GridSampler3D", "BiasAdd", "AddN", "Concat",
})  # fmt: skip


def white_list() -> list[type[Any]]:
    """Classes of cells and operators that level O1 lowers."""
    return [*_classes(nn, _WHITE_CELLS), *_classes(operations, _WHITE_OPERATORS)]


def black_list() -> list[type[Any]]:
    """Classes of cells that keep float32 at level O2."""
    return _classes(nn, _BLACK_CELLS)


def _classes(module: Any, names: tuple[str, ...]) -> list[type[Any]]:
    return [entry for name in names if (entry := getattr(module, name, None)) is not None]


def check_list(classes: Any, name: str, takes_operators: bool) -> None:
    """Raises: TypeError for anything but a list of classes of cells, or of operators where these may be."""
    if not isinstance(classes, list):
        raise TypeError(f"The type of {name} should be list, but got {type(classes)}")
    bases: tuple[type, ...] = (Cell, Primitive) if takes_operators else (Cell,)
    for item in classes:
        if not isinstance(item, type):
            raise TypeError(f"The element in {name} should be a class, but got {item}")
        if not issubclass(item, bases):
            kinds = " or ".join(base.__name__ for base in bases)
            raise TypeError(f"The element in {name} should be a subclass of {kinds}, but got {item}")
