"""Random numbers of scripts: seeds, and the state of the generator that everything random draws from."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.located import located
from msdump.mindspore.names import publish

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


def refuse_generator(where: str, generator: Any) -> None:
    """Raises: ValueError for a generator: random numbers come from the seed of the script."""
    if generator is not None:
        raise ValueError(f"{where}: expected generator=None, got {generator!r}. Call mindspore.set_seed.")


def manual_seed(seed: int) -> None:
    """Start all random numbers anew."""
    set_seed(seed)


def seed() -> int:
    """Start all random numbers anew from a seed that the system chooses; that seed."""
    number = int(np.random.SeedSequence().generate_state(1)[0])
    set_seed(number)
    return number


def initial_seed() -> int:
    """The seed that was set; without one, one is chosen."""
    number = get_seed()
    return seed() if number is None else number


def get_rng_state() -> Tensor:
    """The state of the generator as bytes, for `set_rng_state`."""
    state = random_generator().bit_generator.state["state"]
    numbers = b"".join(int(state[name]).to_bytes(16, "little") for name in ("state", "inc"))
    return Tensor(np.frombuffer(numbers, np.uint8).copy())


def set_rng_state(state: Tensor) -> None:
    """Go on from a state.   Raises: ValueError for anything but a state of `get_rng_state`."""
    numbers = state.asnumpy().astype(np.uint8).tobytes() if isinstance(state, Tensor) else b""
    if len(numbers) != 32:
        raise ValueError(f"set_rng_state: expected what get_rng_state gave, got {state!r}.")
    generator: Any = random_generator().bit_generator
    values = {name: int.from_bytes(numbers[at : at + 16], "little") for name, at in (("state", 0), ("inc", 16))}
    generator.state = {**generator.state, "state": values}


publish(__name__)
