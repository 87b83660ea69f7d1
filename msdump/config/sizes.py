"""Sizes in bytes as people write them in environment variables: 512M, 2G, 1000000."""

from __future__ import annotations

import re

from msdump.errors import ConfigError

_SIZE = re.compile(r"([0-9]{1,18})\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_FACTOR = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(variable: str, text: str, smallest: int = 1) -> int:
    """Bytes; K, M, G and T count in steps of 1024, whatever follows them.

    Raises: ConfigError naming the environment variable.
    """
    match = _SIZE.fullmatch(text.strip())
    size = int(match[1]) * _FACTOR[match[2].upper()] if match is not None else -1
    if size < smallest:
        raise ConfigError(
            f"environment variable {variable}: expected a size of at least {smallest} bytes such as 512M, 2G or "
            f'1000000, got "{text}". Correct it, or unset the variable.'
        )
    return size


def format_size(size_bytes: int) -> str:
    """For messages: "1.5 GiB"; below one KiB "512 bytes"."""
    for unit, factor in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes} bytes"
