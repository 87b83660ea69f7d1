"""Warnings, at the start of a dump with its own files, for common environment variables that it ignores."""

from __future__ import annotations

import logging

from msdump.config.environment import CONTAINER, PACK, UPLOAD, container, upload_address

log = logging.getLogger("msdump")
_CONSEQUENCES = {CONTAINER: "its files stay files", UPLOAD: "`msdump upload` sends its files"}


def say_ignored(dump: str, *names: str) -> None:
    """Warn of each of these variables that is set.   dump: which one does not obey them, "a dump of TorchAir"

    Raises: ConfigError for values that no dump takes.
    """
    asked = {CONTAINER: container() == PACK, UPLOAD: bool(upload_address())}
    for name in names:
        if asked[name]:
            log.warning("%s has no effect on %s: %s.", name, dump, _CONSEQUENCES[name])
