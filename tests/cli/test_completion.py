"""`msdump completion`: the scripts offer what the parsers take, in real shells, and run nothing from a dump."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from msdump.cli import completion
from msdump.cli.main import COMMANDS, LISTED_COMMANDS, main, make_parser
from tests.analysis.small_dump import floats, write_dump
from tests.package import PACKAGE

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = PACKAGE / "cli" / "completions"
SHTAB = "1.13."
HAS_SHTAB = importlib.util.find_spec("shtab") is not None and importlib.metadata.version("shtab").startswith(SHTAB)
OPERATOR = "_msdump_operators"
PREAMBLE = {
    "bash": f"""{OPERATOR}() {{
  msdump completion --operators "${{COMP_WORDS[@]:0:COMP_CWORD}}" "$1" 2>/dev/null
}}
""",
    "zsh": f"""{OPERATOR}() {{
  compadd -- ${{(f)"$(msdump completion --operators msdump ${{(Q)words}} 2>/dev/null)"}}
}}
""",
    "fish": f"""function {OPERATOR}
  msdump completion --operators (commandline -opc) (commandline -ct) 2>/dev/null
end
""",
}
# Of arguments whose values are nothing that a shell could find on the disk.
NO_PATH = {
    "COLUMN", "COMMAND", "CONDITION", "LINE", "MODULE", "N", "N|N-N", "NAME", "SEED", "SIZE", "STEPS", "TEXT", "TYPE",
    "X", "AXES", "PATTERN=DIMS", "OP", "FORM", "FORMAT", "ACTION", "SUBCOMMAND", "A,B",
}  # fmt: skip


def actions(parser: argparse.ArgumentParser):
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from actions(inner)


def generated(shell: str) -> str:
    import shtab

    parser = make_parser(COMMANDS)
    for action in actions(parser):
        if isinstance(action, argparse._SubParsersAction):
            action.help = None  # --help has them in the description
        names = action.metavar if isinstance(action.metavar, tuple) else (action.metavar,)
        takes_value = action.nargs != 0 and action.choices is None
        if names == ("OP",):
            action.complete = {"bash": OPERATOR, "zsh": OPERATOR, "fish": f"({OPERATOR})"}
        elif takes_value and names[0] is not None and not NO_PATH & set(names):
            action.complete = shtab.FILE
    return shtab.complete(parser, shell, preamble=PREAMBLE) + "\n"


@pytest.mark.skipif(not HAS_SHTAB, reason=f"needs shtab {SHTAB}, which wrote the scripts; the extra dev has it")
@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_scripts_are_those_of_the_parsers(shell):
    """After a change of options: `python -m tests.cli.test_completion` writes them anew."""
    assert (SCRIPTS / f"msdump.{shell}").read_text(encoding="utf-8") == generated(shell)


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_option_is_in_every_script(shell, capsys):
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for action in actions(make_parser(LISTED_COMMANDS)):
        if action.help is not argparse.SUPPRESS:
            for option in action.option_strings:
                assert (f"-l {option[2:]}" if shell == "fish" and option[:2] == "--" else option) in text or (
                    shell == "fish" and f"-s {option[1:]}" in text
                )


@pytest.fixture
def dump(tmp_path):
    out = {("output", 0): floats(1)}
    names = ("Net/Conv2D-op0", "Net/Conv2D-op1", "Net/Log-op2", "Net/$(touch$IFS'gone')-op3", "Net/`x`-op4")
    write_dump(tmp_path / "dump", [(name, out) for name in names])
    return tmp_path / "dump"


@pytest.mark.parametrize(
    ("beginning", "names"),
    [
        ("Conv", ["Conv2D-op0", "Conv2D-op1"]),
        ("Net/L", ["Net/Log-op2"]),
        ("", ["Conv2D-op0", "Conv2D-op1", "Log-op2"]),
        ("Xyz", []),
    ],
)
def test_operators_of_a_dump(dump, beginning, names, capsys):
    assert main(["completion", "--operators", "msdump", "show", str(dump), beginning]) == 0
    assert capsys.readouterr().out.split() == names


@pytest.mark.parametrize("line", [["show"], ["show", "/nowhere"], ["show", os.devnull]])
def test_what_is_no_dump_offers_nothing(line, capsys):
    assert main(["completion", "--operators", "msdump", *line, "C"]) == 0
    assert capsys.readouterr() == ("", "")


def test_no_shell_is_wrong_usage(capsys):
    assert main(["completion"]) == 2
    assert "expected one of bash, zsh, fish" in capsys.readouterr().err


def offered(folder: Path, *line: str) -> list[str]:
    """What a real bash offers for the last word."""
    program = folder / "bin" / "msdump"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m msdump "$@"\n')
    program.chmod(0o755)
    (folder / "msdump.bash").write_text(completion.script("bash"))
    code = (
        f"source msdump.bash\nCOMP_WORDS=({shlex.join(['msdump', *line])})\nCOMP_CWORD={len(line)}\n"
        'eval "$(complete -p msdump | sed "s/.*-F \\([^ ]*\\).*/\\1/")"\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    environment = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        ["bash", "--norc", "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return sorted(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_real_bash_completes(dump, tmp_path):
    assert offered(tmp_path, "co") == ["compare", "convert"]
    assert offered(tmp_path, "show", "--j") == ["--json"]
    assert "completion" not in offered(tmp_path, "")
    assert offered(tmp_path, "show", "du") == ["dump"]
    assert offered(tmp_path, "show", "dump", "Conv") == ["Conv2D-op0", "Conv2D-op1"]
    assert offered(tmp_path, "show", "--rank", "0", "dump", "Log") == ["Log-op2"]
    assert offered(tmp_path, "show", "dump", "") == ["Conv2D-op0", "Conv2D-op1", "Log-op2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "dump", "msdump.bash"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_their_script(shell):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"needs {shell}")
    subprocess.run([program, "-n", SCRIPTS / f"msdump.{shell}"], check=True)


if __name__ == "__main__":
    for name in completion.SHELLS:
        (SCRIPTS / f"msdump.{name}").write_text(generated(name), encoding="utf-8")
