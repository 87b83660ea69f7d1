"""Indexing as GE operators: spelled as TorchAir does, equal to eager."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.torchair.ge_exact import check_exactly, check_traced, equal, types  # noqa: E402

aten = torch.ops.aten
X = torch.arange(24.0).reshape(2, 3, 4)
ROWS = torch.tensor([[2, 0], [1, 1]])
ONE = torch.tensor([1])
FIRST = torch.tensor(1)
NONE = torch.empty(0, dtype=torch.int64)
TABLE = torch.randn(5, 3)
WORDS = torch.tensor([[0, 4, 4], [1, 0, 3]])
MASK = X.remainder(3) == 1
BELOW = torch.tensor([[0, 1, 0], [2, 2, 1]])

CASES = [
    (aten.index.Tensor, (X, [None, ROWS]), "IndexByTensor(x,indices0)"),
    (aten.index.Tensor, (X, [ONE, None, ROWS]), "IndexByTensor(x,indices0,indices1)"),
    (aten.index.Tensor, (X, [None, None, -ONE]), "IndexByTensor(x,indices0)"),
    (aten._unsafe_index.Tensor, (X, [None, FIRST]), "IndexByTensor(x,indices0)"),
    (
        aten.index_put.default,
        (X, [None, ONE], torch.tensor(-1.0)),
        "IndexPutV2(x,value,indexed_sizes,indexed_strides,indices0)",
    ),
    (
        aten.index_put.default,
        (X, [ONE, ROWS], torch.ones(2, 2, 4), True),
        "IndexPutV2(x,value,indexed_sizes,indexed_strides,indices0,indices1)",
    ),
    (
        aten.index_put.default,
        (X, [MASK], torch.tensor(9.0)),
        "IndexPutV2(x,value,indexed_sizes,indexed_strides,indices0)",
    ),
    (
        aten.index_put.default,
        (X, [NONE], torch.tensor(9.0)),
        "IndexPutV2(x,value,indexed_sizes,indexed_strides,indices0)",
    ),
    (
        aten.index_copy.default,
        (X, 1, ONE, -torch.ones(2, 1, 4)),
        "IndexPutV2(x,value,indexed_sizes,indexed_strides,indices0)",
    ),
    (aten.index_select.default, (X, -1, torch.tensor([3, 0, 0])), "GatherV2(x,indices,axis)"),
    (aten.index_select.default, (X.half(), 1, ONE), "GatherV2(x,indices,axis)"),
    (aten.index_select.default, (torch.tensor(3.0), 0, torch.tensor([0])), "GatherV2(x,indices,axis)"),
    (aten.embedding.default, (TABLE, WORDS), "GatherV2(x,indices,axis)"),
    (aten.embedding.default, (TABLE, WORDS[0]), "GatherV2(x,indices,axis)"),
    (aten.embedding.default, (TABLE, torch.tensor(2)), "GatherV2(x,indices,axis)"),
    (aten.embedding.default, (TABLE.bfloat16(), WORDS.int(), 0), "GatherV2(x,indices,axis)"),
    (
        aten.embedding_dense_backward.default,
        (torch.randn(2, 3, 3), WORDS, 5, -1, False),
        "EmbeddingDenseGrad(grad,indices)",
    ),
    (
        aten.embedding_dense_backward.default,
        (torch.randn(2, 3, 3), WORDS, 5, 4, True),
        "EmbeddingDenseGrad(grad,indices)",
    ),
    (aten.gather.default, (X, 1, BELOW[None, :, :2].contiguous()), "GatherElements(x,index)"),
    (aten.gather.default, (torch.tensor(3.0), 0, torch.tensor(0)), "GatherElements(x,index)"),
    (aten.scatter.src, (X[0], 0, BELOW[:1], torch.ones(2, 4)), "ScatterElements(data,indices,updates)"),
    (
        aten.scatter.value,
        (X[0], 1, BELOW[:1], 0.1),
        "Shape(x) BroadcastTo(x,shape) ScatterElements(data,indices,updates)",
    ),
    (aten.scatter.reduce, (X[0], 0, BELOW[:1], X[1]), "ScatterElements(data,indices,updates)"),
    (aten.scatter_add.default, (X[0], 1, BELOW, torch.randn(3, 3)), "ScatterElements(data,indices,updates)"),
    (aten.scatter_reduce.two, (X[0], 1, BELOW, X[1], "amax"), "ScatterElements(data,indices,updates)"),
    (aten.scatter_reduce.two, (X[0], 1, BELOW, X[1], "prod"), "ScatterElements(data,indices,updates)"),
    (
        aten.index_add.default,
        (X, 2, torch.tensor([1, 1, 3]), torch.randn(2, 3, 3)),
        "InplaceIndexAdd(var,indices,updates,alpha)",
    ),
    (aten.index_fill.int_Scalar, (X, 1, ONE, 0.3), "InplaceIndexFill(x,indices,value)"),
    (aten.index_fill.int_Tensor, (X, 1, ONE, torch.tensor(0.3)), "InplaceIndexFill(x,indices,value)"),
    (aten.masked_scatter.default, (X, MASK, torch.randn(24)), "MaskedScatter(x,mask,updates)"),
]


@pytest.mark.parametrize(("target", "args", "spelled"), CASES, ids=[str(case[0]) for case in CASES])
def test_is_spelled_and_computed(target: Any, args: Any, spelled: str) -> None:
    named = {"reduce": "add"} if target is aten.scatter.reduce else {}
    check_exactly(target, args, spelled, **named)


def test_alpha_of_index_add() -> None:
    check_exactly(
        aten.index_add.default, (X, 1, ONE, X[:, :1]), "InplaceIndexAdd(var,indices,updates,alpha)", alpha=0.1
    )


@pytest.mark.parametrize(("reduce", "include_self"), [("mean", True), ("sum", False)])
def test_what_scatter_elements_cannot_do_is_called_as_it_is(reduce: str, include_self: bool) -> None:
    check_exactly(
        aten.scatter_reduce.two,
        (X[0], 1, BELOW, X[1], reduce),
        "ScatterReduce(self,index,src)",
        include_self=include_self,
    )


def test_gradients_of_indexing() -> None:
    def function(x: Any, table: Any, rows: Any, words: Any, one: Any) -> Any:
        y = x[:, 1] + x[0, :, rows].sum() + table[words].mean() + torch.nn.functional.embedding(words, table).sum()
        y = y * x.gather(1, words[None]).sum() + x.index_select(2, one).sum()
        return y.sum()

    graph = check_traced(torch.func.grad(function, (0, 1)), X, TABLE, ROWS, WORDS % 3, ONE)
    assert {"EmbeddingDenseGrad", "IndexPutV2", "StridedSliceV2Grad"} <= {op.type for op in graph.ops}


def test_open_sizes() -> None:
    def function(table: Any, words: Any) -> Any:
        gradient = aten.embedding_dense_backward(table[words], words, table.shape[0], -1, False)
        return table[words], words.select(0, words.shape[0] - 1), gradient, table.scatter(0, words % 2, 1.5)

    also = [(torch.randn(7, 3), torch.tensor([[3, 6, 0], [1, 1, 1], [2, 5, 0]]))]
    graph = check_traced(function, TABLE, WORDS, also=also, symbolic=True)
    assert "num_weights" in next(op for op in graph.ops if op.type == "EmbeddingDenseGrad").inputs
    windows = check_traced(lambda x: x.unfold(1, 2, 1), TABLE, also=[(torch.randn(5, 7),)], symbolic=True)
    assert types(windows) == ["Unfold"]


def test_masks_whose_hits_are_counted_while_running() -> None:
    import torch._dynamo

    from tests.torchair.test_ge_core import compiled

    graphs: list[Any] = []
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        function = compiled(_hits, graphs, fullgraph=True)
        for x in (X, -X, X[:, 0] + 1):
            for actual, expected in zip(function(x), _hits(x), strict=True):
                equal(actual, expected)
    assert {"IndexByTensor", "NonZero", "MaskedSelect"} <= {op.type for op in graphs[0].ops}


def _hits(x: Any) -> Any:
    hits = x[x > 3]
    return hits * 2, torch.nonzero(x), torch.masked_select(x, x < 1).view(-1, 1), hits.new_zeros(hits.shape[0] + 1)
