"""Every command that reads a dump, on every kind of dump: each way into one, in files and in packs, whole and as a
killed process leaves it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from msdump.analysis.overview.dumps import dumps_below
from msdump.cli.exit_status import FINE, FOUND, INCOMPLETE, NOTHING, REFUSED
from msdump.cli.main import main
from tests.analysis.small_dump import floats, write_dump
from tests.faults.scripts import ENTRIES, RECORDER, Entry

ROOT = Path(__file__).parents[1]
_KILL = """
import os, pathlib, signal, time
for _ in range(600):
    if any(path.is_file() for path in pathlib.Path("dump").rglob("*.*")):
        break  # a writer has begun
    time.sleep(0.05)
os.kill(os.getpid(), signal.SIGKILL)
"""

_TRAINING = """
import torch

torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for number in range(3):
    optimizer.zero_grad()
    net(torch.linspace(-1, 1, 8).reshape(2, 4)).sum().backward()
    optimizer.step()
"""
_PROBE = """
import torch
from msprobe.pytorch import PrecisionDebugger

debugger = PrecisionDebugger(task="%s", level="mix", dump_path="dump", step=[0, 1])
net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
for number in range(2):
    debugger.start(model=net)
    net(torch.ones(2, 4)).sum().backward()
    debugger.stop()
    debugger.step()
"""
_FX = """
import torch
import torchair

config = torchair.CompilerConfig()
config.mode = "reduce-overhead"
config.debug.data_dump.type = "npy"
config.debug.data_dump.path = "dump"
backend = torchair.get_npu_backend(compiler_config=config)
compiled = torch.compile(lambda x, y: torch.relu(x @ y + 1).sum(), backend=backend)
for number in range(2):
    compiled(torch.ones(2, 3), torch.ones(3, 2))
