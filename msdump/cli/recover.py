"""`msdump recover PATH`: complete packs whose writer was killed."""

from __future__ import annotations

import argparse

from msdump.cli.pack import add_tree_arguments, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Give packs without an end (5.tar.part of a killed process, or one that was cut) and damaged ones an index and "
        "their name. All whole members stay; the last one goes when it is cut. The new pack is written beside the old "
        "one, and then takes its place. Archives that msdump has not written are left alone."
    )
    add_tree_arguments(parser, None)


def run(args: argparse.Namespace) -> int:
    """Recover.   Raises: FormatError; WriteError."""
    from msdump.formats.pack_recovery import recover_tree

    return tell(
        recover_tree(args.path),
        args.path,
        "recover",
        "left out",
        f"{args.path}: every pack there is whole, or there is none.",
    )
