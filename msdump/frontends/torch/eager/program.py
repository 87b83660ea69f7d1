"""EagerProgram: what a session sees of a program whose operators run one by one, as the program calls them."""

from __future__ import annotations

import linecache
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses import FakeTensor

from msdump.formats.sharding_messages import MessageOperand
from msdump.frontends.torch.convert import why_unreadable
from msdump.frontends.torch.eager.listening import is_compiled_node, listening
from msdump.frontends.torch.eager.messages import Messages, Transfer
from msdump.frontends.torch.eager.regions import Region, counts_of
from msdump.frontends.torch.eager.scopes import NodeScopes, Scopes, plain_name
from msdump.frontends.torch.eager.signatures import Signature, Tensor, signature_of
from msdump.frontends.torch.eager.stage import Call, Stage, info_of
from msdump.frontends.torch.eager.tensors import TensorTable, local, memory_of
from msdump.frontends.torch.eager.values import Values
from msdump.frontends.torch.freed_memory import keep_freed_memory
from msdump.frontends.torch.operators import Path, op_type, results_in
from msdump.frontends.torch.places import BACKWARD_ROOT, ROOT
from msdump.frontends.torch.shardings import sharding_book
from msdump.frontends.torch.steps import Steps
from msdump.frontends.torch.tensor_map import TensorMap
from msdump.graph.graph import Graph
from msdump.graph.types import SourceLine
from msdump.process import sessions
from msdump.statistics.stats import MeasuredArray
from msdump.tensors.arrays import Array
from msdump.tensors.records import INPUT, OUTPUT, TensorInfo, TensorKey
from msdump.tensors.torch_arrays import dtype_name

if TYPE_CHECKING:
    from msdump.config.plan import Plan
    from msdump.engine.graphs import GraphSession
    from msdump.formats.sharding_json import TensorSharding
    from msdump.formats.sharding_messages import Message

FORWARD, BACKWARD, UPDATE = range(3)
# Scopes of operators of earlier iterations whose backward may still come.
_MAX_NODE_SCOPES = 1 << 17
_MAX_VARIANTS = 50_000
# What observers are told of an iteration that none of them will see.
_UNSEEN = Graph(name="unseen", graph_id=-1)
_FOREIGN = (torch.__path__[0], __file__.rpartition("/frontends/")[0])


