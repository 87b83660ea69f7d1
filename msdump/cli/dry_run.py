"""`msdump plan CONFIG --dry-run SCRIPT`: the first steps of a script with their dump, measured and thrown away.

The script runs in a process of its own, this module's `main`, and is ended after the step that is measured.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msdump.cli.printing import complain
from msdump.errors import DumpError, WriteError

if TYPE_CHECKING:
    from msdump.config.plan import DumpPlan
    from msdump.session import Session

# The first step compiles and makes folders; the second is as all others.
_STEPS = 2
_SHOWN_LINES = 20


@dataclass(frozen=True, slots=True)
class Measured:
    """One step with its dump. Sizes in bytes, times in seconds.

    iteration        that was measured
    step_seconds     wall time of the step, the dump included
    dump_seconds     of these, what the step spent in the dump
    waiting_seconds  how long files of an asynchronous dump were written after the step had ended
    """

    iteration: int
    files: int
    links: int
    bytes_written: int
    step_seconds: float
    dump_seconds: float
    waiting_seconds: float


def measure(plan: DumpPlan, command: Sequence[str]) -> Measured:
    """Run a script until one step was measured; the dump goes to a folder beside `path`, which is removed again.

    Raises: DumpError with the end of what the script printed when it fails, or computes nothing that is dumped;
            WriteError when there is no room for the folder.
    """
    folder = _folder_near(plan.path)
    try:
        config = json.loads(plan.config_text)
        config["common_dump_settings"].update(path=str(folder / "dump"), iteration="all")
        (folder / "dump.json").write_text(json.dumps(config))
        # The child's own `msdump` is this one, installed or not.
        paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
        done = subprocess.run(
            [sys.executable, "-m", __name__, str(folder), *command],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        try:
            return Measured(**json.loads((folder / "measured.json").read_text()))
        except (OSError, ValueError, TypeError):
            text = "\n".join(done.stdout.decode(errors="replace").splitlines()[-_SHOWN_LINES:])
            raise DumpError(
                f"{command[0]}: expected a script that runs a network whose device the configuration names, got none. "
                f"It ended with {done.returncode}:\n{text}"
            ) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _folder_near(path: Path) -> Path:
    """On the disk that the dump will go to.   Raises: WriteError."""
    while not path.is_dir() and path != path.parent:
        path = path.parent
    for parent in (path, None):
        with contextlib.suppress(OSError):
            return Path(tempfile.mkdtemp(prefix=".msdump-dry-run-", dir=parent))
    raise WriteError(f"{path}: expected a folder to measure in, got none that can be written. Choose another path.")


class _Stopwatch:
    """Looks at the dump between two steps, and ends the script when it has seen enough."""

    def __init__(self, result: Path) -> None:
        self._result = result
        self._iteration = -1
        self._began = 0.0
        self._before = (0, 0, 0, 0.0)

    def begin_step(self, session: Session) -> None:
        """A step begins; the one before it has ended.   Raises: SystemExit after the last one."""
        self.end_step(session)
        if self._iteration == _STEPS - 1:
            raise SystemExit(0)
        self._iteration += 1
        report = session.report()
        self._before = report.files, report.links, report.bytes_written, report.dump_seconds
        self._began = time.perf_counter()

    def end_step(self, session: Session) -> None:
        """Write down what the step took; a later one does so again."""
        ended = time.perf_counter()
        if self._iteration < 0:
            return
        if session.pool is not None:
            session.pool.drain()
        waited = time.perf_counter() - ended
        report = session.report()
        if report.error:
            complain(report.error)
            return
        files, links, size, seconds = self._before
        measured = Measured(
            self._iteration,
            report.files - files,
            report.links - links,
            report.bytes_written - size,
            ended - self._began,
            report.dump_seconds - seconds,
            waited,
        )
        self._result.write_text(json.dumps(asdict(measured)))


def main(arguments: Sequence[str]) -> int:
    """Run the script of the arguments below the folder that comes first; the result is the script's exit status."""
    from msdump import _startup
    from msdump import session as sessions
    from msdump.cli.launch import run_script
    from msdump.cli.run import CONFIG_VARIABLE

    folder, script, *rest = arguments
    os.environ[CONFIG_VARIABLE] = os.path.join(folder, "dump.json")
    watch = _Stopwatch(Path(folder, "measured.json"))
    sessions.on_step = watch.begin_step
    _startup.begin({"mindspore": False, "acl": False, "torchair": False, "torch_npu": True})
    status = run_script(script, rest)
    session = sessions.own()
    if session is not None and status == 0:
        watch.end_step(session)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
