"""Optimizers of a program: whether there are any, and whether gradients wait for them."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import torch

from msdump.frontends.torch.eager.tensors import version_of
from msdump.frontends.torch.instances import instances_of


class Optimizers:
    """Those that train what a program calls. They may be older than the dump, and tell nobody that they are there."""

    def __init__(self) -> None:
        # Outermost modules that were called.
        self._seen: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
        self._found: list[weakref.ref[torch.optim.Optimizer]] = []
        # Of the process, as of the first time that they are asked for in an iteration: to look for them takes long.
        self._everywhere: list[weakref.ref[torch.optim.Optimizer]] | None = None
        # Of the first backward pass: every optimizer of the process, with what tells whether a gradient was written.
        self._before: list[tuple[torch.optim.Optimizer, list[object]]] | None = None
        self._has_looked = False
        # Those that have made steps, by the names of their classes; one that is gone leaves its place to the next.
        self._stepped: dict[str, list[Callable[[], object]]] = defaultdict(list)

    def scope_of(self, name: str, optimizer: object) -> str:
        """Scope of the operators of one that makes a step: `optimizer-Adam`; `optimizer-Adam-1` where a program has a
        second one of that class. Otherwise operators of both would be the same ones, with the line of the first.
        """
        stepped = self._stepped[name]
        places = [each() for each in stepped]
        index = next((index for index, each in enumerate(places) if each is optimizer), None)
        if index is None:
            index = next((index for index, each in enumerate(places) if each is None), len(places))
            is_one = isinstance(optimizer, torch.optim.Optimizer)
            stepped[index:] = [weakref.ref(optimizer) if is_one else lambda: None, *stepped[index + 1 :]]
        return f"optimizer-{name}-{index}" if index else f"optimizer-{name}"

    @property
    def are_known(self) -> bool:
        """Whether the program has an optimizer, so that a step of training ends with one of its."""
        return any(True for _ in self._alive())

    def begin(self) -> None:
        """An iteration begins."""
        self._everywhere = None

    def note_call(self, module: torch.nn.Module) -> None:
        """A module is called: optimizers of its parameters are looked for, once."""
        if module not in self._seen:
            self._seen.add(module)
            self.look_for(module.parameters())

    def look_for(self, parameters: Iterable[torch.Tensor]) -> None:
        """Optimizers of these parameters, which takes long."""
        own = {id(parameter) for parameter in parameters}
        if own:
            if self._everywhere is None:
                self._everywhere = [weakref.ref(optimizer) for optimizer in _all()]
            alive = [found for reference in self._everywhere if (found := reference()) is not None]
            self._add(each for each in alive if any(id(one) in own for one in _parameters(each)))

    def begin_backward(self) -> None:
        """The first one tells whose parameters the script trains, where it calls no module."""
        if not self._has_looked:
            self._has_looked = True
            if not self.are_known:
                self._before = [(optimizer, _gradients(optimizer)) for optimizer in _all()]

    def end_backward(self) -> None:
        if self._before is not None:
            self._add(optimizer for optimizer, before in self._before if _gradients(optimizer) != before)
            self._before = None

    def note_step(self) -> None:
        """One has made a step: where none is known, it is one of those that have gradients."""
        if not self.are_known:
            self._add(
                optimizer for optimizer in _all() if any(each.grad is not None for each in _parameters(optimizer))
            )

    def have_gradients(self) -> bool:
        """Whether a parameter has a gradient: none has where the script has begun anew without a step."""
        return any(each.grad is not None for optimizer in self._alive() for each in _parameters(optimizer))

    def writes(self) -> int:
        """How often parameters were written: what is compiled, and what a script does by hand, tells of no step."""
        return sum(version_of(each) or 0 for optimizer in self._alive() for each in _parameters(optimizer))

    def _add(self, optimizers: Iterable[torch.optim.Optimizer]) -> None:
        known = {id(optimizer) for optimizer in self._alive()}
        self._found += [weakref.ref(optimizer) for optimizer in optimizers if id(optimizer) not in known]

    def _alive(self) -> Iterator[torch.optim.Optimizer]:
        return (optimizer for reference in self._found if (optimizer := reference()) is not None)


def _parameters(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _gradients(optimizer: torch.optim.Optimizer) -> list[object]:
    """Other ones when a gradient was written since, or is there for the first time."""
    gradients = (each.grad for each in _parameters(optimizer))
    return [None if gradient is None else (id(gradient), version_of(gradient)) for gradient in gradients]


def _all() -> list[torch.optim.Optimizer]:
    return [found for found in instances_of(torch.optim.Optimizer) if hasattr(found, "param_groups")]
