"""Nested tensors of layout jagged: AOT Autograd hands their values and offsets over, and a length that is no number."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from msdump.frontends.torch import backend as msdump_backend  # noqa: E402
from tests.frontends.torch import dumping  # noqa: E402
from tests.torchair.test_resize import aclgraph_dump, eager_dump, ge_dump, graph_dump  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_dump")


def check(backend: Any) -> None:
    weight = torch.linspace(-1, 1, 16).reshape(4, 4)

    def model(nested: Any) -> Any:
        return torch.nn.functional.linear(nested, weight).sin() * 2

    compiled = torch.compile(model, backend=backend, dynamic=True)
    for lengths in ((2, 3), (1, 4), (5, 2)):
        rows = [torch.linspace(-1, 1, 4 * length).reshape(length, 4) for length in lengths]
        sides = [torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True) for _ in range(2)]
        results = [run(side) for run, side in zip((compiled, model), sides, strict=True)]
        assert torch.equal(results[0].values(), results[1].values())
        for result in results:
            result.values().sum().backward()
        torch.testing.assert_close(sides[0].grad.values(), sides[1].grad.values())


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_a_dump_of_the_backend(is_sync: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = dumping.configure(tmp_path, monkeypatch, is_sync=is_sync)
    check(msdump_backend)
    report = dumping.close()
    assert not report.error and report.tensors_written > 0
    shown = dumping.tensors(root / "rank_0/Net/0/0") if is_sync else {}
    assert not is_sync or any(array.shape == (5, 4) for array in shown.values())


@pytest.mark.parametrize("make", [eager_dump, ge_dump, graph_dump, aclgraph_dump])
def test_a_dump_of_torchair(make: Callable[[Path], Any], tmp_path: Path) -> None:
    check(make(tmp_path))
    assert any(tmp_path.iterdir())
