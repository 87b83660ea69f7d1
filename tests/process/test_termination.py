"""SIGTERM ends a script wherever Python is when it comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from msdump.process.termination import in_thread

ROOT = Path(__file__).resolve().parents[2]
# Each sends the signal to its own process from a place whose exceptions Python only reports.
PLACES = {
    "finaliser": "class Late:\n    def __del__(self):\n        end()\nLate()\n",
    "list": "class Late:\n    def __del__(self):\n        [end() for _ in '1']\nx = [Late()]\nx.clear()\n",
    "weak reference": "import weakref\nclass Late: pass\nx = Late()\ny = weakref.ref(x, lambda _: end())\ndel x\n",
    "two finalisers": "class Late:\n    def __del__(self):\n        end()\nLate(); Late()\n",
    "plain code": "end()\n",
}
SCRIPT = """\
import os, signal, threading
def end():
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(100):
        pass
try:
    {place}
    threading.Event().wait()
finally:
    print("finished", flush=True)
"""


@pytest.mark.parametrize("place", PLACES)
def test_a_script_ends_also_when_python_swallows_the_exception(place: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.replace("{place}", PLACES[place].replace("\n", "\n    ")))
    done = subprocess.run(
        [sys.executable, "-m", "msdump", "run", "script.py"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, "finished\n")
    assert "Exception ignored" not in done.stderr


def test_other_exceptions_are_reported_as_before(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom msdump.process import termination\n"
        "try:\n    termination.end_script(15)\nexcept SystemExit as error:\n    print(error.code)\n"
        "class Late:\n    def __del__(self):\n        raise ValueError('mine')\nLate()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "143\n" and "ValueError: mine" in done.stderr


def test_work_is_done_here_where_threads_can_no_longer_begin() -> None:
    pool = ThreadPoolExecutor(1)
    assert in_thread(pool, threading.get_ident).result() != threading.get_ident()
    pool.shutdown()
    assert in_thread(pool, threading.get_ident).result() == threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        in_thread(pool, divmod, 1, 0).result()
