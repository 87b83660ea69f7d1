"""The ways into a script: what `msdump run` and `msdump plan --dry-run` let it import, compile or watch."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence

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
    add("--torch-eager", action="store_true", help="dump every operator of PyTorch as it runs, without torch.compile")
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


def way_words(args: argparse.Namespace) -> list[str]:
    """The options as they were typed."""
    words: list[str] = []
    for option, has_value in WAYS_IN.items():
        value = getattr(args, option[2:].replace("-", "_"))
        if value:
            words += [option, value] if has_value else [option]
    return words


def typed_command(args: argparse.Namespace, target: Sequence[str], is_module: bool) -> Command:
    """For the metadata of what a script dumps."""
    return Command(RUN, tuple(way_words(args)), (*(("-m",) if is_module else ()), *target), os.getcwd())


def enter(args: argparse.Namespace, command: Command, starts_others: bool = False) -> Callable[[], str]:
    """Do what the options say, in this process and for the Python processes that it starts.

    starts_others  the script only starts the ranks of a job and computes nothing itself: they are to dump

    Returns: a function that says, after the run, why `--torch-module` named no module that the script called; "" else.
    Raises:  ConfigError for a backend that PyTorch does not know, or a PyTorch that is too old.
    """
    from msdump.cli import _startup

    prefer_real = {"acl": False, "torchair": False, "torch_npu": True}
    if not args.real_mindspore:
        prefer_real["mindspore"] = False
    look_alike = getattr(args, "as")
    if look_alike is not None:
        prefer_real[look_alike] = False
    torch_options = (args.torch_backend, args.torch_module, args.torch_rnn, args.torch_eager)
    _startup.begin(prefer_real, torch_options, command)
    if starts_others or not any(torch_options):
        return str
    # PyTorch is imported only for what asks for it.
    from msdump.frontends.torch.redirect import redirect_torch, why_not_compiled

    redirect_torch(*torch_options)
    return why_not_compiled
