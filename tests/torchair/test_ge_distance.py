"""Distances, places in an order and bags of embeddings as GE operators."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.torchair.ge_calls import results_of  # noqa: E402
from tests.torchair.ge_exact import check_exactly  # noqa: E402

aten = torch.ops.aten
X, Y = torch.randn(3, 4), torch.randn(5, 4)
SORTED = torch.arange(4.0)
TABLE = torch.randn(6, 3)
WORDS, STARTS = torch.tensor([1, 5, 0, 1, 2]), torch.tensor([0, 2, 2])
BAG = "EmbeddingBag(weight,indices,offsets,per_sample_weights?)"
WEIGHTS = torch.rand(5)

CASES = [
    (aten._cdist_forward.default, (X, Y, 2.0, None), "Cdist(x1,x2)"),
    (aten._cdist_forward.default, (X, Y, 1.0, 2), "Cdist(x1,x2)"),
    (
        aten._cdist_backward.default,
        (torch.randn(3, 5), X, Y, 2.0, torch.cdist(X, Y)),
        "CdistGrad(grad,x1,x2,cdist)",
    ),
    (aten.searchsorted.Tensor, (SORTED, X), "SearchSorted(sorted_sequence,values,sorter?)"),
    (aten.bucketize.Tensor, (X, SORTED), "SearchSorted(sorted_sequence,values,sorter?)"),
    (aten._embedding_bag.default, (TABLE, WORDS, STARTS), BAG),
    (aten._embedding_bag.default, (TABLE, WORDS, STARTS, False, 1, False, None, False, 5), BAG),
    (aten._embedding_bag.default, (TABLE, WORDS, STARTS, False, 2), BAG),
    (aten._embedding_bag.default, (TABLE, WORDS, STARTS, False, 0, False, WEIGHTS), BAG.replace("?", "")),
]


@pytest.mark.parametrize(("target", "args", "spelled"), CASES, ids=[str(case[0]) for case in CASES])
def test_equals_eager(target: Any, args: Any, spelled: str) -> None:
    check_exactly(target, args, spelled)


def test_places_to_the_right_in_int32() -> None:
    spelled = "SearchSorted(sorted_sequence,values,sorter?)"
    check_exactly(aten.searchsorted.Tensor, (SORTED, SORTED), spelled, right=True, out_int32=True)
    check_exactly(aten.searchsorted.Tensor, (SORTED, SORTED), spelled, side="right")


@pytest.mark.parametrize("padding", [-1, 1])
@pytest.mark.parametrize(("mode", "weights"), [(0, None), (1, None), (0, WEIGHTS)])
def test_gradients_of_bags(mode: int, weights: Any, padding: int) -> None:
    options = (False, mode, False, weights, False, padding)
    y, *rest = aten._embedding_bag.default(TABLE, WORDS, STARTS, *options)
    given = (torch.randn(y.shape), WORDS, STARTS, *rest, 6, False, mode, False, weights, padding)
    _, (actual,) = results_of(aten._embedding_bag_backward.default, *given)
    torch.testing.assert_close(actual, aten._embedding_bag_backward.default(*given))


def test_the_gradient_of_a_maximum_of_rows_is_called_as_it_is() -> None:
    y, *rest = aten._embedding_bag.default(TABLE, WORDS, STARTS, False, 2)
    given = (y, WORDS, STARTS, *rest, 6, False, 2, False, None)
    names = "grad,indices,offsets,offset2bag,bag_size,maximum_indices"
    check_exactly(aten._embedding_bag_backward.default, given, f"EmbeddingBagBackward({names})")
