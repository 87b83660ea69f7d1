"""What flows through a pipeline: rows that are computed on demand, and repeatable randomness.

A row is a function without arguments that returns one array per column. Nothing is decoded or resized while
a row waits in a shuffle buffer: it holds the few bytes it was made from, and a row that is never taken costs nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

from msdump.mindspore.common.declared import KINDS, Declared
from msdump.mindspore.common.signatures import NAMED
from msdump.mindspore.dataset import checks, config
from msdump.tensors.arrays import Array

Values = tuple[Array, ...]
Row = Callable[[], Values]


@dataclass(frozen=True)
class Pass:
    """One walk over a dataset: where its random numbers come from.

    `seed` belongs to the iterator, `branches` says which inputs of `zip` and `concat` lead to this place, `epoch`
    counts the walks.
    """

    seed: int
    branches: tuple[int, ...] = ()
    epoch: int = 0

    def branch(self, child: int) -> Pass:
        """The same walk, seen from one of several children."""
        return replace(self, branches=(*self.branches, child))

    def at_epoch(self, epoch: int) -> Pass:
        """The same place in another walk."""
        return replace(self, epoch=epoch)

    def generator(self, height: int, *ordinals: int) -> np.random.Generator:
        """Random numbers of the step that is `height` steps above its source.

        They depend on the seed, the epoch, the place and `ordinals` only: not on which thread asks, and not on the
        steps that follow.
        """
        # SeedSequence pads with zeros, so that [1] and [1, 0] would be one seed: every number is made positive.
        words = [self.seed, self.epoch, height, len(self.branches), *self.branches, *ordinals]
        return np.random.default_rng([word + 1 for word in words])


def as_value(value: Any) -> Any:
    """A value of a row: an array, or the dict itself, which a pipeline hands on as it is."""
    return value if isinstance(value, dict) else np.asarray(value)


def holds_objects(value: Any) -> bool:
    """Is it an array of what are neither numbers nor strings?"""
    return not isinstance(value, dict) and bool(value.dtype.hasobject)


def constant(values: Sequence[Any]) -> Row:
    """Row of values that are already there."""
    arrays = tuple(as_value(value) for value in values)
    return lambda: arrays


def kind_of(check: Callable[..., Any], *limits: float) -> Callable[[str, str, Any], Any]:
    """The kind of a setting whose value is what `check` makes of what the script gives."""
    return lambda where, name, value: check(f"{where}({name})", value, *limits)


def define_enums(*enums: type[Enum]) -> None:
    """Let settings have members of these as defaults, such as `Inter.AREA`, and the name of one as their kind."""
    for enum in enums:
        NAMED.update({f"{enum.__name__}.{name}": member for name, member in enum.__members__.items()})
        KINDS[enum.__name__] = kind_of(partial(_member, enum))


def _member(enum: type[Enum], where: str, value: Any) -> Any:
    if not isinstance(value, enum):
        names = ", ".join(f"{enum.__name__}.{member.name}" for member in enum)
        raise TypeError(f"{where}: expected one of {names}, got {type(value).__name__} {value!r}.")
    return value


KINDS |= {
    "chance": kind_of(checks.probability),
    "operations": kind_of(checks.operations),
    "whole": kind_of(checks.whole_number),
    "whole_from_0": kind_of(checks.whole_number, 0),
}


class RandomTransform(Declared, ABC, takes=""):
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
        result = operation.draw(make_generator(), *values)
    else:
        result = operation(*values)
    return result if isinstance(result, tuple) else (result,)
