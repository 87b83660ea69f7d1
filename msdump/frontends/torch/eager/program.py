"""EagerProgram: a program whose operators run one by one, as the session that dumps it sees it."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from msdump.frontends.torch.eager.call_sites import call_lines, call_stack
from msdump.frontends.torch.eager.cost import StepCost, taken
from msdump.frontends.torch.eager.engines import Situation, why_mode
from msdump.frontends.torch.eager.iterations import Iterations
from msdump.frontends.torch.eager.learning import LearningRecord
from msdump.frontends.torch.eager.listening import is_compiled_node, listening
from msdump.frontends.torch.eager.messages import Messages
from msdump.frontends.torch.eager.mode import StackedMode
from msdump.frontends.torch.eager.native import NativeLook, native_sentence, why_not_native, why_not_shown
from msdump.frontends.torch.eager.native_calls import NativeCalls
from msdump.frontends.torch.eager.operands import TRACED, CallOperands
from msdump.frontends.torch.eager.operators import Operators
from msdump.frontends.torch.eager.parameters import Parameters
from msdump.frontends.torch.eager.regions import Region, counts_of
from msdump.frontends.torch.eager.scopes import OperatorScopes, Scopes
from msdump.frontends.torch.eager.shardings import OperandShardings
from msdump.frontends.torch.eager.stage import BACKWARD, FORWARD, SETUP, UPDATE, Call, Stage
from msdump.frontends.torch.freed_memory import keep_freed_memory
from msdump.frontends.torch.gradients import gradients_of
from msdump.frontends.torch.operators import op_type
from msdump.frontends.torch.shardings import sharding_book
from msdump.frontends.torch.steps import Steps
from msdump.graph.graph import Graph
from msdump.operators.traits import is_test, only_moves
from msdump.process import sessions
from msdump.tensors.unseen import beside_operator, unseen

if TYPE_CHECKING:
    from torch.autograd.graph import Node

    from msdump.config.plan import Plan
    from msdump.engine.graphs import GraphSession
    from msdump.process.report import StepTimes

_MAX_VARIANTS = 50_000
# What observers are told of an iteration that none of them will see.
_UNSEEN = Graph(name="unseen", graph_id=-1)


class EagerProgram:
    """The operators of a program, forward, backward and in optimizers: a graph for each of these three.

    model      as of `Iterations`
    shared_steps  of all that the session dumps; a second program, in another thread, counts steps of its own
    has_setup  whether what runs before the first step is a graph of its own
    mode       brings operators to `run`, where they do not come to `native`
    """

    def __init__(
        self,
        session: GraphSession,
        shared_steps: Steps,
        model: torch.nn.Module | None,
        has_setup: bool = False,
    ) -> None:
        self.session = session
        self.has_ended = False
        self._thread = threading.get_ident()
        self._regions = _Regions()
        self._is_forked = False
        self._lock = threading.RLock()
        with sessions.lock:
            is_alone = all(other.session is not session for other in _programs if not other.has_ended)
            _programs.add(self)
        steps = self._steps = shared_steps if is_alone else Steps(session.next_iteration, shared_steps)
        keeps = any(observer.needs_all_values for observer in session.observers)
        if keeps:
            keep_freed_memory()
        parts = (FORWARD, BACKWARD, UPDATE, SETUP) if has_setup else (FORWARD, BACKWARD, UPDATE)
        self.stages = [Stage(part, steps.take_graph_id(), session.observers) for part in parts]
        self._scopes = Scopes(self._begin_call)
        self._operator_scopes = OperatorScopes(self._scopes)
        self._iterations = Iterations(steps, model, self._scopes, has_setup)
        self._iterations.note_gradients = self._note_step
        self._note_gradients = gradients_of(session).note
        self._plan: Plan | None = None
        self._book = sharding_book(session)
        self._counts = counts_of(session)
        self._operands = CallOperands(session.count_skipped, keeps)
        self._parameters = Parameters(self._operands)
        self._learning = LearningRecord(self._operands, self.stages[BACKWARD])
        self.stages[FORWARD].on_new = self._note_new
        self._messages = Messages(self._operands, self._book, session.count_skipped)
        self._shardings = OperandShardings(self._book, self._operands, session.recorder)
        self.native: NativeLook | None = None
        # Whether it would be used if it were there, but for the reason that was noted last.
        self._lacks_native = False
        self._refusal = ""
        self.mode = StackedMode(self)
        self._device_state: tuple[int, bool] | None = None
        self._found_devices: Collection[torch.device] = ()
        self._is_between_operators = False
        # Whether the backward pass that runs leaves gradients in parameters.
        self._accumulates = False
        self.cost = StepCost()
        self._operators = Operators(
            self.cost,
            self.stages[FORWARD],
            self._operands,
            self._parameters,
            self._messages,
            self._shardings,
            self._counts,
            self._operator_scopes,
        )

    # -- native -----------------------------------------------------------------------------------

    def use_native(self) -> None:
        """Operators come to `msdump_native` where that can see all of them, from the first call of a module on. Where
        it is missing, the report says how to have it.
        """
        if why_not_native():
            self._lacks_native = True
            return

        self.native = NativeLook(
            self.session,
            lambda observer: NativeCalls(
                observer, self.stages[FORWARD], self._operands, self._operator_scopes, self.session.count_skipped
            ),
            self._scopes,
            self._ask,
            lambda: self._iterations.optimizers,
        )
        self.session.add_notes(self.native.notes)

    @property
    def prefers_native(self) -> bool:
        """Whether what runs next is to come to `native`; where an operator is being shown, nothing can change that."""
        native = self.native
        if native is None or native.failure or self._plan is None or self._iterations.is_setup:
            return False
        native.refusal = self.why_not_seen(self._plan)
        return not native.refusal and (native.is_on or self._is_between_operators)

    def why_not_seen(self, plan: Plan) -> str:
        """Why what runs now is not for `msdump_native`, in words; "" where it is."""
        is_distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        why = why_mode(Situation(plan, self._counts.has_run, is_distributed))
        return why or why_not_shown(self._devices(), keeps=not plan.measures_only)

    def _devices(self) -> Collection[torch.device]:
        """Where parameters lie, and what is made by default."""
        tensors = self._operands.names.tensors()
        state = len(tensors), torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        if state != self._device_state:
            self._device_state = state
            self._found_devices = {tensor.device for tensor in tensors}
            if state[1]:
                self._found_devices.add(torch.device("cuda", torch.cuda.current_device()))
        return self._found_devices

    def _ask(self, function: torch._ops.OpOverload, has_node: bool) -> tuple[Stage | None, bool]:
        """As the beginning of `run`, of an operator that is about to run."""
        node: Node | None = torch._C._current_autograd_node() if has_node else None
        with self._lock, unseen:
            if self._is_forked or self.native is None:
                return None, True
            self._settle()
            if node is None and self._iterations.waits_for_operator:
                self._begin_without_modules(function)
            stage = self._enter_stage(self._iterations.part(node), function)
            return stage, self._iterations.waits_for_operator

    def _settle(self) -> None:
        """What has run so far is told of."""
        if self.native is not None and self.native.is_on:
            if self.native.has_news:
                with unseen:
                    self.native.flush()
            else:
                self.native.flush()

    # -- beginning and end ------------------------------------------------------------------------

    def begin(self) -> None:
        """Listen to what runs in the process, until `end` or the end of the session."""
        self.session.call_before_end(self.end)
        self.session.call_at_change(self._between_iterations)
        self.session.call_when_step_ends(self.step)
        self.session.count_training(self._iterations.counts.so_far)
        self.session.record_learning(self._learning.so_far)
        self.session.time_steps(self._step_times)
        self._steps.lead(self._iterations)
        listening.begin(self)
        if self.native is not None:
            listening.hear_compiler()
        self._look(True)

    def end(self) -> None:
        """Write the last iteration, and listen no more."""
        if self._lacks_native:
            self._note_refusal()
        self.has_ended = True
        self.cost.end_step()
        self._steps.lead(None)
        listening.end(self)
        with self._lock, unseen:
            self._finish()
            if self.native is not None:
                self.native.close()

    @contextmanager
    def _between_iterations(self) -> Iterator[bool]:
        """Whether nothing is shown now, nor inside of the block; never waits for the thread that runs operators."""
        if not self._lock.acquire(blocking=False):
            yield False
            return
        try:
            yield not self._is_watched
        finally:
            self._lock.release()

    @taken
    def step(self) -> None:
        """The iteration ends here, whatever runs next."""
        with self._lock, unseen:
            self._settle()
            self._iterations.is_explicit = True
            self._iterations.end_step()
            self._finish()
            self._iterations.current = None
        self.cost.end_step()

    def _step_times(self) -> StepTimes | None:
        """Operators that come to `native` are not timed."""
        times = self.cost.so_far()
        if times is None or (self.native is not None and self.native.has_seen):
            return None
        if not self._lacks_native:
            return times
        return replace(times, advice=native_sentence(times, self._note_refusal()))

    def _note_refusal(self) -> str:
        """Why a run without `msdump_native` is not for it; after the end, why it was not."""
        if self._plan is not None and not self.has_ended:
            self._refusal = self.why_not_seen(self._plan)
        return self._refusal

    def pause(self) -> None:
        """What runs from here to `resume` is no part of any iteration. Only between two of them."""
        with self._lock:
            self._settle()
            self._iterations.is_paused = True
            self._look(False)

    def resume(self) -> None:
        with self._lock:
            self._iterations.is_paused = False
            self._look(True)

    # -- operators --------------------------------------------------------------------------------

    def _look(self, is_on: bool) -> None:
        """See operators, or no longer: by `native` where that can show all that is wanted, else by the mode."""
        is_native = self.native is not None and self.native.look(is_on and self.prefers_native)
        self.mode.show(is_on and not is_native)

    @property
    def is_in_backward(self) -> bool:
        """Whether this thread computes gradients."""
        return self._iterations.is_in_backward(torch._C._current_autograd_node())

    def run(self, function: Any, args: Sequence[object], keywords: Mapping[str, object]) -> object:
        """Run an operator, and show it.   Returns: what it returns.   Raises: what it raises."""
        if self._is_forked:
            _note_forked_run()
            return function(*args, **keywords)
        cost = self.cost
        cost.enter(is_operator=True)
        try:
            node: Node | None = torch._C._current_autograd_node()
            with self._lock:
                with beside_operator():
                    found = self._stage_of(function, args, keywords, node)
                if found is None:
                    return cost.of_script(function, args, keywords)
                return self._operators.run(*found, node, function, args, keywords)
        finally:
            cost.leave()

    def _stage_of(
        self, function: Any, args: Sequence[object], keywords: Mapping[str, object], node: Node | None
    ) -> tuple[Stage, str] | None:
        """The stage of an operator that is about to run, and its scope; None where it is not shown."""
        iterations = self._iterations
        if node is None and iterations.waits_for_operator:
            self._begin_without_modules(function)
        if iterations.is_setup and (node is not None or _is_recorded(function, (*args, *keywords.values()))):
            self._begin(iterations.leave_setup("script", torch.is_grad_enabled()), is_first=True)
        part = iterations.part(node)
        stage = self._enter_stage(part, function)
        if not stage.is_watched:
            return None
        if not isinstance(function, torch._ops.OpOverload):
            # It calls others, which are shown.
            name = op_type(function)
            self.session.count_skipped(f"tensors of {name}, an operator of higher order", name=name)
            return None
        if node is not None and is_compiled_node(node):
            # The border of its region was met before anybody watched, or is none of the script's.
            self._operands.table.disturb()
            return None
        return stage, self._operator_scopes.find(part, node, iterations.optimizers)

    def run_region(
        self, region: Region, function: Callable[..., object], args: Sequence[object], keywords: Mapping[str, object]
    ) -> object:
        """Run what `torch.compile` made as it is, and show it at its border, where an iteration is dumped."""
        cost = self.cost
        cost.enter()
        try:
            node: Node | None = torch._C._current_autograd_node()
            with self._lock:
                with unseen:
                    found = self._stage_of_region(region, function, args, node)
                if found is not None:
                    with self._inside_region():
                        return self._operators.run_region(*found, node, region, function, args, keywords)
            with self._inside_region():
                return cost.of_script(function, args, keywords)
        finally:
            cost.leave()

    def _stage_of_region(
        self, region: Region, function: object, args: Sequence[object], node: Node | None
    ) -> tuple[Stage, str] | None:
        """As `_stage_of`, of a region."""
        self._settle()
        self._counts.has_run = True
        if self.native is not None and self.native.is_on:
            # It does not tell regions from what they run.
            self._look(True)
        part = self._begin_region(region, args, node)
        if part is None:
            return None
        stage = self._enter_stage(part, function)
        if not stage.is_watched:
            self._counts.count(region, False)
            return None
        return stage, self._operator_scopes.find(part, node, self._iterations.optimizers)

    @contextmanager
    def _inside_region(self) -> Iterator[None]:
        """Nothing is heard: a backend may make modules of a graph, and operators of these."""
        self._regions.depth += 1
        try:
            with self.mode.blind():
                yield
        finally:
            self._regions.depth -= 1

    def _enter_stage(self, part: int, function: object) -> Stage:
        if part != FORWARD and not self._iterations.is_explicit:
            # Parameters are shown as the forward pass left them.
            self._finish_stage(self.stages[FORWARD])
        if part == BACKWARD:
            self._iterations.note_backward()
        stage = self.stages[part]
        if part == FORWARD and self._is_watched and not stage.is_watched and not _is_mark(function):
            # It goes on after a backward, as where gradients are accumulated.
            assert self._iterations.current is not None
            stage.begin(self._iterations.current)
        return stage

    # -- iterations -------------------------------------------------------------------------------

    @property
    def _is_watched(self) -> bool:
        return any(stage.is_watched for stage in self.stages)

    @property
    def _is_full(self) -> bool:
        """Whether as many operators are known as memory is kept for."""
        return sum(stage.variants for stage in self.stages) > _MAX_VARIANTS

    def _begin_call(self, module: torch.nn.Module | Region) -> None:
        """An outermost module is called, or a region that has modules inside.

        In a backward pass it is a part of a checkpoint that runs again, or code that PyTorch made.
        """
        iterations = self._iterations
        if iterations.is_paused or iterations.is_in_backward(torch._C._current_autograd_node()):
            return
        self.mode.settle()
        with self._lock, unseen:
            self._settle()
            is_first = iterations.is_setup
            if self._is_full:
                # As where a script evaluates in training mode, with gradients: no step of training would ever end.
                iterations.break_off()
            iteration = iterations.of_call(module)
            if iteration is not None:
                self._operands.names.clear()
                self._is_between_operators = not isinstance(module, Region)
                try:
                    self._begin(iteration, is_first)
                finally:
                    self._is_between_operators = False
            named = iterations.model if isinstance(module, Region) else module
            if named is not None and self._is_watched:
                self._parameters.name(named)
                self._book.note_model(named)
                self._learning.note_call(named)

    def _begin_without_modules(self, function: object = None) -> None:
        """function: an operator; None for a region"""
        iterations = self._iterations
        # Asked for each operator where no module is called: what it does matters behind a step of training alone.
        iteration = iterations.without_modules(function is not None and iterations.has_ended and _is_look(function))
        if iteration is not None:
            self._begin(iteration)

    def _begin_region(self, region: Region, args: Sequence[object], node: Node | None) -> int | None:
        """The part of a step that a region is; None: of no step. Where it calls the model, an iteration may begin."""
        iterations = self._iterations
        if iterations.is_paused:
            return None
        part = iterations.part_of_region(args, node)
        if part == FORWARD and iterations.calls_model(args):
            self._begin_call(region)
        else:
            if iterations.current is None or (part == FORWARD and not iterations.has_modules):
                self._begin_without_modules()
            begun = iterations.of_region(call_stack()) if part == FORWARD else None
            if begun is not None:
                self._begin(begun)
        if part == UPDATE:
            iterations.end_training()
        return iterations.part(None) if part == FORWARD else part

    def _begin(self, iteration: int, is_first: bool = False) -> None:
        """is_first: of the first step, which reads what was made before it"""
        self._finish()
        self.session.catch_up()
        self._take_plan(self.session.plan)
        if self._is_full:
            # A program whose shapes are others in each step would fill the memory.
            for stage in self.stages:
                stage.forget()
            self._operands.table.forget()
            if self.native is not None:
                self.native.calls.forget()
        self._operator_scopes.begin()
        self._iterations.current = iteration
        is_watched = self.session.plan.watches(iteration)
        if not self._iterations.is_setup:
            self.cost.begin_step(is_watched)
        self._scopes.is_looking = is_watched
        self._look(is_watched or not self._iterations.has_modules)
        if is_watched:
            if not is_first:
                self._operands.table.begin()
                if self.native is not None:
                    self.native.begin()
            for stage in self.stages:
                if (stage.part == SETUP) == self._iterations.is_setup:
                    stage.begin(iteration)
        else:
            for observer in self.session.observers:
                observer.on_iteration_begin(_UNSEEN, iteration)

    def _look_ahead(self) -> None:
        """A step of training has ended: the next one may begin with any operator, where it is dumped."""
        current = self._iterations.current
        if current is not None and self._iterations.waits_for_operator and self.session.plan.watches(current + 1):
            self._is_between_operators = True
            try:
                self._look(True)
            finally:
                self._is_between_operators = False

    def _take_plan(self, plan: Plan) -> None:
        if plan is not self._plan:
            self._plan = self._parameters.plan = plan
            self._operators.take_plan(plan)
            if self.native is not None:
                self.native.calls.take_plan(plan)
            looks = plan.trigger.op_debug_mode != 0 or plan.recorder is not None
            self._operands.reads_inputs = plan.operands.inputs or looks
            self._operands.values.measures = plan.measures_only

    def _finish(self) -> None:
        self._settle()
        for stage in self.stages:
            self._finish_stage(stage)
        self._operands.values.forget()
        self._messages.begin()
        self._shardings.end_iteration()

    def _finish_stage(self, stage: Stage) -> None:
        if not stage.is_watched:
            return
        # It reads what is dumped.
        with unseen:
            self._messages.finish(stage)
            stage.finish(self._operands if self.native is None else self.native.calls.parameters_now(stage))

    # -- what is heard of the process ---------------------------------------------------------------

    def is_concerned(self) -> bool:
        """Whether this thread is the one that the program runs in, or works for it; not inside of a region."""
        if self._is_forked:
            if self.native is not None and self.native.is_on:
                _note_forked_run()  # the mode is not there, which would hear of operators
            return False
        if self._regions.depth:
            return False
        return not self.mode.is_away and (threading.get_ident() == self._thread or self.mode.is_here)

    @taken
    def enter_module(self, module: torch.nn.Module) -> None:
        self._scopes.enter(module)
        if self._scopes.needs_no_more:
            listening.hush(self)
        if self.native is not None and self.native.is_on:
            self.native.note_scope()

    @taken
    def leave_module(self) -> None:
        listening.speak()
        self._scopes.leave()
        if self.native is not None and self.native.is_on:
            self.native.note_scope()

    def note_compiler(self, is_at_work: bool) -> None:
        """A dispatch mode sees nothing of what the compiler runs."""
        if self.native is not None:
            self.native.blind(is_at_work)

    def leave_compiled(self) -> None:
        if self.native is not None and self._counts.has_run:
            self.mode.settle()

    def around_trace(self) -> AbstractContextManager[None]:
        return self.mode.away() if self.native is None or self.mode.is_here else nullcontext()

    @taken
    def leave_guard(self) -> None:
        self.mode.settle()

    @taken
    def enter_optimizer(self, name: str, optimizer: object) -> None:
        with self._lock, unseen:
            self._settle()
            self._iterations.enter_optimizer(name, optimizer)

    @taken
    def leave_optimizer(self) -> None:
        with self._lock, unseen:
            self._settle()
            self._iterations.leave_optimizer()
            self._keep_counts()
            self._look_ahead()

    @taken
    def enter_scaler(self) -> None:
        self._settle()
        self._iterations.enter_scaler()

    @taken
    def leave_scaler(self, optimizer: object) -> None:
        with self._lock, unseen:
            self._settle()
            self._iterations.leave_scaler(optimizer)
            if optimizer is not None:
                self._keep_counts()
                self._look_ahead()

    def _note_new(self, stage: Stage, call: Call) -> None:
        """An operator of the forward pass is told of for the first time. The compiled observer tells of it when the
        stage ends: whether gradients were on, and what its operands were, is not known then.
        """
        if self.native is None:
            self._learning.note_read(stage, call)

    def _note_step(self, iteration: int | None, optimizer: object, is_skipped: bool) -> None:
        """As `Iterations.note_gradients`."""
        self._note_gradients(iteration, optimizer, is_skipped)
        if self._is_watched:
            self._learning.note_step(iteration, optimizer, is_skipped)

    def _keep_counts(self) -> None:
        """A step of an optimizer is over. A script that is killed ends no dump, and leaves what was kept by then."""
        if self._iterations.counts.is_round:
            self.session.save_training()

    @taken
    def enter_backward(self, accumulates: bool) -> None:
        """Where operators are not looked at, this tells of a backward; and compiled autograd has no nodes."""
        if self.native is not None and self.native.is_on:
            self._settle()
            self.native.calls.engine_lines = call_lines()
        with unseen:
            if accumulates and not self._iterations.is_running_backward:
                self._learning.begin_backward()
            if not accumulates and not self._iterations.is_running_backward:
                self._learning.note_choice()
            self._iterations.enter_backward(accumulates)
        self._accumulates |= accumulates

    @taken
    def leave_backward(self) -> None:
        self._settle()
        with unseen:
            self._iterations.leave_backward()
            iteration = self._iterations.current
            if self._accumulates and not self._iterations.is_running_backward:
                self._accumulates = False
                if self._is_watched and iteration is not None:
                    self._learning.note_backward(iteration)
        self.mode.settle()


def _is_look(function: object) -> bool:
    """Whether an operator computes nothing: it reads a number, compares, or makes a view."""
    if not isinstance(function, torch._ops.OpOverload):
        return True
    name = op_type(function)
    return name == "aten._local_scalar_dense.default" or only_moves(name) or is_test(name) or _is_mark(function)


def _is_mark(function: object) -> bool:
    """Whether an operator only tells a profiler where the program is."""
    return isinstance(function, torch._ops.OpOverload) and function.namespace == "profiler"


def _is_recorded(function: object, values: Iterable[object]) -> bool:
    """Whether an operator that is given these computes something, and is recorded for a backward pass; not while a
    program is only traced.
    """
    if not torch.is_grad_enabled() or _is_look(function):
        return False
    tensors = [
        item
        for value in values
        for item in (value if isinstance(value, list | tuple) else (value,))
        if isinstance(item, torch.Tensor)
    ]
    return any(each.requires_grad for each in tensors) and not any(isinstance(each, TRACED) for each in tensors)


class _Regions(threading.local):
    """How many regions this thread is in."""

    depth = 0


_programs: weakref.WeakSet[EagerProgram] = weakref.WeakSet()


def _note_fork() -> None:
    for program in _programs:
        program._is_forked = True


def _note_forked_run() -> None:
    """A forked process runs as it is. Nobody expects the tensors of those that load data."""
    if torch.utils.data.get_worker_info() is None:
        sessions.warn_of_fork("fork it before the block of msdump.watch begins, with a RANK_ID of its own")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
