"""`mindspore.profiler`: accepted, and nothing is profiled, which is said once."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, final

from msdump.mindspore.log import warn_once
from msdump.mindspore.names import explain_missing, publish


class ProfilerLevel(Enum):
    """How much is profiled."""

    LevelNone = "LevelNone"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class ProfilerActivity(Enum):
    """What is profiled."""

    CPU = "CPU"
    GPU = "GPU"
    NPU = "NPU"


class AicoreMetrics(Enum):
    """Which counters of the device are read."""

    AiCoreNone = "AiCoreNone"
    PipeUtilization = "PipeUtilization"
    ArithmeticUtilization = "ArithmeticUtilization"
    Memory = "Memory"
    MemoryL0 = "MemoryL0"
    MemoryUB = "MemoryUB"
    ResourceConflictRatio = "ResourceConflictRatio"
    L2Cache = "L2Cache"


@final
class Profiler:
    """Takes its arguments and profiles nothing. Usable as a context, and in a training loop with `step`."""

    def __init__(self, **kwargs: Any) -> None:
        self.options = kwargs
        warn_once("Profiler: no profile is written. Time a run with `msdump plan CONFIG --dry-run SCRIPT`.")

    def __enter__(self) -> Profiler:
        return self

    def __exit__(self, *error: object) -> None: ...

    def start(self) -> None:
        """Accepted."""

    def stop(self) -> None:
        """Accepted."""

    def step(self) -> None:
        """Accepted."""

    def analyse(self, offline_path: str | None = None, pretty: bool = False, **options: Any) -> None:
        """There is nothing to analyse."""

    def add_metadata(self, key: str, value: str) -> None:
        """Accepted."""

    add_metadata_json = add_metadata

    def op_analyse(self, op_name: Any, device_id: int | None = None) -> Any:
        """Raises: RuntimeError: there is no profile."""
        raise RuntimeError("Profiler.op_analyse: expected a profile, got none. msdump profiles nothing.")


@final
class EnvProfiler:
    """Takes no part in anything."""

    def analyse(self) -> None:
        """There is nothing to analyse."""


def profile(*args: Any, **kwargs: Any) -> Profiler:
    """A profiler for a `with` block."""
    return Profiler(**kwargs)


def schedule(*, wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0) -> Callable[[int], None]:
    """A schedule of steps, which nothing follows."""
    return lambda step: None


def tensorboard_trace_handler(*args: Any, **kwargs: Any) -> None:
    """There is no trace."""


publish(__name__)

__getattr__ = explain_missing(__name__)
