"""How a pipeline calls a transform, and what makes a transform random."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from msdump.frontends.mindspore.dataset import config


class RandomTransform(ABC):
    """A transform that draws numbers: from the pipeline's generator in a pipeline, from its own when called by hand."""

    @abstractmethod
    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        """The transformed values; all random numbers come from `generator`."""

    def __call__(self, *values: Any) -> Any:
        return self.draw(config.eager_generator(), *values)


def apply_operation(
    operation: Callable[..., Any], values: tuple[Any, ...], make_generator: Callable[[], np.random.Generator]
) -> tuple[Any, ...]:
    """Values that an operation makes of `values`; a generator is made only for those that draw."""
    if isinstance(operation, RandomTransform):
        made = operation.draw(make_generator(), *values)
    else:
        made = operation(*values)
    return made if isinstance(made, tuple) else (made,)
