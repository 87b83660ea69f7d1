"""Random operators beyond Dropout, one function of a generator each.

Their bits depend on operands and attributes alone, so that a replay gives the same tensor. A last operand that counts
the runs of a graph, int32 or int64 of shape () or (1,), is optional: another count, other numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.graph.graph import Node
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import (
    FLOATS,
    INDICES,
    INTS,
    NUMBERS,
    broadcast_shapes,
    dtype_attribute,
    expect,
    expect_dtype,
    shape_attribute,
)
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

# (generator, operands, attributes, types of the results) -> results, of any dtype.
Sample = Callable[[np.random.Generator, Sequence[Array], Attrs, Sequence[TensorType]], Sequence[Any]]
Types = Callable[[Sequence[TensorType], Attrs], tuple[TensorType, ...]]


def _draws(
    op_type: str, inputs: str = "", outputs: str = "output", *, types: Types | None = None, dtype: str = "float32"
) -> Callable[[Sample], Sample]:
    """Decorator: registers a random operator.   types: None: one result of the attributes `shape` and `dtype`."""
    names = tuple(inputs.split())
    def_primitive(op_type, (*names, "draw"), tuple(outputs.split()))

    @def_infer(op_type)
    def infer(given: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        count = f"{len(names)} operands, or one more that counts the draws"
        expect(len(given) in (len(names), len(names) + 1), count, len(given))
        for type_ in given[len(names) :]:
            expect_dtype(type_, INDICES, "draw")
            expect(type_.shape in ((), (1,)), "draw of shape () or (1,)", type_.shape)
        if types is not None:
            return types(given[: len(names)], attrs)
        return (TensorType(dtype_attribute(attrs, default=dtype), shape_attribute(attrs)),)

    def register(sample: Sample) -> Sample:
        @def_kernel(op_type)
        def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
            operands = inputs[: len(names)]
            kinds = [TensorType(dtypes.dtype_from_numpy(array.dtype).name, array.shape) for array in out]
            with np.errstate(all="ignore"):
                results = sample(_generator(inputs[len(names) :], attrs), operands, attrs, kinds)
            for array, result in zip(out, results, strict=True):
                np.copyto(array, result, casting="unsafe")

        return sample

    @def_bprop(op_type)
    def bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
        return [None] * len(node.inputs)

    return register


def _generator(draw: Sequence[Array], attrs: Attrs) -> np.random.Generator:
    numbers = (int(attrs.get("seed", 0)), int(attrs.get("seed2", 0)), *(int(count.reshape(())) for count in draw))
    state = np.random.SeedSequence([number & (2**64 - 1) for number in numbers]).generate_state(2, np.uint64)
    return np.random.Generator(np.random.Philox(key=state))


# -- distributions -----------------------------------------------------------------------------------------------------


@_draws("StandardNormal")
def _standard_normal(rng: Any, operands: Any, attrs: Attrs, types: Any) -> Any:
    return [rng.standard_normal(types[0].shape)]


@_draws("UniformReal")
def _uniform_real(rng: Any, operands: Any, attrs: Attrs, types: Any) -> Any:
    """In [0, 1)."""
    return [rng.random(types[0].shape, np.float32)]


@_draws("TruncatedNormal")
def _truncated_normal(rng: Any, operands: Any, attrs: Attrs, types: Any) -> Any:
    """Standard normal, drawn again beyond two standard deviations."""
    return [_between(rng, types[0].shape, -2.0, 2.0)]


def _between(rng: Any, shape: tuple[int, ...], low: float, high: float) -> Array:
    values: Array = rng.standard_normal(shape)
    values = np.asarray(values)
    while (outside := (values < low) | (values > high)).any():
        values[outside] = rng.standard_normal(int(outside.sum()))
    return values


def _int32_bounds(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    for type_, name in zip(types, ("minval", "maxval"), strict=True):
        expect_dtype(type_, INTS, name)
        expect(type_.shape in ((), (1,)), f"{name} of shape () or (1,)", type_.shape)
    return (TensorType("int32", shape_attribute(attrs)),)


@_draws("UniformInt", "minval maxval", types=_int32_bounds)
def _uniform_int(rng: Any, operands: Any, attrs: Attrs, types: Any) -> Any:
    """In [minval, maxval)."""
    low, high = (int(array.reshape(())) for array in operands)
    expect(low < high, "minval < maxval", f"{low} and {high}")
    return [rng.integers(low, high, types[0].shape)]


def _bernoulli_types(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_dtype(types[1], FLOATS, "p")
    shape = types[0].shape
    expect(broadcast_shapes([type_.shape for type_ in types]) == shape, f"p that broadcasts to {shape}", types[1].shape)
    return (types[0],)


@_draws("Bernoulli", "x p", types=_bernoulli_types)
def _bernoulli(rng: Any, operands: Any, attrs: Attrs, types: Any) -> Any:
    """1 with probability p, else 0, in the dtype of x."""
    p = operands[1].astype(np.float64)
    expect(not p.size or bool((p >= 0).all() and (p <= 1).all()), "p in [0, 1]", p.tolist())
    return [rng.random(types[0].shape) < p]


def _counted(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    return (TensorType(dtype_attribute(attrs, default="float32"), (*shape_attribute(attrs), *types[0].shape)),)


@_draws("RandomPoisson", "rate", types=_counted)
def _random_poisson(rng: Any, operands: Any, attrs: Attrs, types: Any) -> Any:
    expect(bool((operands[0] >= 0).all()), "rate of at least 0", operands[0].min())
    return [rng.poisson(operands[0], types[0].shape)]


# -- choices -----------------------------------------------------------------------------------------------------------


def _choice_types(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_dtype(types[0], NUMBERS, "x")
    fits = len(types[0].shape) in (1, 2) and all(types[0].shape)
    expect(fits, "x with one or two axes that are not empty", types[0].shape)
    dtype = dtype_attribute(attrs, default="int32")
    return (TensorType(dtype, (*types[0].shape[:-1], int(attrs.get("num_samples", 1)))),)


@_draws("Multinomial", "x", types=_choice_types)
def _multinomial(rng: Any, operands: Any, attrs: Attrs, types: Any) -> Any:
    """Indices drawn by weight.   Attrs: num_samples, replacement (True), dtype (int32)."""
    with np.errstate(divide="ignore"):
        logs = np.log(operands[0].astype(np.float64))
    return [_categories(rng, logs, types[0].shape[-1], bool(attrs.get("replacement", True)))]


@_draws("RandomCategorical", "logits", types=lambda types, attrs: _choice_types(types, {"dtype": "int64", **attrs}))
def _random_categorical(rng: Any, operands: Any, attrs: Attrs, types: Any) -> Any:
    """Indices drawn by e ** logits."""
    return [_categories(rng, operands[0].astype(np.float64), types[0].shape[-1], True)]


def _categories(rng: Any, logs: Array, count: int, is_replaced: bool) -> Array:
    """The largest of logarithms plus Gumbel noise is a draw by weight; the `count` largest are draws without return."""
    if is_replaced:
        noise = rng.gumbel(size=(*logs.shape[:-1], count, logs.shape[-1]))
        return np.asarray(np.argmax(logs[..., None, :] + noise, axis=-1))
    free = np.isfinite(logs).sum(-1).min()
    expect(count <= free, f"at most {free} draws without replacement", count)
    return np.argsort(-(logs + rng.gumbel(size=logs.shape)), axis=-1, kind="stable")[..., :count]


def _mask_types(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_dtype(types[0], {"bool"}, "input_x")
    expect(1 <= len(types[0].shape) <= 5, "input_x with one to five axes", types[0].shape)
    count = int(attrs.get("count", 256))
    return (TensorType("int32", (count, len(types[0].shape))), TensorType("bool", (count,)))


@_draws("RandomChoiceWithMask", "input_x", "index mask", types=_mask_types)
def _choice_with_mask(rng: Any, operands: Any, attrs: Attrs, types: Any) -> Any:
    """Places of true elements in a random order, zeros behind the last; and which of them are places."""
    count = types[1].shape[0]
    places = rng.permutation(np.argwhere(operands[0]))[:count]
    index = np.zeros(types[0].shape, np.int32)
    index[: len(places)] = places
    return [index, np.arange(count) < len(places)]


@_draws("RandpermV2", dtype="int64")
def _randperm(rng: Any, operands: Any, attrs: Attrs, types: Any) -> Any:
    """Attrs: shape (n,), dtype."""
    return [rng.permutation(types[0].shape[0])]


@_draws("RandomShuffle", "x", types=lambda types, attrs: (types[0],))
def _shuffled(rng: Any, operands: Any, attrs: Attrs, types: Any) -> Any:
    return [rng.permutation(operands[0]) if operands[0].ndim else operands[0]]
