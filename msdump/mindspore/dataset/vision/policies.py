"""Policies: AutoAugment, RandAugment, TrivialAugmentWide, UniformAugment, RandomSelectSubpolicy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.rows import RandomTransform, apply_operation


class RandomSelectSubpolicy(RandomTransform):
    """One of the lists of (transform, probability), its transforms one after the other."""

    def __init__(self, policy: Sequence[Sequence[tuple[Callable[..., Any], float]]]) -> None:
        where = "RandomSelectSubpolicy(policy)"
        if not isinstance(policy, list) or not policy or not all(isinstance(part, list) and part for part in policy):
            raise ConfigError(f"{where}: expected lists of (transform, probability), got {policy!r}.")
        for part in policy:
            _checked(where, [pair[0] for pair in part])
        self._policy = [[(transform, checks.probability(where, prob)) for transform, prob in part] for part in policy]

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        for transform, prob in self._policy[int(generator.integers(len(self._policy)))]:
            if generator.random() < prob:
                values = apply_operation(transform, values, lambda: generator)
        return values[0] if len(values) == 1 else values


def _checked(where: str, transforms: Sequence[Callable[..., Any]]) -> list[Callable[..., Any]]:
    if not isinstance(transforms, (list, tuple)) or not transforms:
        raise ConfigError(f"{where}: expected a list of at least one transform, got {transforms!r}.")
    for transform in transforms:
        if isinstance(transform, type) or not callable(transform):
            raise TypeError(f"{where}: expected transforms or functions, got {transform!r}.")
    return list(transforms)
