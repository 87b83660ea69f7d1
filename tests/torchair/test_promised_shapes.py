"""An operator of the script whose `register_fake` promises a wrong shape computes what it computes without a dump."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.torchair.test_resize import aclgraph_dump, eager_dump, torchair_backend  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_dump")


@pytest.fixture(scope="module")
def first_row() -> Iterator[Any]:
    """One row, promised as all of them."""
    library = torch.library.Library("msdump_tests", "DEF")
    library.define("first_row(Tensor x) -> Tensor")
    library.impl("first_row", lambda x: x[:1].clone(), "CPU")
    torch.library.register_fake("msdump_tests::first_row", torch.empty_like, lib=library)
    yield torch.ops.msdump_tests.first_row
    library._destroy()


MODELS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda row, x: row(x).sin() + x,
    "cat": lambda row, x: torch.cat([row(x).sin(), x.sin()]),
    "input": lambda row, x: x.add_(row(x).sin()),
}


@pytest.mark.parametrize(
    "make", [eager_dump, aclgraph_dump, lambda _: torchair_backend("npugraph_ex")], ids=["eager", "saved", "captured"]
)
@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_written_where_the_promise_counts(
    name: str, make: Callable[[Path], Any], first_row: Any, tmp_path: Path
) -> None:
    def model(x: Any) -> Any:
        return MODELS[name](first_row, x)

    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    inputs = [x.clone(), x.clone()]
    assert torch.equal(torch.compile(model, backend=make(tmp_path))(inputs[0]), model(inputs[1]))
    assert torch.equal(*inputs)
