"""Runs of small scripts in which one system call has another outcome, and what they leave on disk."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from msdump.formats.acl_stats_csv import read_acl_stats
from msdump.formats.bin import read_bin
from msdump.formats.npy_reader import read_npy
from msdump.formats.sidecars import read_history, read_mapping, read_order
from msdump.formats.statistic_csv import read_statistic_csv
from msdump.graph.ir import parse_ir
from msdump.graph.pb import read_model
from msdump.storage.plain import is_temporary
from tests.faults.scripts import Entry

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("failing_calls.c")
SHORT, KILL_BEFORE, KILL_BEHIND, KILL_HALF = -1, -2, -3, -4
_NUMBERS = re.compile(r"\d{10,}")


def build_library(folder: Path) -> Path | str:
    """The library that makes calls fail; a reason where there is none."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not sys.platform.startswith("linux") or compiler is None:
        return "needs Linux and a C compiler"
    library = folder / "failing_calls.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    return library if done.returncode == 0 else f"the C compiler fails: {done.stderr[-300:]}"


@dataclass(frozen=True)
class Fault:
    """Outcome of one call, as failing_calls.c knows it; `number` -1 changes nothing."""

    number: int = -1
    outcome: int = 0
    is_lasting: bool = False


@dataclass(frozen=True)
class Run:
    """What a run came to.   `calls`: names in order; () of a process that was killed."""

    status: int
    stdout: str
    stderr: str
    calls: tuple[str, ...]

    @property
    def results(self) -> list[str]:
        return [line for line in self.stdout.splitlines() if line.startswith("result")]


class Server:
    """The process that forks the runs of one family; see server.py."""

    def __init__(self, family: str, library: Path) -> None:
        environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.server", family],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=environment,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def run(self, entry: Entry, folder: Path, fault: Fault = Fault()) -> Run:
        """Run an entry's script in this folder; its dump goes to the folder `dump` in it."""
        (folder / "script.py").write_text(entry.script)
        entry.prepare(folder)
        command = [part.format(folder=folder) for part in entry.command] or ["run", *entry.options, "script.py"]
        return self.run_command(command, folder, fault, entry.below)

    def run_command(self, command: Sequence[str], folder: Path, fault: Fault = Fault(), below: str = "dump") -> Run:
        """Run `msdump` with this command line in a folder; calls on files below the folder `below` in it count."""
        (folder / "calls.json").unlink(missing_ok=True)
        request = {
            "command": [*command],
            "folder": str(folder),
            "below": str(folder / below),
            "environment": {"MSDUMP_DISK_FLOOR": "0"},
            "number": fault.number,
            "outcome": fault.outcome,
            "is_lasting": fault.is_lasting,
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        trace = folder / "calls.json"
        calls = json.loads(trace.read_text()) if trace.exists() else ()
        texts = [(folder / name).read_text(errors="replace") for name in ("stdout", "stderr")]
        return Run(answer["status"], *texts, tuple(calls))

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


def tensors_on_disk(root: Path) -> Counter[str]:
    """Every tensor and every row below a dump, as a text that two equal runs share. Reads each file to its end.

    Raises: FormatError for a file that is not whole.
    """
    shown: Counter[str] = Counter()
    for path in sorted(path for path in root.rglob("*") if path.is_file() and not _is_hidden(path.relative_to(root))):
        shown.update(_shown(path, _NUMBERS.sub("#", str(path.relative_to(root)))))
    return shown


def _is_hidden(path: Path) -> bool:
    """What has not got its name yet, or lies in a folder of that kind."""
    return any(is_temporary(part) for part in path.parts)


def temporary_files(root: Path) -> list[Path]:
    return [path for path in root.rglob(".*") if path.name.endswith(".tmp")]


def cut_tables(root: Path) -> list[Path]:
    """Those whose last line has no end: what a process leaves that is killed while it adds a line, until the next."""
    return [path for path in root.rglob("*.csv") if path.read_bytes()[-1:] not in (b"\n", b"")]


_READERS: dict[str, Callable[[Path], object]] = {
    "mapping": read_mapping,
    "ms_global_execution_order": read_history,
    "ms_execution_order": read_order,
}


def _shown(path: Path, name: str) -> list[str]:
    if path.suffix == ".npy":
        return [f"{name} {_digest(read_npy(path).tobytes())}"]
    if path.name == "statistic.csv":
        return [f"{name} {row.op_name} {row.io} {row.slot} {row.max}" for row in read_statistic_csv(path)]
    if path.suffix == ".ir":
        return [f"{name} {len(parse_ir(path.read_text()).nodes)}"]
    if path.suffix == ".pb":
        return [f"{name} {len(read_model(path).nodes)}"]
    if path.suffix == ".json":
        json.loads(path.read_bytes())
        return [name]
    if path.suffix == ".csv":
        if path.name.count(".") > 3:
            return [f"{name} {row.io} {row.slot} {row.max}" for row in read_acl_stats(path)]
        read = next((read for part, read in _READERS.items() if part in path.name), None)
        assert read is not None, path
        read(path)
        return []
    tensors = read_bin(path).tensors
    return [f"{name} {tensor.io} {tensor.slot} {_digest(tensor.payload.tobytes())}" for tensor in tensors]


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()
