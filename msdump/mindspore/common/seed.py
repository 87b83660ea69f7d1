"""The global seed: what makes initializers, dropout and numpy repeat themselves."""

from __future__ import annotations

import numpy as np

from msdump.mindspore.located import located

_seed: int | None = None
_generator = np.random.default_rng()


@located()
def set_seed(seed: int) -> None:
    """Start all random numbers anew; numpy's global ones too, as MindSpore does.

    Raises: TypeError for anything but an int, ValueError for a negative one.
    """
    global _seed, _generator
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise TypeError("The argument 'seed' must be type of int.")
    if seed < 0:
        raise ValueError(f"The argument 'seed' must be greater or equal to 0, but got {seed}.")
    _seed = int(seed)
    _generator = np.random.default_rng(_seed)
    np.random.seed(_seed % 2**32)


def get_seed() -> int | None:
    """The seed that was set, None when there is none."""
    return _seed


def random_generator() -> np.random.Generator:
    """The generator that everything random in the shim draws from."""
    return _generator
