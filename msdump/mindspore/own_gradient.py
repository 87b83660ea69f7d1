"""Gradients that a script writes itself: `bprop` of a cell, and hooks on gradients."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from msdump.graph.graph import Node, Value
from msdump.graph.primitive import Attrs, Primitive, PrimitiveDef
from msdump.graph.types import TensorType
from msdump.mindspore.common.dtype import dtype_name
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import cast
from msdump.mindspore.program.autodiff import GradBuilder
from msdump.mindspore.structure import flatten, unflatten
from msdump.mindspore.tracer import Tracer
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

# Source: what MindSpore calls the place of a Python function in a backward pass.
OP_TYPE = "bprop_cut"

# Gradients of the results -> gradients of the sources, None for "no gradient".
Backward = Callable[[Sequence[Tensor]], Sequence[Tensor | None]]


def with_backward(
    tracer: Tracer, sources: Sequence[Tensor], results: Sequence[Tensor], backward: Backward
) -> list[Tensor]:
    """`results` as tensors whose gradient with respect to `sources` is what `backward` computes.

    No gradient flows through what computed the results. The node is no kernel: a dump shows the operators of
    `backward` alone.
    """
    count = len(sources)

    def gradient(builder: GradBuilder, node: Node, outer: Sequence[Value | None]) -> Sequence[Value | None]:
        given = [value or _zeros(tracer, result.type) for value, result in zip(outer, node.outputs, strict=True)]
        tracer.catch_up(given)
        is_inner = builder.graph is not tracer.graph
        with tracer.region(builder.graph) if is_inner else nullcontext(), tracer.backward_of(node):
            gradients = backward([tracer.tensor_of(value) for value in given])
            values = [None if tensor is None else tracer.value_of(tensor) for tensor in gradients]
        return [*values, *itertools.repeat(None, len(results))]

    definition = PrimitiveDef(
        OP_TYPE,
        views={index: count + index for index in range(len(results))},
        is_kernel=False,
        infer=lambda types, attrs: tuple(types[count:]),
        bprop=gradient,
        kernels={"numpy": _copy_results},
    )
    return list(tracer.add(Primitive(OP_TYPE, definition=definition), [*sources, *results]))


def with_bprop(
    tracer: Tracer, name: str, bprop: Callable[..., Any], body: Callable[..., Any], args: Sequence[Any], kwargs: Any
) -> Any:
    """What `body(*args)` gives; its gradient is what `bprop(*args, out, dout)` returns, one for each argument.

    Edges:   parameters that the body reads get no gradient; None is no gradient; gradients get the dtype of their
             argument.
    Raises:  TypeError, IndexError, RuntimeError, as MindSpore, for another number of arguments or of gradients, a
             gradient of another shape, and in a graph for a `bprop` that reads parameters.
    """
    _check_signature(name, bprop, len(args))
    outputs = body(*args, **kwargs)
    results: list[Tensor] = []
    structure = flatten(outputs, results)
    leaves = [_leaves(arg) for arg in args]
    shown: list[Tensor] = []

    def backward(gradients: Sequence[Tensor]) -> list[Tensor | None]:
        first = len(tracer.graph.nodes)
        out, dout = unflatten(structure, iter(shown)), unflatten(structure, iter(gradients))
        answer = _gradients_of(tracer, name, bprop(*args, out, dout), len(args))
        if not tracer.is_recording:
            _refuse_parameters(name, tracer.graph.nodes[first:])
        return [
            _fitting(name, index, given, leaf)
            for index, tensors in enumerate(leaves)
            for given, leaf in zip(_parts(answer[index], len(tensors)), tensors, strict=True)
        ]

    shown.extend(with_backward(tracer, [leaf for tensors in leaves for leaf in tensors], results, backward))
    return unflatten(structure, iter(shown))


def _check_signature(name: str, bprop: Callable[..., Any], count: int) -> None:
    try:
        inspect.signature(bprop).bind(*range(count + 2))
    except TypeError as error:
        raise TypeError(
            f"{name}.bprop: expected the arguments of construct and then out and dout, {count + 2} in all, got "
            f"bprop{inspect.signature(bprop)}."
        ) from error


def _leaves(arg: Any) -> list[Tensor]:
    if isinstance(arg, Parameter):
        return [arg]
    leaves: list[Tensor] = []
    flatten(arg, leaves)
    return leaves


def _gradients_of(tracer: Tracer, name: str, answer: Any, count: int) -> tuple[Any, ...]:
    """What a `bprop` returned, one gradient for each argument."""
    if isinstance(answer, Tensor) and tracer.is_recording and count == 1:
        return (answer,)
    if not isinstance(answer, tuple):
        raise TypeError(
            f"{name}.bprop: expected a tuple with one gradient for each input, got {type(answer).__name__}. "
            "Write (gradient,) for one."
        )
    if len(answer) == 2 and isinstance(answer[0], tuple) and isinstance(answer[1], dict):
        raise RuntimeError(f"{name}.bprop: expected gradients of inputs, got gradients of parameters, too.")
    if len(answer) < count:
        kind = RuntimeError if tracer.is_recording else IndexError
        raise kind(f"{name}.bprop: expected {count} gradients, one for each input, got {len(answer)}.")
    return answer


def _refuse_parameters(name: str, nodes: Sequence[Node]) -> None:
    for node in nodes:
        parameter = next((value for value in node.inputs if value.parameter is not None), None)
        if parameter is not None:
            raise RuntimeError(
                f"{name}.bprop: expected no Parameter in a compiled graph, got {parameter.name} in {node.where}. Pass "
                "it to construct as an argument, or run with set_context(mode=PYNATIVE_MODE)."
            )


def _parts(gradient: Any, count: int) -> list[Any]:
    """The gradients of the tensors of one argument."""
    if count == 0 or gradient is None:
        return [None] * count
    parts = list(gradient) if isinstance(gradient, tuple | list) else [gradient]
    return parts if len(parts) == count else [*parts, *[None] * count][:count]


def _fitting(name: str, index: int, gradient: Any, argument: Tensor) -> Tensor | None:
    if gradient is None:
        return None
    if isinstance(gradient, bool | int | float):
        gradient = Tensor(gradient, dtype_name(argument.dtype))
    if not isinstance(gradient, Tensor) or gradient.shape != argument.shape:
        got = f"shape {gradient.shape}" if isinstance(gradient, Tensor) else type(gradient).__name__
        raise RuntimeError(f"{name}.bprop: expected gradient {index} of shape {argument.shape}, got {got}.")
    return cast(gradient, argument.type_.dtype)


def _copy_results(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    for source, target in zip(inputs[-len(out) :], out, strict=True):
        np.copyto(target, source)


def _zeros(tracer: Tracer, type: TensorType) -> Value:
    return tracer.graph.add_constant(np.zeros(type.shape, dtypes.dtype(type.dtype).numpy), type.dtype)
