"""The command that made this process dump, which the metadata of its dumps keeps: hints repeat it as it was typed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

# `msdump run`, `msdump acl run`, and Python with a script that imports msdump.
RUN, ACL_RUN, PYTHON = "run", "acl run", "python"
OUTSIDE, SCRIPT = "outside", "script"
# Options of `msdump run` that decide what is dumped of a script, and whether a value follows.
WAYS_IN = {
    "--real-mindspore": False,
    "--torch-backend": True,
    "--torch-module": True,
    "--torch-rnn": False,
    "--torch-eager": False,
    "--as": True,
}
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Command:
    """A program that dumps, and how it was started.

    entry          RUN, ACL_RUN or PYTHON
    options        of WAYS_IN, with their values
    target         the script, or `-m` and a module, and its arguments; or a model and options of `msdump acl run`.
                   Empty: not known
    folder         in which it was typed
    configuration  OUTSIDE: it comes from the command line or the environment; SCRIPT: the program names it
    is_compiled_only
                   what `torch.compile` made was dumped, and code around it was not; False: so, or not known
    """

    entry: str
    options: tuple[str, ...]
    target: tuple[str, ...]
    folder: str
    configuration: str = OUTSIDE
    is_compiled_only: bool = False


UNKNOWN = Command(PYTHON, (), (), "")
_command: Command | None = None


def note(command: Command) -> None:
    """Set what `current` is from now on."""
    global _command
    _command = command


@contextmanager
def noted(command: Command) -> Iterator[None]:
    """`note` for as long as the block runs."""
    global _command
    before, _command = _command, command
    try:
        yield
    finally:
        _command = before


def current() -> Command:
    """What was noted, else what Python itself was given.

    Edges:   UNKNOWN for an interactive session or `python -c`, and for a rank of a job: what started the ranks is not
             known in one of them.
    """
    if _command is not None:
        return _command
    main = sys.modules.get("__main__")
    if getattr(main, "__file__", None) is None or os.environ.get("WORLD_SIZE", "1") != "1" or not sys.argv:
        return UNKNOWN
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name != "__main__":
        script = ["-m", spec.name.removesuffix(".__main__")]
    else:
        script = [sys.argv[0]]
    return Command(PYTHON, (), (*script, *sys.argv[1:]), os.getcwd())


def command_as_value(command: Command) -> dict[str, Any]:
    """For JSON."""
    return {"version": _VERSION, **asdict(command)}


def command_from_value(value: object) -> Command | None:
    """The reverse; None for anything else, as an entry point or an option that this version does not have.

    Edges:   it may come from a stranger: `options` are WAYS_IN alone, while any text may be in `target`.
    """
    if not isinstance(value, Mapping) or value.get("version") != _VERSION:
        return None
    entry, folder, configuration = value.get("entry"), value.get("folder"), value.get("configuration")
    options, target = _texts(value.get("options")), _texts(value.get("target"))
    if entry not in (RUN, ACL_RUN, PYTHON) or configuration not in (OUTSIDE, SCRIPT):
        return None
    if not isinstance(folder, str) or options is None or target is None or not _are_ways_in(options):
        return None
    return Command(entry, options, target, folder, configuration, value.get("is_compiled_only") is True)


def _texts(value: object) -> tuple[str, ...] | None:
    return tuple(value) if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value) else None


def _are_ways_in(options: Sequence[str]) -> bool:
    words = iter(options)
    return all(word in WAYS_IN and (not WAYS_IN[word] or not next(words, "-").startswith("-")) for word in words)
