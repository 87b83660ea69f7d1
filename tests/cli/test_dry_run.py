"""`msdump plan CONFIG --dry-run SCRIPT` says what one step leaves, which is what a step of the run then leaves."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_run_children import environment
from tests.cli.test_run_dump import TRAIN

COUNT = re.compile(r"per iteration +(?P<size>\S+ \S+) in (?P<files>\d+) files?(, (?P<links>\d+) further names)?")


def configure(folder: Path, is_sync: bool, **changes: object) -> None:
    common = {
        "dump_mode": 0, "path": str(folder / "dump"), "net_name": "Net", "iteration": "5-7", "saved_data": "tensor",
        "input_output": 0, "kernels": [], "support_device": [0], "op_debug_mode": 0, "file_format": "npy", **changes,
    }  # fmt: skip
    sections = {"common_dump_settings": common, "e2e_dump_settings": {"enable": is_sync, "trans_flag": True}}
    (folder / "dump.json").write_text(json.dumps(sections))


def msdump(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "msdump", *arguments]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=300)


@pytest.mark.usefixtures("needs_mindspore")
@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
@pytest.mark.parametrize("saved_data", ["tensor", "statistic"])
def test_one_step_is_measured_and_leaves_nothing(tmp_path: Path, is_sync: bool, saved_data: str) -> None:
    configure(tmp_path, is_sync, saved_data=saved_data)
    (tmp_path / "train.py").write_text(TRAIN)
    done = msdump(tmp_path, "plan", "dump.json", "--dry-run", "train.py", "1000000")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump.json", "train.py"]
    assert re.search(r"time +a step of [0-9.]+ ms takes [0-9.]+ ms more", done.stdout)
    assert "3 times that" in done.stdout and "measured" in done.stdout and "loss" not in done.stdout
    found = COUNT.search(done.stdout)
    assert found is not None, done.stdout
    assert msdump(tmp_path, "run", "--config", "dump.json", "train.py", "8").returncode == 0
    files = [path for path in (tmp_path / "dump").rglob("*") if path.is_file() and path.parent.name == "6"]
    inodes = {path.stat().st_ino: path.stat().st_size for path in files}
    assert int(found["files"]) == len(inodes)
    assert int(found["links"] or 0) == len(files) - len(inodes)
    if saved_data == "tensor":
        assert found["size"] == f"{sum(inodes.values()) / 1024:.3g} KiB"


@pytest.mark.usefixtures("needs_mindspore")
def test_a_script_of_one_step_is_measured_by_it(tmp_path: Path) -> None:
    configure(tmp_path, is_sync=True)
    (tmp_path / "train.py").write_text(TRAIN)
    done = msdump(tmp_path, "plan", "dump.json", "--dry-run", "train.py", "1")
    assert done.returncode == 0, done.stderr
    assert "iteration 0 of train.py" in done.stdout


def test_a_script_of_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    configure(tmp_path, is_sync=True)
    (tmp_path / "train.py").write_text("""
import torch
model = torch.compile(torch.nn.Linear(3, 2), backend="msdump")
for _ in range(100):
    model(torch.ones(4, 3)).sum().backward()
