"""`mindspore.dataset.config`: the settings that every pipeline of the process shares."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.common.generator import get_seed as get_general_seed

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
    accepted: dict[str, bool | int] = field(default_factory=dict)


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


def _flag(name: str, default: bool) -> tuple[Callable[[bool], None], Callable[[], bool]]:
    """Setter and getter of a switch that scripts may set and that changes nothing here."""

    def setter(value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"dataset.config.set_{name}: expected a bool, got {type(value).__name__} {value!r}.")
        _settings.accepted[name] = value

    def getter() -> bool:
        return bool(_settings.accepted.get(name, default))

    return setter, getter


def _count(name: str, default: int, low: int) -> tuple[Callable[[int], None], Callable[[], int]]:
    """Setter and getter of an int that scripts may set and that changes nothing here."""

    def setter(value: int) -> None:
        _settings.accepted[name] = _whole_number(f"set_{name}", value, low, 2**31 - 1)

    def getter() -> int:
        return int(_settings.accepted.get(name, default))

    return setter, getter


# What MindSpore's processes and threads do, and how they are tuned; one thread prepares the data here.
set_auto_num_workers, get_auto_num_workers = _flag("auto_num_workers", False)
set_auto_offload, get_auto_offload = _flag("auto_offload", False)
set_autotune_interval, get_autotune_interval = _count("autotune_interval", 0, 0)
set_callback_timeout, get_callback_timeout = _count("callback_timeout", 60, 1)
set_debug_mode, get_debug_mode = _flag("debug_mode", False)
set_dynamic_shape, get_dynamic_shape = _flag("dynamic_shape", False)
set_enable_shared_mem, get_enable_shared_mem = _flag("enable_shared_mem", True)
set_enable_watchdog, get_enable_watchdog = _flag("enable_watchdog", True)
set_fast_recovery, get_fast_recovery = _flag("fast_recovery", True)
set_multiprocessing_timeout_interval, get_multiprocessing_timeout_interval = _count(
    "multiprocessing_timeout_interval", 300, 1
)
set_numa_enable, get_numa_enable = _flag("numa_enable", False)
_set_autotune, get_enable_autotune = _flag("enable_autotune", False)
set_sending_batches, _ = _count("sending_batches", 0, -(2**31))


def set_enable_autotune(enable: bool, filepath_prefix: str | None = None) -> None:
    """Accepted for scripts that set it; nothing is tuned here, and no file is written."""
    _set_autotune(enable)


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
