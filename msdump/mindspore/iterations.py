"""Iterations of PyNative: which calls of a script are one step of training."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from weakref import ReferenceType, WeakSet, ref

if TYPE_CHECKING:
    from msdump.engine.graphs import GraphSession
    from msdump.mindspore.common.parameter import Parameter

# So many calls without an update are no step of training: the script has an optimizer that it never calls.
_MOST_CALLS = 256


class TrainingOptimizer(Protocol):
    """A cell that updates parameters."""

    @property
    def parameters(self) -> Iterable[Parameter]: ...


_optimizers: WeakSet[TrainingOptimizer] = WeakSet()


@dataclass(eq=False, slots=True)
class Iteration:
    """One iteration, as far as it has come.

    graphs         ids of those that ran in it
    has_gradients  of parameters that an optimizer trains
    has_ended      an optimizer has made its step
    """

    number: int
    graphs: set[int] = field(default_factory=set)
    has_gradients: bool = False
    has_ended: bool = False
    # The calls: what they are known by, which stays alive so that nothing else gets its id, and their parameters.
    _callers: dict[int, object] = field(default_factory=dict)
    _parameters: set[int] = field(default_factory=set)
    _updated: set[int] = field(default_factory=set)
    _calls: int = 0

    @property
    def is_full(self) -> bool:
        return self._calls >= _MOST_CALLS

    def add(self, caller: object, parameters: Collection[int], optimizer: TrainingOptimizer | None) -> None:
        self._calls += 1
        self._callers[id(caller)] = caller
        self._parameters.update(parameters)
        if optimizer is not None:
            self._updated.add(id(optimizer))

    def takes(self, caller: object, parameters: Collection[int]) -> bool:
        """Whether a call may belong to it that is no update, where it has no gradients yet: a model that is called a
        second time evaluates other data, and what is trained after that is another step."""
        return id(caller) not in self._callers and self._parameters.isdisjoint(parameters)

    def takes_update(self, optimizer: TrainingOptimizer) -> bool:
        return self.has_gradients and id(optimizer) not in self._updated


class Iterations:
    """Of one session in one thread.

    Where an optimizer trains what is called, an iteration is a step of training: it ends with the first update after
    gradients were taken, and updates by other optimizers that follow at once belong to it. Otherwise each call is one.
    """

    def __init__(self, session: GraphSession) -> None:
        # What an iteration keeps alive goes with its session: graphs, and so the observers that saw them.
        self.session: ReferenceType[GraphSession] = ref(session, lambda _: self._forget())
        self.current: Iteration | None = None
        self._known: WeakSet[TrainingOptimizer] = WeakSet()
        self._gets_no_update = False

    def begin(
        self, session: GraphSession, caller: object, parameters: Collection[int], optimizer: TrainingOptimizer | None
    ) -> Iteration:
        """A call begins that is not part of another one.   Returns: its iteration, which may have begun already.

        parameters   ids of those that the call is known to use
        optimizer    which it is the update of
        """
        self._known.update(each for each in _optimizers if holds_one(each, parameters))
        iteration = self.current
        if iteration is None or not self._goes_on(iteration, caller, parameters, optimizer):
            iteration = self.current = Iteration(session.next_iteration())
        iteration.add(caller, parameters, optimizer)
        return iteration

    def _forget(self) -> None:
        self.current = None

    def note_gradients(self, weights: Iterable[Parameter]) -> None:
        """Gradients were taken of these."""
        wanted = {id(weight) for weight in weights}
        training = [optimizer for optimizer in _optimizers if holds_one(optimizer, wanted)]
        self._known.update(training)
        if training and self.current is not None:
            self.current.has_gradients = True

    def note_update(self) -> None:
        """An optimizer has run."""
        self._gets_no_update = False
        if self.current is not None:
            self.current.has_ended = True

    def _goes_on(
        self, iteration: Iteration, caller: object, parameters: Collection[int], optimizer: TrainingOptimizer | None
    ) -> bool:
        """Whether a call belongs to the iteration that runs."""
        if optimizer is not None:
            return iteration.takes_update(optimizer)
        if iteration.has_ended or self._gets_no_update or not self._known:
            return False
        if not iteration.has_gradients:
            return iteration.takes(caller, parameters)
        self._gets_no_update = iteration.is_full
        return not self._gets_no_update


class _Thread(threading.local):
    iterations: Iterations | None = None
    optimizer: TrainingOptimizer | None = None


_thread = _Thread()


def holds_one(optimizer: TrainingOptimizer, parameters: Collection[int]) -> bool:
    """Whether it trains one of these.   parameters: their ids"""
    return bool(parameters) and any(id(each) in parameters for each in optimizer.parameters)


def add_optimizer(optimizer: TrainingOptimizer) -> None:
    """One was made: it is looked for before its first call, as that ends the first step already."""
    _optimizers.add(optimizer)


@contextmanager
def updating(optimizer: TrainingOptimizer) -> Iterator[None]:
    """While this is open an optimizer runs; it ends the step of training that runs in this thread."""
    before, _thread.optimizer = _thread.optimizer, optimizer
    try:
        yield
    finally:
        _thread.optimizer = before
        if _thread.iterations is not None:
            _thread.iterations.note_update()


def note_gradients(weights: Iterable[Parameter]) -> None:
    """Gradients of these were taken in this thread."""
    if _thread.iterations is not None:
        _thread.iterations.note_gradients(weights)


def begin(session: GraphSession, caller: object, parameters: Iterable[Parameter]) -> Iteration:
    """The iteration of a call in this thread that is not part of another one.

    caller       what calls of the same cell or function have in common
    parameters   those that it is known to use
    """
    iterations = _thread.iterations
    if iterations is None or iterations.session() is not session:
        iterations = _thread.iterations = Iterations(session)
    # A script without an optimizer pays for none.
    own = {id(parameter) for parameter in parameters} if _optimizers else ()
    return iterations.begin(session, caller, own, _thread.optimizer)
