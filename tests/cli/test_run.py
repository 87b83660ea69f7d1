"""`msdump run`: a script behaves as under `python`, and the exit status tells what became of the dump."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from msdump.config.default import file_text, graphs_config

Result = subprocess.CompletedProcess[str]


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def write_config(folder: Path, iteration: str = "all") -> None:
    """dump.json of a folder."""
    (folder / "dump.json").write_bytes(file_text(graphs_config(folder / "dump", iteration)))


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.getcwd(), **variables}


def msdump_run(*arguments: str | Path, cwd: Path, **variables: str) -> Result:
    command = [sys.executable, "-m", "msdump", "run", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=environment(**variables), capture_output=True, text=True, timeout=300)


REPORT_SURROUNDINGS = """
    import json, sys, __main__
    from neighbour import VALUE
    print(json.dumps([sys.argv, sys.path[0], __name__, __file__, __main__.__dict__ is globals(), VALUE]))
"""


def test_a_script_sees_what_python_would_show_it(tmp_path: Path) -> None:
    script = write(tmp_path, "work/show.py", REPORT_SURROUNDINGS)
    write(tmp_path, "work/neighbour.py", "VALUE = 7")
    arguments = ["work/show.py", "--config", "x", "-m", "y", "--help", "--", "-1"]
    done = msdump_run(*arguments, cwd=tmp_path)
    plain = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.returncode == 0, done.stderr
    argv, folder, name, file, is_main, value = json.loads(done.stdout)
    assert (argv, folder, name, is_main, value) == (arguments, str(script.parent), "__main__", True, 7)
    assert json.loads(plain.stdout)[:4] == [argv, folder, name, file]


def test_a_script_that_changes_its_folder_finds_itself(tmp_path: Path) -> None:
    lines = "import os, inspect as i", "def f(): pass", "os.chdir('/')", "print(open(__file__).read(), i.getsource(f))"
    write(tmp_path, "work/moved.py", "\n".join(lines))
    done = msdump_run("work/moved.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "\n".join(lines) + " def f(): pass\n\n"


def test_a_module_sees_what_python_m_would_show_it(tmp_path: Path) -> None:
    write(tmp_path, "package/__main__.py", REPORT_SURROUNDINGS)
    write(tmp_path, "neighbour.py", "VALUE = 8")
    done = msdump_run("-m", "package", "--rate", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    argv, folder, name, _, is_main, value = json.loads(done.stdout)
    assert argv[1:] == ["--rate", "1"]
    assert (folder, name, is_main, value) == (str(tmp_path), "__main__", True, 8)


@pytest.mark.parametrize(
    ("line", "status", "text"),
    [
        ("pass", 0, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(7)", 7, ""),
        ("sys.exit('no data')", 1, "no data"),
        ("raise KeyboardInterrupt", 130, ""),
        ("raise ValueError('broken')", 1, "ValueError: broken"),
    ],
)
def test_exit_status_is_the_scripts_own(line: str, status: int, text: str, tmp_path: Path) -> None:
    write(tmp_path, "end.py", f"import sys\n{line}\n")
    done = msdump_run("end.py", cwd=tmp_path)
    assert done.returncode == status
    assert text in done.stderr
    assert ("Nothing was dumped: the script imports none of MindSpore" in done.stderr) == (status == 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["end.py"]


def test_a_traceback_begins_in_the_script(tmp_path: Path) -> None:
    write(tmp_path, "end.py", "def fail():\n    return 1 / 0\n\nfail()\n")
    trace = msdump_run("end.py", cwd=tmp_path).stderr.partition("Traceback")[2]
    plain = subprocess.run([sys.executable, "end.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert trace.splitlines()[1] == plain.stderr.splitlines()[1]
    assert "launch.py" not in trace
    assert "runpy" not in trace
    write(tmp_path, "ending.py", "1 / 0\n")
    trace = msdump_run("-m", "ending", cwd=tmp_path).stderr.partition("Traceback")[2]
    assert "launch.py" not in trace
    assert "runpy" not in trace


def test_a_syntax_error_is_shown_as_python_shows_it(tmp_path: Path) -> None:
    write(tmp_path, "wrong.py", "x = (\n")
    done = msdump_run("wrong.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
    assert "launch.py" not in done.stderr


@pytest.mark.parametrize("arguments", [["missing.py"], ["."], ["--config", "missing.json", "show.py"]])
def test_what_is_not_there_fails_before_the_script_starts(arguments: list[str], tmp_path: Path) -> None:
    write(tmp_path, "show.py", "print('started')")
    done = msdump_run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "expected" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("is_named_by_option", [True, False], ids=["--config", "variable"])
def test_a_wrong_configuration_fails_before_the_script_starts(is_named_by_option: bool, tmp_path: Path) -> None:
    """Also of a script that would never read it."""
    write(tmp_path, "show.py", "print('started')")
    write_config(tmp_path, iteration="x")
    arguments = ["--config", "dump.json"] if is_named_by_option else []
    variables = {} if is_named_by_option else {"MINDSPORE_DUMP_CONFIG": str(tmp_path / "dump.json")}
    done = msdump_run(*arguments, "show.py", cwd=tmp_path, **variables)
    assert (done.returncode, done.stdout) == (2, "")
    assert "common_dump_settings.iteration" in done.stderr and "Traceback" not in done.stderr


def test_a_wrong_configuration_that_is_not_asked_for_stops_nothing(tmp_path: Path) -> None:
    write(tmp_path, "show.py", "print('started')")
    write_config(tmp_path, iteration="x")
    done = msdump_run("--no-dump", "show.py", cwd=tmp_path, MINDSPORE_DUMP_CONFIG=str(tmp_path / "dump.json"))
    assert (done.returncode, done.stdout) == (0, "started\n")


def test_what_one_device_alone_refuses_is_left_to_the_script(tmp_path: Path) -> None:
    """Before it starts, nobody knows which device it chooses."""
    write(tmp_path, "show.py", "print('started')")
    config = graphs_config(tmp_path / "dump")
    del config["e2e_dump_settings"]
    (tmp_path / "dump.json").write_bytes(file_text(config))
    done = msdump_run("--config", "dump.json", "show.py", cwd=tmp_path)
    assert done.stdout == "started\n", done.stderr


def test_config_becomes_the_variable(tmp_path: Path) -> None:
    write(tmp_path, "show.py", "import os; print(os.environ['MINDSPORE_DUMP_CONFIG'])")
    write_config(tmp_path)
    done = msdump_run("--config", "dump.json", "show.py", cwd=tmp_path, MINDSPORE_DUMP_CONFIG="/other.json")
    assert done.stdout.strip() == str(tmp_path / "dump.json")
    assert "no dump is configured" not in done.stderr


def test_a_configured_dump_without_a_graph_is_a_loud_3(tmp_path: Path) -> None:
    write(tmp_path, "idle.py", "print('done')")
    write_config(tmp_path)
    done = msdump_run("--config", "dump.json", "idle.py", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stdout == "done\n"
    assert "!! Nothing was dumped" in done.stderr


def test_sigterm_runs_the_scripts_finally_and_gives_143(tmp_path: Path) -> None:
    write(
        tmp_path,
        "wait.py",
        """
        import signal
        try:
            print("ready", flush=True)
            signal.pause()
        finally:
            print("cleaned up", flush=True)
        """,
    )
    command = [sys.executable, "-m", "msdump", "run", "wait.py"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "cleaned up\n"
        assert process.wait(60) == 143
