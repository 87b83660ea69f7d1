"""Order and places of elements: flips, rotations, exchanged axes, repetitions, splits and stacks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops.array import (
    broadcast_to,
    concat,
    expand_dims,
    gather,
    reshape,
    split,
    stack,
    strided_slice,
    swapaxes,
    tile,
    transpose,
    zeros,
)
from msdump.mindspore.ops.declaration import operator, plain

# -- order -------------------------------------------------------------------------------------------------------------


@operator("ReverseV2")
def reverse(torch: Any, x: Tensor, axis: Any) -> Any:
    """Elements in reversed order along axes."""
    return torch.flip(x, axis if isinstance(axis, tuple) else (axis,))


def flip(input: Tensor, dims: Any) -> Tensor:
    """Elements in reversed order along axes."""
    return reverse(input, (dims,) if isinstance(dims, int) else tuple(dims))


def fliplr(input: Tensor) -> Tensor:
    """Elements in reversed order along axis 1.   Raises: ValueError for fewer than two axes."""
    if input.ndim < 2:
        raise ValueError(f"For 'fliplr', the dimension of inputs must be greater than 1, but got {input.ndim}.")
    return flip(input, (1,))


def flipud(input: Tensor) -> Tensor:
    """Elements in reversed order along axis 0."""
    return flip(input, (0,))


@operator("Roll", init="shifts dims")
def roll(torch: Any, input: Tensor, shifts: Any, dims: Any = None) -> Any:
    """Elements moved along axes; those that leave at the end come in at the front."""
    return torch.roll(input, shifts, dims)


def rot90(input: Tensor, k: int, dims: Sequence[int]) -> Tensor:
    """The plane of two axes turned by k quarters, from the first axis toward the second."""
    first, second = dims
    turns = k % 4
    if turns == 0:
        return input
    if turns == 2:
        return flip(input, (first, second))
    if turns == 1:
        return swapaxes(flip(input, (second,)), first, second)
    return flip(swapaxes(input, first, second), (second,))


@operator("ReverseSequence", init="seq_dim batch_dim")
def reverse_sequence(torch: Any, x: Tensor, seq_lengths: Tensor, seq_dim: int = 0, batch_dim: int = 0) -> Any:
    """The first seq_lengths[i] elements along seq_dim in reversed order, for each i of batch_dim."""
    moved = torch.movedim(x, (batch_dim, seq_dim), (0, 1))
    places = torch.arange(moved.shape[1], device=moved.device)[None, :]
    lengths = torch.unsqueeze(seq_lengths, 1)
    places = torch.where(places < lengths, lengths - 1 - places, places)
    batches = torch.arange(moved.shape[0], device=moved.device)[:, None]
    return torch.movedim(moved[batches, places], (0, 1), (batch_dim, seq_dim))


# -- axes --------------------------------------------------------------------------------------------------------------


def permute(input: Tensor, axis: Any) -> Tensor:
    """Axis i of the result is axis axis[i]."""
    return transpose(input, [number % input.ndim for number in plain(axis, "axis")])


def movedim(x: Tensor, source: Any, destination: Any) -> Tensor:
    """Axes moved to other places; the others keep their order."""
    sources = [axis % x.ndim for axis in ([source] if isinstance(source, int) else source)]
    places = [axis % x.ndim for axis in ([destination] if isinstance(destination, int) else destination)]
    if len(sources) != len(places):
        raise ValueError(f"For 'movedim', expected as many places as axes, got {len(places)} and {len(sources)}.")
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return transpose(x, order)


moveaxis = movedim


def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged."""
    return swapaxes(input, dim0, dim1)


def t(input: Tensor) -> Tensor:
    """A matrix with its axes exchanged; a vector as it is.   Raises: ValueError for more than two axes."""
    if input.ndim > 2:
        raise ValueError(f"For t(), rank of tensor should be <= 2, but got {input.ndim}.")
    return swapaxes(input, 0, 1) if input.ndim == 2 else input


def ravel(input: Tensor) -> Tensor:
    """All elements in one axis."""
    return reshape(input, (-1,))


def _of_rank(count: int, one: Any) -> Tensor:
    tensor = as_tensor(one)
    if tensor.ndim >= count:
        return tensor
    if count == 3 and tensor.ndim:
        return expand_dims(tensor, -1) if tensor.ndim == 2 else reshape(tensor, (1, tensor.size, 1))
    return reshape(tensor, (1,) * (count - tensor.ndim) + tensor.shape)


def _each(inputs: Any, count: int) -> Any:
    return (
        tuple(_of_rank(count, one) for one in inputs) if isinstance(inputs, list | tuple) else _of_rank(count, inputs)
    )


def atleast_1d(inputs: Any) -> Any:
    """Tensors with at least one axis."""
    return _each(inputs, 1)


def atleast_2d(inputs: Any) -> Any:
    """Tensors with at least two axes, new ones in front."""
    return _each(inputs, 2)


def atleast_3d(inputs: Any) -> Any:
    """Tensors with at least three axes; a vector becomes (1, N, 1), a matrix (M, N, 1)."""
    return _each(inputs, 3)


# -- repetitions -------------------------------------------------------------------------------------------------------


def repeat_elements(x: Tensor, rep: int, axis: int = 0) -> Tensor:
    """Each element `rep` times along an axis."""
    if isinstance(rep, bool) or not isinstance(rep, int) or rep < 1:
        raise TypeError(f"For 'repeat_elements', the 'rep' must be a positive int, but got {rep!r}.")
    place = axis % x.ndim
    repeats = [1] * (x.ndim + 1)
    repeats[place + 1] = rep
    sizes = list(x.shape)
    sizes[place] *= rep
    return reshape(tile(expand_dims(x, place + 1), repeats), sizes)


