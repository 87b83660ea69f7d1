"""`msdump ls DIR`: contents of a dump, and commands for it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from msdump.cli.exit_status import FINE, INCOMPLETE
from msdump.cli.options import add_all_option, add_json_option, add_step_options, selected_steps, write_json
from msdump.cli.printing import ROWS, complain, print_table, say, say_next
from msdump.cli.report_text import format_count
from msdump.config.environment import format_size
from msdump.errors import NothingFoundError
from msdump.tables.messages import message

if TYPE_CHECKING:
    from msdump.analysis.overview.dumps import FoundDump
    from msdump.analysis.overview.listing import DumpListing, ListedStep

_WIDTH = 40  # of a list of ranges
_DUMP_TITLES = ("dump", "ranks", "graphs", "iterations", "files")
_TITLES = ("rank", "graph", "iteration", "model", "operators", "tensors", "bytes")
_EPILOG = """
Names and headers are read, and elements with --verify alone.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "List what a dump holds, which of its files are damaged or foreign, and what to ask of it."
    parser.epilog = _EPILOG
    parser.add_argument("dump", metavar="DIR", help="a dump, any folder of one, or a statistic.csv")
    add_step_options(parser)
    parser.add_argument("--dumps", action="store_true", help="list the dumps at DIR or below it, each as one line")
    parser.add_argument(
        "--verify", action="store_true", help="read the tensors in packs, and compare them with the hashes of these"
    )
    add_all_option(parser)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """List; the result is the exit status that `--help` explains."""
    if args.dumps:
        return _list_dumps(args)
    from msdump.analysis.overview.listing import list_dump

    listing = list_dump(args.dump, **selected_steps(args), verifies=args.verify)
    if not write_json(args, lambda: _value(listing)):
        _print(listing, args.dump, args.shows_all)
    _complain_of("foreign", [(path, "no file of a dump") for path in listing.foreign], args.shows_all)
    _complain_of("damaged", [(path, str(error)) for path, error in listing.damaged], args.shows_all)
    return INCOMPLETE if listing.damaged else FINE


def _list_dumps(args: argparse.Namespace) -> int:
    from msdump.analysis.overview.dumps import dumps_below
    from msdump.analysis.steps import ranges_text
    from msdump.storage.remote import is_remote

    found = dumps_below(args.dump)
    if not found:
        raise NothingFoundError(f"{args.dump}: expected a dump in this folder or below it, got none.")
    if write_json(args, lambda: {"dumps": [asdict(dump) for dump in found]}):
        return FINE
    rows = [
        (
            dump.path if is_remote(args.dump) else os.path.relpath(dump.path, args.dump),
            *(shortened(ranges_text(numbers), _WIDTH) or "-" for numbers in (dump.ranks, dump.graphs, dump.iterations)),
            str(dump.file_count),
        )
        for dump in found
    ]
    most = None if args.shows_all else ROWS
    say(args.dump if is_remote(args.dump) else os.path.abspath(args.dump))
    print_table(_DUMP_TITLES, rows, sys.stdout, numbers=(4,), named=range(len(_DUMP_TITLES)), most=most)
    say_next(_advice_on_dumps(found))
    return FINE


def _advice_on_dumps(found: Sequence[FoundDump]) -> list[tuple[str, str]]:
    from msdump.analysis.find.hints import command_line, path_word

    first = path_word(found[0].path)
    advice: list[tuple[str, str]] = [(command_line("ls", first), message("its steps, and what to ask of them"))]
    if len(found) > 1:
        line = command_line("compare", first, path_word(found[1].path))
        advice.append((line, message("the first operator in which the two differ")))
    return advice


