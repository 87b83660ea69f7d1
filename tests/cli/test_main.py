"""`msdump`: the table of commands, and that asking for help is cheap."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

import msdump
from msdump.cli.main import COMMANDS, LISTED_COMMANDS, UNLISTED_COMMANDS, main
from msdump.errors import ConfigError, GraphError

HEAVY = {
    "numpy",
    "torch",
    "numba",
    "rich",
    "pydantic",
    "google.protobuf",
    "PIL",
    "msdump.process.sessions",
    "msdump.graph.graph",
}


def test_help_names_every_command_and_imports_nothing_heavy() -> None:
    code = (
        "import json, sys\nfrom msdump.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as error:\n    assert error.code == 0\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = [line.strip() for line in done.stdout.splitlines()]
    for name, summary in LISTED_COMMANDS.items():
        assert f"{name:10}{summary}" in lines
    assert len(LISTED_COMMANDS) <= 21 and not any(
        line.split()[:1] == [name] for name in UNLISTED_COMMANDS for line in lines
    )
    loaded = set(json.loads(done.stderr))
    assert not loaded & HEAVY
    assert len(loaded) < 200


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert callable(importlib.import_module(f"msdump.cli.{name}").run)
    with pytest.raises(SystemExit) as leaving:
        main([name, "--help"])
    assert leaving.value.code == 0
    assert f"msdump {name}" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["--version"])
    assert leaving.value.code == 0
    assert capsys.readouterr().out == f"msdump {msdump.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["rum"], ["--no-such-option"], ["run"]])
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(arguments)
    assert leaving.value.code == 2
    assert "usage: msdump" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status"), [(ConfigError("wrong"), 2), (GraphError("wrong"), 1), (KeyboardInterrupt(), 130)]
)
def test_an_error_is_one_line_and_an_exit_status(
    error: BaseException, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(args: object) -> int:
        raise error

    monkeypatch.setattr(importlib.import_module("msdump.cli.run"), "run", fail)
    assert main(["run", "script.py"]) == status
    assert capsys.readouterr().err == f"msdump run: {'interrupted' if status == 130 else 'wrong'}\n"


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    code = (
        "import importlib, sys\nfrom msdump.cli.main import main\n"
        "importlib.import_module('msdump.cli.run').run = lambda args: print('x' * 10**6)\n"
        "sys.exit(main(['run', 'script.py']))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["stta", "x"], "got 'stta'. Did you mean \"stat\"?"),
        (["compar", "a", "b"], "got 'compar'. Did you mean \"compare\"?"),
        (["acl", "chek", "x"], "got 'chek'. Did you mean \"check\"?"),
        (["plan", "x", "--device-target", "cpu"], "expected one of CPU, GPU, Ascend, got 'cpu'. Did you mean"),
        (["nan", "d", "--iterations", "3"], '--iterations 3. Did you mean "--iteration" or'),
        (["run", "--torch-egaer", "t.py"], '--torch-egaer. Did you mean "--torch-eager" or'),
        (["plan", "x", "--dry-run", "--torch-egaer", "t.py"], 'Did you mean "--torch-eager" or'),
        (["xyzzy"], "expected one of demo, run, acl"),
    ],
)
def test_a_typo_is_answered_with_the_nearest_name(
    arguments: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert hint in capsys.readouterr().err
