"""Which parameters of a program get gradients, from which operators, and which optimizers step them."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from msdump.formats.learning_json import (
    MAX_ROWS,
    Cut,
    GradientSpan,
    Learning,
    LearningOptimizer,
    LearningParameter,
    Stray,
)
from msdump.frontends.torch.eager.call_sites import PASSED_FILES, lines_above, source_lines
from msdump.frontends.torch.eager.tensors import local, version_of
from msdump.graph.types import is_library
from msdump.tensors.torch_arrays import dtype_name

if TYPE_CHECKING:
    from types import FrameType

    from msdump.frontends.torch.eager.operands import CallOperands
    from msdump.frontends.torch.eager.stage import Call, Named, Stage
    from msdump.graph.graph import Value

_DETACH = "aten.detach.default"
# Code between an operator and what calls it.
_PASSED = (__file__.rpartition("/frontends/")[0], *PASSED_FILES)
# Backward passes after which optimizers without a step are looked for, and again each time that they have doubled.
_FIRST_LOOK = 16
_CHECKPOINT = os.path.join(torch.__path__[0], "utils", "checkpoint.py")


class LearningRecord:
    """Of one program, in iterations that are dumped. What is the same in each of them is kept once.

    A failure, as of a tensor of another library, ends the record and nothing else.

    operands  tell the names of tensors, and which tensor an operator has made
    backward  the stage whose operators make gradients
    """

    def __init__(self, operands: CallOperands, backward: Stage) -> None:
        self._operands = operands
        self._backward = backward
        self._backwards = _Spans()
        self._parameters: dict[str, _Parameter] = {}
        self._optimizers: list[_Optimizer] = []
        self._by_id: dict[int, _Optimizer] = {}
        self._cuts: dict[str, Cut] = {}
        # Modules that were called from outside, by identity; and whether a script computes gradients of its own choice,
        # as of the data of a differential equation.
        self._called: dict[int, weakref.ref[torch.nn.Module]] = {}
        self._chooses = False
        # Parameters, and tensors that a module has, without a name that operators read, by identity.
        self._strays: dict[int, _Stray] = {}
        # Parameters whose names have become those of other tensors, by identity.
        self._replaced: dict[int, weakref.ref[torch.Tensor]] = {}
        self._trainings = _Spans()
        # Whether a module that was called since the last backward pass is in training mode.
        self._is_training = False
        # In the code, of the operator that was last told of.
        self._place: tuple[object, int] | None = None
        self._has_failed = False
        # Backward passes.
        self._passes = 0

    def note_call(self, module: torch.nn.Module) -> None:
        """An outermost module is called. A loss has no parameters, and stays in training mode."""
        known = self._called.get(id(module))
        if known is None or known() is not module:
            self._called = {key: each for key, each in self._called.items() if each() is not None}
            self._called[id(module)] = weakref.ref(module)
        if module.training and torch.is_grad_enabled() and not self._is_training:
            self._is_training = next(module.parameters(), None) is not None

    def note_read(self, stage: Stage, call: Call) -> None:
        """An operator of the forward pass is told of for the first time: does it read what asks for a gradient?"""
        if self._has_failed or not any(each.tensor.requires_grad for each in call.tensors):
            return
        with self._whatever_fails():
            place, self._place = self._place, _place()
            if len(self._cuts) < MAX_ROWS:
                if not torch.is_grad_enabled():
                    self._cuts[call.name] = _cut(stage.graph.graph_id, call.name)
                elif call.signature.op_type == _DETACH and place != self._place:
                    # PyTorch does so by itself with what a function saves, where it is called.
                    self._cuts[call.name] = Cut(stage.graph.graph_id, call.name, "detach")
            for each in call.tensors:
                if id(each.tensor) in self._strays or len(self._strays) >= MAX_ROWS:
                    continue
                is_parameter = isinstance(each.tensor, torch.nn.Parameter)
                if is_parameter or (each.tensor.requires_grad and each.tensor.is_leaf and self._is_held(each.tensor)):
                    self._strays.setdefault(
                        id(each.tensor),
                        _Stray(weakref.ref(each.tensor), stage.graph.graph_id, call.operator, is_parameter),
                    )

    def _is_held(self, tensor: torch.Tensor) -> bool:
        """Whether a module has a tensor as an attribute, or in a list or a dict that is one."""
        for reference in self._called.values():
            module = reference()
            for part in () if module is None else module.modules():
                for value in vars(part).values():
                    inner = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
                    if value is tensor or any(one is tensor for one in inner):
                        return True
        return False

    def note_backward(self, iteration: int) -> None:
        """A backward pass has left its gradients."""
        if self._has_failed:
            return
        with self._whatever_fails():
            for each in self._optimizers:
                each.end_backward()
            self._backwards.add(iteration)
            self._passes += 1
            if self._passes >= _FIRST_LOOK and self._passes & (self._passes - 1) == 0:
                self._note_unstepped()
            if self._is_training:
                self._trainings.add(iteration)
                self._is_training = False
            names = self._operands.names
            for tensor, name in names.items():
                # The type first: the class asks every tensor.
                if type(tensor) is not torch.nn.Parameter and not isinstance(tensor, torch.nn.Parameter):
                    continue
                row = self._parameters.get(name)
                if row is None or row.tensor() is not tensor:
                    row = self._begin(name, tensor, iteration)
                self._note_gradient(row, tensor, iteration)
            # A module may be called in one iteration, and have its gradients in the next, as a generator has.
            for row in self._parameters.values():
                found = row.tensor()
                if found is not None and found not in names:
                    self._note_gradient(row, found, iteration)
            for stray in self._strays.values():
                found = stray.tensor()
                if found is not None:
                    stray.has_gradient |= found.grad is not None
                    stray.shape = tuple(found.shape)
                    stray.is_named |= found in names

    def _note_gradient(self, row: _Parameter, tensor: torch.Tensor, iteration: int) -> None:
        gradient = tensor.grad
        value = None
        if gradient is not None and (info := self._operands.table.known(local(gradient))) is not None:
            value = self._backward.value_of(info)
        row.note(iteration, tensor.requires_grad, gradient is not None, self._backward.graph.graph_id, value)

    def _begin(self, name: str, tensor: torch.Tensor, iteration: int) -> _Parameter:
        """A tensor is met under a name for the first time, which may have been that of another one."""
        dtype = dtype_name(tensor.dtype) or str(tensor.dtype)
        row, before = _Parameter(weakref.ref(tensor), dtype, tuple(tensor.shape)), self._parameters.get(name)
        self._parameters[name] = row
        if before is not None:
            row.spans, row.state, row.since = before.spans, before.state, iteration
            if (old := before.tensor()) is not None and len(self._replaced) < MAX_ROWS:
                self._replaced[id(old)] = before.tensor
            for each in self._optimizers:
                each.is_to_be_asked = True
        return row

    def note_choice(self) -> None:
        """Gradients of what a script names are about to be computed, which stay in no tensor."""
        self._chooses = True

    def begin_backward(self) -> None:
        """A backward pass is about to leave gradients: have those of the last step been cleared?"""
        if not self._has_failed:
            with self._whatever_fails():
                for row in self._optimizers:
                    row.begin_backward()

    def note_step(self, iteration: int | None, optimizer: object, is_skipped: bool) -> None:
        """An optimizer is about to make a step, or a scaler of the loss has left it out."""
        if self._has_failed or iteration is None or not isinstance(optimizer, torch.optim.Optimizer):
            return
        with self._whatever_fails():
            row = self._by_id.get(id(optimizer))
            if row is None or row.reference() is not optimizer:
                row = _Optimizer(weakref.ref(optimizer), type(optimizer).__name__, len(self._optimizers))
                self._by_id[id(optimizer)] = row
                self._optimizers.append(row)
            if not row.count:
                row.line = _last_line(sys._getframe(1))
            (row.skipped if is_skipped else row.steps).add(iteration)
            row.count += 1
            groups = optimizer.param_groups
            with_gradient = next((each for group in groups for each in group["params"] if each.grad is not None), None)
            if not is_skipped and with_gradient is None:
                row.empty.add(iteration)
            row.begin_step(with_gradient)
            rates = [group.get("lr") for group in groups]
            known = [float(rate) for rate in rates if isinstance(rate, int | float)]
            if known and len(known) == len(rates) and math.isfinite(max(known)):
                row.note_rate(iteration, max(known))
            if row.count & (row.count - 1) == 0 or row.is_to_be_asked:
                row.is_to_be_asked = False
                self._note_owned(row, [each for group in groups for each in group["params"]])

    def _note_owned(self, row: _Optimizer, parameters: list[torch.Tensor]) -> None:
        """What it steps: asked each time that the number of its steps has doubled, and when tensors are replaced."""
        known = {id(tensor): one for one in self._parameters.values() if (tensor := one.tensor()) is not None}
        for each in parameters:
            parameter = known.get(id(each))
            if parameter is not None:
                parameter.optimizer = row.number
                row.outside.pop(id(each), None)
            elif self._is_replaced(each) or (each.grad is None and (row.count == 1 or id(each) in row.outside)):
                row.outside[id(each)] = weakref.ref(each), tuple(each.shape)
            else:
                row.outside.pop(id(each), None)
            if (stray := self._strays.get(id(each))) is not None and stray.tensor() is each:
                stray.optimizer = True

    def _note_unstepped(self) -> None:
        """Optimizers that have made no step, of parameters that no other one steps."""
        rows = {id(found): row for row in self._parameters.values() if (found := row.tensor()) is not None}
        if all(row.optimizer is not None for row in rows.values()):
            return
        for each in gc.get_objects():
            # The type first: the class asks every object.
            if not issubclass(type(each), torch.optim.Optimizer) or id(each) in self._by_id:
                continue
            own = [rows.get(id(one)) for group in each.param_groups for one in group["params"]]
            if own and all(one is not None and one.optimizer is None for one in own):
                row = _Optimizer(weakref.ref(each), type(each).__name__, len(self._optimizers))
                self._by_id[id(each)] = row
                self._optimizers.append(row)
                for one in own:
                    if one is not None:
                        one.optimizer = row.number

    def _is_replaced(self, tensor: torch.Tensor) -> bool:
        reference = self._replaced.get(id(tensor))
        return reference is not None and reference() is tensor

    def so_far(self) -> Learning | None:
        """None where nothing has learned, or it is not known what."""
        if self._has_failed or not self._parameters:
            return None
        return Learning(
            self._backwards.all,
            tuple(
                LearningParameter(name, row.dtype, row.shape, row.optimizer, tuple(row.spans), row.since)
                for name, row in self._parameters.items()
            ),
            tuple(
                LearningOptimizer(
                    row.name, tuple(row.rates), row.steps.all, row.skipped.all,
                    tuple(shape for _, shape in row.outside.values()), row.empty.all, row.kept, row.cleared, *row.line,
                )
                for row in self._optimizers
            ),
            tuple(self._cuts.values()),
            tuple(
                Stray(row.graph, row.operator.name, row.shape, row.optimizer)
                for row in self._strays.values()
                if row.has_gradient and not row.is_named and (row.is_parameter or not self._chooses)
            ),
            self._trainings.all,
        )  # fmt: skip

    @contextlib.contextmanager
    def _whatever_fails(self) -> Iterator[None]:
        try:
            yield
        except Exception:  # noqa: BLE001 - the program goes on, whatever a tensor of another library does
            self._has_failed = True


class _Spans:
    """Iterations, as pairs of the first and the last one of each row of them."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int]] = []

    def add(self, iteration: int) -> None:
        if self._rows and self._rows[-1][1] + 1 >= iteration:
            self._rows[-1] = self._rows[-1][0], iteration
        elif len(self._rows) < MAX_ROWS:
            self._rows.append((iteration, iteration))

    @property
    def all(self) -> tuple[tuple[int, int], ...]:
        return tuple(self._rows)


