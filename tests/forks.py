"""Python processes that begin at once: forks of a process that has imported large libraries already.

`python -m tests.forks MODULE ...` imports what it can of the modules and reads one JSON object a line, a command. A
fork becomes that command, as `python WORDS` would be, down to what Python does when it ends; the answer is one line.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

TIMEOUT = 124


@dataclass(frozen=True, slots=True)
class Command:
    """What follows `python` on a command line, and where.

    output, errors  files for what is printed; without `errors` both go into one
    limit           seconds after which the command and all that it started are killed
    memory          bytes that it may ask for; 0 without a limit
    """

    words: Sequence[str]
    folder: str
    output: str
    errors: str = ""
    limit: float = 300.0
    memory: int = 0


@dataclass
class Forks:
    """A process that has imported `modules`; it starts with the first command.

    folder       where it starts: modules of this folder are imported first
    environment  its variables, and those of all commands
    """

    modules: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    _server: subprocess.Popen[str] | None = field(default=None, init=False)

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._server is not None:
            self._server.terminate()
            self._server.wait()
            for pipe in (self._server.stdin, self._server.stdout):
                assert pipe is not None
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
            self._server = None

    def run(self, command: Command) -> tuple[int, float]:
        """Exit status, TIMEOUT where there was no end within the limit, and seconds."""
        server = self._started()
        assert server.stdin is not None and server.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            server.stdin.write(json.dumps(asdict(command)) + "\n")
            server.stdin.flush()
        line = server.stdout.readline()
        if not line:
            raise RuntimeError(
                f"forks: expected an answer, got the end of the process, {server.wait()}. See its errors."
            )
        answer: dict[str, Any] = json.loads(line)
        return answer["status"], answer["seconds"]

    def printed(self, words: Sequence[str], folder: Path, limit: float, *, is_joined: bool) -> tuple[int, str, str]:
        """Exit status, output and errors of a command; where they are joined all of it is output."""
        with tempfile.TemporaryDirectory(prefix="msdump-forks-") as name:
            output, errors = Path(name, "output"), Path(name, "errors")
            errors.touch()
            command = Command(words, str(folder), str(output), "" if is_joined else str(errors), limit)
            status, _ = self.run(command)
            printed, complaint = (path.read_text(encoding="utf-8", errors="replace") for path in (output, errors))
            return status, printed, complaint

    def _started(self) -> subprocess.Popen[str]:
        if self._server is None:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "tests.forks", *self.modules],
                cwd=self.folder,
                env=dict(self.environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        return self._server


def main(modules: Sequence[str]) -> None:
    """Serve until standard input ends; a fork goes on as its command."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        command = _served(modules)
    except SystemExit:
        os._exit(1)  # nothing is left to do, and the libraries need seconds to end
    if command is not None:
        # No frame of the server handles what the command raises, and the fork ends as any Python does.
        _become(command)


def _served(modules: Sequence[str]) -> Command | None:
    """In a fork the command that it is to become; None at the end of standard input."""
    for module in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    for line in sys.stdin:
        command = Command(**json.loads(line))
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            return command
        status = _waited(child, command.limit)
        print(json.dumps({"status": status, "seconds": time.monotonic() - started}), flush=True)
    return None


def _waited(child: int, limit: float) -> int:
    """Exit status of a fork, or TIMEOUT; every process of its group is gone afterwards."""
    end = time.monotonic() + limit
    pause = 0.001
    try:
        while time.monotonic() < end:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(pause)
            pause = min(0.02, pause * 1.5)
        return TIMEOUT
    finally:
        # Also when Ctrl-C or SIGTERM ends this process.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # it has been waited for
            os.waitpid(child, 0)


def _become(command: Command) -> None:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    output, errors = (
        os.open(path or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        for path in (command.output, command.errors)
    )
    for source, target in ((nothing, 0), (output, 1), (errors if command.errors else output, 2)):
        os.dup2(source, target)
    for source in (nothing, output, errors):
        os.close(source)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  (as long as the process)
    if command.memory:
        resource.setrlimit(resource.RLIMIT_DATA, (command.memory, command.memory))
    os.chdir(command.folder)
    spawned = sys.modules.get("multiprocessing.process")
    if spawned is not None:
        spawned.ORIGINAL_DIR = command.folder  # type: ignore[attr-defined]  # where what it spawns looks for the script
    is_module = command.words[0] == "-m"
    name, *arguments = command.words[is_module:]
    sys.argv = [name, *arguments]
    sys.path[0] = command.folder
    if is_module:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(name, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
