"""`msdump unpack PATH`: packs become folders again."""

from __future__ import annotations

import argparse

from msdump.cli.pack import add_tree_arguments, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Put the files of each pack into folders where the pack lies, as `tar xf` does, links included, and remove the "
        "pack. A pack that is not whole, or holds what no dump has, stays. One with names that lead elsewhere is "
        "refused as a whole."
    )
    add_tree_arguments(parser, "leave the packs where they are")


def run(args: argparse.Namespace) -> int:
    """Unpack.   Raises: FormatError; WriteError."""
    from msdump.formats.pack_tree import unpack_tree

    return tell(
        unpack_tree(args.path, args.keep), args.path, "unpack", "not removed", f"{args.path}: no pack is there."
    )
