"""Differentiation of a function of tensors: inside the active graph, or on a recording made for this call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import msdump.mindspore.program.region_gradients  # noqa: F401  (registers the gradients of control flow)
from msdump.errors import GraphError, OperandValueError
from msdump.graph.graph import CONSTANT, Graph, Node, Value
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.hooks import check_gradient
from msdump.mindspore.iterations import note_gradients
from msdump.mindspore.located import located
from msdump.mindspore.program.autodiff import gradients_of_sum, keep_read_values
from msdump.mindspore.structure import flatten, unflatten
from msdump.mindspore.tracer import Tracer, current_tracer
from msdump.tensors import dtypes


@dataclass(frozen=True)
class Differentiated:
    """What a function gave, and the gradients of its loss: the sum of its outputs, or its first output.

    outputs           what the function returned
    positions         those of the wanted ones whose argument holds a tensor
    input_gradients   one for each of them, of the structure of that argument
    weight_gradients  one per weight
    """

    outputs: Any
    positions: tuple[int, ...]
    input_gradients: tuple[Any, ...]
    weight_gradients: tuple[Tensor, ...]


@located("gradient")
def differentiate(
    function: Callable[..., Any], args: Sequence[Any], positions: Sequence[int] = (), weights: Sequence[Parameter] = (),
    sens: Any = None, has_aux: bool = False,
) -> Differentiated:  # fmt: skip
    """Run `function(*args)` and take the gradients of its loss.

    positions  of arguments; those without tensors have no gradient
    sens       gradient of the loss: a number, a tensor, or a structure of tensors like the outputs; None: ones
    Edges:   zeros where the loss does not depend on something; with several outputs the loss is the sum of all their
             elements, with `has_aux` only the first of the outputs is the loss.
    Raises:  IndexError for a position without an argument; GraphError when there is no loss, or an operator on the
             way has no gradient.
    """
    for place in positions:
        # A function that gets no argument is called: it tells best which ones it lacks.
        if place >= len(args) > 0:
            raise IndexError(f"gradient: expected a position of the {len(args)} arguments, got {place}.")
    places = tuple(place for place in positions if place < len(args) and _has_tensor(args[place]))
    outer = current_tracer()
    tracer = outer or Tracer(Graph(name="recording"), is_recording=True)
    with nullcontext() if outer else tracer.active(), tracer.differentiating():
        tracer.weights.extend(weight for weight in weights if not _is_in(weight, tracer.weights))
        inner, inputs = _inner_args(tracer, args)
        outputs = outer.recall(function, inner) if outer is not None else None
        if outputs is None:
            outputs = function(*inner)
        losses = [tracer.value_of(loss) for loss in _losses_of(outputs, has_aux)]
        senses = [_sens_value(tracer, *pair) for pair in zip(losses, _each_sens(sens, len(losses)), strict=True)]
        wrt = [value for place in places for value in inputs[place]] + [tracer.value_of(weight) for weight in weights]
        first = len(tracer.graph.nodes)
        hooks = _hooks(tracer, args, inputs, weights)
        changes = partial(_hooked, tracer, hooks) if hooks else None
        results = gradients_of_sum(tracer.graph, list(zip(losses, senses, strict=True)), wrt, changes)
        tracer.catch_up([value for value in results if value is not None])
        if not tracer.is_recording:
            keep_read_values(tracer.graph, first)
        tensors = [_gradient(tracer, value, gradient) for value, gradient in zip(wrt, results, strict=True)]
    if weights:
        note_gradients(weights)
    leaves = iter(tensors)
    per_input = []
    for place in places:
        structure = flatten(inner[place], [])
        per_input.append(next(leaves) if structure.kind == "constant" else unflatten(structure, leaves))
    return Differentiated(outputs, places, tuple(per_input), tuple(leaves))


_Hooks = dict[int, Sequence[tuple[Callable[[Tensor], Any]]]]


def _hooks(tracer: Tracer, args: Sequence[Any], inputs: dict[int, list[Value]], weights: Sequence[Parameter]) -> _Hooks:
    """Value id -> hooks: those that the program registered, and those of its arguments and weights."""
    hooks: _Hooks = dict(tracer.gradient_hooks)
    for position, arg in enumerate(args):
        for tensor, value in zip(_tensors(arg), inputs[position], strict=False):
            if tensor.gradient_hooks:
                hooks[value.id] = tensor.gradient_hooks
    for weight in weights:
        if weight.gradient_hooks:
            hooks[tracer.value_of(weight).id] = weight.gradient_hooks
    return hooks


def _hooked(tracer: Tracer, hooks: _Hooks, value: Value, gradient: Value, node: Node | None) -> Value:
    for (hook,) in hooks.get(value.id, ()):
        tracer.catch_up([gradient])
        shown = tracer.tensor_of(gradient)
        with nullcontext() if node is None else tracer.backward_of(node):
            gradient = tracer.value_of(check_gradient("Tensor.register_hook", hook(shown), shown))
    return gradient


def _is_in(weight: Parameter, weights: Sequence[Parameter]) -> bool:
    return any(weight is each for each in weights)


def _inner_args(tracer: Tracer, args: Sequence[Any]) -> tuple[list[Any], dict[int, list[Value]]]:
    """The arguments as they are inside the graph, and the values of each."""
    inner: list[Any] = []
    selected: dict[int, list[Value]] = {}
    for position, arg in enumerate(args):
        if isinstance(arg, Parameter):
            selected[position] = [tracer.value_of(arg)]
            inner.append(arg)
            continue
        leaves: list[Tensor] = []
        structure = flatten(arg, leaves)
        if tracer.is_recording:
            leaves = [_recorded(tracer, leaf, f"args{position}") for leaf in leaves]
        values = [tracer.value_of(leaf) for leaf in leaves]
        selected[position] = values
        inner.append(unflatten(structure, iter(map(tracer.tensor_of, values))))
    return inner, selected


def _recorded(tracer: Tracer, leaf: Tensor, name: str) -> Tensor:
    """A leaf that is a value of its own: constants are shared, and so would be their gradients."""
    value = tracer.known_value(leaf)
    return leaf if value is not None and value.kind != CONSTANT else tracer.add_input(name, leaf)


def _losses_of(outputs: Any, has_aux: bool) -> list[Tensor]:
    """Tensors whose elements are added up: those of all outputs, or of the first.

    Edges: bools take no part, as no gradient flows through them.
    """
    if has_aux:
        outputs = first_of(outputs)
    parts = list(_tensors(outputs))
    if not parts:
        raise GraphError(
            f"gradient: expected the function to return a tensor, the loss, got {type(outputs).__name__}. "
            "Return the loss first and set has_aux=True for further results."
        )
    return [part for part in parts if part.type_.dtype != "bool"]


def first_of(outputs: Any) -> Any:
    """What is differentiated of a function that gives further results.   Raises: OperandValueError without these."""
    if not isinstance(outputs, tuple | list) or len(outputs) < 2:
        got = f"{len(outputs)} of them" if isinstance(outputs, tuple | list) else type(outputs).__name__
        raise OperandValueError(
            f"gradient: expected the function to return several results with has_aux=True, got {got}. Return the loss "
            "first, then the others."
        )
    return outputs[0]


def _tensors(thing: Any) -> Iterator[Tensor]:
    if isinstance(thing, Tensor):
        yield thing
    elif isinstance(thing, tuple | list | dict):
        for item in thing.values() if isinstance(thing, dict) else thing:
            yield from _tensors(item)


def _has_tensor(thing: Any) -> bool:
    return next(_tensors(thing), None) is not None


def _each_sens(sens: Any, count: int) -> list[Any]:
    """The gradient of each loss, from one for all or from a structure like that of the outputs."""
    if not isinstance(sens, tuple | list | dict):
        return [sens] * count
    parts = list(_tensors(sens))
    if len(parts) != count:
        raise ValueError(f"sens: expected one gradient for each of the {count} outputs, got {len(parts)}.")
    return parts


def _sens_value(tracer: Tracer, loss: Value, sens: Any) -> Value | None:
    if sens is None or (not isinstance(sens, Tensor) and sens == 1):
        return None
    if isinstance(sens, Tensor):
        if sens.shape != loss.type.shape and sens.size == 1 and sens.is_concrete:
            sens = float(sens)
        else:
            return tracer.value_of(sens.astype(loss.type.dtype))
    filled = np.full(loss.type.shape, sens, dtypes.dtype(loss.type.dtype).numpy)
    return tracer.value_of(Tensor.of_array(filled))


def _gradient(tracer: Tracer, value: Value, gradient: Value | None) -> Tensor:
    if gradient is not None:
        return tracer.tensor_of(gradient)
    zeros = np.zeros(value.type.shape, dtypes.dtype(value.type.dtype).numpy)
    return tracer.tensor_of(tracer.graph.add_constant(zeros, value.type.dtype))
