"""Indices of a graph pick what numpy's pick."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import msdump.mindspore as ms
from msdump.errors import GraphError

DATA = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)


@st.composite
def indices(draw: st.DrawFn) -> tuple[Any, ...]:
    """Integers, slices, None, Ellipsis, and at least one array of integers of a shape that broadcasts."""
    items: list[Any] = []
    for size in DATA.shape[: draw(st.integers(1, 4))]:
        place = st.integers(-size, size - 1)
        arrays = [st.lists(place, min_size=count, max_size=count) for count in (1, 3)]
        column = st.lists(place, min_size=2, max_size=2).map(lambda values: [[value] for value in values])
        slices = st.builds(slice, st.none() | place, st.none() | place, st.sampled_from([None, 1, 2]))
        kinds = (place, slices, st.just(slice(None)), *(each.map(np.array) for each in (*arrays, column)))
        items.append(draw(st.one_of(*kinds)))
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), None)
    if len(items) < 4 and draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
    assume(any(isinstance(item, np.ndarray) for item in items))
    return tuple(items)


@settings(max_examples=60)
@given(indices())
def test_index_tensors_pick_what_numpy_picks(index: tuple[Any, ...]) -> None:
    expected = DATA[index]
    assume(expected.size)
    arrays = [item for item in index if isinstance(item, np.ndarray)]

    @ms.jit
    def picked(data: Any, *given: Any) -> Any:
        places = iter(given)
        return data[tuple(next(places) if isinstance(item, np.ndarray) else item for item in index)]

    result = picked(ms.Tensor(DATA), *map(ms.Tensor, arrays)).asnumpy()
    np.testing.assert_array_equal(result, expected)


def test_gradients_come_back_to_the_elements_that_were_picked() -> None:
    pytest.importorskip("torch")
    rows, columns = ms.Tensor([0, 1, 1]), ms.Tensor([-1, 0, 0])
    gradient = ms.grad(lambda data: data[rows, columns].sum())(ms.Tensor(DATA[0, 0]))
    expected = np.zeros((4, 5), np.float32)
    np.add.at(expected, ([0, 1, 1], [-1, 0, 0]), 1)
    np.testing.assert_array_equal(gradient.asnumpy(), expected)


def test_masks_have_no_place_in_a_graph() -> None:
    mask = ms.Tensor(DATA[0, 0] > 3)

    @ms.jit
    def masked(data: Any, mask: Any) -> Any:
        return data[0, mask]

    with pytest.raises(GraphError, match=r"expected integer tensors, got bool\[4, 5\]"):
        masked(ms.Tensor(DATA[:, 0]), mask)
