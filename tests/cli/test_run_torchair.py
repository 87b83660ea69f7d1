"""`msdump run` with scripts for TorchAir, whose CompilerConfig says what is dumped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
BEGIN = """
import os, subprocess, sys
import torch, torchair

config = torchair.CompilerConfig()
"""
END = """
backend = torchair.get_npu_backend(compiler_config=config)
torch.compile(lambda x: x.relu() + 1, backend=backend)(torch.ones(2))
"""
EAGER = 'config.debug.data_dump.type = "npy"; config.debug.data_dump.path = "eager"'
PT = 'config.mode = "npugraph_ex"; config.dump_config.enable_dump = True'
SAVE = 'os.environ["TORCH_COMPILE_DEBUG"] = "1"; config.mode = "reduce-overhead"'
IN_THE_WAY = 'os.mkdir("eager"); open("eager/worldsize1_global_rank0", "w").close()'
NO_DUMP = "$ msdump nan msdump_dump\n"


def run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(script)
    command = [sys.executable, "-m", "msdump", "run", "script.py"]
    variables = {name: value for name, value in os.environ.items() if name != "MINDSPORE_DUMP_CONFIG"}
    environment = {**variables, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)


@pytest.mark.parametrize(
    ("switches", "status", "said"),
    [
        (EAGER, 0, "eager data dump: 4 files and 1 link"),
        (PT, 0, "dump of captured graphs: 3 files"),
        ('config.debug.graph_dump.type = "py"', 0, "msdump: TorchAir's graph dump lies in "),
        (SAVE, 0, "msdump: TorchAir's debug save lies in "),
        (f"{EAGER}; config.debug.data_dump.filter = lambda node: None", 3, "!! Nothing was dumped: the filter chose"),
        (f'{EAGER}; open("eager", "w").close()', 2, "eager: expected a folder that can be made, got none"),
        (f"{EAGER}; {IN_THE_WAY}", 4, "!! The eager data dump is not complete, 5 values lost."),
        (f'{PT}; open("worldsize1_global_rank0", "w").close()', 4, "!! The dump of captured graphs is not complete"),
        ("pass", 0, NO_DUMP),
    ],
    ids=[
        "eager",
        "captured",
        "graph dump",
        "debug save",
        "filter",
        "no folder",
        "eager fails",
        "captured fails",
        "none",
    ],
)
def test_what_the_script_configures_is_reported(switches: str, status: int, said: str, tmp_path: Path) -> None:
    done = run(tmp_path, BEGIN + switches + END)
    assert done.returncode == status, done.stderr
    assert said in done.stderr
    assert (NO_DUMP in done.stderr) == (said == NO_DUMP)
    assert ("Nothing was dumped" in done.stderr) == ("Nothing was dumped" in said)


CHILDREN = f"""
if len(sys.argv) > 1:
    {EAGER}
    config.debug.data_dump.path = sys.argv[1]
    {END.strip().replace(chr(10), chr(10) + "    ")}
    sys.exit(0)
os.mkdir("bad")
open("bad/worldsize1_global_rank0", "w").close()
for path in ("whole", "bad"):
    subprocess.run([sys.executable, __file__, path], check=True)
"""


def test_a_dump_of_a_child_that_is_not_complete_shows_in_the_exit_status(tmp_path: Path) -> None:
    done = run(tmp_path, BEGIN + CHILDREN)
    assert done.returncode == 4, done.stderr
    assert "dumped 5 tensors to" in done.stderr
    assert "!! The dump is not complete.\n!! Process " in done.stderr and "expected a folder, got a file" in done.stderr
    assert NO_DUMP not in done.stderr


def test_a_child_in_the_folder_of_its_parent_is_refused(tmp_path: Path) -> None:
    child = 'if len(sys.argv) == 1: print("child", subprocess.run([sys.executable, __file__, "child"]).returncode)'
    done = run(tmp_path, BEGIN + EAGER + END + child)
    assert done.returncode == 0 and done.stdout == "child 1\n"
    assert "ConfigError" in done.stderr and "expected one process for each rank" in done.stderr
    (graph,) = (tmp_path / "eager" / "worldsize1_global_rank0").iterdir()
    assert len(list((graph / "0").iterdir())) == 5
