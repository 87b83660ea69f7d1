"""`msdump convert`: trees, summary, failures, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from msdump.cli.main import main

ROOT = Path(__file__).parents[2]
SAMPLES = Path(__file__).parent.parent / "golden/msaccucmp/samples"


def test_a_tree_with_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["convert", str(SAMPLES), "-o", str(out)]) == 4
    printed = capsys.readouterr()
    assert "13 dump files: " in printed.out
    assert "2 with failures" in printed.out
    assert "bad_hdrlen" in printed.err and "bad_trunc" in printed.err
    assert (out / "main/Conv2D.net_conv1.3.7.1700000000000001.output.0.npy").is_file()
    assert (out / "v1/Relu.r1.1.1.1700000000000004.output.0.npy").is_file()  # the container tells itself
    assert (out / "mapdir/mapping.csv").is_file()


def test_one_file_and_quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = next((SAMPLES / "main").iterdir())
    options = ["-f", "NCHW", "--input-tensor", "0", "-t", "bin", "-q", "--threads", "1"]
    assert main(["convert", str(path), "-out", str(tmp_path / "out"), *options]) == 0
    assert [made.name for made in (tmp_path / "out").iterdir()] == [f"{path.name}.input.0.1_5_2_3.float16.NCHW.bin"]
    assert capsys.readouterr() == ("", "")


def test_npy_dumps_become_other_forms(tmp_path: Path) -> None:
    folder = tmp_path / "rank_0/Net/0/3"
    folder.mkdir(parents=True)
    name = "Add.Add-op1.0.0.1700000000000000.output.0.DefaultFormat.npy"
    np.save(folder / name, np.arange(3.0))
    assert main(["convert", str(tmp_path), "-o", str(tmp_path / "out")]) == 3
    assert main(["convert", str(tmp_path), "-o", str(tmp_path / "out"), "-t", "safetensors"]) == 0
    assert (tmp_path / f"out/rank_0/Net/0/3/{name}.safetensors").is_file()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shape", "1,2"], "need --format"),
        (["-f", "ND", "--shape", "1,x"], "expected numbers with commas"),
        (["-f", "ND", "--shape", "0,1"], "expected sizes from 1 on"),
        (["-f", "nd"], "expected the name of a format"),
        (["-f", "ND", "-c", "missing"], "format_convert"),
        (["--threads", "0"], "expected a number from 1 on"),
    ],
)
def test_wrong_usage(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(SAMPLES), *options]) == 2
    assert message in capsys.readouterr().err


def test_nothing_to_convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(tmp_path)]) == 3
    assert main(["convert", str(tmp_path / "missing")]) == 2
    assert "got nothing" in capsys.readouterr().err


def test_a_progress_bar_only_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the bar may draw; what is written stays the same."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["convert", str(SAMPLES / "v1"), "-o", str(tmp_path)]) == 0
    assert len(list((tmp_path).iterdir())) == 2


def test_the_module_door(plain_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "msdump.msaccucmp",
        "convert",
        "-d",
        "v1",
        "-v",
        "1",
        "-out",
        str(plain_path / "o"),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, cwd=SAMPLES, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((plain_path / "o").iterdir())) == 2
