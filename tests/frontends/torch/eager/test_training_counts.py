"""How many iterations a step of an optimizer has, in the report and in the dump, where that is not one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import msdump  # noqa: E402
from msdump.formats.steps_json import OptimizerSteps, TrainingSteps  # noqa: E402
from msdump.frontends.torch.eager.training_counts import TrainingCounts  # noqa: E402
from msdump.viewing.pages import Pages  # noqa: E402
from tests.frontends.torch.eager.test_watch import ROOT, config, pytestmark  # noqa: E402, F401


def text_of(watch: Any) -> str:
    report = watch.report()
    assert report is not None and not report.error
    return str(report.training)


def test_a_step_for_each_small_batch(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with msdump.watch(model, config(tmp_path, iteration="0")) as watch:
        for number in range(12):
            model(torch.ones(1, 3)).sum().backward()
            if number % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
            watch.step()
    assert text_of(watch) == "iterations per optimizer step: 4 for each step of SGD"
    dump = msdump.open(tmp_path, strict=True)
    assert dump.training_steps == {0: TrainingSteps(12, (OptimizerSteps("SGD", 3, 3, 11),))}
    from msdump.analysis.overview.contents import Contents

    assert Pages(Contents(dump)).get("overview")["notes"] == [f"{text_of(watch)}."]


def test_an_optimizer_in_each_step_says_nothing(tmp_path: Path) -> None:
    """Nor one whose step a scaler skips, nor evaluation between the steps, nor accumulated gradients."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
    with msdump.watch(model, config(tmp_path)) as watch:
        for step in range(4):
            for _ in range(1 + step % 2):
                scaler.scale(model(torch.ones(1, 3) * 1e30).square().sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            with torch.no_grad():
                model(torch.ones(1, 3))
    assert text_of(watch) == "" and msdump.open(tmp_path).training_steps == {}


def test_two_optimizers_in_turn(tmp_path: Path) -> None:
    maker, judge = nn.Linear(2, 3), nn.Linear(3, 1)
    of_maker, of_judge = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())
    with msdump.watch(config=config(tmp_path)) as watch:
        for _ in range(3):
            of_judge.zero_grad()
            judge(maker(torch.ones(2, 2)).detach()).sum().backward()
            of_judge.step()
            of_maker.zero_grad()
            judge(maker(torch.ones(2, 2))).sum().backward()
            of_maker.step()
    assert text_of(watch) == "iterations per optimizer step: 2 for each step of each of 2 optimizers Adam"


def test_two_optimizers_in_each_step_say_nothing(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizers = [torch.optim.SGD(part.parameters(), 0.1) for part in model]
    with msdump.watch(model, config(tmp_path)) as watch:
        for _ in range(3):
            model(torch.ones(2, 3)).square().sum().backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
    assert text_of(watch) == ""


def test_what_runs_while_the_dump_pauses_does_not_count(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with msdump.watch(model, config(tmp_path)) as watch:
        for _ in range(3):
            watch.resume()
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()
            watch.step()
            watch.pause()
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()
    assert text_of(watch) == ""


def test_an_optimizer_is_known_by_itself() -> None:
    counts = TrainingCounts()
    parameter = nn.Parameter(torch.ones(1))
    counts.note_step(torch.optim.SGD([parameter]))  # before any backward
    for _ in range(3):
        counts.begin_iteration()
        counts.note_step(torch.optim.SGD([parameter]))  # is gone at once
    assert counts.so_far() == TrainingSteps(3, tuple(OptimizerSteps("SGD", 1, at, at) for at in range(3)))


KILLED = """
import os, signal, torch
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
import msdump
with msdump.watch(model) as watch:
    for number in range(8):
        model(torch.ones(1, 3)).sum().backward()
        if number % 2:
            optimizer.step()
        watch.step()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_script_that_is_killed_leaves_what_was_known(tmp_path: Path) -> None:
    import json

    (tmp_path / "dump.json").write_text(json.dumps(config(tmp_path / "dump")))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MINDSPORE_DUMP_CONFIG": str(tmp_path / "dump.json")}
    done = subprocess.run([sys.executable, "-c", KILLED], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (steps,) = msdump.open(tmp_path / "dump").training_steps.values()
    assert steps.text == "iterations per optimizer step: 2 for each step of SGD"
