"""Launch: which process of which job this is, as launchers say it in the environment.

Source: `torchrun`; MindSpore's `msrun` and dynamic cluster (MS_*); Open MPI; rank tables (RANK_ID, RANK_SIZE).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from msdump.config import environment as names
from msdump.config.environment import DEVICE_ID, RANK_ID, RANK_SIZE
from msdump.errors import ConfigError

SCHEDULER = "MS_SCHED"
# Variables of each launcher: rank, size, rank on this machine. The first that has set rank and size is taken.
_LAUNCHERS = (
    (names.TORCH_RANK, names.TORCH_SIZE, names.TORCH_LOCAL_RANK),
    (RANK_ID, names.MS_WORKERS, DEVICE_ID),
    (names.MS_NODE, names.MS_WORKERS, DEVICE_ID),
    (names.MPI_RANK, names.MPI_SIZE, names.MPI_LOCAL_RANK),
)
_ADDRESSES = ((names.TORCH_ADDRESS, names.TORCH_PORT), (names.MS_ADDRESS, names.MS_PORT))
# Source: the port of MindSpore's scheduler when none is given.
_PORT = 8118


@final
@dataclass(frozen=True)
class Launch:
    """rank, size: of the job. local_rank: on this machine. address: "host:port" where processes meet, "" for none."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    address: str = ""
    is_scheduler: bool = False

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Launch:
        """Raises: ConfigError for a variable that is no number, or a rank that the job has not."""
        is_scheduler = environ.get(names.MS_ROLE) == SCHEDULER
        address = _address(environ)
        for rank_name, size_name, local_name in _LAUNCHERS:
            if environ.get(rank_name) and environ.get(size_name):
                rank, size = _number(environ, rank_name, 0), _number(environ, size_name, 1)
                if rank >= size:
                    raise ConfigError(
                        f"{rank_name}: expected a rank below {size_name}={size}, got {rank}. Fix one of them."
                    )
                return cls(rank, size, _number(environ, local_name, 0), address, is_scheduler)
        rank, size = _number(environ, RANK_ID, 0), _number(environ, RANK_SIZE, 1)
        return cls(rank, max(size, 1), _number(environ, DEVICE_ID, 0), address, is_scheduler)


def _number(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name, "")
    if not text:
        return default
    if not text.isdigit():
        raise ConfigError(f'{name}: expected a number, got "{text}". Fix the environment variable.')
    return int(text)


def _address(environ: Mapping[str, str]) -> str:
    for host_name, port_name in _ADDRESSES:
        if environ.get(host_name):
            return f"{environ[host_name]}:{_number(environ, port_name, _PORT)}"
    return f"127.0.0.1:{_PORT}" if environ.get(names.MPI_SIZE) else ""
