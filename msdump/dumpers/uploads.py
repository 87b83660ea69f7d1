"""Sending a dump to an object store while it is written: MSDUMP_UPLOAD."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from msdump.config.environment import UPLOAD, upload_address
from msdump.dumpers.tally import Tally
from msdump.errors import WriteError
from msdump.storage.uploading import Uploader


def begin_upload(root: Path, folders: Sequence[Path]) -> Uploader | None:
    """The uploader of a dump's files; None where none is configured.

    folders   of this rank alone
    Raises: ConfigError for a wrong address, or a store that no package reads; FormatError when it cannot be listed.
    """
    address = upload_address()
    return Uploader(os.fspath(root), address, list(map(os.fspath, folders))) if address else None


def sender(uploader: Uploader | None) -> Callable[[Path], None]:
    """What to call with each pack that is whole."""
    return (lambda _: None) if uploader is None else lambda path: uploader.send(os.fspath(path))


def end_upload(uploader: Uploader | None, tally: Tally) -> None:
    """Send what is left, and wait. What could not be sent makes the dump incomplete."""
    sent = None if uploader is None else uploader.close()
    if sent is not None and sent.failed:
        path, reason = sent.failed[0]
        with tally.stop_on_failure():
            raise WriteError(
                f"{UPLOAD}: expected to send {len(sent.failed) + sent.files} files, {len(sent.failed)} could not be: "
                f"{path}: {reason}. They are on this disk; `msdump pack --upload` sends what is missing."
            )
