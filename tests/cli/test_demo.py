"""`msdump demo`: what it prepares, what it refuses, and what it says about a dump."""

from __future__ import annotations

import argparse
import collections
import importlib.util
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from msdump.cli import demo
from msdump.cli.demo import LINE, find_example, print_summaries, summaries
from msdump.errors import ConfigError, DumpError, WriteError
from msdump.formats.paths.sync import SyncPaths
from msdump.formats.sidecars import write_order

pytestmark = pytest.mark.usefixtures("needs_mindspore")
CONV3 = "Default/network-WithLossCell/_backbone-AlexNet/conv3-Conv2d/Conv2D-op4"


def arguments(folder: Path, steps: int = 1, batch_size: int = 1, full: bool = False) -> argparse.Namespace:
    return argparse.Namespace(steps=steps, batch_size=batch_size, output=str(folder), full=full)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A small dump tree of three operators and a parameter."""
    paths = SyncPaths(tmp_path / "dump", 0, "AlexNet")
    data = paths.data_dir(0, 0)
    data.mkdir(parents=True)
    for name, count in [
        ("Conv2D.Conv2D-op4.3.0.1.input.0.DefaultFormat.npy", 6),
        ("Conv2D.Conv2D-op4.3.0.2.output.0.DefaultFormat.npy", 8),
        ("Conv2D.Conv2D-op5.4.0.3.output.0.DefaultFormat.npy", 8),
        ("ReLU.ReLU-op6.5.0.4.output.0.DefaultFormat.npy", 4),
        ("Parameter.conv3.weight.0.0.5.output.0.DefaultFormat.npy", 2),
    ]:
        np.save(data / name, np.arange(count, dtype=np.float32))
    paths.statistic_file(0, 0).write_text("no data file\n")
    write_order(paths.order_file(0), f"NodeExecutionOrder-FullNameWithScope\nGradients/{CONV3}\n{CONV3}\n")
    graph = paths.graph_file(0, "ir")
    graph.parent.mkdir()
    graph.write_text(f"first\n# In file a.py:9, {LINE}\n# again {LINE}\n")
    return tmp_path / "dump"


def test_summaries_count_operators_files_and_bytes(dump: Path) -> None:
    rows = {row.op_type: (len(row.operators), row.files, row.size_bytes) for row in summaries(dump, "AlexNet")}
    assert next(iter(rows)) == "Conv2D"
    assert rows == {"Conv2D": (2, 3, 3 * 128 + 4 * 22), "ReLU": (1, 1, 128 + 16), "Parameter": (0, 1, 128 + 8)}


def test_table(dump: Path) -> None:
    stream = io.StringIO()
    print_summaries(summaries(dump, "AlexNet"), stream)
    lines = [line.split() for line in stream.getvalue().splitlines()]
    assert lines[0] == ["operator", "type", "operators", "files", "bytes"]
    assert lines[1] == ["Conv2D", "2", "3", "472", "B"]
    assert lines[3] == ["Parameter", "-", "1", "136", "B"]
    assert lines[4] == ["total", "3", "5", "752", "B"]


def test_table_on_a_terminal_says_the_same(dump: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    print_summaries(summaries(dump, "AlexNet"), stream)
    for word in ("Conv2D", "472 B", "752 B", "Parameter"):
        assert word in stream.getvalue()


def test_example_leads_to_the_operator_and_its_file(dump: Path) -> None:
    text = find_example(dump, "AlexNet", dump.parent)
    assert "ms_output_trace_code_graph_0.ir:2\n" in text
    assert 'numpy.load("dump/rank_0/AlexNet/0/0/Conv2D.Conv2D-op4.3.0.2.output.0.DefaultFormat.npy")' in text
    graph = SyncPaths(dump, 0, "AlexNet").graph_file(0, "ir")
    graph.write_text("nothing of the kind\n")
    with pytest.raises(DumpError, match="expected the operator of"):
        find_example(dump, "AlexNet", dump.parent)


@pytest.mark.parametrize(("steps", "batch_size", "words"), [(0, 1, "--steps"), (1, 0, "--batch-size")])
def test_numbers_below_one_are_refused(tmp_path: Path, steps: int, batch_size: int, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        demo.run(arguments(tmp_path / "out", steps, batch_size))
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_noticed_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    usage = collections.namedtuple("usage", ["total", "used", "free"])
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(10**9, 10**9, 5))
    with pytest.raises(ConfigError, match=r"expected 1\.2 GB of free space .* got 5e-09 GB\. Use --out"):
        demo.run(arguments(tmp_path, full=True))
    with pytest.raises(ConfigError, match=r"expected 0\.05 GB of free space"):
        demo.run(arguments(tmp_path))


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    (tmp_path / "out").write_text("x")
    with pytest.raises(WriteError, match="out"):
        demo.run(arguments(tmp_path / "out"))


def run_demo(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "msdump", "demo", "--steps", "1", "--batch-size", "1", "--out", "out", *options]
    environment = {
        **os.environ,
        "PYTHONPATH": os.getcwd(),
        "MSDUMP_STRICT": "1",
        "MSDUMP_CONTAINER": "pack",
        "MSDUMP_UPLOAD": "nosuch://x/y",
        "MINDSPORE_DUMP_CONFIG": "of another program.json",
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.slow
def test_demo_finds_the_fault_that_it_has_planted(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    done = run_demo(tmp_path)
    out = tmp_path / "out"
    lines = (out / demo.FAULTY_SCRIPT).read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if "the planted fault" in line]
    assert f"The same with a fault, in line {number} of {demo.FAULTY_SCRIPT}:" in done.stdout
    assert done.stderr.count("\nfinite: ") == done.stderr.count("\nfirst NaN, made out of finite inputs: ") == 1
    assert f"{demo.FAULTY_SCRIPT}:{number}  {lines[number - 1].strip()}" in done.stderr
    assert (
        f"Open it in a browser: {(out / 'report.html').as_uri()}\n" in done.stdout and (out / "report.html").is_file()
    )
    assert "in about a minute:" in done.stdout.splitlines()[0]
    assert done.stdout.endswith("\nNow your own: msdump run train.py\n")
    if importlib.util.find_spec("torch") is not None:
        _, _, of_torch = done.stdout.partition("with PyTorch:")
        lines = (out / demo.TORCH_FAULTY_SCRIPT).read_text().splitlines()
        (number,) = [number for number, line in enumerate(lines, 1) if "the planted fault" in line]
        finding, line = of_torch.splitlines()[4:6]
        assert finding.startswith("first NaN, made out of finite inputs: Default/aten.log.default-op0")
        assert line == f"  {demo.TORCH_FAULTY_SCRIPT}:{number}  {lines[number - 1].strip()}"
    assert sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) < 100e6


@pytest.mark.slow
def test_a_full_demo_ends_with_the_table_and_the_files_it_names(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    done = run_demo(tmp_path, "--full")
    out = tmp_path / "out"
    lines = done.stdout.splitlines()
    assert any(line.startswith("step: 1, losses: ") for line in lines)
    cells = [line.split() for line in lines]
    assert ["Conv2D", "5", "15"] in [line[:3] for line in cells]
    assert [line[1] for line in cells if line[:1] == ["total"]] == ["67"]
    (loaded,) = [line.split('"')[1] for line in lines if "numpy.load" in line]
    assert np.load(out / loaded).shape == (1, 384, 13, 13)
    (shown,) = [line.strip() for line in lines if ".ir:" in line]
    path, number = shown.rsplit(":", 1)
    assert LINE in (out / path).read_text().splitlines()[int(number) - 1]
    assert json.loads((out / "data_dump.json").read_text())["common_dump_settings"]["path"] == str(out / "dump")
    # A second demo leaves the first dump alone.
    assert demo._unused(out, "dump") == out / "dump_2"
