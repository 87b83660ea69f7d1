"""`mindspore.dataset.config`: the settings that every pipeline of the process shares."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np

from msdump.errors import ConfigError
from msdump.frontends.mindspore.common.seed import get_seed as get_general_seed

# A seed of this value means "no seed was set".   Source: std::mt19937's default seed, MindSpore's default.
UNSET_SEED = 5489
_LARGEST_SEED = 2**32 - 1


@dataclass
class _Settings:
    """The one set of values; pipelines read it when an iterator starts."""

    seed: int = UNSET_SEED
    num_parallel_workers: int = 8
    prefetch_size: int = 16
    monitor_sampling_interval: int = 1000
    eager_generator: np.random.Generator | None = None


_settings = _Settings()


def set_seed(seed: int) -> None:
    """Make shuffling and random transforms repeatable.   Raises: TypeError, ConfigError (not in [0, 2**32 - 1])."""
    _settings.seed = _whole_number("set_seed", seed, 0, _LARGEST_SEED)
    _settings.eager_generator = None


def get_seed() -> int:
    """Seed of random operations: the one set here, else `mindspore.set_seed`'s, else 5489."""
    general_seed = get_general_seed()
    if _settings.seed == UNSET_SEED and general_seed is not None:
        return general_seed
    return _settings.seed


def set_num_parallel_workers(num: int) -> None:
    """Accepted for scripts that set it; one background thread prepares the data here."""
    _settings.num_parallel_workers = _whole_number("set_num_parallel_workers", num, 1, 2**31 - 1)


def get_num_parallel_workers() -> int:
    """The number that was set (default 8)."""
    return _settings.num_parallel_workers


def set_prefetch_size(size: int) -> None:
    """Rows (batches, after `batch`) that may wait for the training loop; at most two batches are ever held."""
    _settings.prefetch_size = _whole_number("set_prefetch_size", size, 1, 2**31 - 1)


def get_prefetch_size() -> int:
    """The number that was set (default 16)."""
    return _settings.prefetch_size


def set_monitor_sampling_interval(interval: int) -> None:
    """Accepted for scripts that set it (milliseconds); nothing is sampled here."""
    _settings.monitor_sampling_interval = _whole_number("set_monitor_sampling_interval", interval, 1, 2**31 - 1)


def get_monitor_sampling_interval() -> int:
    """The number that was set (default 1000)."""
    return _settings.monitor_sampling_interval


def iterator_seed() -> int:
    """Seed for one new iterator: the set one, or a fresh one when none was set."""
    return secrets.randbits(32) if get_seed() == UNSET_SEED else get_seed()


def eager_generator() -> np.random.Generator:
    """Random numbers of transforms that are called by hand, outside a pipeline; `set_seed` starts them anew."""
    if _settings.eager_generator is None:
        _settings.eager_generator = np.random.default_rng(iterator_seed())
    return _settings.eager_generator


def _whole_number(name: str, value: int, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"dataset.config.{name}: expected an int, got {type(value).__name__} {value!r}.")
    if not low <= value <= high:
        raise ConfigError(f"dataset.config.{name}: expected a number in [{low}, {high}], got {value}.")
    return value
