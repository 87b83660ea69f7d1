"""Mixed precision: networks that compute partly in float16 or bfloat16, and the cell of one training step with it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, final

from msdump.mindspore import nn
from msdump.mindspore.common.dtype import DType, bfloat16, dtype_name, float16, float32
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.context import get_context
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.layer.container import SequentialCell
from msdump.mindspore.nn.optim.optimizer import Optimizer
from msdump.mindspore.nn.wrap.cell_wrapper import TrainOneStepCell, WithLossCell
from msdump.mindspore.nn.wrap.loss_scale import TrainOneStepWithLossScaleCell
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops import operations
from msdump.mindspore.ops.primitive import Primitive
from msdump.mindspore.precision import Precision, computing_in
from msdump.mindspore.train.loss_scale_manager import DynamicLossScaleManager, LossScaleManager

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


_LEVELS = ("O0", "O1", "O2", "O3", "auto")
_BOOST_LEVELS = ("O0", "O1", "O2")
_FLOATS = (float16, float32, bfloat16)


def cast_floats(outputs: Any, dtype: DType) -> Any:
    """Float tensors among outputs, nested as they are, in another dtype."""
    if isinstance(outputs, tuple | list):
        return type(outputs)(cast_floats(item, dtype) for item in outputs)
    return F.cast(outputs, dtype) if isinstance(outputs, Tensor) and outputs.dtype in _FLOATS else outputs


class _Wrapped(Cell):
    """A network whose result is cast."""

    to_dtype = float32

    def __init__(self, backbone: Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *inputs: Any, **kwargs: Any) -> Any:
        return cast_floats(self._backbone(*inputs, **kwargs), self.to_dtype)


@final
class _OutputTo32(_Wrapped):
    """A network whose result is cast to float32."""


@final
class _OutputTo16(_Wrapped):
    """A cell that keeps float32 inside a lowered network: its result is cast to the network's dtype."""

    def __init__(self, backbone: Cell, dtype: DType) -> None:
        super().__init__(backbone)
        self.to_dtype = dtype


def get_white_list() -> list[type[Any]]:
    """A copy of the list of cells and operators that level O1 lowers."""
    return white_list()


def get_black_list() -> list[type[Any]]:
    """A copy of the list of cells that keep float32 at level O2."""
    return black_list()


def auto_mixed_precision(network: Any, amp_level: str = "O0", dtype: DType = float16) -> Any:
    """The network computing in `dtype` as far as the level says.

    amp_level   O0: unchanged. O1: cells and operators of the white list. O2: all but the cells of the black list.
                O3: all. auto: by lists of operators that are lowered, raised to float32, or take the widest operand.
    Edges:  results are float32 but for level auto; only auto takes a function.
    Raises: ValueError for an unknown level or dtype; TypeError for anything but a Cell.
    """
    if not (isinstance(network, Cell) or (amp_level == "auto" and callable(network))):
        raise TypeError(f"For amp_level '{amp_level}', the network type should be Cell.")
    _check_dtype(dtype)
    if amp_level not in _LEVELS:
        raise ValueError(f"The amp level {amp_level} is not supported. Use one of {list(_LEVELS)}.")
    if amp_level == "O1":
        return _lower_listed(network, white_list(), dtype)
    if amp_level == "O2":
        return _OutputTo32(_lower_all_but(network, tuple(black_list()), dtype))
    if amp_level == "O3":
        return _OutputTo32(network.to_float(dtype))
    return _lower_by_operator(network, dtype) if amp_level == "auto" else network


def custom_mixed_precision(
    network: Cell, *, white_list: list[type[Any]] | None = None, black_list: list[type[Any]] | None = None,
    dtype: DType = float16,
) -> Cell:  # fmt: skip
    """The network with the cells and operators of `white_list` lowered, or all but the cells of `black_list`.

    Raises: TypeError for anything but a Cell and lists of classes; ValueError without a list, or with both.
    """
    if not isinstance(network, Cell):
        raise TypeError("The network type should be Cell.")
    if (white_list is None) == (black_list is None):
        raise ValueError("For custom_mixed_precision, expected either white_list or black_list.")
    _check_dtype(dtype)
    listed, bases = (black_list, (Cell,)) if white_list is None else (white_list, (Cell, Primitive))
    if not isinstance(listed, list) or not all(isinstance(each, type) and issubclass(each, bases) for each in listed):
        names = " or ".join(base.__name__ for base in bases)
        raise TypeError(f"For custom_mixed_precision, expected a list of subclasses of {names}, but got {listed!r}.")
    if white_list is not None:
        return _lower_listed(network, listed, dtype)
    return _OutputTo32(_lower_all_but(network, tuple(listed), dtype))


def _check_dtype(dtype: Any) -> None:
    if dtype not in (float16, bfloat16):
        raise ValueError(f"The dtype should be one of (mstype.float16, mstype.bfloat16), but got {dtype}.")


def _lower_listed(network: Cell, listed: Sequence[type[Any]], dtype: DType) -> Cell:
    """Lower cells and operators of these classes, where the script did not choose a dtype itself."""
    name = dtype_name(dtype)
    cells = tuple(entry for entry in listed if issubclass(entry, Cell))
    operators = frozenset(entry.__name__ for entry in listed if not issubclass(entry, Cell))
    whole, partly = Precision(name, restores=True), Precision(name, operators, restores=True)
    for _, cell in network.cells_and_names():
        if cell.precision is None and isinstance(cell, cells):
            for _, inner in cell.cells_and_names():
                inner.set_precision(whole)
    if network.precision is None:
        network.set_precision(partly)
    return network


