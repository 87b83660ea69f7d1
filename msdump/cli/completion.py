"""`msdump completion SHELL`: the script with which a shell completes commands, options, files and operators."""

from __future__ import annotations

import argparse
import os
import re
import sys
from importlib import resources

from msdump.cli.exit_status import FINE
from msdump.cli.options import print_lines
from msdump.errors import ConfigError, MsdumpError

SHELLS = ("bash", "zsh", "fish")
# Shells expand words once more before they offer them: a name from a file holds nothing that they could run.
_SAFE_NAME = re.compile(r"[\w./:@%+,-]+", re.ASCII)
_EPILOG = """
bash   msdump completion bash > ~/.local/share/bash-completion/completions/msdump
zsh    msdump completion zsh > ~/.zsh/completions/_msdump   # a folder of $fpath, before compinit
fish   msdump completion fish > ~/.config/fish/completions/msdump.fish
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Print the script with which a shell completes commands, options, files and operator names."
    parser.epilog = _EPILOG
    parser.add_argument("shell", choices=SHELLS, nargs="?", help="the shell that is to read it")
    # What the scripts ask, with the words of the line so far; the last one is to be completed.
    parser.add_argument("--operators", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Print; the result is the exit status that `--help` explains."""
    if args.operators:
        names = operator_names(args.operators)
        if names:
            print_lines(names)
        return FINE
    if args.shell is None:
        raise ConfigError(f"SHELL: expected one of {', '.join(SHELLS)}, got nothing. Name the shell that you type in.")
    # As it stands: the scripts hold marks that are not to be written out.
    sys.stdout.write(script(args.shell))
    return FINE


def script(shell: str) -> str:
    """The text of one of `SHELLS`, as `python -m tests.cli.test_completion` made it."""
    return (resources.files("msdump.cli") / "completions" / f"msdump.{shell}").read_text(encoding="utf-8")


def operator_names(words: list[str]) -> list[str]:
    """Names of operators that begin with the last word, from the first of the other words that is a folder.

    Edges:  no dump, a damaged one, and names that a shell would have to quote: no candidates, as
            completion prints no messages. A beginning without "/" is completed to last parts of names.
    """
    from msdump.analysis.steps import opened, read_statistic_steps, read_steps

    *line, beginning = words
    path = next((word for word in map(os.path.expanduser, line[1:]) if os.path.isdir(word)), None)
    if path is None:
        return []
    try:
        dump = opened(path)
        steps = read_steps(dump) or read_statistic_steps(dump)[0].steps
    except (MsdumpError, OSError):
        return []
    names = {name for step in steps for operator in step.operators for name in (operator.label, operator.op_name)}
    if "/" not in beginning:
        names = {name.rpartition("/")[2] for name in names}
    return sorted(name for name in names if name.startswith(beginning) and _SAFE_NAME.fullmatch(name))
