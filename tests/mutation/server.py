"""A process that runs test files again and again, each time in a fork that has imported the libraries already.

It reads one JSON list per line, the arguments of pytest, and answers with {"status": ..., "seconds": ...}. The folder
that it starts in is a copy of the repository, in which somebody changes a module between two lines.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback

# What most test files import; nothing of msdump, which changes.
_LIBRARIES = (
    "pytest",
    "hypothesis",
    "numpy",
    "hypothesis.extra.numpy",
    "ml_dtypes",
    "numba",
    "pydantic",
    "google.protobuf.message",
)
_BYTES = 8 << 30
TIMEOUT = -1


def main(output: str) -> None:
    """Serve until standard input ends; what the tests print goes to the file `output`."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for library in _LIBRARIES:
        importlib.import_module(library)
    for line in sys.stdin:
        arguments, limit = json.loads(line)
        started = time.monotonic()
        status = _run(arguments, limit, output)
        print(json.dumps({"status": status, "seconds": time.monotonic() - started}), flush=True)


def _run(arguments: list[str], limit: float, output: str) -> int:
    """Exit status of pytest in a fork, or TIMEOUT; every process of the fork's group is gone afterwards."""
    child = os.fork()
    if child == 0:
        _test(arguments, output)
    end = time.monotonic() + limit
    try:
        while time.monotonic() < end:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        return TIMEOUT
    finally:
        # Also when Ctrl-C or SIGTERM ends this process.
        _end_group(child)


def _end_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):  # it has been waited for
        os.waitpid(leader, 0)


def _test(arguments: list[str], output: str) -> None:
    status = 99
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        stream = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (stream, 1), (stream, 2)):
            os.dup2(source, target)
        resource.setrlimit(resource.RLIMIT_DATA, (_BYTES, _BYTES))
        import pytest

        status = int(pytest.main(arguments))
    except BaseException:  # noqa: BLE001  (a fork must end here, whatever comes)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1])
