"""Options and arguments that several commands have, and what they write to files."""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msdump.cli.printing import ROWS, complain, is_terminal, say
from msdump.errors import ConfigError
from msdump.tables.messages import joined

if TYPE_CHECKING:
    from msdump.analysis.ranks.shardings import ShardingRules

_MSACCUCMP_PATH = re.compile(r"[_A-Za-z0-9/.,-]*")
OP_HELP = "full name, last part of it (Conv2D-op12), an id of --brief, or a glob that one operator matches"
_ID = re.compile(
    r"(?P<name>.+)@(?P<rank>[0-9]{1,9}|-)\.(?P<graph>[0-9]{1,9}|-)\.(?P<iteration>[0-9]{1,18}|-)", re.DOTALL
)
FINDINGS = 10  # of a brief answer
RAW_HELP = "measure device formats (NC1HWC0, FRACTAL_NZ, ...) as stored, with padding, not in the form of the host"
GRAPHS_HELP = "a dump with its graph files: the folder that holds rank_0"


def parse_number_ranges(text: str) -> Collection[int] | None:
    """Read "all" (None, which selects everything), or ranges such as "0|5-8"; a comma separates as well as a bar.

    Raises: argparse.ArgumentTypeError, which the parser shows with the name of the option.
    """
    from msdump.config.ranges import parse_ranges

    if text == "all":
        return None
    try:
        return parse_ranges(text.replace(",", "|").replace(" ", ""))
    except ConfigError as error:
        reason = str(error).partition("The piece ")[2]
        detail = f" The piece {reason}" if reason else ""
        raise argparse.ArgumentTypeError(
            f'expected "all" or numbers and ranges such as "0|5-8" or 0,3, got "{text}".{detail}'
        ) from error


def add_step_options(parser: argparse.ArgumentParser) -> None:
    """Options that choose steps of a dump."""
    for name in ("rank", "graph", "iteration"):
        text = f'only these {name} numbers: "all", or ranges such as "0|5-8" or 0,3'
        parser.add_argument(f"--{name}", type=parse_number_ranges, metavar="N|N-N", help=text)


def add_all_option(parser: argparse.ArgumentParser, text: str = "") -> None:
    """The option for all rows of a table, and all of a document."""
    text = text or f"show everything, not only the first {ROWS}"
    parser.add_argument("--all", action="store_true", dest="shows_all", help=text)


def add_brief_option(parser: argparse.ArgumentParser) -> None:
    """The option for an answer of a few lines."""
    text = f"print the answer, and at most {FINDINGS} findings with ids, which other commands take as OP"
    parser.add_argument("--brief", action="store_true", help=text)


def add_output_option(
    parser: argparse.ArgumentParser,
    text: str,
    metavar: str = "FILE",
    default: str | None = None,
    old_spellings: Sequence[str] = (),
) -> None:
    """`-o`, `--output`: where a result goes."""
    parser.add_argument("-o", "--output", metavar=metavar, default=default, help=text)
    add_old_spellings(parser, "output", *old_spellings)


