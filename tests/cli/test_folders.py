"""A folder in which no dump can begin: every way in refuses it before anything runs, with one exit status."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import msdump
from msdump.cli.exit_status import REFUSED
from msdump.cli.main import main
from msdump.config.default import graphs_config, models_config
from msdump.dumpers import limits
from msdump.dumpers.limits import check_folder
from msdump.errors import ConfigError, FolderError, WriteError

KINDS = ("read-only", "full", "name too long", "path too long", "below a file", "not UTF-8")
STARTED = "print('started')\n"


@pytest.fixture(params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One in which no dump can begin. The current folder is another one."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    home = tmp_path / "home"
    home.mkdir()
    (home / "file").touch()
    access, usage = os.access, shutil.disk_usage
    if request.param == "read-only":  # also for root
        monkeypatch.setattr(limits.os, "access", lambda path, mode: Path(path) != home and access(path, mode))
    if request.param == "full":
        full = SimpleNamespace(total=2**30, used=2**30, free=0)
        monkeypatch.setattr(limits.shutil, "disk_usage", lambda path: full if Path(path) == home else usage(path))
    return {
        "read-only": home / "new",
        "full": home / "new",
        "name too long": home / ("n" * 300),
        "path too long": home.joinpath(*["n" * 200] * 20),
        "below a file": home / "file" / "new",
        "not UTF-8": home / os.fsdecode(b"\xff\xfe"),
    }[request.param]


def test_it_is_refused_with_what_to_do(folder: Path) -> None:
    with pytest.raises(FolderError, match=r"expected .* got .*\. (?:Choose|Free) .*path\.$") as refused:
        check_folder(folder)
    assert isinstance(refused.value, ConfigError) and isinstance(refused.value, WriteError)
    str(refused.value).encode()
    check_folder(Path("new"))
    assert os.listdir(folder.parent if folder.parent.name == "home" else ".") in ([], ["file"])


def test_a_path_of_the_longest_names_is_fine(tmp_path: Path) -> None:
    check_folder(tmp_path / ("n" * 255))


def config(folder: Path) -> str:
    Path("dump.json").write_text(json.dumps(graphs_config(folder)))
    return "dump.json"


def script(text: str) -> str:
    Path("train.py").write_text(text)
    return "train.py"


def run_output(folder: Path) -> list[str]:
    return ["run", "--output", str(folder), script(STARTED)]


def run_config(folder: Path) -> list[str]:
    return ["run", "--config", config(folder), script(STARTED)]


def run_tables(folder: Path) -> list[str]:
    return ["run", "--tables", str(folder), script(STARTED)]


def run_json(folder: Path) -> list[str]:
    return ["run", f"--json={folder / 'report.json'}", script(STARTED)]


def run_msprobe(folder: Path) -> list[str]:
    lines = ["from msprobe.pytorch import PrecisionDebugger", f"PrecisionDebugger(dump_path={str(folder)!r})", STARTED]
    return ["run", "--as", "msprobe", script("\n".join(lines))]


def run_torchair(folder: Path) -> list[str]:
    lines = [
        "import torchair",
        "config = torchair.CompilerConfig()",
        "config.debug.data_dump.type = 'npy'",
        f"config.debug.data_dump.path = {str(folder)!r}",
        "torchair.get_npu_backend(compiler_config=config)",
        STARTED,
    ]
    return ["run", "--no-dump", script("\n".join(lines))]


def run_watch(folder: Path) -> list[str]:
    return ["run", script(f"import msdump\nwith msdump.watch(config={config(folder)!r}):\n    {STARTED}")]


def run_dump(folder: Path) -> list[str]:
    return ["run", script(f"import msdump\nwith msdump.dump({config(folder)!r}):\n    {STARTED}")]


def acl_output(folder: Path) -> list[str]:
    return ["acl", "run", "net.onnx", "--no-dump", "--output", str(folder)]


def demo_output(folder: Path) -> list[str]:
    return ["demo", "--output", str(folder)]


@pytest.mark.parametrize("way", [run_output, run_config])
def test_a_run_refuses_it_before_the_script(
    way: Callable[[Path], list[str]], folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    test_every_way_in_refuses_it_before_anything_runs(way, (), folder, capsys, monkeypatch)


@pytest.mark.parametrize("folder", ["full", "below a file"], indirect=True)
@pytest.mark.parametrize(
    ("way", "needs"),
    [
        (run_tables, ("duckdb",)),
        (run_json, ()),
        (run_msprobe, ("torch",)),
        (run_torchair, ("torch",)),
        (run_watch, ("torch",)),
        (run_dump, ()),
        (acl_output, ("onnx", "onnxruntime")),
        (demo_output, ("sklearn",)),
    ],
)
def test_every_way_in_refuses_it_before_anything_runs(
    way: Callable[[Path], list[str]],
    needs: tuple[str, ...],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for package in needs:
        pytest.importorskip(package)
    monkeypatch.delenv("MINDSPORE_DUMP_CONFIG", raising=False)
    before = set(os.listdir(folder.parent)) if folder.parent.is_dir() else set()
    assert main(way(folder)) == REFUSED
    printed = capsys.readouterr()
    assert "started" not in printed.out and "expected " in printed.err
    assert (set(os.listdir(folder.parent)) if folder.parent.is_dir() else set()) == before


def test_blocks_refuse_it_before_their_first_line(folder: Path) -> None:
    for config in (graphs_config(folder), models_config(folder)):
        with pytest.raises(ConfigError), msdump.dump(config):
            pytest.fail("the block began")
