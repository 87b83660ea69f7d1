"""Run a program as its user does, ask msdump about it, and keep what was said."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.answers.judging import Said
from tests.answers.program import Program

ROOT = Path(__file__).resolve().parent.parent.parent
TIMEOUT_S = 300
_DUMPED = {
    "eager": "msdump run --config {config} --torch-eager {script} {mode}",
    "compiled": "msdump run --config {config} --torch-backend msdump {script} {mode}",
    "mindspore": "msdump run --config {config} {script} {mode}",
    "pynative": "msdump run --config {config} {script} {mode}",
    "msprobe": "msdump run --as msprobe {script} {mode}",
}
# Programs of the other entries name their configuration themselves and dump into the folder that their argument names.
_PLAIN = "python {script} {mode}"
_JOB = "-m torch.distributed.run --standalone --nproc-per-node {ranks} {script}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What msdump said of a program.

    healthy  None where the program already went wrong in a way that it does not state
    broken   why there is no answer at all: the program, or the dump, ended with another status; else ""
    """

    faulty: Said
    healthy: Said | None
    broken: str = ""


def run_program(program: Program) -> Outcome:
    """Dump each form of a program in a fresh folder, and ask."""
    with tempfile.TemporaryDirectory(prefix="msdump-answers-") as name:
        folder = Path(name)
        script = folder / program.path.name
        script.write_bytes(program.path.read_bytes())
        for mode in program.modes:
            done = typed(dump_command(program, mode, folder), folder, subprocess.STDOUT)
            expected = program.answer.ends if mode == "faulty" else 0
            if done.exit != expected:
                last = (done.text.strip().splitlines() or [""])[-1]
                return Outcome(Said(done.exit, ""), None, f"run {mode} ended with {done.exit}: {last}")
        faulty, healthy = (typed(asked(program, mode), folder) for mode in ("faulty", "healthy"))
        return Outcome(faulty, healthy)


def dump_command(program: Program, mode: str, folder: Path) -> str:
    """The command that dumps, after its configuration is written."""
    answer = program.answer
    config = f"{mode}.json"
    (folder / config).write_text(json.dumps(configuration(program, folder / mode), indent=1), encoding="utf-8")
    own = answer.run if isinstance(answer.run, str) else answer.run.get(mode, "")
    command = own or _DUMPED.get(answer.entry, _PLAIN)
    if answer.ranks and not own:
        command = command.replace("{script}", _JOB)
    return command.format(config=config, script=program.path.name, mode=mode, ranks=answer.ranks)


def configuration(program: Program, path: Path) -> dict[str, Any]:
    """The dump configuration of one run."""
    common = {
        "dump_mode": 0, "path": str(path), "net_name": "Net", "iteration": "all", "saved_data": program.answer.saved,
        "input_output": 0, "kernels": [], "support_device": list(range(8)),
    }  # fmt: skip
    sections: dict[str, Any] = {
        "common_dump_settings": common,
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }
    for key, value in program.answer.config.items():
        if key.endswith("_settings"):
            sections.setdefault(key, {}).update(value)
        else:
            common[key] = value
    return sections


def asked(program: Program, mode: str = "faulty") -> str:
    """The question, with the folder of that run in place of the faulty one."""
    return "msdump " + program.answer.ask.format(faulty=mode, healthy="healthy", golden="golden")


def typed(command: str, folder: Path, errors: int = subprocess.PIPE) -> Said:
    """Run it; what it printed, which is its errors where there is nothing else."""
    words = shlex.split(command)
    words[:1] = [sys.executable, *(["-m", "msdump"] if words[0] == "msdump" else [])]
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        printed, complaint = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the ranks that it started
        printed, _ = process.communicate()
        return Said(124, f"{printed}\nno end after {TIMEOUT_S} s")
    return Said(process.returncode, printed if printed.strip() else complaint or "")


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("MSDUMP", "MINDSPORE", "PYTEST"))}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
