"""Hints: the next command for what was found, as a line that a shell runs as it is printed.

Names come from a dump, which may be a stranger's: each is one word of the line, and never an option.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from msdump.analysis.full_names import short_label
from msdump.analysis.steps import Operator, StepKey
from msdump.formats.paths.parse import FX, MSPROBE
from msdump.formats.paths.sync import METADATA_FOLDER
from msdump.formats.sidecars import read_command
from msdump.process.command import ACL_RUN, OUTSIDE, PYTHON, RUN, UNKNOWN, Command
from msdump.storage.files import absolute
from msdump.storage.remote import is_remote
from msdump.tables.printable import printable, without_commands

PathLike = str | os.PathLike[str]
_LITERAL = {letter: f"[{letter}]" for letter in "*?["}
# From a data file up to the folder beside which the metadata lie: `{path}/{step}/{time}/{device}/{model}/{id}/{step}/`.
_LEVELS = 8
# How the eager dump calls what `torch.compile` made, before the name of the function.
_COMPILED, _BACKEND = "compiled.", "--torch-backend"
_EAGER, _COMPILING = "--torch-eager", frozenset((_BACKEND, "--torch-module"))


def command_line(*words: PathLike) -> str:
    """`msdump WORDS` for a shell; each word is one of the command's, whatever is in it."""
    return shlex.join(["msdump", *(os.fspath(word) for word in words)])


def path_word(path: PathLike) -> str:
    """A path as an argument: one that begins with a hyphen would be an option."""
    text = os.fspath(path)
    return os.path.join(".", text) if text.startswith("-") else text


def operator_word(name: str) -> str:
    """A name as the argument OP: itself, or a glob that it matches where it would be an option or is printed otherwise.

    Edges: what is printed otherwise: see `msdump.cli.printing`.
    """
    if not name.startswith("-") and without_commands(printable(name)) == name:
        return name
    glob = "".join(
        "?" if letter in ":#" or not letter.isprintable() else _LITERAL.get(letter, letter) for letter in name
    )
    return f"[-]{glob[1:]}" if glob.startswith("-") else glob


def operator_line(command: str, dump: PathLike, operator: Operator, step: StepKey) -> str:
    """The line of a command that takes a dump and an operator: `show`, `replay`.

    Edges: names that end in the operator's number need no scope in a graph of one iteration.
    """
    name = operator.label if step.graph_id is None else short_label(operator.label)
    return command_line(command, path_word(dump), operator_word(name), *_step_words(step))


def show_line(dump: PathLike, operator: str, step: StepKey | None = None) -> str:
    """The command that shows an operator.   step: in which one; None: the command chooses"""
    words = [] if step is None else _step_words(step)
    return command_line("show", path_word(dump), operator_word(operator), *words)


def _step_words(step: StepKey) -> list[str]:
    return [
        word
        for name, number in (("rank", step.rank_id), ("graph", step.graph_id), ("iteration", step.iteration))
        if number is not None
        for word in (f"--{name}", str(number))
    ]


def zoom_line(dump: PathLike, operator: Operator) -> str:
    """The command that dumps the tensors of an operator: it runs the program again, in the folder where it ran.

    Edges:  where it is not known how the dump was made, or the program names its configuration itself, the command
            writes the configuration and says what to do with it. "" for msprobe's trees: PrecisionDebugger is
            configured by its own config.json.
    """
    grammar, _ = _place(operator)
    if grammar == MSPROBE:
        return ""
    command = command_of(operator)
    word = operator_word(operator.label)
    is_known = command.target and command.configuration == OUTSIDE and os.path.isdir(command.folder)
    if not is_known or grammar == FX:
        return command_line("zoom", path_word(dump), word)
    path = path_word(dump) if _is_current(command.folder) else absolute(dump)
    return _in_its_folder(command, command_line("zoom", path, word, "--run", *_program(command)))


def run_line(command: Command, config: PathLike) -> str:
    """The command that runs a program again with another configuration."""
    program = _program(command)
    words = ["acl", "run", *program, "--dump", config]
    if command.entry != ACL_RUN:
        words = ["run", "--config", config, *program]
    return _in_its_folder(command, command_line(*words))


def inside_line(operator: Operator) -> str:
    """The command that shows the operators inside of what `torch.compile` made, which the dump holds as one operator.

    "" for any other operator, and where it is not known how the dump was made.
    """
    command = command_of(operator)
    is_compiled = operator.label.rpartition("/")[2].startswith(_COMPILED)
    if not is_compiled or command.entry != RUN or _BACKEND in command.options:
        return ""
    options = (*command.options, _BACKEND, "msdump")
    return _in_its_folder(command, command_line("run", *_program(replace(command, options=options))))


def plain_line(command: Command) -> str:
    """The command as it was typed, for a program that names its configuration itself."""
    line = (
        shlex.join(["python", *command.target]) if command.entry == PYTHON else command_line("run", *_program(command))
    )
    return _in_its_folder(command, line)


def command_of(operator: Operator) -> Command:
    """How the dump was made that holds an operator; UNKNOWN where it does not tell."""
    return _command_above(_place(operator)[1])


def _command_above(path: str) -> Command:
    commands = (read_command(folder) for folder in _metadata_folders(path))
    return next((command for command in commands if command is not None), UNKNOWN)


def is_compiled_only(dump: PathLike) -> bool:
    """Whether a dump has compiled regions alone of its program; False where it does not tell."""
    return _is_compiled_only(_command_above(os.path.join(os.fspath(dump), "*")))


def _is_compiled_only(command: Command) -> bool:
    """Dumps of earlier versions tell it by the options that made them."""
    is_by_option = command.entry == RUN and _COMPILING.intersection(command.options)
    return command.is_compiled_only or (bool(is_by_option) and _EAGER not in command.options)


def whole_program_line(dump: PathLike) -> str:
    """The command that dumps all of a program of which a dump has compiled regions alone.

    "" for any other dump, and where it is not known how it was made.
    """
    command = _command_above(os.path.join(os.fspath(dump), "*"))
    if not command.target or not _is_compiled_only(command):
        return ""
    return _in_its_folder(command, command_line("run", *_program(replace(command, options=()))))


def _program(command: Command) -> Sequence[str]:
    """Options of the way in, the script or model, and its arguments."""
    first = command.target[0] if command.target else ""
    # What follows a script belongs to it; options of `msdump acl run` may stand behind the model.
    is_script = command.entry != ACL_RUN and first.startswith("-") and first != "-m"
    return [*command.options, *(["--"] if is_script else []), *command.target]


def _is_current(folder: str) -> bool:
    return os.path.realpath(folder) == os.path.realpath(os.curdir)


def _in_its_folder(command: Command, line: str) -> str:
    """The line, from the folder in which the command was typed where that is another one and is there."""
    if not os.path.isdir(command.folder) or _is_current(command.folder):
        return line
    return f"cd {shlex.quote(command.folder)} && {line}"


def _place(operator: Operator) -> tuple[str, str]:
    """Grammar and path of a file that holds something of an operator."""
    file = next(tensor.file for _, _, tensor in operator.all_tensors())
    return file.levels.grammar, file.path


def _metadata_folders(path: str) -> Iterator[str]:
    """Of the rank or the time above a file; of an asynchronous dump of MindSpore in a rank's folder beside its own."""
    folder = os.path.dirname(path)
    for _ in range(_LEVELS):
        yield os.path.join(folder, METADATA_FOLDER)
        if not is_remote(folder):
            yield from (os.fspath(rank / METADATA_FOLDER) for rank in sorted(Path(folder).glob("rank_*")))
        folder, name = os.path.split(folder)
        if not name:
            return
