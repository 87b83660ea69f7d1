"""Calls of the random operators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.mindspore.kernels.cases import Case, bools, case, ints, positive, reals, scalar

_DRAW = ints(0, 9, 1, dtype=np.int64)
CASES: dict[str, Sequence[Case]] = {
    **{
        name: [case(shape=(3, 2)), case(_DRAW, shape=(), seed=3), case(shape=(0,), seed2=-1)]
        for name in ("StandardNormal", "UniformReal", "TruncatedNormal")
    },
    "UniformInt": [case(scalar(1, np.int32), scalar(9, np.int32), shape=(3, 2)),
                   case(scalar(-3, np.int32), scalar(0, np.int32), _DRAW, shape=())],
    "Bernoulli": [case(reals(3, 2), scalar(0.5)), case(ints(0, 5, 2), positive(2) / 2, _DRAW)],
    "Multinomial": [case(positive(4), num_samples=3), case(positive(2, 4), _DRAW, num_samples=4, replacement=False)],
    "RandomCategorical": [case(reals(2, 4), num_samples=3), case(reals(4), _DRAW, num_samples=5)],
    "RandomChoiceWithMask": [case(bools(3, 4), count=20), case(bools(5), _DRAW, count=2)],
    "RandomPoisson": [case(positive(4), shape=(3, 2)), case(positive(2), _DRAW, shape=(), dtype="int64")],
    "RandomShuffle": [case(reals(5, 2)), case(ints(0, 9, 4), _DRAW)],
    "RandpermV2": [case(shape=(5,)), case(_DRAW, shape=(3,), dtype="int32")],
}  # fmt: skip
