"""A command of tests.forks is what `python WORDS` would be."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forks import TIMEOUT, Command, Forks

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks(("json", "a_module_that_is_not_there"), ROOT, {**os.environ, "PYTHONPATH": str(ROOT)}) as opened:
        yield opened


def run(forks: Forks, folder: Path, text: str, *arguments: str, limit: float = 60) -> tuple[int, str, str]:
    (folder / "script.py").write_text(text, encoding="utf-8")
    return forks.printed(["script.py", *arguments], folder, limit, is_joined=False)


def test_a_script_has_its_arguments_folder_and_modules(forks: Forks, tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("NAME = 'neighbour'", encoding="utf-8")
    text = "import neighbour, os, sys; print(neighbour.NAME, sys.argv, os.getcwd(), __name__, sys.stdin.read() == '')"
    status, printed, errors = run(forks, tmp_path, text, "a", "b c")
    assert (status, errors) == (0, "")
    assert printed == f"neighbour ['script.py', 'a', 'b c'] {tmp_path} __main__ True\n"


def test_modules_are_imported_already(forks: Forks, tmp_path: Path) -> None:
    assert run(forks, tmp_path, "import sys; print('json' in sys.modules)")[1] == "True\n"


@pytest.mark.parametrize(
    ("text", "status"),
    [("import sys; sys.exit(3)", 3), ("raise ValueError('no')", 1), ("import os; os._exit(7)", 7), ("", 0)],
)
def test_the_status_is_that_of_the_command(forks: Forks, tmp_path: Path, text: str, status: int) -> None:
    found, _, errors = run(forks, tmp_path, text)
    assert found == status
    assert ("ValueError: no" in errors) is ("ValueError" in text)


def test_what_was_registered_for_the_end_runs(forks: Forks, tmp_path: Path) -> None:
    text = "import atexit; atexit.register(print, 'ended'); print('begun')"
    assert run(forks, tmp_path, text)[1] == "begun\nended\n"


def test_one_command_leaves_nothing_to_the_next(forks: Forks, tmp_path: Path) -> None:
    run(forks, tmp_path, "import json, os; json.mark = 1; os.environ['MARK'] = '1'")
    assert (
        run(forks, tmp_path, "import json, os; print(hasattr(json, 'mark'), 'MARK' in os.environ)")[1]
        == "False False\n"
    )


def test_a_module_is_run_and_errors_are_joined(forks: Forks, tmp_path: Path) -> None:
    status, printed, errors = forks.printed(["-m", "json.tool", "--no-such"], tmp_path, 60, is_joined=True)
    assert status == 2 and "unrecognized arguments: --no-such" in printed and not errors


def test_a_command_without_an_end_is_killed_with_its_children(forks: Forks, tmp_path: Path) -> None:
    text = f"import subprocess; subprocess.run([{sys.executable!r}, '-c', 'import time; time.sleep(600)'])"
    assert run(forks, tmp_path, text, limit=0.5)[0] == TIMEOUT
    assert run(forks, tmp_path, "print(1)")[1] == "1\n"


def test_memory_is_limited(forks: Forks, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("bytearray(1 << 32)", encoding="utf-8")
    output = tmp_path / "output"
    status, _ = forks.run(Command(["script.py"], str(tmp_path), str(output), memory=1 << 30))
    assert status == 1 and "MemoryError" in output.read_text(encoding="utf-8")


def test_a_server_that_has_died_is_named(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "__init__.py").touch()
    (tmp_path / "tests" / "forks.py").write_text("raise RuntimeError('broken')", encoding="utf-8")
    with (
        Forks((), tmp_path, {**os.environ, "PYTHONPATH": str(tmp_path)}) as forks,
        pytest.raises(RuntimeError, match="expected an answer"),
    ):
        run(forks, tmp_path, "")