@dataclass(slots=True)
class _Parameter:
    tensor: weakref.ref[torch.Tensor]
    dtype: str
    shape: tuple[int, ...]
    optimizer: int | None = None
    spans: list[GradientSpan] = field(default_factory=list)
    state: tuple[bool, bool, Value | None] | None = None
    since: int = 0

    def note(self, iteration: int, asks: bool, has: bool, graph_id: int, value: Value | None) -> None:
        """What is true after a backward pass; the last one of an iteration counts."""
        if self.state == (asks, has, value) or len(self.spans) >= MAX_ROWS:
            return
        self.state = asks, has, value
        if self.spans and self.spans[-1].first == iteration:
            self.spans.pop()
        node = None if value is None else value.node
        if value is None or node is None:
            self.spans.append(GradientSpan(iteration, asks, has))
        else:
            self.spans.append(GradientSpan(iteration, asks, has, graph_id, node.full_name, value.index))


@dataclass(slots=True)
class _Optimizer:
    """outside: what it steps that has no name, by identity"""

    reference: weakref.ref[torch.optim.Optimizer]
    name: str
    number: int
    line: tuple[str, int, str] = ("", 0, "")
    count: int = 0
    rates: list[tuple[int, float]] = field(default_factory=list)
    steps: _Spans = field(default_factory=_Spans)
    skipped: _Spans = field(default_factory=_Spans)
    outside: dict[int, tuple[weakref.ref[torch.Tensor], tuple[int, ...]]] = field(default_factory=dict)
    empty: _Spans = field(default_factory=_Spans)
    kept: int = 0
    cleared: int = 0
    # A parameter, its gradient as the last step or backward pass left it, and how often that had been written.
    left: tuple[weakref.ref[torch.Tensor], weakref.ref[torch.Tensor], int | None] | None = None
    is_cleared: bool = False
    is_to_be_asked: bool = False

    def begin_step(self, parameter: torch.Tensor | None) -> None:
        """parameter: one that has a gradient"""
        if self.left is not None:
            self.kept, self.cleared = self.kept + (not self.is_cleared), self.cleared + self.is_cleared
        self.is_cleared = False
        self._leave(parameter)

    def _leave(self, parameter: torch.Tensor | None) -> None:
        gradient = None if parameter is None else parameter.grad
        self.left = None
        if parameter is not None and gradient is not None:
            self.left = weakref.ref(parameter), weakref.ref(gradient), version_of(gradient)

    def begin_backward(self) -> None:
        if self.left is not None and (parameter := self.left[0]()) is not None:
            gradient = parameter.grad
            self.is_cleared |= (
                gradient is None or gradient is not self.left[1]() or version_of(gradient) != self.left[2]
            )

    def end_backward(self) -> None:
        if self.left is not None and not self.is_cleared:
            self._leave(self.left[0]())

    def note_rate(self, iteration: int, rate: float) -> None:
        if (not self.rates or self.rates[-1][1] != rate) and len(self.rates) < MAX_ROWS:
            self.rates.append((iteration, rate))


@dataclass(slots=True)
class _Stray:
    tensor: weakref.ref[torch.Tensor]
    graph: int
    operator: Named
    is_parameter: bool
    shape: tuple[int, ...] = ()
    has_gradient: bool = False
    is_named: bool = False
    optimizer: bool = False


def _place() -> tuple[object, int] | None:
    """The instruction that calls an operator."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PASSED):
        frame = frame.f_back
    return None if frame is None else (frame.f_code, frame.f_lasti)


def _cut(graph: int, operator: str) -> Cut:
    """Where gradients are off, and whether a checkpoint turned them off, which computes them later by itself."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _CHECKPOINT:
        frame = frame.f_back
    if frame is None:
        return Cut(graph, operator, "no_grad")
    return Cut(graph, operator, "checkpoint", *_last_line(frame))


def _last_line(frame: FrameType) -> tuple[str, int, str]:
    """The innermost line of the script that has called a frame."""
    lines = [line for line in source_lines(lines_above(frame)) if not is_library(line.path)]
    return (lines[-1].path, lines[-1].line, lines[-1].code) if lines else ("", 0, "")
