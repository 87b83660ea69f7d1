"""The limits of the disk hold for TorchAir's eager dump and for the `.pt` files of captured graphs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch._dynamo.exc import BackendCompilerFailed

import msdump.torchair as torchair
from msdump.errors import ConfigError, FolderError
from msdump.formats.sidecars import read_mapping
from msdump.torchair.file_dump import captured, eager
from tests.torchair.dumps import backend_for, read_steps

X = torch.arange(6, dtype=torch.float32).reshape(2, 3)


def captured_backend(path: Path) -> Any:
    config = torchair.CompilerConfig()
    config.mode = "npugraph_ex"
    config.dump_config.enable_dump = True
    config.dump_config.dump_path = str(path)
    return torchair.get_npu_backend(compiler_config=config)


both = pytest.mark.parametrize("make_backend", [backend_for, captured_backend], ids=["eager", "captured"])
MakeBackend = Callable[[Path], Any]


def run(backend: Any, steps: int) -> None:
    compiled = torch.compile(lambda x: x.sin() + 1, backend=backend)
    with torch.no_grad():
        for _ in range(steps):
            assert torch.equal(compiled(X), X.sin() + 1)


def tensor_files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.suffix in (".npy", ".pt")]


def errors_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]


@both
def test_a_limit_ends_the_dump_and_the_model_goes_on(
    make_backend: MakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MSDUMP_DISK_BUDGET", "6000")
    lost = eager.report().lost + captured.report().lost
    run(make_backend(tmp_path), 40)
    (error,) = errors_of(caplog)
    assert "expected at most 6000 bytes of dump (MSDUMP_DISK_BUDGET)" in error
    statuses = [path.stat() for path in tensor_files(tmp_path)]
    sizes = {status.st_ino: status.st_size for status in statuses}.values()
    assert 0 < sum(sizes) <= 6000
    assert eager.report().lost + captured.report().lost > lost


@both
def test_a_disk_without_room_is_an_error_before_the_first_run(
    make_backend: MakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSDUMP_DISK_FLOOR", "4000T")
    with pytest.raises(FolderError, match="to stay free"):
        make_backend(tmp_path)
    assert not tensor_files(tmp_path)


@both
def test_only_the_last_iterations_stay(
    make_backend: MakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MSDUMP_KEEP_ITERATIONS", "2")
    (tmp_path / "worldsize1_global_rank0").mkdir()
    stranger = tmp_path / "worldsize1_global_rank0" / "of another.npy"
    stranger.write_bytes(b"kept")
    run(make_backend(tmp_path), 5)
    assert not errors_of(caplog) and stranger.read_bytes() == b"kept"
    if make_backend is backend_for:
        ((graph,),) = [list((tmp_path / "worldsize1_global_rank0").glob("graph_*"))]
        assert sorted(path.name for path in graph.iterdir()) == ["3", "4"]
    else:
        # The last iteration may not be complete: it comes on top.
        numbers = {path.stem.rpartition("_")[2] for path in tensor_files(tmp_path) if path != stranger}
        assert numbers == {"2", "3", "4"}


def test_what_was_removed_may_be_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run(backend_for(tmp_path / "all"), 1)
    size = sum(path.stat().st_size for path in tensor_files(tmp_path))
    monkeypatch.setenv("MSDUMP_KEEP_ITERATIONS", "1")
    monkeypatch.setenv("MSDUMP_DISK_BUDGET", str(2 * size))
    run(backend_for(tmp_path / "last"), 6)
    assert not errors_of(caplog)
    (steps,) = read_steps(tmp_path / "last")
    assert len(steps) == 1


def test_short_names_go_with_their_iteration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDUMP_KEEP_ITERATIONS", "1")
    name = "rotated_" + "x" * 260

    @torch.library.custom_op(f"msdump_test::{name}", mutates_args=(), schema="(Tensor x) -> Tensor")
    def copied(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    copied.register_fake(lambda x: torch.empty_like(x))
    compiled = torch.compile(lambda x: copied(x), backend=backend_for(tmp_path))
    for _ in range(3):
        compiled(X)
    (folder,) = [path.parent for path in tmp_path.rglob("mapping.csv")]
    assert folder.name == "2" and len(read_mapping(folder / "mapping.csv")) == len(tensor_files(tmp_path)) == 2


@both
def test_a_wrong_limit_is_an_error_before_the_first_run(
    make_backend: MakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSDUMP_DISK_BUDGET", "much")
    with pytest.raises(ConfigError, match="environment variable MSDUMP_DISK_BUDGET"):
        make_backend(tmp_path)
    assert not tensor_files(tmp_path)


@both
@pytest.mark.parametrize("value", ["nonsense", "nonsense://"])
def test_a_wrong_address_is_an_error_before_the_first_run(
    make_backend: MakeBackend, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSDUMP_UPLOAD", value)
    with pytest.raises(BackendCompilerFailed, match="ConfigError: environment variable MSDUMP_UPLOAD"):
        run(make_backend(tmp_path), 1)
    assert not tensor_files(tmp_path)


@both
def test_what_is_not_obeyed_is_said_at_the_start(
    make_backend: MakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MSDUMP_UPLOAD", "s3://bucket/job")
    monkeypatch.setenv("MSDUMP_CONTAINER", "pack")
    run(make_backend(tmp_path), 1)
    said = [
        name for name in ("MSDUMP_UPLOAD", "MSDUMP_CONTAINER") if f"{name} has no effect on the dump" in caplog.text
    ]
    assert said == (["MSDUMP_UPLOAD"] if make_backend is backend_for else ["MSDUMP_UPLOAD", "MSDUMP_CONTAINER"])
    assert bool(list(tmp_path.rglob("*.tar"))) == (make_backend is backend_for)
