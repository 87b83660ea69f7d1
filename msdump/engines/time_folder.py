"""The folder of a dump that is named after the moment when it began."""

from __future__ import annotations

import datetime
from pathlib import Path

from msdump.formats.async_layout import format_time
from msdump.formats.atomic import claim_dir


def claim_time(root: Path, device_id: int) -> str:
    """Name of a time folder in which nobody else has this device, whose folder is made.

    Another process, or a run before in the same second, would give its files the same names.
    Raises: WriteError.
    """
    moment = datetime.datetime.now()
    while not claim_dir(root / format_time(moment) / str(device_id)):
        moment += datetime.timedelta(seconds=1)
    return format_time(moment)
