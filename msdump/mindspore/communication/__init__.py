"""`mindspore.communication`: the processes of a job, their numbers and groups."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from msdump.config.environment import DEVICE_ID, RANK_ID, RANK_SIZE, TORCH_LOCAL_SIZE
from msdump.errors import ExecutionError
from msdump.mindspore.communication.launch import Launch
from msdump.mindspore.context import get_context
from msdump.mindspore.kernels.transport import Alone, transport, use_transport
from msdump.mindspore.names import explain_missing, publish

HCCL_WORLD_COMM_GROUP, NCCL_WORLD_COMM_GROUP = "hccl_world_group", "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"
_WORLDS = (HCCL_WORLD_COMM_GROUP, NCCL_WORLD_COMM_GROUP, MCCL_WORLD_COMM_GROUP, "")
_BACKENDS = ("hccl", "nccl", "mccl")

# Group -> ranks of the job that are in it.
_groups: dict[str, tuple[int, ...]] = {}


class GlobalComm:
    """Names of the job's group."""

    BACKEND = "hccl"
    WORLD_COMM_GROUP = HCCL_WORLD_COMM_GROUP
    INITED = False


def init(backend_name: str | None = None) -> None:
    """Meet the other processes of the job; a process that no launcher started is alone.

    The ranks compute over gloo, or over nccl when the device target is GPU and this process has a GPU. RANK_ID,
    RANK_SIZE and DEVICE_ID are set where the launcher did not, so that a dump has the folder of the rank.

    Edges:  the scheduler of a MindSpore cluster (MS_ROLE=MS_SCHED) has nothing to do here, and ends.
    Raises: RuntimeError for an unknown backend; ExecutionError when the others do not come, without an address, and
            without PyTorch.
    """
    if backend_name not in (None, *_BACKENDS):
        raise RuntimeError(
            "For 'init', the argument 'backend_name' must be one of 'hccl', 'nccl' and 'mccl', but got 'backend_name' "
            f": {backend_name}"
        )
    launch = Launch.from_environment()
    if launch.is_scheduler:
        sys.exit(0)
    GlobalComm.INITED = True
    if launch.size == 1 or not isinstance(transport(), Alone):
        return
    use_transport(_met(launch, backend_name))
    for name, number in ((RANK_ID, launch.rank), (RANK_SIZE, launch.size), (DEVICE_ID, launch.local_rank)):
        os.environ.setdefault(name, str(number))


def _met(launch: Launch, backend_name: str | None) -> Any:
    if not launch.address:
        raise ExecutionError(
            f"communication.init: expected the address where the {launch.size} processes meet, got none. Start them "
            "with torchrun, or set MASTER_ADDR and MASTER_PORT, or MS_SCHED_HOST and MS_SCHED_PORT."
        )
    try:
        import torch
    except ImportError as error:
        raise ExecutionError(
            f"communication.init: expected PyTorch for {launch.size} processes, got none. Install msdump[torch]."
        ) from error
    from msdump.mindspore.communication.torch_transport import TorchTransport

    is_gpu = get_context("device_target") == "GPU" and torch.cuda.is_available() and backend_name in (None, "nccl")
    backend, device = ("nccl", f"cuda:{launch.local_rank}") if is_gpu else ("gloo", "cpu")
    return TorchTransport(launch.rank, launch.size, launch.address, backend, device)


def release() -> None:
    """Leave the job: afterwards this process is alone."""
    current = transport()
    if not isinstance(current, Alone):
        current.close()  # type: ignore[attr-defined]
        use_transport(Alone())
    _groups.clear()
    GlobalComm.INITED = False


def create_group(group: str, rank_ids: Sequence[int], options: Any = None) -> None:
    """A group of some ranks of the job, which all of them call.

    Raises: TypeError, ValueError for a name or ranks that cannot be; RuntimeError for a group that is there.
    """
    if not isinstance(group, str) or not group or group in _WORLDS:
        raise ValueError(f"For 'create_group', the argument 'group' must be a name of its own, but got {group!r}.")
    if not isinstance(rank_ids, list | tuple) or not all(isinstance(rank, int) for rank in rank_ids):
        raise TypeError(f"For 'create_group', the argument 'rank_ids' must be a list of int, but got {rank_ids!r}.")
    size = _size()
    if not rank_ids or len(set(rank_ids)) != len(rank_ids) or not all(0 <= rank < size for rank in rank_ids):
        raise ValueError(f"For 'create_group', expected ranks of 0 to {size - 1}, each once, but got {rank_ids}.")
    if group in _groups:
        raise RuntimeError(f"For 'create_group', the group {group} is there already.")
    _groups[group] = tuple(rank_ids)
    current = transport()
    if not isinstance(current, Alone):
        current.add_group(group, rank_ids)  # type: ignore[attr-defined]


def destroy_group(group: str) -> None:
    """Take a group away.   Raises: ValueError for the job's own group or one that is not there."""
    if group in _WORLDS:
        raise ValueError("The world_group does not support destruction.")
    _ranks(group)
    del _groups[group]
    current = transport()
    if not isinstance(current, Alone):
        current.remove_group(group)  # type: ignore[attr-defined]


def _size() -> int:
    """Processes that meet: 1 for a process that is alone."""
    return 1 if isinstance(transport(), Alone) else Launch.from_environment().size


def _ranks(group: str) -> tuple[int, ...]:
    if group in _WORLDS:
        return tuple(range(Launch.from_environment().size))
    if group not in _groups:
        raise ValueError(f"group: expected one of {sorted(_groups)}, got {group!r}. Call create_group first.")
    return _groups[group]


def get_process_group_ranks(group: str = HCCL_WORLD_COMM_GROUP) -> list[int]:
    """Ranks of the job that are in a group."""
    return list(_ranks(group))


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """This process in a group: of the job what the launcher says, 0 without one."""
    rank = Launch.from_environment().rank
    return rank if group in _WORLDS else get_group_rank_from_world_rank(rank, group)


def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """This process on its machine."""
    return Launch.from_environment().local_rank


def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Processes in a group."""
    return len(_ranks(group))


def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Processes on this machine: LOCAL_WORLD_SIZE of torchrun, else all of the group."""
    text = os.environ.get(TORCH_LOCAL_SIZE, "")
    return int(text) if text.isdigit() else get_group_size(group)


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """Rank in the job of a rank of a group.   Raises: ValueError for a rank that the group has not."""
    ranks = _ranks(group)
    if not 0 <= group_rank_id < len(ranks):
        raise ValueError(f"group_rank_id: expected 0 to {len(ranks) - 1}, got {group_rank_id}.")
    return ranks[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """Rank in a group of a rank of the job.   Raises: ValueError for a rank that is not in the group."""
    ranks = _ranks(group)
    if world_rank_id not in ranks:
        raise ValueError(f"world_rank_id: expected one of {list(ranks)}, got {world_rank_id}.")
    return ranks.index(world_rank_id)


publish(__name__, "HCCL_WORLD_COMM_GROUP", "MCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP", "management")

__getattr__ = explain_missing(__name__)