def repeat_interleave(input: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Each element as often as `repeats` says: one number, or one per element of the axis. None: of all elements."""
    tensor = as_tensor(input)
    if axis is None:
        tensor, axis = ravel(tensor), 0
    counts = plain(repeats, "repeats")
    if isinstance(counts, int):
        return repeat_elements(tensor, counts, axis)
    if len(counts) == 1:
        return repeat_elements(tensor, counts[0], axis)
    if len(counts) != tensor.shape[axis]:
        raise ValueError(
            f"For 'repeat_interleave', the length of 'repeats' must be {tensor.shape[axis]}, the size of the axis, "
            f"but got {len(counts)}."
        )
    return gather(tensor, Tensor(np.repeat(np.arange(len(counts), dtype=np.int32), counts)), axis)


def expand(input_x: Tensor, size: Any) -> Tensor:
    """The tensor repeated to a shape; -1 keeps a size."""
    return broadcast_to(input_x, plain(size, "size"))


@operator("Meshgrid")
def _meshgrid(torch: Any, inputs: Sequence[Tensor], indexing: str = "xy") -> tuple[Any, ...]:
    """The coordinates of a grid, one tensor per axis."""
    return tuple(torch.meshgrid(*inputs, indexing=indexing))


def meshgrid(*inputs: Any, indexing: str = "xy") -> Any:
    """The coordinates of a grid, one tensor per axis."""
    return _meshgrid(inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list | tuple) else inputs, indexing)


def cartesian_prod(*inputs: Tensor) -> Tensor:
    """All tuples of one element of each tensor, a row each."""
    return reshape(stack(_meshgrid(inputs, "ij"), axis=-1), (-1, len(inputs)))


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements in their order, a row each.   Raises: ValueError for other than one axis."""
    if input.ndim != 1:
        raise ValueError(f"For 'combinations', the input must have one dimension, but got {input.ndim}.")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(input.size), r))
    return gather(input, Tensor(np.array(rows, np.int32).reshape(len(rows), r)), 0)


# -- parts and wholes --------------------------------------------------------------------------------------------------


def chunk(input: Tensor, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of one size along an axis; the last may be smaller."""
    if isinstance(chunks, bool) or not isinstance(chunks, int) or chunks <= 0:
        raise ValueError(f"For 'chunk', the argument 'chunks' must be a positive int, but got {chunks!r}.")
    return split(input, max(1, -(-input.shape[axis] // chunks)), axis)


def tensor_split(input: Tensor, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """So many parts, the first ones longer by one; or parts that begin at the indices."""
    total = input.shape[axis]
    if isinstance(indices_or_sections, int):
        if indices_or_sections <= 0:
            raise ValueError(f"For 'tensor_split', the sections must be positive, but got {indices_or_sections}.")
        least, longer = divmod(total, indices_or_sections)
        sizes = [least + (number < longer) for number in range(indices_or_sections)]
        return split(input, least if longer == 0 and least else sizes, axis)
    places = [0, *(place if place >= 0 else place + total for place in indices_or_sections), total]
    return tuple(_between(input, axis, begin, end) for begin, end in itertools.pairwise(places))


def _between(input: Tensor, axis: int, begin: int, end: int) -> Tensor:
    begins, ends = [0] * input.ndim, list(input.shape)
    begins[axis], ends[axis] = min(begin, input.shape[axis]), max(begin, min(end, input.shape[axis]))
    if ends[axis] <= begins[axis]:
        ends[axis] = 0
        return zeros([size if place != axis % input.ndim else 0 for place, size in enumerate(input.shape)], input.dtype)
    return strided_slice(input, begins, ends, [1] * input.ndim)


def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 1, of a vector along axis 0."""
    return tensor_split(input, indices_or_sections, 1 if input.ndim > 1 else 0)


def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 0."""
    return tensor_split(input, indices_or_sections, 0)


def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 2."""
    return tensor_split(input, indices_or_sections, 2)


def hstack(tensors: Sequence[Any]) -> Tensor:
    """Tensors one after another along axis 1, vectors along axis 0."""
    parts = atleast_1d(list(tensors))
    return concat(parts, 0 if parts[0].ndim == 1 else 1)


def vstack(inputs: Sequence[Any]) -> Tensor:
    """Tensors one below another; vectors are rows."""
    return concat(atleast_2d(list(inputs)), 0)


def dstack(tensors: Sequence[Any]) -> Tensor:
    """Tensors one behind another along axis 2."""
    return concat(atleast_3d(list(tensors)), 2)


def column_stack(tensors: Sequence[Any]) -> Tensor:
    """Tensors side by side; vectors are columns."""
    parts = [expand_dims(each, 1) if each.ndim < 2 else each for each in atleast_1d(list(tensors))]
    return concat(parts, 1)


def block_diag(*inputs: Tensor) -> Tensor:
    """Matrices along a diagonal, zeros elsewhere; a vector is a row."""
    blocks, rows = atleast_2d(list(inputs)), []
    for at, block in enumerate(blocks):
        before, after = (sum(each.shape[1] for each in part) for part in (blocks[:at], blocks[at + 1 :]))
        beside = [zeros((block.shape[0], width), block.dtype) for width in (before, after)]
        rows.append(concat([part for part in (beside[0], block, beside[1]) if part.shape[1]], 1))
    return concat(rows, 0)


def narrow(input: Tensor, axis: int, start: int, length: int) -> Tensor:
    """`length` elements of an axis, from `start` on."""
    return _between(input, axis, start, start + length)


publish(__name__)
