"""A model on a CUDA device: the same files as on the CPU, without waiting for each tensor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from msdump.frontends.torch import backend  # noqa: E402
from msdump.frontends.torch.device import PinnedCopies  # noqa: E402
from msdump.process import sessions  # noqa: E402
from tests.frontends.torch.dumping import close, configure, rows, tensors  # noqa: E402

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


def run(device: str) -> list[Any]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU()).to(device)
    x = torch.arange(512.0).reshape(8, 64).to(device) / 512
    loss = torch.compile(model, backend=backend)(x).square().mean()
    loss.backward()
    return [loss.detach().cpu(), *(parameter.grad.cpu() for parameter in model.parameters())]


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_files_are_those_of_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_sync: bool) -> None:
    found = []
    plain = run("cuda")
    for device in ("cpu", "cuda"):
        sessions.reset_for_tests()
        folder = tmp_path / device
        folder.mkdir()
        root = configure(folder, monkeypatch, is_sync=is_sync)
        results = run(device)
        assert close().error is None
        if device == "cuda":
            assert all(torch.equal(mine, theirs) for mine, theirs in zip(results, plain, strict=True))
        folders = sorted(root.glob("rank_0/Net/*/0") if is_sync else root.glob("*/0/kernel_graph_*/*/0"))
        found.append({(f.parent.name, *name): array for f in folders for name, array in tensors(f).items()})
    cpu, cuda = found
    assert cpu.keys() == cuda.keys()
    for name, array in cpu.items():
        np.testing.assert_allclose(cuda[name], array, rtol=1e-3, atol=1e-4, err_msg=str(name))


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_statistics_are_computed_on_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_sync: bool) -> None:
    def refuse(self: PinnedCopies, tensor: Any) -> Any:
        raise AssertionError("a whole tensor came to the host")

    monkeypatch.setattr(PinnedCopies, "array", refuse)
    plain = run("cuda")
    found = []
    for device in ("cpu", "cuda"):
        sessions.reset_for_tests()
        folder = tmp_path / device
        folder.mkdir()
        root = configure(folder, monkeypatch, is_sync=is_sync, saved_data="statistic")
        results = run(device)
        assert close().error is None
        if device == "cuda":
            assert all(torch.equal(mine, theirs) for mine, theirs in zip(results, plain, strict=True))
        files = sorted(root.rglob("statistic.csv"))
        found.append({(f.parts[-3], row.op_name, row.io, row.slot): row for f in files for row in rows(f.parent)})
    cpu, cuda = found
    assert cpu.keys() == cuda.keys()
    for name, row in cpu.items():
        assert (cuda[name].count, cuda[name].nan) == (row.count, row.nan), name
        for field in ("max", "min", "avg"):
            assert getattr(cuda[name], field) == pytest.approx(getattr(row, field), rel=1e-3, abs=1e-4), name
