"""`msdump COMMAND ...`: finds the command, imports only that one, and turns errors into exit codes."""

from __future__ import annotations

import argparse
import gc
import importlib
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from msdump._version import __version__
from msdump.cli.exit_status import FAILED, INTERRUPTED, NOTHING, REFUSED, exit_help
from msdump.cli.printing import (
    HelpFormatter,
    PrintableParser,
    complain,
    log_printable,
    open_standard_streams,
    silence,
    speak,
)
from msdump.config.environment import language
from msdump.errors import ConfigError, FormatError, MsdumpError, NothingFoundError, did_you_mean

# Each name is a module of this package with `add_arguments(parser)` and `run(args) -> int`; only the chosen one is
# imported.
COMMAND_GROUPS = {
    "dump": {
        "demo": "train a small AlexNet on real data, and find a planted fault",
        "run": "run a script, dump what it computes, say what is wrong in it",
        "acl": "run an ONNX model and dump what an acl.json selects",
        "init": "answer five questions and get a configuration",
        "plan": "explain what a configuration will dump, without a run",
        "recorder": "list what a flight recorder kept, or collect it",
    },
    "look": {
        "ls": "list ranks, graphs, iterations, bytes, damaged files",
        "show": "show an operator, or the operators of a line of the script",
        "view": "look at a dump in the browser, down to the elements",
        "report": "write the findings as one HTML page",
        "plot": "draw a statistic over layers, operators, iterations or ranks",
        "stat": "measure every tensor, or compare statistics of two dumps",
        "mcp": "answer an agent's questions about dumps (MCP)",
    },
    "find what is wrong": {
        "nan": "find the first NaN or unexpected Inf, and what grew before",
        "compare": "compare two dumps: the first operator that goes wrong",
        "ranks": "compare the ranks of a job: who is outvoted",
        "replay": "run one operator again, or write a script that does",
        "zoom": "dump the tensors of one operator around an iteration",
    },
    "keep and convert": {
        "pack": "put a dump into archives, take it out, repair or upload it",
        "convert": "convert files to npy, bin, torch or safetensors",
        "export": "write tables, graphs or traces for other tools",
    },
}
# Not in the overview: plumbing, and commands that are an option of another one now.
UNLISTED_COMMANDS = {
    "schema": "print the JSON schema of a configuration",
    "completion": "print the script with which a shell completes commands",
    "msaccucmp": "take the command lines of CANN's msaccucmp.py",
    "docs": "search the documentation",
    "doctor": "print what an issue should say of a machine and a dump",
    "where": "name the operators of a line of the script: see show",
    "repro": "write a stand-alone script for an operator: see replay",
    "query": "query the tables of a job: see ranks",
    "skill": "print a file that teaches an agent to use msdump: see mcp",
    "native": "build compiled code for dumps of eager PyTorch, once",
    "trigger": "make a job with a flight recorder keep its last steps",
    "unpack": "make folders of packs again: see pack",
    "recover": "complete packs whose writer was killed: see pack",
    "upload": "send a dump to an object store: see pack",
}
LISTED_COMMANDS = {name: summary for group in COMMAND_GROUPS.values() for name, summary in group.items()}
COMMANDS = {**LISTED_COMMANDS, **UNLISTED_COMMANDS}
_EXAMPLES = """examples:
  msdump demo                           a fault, and how it is found
  msdump run train.py                   statistics of every step, and the first NaN
  msdump compare mine/ golden/          the first operator that differs
"""

# These make an object for each tensor, and keep them all.
READERS = frozenset(
    {
        "ls",
        "compare",
        "nan",
        "stat",
        "where",
        "show",
        "replay",
        "repro",
        "recorder",
        "ranks",
        "query",
        "pack",
        "unpack",
        "recover",
        "upload",
    }
)
# These run a program, which may fail.
RUNNERS = frozenset({"demo", "run", "acl", "plan"})
# New objects, and collections of them, and of those that stayed, before the next one.
_THRESHOLDS = (2_000_000, 20, 100)


class _Parser(PrintableParser):
    """A parser, and all parsers of its subcommands, that offer the nearest name for a wrong choice."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            hint = did_you_mean(str(value), choices)
            raise argparse.ArgumentError(
                action, f"expected one of {', '.join(choices)}, got {value!r}. {hint}".rstrip()
            )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the result is the exit status of the process."""
    open_standard_streams()
    log_printable()
    arguments = sys.argv[1:] if argv is None else list(argv)
    chosen = next((argument for argument in arguments if not argument.startswith("-")), None)
    args = make_parser({chosen} if chosen else set()).parse_args(arguments)
    try:
        speak(language())
        with _rare_collections(is_last=argv is None) if args.command in READERS else nullcontext():
            return int(importlib.import_module(f"msdump.cli.{args.command}").run(args))
    except MsdumpError as error:
        complain(f"msdump {args.command}: {error}")
        if isinstance(error, NothingFoundError):
            return NOTHING
        is_of_program = args.command in RUNNERS and not isinstance(error, ConfigError | FormatError)
        return FAILED if is_of_program else REFUSED
    except KeyboardInterrupt:
        complain(f"msdump {args.command}: interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe went away (`msdump plan ... | head`).
        silence(sys.stdout)
        return FAILED


@contextmanager
def _rare_collections(is_last: bool) -> Iterator[None]:
    """Let the search for circles of objects come seldom: a reader makes a dozen objects for each tensor and keeps them
    all, so that a fourth of its time would be looking through them.

    is_last   the process ends with the command: nothing is looked through any more
    """
    before = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        if is_last:
            gc.freeze()
        else:
            gc.set_threshold(*before)


def make_parser(chosen: Collection[str]) -> argparse.ArgumentParser:
    """The parser of all commands; only those of `chosen` are imported and get their options."""
    parser = _Parser(
        prog="msdump",
        usage="%(prog)s [-h] [--version] COMMAND ...",
        description=f"Every tensor that a model computes, on disk.\n\n{_grouped_commands()}",
        epilog=f"{_EXAMPLES}\nmsdump COMMAND --help explains a command.",
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"msdump {__version__}")
    # In the description they are grouped.
    subparsers = parser.add_subparsers(
        prog=parser.prog, dest="command", metavar="COMMAND", required=True, help=argparse.SUPPRESS
    )
    for name, summary in COMMANDS.items():
        help_text = summary if name in LISTED_COMMANDS else argparse.SUPPRESS
        command = subparsers.add_parser(name, help=help_text, formatter_class=HelpFormatter, allow_abbrev=False)
        if name in chosen:
            importlib.import_module(f"msdump.cli.{name}").add_arguments(command)
            command.epilog = "\n\n".join(filter(None, [(command.epilog or "").strip("\n"), exit_help(name)]))
    return parser


def _grouped_commands() -> str:
    width = max(map(len, LISTED_COMMANDS)) + 2
    groups = (
        "\n".join([f"{title}:", *(f"  {name:{width}}{text}" for name, text in group.items())])
        for title, group in COMMAND_GROUPS.items()
    )
    return "\n\n".join(groups)


if __name__ == "__main__":
    sys.exit(main())
