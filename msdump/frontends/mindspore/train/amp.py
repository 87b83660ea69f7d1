"""Mixed precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msdump.frontends.mindspore.common.dtype import float16, float32
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.names import publish
from msdump.frontends.mindspore.nn.cell import Cell
from msdump.frontends.mindspore.nn.layer.normalization import BatchNorm1d, BatchNorm2d
from msdump.frontends.mindspore.nn.optim.optimizer import Optimizer
from msdump.frontends.mindspore.nn.wrap.cell_wrapper import TrainOneStepCell, WithLossCell
from msdump.frontends.mindspore.nn.wrap.loss_scale import (
    DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell,
    TrainOneStepWithLossScaleCell,
)
from msdump.frontends.mindspore.ops import function as F


class LossScaleManager:
    """Interface of the managers."""

    drop_overflow_update = True

    def get_loss_scale(self) -> float:
        """The scale of the first step."""
        raise NotImplementedError(f"{type(self).__name__}: expected a get_loss_scale() method.")

    def get_update_cell(self) -> FixedLossScaleUpdateCell | DynamicLossScaleUpdateCell | None:
        """What decides on the next scale; None when the scale never matters."""
        raise NotImplementedError(f"{type(self).__name__}: expected a get_update_cell() method.")


class FixedLossScaleManager(LossScaleManager):
    """One scale for all steps."""

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        if loss_scale < 1:
            raise ValueError(f"The argument 'loss_scale' must be >= 1, but got {loss_scale}.")
        self._loss_scale, self.drop_overflow_update = float(loss_scale), drop_overflow_update

    def get_loss_scale(self) -> float:
        return self._loss_scale

    def get_drop_overflow_update(self) -> bool:
        return self.drop_overflow_update

    def get_update_cell(self) -> FixedLossScaleUpdateCell | None:
        return FixedLossScaleUpdateCell(self._loss_scale) if self.drop_overflow_update else None


class DynamicLossScaleManager(LossScaleManager):
    """A scale that falls on overflow and rises after good steps."""

    def __init__(self, init_loss_scale: float = 2**24, scale_factor: int = 2, scale_window: int = 2000) -> None:
        if init_loss_scale < 1:
            raise ValueError(f"The argument 'init_loss_scale' must be >= 1, but got {init_loss_scale}.")
        if scale_factor < 1 or scale_window < 1:
            raise ValueError(f"scale_factor, scale_window: expected ints >= 1, got {scale_factor}, {scale_window}.")
        self._cell = DynamicLossScaleUpdateCell(init_loss_scale, scale_factor, scale_window)

    def get_loss_scale(self) -> float:
        return self._cell.get_loss_scale()

    def get_update_cell(self) -> DynamicLossScaleUpdateCell:
        return self._cell


_LEVELS = ("O0", "O1", "O2", "O3", "auto")


class _OutputTo32(Cell):
    """A network whose result is cast to float32."""

    def __init__(self, backbone: Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *data: Any) -> Any:
        return F.cast(self._backbone(*data), "float32")


def auto_mixed_precision(network: Cell, amp_level: str = "O0", dst_type: Any = float16) -> Cell:
    """The network computing in float16, its result in float32; batch normalisations keep float32 below level O3.

    Edges:  level O0 changes nothing; O1 and auto are as O2: there are no lists of operators.
    Raises: ValueError for an unknown level.
    """
    if amp_level not in _LEVELS:
        raise ValueError(f"The argument `amp_level` must be one of {list(_LEVELS)}, but got {amp_level}.")
    if amp_level == "O0":
        return network
    network.to_float(dst_type)
    if amp_level != "O3":
        for _, cell in network.cells_and_names():
            if isinstance(cell, BatchNorm1d | BatchNorm2d):
                cell.to_float(float32)
    return _OutputTo32(network)


def build_train_network(
    network: Cell,
    optimizer: Optimizer,
    loss_fn: Any = None,
    level: str = "O0",
    boost_level: str = "O0",
    loss_scale_manager: LossScaleManager | None = None,
    **kwargs: Any,
) -> Cell:
    """The cell of one training step: mixed precision, loss, optimizer, loss scale."""
    network = auto_mixed_precision(network, level)
    if loss_fn is not None:
        network = WithLossCell(network, loss_fn)
    manager = loss_scale_manager
    if manager is None and level in ("O2", "O3"):
        manager = FixedLossScaleManager(drop_overflow_update=True)
    if manager is None:
        return TrainOneStepCell(network, optimizer).set_train()
    update = manager.get_update_cell()
    if update is None:
        return TrainOneStepCell(network, optimizer, manager.get_loss_scale()).set_train()
    return TrainOneStepWithLossScaleCell(network, optimizer, update).set_train()


def all_finite(inputs: Sequence[Tensor], status: Any = None) -> Tensor:
    """Are all elements of all tensors finite?"""
    return F.all(F.stack([F.all(F.isfinite(tensor)) for tensor in inputs]))


class StaticLossScaler:
    """Scale that stays."""

    def __init__(self, scale_value: float) -> None:
        self.scale_value = Tensor(float(scale_value))

    def scale(self, inputs: Any) -> Any:
        """Tensors times the scale."""
        return _each(inputs, lambda tensor: F.mul(tensor, self.scale_value))

    def unscale(self, inputs: Any) -> Any:
        """Tensors divided by the scale."""
        return _each(inputs, lambda tensor: F.div(tensor, self.scale_value))

    def adjust(self, grads_finite: Any) -> bool:
        """The scale of the next step. Returns whether it changed."""
        return False


class DynamicLossScaler(StaticLossScaler):
    """Scale that falls on overflow and rises after `scale_window` good steps."""

    def __init__(self, scale_value: float, scale_factor: int, scale_window: int) -> None:
        super().__init__(scale_value)
        self.scale_factor, self.scale_window, self.counter = scale_factor, scale_window, 0

    def adjust(self, grads_finite: Any) -> bool:
        scale = float(self.scale_value)
        if not bool(grads_finite):
            self.counter = 0
            self.scale_value = Tensor(max(1.0, scale / self.scale_factor))
            return True
        self.counter += 1
        if self.counter < self.scale_window:
            return False
        self.counter = 0
        self.scale_value = Tensor(scale * self.scale_factor)
        return True


def _each(inputs: Any, function: Any) -> Any:
    if isinstance(inputs, tuple | list):
        return type(inputs)(_each(item, function) for item in inputs)
    return function(inputs)


publish(__name__)
