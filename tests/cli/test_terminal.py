"""Every command on a real terminal of 80 columns, the most used on one of 60: no line is wider, the verdict is there.

The dumps are real: a script of PyTorch with names as they occur, dumped by `msdump run`; a job of four ranks; a model.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest

from msdump.cli.layout import text_width
from msdump.cli.main import COMMANDS, main

pytest.importorskip("torch")
pytest.importorskip("duckdb")

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """\
import sys
import torch
from torch import nn
from torch.nn import functional as F

form, scale = sys.argv[1], float(sys.argv[2])
torch.manual_seed(0)


class FeedForwardBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.first_normalisation, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 32), nn.Linear(32, 8)

    def forward(self, hidden_states):
        return hidden_states + self.down(F.gelu(self.up(self.first_normalisation(hidden_states)), approximate=form))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(FeedForwardBlock() for _ in range(3))

    def forward(self, hidden_states):
        for block in self.blocks:
            hidden_states = block(hidden_states)
        return hidden_states


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = (model(torch.randn(4, 8)) / (scale if step == 1 else 1.0)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")


def on_terminal(
    folder: Path, words: Sequence[str], columns: int, interrupt_at: bytes | None = None
) -> tuple[int, list[str]]:
    """The exit status of a command, and the lines that stand on its terminal at the end.

    interrupt_at  text behind which the command gets SIGINT
    """
    master, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    environment |= {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "XDG_CACHE_HOME": str(folder / ".cache")}
    process = subprocess.Popen(
        [sys.executable, "-m", "msdump", *words], cwd=folder, env=environment, stdin=end, stdout=end, stderr=end,
        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(end)
    output = b""
    try:
        while block := _read(master):
            output += block
            if interrupt_at is not None and interrupt_at in output:
                process.send_signal(signal.SIGINT)
                interrupt_at = None
    finally:
        os.close(master)
        status = process.wait(120)
    text = _ESCAPES.sub("", output.decode()).replace("\r\n", "\n")
    # What a carriage return goes back over is a progress line.
    return status, [line.rpartition("\r")[2] for line in text.split("\n")]


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other end has gone
        return b""


def configuration(folder: Path, name: str, saved_data: str = "tensor") -> str:
    common = {
        "dump_mode": 0, "path": str(folder / name), "net_name": "Net", "iteration": "all", "saved_data": saved_data,
        "input_output": 0, "kernels": [], "support_device": list(range(8)),
    }  # fmt: skip
    content = {"common_dump_settings": common, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
    (folder / f"{name}.json").write_text(json.dumps(content))
    return f"{name}.json"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with dumps: `good`, `gelu` with another form of an operator, `bad` with Inf and NaN, their statistics,
    `job` of four ranks with one outvoted, and its tables; a model with its acl.json.
    """
    onnx = pytest.importorskip("onnx")
    from tests.analysis.ranks.test_words import make_job

    folder = tmp_path_factory.mktemp("places")
    (folder / "train.py").write_text(SCRIPT)
    (folder / "note.py").write_text("print('done')\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for name, form, scale in (("good", "none", "1"), ("gelu", "tanh", "1"), ("bad", "none", "0")):
        words = ["run", "--config", configuration(folder, name), "--torch-eager", "train.py", form, scale]
        subprocess.run(
            [sys.executable, "-m", "msdump", *words], cwd=folder, env=environment, check=True, capture_output=True
        )
    configuration(folder, "again")
    for name in ("good", "gelu", "bad"):
        assert main(["stat", str(folder / name), "--csv", str(folder / f"{name}_statistics")]) == 0
    job = make_job(folder / "job", lambda rank, iteration, name: float(rank == 2 and iteration == 1 and name == "head"))
    assert main(["ranks", str(job), "--jobs", "1", "--tables", str(folder / "tables")]) == 1
    for name in ("packed", "cut"):
        shutil.copytree(folder / "good", folder / name)
    assert main(["pack", str(folder / "packed")]) == main(["pack", str(folder / "cut")]) == 0
    pack = next((folder / "cut").rglob("*.tar"))
    pack.write_bytes(pack.read_bytes()[:-700])
    pack.rename(f"{pack}.part")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    ends = [[helper.make_tensor_value_info(name, kind, [2])] for name in ("x", "a_long_name_of_an_output_of_a_model")]
    graph = helper.make_graph([helper.make_node("Sqrt", ["x"], [ends[1][0].name], "sqrt")], "net", *ends)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "net.onnx")
    (folder / "onnx_dump").mkdir()
    dump = {"dump_path": str(folder / "onnx_dump"), "dump_list": [{"model_name": "net"}], "dump_mode": "all"}
    (folder / "acl.json").write_text(json.dumps({"dump": dump}))
    return folder


# Line -> what must stand in its output.
LINES = {
    "demo --steps 0": "expected a number of at least 1",
    "run --config again.json --torch-eager train.py none 1": "tensors",
    "run note.py": "imports none of MindSpore",
    "acl run net.onnx --random 0 --dump acl.json": "float32",
    "acl check acl.json": "sqrt|every model|net",
    "init --answers look,mindspore,0,any,tensor -o new.json --force": "written",
    "plan again.json": "iterations",
    "recorder list good": "no incident",
    "trigger good": "without a running recorder",
    "ls good": "3 iterations",
    "show bad aten.div.Tensor-op0@0.0.1": "Inf",
    "show bad_statistics aten.div.Tensor-op0@0.0.1": "statistics only",
    "show good F.gelu": "aten.gelu.default-op",
    "show good aten.gelu": "Did you mean|aten.gelu",
    "report bad -o report.html": "first Inf",
    "plot good": "l2norm",
    "plot good gelu --by iteration": "l2norm of GOLDEN",
    "stat bad": "NaN|Inf|ok",
    "stat bad --sort nan --top 3": "NaN",
    "stat good --columns operator,max,min": "max",
    "stat bad_statistics --golden good_statistics": "differs",
    "stat good --unchanged": "parameters have changed",
    "nan bad": "first unexpected Inf",
    "nan bad --brief": "@0.0.1",
    "nan bad --all": "first NaN",
    "nan good": "finite",
    "compare gelu good": "first wrong operator",
    "compare gelu good --all": "identical|agrees",
    "compare gelu good --brief": "WRONG",
    "compare good good": "agree:",
    "ranks job --jobs 1": "rank 2 is outvoted",
    "ranks job --jobs 1 --brief": "rank 2 is outvoted",
    "ranks tables --ask hashes": "head",
    "ranks tables --sql 'select * from tensors'": "l2norm",
    "replay good aten.gelu.default-op0@0.0.0": "explained",
    "replay good aten.gelu.default-op0@0.0.0 -o script": r"\.py",
    "zoom bad aten.div.Tensor-op0": "configuration",
    "pack good --keep": "files",
    "pack packed --undo": "files",
    "pack cut --repair": "files",
    "pack nowhere --upload memory://job": "nowhere",
    "convert good -t bin -o converted -q": "",
    "convert good -t bin -o converted": "files",
    "export good --to sqlite -o x.sqlite": "x.sqlite",
    "export bad --to github": "NaN|Inf",
    "schema acl": "properties",
    "completion bash": "",
    "msaccucmp --help": "usage",
    "doctor good": "versions",
    "mcp nowhere": "expected a folder",
    "skill": "msdump nan DUMP",
    "docs loss is NaN": "my-loss-is-nan.md",
    "docs --page ranks.md#questions": "first-divergence",
    "ls . --dumps": "gelu",
    "show bad aten.div.Tensor-op0@0.0.1 --tensor output:0": "Inf at",
    "where good F.gelu --no-files": "aten.gelu.default-op",
    "where good F.gelu": "aten.gelu.default-op",
    "repro good aten.gelu.default-op1@0.0.0 -o script2": r"\.py",
    "query tables": "head",
    "unpack packed": "",
    "recover good": "whole",
    "upload nowhere memory://job": "nowhere",
    "--help": "msdump COMMAND --help",
    "compare nowhere good": "nowhere",
}
# Documents and code, whose lines are theirs.
RAW = ("schema", "completion", "skill", "export bad --to github")
NARROW = (
    "ls good", "show bad aten.div.Tensor-op0@0.0.1", "stat bad", "nan bad", "compare gelu good",
    "compare gelu good --brief", "ranks job --jobs 1", "plot good", "replay good aten.gelu.default-op0@0.0.0", "--help",
)  # fmt: skip


def too_wide(lines: Sequence[str], columns: int) -> list[str]:
    """Lines that do not fit. A path in a command stays whole, alone on its line, so that the command can be copied."""
    wide = [line for line in lines if text_width(line) > columns]
    return [line for line in wide if not (line.startswith("      /") and " " not in line.strip().removesuffix(" \\"))]


@pytest.mark.parametrize("line", LINES)
def test_every_command_fits_80_columns(line: str, places: Path) -> None:
    _, lines = on_terminal(places, shlex.split(line), 80)
    text = "\n".join(lines)
    assert "Traceback" not in text
    assert re.search(LINES[line], text), text
    if not line.startswith(RAW):
        assert not too_wide(lines, 80), text


@pytest.mark.parametrize("line", NARROW)
def test_the_most_used_fit_60_columns(line: str, places: Path) -> None:
    _, lines = on_terminal(places, shlex.split(line), 60)
    text = "\n".join(lines)
    assert re.search(LINES[line], text.replace("\n    ", " ")), text
    assert not too_wide(lines, 60), text


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_text_fits(
    command: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit):
        main([command, "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert "exit status:" in lines or command == "msaccucmp"
    assert not [line for line in lines if text_width(line) > columns], "\n".join(lines)


def test_the_viewer_prints_its_address_in_one_piece(places: Path) -> None:
    pytest.importorskip("uvicorn")
    status, lines = on_terminal(places, ["view", "good", "--no-browser"], 80, interrupt_at=b"until Ctrl-C.")
    (address,) = [line for line in lines if line.startswith("http://")]
    assert status == 0 and " " not in address
    assert not too_wide([line for line in lines if line != address], 80)


def test_every_command_is_looked_at() -> None:
    assert {line.split()[0] for line in LINES} >= set(COMMANDS) - {"view"}


def test_a_verdict_is_coloured_alike_in_all_commands(places: Path) -> None:
    for words in (["nan", "bad"], ["compare", "gelu", "good"], ["ranks", "job", "--jobs", "1"]):
        assert red_start(places, words), words


def red_start(folder: Path, words: Sequence[str]) -> bool:
    master, end = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    with open(os.devnull, "wb") as nothing:
        process = subprocess.Popen(
            [sys.executable, "-m", "msdump", *words], cwd=folder, env=environment, stdout=end, stderr=nothing
        )
    os.close(end)
    output = b""
    while block := _read(master):
        output += block
    os.close(master)
    return process.wait(120) == 1 and output.startswith(b"\x1b[1;31m")
