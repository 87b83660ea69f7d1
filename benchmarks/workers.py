"""Processes that measure in turns: each builds its subject once, and one of them runs at a time.

A worker that waits is stopped (SIGSTOP): threads of a library that spin while they wait would take the others' cores.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_MARK = "@@ "


class WorkerError(RuntimeError):
    """A worker ended; the message is what it said last."""


class Worker:
    """`python -m benchmarks.subjects NAME ARGUMENTS` in an interpreter of its own, stopped between its turns."""

    def __init__(
        self,
        subject: str,
        python: Path | str = sys.executable,
        environ: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()  # MindSpore leaves files where it runs
        self._errors = open(Path(self._folder.name) / "stderr", "w+")  # noqa: SIM115  (lives as long as the process)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})}
        command = [str(python), "-m", "benchmarks.subjects", subject, json.dumps(arguments)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
            cwd=self._folder.name, env=environment,
        )  # fmt: skip
        try:
            self.first = self._answer()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def turn(self) -> Any:
        """What the subject measures in one turn."""
        self._process.send_signal(signal.SIGCONT)
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(_MARK):
                self._process.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
                return json.loads(line.removeprefix(_MARK))
        self._errors.seek(0)
        raise WorkerError(self._errors.read()[-2000:])

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()
        self._folder.cleanup()


def answer(first: Any, call: Callable[[], Any]) -> None:
    """The child's side: what it has to say first, and then one result for each line that comes in."""
    print(f"{_MARK}{json.dumps(first)}", flush=True)
    for _ in sys.stdin:
        print(f"{_MARK}{json.dumps(call())}", flush=True)
