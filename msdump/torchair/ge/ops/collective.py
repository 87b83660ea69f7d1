"""Collectives. A GE operator is done when it returns, so that waiting is another name for the same tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from msdump.torchair.ge.builder import Builder
from msdump.torchair.ge.graph import GeTensor, Size
from msdump.torchair.ge.registry import converter, kernel


@converter("_c10d_functional.all_reduce.default")
def all_reduce(ge: Builder, x: GeTensor, reduce_op: str, group_name: str) -> GeTensor:
    attrs = {"reduction": reduce_op, "group": group_name, "fusion": 0, "fusion_id": -1}
    return ge.op("HcomAllReduce", {"x": x}, attrs)


@kernel("HcomAllReduce")
def all_reduce_kernel(x: torch.Tensor, *, reduction: str, group: str, fusion: int, fusion_id: int) -> torch.Tensor:
    return _done(torch.ops._c10d_functional.all_reduce.default(x, reduction, group))


def _done(pending: torch.Tensor) -> torch.Tensor:
    done: torch.Tensor = torch.ops._c10d_functional.wait_tensor.default(pending)
    return done


@converter("_c10d_functional.all_reduce_coalesced.default")
def all_reduce_coalesced(ge: Builder, items: Sequence[GeTensor], reduce_op: str, group_name: str) -> list[GeTensor]:
    return [all_reduce(ge, x, reduce_op, group_name) for x in items]


@converter("_c10d_functional.all_gather_into_tensor.default")
def all_gather(ge: Builder, x: GeTensor, group_size: int, group_name: str) -> GeTensor:
    return ge.op("HcomAllGather", {"x": x}, {"rank_size": group_size, "group": group_name})


@kernel("HcomAllGather")
def all_gather_kernel(x: torch.Tensor, *, rank_size: int, group: str) -> torch.Tensor:
    return _done(torch.ops._c10d_functional.all_gather_into_tensor.default(x, rank_size, group))


@converter("_c10d_functional.all_gather_into_tensor_coalesced.default")
def all_gather_coalesced(ge: Builder, items: Sequence[GeTensor], group_size: int, group_name: str) -> list[GeTensor]:
    return [all_gather(ge, x, group_size, group_name) for x in items]


@converter("_c10d_functional.reduce_scatter_tensor.default")
def reduce_scatter(ge: Builder, x: GeTensor, reduce_op: str, group_size: int, group_name: str) -> GeTensor:
    attrs = {"reduction": reduce_op, "rank_size": group_size, "group": group_name}
    return ge.op("HcomReduceScatter", {"x": x}, attrs)


@kernel("HcomReduceScatter")
def reduce_scatter_kernel(x: torch.Tensor, *, reduction: str, rank_size: int, group: str) -> torch.Tensor:
    return _done(torch.ops._c10d_functional.reduce_scatter_tensor.default(x, reduction, rank_size, group))


@converter("_c10d_functional.reduce_scatter_tensor_coalesced.default")
def reduce_scatter_coalesced(
    ge: Builder, items: Sequence[GeTensor], reduce_op: str, group_size: int, group_name: str
) -> list[GeTensor]:
    return [reduce_scatter(ge, x, reduce_op, group_size, group_name) for x in items]


@converter("_c10d_functional.broadcast.default")
def broadcast(ge: Builder, x: GeTensor, src: int, group_name: str) -> GeTensor:
    return ge.op("HcomBroadcast", {"x0": x}, {"root_rank": src, "group": group_name, "fusion": 0, "fusion_id": -1})


@kernel("HcomBroadcast")
def broadcast_kernel(x0: torch.Tensor, *, root_rank: int, group: str, fusion: int, fusion_id: int) -> torch.Tensor:
    return _done(torch.ops._c10d_functional.broadcast.default(x0, root_rank, group))


@converter("_c10d_functional.all_to_all_single.default")
def all_to_all(
    ge: Builder, x: GeTensor, output_split_sizes: Sequence[Size], input_split_sizes: Sequence[Size], group_name: str
) -> GeTensor:
    inputs = {
        "send_data": x,
        "send_counts": ge.sizes(input_split_sizes),
        "send_displacements": None,
        "recv_counts": ge.sizes(output_split_sizes),
        "recv_displacements": None,
    }
    return ge.op("HcomAllToAllV", inputs, {"group": group_name}, output="recv_data")


@kernel("HcomAllToAllV", host=("send_counts", "recv_counts"))
def all_to_all_kernel(
    send_data: torch.Tensor,
    send_counts: list[int],
    send_displacements: None,
    recv_counts: list[int],
    recv_displacements: None,
    *,
    group: str,
) -> torch.Tensor:
    """Displacements   none: parts lie one behind the other"""
    return _done(torch.ops._c10d_functional.all_to_all_single.default(send_data, recv_counts, send_counts, group))


@converter("_c10d_functional.wait_tensor.default")
def wait_tensor(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("Identity", {"x": x}, hints={"is_alias": True})
