"""Folders of ranks belong to one process at a time."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from msdump.errors import ConfigError, WriteError
from msdump.formats.folders import FolderHold
from msdump.torchair.ranks import RankFolders, rank_folders

torch = pytest.importorskip("torch")

from msdump.torchair.aclgraph import tensor_saving  # noqa: E402
from msdump.torchair.file_dump import captured, eager  # noqa: E402
from tests.torchair.debug_saves import backend_for as mode_backend  # noqa: E402
from tests.torchair.debug_saves import config_for  # noqa: E402
from tests.torchair.dumps import backend_for  # noqa: E402

X = torch.ones(2)
RANK = "worldsize1_global_rank0"


@pytest.fixture
def folders() -> Iterator[RankFolders]:
    folders = RankFolders()
    yield folders
    folders.reset_for_tests()


def test_a_process_enters_its_folder_as_often_as_it_likes(folders: RankFolders, tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "b")
    assert folders.enter(path, 0o750, "") and folders.enter(path, 0o750, "")
    assert os.stat(path).st_mode & 0o777 == 0o750
    assert FolderHold.take(path) is None


def test_another_process_is_refused(folders: RankFolders, tmp_path: Path) -> None:
    other = FolderHold.take(tmp_path)
    assert other is not None
    with pytest.raises(ConfigError, match="expected one process for each rank, got another process"):
        folders.enter(str(tmp_path), 0o700, "")
    other.release()
    assert folders.enter(str(tmp_path), 0o700, "")


def test_a_forked_process_leaves_the_folder_to_its_parent(
    folders: RankFolders, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert folders.enter(str(tmp_path), 0o700, "")
    folders.leave_to_parent()
    assert not folders.enter(str(tmp_path), 0o700, "") and not folders.enter(str(tmp_path), 0o700, "")
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "dumps nothing itself" in warning
    assert folders.enter(str(tmp_path / "other"), 0o700, "")


def test_a_folder_that_cannot_be_made(folders: RankFolders, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError):
        folders.enter(str(tmp_path / "file"), 0o700, "")


@pytest.mark.parametrize("kind", ["eager", "captured"])
def test_a_dump_into_the_folder_of_another_process_is_refused(kind: str, tmp_path: Path) -> None:
    backend: Any = backend_for(tmp_path)
    if kind == "captured":
        import msdump.torchair as torchair

        config = config_for("npugraph_ex")
        config.dump_config.enable_dump = True
        config.dump_config.dump_path = str(tmp_path)
        backend = torchair.get_npu_backend(compiler_config=config)
    (tmp_path / RANK).mkdir()
    other = FolderHold.take(tmp_path / RANK)
    assert other is not None
    compiled = torch.compile(lambda x: x + 1, backend=backend)
    with pytest.raises(ConfigError, match=RANK):
        compiled(X)
    other.release()
    assert not list((tmp_path / RANK).iterdir())
    assert torch.equal(compiled(X), X + 1)
    assert list((tmp_path / RANK).iterdir())


def test_a_forked_process_runs_its_model_without_a_dump(tmp_path: Path) -> None:
    compiled = torch.compile(lambda x: x + 1, backend=backend_for(tmp_path))
    compiled(X)
    before = sorted(tmp_path.rglob("*"))
    rank_folders.leave_to_parent()
    assert torch.equal(compiled(X), X + 1)
    assert sorted(tmp_path.rglob("*")) == before


def test_values_of_captured_graphs_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    captured.forget()
    (tmp_path / "file").write_text("")
    tensor_saving.save_npugraph_tensor(X, str(tmp_path / "x.pt"))
    (size,) = [path.stat().st_size for path in tmp_path.glob("*.pt")]
    assert captured.counts()[:3] == (1, 0, size) and (captured.report().lost, captured.error) == (0, "")
    for _ in range(2):
        tensor_saving.save_npugraph_tensor(X, str(tmp_path / "file" / "x.pt"))
    assert (captured.counts().files, captured.report().lost) == (
        1,
        1,
    ) and "expected a folder, got a file" in captured.error
    captured.forget()
    assert captured.report("").is_empty and not captured.is_configured


def test_threads_that_save_captured_values_lose_none(tmp_path: Path) -> None:
    captured.forget()

    def save(name: str) -> None:
        for _ in range(30):
            tensor_saving.save_npugraph_tensor(X, str(tmp_path / f"{name}.pt"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(save, "abcd"))
    assert sorted(path.name for path in tmp_path.glob("*.pt")) == sorted(
        f"{name}_device_0_{number}.pt" for name in "abcd" for number in range(30)
    )
    assert (captured.report().lost, captured.error) == (0, "")


def test_a_backend_without_a_dump_configures_none(tmp_path: Path) -> None:
    for tally in (eager, captured):
        tally.forget()
    torch.compile(lambda x: x + 1, backend=mode_backend("max-autotune"))(X)
    assert not (eager.is_configured or captured.is_configured)
    torch.compile(lambda x: x + 2, backend=backend_for(tmp_path, lambda n: None))(X)
    assert eager.is_configured and eager.report("").is_empty
