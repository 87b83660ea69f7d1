"""The session that all of PyTorch in this process shares: its rank, its device, and how it counts iterations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from msdump.config.environment import RANK_ID, TORCH_LOCAL_RANK, TORCH_RANK
from msdump.config.sections import STATISTIC_CATEGORIES
from msdump.engine import opening
from msdump.frontends.torch.steps import Steps

if TYPE_CHECKING:
    from msdump.engine.graphs import GraphSession

# Columns of statistic.csv when none are chosen: all but the digest, which takes twenty times the time of the others.
_CATEGORIES = tuple(category for category in STATISTIC_CATEGORIES if category != "md5")


def open_session(example_inputs: Sequence[object] = (), is_compiled_only: bool = False) -> GraphSession | None:
    """The session; None when no dump is configured.   Parameters and Raises: as `opening.open_torch`."""
    return opening.open_torch(_rank_id(), _device_id(example_inputs), _CATEGORIES, is_compiled_only)


def steps_of(session: GraphSession) -> Steps:
    """Those that all of the session share."""
    return session.shared(_new_steps)


def _new_steps(session: GraphSession) -> Steps:
    return Steps(session.next_iteration, take_graph_id=session.take_graph_id)


def _rank_id() -> int | None:
    """Rank in the job: of the process group, else torchrun's; None: that of msdump's own environment variables."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank())
    rank = os.environ.get(TORCH_RANK, "")
    return int(rank) if rank.isdigit() and not os.environ.get(RANK_ID) else None


def _device_id(example_inputs: Sequence[object]) -> int:
    """Number of the CUDA device, else of the process on its host: processes that share a host dump apart."""
    for tensor in example_inputs:
        if isinstance(tensor, torch.Tensor) and tensor.is_cuda:
            return int(tensor.device.index or 0)
    rank = os.environ.get(TORCH_LOCAL_RANK, "")
    return int(rank) if rank.isdigit() else _rank_id() or 0
