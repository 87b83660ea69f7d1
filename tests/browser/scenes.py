"""Dumps to look at: known failures, made small, whose pages are pictures of README and reports of the gallery."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.rows.viewer import make_dump
from tests.answers.program import load
from tests.answers.running import Shell, dump_command

ROOT = Path(__file__).parents[2]
TRAINING = """\
import torch
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 3)
        self.head = nn.Linear(32, 4)

    def forward(self, words, lengths):
        inside = torch.arange(words.shape[1]) < lengths[:, None]
        scores = self.head(self.body(words))
        share = inside / inside.sum(1, keepdim=True)
        return (scores * share[..., None]).sum(1)


net = Classifier()
optimizer = torch.optim.AdamW(net.parameters(), 3e-3)
for step in range({steps}):
    lengths = torch.randint(1, 7, (8,))
    if step == {empty}:
        lengths[3] = 0
    kind = torch.randint(0, 4, (8,))
    words = torch.randn(8, 6, 32) + kind[:, None, None]
    loss = nn.functional.cross_entropy(net(words, lengths), kind)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """A dump and, where it is compared, its golden one.   about: what went wrong, in one sentence"""

    name: str
    about: str
    make: Callable[[Path], tuple[Path, Path | None]]


def _training(steps: int, empty: int) -> Callable[[Path], tuple[Path, Path | None]]:
    def make(folder: Path) -> tuple[Path, Path | None]:
        (folder / "train.py").write_text(TRAINING.format(steps=steps, empty=empty))
        common = {
            "dump_mode": 0, "path": str(folder / "dump"), "net_name": "Classifier", "iteration": "all",
            "saved_data": "statistic", "input_output": 0, "kernels": [], "support_device": [0],
        }  # fmt: skip
        config = {"common_dump_settings": common, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
        (folder / "dump.json").write_text(json.dumps(config))
        _run(folder, "run", "--config", "dump.json", "--torch-eager", "train.py")
        return folder / "dump", None

    return make


def _program(name: str) -> Callable[[Path], tuple[Path, Path | None]]:
    """The faulty form of a program of tests/answers, beside its golden one where it has such a form."""

    def make(folder: Path) -> tuple[Path, Path | None]:
        program = load(name)
        (folder / program.path.name).write_bytes(program.path.read_bytes())
        modes = [mode for mode in program.modes if mode in ("faulty", "golden")]
        with Shell() as shell:
            for mode in modes:
                done = shell.dump(dump_command(program, mode, folder), folder)
                assert done.exit == 0, done.text
        return folder / "faulty", folder / "golden" if "golden" in modes else None

    return make


def _demo(folder: Path) -> tuple[Path, Path | None]:
    _run(folder, "demo", "--out", "demo")
    return folder / "demo" / "dump", None


def _large(folder: Path) -> tuple[Path, Path | None]:
    (folder / "dump").mkdir()
    make_dump(folder / "dump", 20_000, has_large=False)
    return folder / "dump", None


def _run(folder: Path, *command: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "msdump", *command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _of_answers(name: str) -> Scene:
    return Scene(name.replace("_", "-"), load(name).summary, _program(name))


NAN = Scene(
    "nan-in-iteration-12",
    "A transformer averages over the words of each sentence, and in iteration 12 one sentence of a batch is empty.",
    _training(20, 12),
)
GALLERY = (
    NAN,
    _of_answers("gelu_form"),
    _of_answers("flipped_bit"),
    _of_answers("quantised_outlier"),
    _of_answers("mindspore_masked_row"),
    _of_answers("overflow_before_nan"),
    _of_answers("report_left_in_evaluation"),
)
HEALTHY = Scene("healthy", "The same transformer, and nothing is wrong.", _training(60, -1))
DEMO = Scene("alexnet", "A step of AlexNet, and nothing is wrong.", _demo)
LARGE = Scene("large", "20,000 operators, and nothing is wrong.", _large)
SCENES = {scene.name: scene for scene in (*GALLERY, HEALTHY, DEMO, LARGE)}
