"""A dump that cannot go on ends by itself: the code behind it runs, a message says why, and `close` tells who asks."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import msdump
from msdump.errors import DumpError
from msdump.process import sessions
from tests.faults.scripts import ENTRIES, Entry

BUDGET = "MSDUMP_DISK_BUDGET"


def _config(folder: Path, **common: Any) -> dict[str, Any]:
    settings = {
        "dump_mode": 0,
        "path": str(folder / "dump"),
        "net_name": "Net",
        "iteration": "all",
        "saved_data": "tensor",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
        **common,
    }
    return {"common_dump_settings": settings, "e2e_dump_settings": {"enable": True, "trans_flag": True}}


def _mindspore(folder: Path) -> Any:
    pytest.importorskip("msdump.mindspore")
    from msdump.mindspore import Tensor, jit, ops

    with msdump.dump(_config(folder)) as dump:
        jit(lambda x: ops.exp(x))(Tensor(np.ones(3, np.float32)))
    return dump


def _compiled(folder: Path) -> Any:
    torch = pytest.importorskip("torch")
    with msdump.dump(_config(folder)) as dump:
        torch.compile(torch.exp, backend="msdump")(torch.ones(3))
    return dump


def _watch(folder: Path) -> Any:
    torch = pytest.importorskip("torch")
    with msdump.watch(config=_config(folder)) as watch:
        torch.exp(torch.ones(3))
    return watch


def _function(folder: Path) -> Any:
    torch = pytest.importorskip("torch")
    watch = msdump.watch(config=_config(folder))
    watch(lambda: torch.exp(torch.ones(3)))()
    return watch


def _callback(folder: Path) -> Any:
    torch = pytest.importorskip("torch")
    from msdump.integrations.training import TrainingDump

    dump = TrainingDump(_config(folder))
    dump.begin(0)
    for _ in range(2):
        dump.begin_batch()
        torch.exp(torch.ones(3))
        dump.end_batch(is_step=True)
    dump.end()
    report = dump.report
    assert report is not None
    return SimpleNamespace(report=lambda: report, close=sessions.close_all)


def _acl(folder: Path) -> Any:
    pytest.importorskip("onnxruntime")
    from msdump import acl
    from tests.frontends.acl.scripts import small_model

    (folder / "dump").mkdir()
    config = {"dump": {"dump_path": str(folder / "dump"), "dump_list": [{}], "dump_mode": "all"}}
    with acl.dump(config) as dump:
        acl.load(small_model(folder))(np.ones((2, 3), np.float32))
    return dump


def _recorder(folder: Path) -> Any:
    torch = pytest.importorskip("torch")
    (folder / "ring").mkdir()
    (folder / "dump").mkdir()
    (folder / "dump/incident_0001").write_text("in the way")
    with msdump.recorder(folder / "dump", ring=folder / "ring", after=0) as block, msdump.watch():
        for loss in (1.0, 1.0, float("nan"), 1.0):
            torch.exp(torch.ones(3))
            block.step(loss=loss)
    return block


BLOCKS: dict[str, Callable[[Path], Any]] = {
    "mindspore": _mindspore,
    "torch.compile": _compiled,
    "watch": _watch,
    "function": _function,
    "callback": _callback,
    "acl": _acl,
    "recorder": _recorder,
}


@pytest.mark.parametrize("name", BLOCKS)
def test_the_code_behind_a_block_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if name != "recorder":
        monkeypatch.setenv(BUDGET, "1")
    with caplog.at_level(logging.ERROR, "msdump"):
        dump = BLOCKS[name](tmp_path)
    why = "incident_0001" if name == "recorder" else BUDGET
    report = dump.report()
    assert report is not None and why in (report.error or "")
    assert why in caplog.text
    if name != "callback":
        assert "not complete" in caplog.text
        for _ in range(2):
            with pytest.raises(DumpError, match=why):
                dump.close()
    assert why in (sessions.reports()[0].error or "")


@pytest.mark.parametrize("name", ["mindspore", "watch", "acl"])
def test_a_dump_that_is_whole_closes_in_silence(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    dump = BLOCKS[name](tmp_path)
    dump.close()
    assert dump.report().error is None and not [one for one in caplog.records if one.levelno >= logging.ERROR]


def test_a_block_can_be_closed_from_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a program goes on that needs the dump."""
    torch = pytest.importorskip("torch")
    monkeypatch.setenv(BUDGET, "1")
    with msdump.watch(config=_config(tmp_path)) as watch:
        torch.exp(torch.ones(3))
        with pytest.raises(DumpError, match=BUDGET):
            watch.close()
        torch.exp(torch.ones(3))
    with pytest.raises(DumpError, match=BUDGET):
        watch.close()


def test_an_error_of_the_block_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setenv(BUDGET, "1")

    def fails() -> None:
        torch.exp(torch.ones(3))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), msdump.watch(config=_config(tmp_path)):
        fails()


# -- whole scripts -----------------------------------------------------------------------------------------------------

_DEBUGGER = """
import torch
from msprobe.pytorch import PrecisionDebugger

torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
debugger = PrecisionDebugger(config_path="config.json")
for number in range(2):
    debugger.start(model=net)
    loss = net(torch.linspace(-1, 1, 8).reshape(2, 4)).sum()
    loss.backward()
    debugger.stop()
    debugger.step()
    print("result", loss.detach().numpy().tobytes().hex())
"""


def _debugger_json(folder: Path) -> None:
    config = {"task": "tensor", "dump_path": str(folder / "dump"), "rank": [], "step": [], "level": "mix", "tensor": {}}
    (folder / "config.json").write_text(json.dumps(config))


_BLOCK = """
import msdump, torch
with msdump.watch(config="dump.json"):
    print("result", torch.exp(torch.ones(3)).numpy().tobytes().hex())
"""
SCRIPTS = (
    *ENTRIES,
    Entry("debugger", "torch", _DEBUGGER, _debugger_json, ("--as", "msprobe")),
    Entry("block", "torch", _BLOCK, ENTRIES[0].prepare),
)


@pytest.mark.slow
@pytest.mark.parametrize("entry", SCRIPTS, ids=str)
def test_a_script_runs_to_its_end(entry: Entry, tmp_path: Path) -> None:
    """With 4 under `msdump run`, as the dump is not complete."""
    pytest.importorskip({"torch": "torch", "acl": "onnxruntime", "mindspore": "msdump.mindspore"}[entry.family])
    root = str(Path(__file__).parents[1])
    runs = []
    for name, variables in (("plain", {}), ("full", {BUDGET: "1"})):
        folder = tmp_path / name
        folder.mkdir()
        entry.prepare(folder)
        (folder / "script.py").write_text(entry.script + "\nprint('result behind')\n")
        command = [sys.executable, "-m", "msdump", "run", *entry.options, "script.py"]
        environment = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1", **variables}
        runs.append(subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300))
    plain, full = runs
    assert plain.returncode == 0, plain.stderr
    assert full.returncode == 4, full.stderr
    results = [[line for line in run.stdout.splitlines() if line.startswith("result")] for run in runs]
    assert results[0] == results[1] and results[0][-1] == "result behind"
    assert BUDGET in full.stderr and "Traceback" not in full.stderr
