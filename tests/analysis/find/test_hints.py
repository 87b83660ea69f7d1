"""Hints: every printed line is one command, whatever the names in it, and repeats how the dump was made."""

from __future__ import annotations

import fnmatch
import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.analysis.find.hints import command_of, operator_word, path_word, plain_line, run_line, show_line, zoom_line
from msdump.analysis.find.look_up import find_operator
from msdump.analysis.steps import Operator, opened
from msdump.formats.paths.sync import METADATA_FOLDER
from msdump.formats.sidecars import COMMAND_FILE, write_command
from msdump.process.command import ACL_RUN, OUTSIDE, PYTHON, RUN, SCRIPT, UNKNOWN, Command
from msdump.tables.printable import printable, without_commands
from tests.analysis.small_dump import floats, write_dump

HOSTILE = ["--json=/etc/x", "-", "a::b", "s3://u:p@h/x", "[-]", "*", "a\nmsdump", "#"]
NAMES = st.text(min_size=1) | st.sampled_from(HOSTILE)


@given(NAMES)
def test_a_name_is_one_word_that_is_no_option_and_means_it(name: str) -> None:
    word = operator_word(name)
    assert not word.startswith("-")
    assert word == name or fnmatch.fnmatchcase(name, word)
    assert without_commands(printable(word)) == word


@given(NAMES)
def test_a_line_is_the_words_of_one_command(name: str) -> None:
    line = show_line("d", name)
    assert shlex.split(line) == ["msdump", "show", "d", operator_word(name)]
    assert without_commands(printable(line)) == line


def test_a_path_is_no_option() -> None:
    assert (path_word("-d"), path_word("d"), path_word(Path("/d"))) == ("./-d", "d", "/d")


def operator_of(folder: Path, command: Command | None) -> Operator:
    dump = write_dump(folder / "dump", [("D/Log-op1", {("output", 0): floats(1)})])
    if command is not None:
        write_command(folder / "dump/rank_0" / METADATA_FOLDER, command)
    return find_operator(opened(dump), "Log-op1").operator


def test_the_command_that_made_the_dump_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = Command(RUN, ("--torch-eager",), ("t.py", "--n", "a b; rm x"), str(tmp_path))
    operator = operator_of(tmp_path, command)
    assert command_of(operator) == command
    monkeypatch.chdir(tmp_path)
    assert zoom_line("dump", operator) == "msdump zoom dump D/Log-op1 --run --torch-eager t.py --n 'a b; rm x'"
    assert run_line(command, "c.json") == "msdump run --config c.json --torch-eager t.py --n 'a b; rm x'"
    monkeypatch.chdir("/")
    line = zoom_line(os.path.relpath(tmp_path / "dump"), operator)
    folder = shlex.quote(str(tmp_path))
    dump = shlex.quote(f"{tmp_path}/dump")
    assert line == f"cd {folder} && msdump zoom {dump} D/Log-op1 --run --torch-eager t.py --n 'a b; rm x'"


@pytest.mark.parametrize(
    "command",
    [
        None,
        Command(PYTHON, (), ("t.py",), "/no/such/folder"),
        Command(PYTHON, (), ("t.py",), "/", SCRIPT),
        Command(RUN, (), (), "/"),
    ],
    ids=["unknown", "elsewhere", "the script's own", "nothing"],
)
def test_where_it_cannot_be_run_again_the_line_still_runs(command: Command | None, tmp_path: Path) -> None:
    assert zoom_line("dump", operator_of(tmp_path, command)) == "msdump zoom dump D/Log-op1"


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"[" * 100_000, b"\xff"])
def test_a_damaged_file_tells_nothing(content: bytes, tmp_path: Path) -> None:
    operator = operator_of(tmp_path, None)
    path = tmp_path / "dump/rank_0" / METADATA_FOLDER / COMMAND_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    assert command_of(operator) == UNKNOWN


def test_lines_of_other_entry_points() -> None:
    acl = Command(ACL_RUN, (), ("net.onnx", "--random", "0"), "", OUTSIDE)
    assert run_line(acl, "a.json") == "msdump acl run net.onnx --random 0 --dump a.json"
    assert plain_line(Command(PYTHON, (), ("-m", "job", "a b"), "", SCRIPT)) == "python -m job 'a b'"
    assert plain_line(Command(RUN, ("--torch-rnn",), ("--config",), "", SCRIPT)) == "msdump run --torch-rnn -- --config"
