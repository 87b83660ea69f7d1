from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import GraphError
from msdump.graph.primitive import definition_of
from msdump.graph.types import TensorType
from tests.mindspore.kernels.interpreter import run_op

quick = settings(max_examples=25, deadline=None)


@given(
    seed0=st.integers(-(2**63), 2**63 - 1), seed1=st.integers(0, 9), draw=st.integers(0, 2**40), size=st.integers(0, 40)
)
@quick
def test_replay_gives_the_same_bits(seed0: int, seed1: int, draw: int, size: int) -> None:
    x = np.linspace(-1, 1, size, dtype=np.float32)
    attrs = {"keep_prob": 0.5, "Seed0": seed0, "Seed1": seed1}
    count = np.array([draw], np.int64)
    first, second = run_op("Dropout", [x, count], attrs), run_op("Dropout", [x, count], attrs)
    assert [array.tobytes() for array in first] == [array.tobytes() for array in second]
    y, mask = first
    assert np.array_equal(y, x * mask * np.float32(2)) and set(mask.tolist()) <= {0.0, 1.0}


def test_seeds_and_draws_change_the_mask() -> None:
    x = np.ones(64, np.float32)
    runs = [({"Seed0": 0}, 0), ({"Seed0": 1}, 0), ({"Seed1": 1}, 0), ({"Seed0": 0}, 1)]
    masks = {run_op("Dropout", [x, np.asarray(draw, np.int32)], attrs)[1].tobytes() for attrs, draw in runs}
    assert len(masks) == len(runs)


@pytest.mark.parametrize("keep_prob", [0.1, 0.5, 0.9, 1.0])
def test_share_of_ones(keep_prob: float) -> None:
    """Far more elements than one block of random words; five standard deviations around keep_prob."""
    mask = run_op("Dropout", [np.ones(300_000, np.float32)], {"keep_prob": keep_prob})[1]
    spread = 5 * np.sqrt(keep_prob * (1 - keep_prob) / mask.size)
    assert abs(float(mask.mean()) - keep_prob) <= spread


def test_the_stream_is_the_same_on_every_machine() -> None:
    mask = run_op("Dropout", [np.ones(1000, np.float32)], {"keep_prob": 0.7, "Seed0": 3, "Seed1": 4})[1]
    assert hashlib.md5(mask.astype(np.uint8).tobytes()).hexdigest() == "1bef533de5fd9d1f308dc96cb3fc69da"


@pytest.mark.parametrize("keep_prob", [0.0, -1.0, 1.5, "half"])
def test_keep_prob_outside_is_refused(keep_prob: object) -> None:
    infer = definition_of("Dropout").infer
    assert infer is not None
    with pytest.raises(GraphError, match=r"keep_prob in \(0, 1\]"):
        infer([TensorType("float32", (2,))], {"keep_prob": keep_prob})
