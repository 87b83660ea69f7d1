"""`msdump run` where no configuration says what is dumped: what the script is, is found out; statistics of every step
go to a folder of their own, or what a few options say; and the answer of `msdump nan` ends the run."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msdump.cli.imports import Imports, imports_of
from msdump.cli.options import add_output_option
from msdump.cli.printing import complain
from msdump.config.environment import ACL_DUMP_CONFIG, ASCEND_DUMP_SCENE, BUDGET, DUMP_CONFIG, NPU_COLLECT_PATH
from msdump.errors import ConfigError
from msdump.process.command import WAYS_IN
from msdump.process.default_folder import CONFIG_NAME

if TYPE_CHECKING:
    from msdump.cli.ways import Program

_OPTIONS = ("tensors", "steps", "ops", "output")
_EXCEPTIONS_ALONE = "only operators of models (acl) that fail are dumped"
# Variables that select a dump without naming a file to msdump, and what each does alone.
_OTHER_VARIABLES = {
    ACL_DUMP_CONFIG: f"it has an effect only where {DUMP_CONFIG} names the same file; set both",
    ASCEND_DUMP_SCENE: _EXCEPTIONS_ALONE,
    NPU_COLLECT_PATH: _EXCEPTIONS_ALONE,
}


def add_default_options(parser: argparse.ArgumentParser) -> None:
    """The options that choose what is dumped in place of a configuration."""
    parser.add_argument("--tensors", metavar="STEPS", help="dump whole tensors of these steps, such as 40 or 0-2")
    parser.add_argument("--steps", metavar="STEPS", help="dump statistics of these steps, not of all")
    parser.add_argument("--ops", metavar="NAMES", help="dump these operators alone: names, types, name-regex(...)")
    add_output_option(parser, "folder of the dump (msdump_dump, or the next free number)", "DIR", None, ("--out",))
    parser.add_argument("--no-dump", action="store_true", help="run the script, and dump nothing that it does not say")


@dataclass(frozen=True)
class Default:
    """What takes the place of a configuration.

    folder       of the dump; None: the script says itself what is dumped, and where
    is_way_typed  whether options say how the script is run
    is_chosen    whether options say what is dumped
    """

    program: Program
    folder: Path | None
    is_way_typed: bool = False
    is_chosen: bool = False
    _process_id: int = field(default_factory=os.getpid)

    @property
    def why_nothing(self) -> str:
        ran = [text for name, text in _FRAMEWORKS.items() if name in sys.modules]
        if not ran:
            return "Nothing was dumped: the script imports none of MindSpore, PyTorch, TorchAir, acl and msprobe."
        chosen = " that the options name" if self.is_chosen else ""
        return f"Nothing was dumped: no operator{chosen} was run by {' or '.join(ran)} in this process."

    def is_in_folder(self, path: str) -> bool:
        """Whether a dump lies in it."""
        return self.folder is not None and Path(path).is_relative_to(self.folder)

    def answer(self, paths: Sequence[str]) -> None:
        """Say what `msdump nan` finds in dumps that have been written.   paths: of them"""
        own = [path for path in paths if self.is_in_folder(path)]
        others = [path for path in dict.fromkeys(paths) if path not in own]
        answer([str(self.folder)] * bool(own) + others)

    def remove_empty(self) -> None:
        """Leave no folder behind that holds nothing; a process that the script has forked leaves it to its parent."""
        from msdump.process.default_folder import release_empty

        if self.folder is not None and self._process_id == os.getpid():
            release_empty(self.folder)


_FRAMEWORKS = {"mindspore": "MindSpore", "torch": "PyTorch", "acl": "acl"}


def says_nothing() -> bool:
    """Whether no variable says what is dumped, nor, by an empty one, that nothing is."""
    return DUMP_CONFIG not in os.environ and not any(os.environ.get(name) for name in _OTHER_VARIABLES)


def effects_of_other_variables() -> list[str]:
    """A sentence for each variable that is set and that keeps `msdump run` from choosing what is dumped."""
    return [
        f"environment variable {name} is set: {effect}. Unset it to have statistics of every step."
        for name, effect in _OTHER_VARIABLES.items()
        if os.environ.get(name) and DUMP_CONFIG not in os.environ
    ]


def choose_default(args: argparse.Namespace, program: Program, launchers: Sequence[str]) -> Default | None:
    """Configure this process where nothing else does; None: something does, or nothing is to be dumped.

    Raises: ConfigError for options that contradict each other; WriteError.
    """
    from msdump.config.default import FOLDER

    typed = [name for name in _OPTIONS if getattr(args, name) is not None]
    if typed and (args.config is not None or args.no_dump):
        other = "--config" if args.config is not None else "--no-dump"
        raise ConfigError(f"--{typed[0]}: expected no {other} beside it. What a file selects stands in the file.")
    if args.no_dump:
        os.environ[DUMP_CONFIG] = ""
        return None
    if args.config is not None or not (typed or says_nothing()):
        return None
    found = imports_of(program.target, program.is_module, launchers)
    if found.uses_msdump and not typed:
        return None
    ways = _typed_ways(args)
    if ways == ["--as"] or ("msprobe" in found.packages and not ways):
        complain("msdump: msprobe: PrecisionDebugger of the script dumps, into the folder that it names.")
        return Default(replace(program, options=_with(args, **{"as": "msprobe"})), None)
    options, way = _way(args, found)
    program = replace(program, options=options)
    iteration, saved = _chosen(args.tensors, args.steps)
    names = _listed(args.ops)
    folder = _claim(args.output or FOLDER, is_exact=args.output is not None)
    _configure(folder, iteration, saved, names)
    what = "tensors and statistics" if args.tensors is not None else "statistics"
    steps = "every step" if iteration == "all" else f"step{'' if iteration.isdigit() else 's'} {iteration}"
    shown = shlex.quote(os.path.relpath(folder))
    if way:
        complain(
            f"msdump: {way}: {what} of {steps} go to {shown}. Other choices: msdump run --help. "
            "A dump that the script itself configures goes where it says."
        )
    return Default(
        program, folder, is_way_typed=options is args, is_chosen=bool({"tensors", "steps", "ops"} & {*typed})
    )


def _chosen(tensors: str | None, steps: str | None) -> tuple[str, str]:
    """(iteration, saved_data) of the options `--tensors` and `--steps`.

    Raises: ConfigError for both, and for numbers that are none.
    """
    from msdump.config.ranges import parse_ranges
    from msdump.config.sections import FULL, STATISTIC

    if tensors is not None and steps is not None:
        raise ConfigError(
            "--tensors: expected one of --tensors and --steps, got both. --tensors dumps whole tensors and statistics "
            "of the steps that it names, --steps the statistics alone."
        )
    option, text = ("--tensors", tensors) if tensors is not None else ("--steps", steps)
    if text is None:
        return "all", STATISTIC
    iteration = text.strip().replace(",", "|")
    try:
        parse_ranges(iteration)
    except ConfigError as error:
        raise ConfigError(
            f'{option}: expected numbers of steps such as 40, 0-9 or "0|40-50", or all, got "{text}".'
        ) from error
    return iteration, FULL if tensors is not None else STATISTIC


def _listed(text: str | None) -> tuple[str, ...]:
    """The entries of `--ops`, between commas that are in no parentheses."""
    if text is None:
        return ()
    names = tuple(filter(None, (name.strip() for name in re.split(r",(?![^()]*\))", text))))
    if not names:
        raise ConfigError(
            f'--ops: expected names or types of operators such as Conv2D,Softmax, or name-regex(...), got "{text}".'
        )
    return names


def _typed_ways(args: argparse.Namespace) -> list[str]:
    return [name for name in WAYS_IN if getattr(args, name[2:].replace("-", "_"))]


def _with(args: argparse.Namespace, **values: object) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(args), **values})


def _way(args: argparse.Namespace, found: Imports) -> tuple[argparse.Namespace, str]:
    """The options that let msdump see what the script runs, and what it is in words, "" where no import says
    it: then PyTorch counts, if something imports it. Options that were typed count."""
    typed = _typed_ways(args)
    if typed:
        return args, f"as {' '.join(typed)} says"
    words = {name: text for name, text in _WORDS.items() if name in found.packages}
    if "torchair" in words:
        # Beside a dump of its own, one of all operators would be in the way.
        words.pop("torch", None)
    if "torch" in words and found.compiles:
        # A backend of msdump's would show what is inside, but it would also change what runs.
        words["torch"] = "PyTorch, operator by operator, and what torch.compile makes as a whole"
    return _with(args, torch_eager="torch" in words or not words), " and ".join(words.values())


_WORDS = {
    "mindspore": "MindSpore",
    "acl": "models of pyACL",
    "torchair": "TorchAir",
    "torch": "PyTorch, operator by operator",
}


def _claim(name: str, is_exact: bool) -> Path:
    """Raises: ConfigError; FolderError before anything is made."""
    from msdump.dumpers.limits import check_folder
    from msdump.process.default_folder import claim_folder

    folder = Path(os.path.abspath(name))
    check_folder(folder, "--output" if is_exact else "without --config and --output")
    return claim_folder(folder, is_exact=is_exact)


def _configure(folder: Path, iteration: str, saved: str, names: Sequence[str]) -> None:
    """For this process and those that it starts."""
    from msdump.config.default import BUDGET as DEFAULT_BUDGET
    from msdump.config.default import file_text, graphs_config, models_config
    from msdump.engine import opening
    from msdump.formats.atomic import write_file

    file = folder / CONFIG_NAME
    # Whole or not there: ranks of a job write the same.
    write_file(file, [file_text(graphs_config(folder, iteration, saved, names))], 0o600, replace=True)
    os.environ[DUMP_CONFIG] = str(file)
    if not os.environ.get(BUDGET, "").strip():
        os.environ[BUDGET] = DEFAULT_BUDGET
    opening.dump_models_by_default(models_config(folder, iteration, saved, names))


@dataclass(frozen=True)
class DefaultOfModels:
    """What takes the place of an acl.json.   config: what that would hold"""

    folder: Path
    config: dict[str, Any]

    def remove_empty(self) -> None:
        """As of `Default`."""
        from msdump.process.default_folder import release_empty

        release_empty(self.folder)


def statistics_of_models() -> DefaultOfModels:
    """Statistics of all operators in each run of a model, for `msdump acl run`."""
    from msdump.config.default import FOLDER, models_config

    folder = _claim(FOLDER, is_exact=False)
    complain(f"msdump: statistics of every run go to {shlex.quote(os.path.relpath(folder))}.")
    return DefaultOfModels(folder, models_config(folder))


def answer(paths: Sequence[str]) -> None:
    """Say what `msdump nan`, and of several ranks `msdump ranks`, find in these dumps, on the stream of the report."""
    from msdump.cli.main import main

    for path in paths:
        name = os.path.relpath(path)
        shown = path if name.startswith(os.pardir) else name
        commands = [["nan", shown]]
        if len(list(Path(path).glob("rank_*"))) > 1:
            commands.append(["ranks", shown, "--brief"])
        for command in commands:
            complain(f"\n$ msdump {shlex.join(command)}")
            with contextlib.redirect_stdout(sys.stderr):
                main(command)
