"""Loss scale managers: the scale of a training, and what decides on the next one."""

from __future__ import annotations

from typing import Any, final

from msdump.mindspore.names import publish
from msdump.mindspore.nn.wrap.loss_scale import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell


class LossScaleManager:
    """Interface of the managers."""

    drop_overflow_update = True

    def get_loss_scale(self) -> float:
        """The scale of the first step."""
        raise NotImplementedError(f"{type(self).__name__}: expected a get_loss_scale() method.")

    def update_loss_scale(self, overflow: bool) -> None:
        """Decide on the next scale."""
        raise NotImplementedError(f"{type(self).__name__}: expected an update_loss_scale(overflow) method.")

    def get_update_cell(self) -> FixedLossScaleUpdateCell | DynamicLossScaleUpdateCell | None:
        """What decides on the next scale; None when the scale never matters."""
        raise NotImplementedError(f"{type(self).__name__}: expected a get_update_cell() method.")


@final
class FixedLossScaleManager(LossScaleManager):
    """One scale for all steps."""

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        if loss_scale < 1:
            raise ValueError(f"The argument 'loss_scale' must be >= 1, but got {loss_scale}.")
        self._loss_scale, self.drop_overflow_update = float(loss_scale), drop_overflow_update

    def get_loss_scale(self) -> float:
        return self._loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Is a step whose gradients overflow left out?"""
        return self.drop_overflow_update

    def update_loss_scale(self, overflow: bool) -> None:
        """The scale stays."""

    def get_update_cell(self) -> FixedLossScaleUpdateCell | None:
        return FixedLossScaleUpdateCell(self._loss_scale) if self.drop_overflow_update else None


@final
class DynamicLossScaleManager(LossScaleManager):
    """A scale that falls on overflow and rises after `scale_window` good steps."""

    def __init__(self, init_loss_scale: float = 2**24, scale_factor: int = 2, scale_window: int = 2000) -> None:
        if init_loss_scale < 1:
            raise ValueError(f"The argument 'init_loss_scale' must be >= 1, but got {init_loss_scale}.")
        if not _is_count(scale_factor) or not _is_count(scale_window):
            raise ValueError(f"scale_factor, scale_window: expected ints >= 1, got {scale_factor}, {scale_window}.")
        self.loss_scale, self.scale_factor, self.scale_window = init_loss_scale, scale_factor, scale_window
        self.increase_ratio, self.decrease_ratio = scale_factor, 1 / scale_factor
        self.cur_iter = 1
        self.last_overflow_iter = 0

    def get_loss_scale(self) -> float:
        return self.loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Steps whose gradients overflow are left out."""
        return True

    def update_loss_scale(self, overflow: bool) -> None:
        """Divide the scale on overflow, but not below 1; multiply it after `scale_window` steps without one."""
        if overflow:
            self.loss_scale = max(self.loss_scale * self.decrease_ratio, 1)
            self.last_overflow_iter = self.cur_iter
        elif (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
            self.loss_scale *= self.increase_ratio
        self.cur_iter += 1

    def get_update_cell(self) -> DynamicLossScaleUpdateCell:
        return DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)


def _is_count(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 1


publish(__name__)
