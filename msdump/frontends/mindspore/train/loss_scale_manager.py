"""Loss scale managers: how Model.train scales the loss."""

from __future__ import annotations

from msdump.frontends.mindspore.nn.wrap.loss_scale import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell


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
