"""`mindspore.communication`."""

from __future__ import annotations

import os

from msdump.config.environment import DEVICE_ID, RANK_ID, RANK_SIZE
from msdump.errors import ConfigError
from msdump.frontends.mindspore.names import explain_missing, publish

HCCL_WORLD_COMM_GROUP, NCCL_WORLD_COMM_GROUP = "hccl_world_group", "nccl_world_group"


class GlobalComm:
    """Names of the job's group."""

    BACKEND = "nccl"
    WORLD_COMM_GROUP = NCCL_WORLD_COMM_GROUP


def init(backend_name: str | None = None) -> None:
    """Accepted: a process runs on its own.   Raises: ValueError for an unknown backend."""
    if backend_name not in (None, "hccl", "nccl", "mccl"):
        raise ValueError(
            f"For 'init', the argument 'backend_name' must be one of ['hccl', 'nccl', 'mccl'], got {backend_name}."
        )


def release() -> None:
    """Nothing was acquired."""


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    if not text.isdigit():
        raise ConfigError(f'{name}: expected a number, got "{text}". Fix the environment variable.')
    return int(text)


def get_rank(group: str = NCCL_WORLD_COMM_GROUP) -> int:
    """This process in the job: RANK_ID, or 0."""
    return _number(RANK_ID, 0)


def get_local_rank(group: str = NCCL_WORLD_COMM_GROUP) -> int:
    """This process on its machine: DEVICE_ID, or 0."""
    return _number(DEVICE_ID, 0)


def get_group_size(group: str = NCCL_WORLD_COMM_GROUP) -> int:
    """Processes in the job: RANK_SIZE, or 1."""
    return _number(RANK_SIZE, 1)


publish(__name__, "HCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP", "management")

__getattr__ = explain_missing(__name__)