def _lower_all_but(network: Cell, kept: tuple[type[Any], ...], dtype: DType) -> Cell:
    """Lower a network; cells of the classes `kept` compute in float32 and give `dtype`."""
    network.to_float(dtype)
    _keep(network, kept, dtype)
    return network


def _keep(network: Cell, kept: tuple[type[Any], ...], dtype: DType) -> None:
    for name, child in network.name_cells().items():
        if isinstance(child, kept):
            replace_child(network, name, _OutputTo16(child.to_float(float32), dtype))
        else:
            _keep(child, kept, dtype)


def replace_child(network: Cell, name: str, child: Cell) -> None:
    """Put `child` in the place of a child; parameters keep their names."""
    was_prefixing = network._auto_prefix
    object.__setattr__(network, "_auto_prefix", False)
    try:
        if isinstance(network, SequentialCell) and name.isdigit():
            network[int(name)] = child
        else:
            setattr(network, name, child)
    finally:
        object.__setattr__(network, "_auto_prefix", was_prefixing)


def _lower_by_operator(network: Any, dtype: DType) -> Any:
    precision = Precision(dtype_name(dtype), AUTO_LOWERED, AUTO_RAISED, AUTO_PROMOTED)
    if isinstance(network, Cell):
        if network.precision is None:
            network.set_precision(precision)
        return network

    @functools.wraps(network)
    def lowered(*args: Any, **kwargs: Any) -> Any:
        with computing_in(precision):
            return network(*args, **kwargs)

    return lowered


# -- one training step -------------------------------------------------------------------------------------------------


def build_train_network(
    network: Cell, optimizer: Optimizer, loss_fn: Any = None, level: str = "O0", boost_level: str = "O0", **kwargs: Any
) -> Cell:
    """The cell of one training step: mixed precision, loss, optimizer, loss scale.

    kwargs   cast_model_type, keep_batchnorm_fp32, loss_scale_manager take the place of what the level says
    Edges:   level O2 scales the loss dynamically unless told otherwise; `boost_level` changes nothing.
    Raises:  TypeError for an optimizer that is none; ValueError for unknown levels and arguments.
    """
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"For 'build_train_network', 'optimizer' must be an Optimizer, but got {type(optimizer)}.")
    level = _checked_level(level, boost_level)
    unknown = sorted(set(kwargs) - {"cast_model_type", "keep_batchnorm_fp32", "loss_scale_manager"})
    if unknown:
        raise ValueError(f"Unsupported arg '{unknown[0]}'")
    network, is_lowered = _lowered_network(network, level, kwargs)
    if loss_fn is not None:
        network = _loss_in_float32(network, loss_fn) if is_lowered else WithLossCell(network, loss_fn)
    manager = kwargs.get("loss_scale_manager", DynamicLossScaleManager() if level == "O2" else None)
    if manager is None:
        return TrainOneStepCell(network, optimizer).set_train()
    if not isinstance(manager, LossScaleManager):
        raise TypeError(f"loss_scale_manager: expected a LossScaleManager, got {type(manager).__name__}.")
    update = manager.get_update_cell()
    if update is None:
        return TrainOneStepCell(network, optimizer, manager.get_loss_scale()).set_train()
    return TrainOneStepWithLossScaleCell(network, optimizer, update).set_train()


def _checked_level(level: Any, boost_level: Any) -> str:
    if not isinstance(level, str):
        raise TypeError(f"The argument `level` must be a string in {list(_LEVELS)}, but got type {type(level)}.")
    for name, value, allowed in (("level", level, _LEVELS), ("boost_level", boost_level, _BOOST_LEVELS)):
        if value not in allowed:
            raise ValueError(f"The '{name}' must be in {list(allowed)}, but got {value}.")
    if level != "auto":
        return level
    by_target = {"GPU": "O2", "Ascend": "O3"}
    if get_context("device_target") not in by_target:
        raise ValueError("Level `auto` only support when `device_target` is GPU or Ascend.")
    return by_target[get_context("device_target")]


def _lowered_network(network: Cell, level: str, options: dict[str, Any]) -> tuple[Cell, bool]:
    """The network of a level, and whether its loss needs float32.   Source: `_config_level` of MindSpore 2.0."""
    keeps = options.get("keep_batchnorm_fp32", level == "O2")
    cast_to = options.get("cast_model_type", float16 if level in ("O2", "O3") else float32)
    if cast_to == float16:
        network = _lower_all_but(network, tuple(black_list()), float16) if keeps else network.to_float(float16)
        return network, True
    if level == "O2" and not keeps:
        return network.to_float(float16), False
    if level in ("O2", "O3"):
        return network, False
    return auto_mixed_precision(network, level), False


def _loss_in_float32(network: Cell, loss_fn: Any) -> Cell:
    cell = _Float32Loss(network, loss_fn)
    # Source: the cell has the name of the plain one in scopes.
    object.__setattr__(cell, "cls_name", WithLossCell.__name__)
    return cell


@final
class _Float32Loss(WithLossCell):
    """Network and loss, which gets the network's result and the label in float32."""

    def construct(self, data: Tensor, label: Tensor) -> Any:
        out = self._backbone(data)
        return self._loss_fn(cast_floats(out, float32), cast_floats(label, float32))


publish(__name__, "DynamicLossScaleManager", "LossScaleManager")