class EagerProgram:
    """The operators of a program, forward, backward and in optimizers: a graph for each of these three.

    model      whose calls begin iterations; None: the outermost modules that are called
    shared_steps  of all that the session dumps; a second program, in another thread, counts steps of its own
    on_change  called with whether the operators of the iteration that begins are to be shown
    sees_thread  whether operators of the thread that asks are shown, as of one that computes gradients
    blind     while it is open, no operator comes to `run`

    An iteration begins as `Steps` says, when such a module is called; where no module is called, with the first
    operator that is recorded for gradients after a backward. A script that calls `step` ends its iterations itself.
    """

    def __init__(
        self,
        session: GraphSession,
        shared_steps: Steps,
        model: torch.nn.Module | None,
        on_change: Callable[[bool], None],
        sees_thread: Callable[[], bool],
        blind: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.session = session
        self.has_ended = False
        self._model = model
        self._on_change = on_change
        self._sees_thread = sees_thread
        self._blind = blind
        self._thread = threading.get_ident()
        with sessions.lock:
            is_alone = all(other.session is not session for other in _programs if not other.has_ended)
            _programs.add(self)
        self._steps = shared_steps if is_alone else Steps(session.next_iteration, shared_steps)
        self._stages = [Stage(next(self._steps.graph_ids), session.observers) for _ in range(3)]
        self._table = TensorTable()
        self._scopes = Scopes(self._begin_call)
        self._node_scopes = NodeScopes()
        self._selected: dict[tuple[str, str, int], bool] = {}
        self._backward_scopes: dict[str, str] = {}
        self._is_forked = False
        self._names: TensorMap[str] = TensorMap()
        self._shardings = sharding_book(session)
        self._counts = counts_of(session)
        self._messages = Messages()
        self._has_reduced = False
        self._compared: set[tuple[TensorKey, tuple[int, ...]]] = set()
        keeps = any(observer.needs_all_values for observer in session.observers)
        if keeps:
            keep_freed_memory()
        self._values = Values(self._table, session.count_skipped, keeps)
        self._plan: Plan | None = None
        self._reads = True
        self._iteration: int | None = None
        self._optimizer: list[str] = []
        self._depths = _Depths()
        self._has_modules = model is not None
        self._is_explicit = False
        self._is_paused = False
        self._lock = threading.RLock()

    # -- beginning and end ------------------------------------------------------------------------

    def begin(self) -> None:
        """Listen to what runs in the process, until `end` or the end of the session."""
        self.session.call_before_end(self.end)
        self.session.call_at_change(self._between_iterations)
        self.session.call_when_step_ends(self.step)
        listening.begin(self)

    def end(self) -> None:
        """Write the last iteration, and listen no more."""
        self.has_ended = True
        listening.end(self)
        with self._lock:
            self._finish()

    @contextmanager
    def _between_iterations(self) -> Iterator[bool]:
        """Whether nothing is shown now, nor inside of the block; never waits for the thread that runs operators."""
        if not self._lock.acquire(blocking=False):
            yield False
            return
        try:
            yield not any(stage.is_watched for stage in self._stages)
        finally:
            self._lock.release()

    def step(self) -> None:
        """The iteration ends here, whatever runs next."""
        with self._lock:
            self._is_explicit = True
            self._steps.backward()
            self._finish()
            self._iteration = None

    def pause(self) -> None:
        """What runs from here to `resume` is no part of any iteration. Only between two of them."""
        with self._lock:
            self._is_paused = True
            self._on_change(False)

    def resume(self) -> None:
        with self._lock:
            self._is_paused = False
            self._on_change(True)

    def is_concerned(self) -> bool:
        """Whether this thread is the one that the program runs in, or works for it; not inside of a region."""
        if self._is_forked or self._depths.regions:
            return False
        return threading.get_ident() == self._thread or self._sees_thread()

    # -- operators --------------------------------------------------------------------------------

    def run(self, function: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Run an operator, and show it.   Returns: what it returns.   Raises: what it raises."""
        node: Any = torch._C._current_autograd_node()
        if self._is_forked:
            _note_forked_run()
            return function(*args, **keywords)
        with self._lock:
            if self._iteration is None or (node is None and not self._has_modules):
                self._step_without_modules()
            stage_id = BACKWARD if node is not None else UPDATE if self._is_updating() else FORWARD
            stage = self._enter_stage(stage_id)
            if not stage.is_watched or not hasattr(function, "_schema"):
                return self._run_unseen(stage, function, args, keywords)
            if node is not None and is_compiled_node(node):
                # The border of its region was met before anybody watched, or is none of the script's.
                self._table.disturb()
                return function(*args, **keywords)
            signature = signature_of(function)
            if stage_id != FORWARD and signature.is_mutable:
                self._keep_parameters([each.tensor for each in signature.tensors(args, keywords) if each.is_written])
            scope = self._scope(stage_id, node)
            number = stage.number(signature.op_type)
            if self._messages.are_pending:
                self._settle(signature, signature.tensors(args, keywords), f"{scope}/{signature.op_type}-op{number}")
            message = self._messages.next_message(signature, args) if signature.is_message else None
            if not self._selects(scope, signature.op_type, number):
                result = function(*args, **keywords)
                if signature.is_mutable:
                    self._note_writes(signature.tensors(args, keywords))
                return result
            return self._show(stage, scope, number, signature, function, args, keywords, message)

    def run_region(
        self, region: Region, function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Any:
        """Run what `torch.compile` made as it is, and show it at its border, where an iteration is dumped."""
        node: Any = torch._C._current_autograd_node()
        with self._lock:
            stage_id = self._stage_of_region(region, args, node)
            if stage_id is not None:
                stage = self._enter_stage(stage_id)
                if stage.is_watched:
                    with self._inside_region():
                        return self._watch_region(stage_id, stage, node, region, function, args, keywords)
                self._counts.count(region, False)
        with self._inside_region():
            return function(*args, **keywords)

    @contextmanager
    def _inside_region(self) -> Iterator[None]:
        """Nothing is heard: a backend may make modules of a graph, and operators of these."""
        self._depths.regions += 1
        try:
            with self._blind():
                yield
        finally:
            self._depths.regions -= 1

    def _stage_of_region(self, region: Region, args: Sequence[Any], node: Any) -> int | None:
        """What of a step a region is a part of; None: of none. It begins an iteration where modules are called inside.

        That it calls modules is told by the parameters that it is given: those whose gradients it is given too it
        updates.
        """
        if self._is_paused:
            return None
        is_backward = self._is_in_backward(node)
        parameters = [each for each in args if isinstance(each, torch.nn.Parameter)]
        is_update = not is_backward and self._updates(parameters, args)
        if not is_backward and not is_update and not self._scopes.is_inside and self._is_model(parameters):
            self._begin_call(region)
        elif self._iteration is None or not (is_backward or is_update or self._has_modules):
            self._step_without_modules()
        if is_update:
            # As at the end of an optimizer.
            self._steps.backward()
        return BACKWARD if is_backward else UPDATE if is_update or self._is_updating() else FORWARD

    def _is_in_backward(self, node: Any) -> bool:
        """Compiled autograd runs nodes without their being current; threads of autograd are in no call of it."""
        return node is not None or self._depths.backwards > 0

    def _updates(self, parameters: Sequence[Any], args: Sequence[Any]) -> bool:
        gradients = {id(each.grad) for each in parameters if each.grad is not None}
        return any(id(each) in gradients for each in args) or (bool(self._optimizer) and not torch.is_grad_enabled())

    def _is_model(self, parameters: Sequence[Any]) -> bool:
        if self._model is None:
            return bool(parameters)
        own = {id(parameter) for parameter in self._model.parameters()} if parameters else ()
        return any(id(parameter) in own for parameter in parameters)

    def _enter_stage(self, stage_id: int) -> Stage:
        if stage_id != FORWARD and not self._is_explicit:
            # Parameters are shown as the forward pass left them.
            self._finish_stage(self._stages[FORWARD])
        if stage_id == BACKWARD:
            self._steps.backward()
        return self._stages[stage_id]

    def _note_replicas(
        self,
        name: str,
        shardings: Sequence[TensorSharding | None],
        infos: Sequence[TensorInfo],
        arrays: Sequence[Array],
        tensors: Sequence[Any],
        is_shared: bool = False,
    ) -> None:
        """Operands that other ranks must hold in equal bytes: the flight recorder compares each once in a step."""
        recorder = self.session.recorder
        replicas = None if recorder is None else recorder.replicas
        if replicas is None:
            return
        for sharding, info, array, tensor in zip(shardings, infos, arrays, tensors, strict=True):
            identity = info.key, info.shape
            if sharding is None or identity in self._compared or array.shape != info.shape:
                continue
            ranks = sharding.equal_ranks
            if len(ranks) > 1:
                self._compared.add(identity)
                if isinstance(array, MeasuredArray):  # its statistics do not tell two ranks apart
                    array = self._values.view(info, tensor)
                replicas.note(ranks, self._names.get(tensor) or name, array, is_shared)

    def _run_unseen(self, stage: Stage, function: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Run an operator in an iteration that is not dumped, or one of higher order, which calls others."""
        if stage.is_watched:
            name = op_type(function)
            self.session.count_skipped(f"tensors of {name}, an operator of higher order", name=name)
        return function(*args, **keywords)

    def _show(
        self,
        stage: Stage,
        scope: str,
        number: int,
        signature: Signature,
        function: Any,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        message: Message | None,
    ) -> Any:
        name = f"{scope}/{signature.op_type}-op{number}"
        tensors = [each for each in signature.tensors(args, keywords) if self._is_readable(each.tensor, name)]
        inputs = tuple(self._info(each.tensor, (name, each.name)) for each in tensors)
        call = Call(signature, tensors, lambda: signature.attributes(args, keywords), inputs)
        early = self._read_early(call)
        result = self._run_shown(stage, call, scope, number, early, lambda: function(*args, **keywords))
        if signature.is_message and tensors:
            transfer = Transfer(stage, scope, number, name, call, message, result, early, _source())
            self._messages.note(transfer)
            if signature.is_receive:
                return result
            self._note_message(transfer)
        if signature.is_mutable:
            self._note_writes(tensors)
        if signature.is_waited:
            result = _waited(result)
        self._show_results(stage, call, scope, number, name, early, list(results_in(result)), function, args)
        return result

    def _watch_region(
        self,
        stage_id: int,
        stage: Stage,
        node: Any,
        region: Region,
        function: Callable[..., Any],
        args: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> Any:
        given = [each.tensor for each in region.tensors(args, keywords)]
        # An optimizer that is compiled holds the parameters itself.
        held = self._names.tensors() if stage_id == UPDATE else []
        if stage_id != FORWARD:
            self._keep_parameters([*given, *held])
        scope = self._scope(stage_id, node)
        number = stage.number(region.op_type)
        name = f"{scope}/{region.op_type}-op{number}"
        if self._messages.are_pending:
            self._settle(region, region.tensors(args, keywords), name)
        is_selected = self._selects(scope, region.op_type, number)
        self._counts.count(region, is_selected)
        try:
            if is_selected:
                return self._show_region(stage, scope, number, name, region, function, args, keywords, held)
            return function(*args, **keywords)
        finally:
            self._table.disturb()
            if stage_id == FORWARD:
                # Those of its nodes that run one by one, where it has no graph of its gradients.
                self._node_scopes.note(_sequence_number() - 1, scope)

    def _show_region(
        self,
        stage: Stage,
        scope: str,
        number: int,
        name: str,
        region: Region,
        function: Callable[..., Any],
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        held: Sequence[Any],
    ) -> Any:
        """What it is given, and what it returns; what it has overwritten counts as returned, too.

        held   what it may overwrite beside what it is given
        """
        tensors = [each for each in region.tensors(args, keywords) if self._is_readable(each.tensor, name)]
        inputs = tuple(self._info(each.tensor, (name, each.name)) for each in tensors)
        call = Call(region, tensors, lambda: {"region": region.place}, inputs)
        early = {}
        if self._reads:
            early = {slot: self._values.copied(info, tensors[slot].tensor) for slot, info in enumerate(inputs)}
        versions = [(tensor, _version(tensor)) for tensor in (*(each.tensor for each in tensors), *held)]
        result = self._run_shown(stage, call, scope, number, early, lambda: function(*args, **keywords))
        self._table.disturb()
        written = {id(tensor): tensor for tensor, version in versions if _version(tensor) != version}
        call.tensors = [replace(each, is_written=id(each.tensor) in written) for each in tensors]
        results = list(results_in(result))
        for _, tensor in results:
            written.pop(id(tensor), None)
        results += [((-1, index), tensor) for index, tensor in enumerate(written.values())]
        self._show_results(stage, call, scope, number, name, early, results, function, args)
        return result

    def _run_shown(
        self,
        stage: Stage,
        call: Call,
        scope: str,
        number: int,
        early: Mapping[int, Array],
        run: Callable[[], Any],
    ) -> Any:
        """Run it, and show it where it raises.   Raises: what it raises."""
        try:
            return run()
        except Exception as error:
            call.error = error
            call.read = self._read(call, early)
            stage.show_failed(call, scope, number, _source)
            raise

    def _show_results(
        self,
        stage: Stage,
        call: Call,
        scope: str,
        number: int,
        name: str,
        early: Mapping[int, Array],
        made: Sequence[tuple[Path, Any]],
        function: Any,
        args: Sequence[Any],
    ) -> None:
        results = [(path, tensor) for path, tensor in made if self._is_readable(tensor, name)]
        if call.tensors or results:
            call.outputs = tuple(self._info(tensor, (name, path)) for path, tensor in results)
            call.read = self._read(call, early)
            call.written = [
                self._values.shown(info, tensor) for info, (_, tensor) in zip(call.outputs, results, strict=True)
            ]
            self._note_parameters(stage, call)
            stage.show(call, scope, number, _source)
            if self._shardings.is_on:
                self._note_shardings(stage, name, function, args, call, [tensor for _, tensor in results])

    def _settle(self, signature: Signature | Region, tensors: Sequence[Tensor], name: str) -> None:
        """What an operator that is about to run finds in buffers of messages."""
        sends, receives = self._messages.touched(signature, tensors)
        for transfer in sends:
            self._note_message(transfer, f"overwritten by {name} before the message was waited for")
        for transfer in receives:
            misuse = "" if transfer.is_over else f"used by {name} before the message was waited for"
            self._show_received(transfer, misuse)

    def _show_received(self, transfer: Transfer, misuse: str = "") -> None:
        """A receive, as an operator that has run just now: what has arrived is its output."""
        call = transfer.call
        call.read = self._read(call, transfer.early)
        self._note_writes(call.tensors)
        call.outputs = tuple(self._info(each.tensor, (transfer.name, each.name)) for each in call.tensors)
        call.written = [
            self._values.shown(info, each.tensor) for info, each in zip(call.outputs, call.tensors, strict=True)
        ]
        transfer.stage.show(call, transfer.scope, transfer.number, lambda: transfer.source)
        self._note_message(transfer, misuse)

    def _note_message(self, transfer: Transfer, misuse: str = "") -> None:
        if transfer.message is not None and self._iteration is not None and self._shardings.is_on:
            io = INPUT if transfer.call.signature.is_send else OUTPUT
            place = transfer.stage.graph.graph_id, transfer.name, io, 0, self._iteration
            self._shardings.note_message(MessageOperand(*place, transfer.message, misuse))

    def _note_shardings(
        self,
        stage: Stage,
        name: str,
        function: Any,
        args: Sequence[Any],
        call: Call,
        results: Sequence[Any],
    ) -> None:
        """How the operands of a call that is shown lie over the ranks of the job."""
        book, graph_id, iteration = self._shardings, stage.graph.graph_id, self._iteration
        assert iteration is not None
        is_copy = function is torch.ops.aten.copy_.default
        if stage is self._stages[UPDATE] and not self._has_reduced and not is_copy:
            # DistributedDataParallel ends its reduction with copies into the gradients.
            self._has_reduced = True
            book.note_gradients()
        # What a copy writes over it does not read.
        read = [None if is_copy and each.is_written else each.tensor for each in call.tensors]
        mesh = book.note_collective(function, args)
        of_inputs = book.note(graph_id, name, INPUT, read, iteration)
        of_outputs = book.note(graph_id, name, OUTPUT, results, iteration, mesh)
        if stage is self._stages[FORWARD]:
            tensors = [each.tensor for each in call.tensors]
            self._note_replicas(f"input of {name}", of_inputs, call.inputs, call.read, tensors)
        if mesh is not None:
            self._note_replicas(f"output of {name}", of_outputs, call.outputs, call.written, results, is_shared=True)
        for each in call.tensors:
            parameter = self._names.get(each.tensor)
            if parameter is not None:
                book.note(graph_id, parameter, OUTPUT, [each.tensor], iteration)

    def _read_early(self, call: Call) -> dict[int, Array]:
        """Copies of inputs whose memory the operator may write."""
        if not call.signature.is_mutable or not self._reads:
            return {}
        written = {memory_of(each.tensor) for each in call.tensors if each.is_written}
        slots = [slot for slot, each in enumerate(call.tensors) if memory_of(each.tensor) in written]
        return {slot: self._values.saved(call.inputs[slot], call.tensors[slot].tensor) for slot in slots}

    def _read(self, call: Call, early: Mapping[int, Array]) -> list[Array]:
        """Arrays of the inputs; those that nobody wants are no more than views."""
        look = self._values.shown if self._reads else self._values.view
        return [
            early[slot] if slot in early else look(info, each.tensor)
            for slot, (info, each) in enumerate(zip(call.inputs, call.tensors, strict=True))
        ]

    def _note_parameters(self, stage: Stage, call: Call) -> None:
        for info, each in zip(call.inputs, call.tensors, strict=True):
            name = self._names.get(each.tensor)
            if name is not None:
                stage.add_parameter(info, name, each.tensor, memory_of(each.tensor))

    def _keep_parameters(self, written: Sequence[Any]) -> None:
        """Where the script says when a step ends, the forward pass ends with it: an optimizer writes before that.

        written   what may be written
        """
        forward = self._stages[FORWARD]
        if forward.is_watched:
            memories = {memory_of(tensor) for tensor in written if self._is_readable(tensor)}
            forward.keep_parameters(memories, self._parameter)

    def _parameter(self, name: str, tensor: Any) -> tuple[TensorInfo, Array] | None:
        plan = self.session.plan
        if not (plan.operands.outputs and plan.dumps_parameter(name)):
            return None
        info = self._info(tensor, ("", ""))
        return info, self._values.saved(info, tensor)

    def _is_updating(self) -> bool:
        """In an optimizer, but for a closure that it calls, which needs gradients.

        Also between the backward and the next iteration, as where gradients are clipped.
        """
        is_forward = self._is_explicit and self._scopes.is_inside
        if self._optimizer:
            return not torch.is_grad_enabled()
        return self._steps.is_over and not is_forward

    def _scope(self, stage_id: int, node: Any) -> str:
        if stage_id == UPDATE:
            return f"{ROOT}/{self._optimizer[-1]}" if self._optimizer else self._scopes.current
        if stage_id == FORWARD:
            scope = self._scopes.current
            if torch.is_grad_enabled():
                # The first operator since a node of autograd was made is that of the node.
                self._node_scopes.note(_sequence_number() - 1, scope)
            return scope
        if self._scopes.is_inside or node is None:
            scope = self._scopes.current
        else:
            scope = self._node_scopes.find(node._sequence_nr())
        if torch.is_grad_enabled():
            # Of nodes that are made for gradients of gradients, or anew.
            self._node_scopes.note(_sequence_number() - 1, scope)
        backward = self._backward_scopes.get(scope)
        if backward is None:
            backward = self._backward_scopes[scope] = BACKWARD_ROOT + scope.removeprefix(ROOT)
        return backward

    def _selects(self, scope: str, kind: str, number: int) -> bool:
        name = scope, kind, number
        selected = self._selected.get(name)
        if selected is None:
            (mask,) = self.session.plan.masks([f"{scope}/{kind}-op{number}"])
            selected = self._selected[name] = mask != 0
        return selected

    def _info(self, tensor: Any, origin: tuple[str, str | Path]) -> TensorInfo:
        own = local(tensor)
        dtype = dtype_name(own.dtype)
        assert dtype is not None
        parameter = self._names.get(tensor)
        return info_of(own, self._table.key(own, origin if parameter is None else parameter), dtype)

    def _is_readable(self, tensor: Any, name: str = "") -> bool:
        if isinstance(tensor, FakeTensor):
            return False
        reason = why_unreadable(local(tensor))
        if reason:
            self.session.count_skipped(reason, name=name)
        return not reason

    def _note_writes(self, tensors: Sequence[Tensor]) -> None:
        for each in tensors:
            if each.is_written and not isinstance(each.tensor, FakeTensor) and each.tensor.layout is torch.strided:
                self._table.write(local(each.tensor))

    # -- iterations -------------------------------------------------------------------------------

    def _begin(self, iteration: int) -> None:
        self._finish()
        self.session.catch_up()
        self._take_plan(self.session.plan)
        if sum(stage.variants for stage in self._stages) > _MAX_VARIANTS:
            # A program whose shapes are others in each step would fill the memory.
            for stage in self._stages:
                stage.forget()
            self._table.forget()
            self._selected.clear()
        self._node_scopes.forget(_MAX_NODE_SCOPES)
        self._iteration = iteration
        is_watched = self.session.plan.watches(iteration)
        self._scopes.is_looking = is_watched
        self._on_change(is_watched or not self._has_modules)
        if is_watched:
            self._table.begin()
            for stage in self._stages:
                stage.begin(iteration)
        else:
            for observer in self.session.observers:
                observer.on_iteration_begin(_UNSEEN, iteration)

    def _take_plan(self, plan: Plan) -> None:
        if plan is not self._plan:
            self._plan = plan
            self._selected.clear()
            looks = plan.trigger.op_debug_mode != 0 or plan.recorder is not None
            self._reads = plan.operands.inputs or looks
            self._values.measures = plan.measures_only

    def _finish(self) -> None:
        for stage in self._stages:
            self._finish_stage(stage)
        self._values.forget()
        self._has_reduced = False
        self._messages.begin()
        self._compared.clear()
        self._shardings.end_iteration()

    def _finish_stage(self, stage: Stage) -> None:
        for transfer in self._messages.take_receives(stage):
            if transfer.is_over:
                self._show_received(transfer)
            else:
                self.session.count_skipped("tensors of a receive that its iteration did not wait for")
        stage.finish(self._values.at_end, lambda tensor: self._info(tensor, ("", "")))

    def _step_without_modules(self) -> None:
        is_new = not self._is_explicit and self._steps.is_over and torch.is_grad_enabled() and not self._optimizer
        if self._model is None and (self._iteration is None or is_new):
            self._begin(self._steps.forward("script", torch.is_grad_enabled()))

    def _begin_call(self, module: torch.nn.Module | Region) -> None:
        """An outermost module is called, or a region that has modules inside.

        In a backward pass it is a part of a checkpoint that runs again, or code that PyTorch made.
        """
        if self._is_paused or self._is_in_backward(torch._C._current_autograd_node()):
            return
        with self._lock:
            self._has_modules = True
            is_ours = self._model is None or module is self._model or isinstance(module, Region)
            if is_ours and (self._iteration is None or not self._is_explicit):
                iteration = self._steps.forward(module, torch.is_grad_enabled())
                if iteration != self._iteration:
                    self._names.clear()
                    self._begin(iteration)
            named = self._model if isinstance(module, Region) else module
            if named is not None and any(stage.is_watched for stage in self._stages):
                for name, tensor in _named_tensors(named):
                    self._names.set(tensor, name)
                self._shardings.note_model(named)

    # -- what is heard of the process ---------------------------------------------------------------

    def enter_module(self, module: torch.nn.Module) -> None:
        self._scopes.enter(module)

    def leave_module(self) -> None:
        self._scopes.leave()

    def enter_optimizer(self, name: str) -> None:
        with self._lock:
            self._optimizer.append(f"optimizer-{name}")

    def leave_optimizer(self) -> None:
        with self._lock:
            if self._optimizer:
                self._optimizer.pop()
            self._steps.backward()

    def enter_backward(self) -> None:
        """Where operators are not looked at, this tells of a backward; and compiled autograd has no nodes."""
        self._depths.backwards += 1
        if not self._is_paused:
            self._steps.backward()

    def leave_backward(self) -> None:
        self._depths.backwards -= 1


class _Depths(threading.local):
    """How many backward passes, and how many regions, this thread is in."""

    backwards = 0
    regions = 0


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

_sequence_number: Callable[[], int] = getattr(torch.autograd, "_get_sequence_nr")  # noqa: B009 - not for type checkers


def _named_tensors(module: torch.nn.Module) -> list[tuple[str, Any]]:
    return [(plain_name(name), tensor) for name, tensor in (*module.named_parameters(), *module.named_buffers())]


def _version(tensor: Any) -> int | None:
    """How often it was written, as far as autograd knows; None where nobody counts."""
    own = local(tensor)
    return None if own.is_inference() else int(own._version)


def _waited(result: Any) -> Any:
    """Results of a collective once they are there. Waiting again, as the program will, does nothing."""
    for item in result if isinstance(result, tuple | list) else (result,):
        if isinstance(item, torch.Tensor):
            # Functional collectives return plain tensors whose memory is written later.
            torch.ops._c10d_functional.wait_tensor(item)
        elif hasattr(item, "wait"):
            item.wait()
    return result


def _source() -> list[SourceLine]:
    """The innermost line of the script."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_FOREIGN):
        frame = frame.f_back
    if frame is None:
        return []
    path, number = frame.f_code.co_filename, frame.f_lineno
    return [SourceLine(path, number, linecache.getline(path, number).rstrip("\r\n"))]
