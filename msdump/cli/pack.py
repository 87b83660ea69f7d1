"""`msdump pack PATH`, and the options and lines that `unpack` and `recover` share with it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msdump.cli.exit_status import FINE, INCOMPLETE, NOTHING
from msdump.cli.printing import complain, say
from msdump.cli.report_text import format_count
from msdump.config.environment import format_size

if TYPE_CHECKING:
    from msdump.formats.pack_tree import Packed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Put each folder of an iteration into one tar archive beside it, with an index at its end. Commands read packs "
        "as they read folders; `tar xf` brings the folder back."
    )
    parser.epilog = "With MSDUMP_CONTAINER=pack a dump writes packs directly."
    add_tree_arguments(parser, "leave the folders where they are")


def add_tree_arguments(parser: argparse.ArgumentParser, keeping: str | None) -> None:
    """PATH, and `--keep` where something is removed."""
    parser.add_argument("path", metavar="PATH", help="a dump, any folder of one, or a pack")
    if keeping is not None:
        parser.add_argument("--keep", action="store_true", help=keeping)


def run(args: argparse.Namespace) -> int:
    """Pack.   Raises: FormatError; WriteError."""
    from msdump.formats.pack_tree import pack_tree

    nothing = f"{args.path}: no folder of an iteration is there."
    return tell(pack_tree(args.path, args.keep), "pack", "left out", nothing)


def tell(packs: Iterable[Packed], command: str, what: str, nothing: str) -> int:
    """A line for each pack; the exit status.   what: became of a pack, or of what is lost"""
    count = lost = 0
    for pack in packs:
        count += 1
        lost += bool(pack.lost)
        if pack.members or not pack.lost:
            say(f"{pack.path}  {format_count(pack.members, 'file')}, {format_size(pack.size_bytes)}")
        if pack.lost:
            done = what if pack.members else "left as it is"
            complain(f"msdump {command}: {pack.path}: {done}: {pack.lost}.")
    if not count:
        complain(f"msdump {command}: {nothing}")
        return NOTHING
    return INCOMPLETE if lost else FINE
