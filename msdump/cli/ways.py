"""The ways into a script: what `msdump run` and `msdump plan --dry-run` let it import, compile or watch."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msdump.cli.launch import run_module, run_script
from msdump.cli.printing import PrintableParser
from msdump.process.command import RUN, WAYS_IN, Command

# Packages that the script imports, as which msdump's own stands in only when it is named.
_LOOK_ALIKES = ("msprobe",)


def add_way_options(parser: argparse.ArgumentParser) -> None:
    """The options of `WAYS_IN`."""
    add = parser.add_argument
    add("--real-mindspore", action="store_true", help="`import mindspore` gives the installed MindSpore, not msdump's")
    add("--torch-backend", metavar="NAME", help="backend of every torch.compile of the script, such as msdump")
    add(
        "--torch-rnn",
        action="store_true",
        help="let torch.compile capture nn.RNN, nn.LSTM and nn.GRU, which PyTorch leaves out by default",
    )
    add(
        "--torch-eager",
        action="store_true",
        help="dump every operator of PyTorch as it runs, without torch.compile; `msdump native` makes it cheap",
    )
    add(
        "--torch-module",
        metavar="NAME",
        help="compile a module that the script does not: an instance in its namespace, or a class",
    )
    add(
        "--as",
        dest="as",
        choices=_LOOK_ALIKES,
        help="`import msprobe` gives msdump's: PrecisionDebugger of the script dumps, into msprobe's files",
    )


def _way_words(args: argparse.Namespace) -> list[str]:
    """The options as they were typed."""
    words: list[str] = []
    for option, has_value in WAYS_IN.items():
        value = getattr(args, option[2:].replace("-", "_"))
        if value:
            words += [option, value] if has_value else [option]
    return words


def add_program(parser: argparse.ArgumentParser) -> None:
    """The script or module, and its arguments: the rest of the line, as options behind the script belong to it."""
    parser.add_argument(
        "-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help="run a module, not a file"
    )
    parser.add_argument("script", metavar="SCRIPT", nargs=argparse.REMAINDER, help="the script and its arguments")
    parser.set_defaults(parser=parser)


@dataclass(frozen=True, slots=True)
class Program:
    """What is to run.

    options  those of `add_way_options`
    target   the script or the module, and its arguments
    """

    options: argparse.Namespace
    target: tuple[str, ...]
    is_module: bool

    @property
    def command(self) -> Command:
        """For the metadata of what it dumps."""
        target = ("-m", *self.target) if self.is_module else self.target
        return Command(RUN, tuple(_way_words(self.options)), target, os.getcwd())

    @property
    def words(self) -> list[str]:
        """As they were typed."""
        target = ("-m", *self.target) if self.is_module else ("--", *self.target)
        return [*_way_words(self.options), *target]

    @property
    def look_alike(self) -> str | None:
        """The package of --as."""
        name: str | None = getattr(self.options, "as")
        return name

    def run(self) -> int:
        """As `run_script` and `run_module`."""
        launch = run_module if self.is_module else run_script
        return launch(self.target[0], self.target[1:])


def program_of(args: argparse.Namespace) -> Program:
    """What a parser with both groups of options has read; nothing to run ends the process as wrong usage does."""
    target = args.script if args.module is None else args.module
    if target and target[0] == "--":
        target = target[1:]
    if not target:
        args.parser.error("expected a script or -m MODULE, got nothing to run.")
    return Program(args, tuple(target), args.module is not None)


def parse_program(option: str, words: Sequence[str]) -> Program:
    """What stands behind an option that takes the rest of the line; a wrong word ends the process."""
    parser = PrintableParser(
        prog=option, usage=f"{option} [OPTIONS of msdump run] (SCRIPT | -m MODULE) [ARGS ...]", add_help=False,
        allow_abbrev=False,
    )  # fmt: skip
    add_way_options(parser)
    add_program(parser)
    return program_of(parser.parse_args(words))


def enter(program: Program, starts_others: bool = False, is_found_out: bool = False) -> Callable[[], str]:
    """Do what the options say, in this process and for the Python processes that it starts.

    starts_others  the script only starts the ranks of a job and computes nothing itself: they are to dump
    is_found_out   they were not typed: PyTorch counts when the script imports it, and one that is too old is left alone

    Returns: a function that says, after the run, why `--torch-module` named no module that the script called; "" else.
    Raises:  ConfigError for a backend that PyTorch does not know, or a PyTorch that is too old.
    """
    from msdump.cli import _startup

    args = program.options
    prefer_real = {"acl": False, "torchair": False, "torch_npu": True}
    if not args.real_mindspore:
        prefer_real["mindspore"] = False
    if program.look_alike is not None:
        prefer_real[program.look_alike] = False
    torch_options = (args.torch_backend, args.torch_module, args.torch_rnn, args.torch_eager)
    _startup.begin(prefer_real, torch_options, program.command, is_found_out)
    if starts_others or not any(torch_options):
        return str
    if is_found_out:
        _startup.redirect_when_imported(torch_options, is_found_out)
        return str
    # PyTorch is imported only for what asks for it.
    from msdump.frontends.torch.redirect import redirect_torch, why_not_compiled

    redirect_torch(*torch_options)
    return why_not_compiled
