"""Iterations of a program: when one begins, and which part of it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch

from msdump.frontends.torch.eager.optimizers import Optimizers
from msdump.frontends.torch.eager.regions import Region
from msdump.frontends.torch.eager.scopes import Scopes
from msdump.frontends.torch.eager.stage import BACKWARD, FORWARD, SETUP, UPDATE
from msdump.frontends.torch.eager.training_counts import TrainingCounts
from msdump.frontends.torch.steps import Steps

if TYPE_CHECKING:
    from torch.autograd.graph import Node


class Iterations:
    """Of one program. The caller holds what keeps operators of its program apart.

    Where there is an optimizer, an iteration is a step of training: it ends with the first step of an optimizer after
    a backward, or where the parameters were written or their gradients are gone without one. The next call of a module
    begins another. What is called without gradients, or in evaluation mode, before a step of training has begun is
    evaluation, where each call of a module that was called already begins an iteration.
    Without an optimizer an iteration begins as `Steps` says, when a module is called; where no module is called, with
    the first operator that is recorded for gradients after a backward. A script that calls `step` ends its iterations
    itself. Outside of training a region that calls no module, and ran before the first one was called, begins the next
    iteration where it runs again behind that: a loop has come around.

    model        whose calls begin iterations; None: the outermost modules that are called
    current      number of the iteration that runs; None before the first one and after `step`
    is_explicit  whether the script says when an iteration ends
    is_paused    whether what runs is part of no iteration
    has_modules  whether calls of modules begin iterations
    is_setup     whether what runs is before the first step: a script that is watched as a whole builds its model first
    optimizers   names of those whose steps are under way, the innermost last
    scalers      how many calls of scalers of the loss are under way
    counts       of steps of training, by what of this was seen
    note_gradients  called with the number of the iteration, an optimizer that begins a step, and whether a scaler of
                 the loss has left that out
    """

    def __init__(self, steps: Steps, model: torch.nn.Module | None, scopes: Scopes, has_setup: bool = False) -> None:
        self.model = model
        self.current: int | None = None
        self.is_explicit = False
        self.is_paused = False
        self.has_modules = model is not None
        self.optimizers: list[str] = []
        self.scalers = 0
        self.is_setup = False
        self._expects_setup = has_setup
        self._steps = steps
        self._scopes = scopes
        self._backwards = _Backwards()
        self._training = Optimizers()
        self._step = _Step()
        self.counts = TrainingCounts()
        self.note_gradients: Callable[[int | None, object, bool], None] = _ignore
        self._stepping: object = None
        self._has_stepped = False
        # Regions that ran before the first module of the iteration, and whether one was called.
        self._led_in: set[Hashable] = set()
        self._has_called = False

    # -- which iteration --------------------------------------------------------------------------

    def of_call(self, module: torch.nn.Module | Region) -> int | None:
        """An outermost module is called, or a region that has modules inside.

        Returns: the iteration that begins; None: the current one goes on.
        """
        self.has_modules = True
        self._expects_setup = False
        is_ours = self.model is None or module is self.model or isinstance(module, Region)
        if not is_ours or (self.current is not None and self.is_explicit):
            return None
        is_training = torch.is_grad_enabled()
        if isinstance(module, torch.nn.Module):
            is_training &= module.training
            self._training.note_call(module)
        iteration = self._begin(module, is_training)
        self._has_called = True
        return iteration

    def of_graph(self, graph: Hashable, is_training: bool) -> int | None:
        """A compiled graph runs forward that shows its own operators, in no call of a module that is looked at.

        graph   what all of its runs have in common that are calls of the same module
        Returns: as `of_call`.
        """
        self.has_modules = True
        if self.current is not None and self.is_explicit:
            return None
        return self._begin(graph, is_training)

    def look_for_optimizers(self, parameters: Iterable[torch.Tensor]) -> None:
        """Of these parameters, which a compiled graph is given for the first time. It takes long."""
        self._training.look_for(parameters)

    def of_region(self, caller: Hashable) -> int | None:
        """A region runs that calls no module.   caller: what its calls from one place have in common

        Returns: as `of_call`.
        """
        if self.is_explicit or self.model is not None or self._scopes.is_inside:
            return None
        if not self._has_called:
            self._led_in.add(caller)
            return None
        is_training = self._step.is_training and self._training.are_known
        has_gradients = torch.is_grad_enabled()
        if is_training or caller not in self._led_in or has_gradients != self._steps.has_gradients:
            return None
        self._steps.backward()
        iteration = self._new(caller, False)
        self._led_in.add(caller)
        return iteration

    @property
    def waits_for_operator(self) -> bool:
        """Whether an operator outside of all modules may begin an iteration: where none is called, or where a step of
        training has ended, as the data of the next one may be made before its module is called.
        """
        return not self.scalers and (self.current is None or not self.has_modules or self._step.has_ended)

    @property
    def has_ended(self) -> bool:
        """Whether the step of training that the iteration is has ended."""
        return self._step.has_ended

    @property
    def has_optimizers(self) -> bool:
        """Whether the program has an optimizer, as far as is known by now."""
        return self._training.are_known

    @property
    def is_training(self) -> bool:
        """Whether gradients are wanted of what the iteration calls."""
        return self._step.is_training

    def without_modules(self, is_look: bool = False) -> int | None:
        """An operator runs that no module has announced.   Returns: as `of_call`.

        is_look   whether it only looks at a value, as a script prints its loss when a step has ended
        """
        is_new = not self.is_explicit and self._steps.is_over and torch.is_grad_enabled() and not self.optimizers
        if self._step.has_ended:
            is_new &= not is_look and not self._scopes.is_inside
        if (is_new and self._step.has_ended) or (self.model is None and (self.current is None or is_new)):
            # Whether it is training says the module that is called.
            iteration = self._begin("script", torch.is_grad_enabled() and not self.has_modules)
            if self._expects_setup:
                self._expects_setup, self.is_setup = False, True
                self._step = _Step()
            return iteration
        return None

    def leave_setup(self, caller: Hashable, is_training: bool) -> int:
        """The first step begins.   Returns: its iteration, the number of which what was before it has had, too."""
        assert self.current is not None
        self.is_setup = False
        self._step = _Step(is_training)
        self._steps.go_on(caller, torch.is_grad_enabled())
        return self.current

    def _begin(self, caller: Hashable, is_training: bool) -> int | None:
        """The iteration that begins with a call; None: the current one goes on."""
        if self.is_setup:
            return self.leave_setup(caller, is_training)
        if self.current is not None and self._training.are_known:
            if self._goes_on(caller, is_training):
                self._step.is_training |= is_training
                self._steps.go_on(caller, torch.is_grad_enabled())
                return None
            self._steps.backward()
        return self._new(caller, is_training)

    def _new(self, caller: Hashable, is_training: bool) -> int | None:
        iteration = self._steps.forward(caller, torch.is_grad_enabled())
        if iteration == self.current:
            return None
        self._step = _Step(is_training)
        self._led_in.clear()
        self._has_called = False
        self._training.begin()
        return iteration

    def _goes_on(self, caller: Hashable, is_training: bool) -> bool:
        """Whether a call belongs to the iteration that runs."""
        step = self._step
        if step.has_ended:
            return False
        if self.optimizers:
            return True  # a closure
        if not step.is_training:
            return not self._steps.has_run(caller)
        if not is_training or not step.has_gradients:
            return True
        return self._training.have_gradients() and self._training.writes() == step.writes

    def calls_model(self, args: Sequence[object]) -> bool:
        """Whether a region that is given these calls modules, outside of all that are called, as parameters tell."""
        if self._scopes.is_inside:
            return False
        parameters = _parameters(args)
        if self.model is None:
            return bool(parameters)
        own = {id(parameter) for parameter in self.model.parameters()} if parameters else ()
        return any(id(parameter) in own for parameter in parameters)

    # -- which part -------------------------------------------------------------------------------

    def part(self, node: Node | None) -> int:
        """Of the operator that runs.   node: of autograd, which runs it; None outside of a backward pass"""
        if node is not None:
            return BACKWARD
        return SETUP if self.is_setup else UPDATE if self._is_updating() else FORWARD

    def part_of_region(self, args: Sequence[object], node: Node | None) -> int:
        """As `part`, of a region, before an iteration begins with it.

        It is an update where it is given the gradients of parameters that it is given.
        """
        if self.is_in_backward(node):
            return BACKWARD
        gradients = {id(each.grad) for each in _parameters(args) if each.grad is not None}
        is_update = any(id(each) in gradients for each in args) or self._is_in_optimizer()
        return UPDATE if is_update else FORWARD

    def is_in_backward(self, node: Node | None) -> bool:
        """Compiled autograd runs nodes without their being current; threads of autograd are in no call of it."""
        return node is not None or self._backwards.depth > 0

    def _is_in_optimizer(self) -> bool:
        """A closure that an optimizer calls needs gradients, and is no part of it."""
        return bool(self.optimizers) and not torch.is_grad_enabled()

    def _is_updating(self) -> bool:
        """In an optimizer, or between the backward and the next iteration, as where gradients are clipped."""
        if self.optimizers:
            return not torch.is_grad_enabled()
        return self._steps.is_over and not (self.is_explicit and self._scopes.is_inside)

    # -- what happens -----------------------------------------------------------------------------

    def end_step(self) -> None:
        """What is called next begins another iteration, but where the script says when one ends."""
        self._steps.backward()

    def enter_backward(self, accumulates: bool) -> None:
        """accumulates: whether it leaves gradients in parameters; what only asks for some is inside of a step."""
        self._backwards.depth += 1
        if not self.is_paused:
            self._step.is_training = self._step.has_run_backward = True
            if accumulates and self._backwards.depth == 1:
                self._training.begin_backward()
            if accumulates and not self._step.has_gradients:
                self._step.has_gradients = True
                self._step.writes = self._training.writes()
                self.counts.begin_iteration()
            self._backwards.ends_forward = accumulates or not self._training.are_known
            self.note_backward()

    def note_backward(self) -> None:
        """An operator of a backward pass runs."""
        if self._backwards.ends_forward:
            self._steps.backward()

    @property
    def is_running_backward(self) -> bool:
        """Whether this thread is in a call of a backward pass."""
        return self._backwards.depth > 0

    def leave_backward(self) -> None:
        self._backwards.depth -= 1
        if not self._backwards.depth:
            self._training.end_backward()

    def enter_optimizer(self, name: str, optimizer: object) -> None:
        if not self.optimizers:
            self._stepping = optimizer
            if not self.is_paused:
                self.note_gradients(self.current, optimizer, False)
        self.optimizers.append(self._training.scope_of(name, optimizer))

    def leave_optimizer(self) -> None:
        """Its step is counted where it is no part of that of another one."""
        if self.optimizers:
            self.optimizers.pop()
        self._training.note_step()
        if not self.optimizers:
            self._count_step(self._stepping)
            self._stepping = None
        self.end_training()

    def enter_scaler(self) -> None:
        self.scalers += 1
        self._has_stepped = False

    def leave_scaler(self, optimizer: object) -> None:
        """optimizer: as of `StepListener`. A step that a scaler skips counts as one that was made."""
        self.scalers -= 1
        if optimizer is not None:
            if not self._has_stepped:
                self._count_step(optimizer)
                if not self.is_paused:
                    self.note_gradients(self.current, optimizer, True)
            self.end_training()

    def _count_step(self, optimizer: object) -> None:
        self._has_stepped = True
        if issubclass(type(optimizer), torch.optim.Optimizer) and not self.is_paused:
            self.counts.note_step(cast("torch.optim.Optimizer", optimizer))

    def break_off(self) -> None:
        """What is called next begins another iteration, though no step of training has ended."""
        self._step.has_ended = True
        self._steps.backward()

    def end_training(self) -> None:
        """An optimizer has made a step, or something has decided that it makes none, as a scaler of the loss does."""
        if not self.optimizers:
            self._step.has_ended |= self._step.has_run_backward
        self._steps.backward()


@dataclass(slots=True)
class _Step:
    """What is known of the iteration that runs.

    is_training       gradients are wanted of what it calls
    has_run_backward  as it says
    has_gradients     a backward has left gradients in parameters
    writes            how often parameters had been written then
    has_ended         an optimizer has made its step since
    """

    is_training: bool = False
    has_run_backward: bool = False
    has_gradients: bool = False
    writes: int = 0
    has_ended: bool = False


class _Backwards(threading.local):
    """How many backward passes this thread is in, and whether what follows is no part of the forward pass."""

    depth = 0
    ends_forward = True


def _parameters(args: Sequence[object]) -> list[torch.nn.Parameter]:
    return [each for each in args if isinstance(each, torch.nn.Parameter)]


def _ignore(iteration: int | None, optimizer: object, is_skipped: bool) -> None:
    """For those who do not ask for gradients."""