""")
    done = msdump(tmp_path, "plan", "dump.json", "--dry-run", "train.py")
    assert done.returncode == 0, done.stderr
    assert COUNT.search(done.stdout) and "iteration 1 of train.py" in done.stdout


EAGER = """
import sys
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(int(sys.argv[1])):
    optimizer.zero_grad()
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "ways",
    [["--torch-eager"], ["--torch-module", "model"], ["--torch-eager", "-m"]],
    ids=["eager", "module", "python -m"],
)
def test_every_way_in_is_that_of_a_run(ways: list[str], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    configure(tmp_path, is_sync=True)
    (tmp_path / "train.py").write_text(EAGER)
    target = "train" if "-m" in ways else "train.py"
    done = msdump(tmp_path, "plan", "dump.json", "--dry-run", *ways, target, "1000000")
    assert done.returncode == 0, done.stderr
    assert f"iteration 1 of {target}" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump.json", "train.py"]
    assert msdump(tmp_path, "run", "--config", "dump.json", *ways, target, "8").returncode == 0
    assert_measured(done, *amounts_of_step(tmp_path / "dump", 6))


def amounts_of_step(dump: Path, iteration: int) -> tuple[int, int]:
    """As `amounts`, of the folders of an iteration in all graphs."""
    counts = [
        amounts(folder) for folder in dump.rglob(str(iteration)) if folder.is_dir() and folder.parent.name != "Net"
    ]
    return sum(files for files, _ in counts), sum(size for _, size in counts)


WATCHED = """
import msdump, torch
model = torch.nn.Linear(3, 2)
with msdump.watch(model, "dump.json"):
    for _ in range(100):
        model(torch.ones(4, 3)).sum().backward()
"""
PROBED = """
import torch
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(dump_path="dump", task="tensor", level="L1", step=[3])
for _ in range(100):
    debugger.start()
    torch.nn.functional.relu(torch.ones(2))
    debugger.stop()
    debugger.step()
"""


@pytest.mark.parametrize(("script", "ways"), [(WATCHED, []), (PROBED, ["--as", "msprobe"])], ids=["watch", "msprobe"])
def test_a_script_that_configures_its_dump_itself(script: str, ways: list[str], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    configure(tmp_path, is_sync=True)
    (tmp_path / "train.py").write_text(script)
    done = msdump(tmp_path, "plan", "--dry-run", *ways, "train.py")
    assert done.returncode == 0, done.stderr
    assert COUNT.search(done.stdout) and "iteration 1 of train.py" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump.json", "train.py"]


@pytest.mark.parametrize(
    ("script", "text"), [("print(1)", "runs a network"), ("raise ValueError('mine')", "ValueError: mine")]
)
def test_a_script_that_computes_nothing(tmp_path: Path, script: str, text: str) -> None:
    configure(tmp_path, is_sync=True)
    (tmp_path / "train.py").write_text(script)
    done = msdump(tmp_path, "plan", "dump.json", "--dry-run", "train.py")
    assert done.returncode == 1 and text in done.stderr and "Traceback" not in done.stderr.split("\n")[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump.json", "train.py"]


def test_what_it_cannot_measure_is_refused(tmp_path: Path) -> None:
    configure(tmp_path, is_sync=True)
    assert msdump(tmp_path, "plan", "dump.json", "--dry-run").returncode == 2
    assert msdump(tmp_path, "plan").returncode == 2
    for words in (["missing.py"], ["--torch-egaer", "dump.json"], ["--as", "msprobe", "dump.json"]):
        done = msdump(tmp_path, "plan", "dump.json", "--dry-run", *words)
        assert done.returncode == 2 and "Traceback" not in done.stderr


def amounts(folder: Path) -> tuple[int, int]:
    """Number and bytes of the files of a folder, each once, whatever names it has."""
    statuses = [path.stat() for path in folder.rglob("*") if path.is_file()]
    sizes = {status.st_ino: status.st_size for status in statuses}
    return len(sizes), sum(sizes.values())


def assert_measured(done: subprocess.CompletedProcess[str], files: int, size: int) -> None:
    assert done.returncode == 0, done.stderr
    found = COUNT.search(done.stdout)
    assert found is not None, done.stdout
    assert int(found["files"]) == files
    assert found["size"] == (f"{size} B" if size < 1024 else f"{size / 1024:.3g} KiB")
    assert re.search(r"time +a step of [0-9.]+ ms takes [0-9.]+ ms more", done.stdout)


PYACL = """
import sys
import acl
from tests.frontends.acl.calls import ok
from tests.frontends.acl.scripts import dataset_of

ok(acl.init(*sys.argv[1:]))
ok(acl.rt.set_device(0))
model = ok(acl.mdl.load_from_file("net.onnx"))
datasets = dataset_of([24]), dataset_of([24])
for _ in range(4):
    ok(acl.mdl.execute(model, *datasets))
ok(acl.finalize())
"""


@pytest.mark.parametrize("keys", [{}, {"dump_data": "stats"}, {"dump_step": "3"}], ids=str)
def test_one_execution_of_a_script_of_pyacl(keys: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from tests.frontends.acl.scripts import everything, small_model

    small_model(tmp_path)
    everything(tmp_path, **keys)
    (tmp_path / "infer.py").write_text(PYACL)
    before = sorted(tmp_path.rglob("*"))
    # The script's own file is not read.
    plan = msdump(tmp_path, "plan", "acl.json", "--dry-run", "infer.py", "missing.json")
    own = msdump(tmp_path, "plan", "--dry-run", "infer.py", "acl.json")
    assert sorted(tmp_path.rglob("*")) == before
    assert msdump(tmp_path, "run", "infer.py", "acl.json").returncode == 0
    (last,) = (tmp_path / "out").glob("*/0/net/1/3")
    for done in (plan, own):
        assert_measured(done, *amounts(last))
    assert "kind" in plan.stdout and "kind" not in own.stdout


TORCHAIR = """
import torch, torchair
config = torchair.CompilerConfig()
{switches}
compiled = torch.compile(lambda x: x.relu() + 1, backend=torchair.get_npu_backend(compiler_config=config))
for _ in range(4):
    compiled(torch.ones(8))
"""


@pytest.mark.parametrize(
    ("switches", "pattern"),
    [
        ('config.debug.data_dump.type = "npy"; config.debug.data_dump.path = "out"', "out/*/graph_1/1"),
        ('config.dump_config.enable_dump = True; config.dump_config.dump_step = "1"', "worldsize*/*/0/graph_1/1/1"),
        ('config.mode = "npugraph_ex"; config.dump_config.enable_dump = True', "worldsize*"),
    ],
    ids=["eager", "graph mode", "captured"],
)
def test_one_run_of_a_script_for_torchair(switches: str, pattern: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "infer.py").write_text(TORCHAIR.format(switches=switches))
    done = msdump(tmp_path, "plan", "--dry-run", "infer.py")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["infer.py"]
    assert msdump(tmp_path, "run", "infer.py").returncode == 0
    (last,) = tmp_path.glob(pattern)
    files, size = amounts(last)
    # Values of captured graphs lie side by side, those of all runs.
    runs = 4 if "npugraph_ex" in switches else 1
    assert_measured(done, files // runs, size // runs)


def test_a_script_that_configures_no_dump(tmp_path: Path) -> None:
    (tmp_path / "idle.py").write_text("print('mine')")
    done = msdump(tmp_path, "plan", "--dry-run", "idle.py")
    assert done.returncode == 1 and "expected a script that runs a model" in done.stderr and "mine" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["idle.py"]


def test_what_is_thrown_away_is_sent_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    from msdump.cli import dry_run

    monkeypatch.setenv("MSDUMP_UPLOAD", "s3://bucket/job")
    monkeypatch.setenv("MSDUMP_CONTAINER", "pack")
    made = dry_run._environment(["/a", ""])
    assert "MSDUMP_UPLOAD" not in made
    assert (made["MSDUMP_CONTAINER"], made["PYTHONPATH"]) == ("pack", "/a")
