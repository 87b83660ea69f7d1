"""Run a program as its user does, ask msdump about it, and keep what was said."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.answers.judging import Said
from tests.answers.program import Program
from tests.forks import Forks

ROOT = Path(__file__).resolve().parent.parent.parent
TIMEOUT_S = 300
# Names a folder in which dumps stay, for those that change nothing but how msdump answers.
KEPT = "ANSWERS_DUMPS"
_FINISHED = "finished"
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


# What the processes import before the first command, where it is installed. With PyTorch imported already, `msdump run`
# does not see that a script imports it: programs of PyTorch name the way in, `--torch-eager`.
_LIBRARIES = ("numpy", "numba", "pydantic", "google.protobuf.message", "ml_dtypes", "msdump.cli.main")
_FRAMEWORKS = (
    *(*_LIBRARIES, "torch", "torch._dynamo", "onnx", "msdump.cli.run", "msdump.cli.ways", "msdump.cli.launch"),
    *("msdump.config.mindspore", "msdump.engine.graphs", "msdump.engine.opening"),
    *("msdump.frontends.torch.eager.watching", "msdump.analysis.find.hints"),
)
_COMMANDS = (*_LIBRARIES, "msdump.cli.nan", "msdump.cli.compare", "msdump.cli.ranks", "msdump.cli.stat")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What msdump said of a program.

    healthy  None where the program already went wrong in a way that it does not state
    broken   why there is no answer at all: the program, or the dump, ended with another status; else ""
    """

    faulty: Said
    healthy: Said | None
    broken: str = ""


class Shell:
    """Types commands, each of which runs in a process of its own."""

    def __init__(self) -> None:
        with ExitStack() as stack:
            self._dumping, self._asking = (
                stack.enter_context(Forks(modules, ROOT, _environment())) for modules in (_FRAMEWORKS, _COMMANDS)
            )
            self._stack = stack.pop_all()

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def dump(self, command: str, folder: Path) -> Said:
        """Run a command that dumps; what it printed, errors included."""
        status, text, _ = self._dumping.printed(_words(command), folder, TIMEOUT_S, is_joined=True)
        return Said(status, text)

    def ask(self, question: str, folder: Path) -> Said:
        """Ask; what was printed, which is errors where there is nothing else."""
        status, printed, complaint = self._asking.printed(_words(question), folder, TIMEOUT_S, is_joined=False)
        return Said(status, (printed if printed.strip() else complaint).replace(f"{folder}/", ""))


def run_program(program: Program, shell: Shell) -> Outcome:
    """Dump each form of a program in a folder of its own, and ask."""
    with _folder(program) as folder:
        if broken := dumped(program, folder, shell):
            return Outcome(Said(1, ""), None, broken)
        faulty, healthy = (shell.ask(asked(program, mode), folder) for mode in ("faulty", "healthy"))
        return Outcome(faulty, healthy)


def dumped(program: Program, folder: Path, shell: Shell) -> str:
    """Dump each form, unless the folder has it; what went wrong with that, or ""."""
    finished = folder / _FINISHED
    if finished.exists():
        return finished.read_text(encoding="utf-8")
    (folder / program.path.name).write_bytes(program.path.read_bytes())
    broken = ""
    for mode in program.modes:
        done = shell.dump(dump_command(program, mode, folder), folder)
        expected = program.answer.ends if mode == "faulty" else 0
        if done.exit != expected:
            last = (done.text.strip().splitlines() or [""])[-1]
            broken = f"run {mode} ended with {done.exit}: {last}"
            break
    finished.write_text(broken, encoding="utf-8")
    return broken


@contextmanager
def _folder(program: Program) -> Iterator[Path]:
    """A fresh folder; one that stays where KEPT names a place for it, as long as the program is the same."""
    if kept := os.environ.get(KEPT):
        # No name: what answers say of the folder is not what they find.
        folder = Path(kept, hashlib.sha256(program.name.encode() + program.path.read_bytes()).hexdigest()[:16])
        if not (folder / _FINISHED).exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        yield folder
    else:
        with tempfile.TemporaryDirectory(prefix="msdump-answers-") as name:
            yield Path(name)


def dump_command(program: Program, mode: str, folder: Path) -> str:
    """The command that dumps, after its configuration is written."""
    answer = program.answer
    config = f"{mode}.json"
    (folder / config).write_text(json.dumps(configuration(program, folder / mode), indent=1), encoding="utf-8")
    own = answer.run if isinstance(answer.run, str) else answer.run.get(mode, "")
    command = own or _DUMPED.get(answer.entry, _PLAIN)
    if answer.ranks and not own:
        command = command.replace("{script}", _JOB)
    filled = command.format(config=config, script=program.path.name, mode=mode, ranks=answer.ranks)
    return f"{filled} {program.variant}".strip()


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
    question = (program.answer.twin if mode == "healthy" else "") or program.answer.ask
    return "msdump " + question.format(faulty=mode, healthy="healthy", golden="golden")


def _words(command: str) -> list[str]:
    """What follows `python`."""
    first, *words = shlex.split(command)
    return ["-m", "msdump", *words] if first == "msdump" else words


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("MSDUMP", "MINDSPORE", "PYTEST"))}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
