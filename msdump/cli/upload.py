"""`msdump upload DIR ADDRESS`: send a dump to an object store."""

from __future__ import annotations

import argparse

from msdump.cli.exit_status import FINE, INCOMPLETE
from msdump.cli.printing import complain, say, say_next
from msdump.cli.report_text import format_count
from msdump.config.environment import format_size
from msdump.tables.messages import message


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Send all files of a dump to an object store, under the names that they have below DIR. What the store has "
        "already is not sent again: the content decides, not the size. Pack the dump first: stores count objects."
    )
    parser.epilog = (
        "Keys, region and endpoint come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL, "
        "or the variables of another store. MSDUMP_UPLOAD sends a dump while it runs."
    )
    parser.add_argument("dump", metavar="DIR", help="a dump, or any folder of one")
    parser.add_argument("address", metavar="ADDRESS", help="such as s3://bucket/job")


def run(args: argparse.Namespace) -> int:
    """Upload.   Raises: ConfigError; FormatError."""
    from msdump.analysis.find.hints import command_line
    from msdump.storage.uploading import upload_tree

    sent = upload_tree(args.dump, args.address)
    text = f"{format_count(sent.files, 'file')} sent, {format_size(sent.bytes_sent)}; {sent.there} were there"
    say(f"{args.address}: {text}.")
    say_next([(command_line("ls", args.address), message("what the store holds"))])
    for path, reason in sent.failed:
        complain(f"msdump upload: {path}: {reason}")
    return INCOMPLETE if sent.failed else FINE
