"""Collectives, done when they return."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.registry import kernel


@kernel("HcomAllReduce")
def all_reduce(x: Any, *, reduction: str, group: str, fusion: int, fusion_id: int) -> Any:
    return _done(torch.ops._c10d_functional.all_reduce.default(x, reduction, group))


@kernel("HcomAllGather")
def all_gather(x: Any, *, rank_size: int, group: str) -> Any:
    return _done(torch.ops._c10d_functional.all_gather_into_tensor.default(x, rank_size, group))


@kernel("HcomReduceScatter")
def reduce_scatter(x: Any, *, reduction: str, rank_size: int, group: str) -> Any:
    return _done(torch.ops._c10d_functional.reduce_scatter_tensor.default(x, reduction, rank_size, group))


@kernel("HcomBroadcast")
def broadcast(x0: Any, *, root_rank: int, group: str, fusion: int, fusion_id: int) -> Any:
    return _done(torch.ops._c10d_functional.broadcast.default(x0, root_rank, group))


@kernel("HcomAllToAllV", host=("send_counts", "recv_counts"))
def all_to_all(
    send_data: Any,
    send_counts: list[int],
    send_displacements: None,
    recv_counts: list[int],
    recv_displacements: None,
    *,
    group: str,
) -> Any:
    """Displacements   none: parts lie one behind the other"""
    return _done(torch.ops._c10d_functional.all_to_all_single.default(send_data, recv_counts, send_counts, group))


def _done(pending: Any) -> Any:
    return torch.ops._c10d_functional.wait_tensor.default(pending)
