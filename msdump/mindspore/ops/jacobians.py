"""Products with Jacobians, and Jacobians themselves, made of reverse-mode gradients.

All of it are operators: it can be compiled, and differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.differentiate import first_of
from msdump.mindspore.names import publish
from msdump.mindspore.ops.arithmetic import addn, mul
from msdump.mindspore.ops.array import cast, reshape, stack
from msdump.mindspore.ops.composite import GradOperation, checked_positions
from msdump.mindspore.ops.reductions import sum
from msdump.tensors import dtypes

Function = Callable[..., Any]


def _each_tensor(thing: Any) -> list[Tensor]:
    if isinstance(thing, tuple | list):
        return [tensor for item in thing for tensor in _each_tensor(item)]
    return [thing]


def _of_all_inputs(fn: Function) -> Function:
    return GradOperation(get_all=True, sens_param=True)(fn)


def _split(fn: Function, args: Sequence[Any], has_aux: bool) -> tuple[Any, tuple[Any, ...], Function]:
    """What is differentiated of `fn(*args)`, the further results as they are given back, and `fn` without them."""
    results = fn(*args)
    if not has_aux:
        return results, (), fn

    def first(*items: Any) -> Any:
        return first_of(fn(*items))

    # Source: MindSpore: one further result comes as it is, several as a tuple.
    return first_of(results), (results[1] if len(results) == 2 else results[1:],), first


def vjp(fn: Function, *inputs: Any, weights: Any = None, has_aux: bool = False) -> Any:
    """Results of `fn`, and a function of vectors of their shapes that gives the vectors times the Jacobian.

    weights   give their products, too: (products of inputs, products of weights)
    has_aux   only the first result is differentiated; the rest comes as a third value
    """
    results, rest, first = _split(fn, inputs, has_aux)

    def vjp_fn(*vectors: Any) -> Any:
        sens = vectors[0] if len(vectors) == 1 else tuple(vectors)
        if weights is None:
            return _of_all_inputs(first)(*inputs, sens)
        return GradOperation(get_all=True, get_by_list=True, sens_param=True)(first, weights)(*inputs, sens)

    return (results, vjp_fn, *rest)


def jvp(fn: Function, inputs: Any, v: Any, has_aux: bool = False) -> Any:
    """Results of `fn`, and its Jacobian times vectors of the shapes of the inputs."""
    args = inputs if isinstance(inputs, tuple | list) else (inputs,)
    vectors = _each_tensor(v)
    if len(vectors) != len(args):
        raise ValueError(f"jvp: expected as many vectors as inputs, {len(args)}, got {len(vectors)}.")
    results, rest, first = _split(fn, args, has_aux)
    products = [
        _assembled(output, rows, vectors)
        for output, rows in zip(_each_tensor(results), _rows(first, args, results), strict=True)
    ]
    product = products[0] if isinstance(results, Tensor) else tuple(products)
    return (results, product, *rest)


def _assembled(output: Tensor, rows: list[Sequence[Tensor]], vectors: Sequence[Tensor]) -> Tensor:
    """The products of an output's rows with the vectors."""
    numbers = [
        addn(
            [
                cast(sum(mul(part, cast(vector, part.dtype))), output.dtype)
                for part, vector in zip(row, vectors, strict=True)
            ]
        )
        for row in rows
    ]
    return reshape(stack(numbers), output.shape)


def _rows(fn: Function, args: Sequence[Any], results: Any) -> Iterator[list[Sequence[Tensor]]]:
    """For each output, the gradients of each of its elements with respect to all inputs."""
    gradients = _of_all_inputs(fn)
    outputs = _each_tensor(results)
    for place, output in enumerate(outputs):
        rows = []
        for element in range(output.size):
            senses = [np.zeros(each.shape, dtypes.dtype(each.type_.dtype).numpy) for each in outputs]
            senses[place].reshape(-1)[element] = 1
            tensors = tuple(Tensor(sens, each.dtype) for sens, each in zip(senses, outputs, strict=True))
            sens = tensors[0] if isinstance(results, Tensor) else tensors
            rows.append(gradients(*args, sens))
        yield rows


def jacrev(fn: Function, grad_position: Any = 0, has_aux: bool = False) -> Function:
    """A function that gives the Jacobian of `fn`: for each output and position a tensor [*output, *input].

    grad_position   one position, a tuple of one as well, gives one tensor, several a tuple
    has_aux         only the first result is differentiated; the rest comes as a second value
    """
    positions = checked_positions(grad_position)

    def jacobian(*args: Any) -> Any:
        if max(positions) >= len(args):
            raise ValueError(f"grad_position: expected positions of the {len(args)} arguments, got {grad_position!r}.")
        results, rest, first = _split(fn, args, has_aux)
        parts = []
        for output, rows in zip(_each_tensor(results), _rows(first, args, results), strict=True):
            of_positions = tuple(
                reshape(stack([row[at] for row in rows]), (*output.shape, *args[at].shape)) for at in positions
            )
            parts.append(of_positions[0] if len(positions) == 1 else of_positions)
        result = parts[0] if len(parts) == 1 else tuple(parts)
        return (result, *rest) if has_aux else result

    return jacobian


jacfwd = jacrev


def get_grad(gradients: Any, identifier: Any) -> Any:
    """The gradient of an input's position or a parameter among what `grad(..., return_ids=True)` gives.

    Raises: TypeError, RuntimeError when it is not there.
    """
    name = identifier.name if isinstance(identifier, Parameter) else identifier
    if name is identifier and (isinstance(name, bool) or not isinstance(name, int)):
        raise TypeError(
            f"For 'get_grad', the `identifier` must be type of int or Parameter, but got {type(identifier).__name__}."
        )
    for key, gradient in _entries(gradients):
        if key == name:
            return gradient
    raise RuntimeError(f"Can not find the gradient for position or Parameter {identifier}")


def _entries(gradients: Any) -> Iterator[tuple[Any, Any]]:
    is_entry = isinstance(gradients, tuple) and len(gradients) == 2 and isinstance(gradients[0], int | str)
    if is_entry:
        yield gradients
    elif isinstance(gradients, tuple | list):
        for item in gradients:
            yield from _entries(item)


publish(__name__, "jacfwd")