"""


def _folder(folder: Path) -> None:
    (folder / "dump").mkdir(exist_ok=True)


_MORE = (
    Entry("eager", "torch", _TRAINING, lambda _: None, ("--out", "dump")),
    Entry("eager-tensors", "torch", _TRAINING, lambda _: None, ("--out", "dump", "--tensors", "all")),
    Entry("msprobe", "torch", _PROBE % "statistics", lambda _: None),
    Entry("msprobe-tensors", "torch", _PROBE % "tensor", lambda _: None),
    Entry("torchair-eager", "torch", _FX, _folder),
    RECORDER,
)
_ENGINES = (*ENTRIES, *_MORE)
_NEEDS = {"torch": "torch", "acl": "onnxruntime", "mindspore": "msdump.mindspore"}


# -- commands ----------------------------------------------------------------------------------------------------------

Line = Callable[[Path, Path, str], Sequence[object]]
# (dump, folder for results, name of an operator) -> arguments
READING: dict[str, Line] = {
    "ls": lambda dump, _, op: ["ls", dump, "--all"],
    "ls-verify": lambda dump, _, op: ["ls", dump, "--verify"],
    "ls-dumps": lambda dump, _, op: ["ls", dump.parent, "--dumps"],
    "nan": lambda dump, _, op: ["nan", dump, "--all"],
    "nan-brief": lambda dump, _, op: ["nan", dump, "--brief"],
    "stat": lambda dump, _, op: ["stat", dump, "--sort", "max", "--top", "3"],
    "stat-unchanged": lambda dump, _, op: ["stat", dump, "--unchanged"],
    "stat-golden": lambda dump, _, op: ["stat", dump, "--golden", dump],
    "stat-csv": lambda dump, out, op: ["stat", dump, "--csv", out / "csv"],
    "compare": lambda dump, _, op: ["compare", dump, dump],
    "ranks": lambda dump, _, op: ["ranks", dump, "--engine", "threads", "--jobs", "1"],
    "show": lambda dump, _, op: ["show", dump, op],
    "show-elements": lambda dump, _, op: ["show", dump, op, "--tensor", "output:0"],
    "where": lambda dump, _, op: ["where", dump, "net"],
    "replay": lambda dump, _, op: ["replay", dump, op],
    "repro": lambda dump, out, op: ["repro", dump, op, "-o", out / "repro"],
    "zoom": lambda dump, out, op: ["zoom", dump, op, "-o", out / "zoom", "--config", out / "zoom.json"],
    "plot": lambda dump, _, op: ["plot", dump],
    "plot-iteration": lambda dump, _, op: ["plot", dump, "--by", "iteration", "--y", "max"],
    "report": lambda dump, out, op: ["report", dump, "-o", out / "report.html", "--md", out / "report.md"],
    "convert": lambda dump, out, op: ["convert", dump, "-t", "safetensors", "-o", out / "converted", "-q"],
    "export-msprobe": lambda dump, out, op: ["export", dump, "--to", "msprobe", "-o", out / "msprobe"],
    "export-perfetto": lambda dump, out, op: ["export", dump, "--to", "perfetto", "-o", out / "trace.json"],
    "export-model-explorer": lambda dump, out, op: ["export", dump, "--to", "model-explorer", "-o", out / "explorer"],
    "doctor": lambda dump, _, op: ["doctor", dump],
}  # fmt: skip
# What needs tensors, attributes or ranks refuses a dump without them, with a sentence.
_STATUSES = (FINE, FOUND, REFUSED, NOTHING, INCOMPLETE)
_QUICK = ("ls", "ls-verify", "ls-dumps", "nan", "stat", "compare", "where")


def _operator(dump: Path) -> str:
    """Name of an operator that the dump has; of statistics too."""
    from msdump.analysis import tensor_statistics
    from msdump.errors import NothingFoundError

    try:
        rows = tensor_statistics(dump).rows
    except NothingFoundError:
        return "none"
    return next((row.operator.label for row in rows if row.operator and not row.operator.is_parameter), "none")


def _ask(name: str, dump: Path, out: Path, operator: str) -> int:
    out.mkdir(exist_ok=True, parents=True)
    return main([str(word) for word in READING[name](dump, out, operator)])


def _answers(dump: Path, out: Path, names: Iterable[str], capsys: pytest.CaptureFixture[str]) -> dict[str, int]:
    """Status of each command, none of which dies; what one says of a whole dump is kept to what is wrong in it."""
    operator, found = _operator(dump), {}
    for name in names:
        found[name] = _ask(name, dump, out / name, operator)
        said = capsys.readouterr()
        assert found[name] in _STATUSES, (name, said.err)
        assert found[name] in (FINE, FOUND) or said.err, name
        assert "foreign" not in said.err, (name, said.err)
        assert (found[name] == INCOMPLETE) == ("damaged" in said.err), (name, said.err)
    return found


# -- dumps by hand: quick ----------------------------------------------------------------------------------------------

LAYOUTS = {
    "sync": ("rank_0/Net/0", ()),
    "async": ("20240101000000/0/Net/0", ()),
    "async-step": ("3/20240101000000/0/Net/0", ()),
    "statistics": ("rank_0/Net/0", ("statistic",)),
}


def _made(folder: Path, layout: str) -> Path:
    """Three iterations of two operators."""
    place, forms = LAYOUTS[layout]
    first = write_dump(folder / "first", _OPERATORS, 0)
    for iteration in (1, 2):
        write_dump(first, _OPERATORS, iteration)
    if forms:
        assert main(["stat", str(first), "--csv", str(folder / "csv")]) == FINE
        first = folder / "csv"
    dump = folder / "dump"
    (dump / place).parent.mkdir(parents=True)
    (first / "rank_0/Net/0").rename(dump / place)
    return dump


_OPERATORS = [
    ("Net/Log-op0", {("input", 0): floats(1, 2), ("output", 0): floats(0, 0.7)}),
    ("Net/Exp-op1", {("input", 0): floats(0, 0.7), ("output", 0): floats(1, 2)}),
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_small_dumps_are_read_in_files_and_in_packs(
    layout: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = _made(tmp_path, layout)
    capsys.readouterr()
    plain = _answers(dump, tmp_path / "plain", _QUICK, capsys)
    assert (plain["ls"], plain["nan"], plain["stat"]) == (FINE, FINE, FINE)
    found = [(Path(one.path), one.ranks, one.iterations) for one in dumps_below(tmp_path)]
    if layout == "statistics":
        return
    assert main(["pack", str(dump)]) == FINE
    capsys.readouterr()
    assert _answers(dump, tmp_path / "packed", _QUICK, capsys) == plain
    assert [(Path(one.path), one.ranks, one.iterations) for one in dumps_below(tmp_path)] == found
    # A pack as its writer leaves it when it is killed: without an end, under its first name.
    (*_, last) = sorted(dump.rglob("*.tar"))
    content = last.read_bytes()
    last.unlink()
    last.with_name(f"{last.name}.part").write_bytes(content[: len(content) // 3])
    killed = _answers(dump, tmp_path / "killed", _QUICK, capsys)
    assert killed["ls"] in (FINE, INCOMPLETE) and killed["ls-dumps"] == FINE


# -- dumps of each engine: slow ----------------------------------------------------------------------------------------


def _run(entry: Entry, folder: Path, container: str, is_killed: bool) -> Path:
    folder.mkdir()
    entry.prepare(folder)
    (folder / "script.py").write_text(entry.script + (_KILL if is_killed else ""))
    command = [sys.executable, "-m", "msdump", "run", *entry.options, "script.py"]
    variables = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MSDUMP_CONTAINER": container}
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode in ((-signal.SIGKILL, 128 + signal.SIGKILL) if is_killed else (FINE, FOUND)), done.stderr
    return folder / "dump"


@pytest.mark.parametrize("entry", _ENGINES, ids=str)
def test_dumps_of_each_engine_are_read(entry: Entry, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whole ones say the same in files and in packs."""
    pytest.importorskip(_NEEDS[entry.family])
    found = {}
    for container in ("files", "pack"):
        dump = _run(entry, tmp_path / container, container, is_killed=False)
        found[container] = _answers(dump, tmp_path / f"{container}-out", READING, capsys)
        assert found[container]["ls"] == FINE and found[container]["report"] == FINE
    assert found["files"] == found["pack"]


@pytest.mark.parametrize("container", ["files", "pack"])
@pytest.mark.parametrize("entry", _ENGINES, ids=str)
def test_what_a_killed_process_leaves_is_read(
    entry: Entry, container: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(_NEEDS[entry.family])
    dump = _run(entry, tmp_path / "run", container, is_killed=True)
    if dump.exists():
        _answers(dump, tmp_path / "out", READING, capsys)
