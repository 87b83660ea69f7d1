"""How much memory copies that wait for a writer may take."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from msdump.config.sizes import parse_size

ASYNC_BUFFER = "MSDUMP_ASYNC_BUFFER"
_LARGEST_DEFAULT = 2 << 30


def staging_budget(environ: Mapping[str, str] = os.environ) -> int:
    """Bytes that MSDUMP_ASYNC_BUFFER asks for ("512M", "2G", "1000000"); else a quarter of what is free, at most 2 GiB.

    Raises: ConfigError.
    """
    text = environ.get(ASYNC_BUFFER, "").strip()
    if not text:
        return min(_LARGEST_DEFAULT, max(1, free_memory() // 4))
    return parse_size(ASYNC_BUFFER, text)


def free_memory() -> int:
    """Bytes that this process may still take without swapping; what its control group allows counts."""
    sizes = []
    available = re.search(r"^MemAvailable:\s+(\d+) kB", _text("/proc/meminfo"), re.MULTILINE)
    if available is not None:
        sizes.append(int(available[1]) << 10)
    limit, used = _text("/sys/fs/cgroup/memory.max").strip(), _text("/sys/fs/cgroup/memory.current").strip()
    if limit.isdigit() and used.isdigit():
        sizes.append(max(0, int(limit) - int(used)))
    # Systems without /proc say at least how much memory they have.
    return min(sizes) if sizes else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
