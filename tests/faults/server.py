"""A process that has imported everything and forks one child for each run: `python -m tests.faults.server FAMILY`.

Reads one request a line from stdin, as JSON: the command line of msdump, the folder to run it in, its environment, and
which call on a file below which folder has which outcome (failing_calls.c). Answers with one line: the exit status,
negative for the signal that ended the child, and the names of the calls that were made.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import traceback
from typing import Any

_MOST_CALLS = 1 << 16
_SECONDS = 120


def main(family: str) -> None:
    _import_all(family)
    library = ctypes.CDLL(None)
    library.faults_name.restype = ctypes.c_char_p
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _run(library, request)
        _, status = os.waitpid(pid, 0)
        print(json.dumps({"status": os.waitstatus_to_exitcode(status)}), flush=True)


def _import_all(family: str) -> None:
    import numpy as np

    import msdump.cli.run
    import msdump.engine.graphs
    import msdump.formats.bin
    import msdump.formats.statistic_csv
    import msdump.statistics.stats

    msdump.statistics.stats.statistics(np.ones(3, np.float32), "float32")
    if family == "mindspore":
        import msdump.mindspore
    elif family == "torch":
        import torch

        import msdump.frontends.torch.runner
        import msdump.torchair

        torch.set_num_threads(1)
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
        torch.compiler.reset()
    else:
        import onnxruntime  # noqa: F401

        import msdump.frontends.acl


def _run(library: Any, request: dict[str, Any]) -> None:
    """The child: never returns."""
    status = 1
    try:
        signal.alarm(_SECONDS)
        os.chdir(request["folder"])
        for number, name in ((1, "stdout"), (2, "stderr")):
            fd = os.open(name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
            os.dup2(fd, number)
        os.environ.update(request["environment"])
        below = os.fsencode(request["below"])
        library.faults_arm(below, ctypes.c_long(request["number"]), request["outcome"], request["is_lasting"])
        from msdump.cli.main import main as run_msdump

        status = run_msdump(request["command"])
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - a child that returned would serve requests
        traceback.print_exc()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
        trace = (ctypes.c_ubyte * _MOST_CALLS)()
        count = library.faults_trace(trace, ctypes.c_long(_MOST_CALLS))
        names = [library.faults_name(number).decode() for number in trace[:count]]
        with open("calls.json", "w") as file:
            json.dump(names, file)
    os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1])
