"""Composite operations: gradients of functions, and functions mapped over nested tuples."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from msdump.errors import GraphError, OperandValueError
from msdump.mindspore.common.dtype import Type
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.compiler import GraphCache
from msdump.mindspore.context import GRAPH_MODE, get_context
from msdump.mindspore.differentiate import Differentiated, differentiate
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.pynative import call_in_graph_mode, run_step, step_session
from msdump.mindspore.tracer import current_tracer

Function = Callable[..., Any]


def _as_weights(weights: Any) -> list[Parameter]:
    if weights is None:
        return []
    parameters = [weights] if isinstance(weights, Parameter) else list(weights)
    for weight in parameters:
        if not isinstance(weight, Parameter):
            raise TypeError(f"weights: expected parameters, got {type(weight).__name__}.")
    return parameters


def checked_positions(grad_position: Any) -> list[int]:
    """Positions of arguments, as `grad` and the Jacobians take them.   Raises: TypeError, ValueError."""
    positions = [grad_position] if isinstance(grad_position, int) else grad_position
    if not isinstance(positions, tuple | list) or (positions is grad_position and isinstance(positions, list)):
        raise TypeError(f"grad_position: expected an int or a tuple of ints, got {grad_position!r}.")
    for position in positions:
        if isinstance(position, bool) or not isinstance(position, int):
            raise TypeError(f"grad_position: expected ints, got {grad_position!r}.")
        if position < 0:
            raise ValueError(f"grad_position: expected ints >= 0, got {grad_position!r}.")
    if not positions:
        raise OperandValueError("grad_position: expected at least one position, got ().")
    if len(set(positions)) < len(positions):
        raise ValueError(f"grad_position: expected each position once, got {grad_position!r}.")
    return list(positions)


def with_keywords(fn: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Function, tuple[Any, ...]]:
    """`fn` as a function of positional arguments alone, and these: what has a name comes last."""
    if not kwargs:
        return fn, tuple(args)
    names, count = list(kwargs), len(args)

    @functools.wraps(fn, updated=())
    def called(*items: Any) -> Any:
        return fn(*items[:count], **dict(zip(names, items[count:], strict=True)))

    return called, (*args, *kwargs.values())


def _run(
    function: Function, cache: GraphCache, args: Sequence[Any], kwargs: dict[str, Any], weights: Sequence[Parameter]
) -> Any:
    """At the top level a graph of its own in GRAPH_MODE, a step of its own in PyNative; otherwise part of what runs."""
    if current_tracer() is None:
        if get_context("mode") == GRAPH_MODE:
            return call_in_graph_mode(function, cache, args, kwargs)
        session = step_session()
        if session is not None:
            return run_step(session, function, cache, args, kwargs, weights=weights)
    return function(*args, **kwargs)


def value_and_grad(
    fn: Function, grad_position: Any = 0, weights: Any = None, has_aux: bool = False, return_ids: bool = False
) -> Function:
    """A function that gives `fn`'s result and the gradients of its loss.

    return_ids  gradients come as pairs: (position, gradient), (name of the weight, gradient)
    Edges:   grad_position None: only the weights'; weights None: only the inputs'; both: a pair (inputs, weights).
             One position, a tuple of one as well, gives one gradient, several a tuple; an argument without a tensor has
             none. A Parameter gives one gradient, a list of them a tuple.
    Raises:  ValueError when neither inputs nor weights are wanted, TypeError and ValueError for wrong arguments.
    """
    if grad_position is None and weights is None:
        raise ValueError("grad_position, weights: expected one of them at least, got None for both.")
    for name, value in (("has_aux", has_aux), ("return_ids", return_ids)):
        if not isinstance(value, bool):
            raise TypeError(f"{name}: expected a bool, got {type(value).__name__}.")
    positions = [] if grad_position is None else checked_positions(grad_position)
    parameters = _as_weights(weights)

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        function, items = with_keywords(fn, args, kwargs)
        result = differentiate(function, items, positions, parameters, has_aux=has_aux)
        of_inputs: Any = result.input_gradients
        of_weights: Any = result.weight_gradients
        if return_ids:
            of_inputs = tuple(zip(result.positions, of_inputs, strict=True))
            of_weights = tuple((weight.name, each) for weight, each in zip(parameters, of_weights, strict=True))
        return result.outputs, _shaped(of_inputs, of_weights, grad_position, weights)

    cache = GraphCache()

    def value_and_gradients(*args: Any, **kwargs: Any) -> Any:
        return _run(differentiated, cache, args, kwargs, parameters)

    return value_and_gradients


def grad(
    fn: Function, grad_position: Any = 0, weights: Any = None, has_aux: bool = False, return_ids: bool = False
) -> Function:
    """A function that gives the gradients of `fn`'s loss; with has_aux also its further results."""
    both = value_and_grad(fn, grad_position, weights, has_aux, return_ids)

    def gradients(*args: Any, **kwargs: Any) -> Any:
        outputs, results = both(*args, **kwargs)
        return (results, outputs[1:]) if has_aux else results

    return gradients


