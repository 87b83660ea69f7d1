"""`mindspore.dataset.transforms`: transforms of any data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.arrays import Array
from msdump.errors import ConfigError
from msdump.frontends.mindspore.common.dtype import DType, dtype_name
from msdump.frontends.mindspore.dataset import checks
from msdump.frontends.mindspore.dataset.rows import RandomTransform, apply_operation
from msdump.frontends.mindspore.names import explain_missing, publish

Transforms = Sequence[Callable[..., Any]]


class TypeCast:
    """Another dtype, as numpy's `astype` does it."""

    def __init__(self, data_type: Any) -> None:
        self._dtype = DType(dtype_name(data_type)).numpy

    def __call__(self, data: Any) -> Array:
        return np.asarray(data).astype(self._dtype)


class OneHot:
    """A one at the label's place.

    Shapes: () or (1,) -> (num_classes,); (N,) -> (N, num_classes)
    Dtypes: integers only; kept, or float32 with smoothing.
    Raises: TypeError, ConfigError (a label outside [0, num_classes)).
    """

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0) -> None:
        self._num_classes = checks.whole_number("OneHot(num_classes)", num_classes)
        self._smoothing_rate = checks.probability("OneHot(smoothing_rate)", smoothing_rate)

    def __call__(self, label: Any) -> Array:
        labels = np.asarray(label)
        if labels.dtype.kind not in "iu":
            raise TypeError(f"OneHot: expected integer labels, got {labels.dtype}.")
        if labels.size and not 0 <= int(labels.min()) <= int(labels.max()) < self._num_classes:
            raise ConfigError(f"OneHot: expected labels in [0, {self._num_classes - 1}], got {labels.tolist()}.")
        hot: Array = np.equal(labels.reshape(-1, 1), np.arange(self._num_classes)).astype(labels.dtype)
        if self._smoothing_rate:
            hot = (hot * (1.0 - self._smoothing_rate) + self._smoothing_rate / self._num_classes).astype(np.float32)
        return hot.reshape(-1) if labels.shape in ((), (1,)) else hot


class Duplicate:
    """The same value in two columns."""

    def __call__(self, data: Any) -> tuple[Array, Array]:
        array = np.asarray(data)
        return array, array.copy()


class Fill:
    """An array of the same shape and dtype, full of one value."""

    def __init__(self, fill_value: Any) -> None:
        self._fill_value = fill_value

    def __call__(self, data: Any) -> Array:
        return np.full_like(np.asarray(data), self._fill_value)


class Compose(RandomTransform):
    """Transforms one after the other, as one transform."""

    def __init__(self, transforms: Transforms) -> None:
        self._transforms = _checked("Compose", transforms)

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        for transform in self._transforms:
            values = apply_operation(transform, values, lambda: generator)
        return values[0] if len(values) == 1 else values


class RandomApply(RandomTransform):
    """All of the transforms, with probability `prob`, or none."""

    def __init__(self, transforms: Transforms, prob: float = 0.5) -> None:
        self._together = Compose(transforms)
        self._probability = checks.probability("RandomApply(prob)", prob)

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        if generator.random() < self._probability:
            return self._together.draw(generator, *values)
        return values[0] if len(values) == 1 else values


class RandomChoice(RandomTransform):
    """One of the transforms, all equally likely."""

    def __init__(self, transforms: Transforms) -> None:
        self._choices = [Compose([transform]) for transform in _checked("RandomChoice", transforms)]

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        return self._choices[int(generator.integers(len(self._choices)))].draw(generator, *values)


class RandomOrder(RandomTransform):
    """All of the transforms, in random order."""

    def __init__(self, transforms: Transforms) -> None:
        self._transforms = _checked("RandomOrder", transforms)

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        order = generator.permutation(len(self._transforms))
        return Compose([self._transforms[place] for place in order]).draw(generator, *values)


def _checked(where: str, transforms: Transforms) -> tuple[Callable[..., Any], ...]:
    if not isinstance(transforms, Sequence) or not transforms:
        raise ConfigError(f"{where}(transforms): expected a list of at least one transform, got {transforms!r}.")
    for transform in transforms:
        if isinstance(transform, type) or not callable(transform):
            raise TypeError(f"{where}(transforms): expected transforms or functions, got {transform!r}.")
    return tuple(transforms)


publish(__name__)

__getattr__ = explain_missing(__name__)
