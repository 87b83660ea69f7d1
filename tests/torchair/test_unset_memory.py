"""Memory that a model takes and writes later is blamed for nothing, through every entry point of PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from msdump.analysis import compare_dumps, find_non_finite  # noqa: E402
from msdump.frontends.torch import backend as msdump_backend  # noqa: E402
from msdump.process import sessions  # noqa: E402
from tests.frontends.torch import dumping  # noqa: E402
from tests.torchair.test_resize import eager_dump, ge_dump  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_dump")


@pytest.fixture
def nan_in_unset_memory() -> Iterator[None]:
    """What PyTorch offers: whatever `empty` returns is filled with NaN."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def model(x: Any) -> Any:
    parts = [
        torch.empty(2, 3),
        torch.empty_like(x),
        x.new_empty(2, 3),
        torch.empty_strided((2, 3), (1, 2)),
        x.new_empty_strided((2, 3), (3, 1)),
    ]
    for part in parts:
        part[:, :2] = x[:, :2]
        part[:, 2] = 1
    kept = torch.empty_like(x).bernoulli_(0.5)
    return sum(parts) * kept.clamp(1, 1)


def run(backend: Any) -> None:
    torch.manual_seed(0)
    torch._dynamo.reset()
    y = torch.compile(model, backend=backend)(torch.ones(2, 3))
    assert torch.equal(y, torch.full((2, 3), 5.0))


@pytest.mark.usefixtures("nan_in_unset_memory")
def test_it_overflows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dumping.configure(tmp_path, monkeypatch, is_sync=False, op_debug_mode=3)
    run(msdump_backend)
    assert not dumping.close().overflows


def configured(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    folder.mkdir()
    if kind == "eager":
        return eager_dump(folder)
    if kind == "graph":
        sessions.reset_for_tests()
        return ge_dump(folder)
    sessions.reset_for_tests()
    dumping.configure(folder, monkeypatch, is_sync=kind == "sync")
    return msdump_backend


@pytest.mark.parametrize("kind", ["sync", "async", "eager", "graph"])
def test_it_is_no_nan_and_no_difference(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, is_filled in (("filled", True), ("other", False)):
        backend = configured(kind, tmp_path / name, monkeypatch)
        torch.use_deterministic_algorithms(is_filled)
        run(backend)
        torch.use_deterministic_algorithms(False)
        if kind in ("sync", "async"):
            dumping.close()
        else:
            sessions.close_all()
    assert find_non_finite(tmp_path / "filled").first is None
    found = compare_dumps(tmp_path / "filled", tmp_path / "other")
    assert found.first_wrong is None and found.is_agreeing
