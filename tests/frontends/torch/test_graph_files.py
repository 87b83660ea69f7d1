"""An asynchronous dump of a PyTorch model says of each operator what a synchronous one says: scope, line, place."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from msdump.analysis import find_non_finite  # noqa: E402
from msdump.analysis.graph_info import GraphFiles  # noqa: E402
from msdump.analysis.steps import read_statistic_steps, read_steps  # noqa: E402
from msdump.cli.main import main  # noqa: E402
from msdump.errors import DumpError  # noqa: E402
from msdump.formats.dump_dir import DumpDir  # noqa: E402
from msdump.frontends.torch import backend  # noqa: E402
from msdump.process import sessions  # noqa: E402
from tests.frontends.torch import dumping  # noqa: E402


class Log(torch.nn.Linear):
    def forward(self, x: Any) -> Any:
        return torch.log(super().forward(x) - 9)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = Log(4, 3)

    def forward(self, x: Any) -> Any:
        return self.fc(x).sum()


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def dump(folder: Path, patch: pytest.MonkeyPatch, rank: int | None = None, **common: Any) -> Path:
    """The folder of the dump of one training step."""
    folder.mkdir(exist_ok=True)
    if rank is not None:
        patch.setenv("RANK", str(rank))
    sessions.reset_for_tests()
    torch._dynamo.reset()
    root = dumping.configure(folder, patch, is_sync=False, **common)
    torch.compile(Net(), backend=backend)(torch.ones(2, 4)).backward()
    dumping.close()
    return root


@pytest.mark.parametrize("common", [{}, {"file_format": "bin"}, {"saved_data": "statistic"}, {"op_debug_mode": 3}])
def test_lines_and_scopes(common: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = dump(tmp_path, monkeypatch, **common)
    (time,) = root.iterdir()
    for path in (root, time, time / "0", time / "0/kernel_graph_0/0/0"):
        first = find_non_finite(path).first
        assert first is not None and first.line is not None, path
        assert "torch.log(super().forward(x) - 9)" in first.line.code
        assert first.operator.full_name is not None
        assert first.operator.full_name.startswith("Default/fc-Log/aten.log.default-op")


def test_operators_come_in_execution_order_with_their_scopes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = DumpDir.open(dump(tmp_path / "tensors", monkeypatch))
    statistics = DumpDir.open(dump(tmp_path / "rows", monkeypatch, saved_data="statistic"))
    for steps in (read_steps(tensors), read_statistic_steps(statistics)[0].steps):
        for step in steps:
            operators = [operator for operator in step.operators if not operator.is_parameter]
            numbers = [int(operator.label.rpartition("-op")[2]) for operator in operators]
            assert numbers == sorted(numbers)
            assert all("/" in (operator.full_name or "") for operator in operators)


def test_where_finds_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    root = dump(tmp_path, monkeypatch)
    assert main(["where", str(root), "torch.log(super"]) == 0
    shown = capsys.readouterr().out
    assert "Default/fc-Log/aten.log.default-op" in shown and ".output.0.ND.npy" in shown


def test_a_rank_that_is_not_its_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = dump(tmp_path, monkeypatch, rank=11)
    assert len(list(root.glob("*/rank_11/graphs/*.pb"))) == 2
    first = find_non_finite(root).first
    assert first is not None and first.line is not None


def test_a_later_run_keeps_its_graphs_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = dump(tmp_path, monkeypatch)
    (first,) = root.iterdir()
    shutil.move(first, root / "20200101000000")
    second = dump(tmp_path, monkeypatch)
    assert second == root and len(list(root.glob("*/rank_0/graphs/*.pb"))) == 4
    for path in root.iterdir():
        (graph, _) = GraphFiles(DumpDir.open(path))
        assert graph.path.is_relative_to(path)


def test_a_synchronous_dump_above_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = dump(tmp_path, monkeypatch)
    (time,) = root.iterdir()
    shutil.move(time / "rank_0", tmp_path / "rank_0")
    assert not list(GraphFiles(DumpDir.open(root)))


def test_a_graph_file_that_cannot_be_written_stops_the_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, *_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("msdump.dumpers.recorders.write_file", fail)
    dumping.configure(tmp_path, monkeypatch, is_sync=False)
    torch.compile(Net(), backend=backend)(torch.ones(2, 4)).backward()
    session = dumping.opening.current()
    assert session is not None
    with pytest.raises(DumpError, match="No space left on device"):
        session.close()
