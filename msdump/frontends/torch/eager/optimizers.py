"""Optimizers of a program: whether there are any, and whether gradients wait for them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import torch

from msdump.frontends.torch.eager.tensors import version_of


class Optimizers:
    """Those that are alive. They are looked for, once, as they may be older than the dump and tell nobody of theirs."""

    def __init__(self) -> None:
        self._found: list[weakref.ref[torch.optim.Optimizer]] | None = None

    @property
    def are_known(self) -> bool:
        """Whether the program has an optimizer, so that a step of training ends with one of its."""
        return any(self._alive())

    def look_again(self) -> None:
        """One that nobody knows may have been made."""
        if not self.are_known:
            self._found = None

    def have_gradients(self) -> bool:
        """Whether a parameter has a gradient: none has where the script has begun anew without a step."""
        return any(parameter.grad is not None for parameter in self._parameters())

    def writes(self) -> int:
        """How often parameters were written: what is compiled, and what a script does by hand, tells of no step."""
        return sum(version_of(parameter) or 0 for parameter in self._parameters())

    def _parameters(self) -> Iterator[torch.Tensor]:
        for optimizer in self._alive():
            for group in optimizer.param_groups:
                yield from group["params"]

    def _alive(self) -> Iterator[torch.optim.Optimizer]:
        if self._found is None:
            self._found = [weakref.ref(optimizer) for optimizer in _all()]
        return (optimizer for reference in self._found if (optimizer := reference()) is not None)


def _all() -> list[torch.optim.Optimizer]:
    """By their classes, which instances refer to; other objects are not asked for their class, as proxies would run
    code.
    """
    classes = [torch.optim.Optimizer]
    for kind in classes:
        classes += [below for below in kind.__subclasses__() if below not in classes]
    known = set(classes)
    return [found for found in gc.get_referrers(*classes) if type(found) in known and hasattr(found, "param_groups")]