def _shaped(of_inputs: tuple[Any, ...], of_weights: tuple[Any, ...], grad_position: Any, weights: Any) -> Any:
    """Source: MindSpore 2.0 and 2.7: what is left of the positions comes without a tuple when it is one gradient."""
    inputs = of_inputs[0] if len(of_inputs) == 1 else of_inputs
    parameters = of_weights[0] if isinstance(weights, Parameter) else of_weights
    if grad_position is None:
        return parameters
    return inputs if weights is None else (inputs, parameters)


class GradOperation:
    """Gradient of a cell or function.

    get_all       of all inputs, not only the first
    get_by_list   of the weights (after the inputs' when get_all is set, too)
    sens_param    the last argument is the gradient of the result
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        for name, value in (("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)):
            if not isinstance(value, bool):
                raise TypeError(f"For 'GradOperation', the '{name}' should be bool, but got {type(value).__name__}")
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn: Function, weights: Any = None) -> Function:
        if self.get_by_list and weights is None and get_context("mode") != GRAPH_MODE and current_tracer() is None:
            # Source: MindSpore in PyNative mode: all of the cell; a graph gives none.
            weights = fn.trainable_params() if hasattr(fn, "trainable_params") else None
        parameters = _as_weights(weights) if self.get_by_list else []
        is_single = isinstance(weights, Parameter)

        def differentiated(*args: Any, **kwargs: Any) -> Any:
            inputs, sens = (args[:-1], args[-1]) if self.sens_param else (args, None)
            function, items = with_keywords(fn, inputs, kwargs)
            result = differentiate(function, items, self._positions(items), parameters, sens)
            return self._shaped(result, is_single)

        cache = GraphCache()

        def gradients(*args: Any, **kwargs: Any) -> Any:
            return _run(differentiated, cache, args, kwargs, parameters)

        return gradients

    def _positions(self, inputs: Sequence[Any]) -> list[int]:
        if self.get_all:
            return list(range(len(inputs)))
        return [] if self.get_by_list or not inputs else [0]

    def _shaped(self, result: Differentiated, is_single: bool) -> Any:
        of_weights = result.weight_gradients[0] if is_single and self.get_by_list else result.weight_gradients
        if self.get_all and self.get_by_list:
            return result.input_gradients, of_weights
        if self.get_by_list:
            return of_weights
        if self.get_all or not result.input_gradients:
            return result.input_gradients
        return result.input_gradients[0]


class MultitypeFuncGraph:
    """One name for several functions; the types of the arguments choose."""

    def __init__(self, name: str, read_value: bool = False) -> None:
        self.name = name
        self._entries: list[tuple[tuple[str, ...], Function]] = []

    def register(self, *type_names: Any) -> Callable[[Function], Function]:
        """Decorator: the function for arguments of these types ("Tensor", "Number", "Bool", dtypes...)."""
        names = tuple(str(name) for name in type_names)

        def decorate(function: Function) -> Function:
            self._entries.append((names, function))
            return function

        return decorate

    def __call__(self, *args: Any) -> Any:
        for names, function in self._entries:
            if len(names) == len(args) and all(map(_is_a, args, names)):
                return function(*args)
        kinds = ", ".join(type(arg).__name__ for arg in args)
        raise GraphError(f"MultitypeFuncGraph {self.name}: no function is registered for ({kinds}).")


_PYTHON_KINDS: dict[str, tuple[type, ...]] = {
    "Tensor": (Tensor,), "RowTensor": (), "Number": (bool, int, float), "Bool": (bool,), "Int": (int,),
    "Float": (float,), "String": (str,), "Function": (FunctionType, MultitypeFuncGraph), "Tuple": (tuple,),
    "List": (list,), "None": (type(None),), "TypeNone": (type(None),), "TypeType": (Type,),
}  # fmt: skip


def _is_a(arg: Any, type_name: str) -> bool:
    if type_name in _PYTHON_KINDS:
        return isinstance(arg, _PYTHON_KINDS[type_name])
    return isinstance(arg, int | float) and type_name.startswith(("Int", "Float", "UInt"))


class HyperMap:
    """Apply a function to matching elements of tuples, lists and what they hold."""

    def __init__(self, ops: Function | None = None, reverse: bool = False) -> None:
        self.ops, self.reverse = ops, reverse

    def __call__(self, *args: Any) -> Any:
        function, items = (self.ops, args) if self.ops is not None else (args[0], args[1:])
        return _mapped(function, items, self.reverse)


class Map(HyperMap):
    """As HyperMap."""


def _mapped(function: Any, items: Sequence[Any], is_reversed: bool) -> Any:
    if not isinstance(items[0], tuple | list):
        return function(*items)
    rows = list(zip(*items, strict=True))
    results = [_mapped(function, row, is_reversed) for row in (reversed(rows) if is_reversed else rows)]
    if is_reversed:
        results.reverse()
    return results if isinstance(items[0], list) else tuple(results)


publish(__name__)

__getattr__ = explain_missing(__name__)
