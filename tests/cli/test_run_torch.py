"""`msdump run` with PyTorch scripts that know nothing of msdump."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from msdump.analysis.overview.contents import Contents
from msdump.cli.main import main
from msdump.viewing.pages import Pages

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return torch.relu(self.fc(x))

net = Net()
called = COMPILED
for step in range(2):
    called(torch.ones(3, 4)).sum().backward()
print(type(called).__name__)
"""


def run(folder: Path, compiled: str, *options: str, saved_data: str = "tensor") -> subprocess.CompletedProcess[str]:
    write_program(folder, compiled, saved_data)
    return start(folder, "-m", "msdump", "run", "--config", "dump.json", *options, "train.py")


def run_plain(folder: Path, compiled: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python starts the script, and the environment says what is dumped."""
    write_program(folder, compiled, "statistic")
    return start(folder, "train.py", MINDSPORE_DUMP_CONFIG=str(folder / "dump.json"), **environment)


def start(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )


def write_program(folder: Path, compiled: str, saved_data: str) -> None:
    settings = {
        "common_dump_settings": {
            "dump_mode": 0,
            "path": str(folder / "dump"),
            "net_name": "Net",
            "iteration": "all",
            "saved_data": saved_data,
            "input_output": 0,
            "kernels": [],
            "support_device": [0],
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }
    (folder / "dump.json").write_text(json.dumps(settings))
    (folder / "train.py").write_text(SCRIPT.replace("COMPILED", compiled))


@pytest.mark.parametrize(
    ("compiled", "options"),
    [
        ("torch.compile(net, backend='inductor', mode='max-autotune')", ["--torch-backend", "msdump"]),
        ("net", ["--torch-module", "net"]),
        ("net", ["--torch-module", "Net"]),
    ],
    ids=["backend", "instance", "class"],
)
def test_the_model_is_dumped_from_its_first_step(tmp_path: Path, compiled: str, options: list[str]) -> None:
    done = run(tmp_path, compiled, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "iterations  2 of 2 dumped" in done.stderr
    net = tmp_path / "dump" / "rank_0" / "Net"
    for graph in ("0", "1"):
        assert sorted(path.name for path in (net / graph).iterdir()) == ["0", "1"]
    assert len(list((net / "0" / "0").glob("Parameter.fc.weight.*"))) == 1


OUTSIDE = "code outside of compiled regions is not in this dump"
MSDUMP = "torch.compile(net, backend='msdump')"
# no unit is dead, which were a finding
ALIVE = "(nn.init.ones_(net.fc.weight), torch.compile(net))[1]"


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_dump_of_compiled_regions_says_that_it_is_one(
    tmp_path: Path, is_whole: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not there may hold a NaN, which no answer about the rest speaks against."""
    options = ["--torch-eager"] if is_whole else []
    done = run(tmp_path, ALIVE, *options, "--torch-backend", "msdump", saved_data="statistic")
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(tmp_path)
    assert_says_outside(capsys, is_said=not is_whole)


@pytest.mark.parametrize("backend", ["msdump", "msdump-inductor"])
def test_so_does_that_of_a_script_that_python_starts(
    tmp_path: Path, backend: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run_plain(tmp_path, ALIVE.replace("(net)", f"(net, backend='{backend}')"))
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(tmp_path)
    assert_says_outside(capsys, is_said=True)


def test_so_does_that_of_a_rank_though_nobody_knows_what_started_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run_plain(tmp_path, MSDUMP, WORLD_SIZE="2")
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(tmp_path)
    main(["nan", "dump"])
    text = capsys.readouterr().out
    assert OUTSIDE in text and "all of the program" not in text
    pages = Pages(Contents(tmp_path / "dump"))
    assert pages.get("map")["provenance"]["command"] is None


def test_a_script_that_watches_all_of_itself_has_all_of_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = f"(__import__('msdump').watch().__enter__(), {MSDUMP})[1]"
    done = run_plain(tmp_path, watched)
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(tmp_path)
    main(["nan", "dump"])
    assert OUTSIDE not in capsys.readouterr().out


def assert_says_outside(capsys: pytest.CaptureFixture[str], is_said: bool) -> None:
    """Every answer about the dump in this folder says so, or none does."""
    texts = []
    for command in (
        ["nan", "dump"],
        ["nan", "dump", "--brief"],
        ["report", "dump", "-o", "page.html", "--md", "page.md"],
    ):
        assert main(command) == 0
        texts.append(capsys.readouterr().out)
    texts.append(Path("page.md").read_text())
    pages = Pages(Contents(Path("dump")))
    texts += [pages.get("overview")["verdict"]["text"], pages.get("nan")["text"]]
    assert [OUTSIDE in " ".join(text.split()) for text in texts] == [is_said] * 6
    assert ("msdump run train.py  # all of the program" in texts[0]) == is_said


def test_a_script_whose_model_nobody_compiles_is_told_so(tmp_path: Path) -> None:
    done = run(tmp_path, "net")
    assert done.returncode == 3
    assert "--torch-backend msdump" in done.stderr
    assert "--torch-eager" in done.stderr


def test_an_unknown_backend_is_refused_before_the_script_runs(tmp_path: Path) -> None:
    done = run(tmp_path, "net", "--torch-backend", "nobody")
    assert done.returncode == 2
    assert "expected msdump or one of" in done.stderr
    assert done.stdout == ""


def test_a_configuration_is_refused_before_the_script_starts(tmp_path: Path) -> None:
    done = run(tmp_path, "torch.compile(net)", "--torch-backend", "msdump", saved_data="statistics")
    assert done.returncode == 2
    assert 'common_dump_settings.saved_data: expected "tensor", "statistic" or "full"' in done.stderr
    assert "Traceback" not in done.stderr and "train.py" not in done.stderr
    assert not (tmp_path / "dump").exists()


def test_a_module_that_the_script_does_not_have_is_named_with_the_nearest(tmp_path: Path) -> None:
    done = run(tmp_path, "net", "--torch-module", "Nett")
    assert done.returncode == 3
    assert "--torch-module: expected a module of the script that is called, got 'Nett'. Did you mean" in done.stderr
    assert "It has net, called, Net, Linear." in done.stderr


def test_a_module_that_is_compiled_is_not_missed(tmp_path: Path) -> None:
    done = run(tmp_path, "net", "--torch-module", "Net")
    assert done.returncode == 0 and "--torch-module" not in done.stderr


def test_the_names_on_the_page_are_those_of_its_script(tmp_path: Path) -> None:
    """Time stamps apart; numbers of operators apart, which depend on the version of PyTorch."""
    page = (ROOT / "docs" / "torch.md").read_text()
    script = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[0]
    shown = re.findall(r"^ +Net/(\S+\.npy)$", page, re.MULTILINE)
    assert len(shown) == 3

    def pattern(name: str) -> str:
        return re.sub(r"\d{16}", "STAMP", re.sub(r"-op\d+", "-op", name))

    done = run(tmp_path, "net", "--torch-backend", "msdump")  # writes the configuration
    assert done.returncode == 3, done.stderr
    (tmp_path / "train.py").write_text(script)
    command = [sys.executable, "-m", "msdump", "run", "--config", "dump.json", "--torch-backend", "msdump", "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    net = tmp_path / "dump" / "rank_0" / "Net"
    written = {pattern(path.relative_to(net).as_posix()) for path in net.rglob("*.npy")}
    assert {pattern(name) for name in shown} <= written