def add_old_spellings(parser: argparse.ArgumentParser, dest: str, *spellings: str) -> None:
    """Names that an option with a value had once: taken as before, and no help text has them."""
    for spelling in spellings:
        parser.add_argument(spelling, dest=dest, default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def add_operator_argument(parser: argparse.ArgumentParser, text: str = "") -> None:
    """The argument OP: a name, or an id of `operator_id`, which chooses the step as well."""
    parser.add_argument("operator", metavar="OP", action=_OperatorAction, help=text or OP_HELP)


class _OperatorAction(argparse.Action):
    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        match = _ID.fullmatch(values)
        namespace.operator = values if match is None else match["name"]
        if match is None:
            return
        for name in ("rank", "graph", "iteration"):
            if match[name] != "-" and getattr(namespace, name, None) is None:
                setattr(namespace, name, parse_number_ranges(match[name]))


def add_model_option(parser: argparse.ArgumentParser) -> None:
    """The model that was dumped, of dumps that hold tensors alone."""
    parser.add_argument(
        "--model",
        metavar="PATH",
        help="of a dump without attributes: the .onnx file that was dumped (the dump may know it), or the text file of "
        "TorchAir's graph dump",
    )


def selected_steps(args: argparse.Namespace) -> dict[str, Any]:
    """What the options of `add_step_options` select, as keyword arguments."""
    return {"rank": args.rank, "graph": args.graph, "iteration": args.iteration}


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Who measures the ranks and iterations of a job."""
    add = parser.add_argument
    add("--jobs", type=int, metavar="N", help="with tables: workers (one for each core)")
    add("--engine", default="processes", metavar="NAME", help="with tables: processes, threads, dask=ADDRESS, ray")
    add("--part", metavar="N/N", help="with tables: only this share of the work, as 3/10; slurm: that of an array")
    add("--local", action="store_true", help="with tables and dask: DIR is another disk on each machine of the cluster")
    add("--force", action="store_true", help="with tables: also those that are there already")


def add_sharding_options(parser: argparse.ArgumentParser) -> None:
    """Options of commands that need to know how tensors lie over the ranks of a job."""
    add = parser.add_argument
    add("--mesh", metavar="AXES", help="axes of the job and their sizes, as dp=2,tp=4: ranks that are neighbours last")
    add("--dims", metavar="PATTERN=DIMS", action="append", default=[], help="sharding of tensors of which layout.json "
        "says nothing, in SGLang's form: '*/MatMul-op*=b[dp] s h[tp]'; may be given several times")  # fmt: skip
    add("--strategy", metavar="FILE", action="append", default=[], help="sharding of parameters: a file of MindSpore's "
        "strategy_ckpt_config; one for each stage")  # fmt: skip


def selected_shardings(args: argparse.Namespace) -> ShardingRules | None:
    """What these options say.   Raises: ConfigError."""
    from msdump.analysis.ranks.shardings import sharding_rules

    return sharding_rules(args.mesh, args.dims, args.strategy)


def add_verbose_option(parser: argparse.ArgumentParser) -> None:
    """The option of `tell_skipped`."""
    parser.add_argument("-v", "--verbose", action="store_true", help="name what is not dumped, and why")


def tell_skipped(args: argparse.Namespace) -> None:
    """With `--verbose`, a line on standard error for each operator and tensor that gets no file."""
    if args.verbose:
        handler = _Complaints(logging.INFO)
        logger = logging.getLogger("msdump.skipped")
        logger.handlers = [handler for handler in logger.handlers if not isinstance(handler, _Complaints)]
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False


class _Complaints(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        complain(record.getMessage())


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """The option of `write_json`."""
    text = "write the answer as JSON (docs/json.md); - for standard output, which then holds nothing else"
    parser.add_argument("--json", metavar="FILE", help=text)


def write_json(
    args: argparse.Namespace,
    content: Callable[[], Mapping[str, Any]],
    indent: int | None = 1,
    is_brief: bool = False,
) -> bool:
    """Write what `--json` selects.

    content  makes what the command answers, without the envelope
    indent   of inner lines; None for one line
    is_brief whether long lists are cut
    Returns: whether standard output is taken by it, so that the command prints nothing else there.
    Raises:  ConfigError when the file cannot be written.
    """
    if args.json is None:
        return False
    from msdump.analysis.json_values import json_text

    write_text(args.json, json_text(args.command, content(), indent, is_brief))
    return bool(args.json == "-")


def print_lines(lines: Sequence[str]) -> None:
    say(joined("\n", lines))


def write_text(path: str, text: str, mode: int = 0o666) -> None:
    """Write a result; `-` is standard output.

    mode    of a file that is new, less the umask
    Raises: ConfigError when the file cannot be written.
    """
    if path == "-":
        if is_terminal(sys.stdout):
            say(text, end="", wraps=False)
        else:
            sys.stdout.write(text.encode(errors="backslashreplace").decode())
        return
    try:
        # Names may hold bytes that are not UTF-8.
        with open(
            path,
            "w",
            encoding="utf-8",
            errors="backslashreplace",
            opener=lambda name, flags: os.open(name, flags, mode),
        ) as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(f"{path}: expected to write the result, got: {error.strerror}.") from error


def path_argument(text: str) -> str:
    """A path as msaccucmp takes it, "" included.   Raises: argparse's error, which ends the process with 2."""
    if not _MSACCUCMP_PATH.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected letters, digits and _ / . , - only. `msdump convert` takes any path."
        )
    return text