def _print(listing: DumpListing, path: str, shows_all: bool) -> None:
    from msdump.analysis.steps import ranges_text

    say(listing.path)
    numbers = (("rank", listing.ranks), ("graph", listing.graphs), ("iteration", listing.iterations))
    texts = [
        f"{format_count(len(some), name)} ({shortened(ranges_text(some), _WIDTH)})" for name, some in numbers if some
    ]
    tensors = sum(step.tensor_count for step in listing.steps)
    operators = sum(step.operator_count for step in listing.steps)
    size = sum(step.size_bytes for step in listing.steps)
    of_size = f" of {format_size(size)}" if size else ""
    texts += [format_count(operators, "operator"), f"{format_count(tensors, 'tensor')}{of_size}"]
    texts += [] if listing.disk_bytes is None else [f"{format_size(listing.disk_bytes)} on disk"]
    say(", ".join(texts))
    if listing.steps:
        say()
        rows = [_cells(step) for step in listing.steps]
        most = None if shows_all else ROWS
        print_table(_TITLES, rows, sys.stdout, numbers=(0, 1, 2, 4, 5, 6), named=(2,), most=most)
    if listing.overflow_files:
        say(f"{format_count(len(listing.overflow_files), 'file')} of operators that overflowed")
    if listing.verified is not None:
        say(f"{format_count(listing.verified, 'tensor')} of packs: the bytes have the hashes of the index")
    if listing.steps:
        say_next(_advice(listing, path))


def _complain_of(kind: str, files: list[tuple[str, str]], shows_all: bool) -> None:
    """Files beside the results, as other commands tell of them."""
    for path, problem in files if shows_all else files[:ROWS]:
        complain(f"{kind}: {problem if path in problem else f'{path}: {problem}'}")
    if not shows_all and len(files) > ROWS:
        complain(f"{kind}: {len(files) - ROWS} more files (--all)")


def _advice(listing: DumpListing, path: str) -> list[tuple[str, str]]:
    """Commands, and what for."""
    from msdump.analysis.find.hints import command_line, path_word, show_line
    from msdump.analysis.full_names import short_label
    from msdump.analysis.overview.dumps import dumps_below
    from msdump.storage.remote import is_remote

    word = path_word(path)
    count = 1 if is_remote(path) else len(dumps_below(path))  # a store is listed once
    advice: list[tuple[str, str]] = []
    if count > 1:
        line = command_line("ls", word, "--dumps")
        advice.append((line, message("the {count} dumps that are listed here as one", count=count)))
    advice += [
        (command_line("nan", word), message("the first NaN, and the line that made it")),
        (command_line("report", word), message("all of it as a page")),
    ]
    if listing.graph_files:
        line = command_line("show", word, "PART OF A LINE")
        advice.append((line, message("operators and files of a line of the script")))
    if all(step.is_statistic for step in listing.steps):
        return [(command_line("stat", word), message("the statistics of every tensor")), *advice]
    if not listing.example:
        return advice
    return [
        *advice,
        (show_line(path, short_label(listing.example)), message("one operator: tensors, attributes, source")),
    ]


def shortened(text: str, width: int) -> str:
    """The text, or its beginning and an ellipsis where it is wider."""
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _cells(step: ListedStep) -> tuple[str, ...]:
    rank, graph, iteration = ("-" if part is None else str(part) for part in step.key)
    size = "statistics" if step.is_statistic else format_size(step.size_bytes)
    return rank, graph, iteration, step.model or "-", str(step.operator_count), str(step.tensor_count), size


def _value(listing: DumpListing) -> dict[str, Any]:
    from msdump.analysis.json_values import damaged_values, step_value

    return {
        "dump": listing.path,
        "disk_bytes": listing.disk_bytes,
        "ranks": listing.ranks,
        "graphs": listing.graphs,
        "iterations": listing.iterations,
        "steps": [
            {
                "step": step_value(step.key),
                "model": step.model or None,
                "operators": step.operator_count,
                "tensors": step.tensor_count,
                "size_bytes": step.size_bytes,
                "is_statistic": step.is_statistic,
            }
            for step in listing.steps
        ],
        "graph_files": listing.graph_files,
        "overflow_files": listing.overflow_files,
        "damaged": damaged_values(listing.damaged),
        "foreign": listing.foreign,
        "verified": listing.verified,
    }
