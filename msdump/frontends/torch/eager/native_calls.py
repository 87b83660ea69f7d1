"""Calls of operators that `msdump_native` has seen, told as those that a dispatch mode sees.

It keeps records of numbers; what observers are told of an operator is made of them when a part of a step ends.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from msdump.frontends.torch.convert import TOO_DEEP
from msdump.frontends.torch.eager.call_sites import Lines, Site, lines_of
from msdump.frontends.torch.eager.native_tables import NONE, Iteration, shown_as
from msdump.frontends.torch.eager.operands import CallOperands
from msdump.frontends.torch.eager.scopes import Made, OperatorScopes
from msdump.frontends.torch.eager.signatures import Tensor, signature_of
from msdump.frontends.torch.eager.stage import Call, Named, ParametersNow, ReadParameters, Stage
from msdump.frontends.torch.operators import plain
from msdump.statistics.stats import MeasuredArray, Statistics, statistics
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import MAX_NDIM, OpInfo, TensorInfo

if TYPE_CHECKING:
    import msdump_native

    from msdump.config.plan import Plan

_INPUT, _RESULT_MEMORY, _OUTPUT, _WRITTEN = range(4)
# Of one part of a step that are known at a time: a script may do several by turns.
_MAX_PROGRAMS = 4
# In which one of them is known.
_MAX_STATES = 16
# Parts of a step whose parameters are known at a time.
_MAX_ENDS = 64
# Versions of what was written in ways that were not counted.
_UNKNOWN = 1 << 40
# The state of an iteration that has told of nothing.
_BEGUN = object()


class _Shown(NamedTuple):
    """The tensor that showed a parameter last: its place, its memory, its number, and the call that read or wrote it,
    counted from the first of the iteration."""

    place: int
    memory: int
    number: int
    order: int


class _Program:
    """A batch of calls that was told of once, to be known again where the same code has run the same.

    key         all that names, edges and rows follow from
    ops         what observers know of each call that is shown
    operators   by call
    firsts      of the operands of each call that is shown, in `places`: tensors, and `numbers`: statistics, -1 without
    callers     who ran how many of them
    nodes       of autograd that the calls have made: numbers, from the first of the iteration; scopes; operators
    parameters  that were read, by identity and memory: the name, itself, and its tensor
    read        what the stage knows of them
    latest      by identity of a parameter, what showed it last
    written     memory -> the last call that has written it, counted as in `_Shown`; order: of its first call
    infos, origins  of tensors and of memories, as the tables of the iteration have them
    states      state of the iteration before the batch -> state after it, where all of this is so
    """

    def __init__(self, key: object) -> None:
        self.key = key
        self.ops: list[OpInfo] = []
        self.operators: list[Named | None] = []
        self.firsts: list[int] = [0]
        self.places: list[int] = []
        self.numbers: list[int] = []
        self.callers: Counter[Any] = Counter()
        self.nodes: Made = [], [], []
        self.parameters: dict[tuple[int, int], tuple[str, torch.Tensor, int]] = {}
        self.read = ReadParameters()
        self.latest: dict[int, _Shown] = {}
        self.written: dict[int, int] = {}
        self.order = 0
        self.infos: dict[int, TensorInfo] = {}
        self.origins: dict[int, Hashable] = {}
        self.skipped: list[tuple[str, str]] = []
        self.expected: tuple[Array, Array] | None = None
        self.states: dict[object, object] = {}

    def note_state(self, before: object) -> object:
        """What this is so in.   Returns: the state after it"""
        if len(self.states) >= _MAX_STATES:
            self.states.clear()
        state = self.states[before] = object()
        return state


class _Measured:
    """The calls of a batch that are shown, as observers see them."""

    def __init__(self, program: _Program, calls: NativeCalls, tables: Iteration) -> None:
        self._program = program
        self._calls = calls
        self._tables = tables
        self.ops: Sequence[OpInfo] = program.ops
        self.numbers = tables.numbers
        self.places: Sequence[int] = program.numbers

    def arrays(self, number: int) -> tuple[Sequence[Array], Sequence[Array]]:
        op = self.ops[number]
        first = self._program.firsts[number]
        self._calls.catch_up()
        arrays = [
            self._calls.array(self._tables, place)
            for place in self._program.places[first : first + len(op.inputs) + len(op.outputs)]
        ]
        return arrays[: len(op.inputs)], arrays[len(op.inputs) :]


class _End(NamedTuple):
    """Parameters as a part of a step has left them, all of which were measured as it ran.

    found    as `Stage` finds them
    shown    what showed each, by its identity
    tensors, places   themselves, and the tensors that showed them
    """

    found: Mapping[int, Any]
    shown: dict[int, _Shown | None]
    tensors: list[torch.Tensor]
    places: list[int]


class _ParametersNow:
    """As of `ParametersNow`, where operators were measured as they ran."""

    def __init__(self, calls: NativeCalls, stage: Stage, tables: Iteration, operands: CallOperands) -> None:
        self.state: Hashable = None
        self._calls = calls
        self._stage = stage
        self._tables = tables
        self._operands = operands
        # By identity of a parameter.
        self._shown: dict[int, _Shown | None] = {}

    def known(self, count: int) -> Mapping[int, Any] | None:
        name = self._stage.part, count, self._calls.state
        end = self._calls.ends.get(name)
        if end is None or not self._calls.lie_at(end.tensors, end.places):
            self._calls.catch_up()
            return None
        self._shown, self.state = end.shown, name
        return end.found

    def note(self, count: int, found: Mapping[int, Any]) -> None:
        tensors, places = [], []
        for _, tensor, kept in found.values():
            shown = self._shown[id(tensor)] if kept is None else None
            if shown is None or shown.number == NONE or self._tables.keeps:
                return
            tensors.append(tensor)
            places.append(shown.place)
        if len(found) == count:
            self.state = self._stage.part, count, self._calls.state
            if len(self._calls.ends) >= _MAX_ENDS:
                self._calls.ends.clear()
            self._calls.ends[self.state] = _End(found, self._shown, tensors, places)

    def is_readable(self, tensor: torch.Tensor, name: str) -> bool:
        shown = self._shown[id(tensor)] = self._calls.shown(self._stage, tensor)
        return shown is not None or self._operands.is_readable(tensor, name)

    def info(self, tensor: torch.Tensor) -> TensorInfo:
        shown = self._shown[id(tensor)]
        if shown is not None:
            return self._tables.infos[shown.place]
        info = self._operands.info(tensor)
        # What was written since has a key of its own.
        return replace(info, key=info.key._replace(version=_UNKNOWN + self._stage.part))

    def array(self, info: TensorInfo, tensor: torch.Tensor) -> Array:
        shown = self._shown[id(tensor)]
        if shown is None or shown.number == NONE:
            return self._operands.array(info, tensor)
        return self._calls.array(self._tables, shown.place)

    def number(self, tensor: torch.Tensor) -> int | None:
        shown = self._shown[id(tensor)]
        return None if shown is None or shown.number == NONE or self._tables.keeps else shown.number


class NativeCalls:
    """Of one program.

    observer       whose operators they are
    count_skipped  as of `CallOperands`
    state          of the iteration: two that have told of the same batches, in the same order, have the same
    ends           by part of a step, how many parameters it knows, and state
    """

    def __init__(
        self,
        observer: msdump_native.Observer,
        forward: Stage,
        operands: CallOperands,
        scopes: OperatorScopes,
        count_skipped: Callable[..., None],
    ) -> None:
        self._observer = observer
        self._forward = forward
        self._operands = operands
        self._scopes = scopes
        self._count_skipped = count_skipped
        self._plan: Plan | None = None
        self._iteration = Iteration(observer.numbers)
        self._sites: dict[int, tuple[Site, Lines]] = {0: ((), ())}
        # Lines that run a backward pass, which its operators have where autograd itself runs them.
        self.engine_lines: Lines = ()
        # Parameters by the address of their own object, as of a state of the names; and numbers by name and identity.
        self._parameters: dict[int, torch.Tensor] = {}
        self._named: object = None
        self._parameter_numbers: dict[tuple[str, int], int] = {}
        # Part of a step -> parameter by its identity -> what showed it last there.
        self._latest: defaultdict[int, dict[int, _Shown]] = defaultdict(dict)
        # The same, in any part.
        self._latest_of_all: dict[int, _Shown] = {}
        # Parameter by its identity -> address of the storage that it had then.
        self._storages: dict[int, int] = {}
        # By part of a step, and which of its batches it is.
        self._programs: dict[tuple[int, int], list[_Program]] = {}
        self.state: object = _BEGUN
        self.ends: dict[Hashable, _End] = {}
        # Programs that ran again, of which the tables do not know yet.
        self._waiting: list[tuple[Stage, _Program]] = []
        # What was taken since the last call of `show`.
        self._batch: Mapping[str, Any] | None = None

    @property
    def keeps(self) -> bool:
        """Whether observers want the elements of tensors."""
        return self._plan is not None and not self._plan.measures_only

    def take_plan(self, plan: Plan) -> None:
        """Another plan selects from the next iteration on."""
        self._plan = plan
        self.forget()

    def forget(self) -> None:
        """Forget what operators are called; between two iterations."""
        self._programs.clear()
        self.ends.clear()

    def begin(self) -> None:
        """An iteration begins."""
        # Where nobody else holds them, numbers of the next iteration take the memory of these.
        del self._iteration
        self._observer.begin_iteration()
        self._observer.keep(self.keeps)
        self._iteration = Iteration(self._observer.numbers, self.keeps)
        self.state = _BEGUN
        self._waiting.clear()
        self._latest.clear()
        self._latest_of_all.clear()
        self._storages.clear()

    def lie_at(self, tensors: list[torch.Tensor], places: list[int]) -> bool:
        """Whether these still lie where those of the iteration lay that have shown them."""
        return bool(self._observer.lie_at(tensors, places))

    def skip(self) -> None:
        """What has run is no part of a step."""
        self._batch = None
        self._take()
        self.break_off()

    def break_off(self) -> None:
        """Others may write what the iteration has shown: its state is none that was met before."""
        self.catch_up()
        self.state = object()

    def show(self, stage: Stage, scopes: Sequence[tuple[str, bool]], optimizers: Sequence[str]) -> None:
        """Tell the observers of a stage of all calls that have run since the last time.

        scopes  by number: what `Scopes.current` was, and whether a module was being called
        """
        tables = self._iteration
        tables.first = self._observer.first_sequence
        self._batch = None
        self._find_parameters()
        ordinal = stage.part, tables.batches[stage.part]
        tables.batches[stage.part] += 1
        known = self._programs.setdefault(ordinal, [])
        key = self._observer.key(f"{tables.order} {'/'.join(optimizers)}")
        program = self._known_one([each for each in known if each.key == key])
        if program is None:
            batch = self._take()
            self.catch_up()
            self._show_anew(stage, _Program(key), batch, scopes, optimizers, known)
            return
        # What has run last is what is expected.
        known.remove(program)
        known.insert(0, program)
        self._show_again(stage, program, key)

    def _known_one(self, programs: Sequence[_Program]) -> _Program | None:
        """That of some with equal keys whose memories are what they were when it was told of."""
        for program in programs:
            if self.state in program.states:
                return program
        for program in programs:
            self._take()
            self.catch_up()
            if self._iteration.take_origins(program.origins):
                program.note_state(self.state)
                return program
        return None

    def _take(self) -> Mapping[str, Any]:
        """What has run since the last time that something was taken; the tables know the tensors."""
        batch = self._batch
        if batch is None:
            batch = self._batch = self._observer.take()
            self._iteration.add(batch)
            self._iteration.complete()
            for number, inner_count, frames in batch["sites"]:
                parts: Site = ()
                for name, _, first_line, _, instruction in frames[:inner_count]:
                    parts += (name, first_line, instruction)
                self._sites[number] = parts, lines_of([(name, line) for name, _, _, line, _ in frames])
        return batch

    def catch_up(self) -> None:
        """The tables know what programs have done that have run again, while no other operators wait."""
        if not self._waiting:
            return
        self._take()
        waiting, self._waiting = self._waiting, []
        tables = self._iteration
        for stage, program in waiting:
            tables.take_origins(program.origins)
            tables.infos.update(program.infos)
            stage.count_again(program.callers)
            read = program.parameters.values()
            storages = tables.storages([place for *_, place in read])
            memories = {id(tensor): storage for (_, tensor, _), storage in zip(read, storages, strict=True)}
            stage.add_parameters_again(program.read, memories)
            self._latest[stage.part].update(program.latest)
            self._latest_of_all.update(program.latest)
            self._storages.update(memories)
            self._note_written(stage, program.written)

    def _show_again(self, stage: Stage, program: _Program, key: Any) -> None:
        """Tell of a program that is known."""
        tables = self._iteration
        changed = key.changed(program.key)
        if self._batch is None and not changed and not tables.keeps and not self._observer.has_kept:
            self._observer.drop()
            tables.complete()
        else:
            self._take()
        if changed:
            program.key = key
            self._note_floats(stage, program, changed)
        self._waiting.append((stage, program))
        self.state = program.states[self.state]
        self._scopes.begin_part(tables.first, program.nodes)
        tables.order += len(program.operators)
        if tables.keeps:
            self.catch_up()
        for reason, name in program.skipped:
            self._count_skipped(reason, name=name)
        if program.ops:
            stage.show_measured(_Measured(program, self, tables), stage.may_wait(program.ops))

    def _note_floats(self, stage: Stage, program: _Program, changed: Sequence[int]) -> None:
        """Operators have run with other floats than before."""
        batch = self._take()
        values = batch["numbers"].tolist()
        for index in changed:
            operator = program.operators[index]
            if operator is not None:
                row = batch["operators"][index]
                first = int(row["first_number"])
                own = _floats(values[first : first + int(row["number_count"])])
                attributes = {name: plain(value) for name, value in batch["arguments"].of(index).items()}
                stage.note_numbers(operator, own, attributes)

    def _show_anew(
        self,
        stage: Stage,
        program: _Program,
        batch: Mapping[str, Any],
        scopes: Sequence[tuple[str, bool]],
        optimizers: Sequence[str],
        known: list[_Program],
    ) -> None:
        tables = self._iteration
        program.order = tables.order
        program.nodes = self._scopes.begin_part(tables.first)
        operators, operands = batch["operators"].tolist(), batch["operands"].tolist()
        numbers, arguments = batch["numbers"].tolist(), batch["arguments"]
        fields = {name: place for place, name in enumerate(batch["operators"].dtype.names)}
        for index, row in enumerate(operators):
            record = {name: row[place] for name, place in fields.items()}
            first, first_number = record["first_operand"], record["first_number"]
            self._show(
                stage,
                program,
                batch["names"][record["name"]],
                record,
                operands[first : first + record["operand_count"]],
                _floats(numbers[first_number : first_number + record["number_count"]]),
                functools.partial(arguments.of, index),
                scopes[record["scope"]],
                optimizers,
            )
        self._scopes.begin_part(0)
        program.infos = {place: tables.infos[place] for place in program.places}
        program.origins = {
            memory: tables.origins[memory] for memory in (tables.tensor(place)[5] for place in program.places)
        }
        program.expected = _expected(batch["operators"], program)
        self.state = program.note_state(self.state)
        tables.order += len(program.operators)
        known.insert(0, program)
        del known[_MAX_PROGRAMS:]

    def expected(self, stage: Stage | None) -> tuple[Array, Array] | None:
        """What runs next, as far as it is known, where observers do not look at all of it: keys of operators, and
        which of them are shown."""
        if stage is None or not stage.is_watched:
            return None
        known = self._programs.get((stage.part, self._iteration.batches[stage.part]))
        return known[0].expected if known else None

    def parameters_now(self, stage: Stage) -> ParametersNow:
        """As they are when a stage ends."""
        return _ParametersNow(self, stage, self._iteration, self._operands)

    def shown(self, stage: Stage, tensor: torch.Tensor) -> _Shown | None:
        """What shows a parameter as a stage has left it; None where nothing does.

        The forward pass has its own, whatever an optimizer writes before it ends, as where the script ends a step.
        """
        is_forward = stage is self._forward
        written = self._iteration.written_by_forward if is_forward else self._iteration.written
        found = self._latest[stage.part].get(id(tensor))
        if found is not None and written.get(found.memory, -1) > found.order and not is_forward:
            found = self._latest_of_all[id(tensor)]
        if found is None or written.get(found.memory, -1) > found.order:
            return None
        # The script may have given it other values since, as `half` does.
        return found if tensor.untyped_storage()._cdata == self._storages[id(tensor)] else None

    # -- parts ------------------------------------------------------------------------------------

    def _note_written(self, stage: Stage, written: Mapping[int, int]) -> None:
        self._iteration.written.update(written)
        if stage is self._forward:
            self._iteration.written_by_forward.update(written)

    def _why_not(self, place: int, reason: int) -> str:
        """Why an operand of a call that is shown cannot be shown; "" where it can."""
        if place != NONE:
            row = self._iteration.tensor(place)
            if row[6] > MAX_NDIM:
                return TOO_DEEP
            why, has_numbers = shown_as(row[7])
            if why or not has_numbers:
                return why
        return _text_of(reason) if reason else ""

    def _find_parameters(self) -> None:
        names = self._operands.names
        if names.state != self._named:
            self._named = names.state
            self._parameters = {tensor._cdata: tensor for tensor in names.tensors()}
            numbers = self._parameter_numbers
            self._observer.name_parameters({
                tensor._cdata: numbers.setdefault((name, id(tensor)), len(numbers)) for tensor, name in names.items()
            })  # fmt: skip

    def _selects(self, operator: Named) -> bool:
        assert self._plan is not None
        return operator.is_selected_by(self._plan)

    def _show(
        self,
        stage: Stage,
        program: _Program,
        name: str,
        record: Mapping[str, Any],
        rows: Sequence[tuple[Any, ...]],
        numbers: tuple[object, ...],
        arguments: Callable[[], dict[str, object]],
        scope: tuple[str, bool],
        optimizers: Sequence[str],
    ) -> None:
        function = overload_named(name)
        signature = signature_of(function)
        current, is_inside = scope
        node = record["node_sequence"] if record["node"] and not is_inside else None
        full_scope = self._scopes.find_at(stage.part, current, node, optimizers)
        site, lines = self._sites[record["site"]]
        is_gradient = not site and bool(record["node"])
        if is_gradient:
            site = (self._scopes.forward,)
        operator = stage.named(full_scope, signature.op_type, site)
        if is_gradient:
            operator.of = self._scopes.forward
        program.callers[stage.caller(full_scope, signature.op_type, site)] += 1
        if operator.lines is None and (stage is self._forward or self._selects(operator)):
            operator.lines = lines or (self.engine_lines if record["node"] else ())
        if record["has_grad"]:
            self._scopes.note_made(record["last_sequence"] - 1, operator)
        order = program.order + len(program.operators)
        for _, place, _, _, _, is_written, _ in rows:
            if is_written and place != NONE:
                memory = self._iteration.tensor(place)[5]
                program.written[memory] = order
                self._note_written(stage, {memory: order})
        if record["has_raised"] or not self._selects(operator):
            # One that raises has no results: recomputation ends so, in the last operator that is needed.
            program.operators.append(None)
            return
        names = [argument.name for argument in function._schema.arguments]
        tensors: list[Tensor] = []
        inputs: list[TensorInfo] = []
        read: list[Array] = []
        outputs: list[TensorInfo] = []
        written: list[Array] = []
        is_single = len(function._schema.returns) == 1
        for implementation, place, element, argument, role, is_written, reason in rows:
            parameter = self._parameters.get(implementation)
            if role == _RESULT_MEMORY:
                continue
            why = self._why_not(place, reason)
            if why:
                program.skipped.append((why, operator.name))
                self._count_skipped(why, name=operator.name)
                continue
            if role == _INPUT:
                label = names[argument] if element < 0 else f"{names[argument]}[{element}]"
                info = self._info(place, (operator, label), parameter)
                tensors.append(Tensor(label, parameter, bool(is_written)))  # type: ignore[arg-type]
                inputs.append(info)
                read.append(self.array(self._iteration, place))
                program.places.append(place)
                if parameter is not None:
                    self._note_parameter(stage, program, info, place, parameter, order - 1)
            else:
                path = (argument,) if element < 0 else (argument, element)
                own_path = path[1:] if is_single and role == _OUTPUT else path
                outputs.append(self._info(place, (operator, own_path), parameter))
                written.append(self.array(self._iteration, place))
                program.places.append(place)
                if parameter is not None and id(parameter) in self._latest[stage.part]:
                    self._note_latest(stage, program, parameter, place, order)
        if not tensors and not outputs:
            program.operators.append(None)
            return
        call = Call(
            signature, full_scope, operator, tensors, arguments, tuple(inputs), numbers, read=read,
            outputs=tuple(outputs), written=written,
        )  # fmt: skip
        stage.show(call)
        assert operator.last is not None
        program.ops.append(operator.last)
        program.operators.append(operator)
        program.firsts.append(len(program.places))
        for place in program.places[program.firsts[-2] :]:
            number = self._iteration.tensor(place)[4]
            program.numbers.append(-1 if number == NONE or self._iteration.keeps else number)

    def _note_parameter(
        self, stage: Stage, program: _Program, info: TensorInfo, place: int, tensor: torch.Tensor, order: int
    ) -> None:
        name = self._operands.names.get(tensor)
        if name is not None:
            memory = self._iteration.tensor(place)[5]
            program.parameters[id(tensor), memory] = name, tensor, place
            program.read.add(info, stage.add_parameter(info, name, tensor, self._iteration.tensor(place)[0]), tensor)
            self._note_latest(stage, program, tensor, place, order)

    def _note_latest(self, stage: Stage, program: _Program, tensor: torch.Tensor, place: int, order: int) -> None:
        row = self._iteration.tensor(place)
        shown = _Shown(place, row[5], row[4], order)
        self._storages[id(tensor)] = row[0]
        self._latest[stage.part][id(tensor)] = self._latest_of_all[id(tensor)] = program.latest[id(tensor)] = shown

    def _info(self, place: int, origin: tuple[Named, Hashable], parameter: torch.Tensor | None) -> TensorInfo:
        tables = self._iteration
        info = tables.infos.get(place)
        if info is None:
            version, memory = tables.tensor(place)[2], tables.tensor(place)[5]
            part = self._iteration.part(place)
            known = tables.origins.get(memory)
            if known is None:
                name = None if parameter is None else self._operands.names.get(parameter)
                known = tables.name_memory(memory, origin if name is None else name)
            info = tables.infos[place] = self._operands.table.info_of(known, part, version)
        return info

    def array(self, tables: Iteration, place: int) -> Array:
        """Shape and statistics of a tensor of an iteration, or its elements."""
        array = tables.arrays.get(place)
        if array is None:
            info, number = tables.infos[place], tables.tensor(place)[4]
            numpy_dtype = dtypes.dtype(info.dtype).numpy
            if 0 in info.shape:
                array = np.empty(info.shape, numpy_dtype)
            elif tables.keeps and number != NONE:
                array = self._values(tables, place, info)
            else:
                numbers: Callable[[], Statistics]
                if number == NONE:
                    numbers = functools.cache(self._no_numbers)
                else:
                    numbers = functools.partial(tables.numbers.__getitem__, number)
                array = MeasuredArray(info.shape, numpy_dtype, numbers)
            tables.arrays[place] = array
        return array

    def _no_numbers(self) -> Statistics:
        """Of a tensor that has none, such as a tangent without memory; the report counts it."""
        self._count_skipped("tensor that was not measured")
        return statistics(np.empty((0,), np.float32), "float32")

    def _values(self, tables: Iteration, place: int, info: TensorInfo) -> Array:
        """Elements of a tensor that was copied as it ran; none where it cannot be read, which the report counts."""
        try:
            return tables.values(place)
        except Exception as error:  # noqa: BLE001 - whatever it is, one tensor ends no dump
            self._count_skipped(f"copied tensor that cannot be read ({type(error).__name__})")
            return np.empty((0,), dtypes.dtype(info.dtype).numpy)


def _floats(values: Iterable[float]) -> tuple[object, ...]:
    """NaN as text, as it is unequal to itself."""
    return tuple(["nan" if value != value else value for value in values])


def _expected(operators: Array, program: _Program) -> tuple[Array, Array] | None:
    """As of `NativeCalls.expected`, in the order in which operators begin."""
    is_wanted = np.array([operator is not None for operator in program.operators], bool)
    # One that raised may have results the next time.
    is_wanted |= operators["has_raised"] != 0
    if is_wanted.all():
        return None
    order = np.argsort(operators["start_ns"], kind="stable")
    return operators["key"][order], is_wanted[order].astype(np.uint8)


@functools.cache
def overload_named(name: str) -> torch._ops.OpOverload:
    """`aten.addmm.default` -> the operator."""
    namespace, packet, overload = name.split(".")
    found: torch._ops.OpOverload = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    return found


@functools.cache
def _text_of(reason: int) -> str:
    import msdump_native

    return f"{msdump_native.REASONS[reason]} tensor"
