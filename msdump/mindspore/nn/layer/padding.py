"""Layers that put margins around their data: constant, mirrored, or of the border."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.declared import variants
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.declared import Declared
from msdump.mindspore.ops import function as F


def _checked(cls_name: str, padding: Any, axes: int, is_negative_fine: bool) -> tuple[int, ...]:
    """Sizes before and after each axis, the last first.   Raises: TypeError, ValueError."""
    if isinstance(padding, int) and not isinstance(padding, bool):
        padding = (padding,) * (2 * axes)
    if not isinstance(padding, tuple) or not all(isinstance(item, int) for item in padding):
        raise TypeError(f"For '{cls_name}' the input 'padding' must be an integer or tuple of them, got {padding!r}.")
    if len(padding) % 2 or len(padding) > 2 * axes:
        raise ValueError(
            f"For '{cls_name}', the length of 'padding' must be even and at most {2 * axes}, but got {len(padding)}."
        )
    if not is_negative_fine and min(padding, default=0) < 0:
        raise ValueError(f"For '{cls_name}' every element in 'padding' must be >= 0, but got {padding}.")
    return padding


class _Pad(Declared, takes="padding"):
    """Base of padding layers.   axes: how many axes get margins, the last ones."""

    axes = 1
    padding: Any
    is_negative_fine = False

    def _set_up(self) -> None:
        self.padding = _checked(self.cls_name, self.padding, self.axes, self.is_negative_fine)

    def construct(self, x: Tensor) -> Any:
        if x.ndim < len(self.padding) // 2:
            raise ValueError(
                f"For '{self.cls_name}', the input must have {len(self.padding) // 2} axes or more, but got {x.ndim}."
            )
        return self.padded(x)

    def padded(self, x: Tensor) -> Any:
        """The tensor with its margins; families write it."""
        raise NotImplementedError


class _ConstantPad(_Pad, takes="padding value"):
    """One value around the last axes; negative sizes cut."""

    is_negative_fine = True
    value: Any = 0

    def _set_up(self) -> None:
        super()._set_up()
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise TypeError(
                f"For '{self.cls_name}', the type of parameter 'value' must be in [int, float], but got "
                f"{type(self.value)}"
            )

    def padded(self, x: Tensor) -> Any:
        return F.pad(x, self.padding, "constant", self.value)


class _ReflectionPad(_Pad):
    """Mirrors the last axes at their borders, without the border itself."""

    def padded(self, x: Tensor) -> Any:
        pairs = [self.padding[place : place + 2] for place in range(0, len(self.padding), 2)]
        return F.mirror_pad(x, (*((0, 0),) * (x.ndim - len(pairs)), *reversed(pairs)), "REFLECT")


class _ReplicationPad(_Pad):
    """Repeats the borders of the last axes."""

    def padded(self, x: Tensor) -> Any:
        is_single = x.ndim == self.axes + 1
        result = F.pad(F.expand_dims(x, 0) if is_single else x, self.padding, "replicate")
        return F.squeeze(result, 0) if is_single else result


class ZeroPad2d(_ConstantPad, takes="padding"):
    """Zeros around the last two axes."""

    axes = 2


for _family in (_ConstantPad, _ReflectionPad, _ReplicationPad):
    for _axes in (1, 2, 3):
        _row = {f"{_family.__name__[1:]}{_axes}d": (str(_family.__doc__), {"axes": _axes})}
        globals().update(variants(_family, __name__, **_row))

publish(__name__)
