"""Collectives as GE operators, in a job of one process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import distributed  # noqa: E402
from torch.distributed import _functional_collectives as collectives  # noqa: E402

from tests.torchair.ge_exact import check_traced, types  # noqa: E402


@pytest.fixture(scope="module")
def group() -> Iterator[str]:
    if not distributed.is_available():
        pytest.skip("torch without distributed")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield distributed.group.WORLD.group_name
    distributed.destroy_process_group()


X = torch.randn(4, 3)
OPS = torch.ops._c10d_functional if distributed.is_available() else None
CASES = [
    ("all_reduce", ("sum",), "HcomAllReduce", {"reduction": "sum"}),
    ("all_reduce", ("max",), "HcomAllReduce", {"reduction": "max"}),
    ("all_gather_into_tensor", (1,), "HcomAllGather", {"rank_size": 1}),
    ("reduce_scatter_tensor", ("sum", 1), "HcomReduceScatter", {"reduction": "sum", "rank_size": 1}),
    ("broadcast", (0,), "HcomBroadcast", {"root_rank": 0}),
    ("all_to_all_single", ([4], [4]), "HcomAllToAllV", {}),
]


@pytest.mark.parametrize(("name", "args", "op_type", "attrs"), CASES, ids=[case[0] for case in CASES])
def test_is_spelled_and_computed(group: str, name: str, args: Any, op_type: str, attrs: dict[str, Any]) -> None:
    def function(x: Any) -> Any:
        return OPS.wait_tensor(getattr(OPS, name)(x * 2, *args, group)) + 1

    graph = check_traced(function, X)
    assert types(graph) == ["Mul", op_type, "Identity", "Add"]
    found = next(op for op in graph.ops if op.type == op_type).attrs
    assert attrs.items() <= found.items() and found["group"] == group


def test_many_at_once(group: str) -> None:
    def function(x: Any, y: Any) -> Any:
        return collectives.all_reduce_coalesced([x, y], "sum", distributed.group.WORLD)

    graph = check_traced(function, X, X + 1)
    assert types(graph).count("HcomAllReduce") == 2
