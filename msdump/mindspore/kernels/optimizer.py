"""Weight updates. Each walks through weight, state and gradient once, block by block inside the cache, on all cores.

All state is written in place; float16 and bfloat16 compute in float32. Learning rates and the like are tensors of
shape () or (1,).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from msdump.errors import GraphError
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import (
    FLOATS,
    attribute,
    expect_count,
    expect_dtype,
    expect_same_dtype,
    expect_scalar,
    expect_shape,
)
from msdump.mindspore.kernels.program import publish
from msdump.mindspore.kernels.threads import BLOCK, run_blocks
from msdump.mindspore.kernels.workspace import compute_type, scratch
from msdump.tensors.arrays import Array

# One block of an update: (written arrays, read arrays, two free arrays), all flat and of one float dtype.
Update = Callable[[Sequence[Array], Sequence[Array], Sequence[Array]], None]


def update_in_blocks(states: Sequence[Array], reads: Sequence[Array], update: Update) -> None:
    """Run `update` over matching stretches of all arrays. The gradient is never changed, the states are."""
    wide = compute_type(states[0].dtype)
    # A state that does not lie flat is updated in a copy and written back.
    flat_states = [np.ascontiguousarray(state).reshape(-1) for state in states]
    flat_reads = [np.ascontiguousarray(read).reshape(-1) for read in reads]

    def block(start: int, stop: int) -> None:
        arrays = [array[start:stop] for array in (*flat_states, *flat_reads)]
        if wide != states[0].dtype:
            arrays = [_copied(f"optimizer.wide{i}", array, wide) for i, array in enumerate(arrays)]
        free = [scratch(f"optimizer.free{i}", (stop - start,), wide) for i in range(2)]
        written = arrays[: len(states)]
        update(written, arrays[len(states) :], free)
        if wide != states[0].dtype:
            for array, flat in zip(written, flat_states, strict=True):
                np.copyto(flat[start:stop], array, casting="unsafe")

    run_blocks(states[0].size, block, BLOCK)
    for state, flat in zip(states, flat_states, strict=True):
        if not np.may_share_memory(state, flat):
            np.copyto(state, flat.reshape(state.shape))


def _copied(name: str, array: Array, dtype: np.dtype[np.generic]) -> Array:
    copy = scratch(name, array.shape, dtype)
    np.copyto(copy, array, casting="unsafe")
    return copy


def number_of(array: Array) -> float:
    """The one element of a scalar operand.   Raises: GraphError for an array of none or several."""
    if array.size != 1:
        raise GraphError(f"scalar operand of an optimizer: expected one number, got an array of shape {array.shape}.")
    return float(array.reshape(()))


def def_update(
    op_type: str,
    names: Sequence[str],
    outputs: Sequence[str],
    *,
    state: Sequence[int],
    like: Sequence[int],
    scalars: Sequence[int],
    attributes: Sequence[str] = (),
) -> None:
    """Register an update.

    `state` slots are written, `like` slots have the weight's type, `scalars` one element. Others may be anything.
    `attributes` must be there.
    """
    aliases = {slot: state[slot] for slot in range(len(outputs))}
    def_primitive(op_type, names, outputs, mutates=state, aliases=aliases)

    @def_infer(op_type)
    def infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        expect_count(types, len(names))
        expect_dtype(types[0], FLOATS, names[0])
        for slot in like:
            expect_same_dtype([types[0], types[slot]])
            expect_shape(types[slot], types[0].shape, names[slot])
        for slot in scalars:
            expect_scalar(types[slot], names[slot])
        for name in attributes:
            attribute(attrs, name)
        return tuple(types[state[slot]] for slot in range(len(outputs)))


# -- momentum -----------------------------------------------------------------------------------------

def_update(
    "ApplyMomentum",
    ("variable", "accumulation", "learning_rate", "gradient", "momentum"),
    ("output",),
    state=(0, 1),
    like=(1, 3),
    scalars=(2, 4),
)


@def_kernel("ApplyMomentum")
def _apply_momentum(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """a = a * momentum + g;  w -= lr * a,  with use_nesterov  w -= lr * g + lr * momentum * a.

    Attrs: use_nesterov, use_locking (without meaning here), gradient_scale (1).
    """
    weight, accumulation, rate, gradient, factor = inputs
    lr, momentum = number_of(rate), number_of(factor)
    scale, is_nesterov = float(attrs.get("gradient_scale", 1.0)), bool(attrs.get("use_nesterov", False))

    def update(states: Sequence[Array], reads: Sequence[Array], free: Sequence[Array]) -> None:
        (w, a), (g,), (step, scaled) = states, reads, free
        if scale != 1.0:
            g = np.multiply(g, scale, out=scaled)
        np.multiply(a, momentum, out=a)
        np.add(a, g, out=a)
        if is_nesterov:
            np.multiply(a, momentum, out=step)
            np.add(step, g, out=step)
            np.multiply(step, lr, out=step)
        else:
            np.multiply(a, lr, out=step)
        np.subtract(w, step, out=w)

    update_in_blocks([weight, accumulation], [gradient], update)
    publish([weight], out)


def_update(
    "SGD",
    ("parameters", "gradient", "learning_rate", "accum", "momentum", "stat"),
    ("output",),
    state=(0, 3, 5),
    like=(1, 3, 5),
    scalars=(2, 4),
)


@def_kernel("SGD")
def _sgd(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """g += weight_decay * w;  a = a * momentum + (1 - dampening) * g;  w -= lr * a.

    Attrs: dampening, weight_decay, nesterov (w -= lr * (g + momentum * a)).
    Edges: where stat is above 0 the accumulator starts as g itself and stat becomes 0; momentum 0 leaves both alone.
    """
    weight, gradient, rate, accumulation, factor, stat = inputs
    lr, momentum = number_of(rate), number_of(factor)
    decay, kept = float(attrs.get("weight_decay", 0.0)), 1.0 - float(attrs.get("dampening", 0.0))
    is_nesterov = bool(attrs.get("nesterov", False))

    def update(states: Sequence[Array], reads: Sequence[Array], free: Sequence[Array]) -> None:
        (w, a, fresh), (g,), (total, step) = states, reads, free
        if decay:
            np.multiply(w, decay, out=total)
            g = np.add(total, g, out=total)
        if momentum > 0:
            is_fresh = fresh > 0
            np.multiply(a, momentum, out=a)
            np.multiply(g, kept, out=step)
            np.add(a, step, out=a)
            np.copyto(a, g, where=is_fresh)
            np.copyto(fresh, 0, where=is_fresh)
            if is_nesterov:
                np.multiply(a, momentum, out=step)
                g = np.add(step, g, out=total)
            else:
                g = a
        np.multiply(g, lr, out=step)
        np.subtract(w, step, out=w)

    update_in_blocks([weight, accumulation, stat], [gradient], update)
    publish([weight], out)


# -- Adam ---------------------------------------------------------------------------------------------

def_update(
    "Adam",
    ("var", "m", "v", "beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "gradient"),
    ("var", "m", "v"),
    state=(0, 1, 2),
    like=(1, 2, 9),
    scalars=(3, 4, 5, 6, 7, 8),
)


@def_kernel("Adam")
def _adam(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """m += (g - m)(1 - beta1);  v += (g*g - v)(1 - beta2);  w -= lr_t * m / (sqrt(v) + epsilon).

    lr_t = lr * sqrt(1 - beta2_power) / (1 - beta1_power).   Attrs: use_nesterov (m * beta1 + (1 - beta1) * g for m).
    """
    var, m, v = inputs[:3]
    power1, power2, rate, beta1, beta2, epsilon = (number_of(array) for array in inputs[3:9])
    lr = corrected_rate(rate, power1, power2)
    is_nesterov = bool(attrs.get("use_nesterov", False))

    def update(states: Sequence[Array], reads: Sequence[Array], free: Sequence[Array]) -> None:
        (w, mean, square), (g,), (step, root) = states, reads, free
        _moments(mean, square, g, beta1, beta2, step)
        if is_nesterov:
            np.multiply(g, 1.0 - beta1, out=root)
            np.multiply(mean, beta1, out=step)
            np.add(step, root, out=step)
            np.multiply(step, lr, out=step)
        else:
            np.multiply(mean, lr, out=step)
        np.sqrt(square, out=root)
        np.add(root, epsilon, out=root)
        np.true_divide(step, root, out=step)
        np.subtract(w, step, out=w)

    update_in_blocks([var, m, v], [inputs[9]], update)
    publish([var, m, v], out)


def corrected_rate(rate: float, power1: float, power2: float) -> float:
    """Edges: NaN or Inf where the powers leave [0, 1), as division and root of floats have it."""
    if not power2 <= 1.0:
        return math.nan
    with np.errstate(all="ignore"):
        return float(np.float64(rate) * math.sqrt(1.0 - power2) / np.float64(1.0 - power1))


def _moments(mean: Array, square: Array, g: Array, beta1: float, beta2: float, step: Array) -> None:
    """Running mean of g and of g*g."""
    np.subtract(g, mean, out=step)
    np.multiply(step, 1.0 - beta1, out=step)
    np.add(mean, step, out=mean)
    np.multiply(g, g, out=step)
    np.subtract(step, square, out=step)
    np.multiply(step, 1.0 - beta2, out=step)
    np.add(square, step, out=square)


def_update(
    "AdamWeightDecay",
    ("var", "m", "v", "lr", "beta1", "beta2", "epsilon", "decay", "gradient"),
    ("var", "m", "v"),
    state=(0, 1, 2),
    like=(1, 2, 8),
    scalars=(3, 4, 5, 6, 7),
)


@def_kernel("AdamWeightDecay")
def _adam_weight_decay(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Moments as in Adam, without correction;  w -= lr * (m / (sqrt(v) + epsilon) + decay * w)."""
    var, m, v = inputs[:3]
    lr, beta1, beta2, epsilon, decay = (number_of(array) for array in inputs[3:8])

    def update(states: Sequence[Array], reads: Sequence[Array], free: Sequence[Array]) -> None:
        (w, mean, square), (g,), (step, root) = states, reads, free
        _moments(mean, square, g, beta1, beta2, step)
        np.sqrt(square, out=root)
        np.add(root, epsilon, out=root)
        np.true_divide(mean, root, out=step)
        np.multiply(w, decay, out=root)
        np.add(step, root, out=step)
        np.multiply(step, lr, out=step)
        np.subtract(w, step, out=w)

    update_in_blocks([var, m, v], [inputs[8]], update)
    publish([var, m, v], out)
