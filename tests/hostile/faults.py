"""A process that dumps while the system fails, or is killed, at one of its calls. Run by `test_faults.py`:

python -m tests.hostile.faults FOLDER ENGINE KIND FIRST LAST STEP

A child for each number from FIRST on, STEP by STEP, dumps into FOLDER/{number}; at its call of that number KIND
happens. Then another child dumps into the same folder undisturbed. Each child's exit status, and whether its results
were those of a run without a dump, go to FOLDER/{number}.json.
"""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from msdump import session
from msdump.errors import DumpError, MsdumpError
from msdump.graph.executor import Executor
from msdump.stats import statistics
from tests.dump.test_sync import _small_graph

KILL, FAIL = "kill", "fail"
STEPS = 3
COMPLETE, INCOMPLETE, WRONG = 0, 4, 9
CALLS = (
    "open",
    "link",
    "rename",
    "unlink",
    "write",
    "writev",
    "pwrite",
    "fchmod",
    "mkdir",
    "ftruncate",
    "close",
    "stat",
)
ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EACCES, errno.EMFILE, errno.EROFS, errno.ESTALE)


class Fault:
    """Counts calls to the system, of all threads, and lets one of them fail or end the process."""

    def __init__(self, kind: str, number: int) -> None:
        self._kind = kind
        self._number = number
        self._error = random.Random(number).choice(ERRORS)
        self._count = 0
        self._lock = threading.Lock()

    def watch(self) -> None:
        for name in CALLS:
            setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **keywords: Any) -> Any:
            with self._lock:
                self._count += 1
                is_now = self._count == self._number
            if is_now and self._kind == KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            if is_now:
                if name == "close":
                    call(*arguments, **keywords)
                raise OSError(self._error, os.strerror(self._error))
            return call(*arguments, **keywords)

        return watched


def dump(fault: Fault | None) -> int:
    """Dump some steps of a small program; one of COMPLETE, INCOMPLETE and WRONG."""
    if fault is not None:
        fault.watch()
    values = [np.full(3, step + 1, np.float32) for step in range(STEPS)]
    expected = [np.array(Executor(_small_graph()).run([value], 0)[0]) for value in values]
    try:
        opened = session.open_mindspore("CPU", 0)
    except MsdumpError:
        return INCOMPLETE
    assert opened is not None
    executor = Executor(_small_graph(), opened.observers)
    results = [np.array(executor.run([value], opened.next_iteration())[0]) for value in values]
    if not all(map(np.array_equal, results, expected)):
        return WRONG
    try:
        opened.close()
    except DumpError:
        return INCOMPLETE
    return COMPLETE


def in_child(work: Callable[[], int]) -> int:
    """Exit status of a child that does this, or the negative number of the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        status = WRONG
        try:
            status = work()
        except BaseException:  # noqa: BLE001 - the parent sees the status, people the traceback
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    root, engine, kind = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    statistics(np.ones(3, np.float32), "float32")  # compiled once, not in each child
    for number in range(*map(int, sys.argv[4:7])):
        config = {
            "common_dump_settings": {
                "dump_mode": 0, "path": str(root / str(number)), "net_name": "Net", "iteration": "all",
                "saved_data": "full", "input_output": 0, "kernels": [], "support_device": [0], "op_debug_mode": 0,
                "file_format": "npy",
            },
            "e2e_dump_settings": {"enable": engine == "sync", "trans_flag": True},
        }  # fmt: skip
        path = root / f"{number}.config.json"
        path.write_text(json.dumps(config))
        os.environ["MINDSPORE_DUMP_CONFIG"] = str(path)
        statuses = [in_child(lambda: dump(Fault(kind, number))), in_child(lambda: dump(None))]  # noqa: B023
        (root / f"{number}.json").write_text(json.dumps(statuses))


if __name__ == "__main__":
    main()
