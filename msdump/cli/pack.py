"""`msdump pack PATH`: a dump in few files, and back; what `unpack`, `recover` and `upload` were runs from here too."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msdump.cli.exit_status import FINE, INCOMPLETE, NOTHING
from msdump.cli.printing import complain, say, say_next
from msdump.cli.report_text import format_count
from msdump.config.environment import format_size
from msdump.tables.messages import message

if TYPE_CHECKING:
    from msdump.formats.pack_tree import Packed


_UNPACK, _RECOVER, _UPLOAD = (f"msdump.cli.{name}" for name in ("unpack", "recover", "upload"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Put each folder of an iteration into one tar archive beside it, with an index at its end. Commands read packs "
        "as they read folders; `tar xf` brings the folder back."
    )
    parser.epilog = "With MSDUMP_CONTAINER=pack a dump writes packs directly."
    add_tree_arguments(parser, "leave what is read where it is")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--undo", action="store_true", help="make folders of packs again")
    other.add_argument("--repair", action="store_true", help="complete packs whose writer was killed")
    other.add_argument(
        "--upload",
        dest="address",
        metavar="ADDRESS",
        help="send the dump as it is to an object store (s3://bucket/job)",
    )


def add_tree_arguments(parser: argparse.ArgumentParser, keeping: str | None) -> None:
    """PATH, and `--keep` where something is removed."""
    parser.add_argument("path", metavar="PATH", help="a dump, any folder of one, or a pack")
    if keeping is not None:
        parser.add_argument("--keep", action="store_true", help=keeping)


def run(args: argparse.Namespace) -> int:
    """Pack.   Raises: FormatError; WriteError."""
    from msdump.formats.pack_tree import pack_tree

    for module, is_chosen in ((_UNPACK, args.undo), (_RECOVER, args.repair), (_UPLOAD, args.address)):
        if is_chosen:
            args.dump = args.path
            return int(importlib.import_module(module).run(args))
    nothing = f"{args.path}: no folder of an iteration is there."
    return tell(pack_tree(args.path, args.keep), args.path, "pack", "left out", nothing)


def tell(packs: Iterable[Packed], path: str, command: str, what: str, nothing: str) -> int:
    """A line for each pack below a path; the exit status.   what: became of a pack, or of what is lost"""
    from msdump.analysis.find.hints import command_line, path_word

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
    say_next([(command_line("ls", path_word(path)), message("what the dump holds"))])
    return INCOMPLETE if lost else FINE
