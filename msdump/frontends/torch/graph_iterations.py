"""GraphIterations: which iteration each run of a compiled graph belongs to.

The rules are those of eager programs (`Iterations`), where a graph that runs forward stands for the call of a module.
What it knows of a module is the parameters that the graph is given: graphs of the same code with the same parameters
are the same part of a model, captured for other shapes or in the other gradient mode.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import torch

from msdump.frontends.torch.eager.iterations import Iterations
from msdump.frontends.torch.eager.listening import listening
from msdump.frontends.torch.eager.scopes import Scopes
from msdump.frontends.torch.eager.stage import BACKWARD, UPDATE
from msdump.frontends.torch.gradients import gradients_of
from msdump.frontends.torch.session import steps_of
from msdump.frontends.torch.steps import Steps
from msdump.frontends.torch.tensor_map import TensorMap
from msdump.process.sessions import lock

if TYPE_CHECKING:
    from msdump.engine.graphs import GraphSession

# Operators of graphs that are known for their second and further runs in an iteration.
_MAX_REPEATED = 50_000


class GraphIterations:
    """Of one session, and heard of what its process does as long as that is open.

    What different threads run are programs of their own: each step has a number of its own, whichever thread runs it.
    Where a program is watched beside (`msdump.watch`), its iterations are those of the graphs that it calls.
    """

    def __init__(self, session: GraphSession) -> None:
        self.steps = steps_of(session)
        self._session = weakref.ref(session)
        self._modules = _Modules()
        self._threads = threading.local()
        self._is_first = True
        # Of each graph the program that ran it last: backward graphs may run in a thread of autograd's.
        self._programs: weakref.WeakKeyDictionary[Hashable, _Program] = weakref.WeakKeyDictionary()
        self._repeated = 0
        self._is_explicit = False
        if not session.has_ended:
            session.call_before_end(self._end)
            session.call_when_step_ends(self.step)
            listening.begin_steps(self)

    def _end(self) -> None:
        listening.end_steps(self)

    # -- graphs; the caller holds the lock of sessions ----------------------------------------------

    def forward(
        self, graph: Hashable, code: Hashable, args: Sequence[object], weights: Sequence[object], has_gradients: bool
    ) -> int | None:
        """A graph runs forward.   Returns: its iteration; None: it is part of none

        code           what it was made of; another graph of the same code may run in its place
        weights        those of its arguments that are parameters and buffers
        has_gradients  the gradient mode that it was captured in
        """
        leader = self.steps.leader_here
        if leader is not None:
            self._programs.pop(graph, None)
            if leader.is_paused:
                return None
            return self.steps.forward(graph, has_gradients) if leader.current is None else leader.current
        program = self._programs[graph] = self._own() or self._begin_program()
        tensors = [each for each in weights if isinstance(each, torch.Tensor)]
        # Autograd runs a graph of its own without gradients.
        with torch.set_grad_enabled(has_gradients):
            return self._forward(program, graph, code, args, tensors)

    def _forward(
        self,
        program: _Program,
        graph: Hashable,
        code: Hashable,
        args: Sequence[object],
        weights: Sequence[torch.Tensor],
    ) -> int | None:
        rules = program.rules
        if rules.current is not None:
            part = rules.part_of_region(args, None)
            if part == UPDATE:
                rules.end_training()
            if part in (BACKWARD, UPDATE):
                return rules.current
        own = frozenset(map(id, weights))
        key = (code, own) if own else graph
        if own and key not in program.known:
            program.known.add(key)
            rules.look_for_optimizers(weights)
        is_training = torch.is_grad_enabled() and self._modules.train(weights)
        is_full = self._repeated > _MAX_REPEATED and program.steps.has_run(key)
        if is_full or (is_training and not rules.is_training and program.evaluated & own):
            # A step never ends, as where a script evaluates in training mode; or what was evaluated begins to train.
            rules.break_off()
        iteration = rules.of_graph(key, is_training)
        if iteration is not None:
            rules.current = iteration
            program.evaluated.clear()
        if not is_training:
            program.evaluated |= own
        return rules.current

    def backward(self, graph: Hashable) -> int | None:
        """A graph runs backward.   Returns: its iteration where its forward run is not known; as `forward`"""
        program = self._programs.get(graph)
        if program is not None:
            program.rules.note_backward()
            return program.steps.iteration
        self.steps.backward()
        leader = self.steps.leader_here
        return None if leader is not None and leader.is_paused else self.steps.iteration

    def note_repeated(self, operators: int) -> None:
        """A graph runs once more in an iteration than it ever did, with so many operators, which get other names."""
        self._repeated += operators

    # -- programs -----------------------------------------------------------------------------------

    def _own(self) -> _Program | None:
        """That of this thread, if it has run a graph."""
        return getattr(self._threads, "program", None)

    def _begin_program(self) -> _Program:
        """The first one leads to the report: other threads may train something else at the same time."""
        session = self._session()
        assert session is not None
        steps = self.steps if self._is_first else Steps(session.next_iteration, self.steps)
        program = self._threads.program = _Program(steps)
        program.rules.is_explicit = self._is_explicit
        program.rules.note_gradients = gradients_of(session).note
        if self._is_first:
            session.count_training(program.rules.counts.so_far)
        self._is_first = False
        return program

    # -- what is heard of the process ---------------------------------------------------------------

    def step(self) -> None:
        """The script says that a step has ended; from the first time on nothing else ends one."""
        with lock:
            self._is_explicit = True
            program = self._own()
            if program is not None:
                program.rules.is_explicit = True
                program.rules.end_step()
                program.rules.current = None

    def is_concerned(self) -> bool:
        return self._own() is not None and self.steps.leader_here is None

    def enter_optimizer(self, name: str, optimizer: object) -> None:
        with lock:
            self._here.rules.enter_optimizer(name, optimizer)

    def leave_optimizer(self) -> None:
        with lock:
            self._here.rules.leave_optimizer()
            self._keep_counts()

    def enter_scaler(self) -> None:
        with lock:
            self._here.rules.enter_scaler()

    def leave_scaler(self, optimizer: object) -> None:
        with lock:
            self._here.rules.leave_scaler(optimizer)
            if optimizer is not None:
                self._keep_counts()

    def enter_backward(self, accumulates: bool) -> None:
        program = self._here
        with lock:
            was_over = program.steps.is_over
            program.rules.enter_backward(accumulates)
            if not program.rules.has_optimizers:
                # Then a graph that runs backward ends what runs forward, and no other backward does.
                program.steps.is_over = was_over

    def leave_backward(self) -> None:
        with lock:
            self._here.rules.leave_backward()

    @property
    def _here(self) -> _Program:
        program = self._own()
        assert program is not None  # as it is concerned
        return program

    def _keep_counts(self) -> None:
        session = self._session()
        if session is not None and self._here.rules.counts.is_round:
            session.save_training()


class _Program:
    """What one thread runs.

    known      parts of models whose optimizers were looked for
    evaluated  parameters of what was called without gradients in this iteration
    """

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.rules = Iterations(steps, None, Scopes(lambda module: None))
        self.known: set[Hashable] = set()
        self.evaluated: set[int] = set()


class _Modules:
    """Whether modules are in training mode, found by their parameters: a graph does not tell which it was made of."""

    def __init__(self) -> None:
        # None: no module has the tensor.
        self._owners: TensorMap[weakref.ref[torch.nn.Module] | None] = TensorMap()

    def train(self, weights: Sequence[torch.Tensor]) -> bool:
        """Whether a module that has one of these is in training mode; True where none has."""
        if not all(each in self._owners for each in weights):
            self._look(weights)
        owners = [reference() for each in weights if (reference := self._owners.get(each)) is not None]
        modes = {owner.training for owner in owners if owner is not None}
        return not modes or True in modes

    def _look(self, weights: Sequence[torch.Tensor]) -> None:
        """At all modules of the process, which takes long. Their classes are asked, as proxies would run code."""
        for found in gc.get_objects():
            if issubclass(type(found), torch.nn.Module):
                own = vars(found)
                for tensors in (own.get("_parameters"), own.get("_buffers")):
                    for tensor in list(tensors.values()) if isinstance(tensors, dict) else ():
                        for each in (tensor, getattr(tensor, "_local_tensor", None)):  # that of a DTensor
                            if isinstance(each, torch.Tensor) and each not in self._owners:
                                self._owners.set(each, weakref.ref(found))
        for each in weights:
            if each not in self._owners:
                self._owners.set(each, None)


def iterations_of(session: GraphSession) -> GraphIterations:
    """Those of all graphs of the session."""
    return session.shared(GraphIterations)
