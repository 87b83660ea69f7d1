"""`mindspore.dataset.config`: the settings that every pipeline of the process shares."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.common.generator import get_seed as get_general_seed
from msdump.mindspore.common.signatures import bound_arguments, signature_of

# A seed of this value means "no seed was set".   Source: std::mt19937's default seed, MindSpore's default.
UNSET_SEED = 5489
_LARGEST_SEED = 2**32 - 1


@dataclass
class _Settings:
    """The one set of values; pipelines read it when an iterator starts."""

    seed: int = UNSET_SEED
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


def _setting(
    name: str, default: int, low: int | None = None, parameter: str = "value"
) -> tuple[Callable[..., None], Callable[[], Any]]:
    """Setter and getter of what scripts may set: a switch, or an int that is at least `low`."""
    signature = signature_of([parameter])

    def setter(*args: Any, **kwargs: Any) -> None:
        value = bound_arguments(f"set_{name}", signature, args, kwargs)[parameter]
        if low is None and not isinstance(value, bool):
            raise TypeError(f"dataset.config.set_{name}: expected a bool, got {type(value).__name__} {value!r}.")
        _settings.accepted[name] = value if low is None else _whole_number(f"set_{name}", value, low, 2**31 - 1)

    return setter, lambda: _settings.accepted.get(name, default)


# What MindSpore's processes and threads do, and how they are tuned; one thread prepares the data here.
set_auto_num_workers, get_auto_num_workers = _setting("auto_num_workers", False)
set_auto_offload, get_auto_offload = _setting("auto_offload", False)
set_autotune_interval, get_autotune_interval = _setting("autotune_interval", 0, 0)
set_callback_timeout, get_callback_timeout = _setting("callback_timeout", 60, 1)
set_debug_mode, get_debug_mode = _setting("debug_mode", False)
set_dynamic_shape, get_dynamic_shape = _setting("dynamic_shape", False)
set_enable_shared_mem, get_enable_shared_mem = _setting("enable_shared_mem", True)
set_enable_watchdog, get_enable_watchdog = _setting("enable_watchdog", True)
set_fast_recovery, get_fast_recovery = _setting("fast_recovery", True)
set_multiprocessing_timeout_interval, get_multiprocessing_timeout_interval = _setting(
    "multiprocessing_timeout_interval", 300, 1
)
set_num_parallel_workers, get_num_parallel_workers = _setting("num_parallel_workers", 8, 1, "num")
set_numa_enable, get_numa_enable = _setting("numa_enable", False)
set_monitor_sampling_interval, get_monitor_sampling_interval = _setting(
    "monitor_sampling_interval", 1000, 1, "interval"
)
# Rows (batches, after `batch`) that may wait for the training loop; at most two batches are ever held.
set_prefetch_size, get_prefetch_size = _setting("prefetch_size", 16, 1, "size")
_set_autotune, get_enable_autotune = _setting("enable_autotune", False)
set_sending_batches, _ = _setting("sending_batches", 0, -(2**31))


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
