"""Reuse of freed memory pages for the next dumped step."""

from __future__ import annotations

import ctypes
import functools
import os
import sys

# Of mallopt(3): -1 as the threshold ends trimming, 0 as the number of mappings ends mappings of their own.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_CHOICES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")


@functools.cache
def keep_freed_memory() -> bool:
    """Let the C library keep what is freed for the next step, which wants as much again; True when it does.

    A dump that is written at the end of a step holds gigabytes that the model alone would have used over and over.
    Given back to the system and taken again, each page of them costs a fault in every step. The process stays as
    large as its largest step. Nothing changes where the environment configures the heap, or where it is not glibc's.
    """
    if not sys.platform.startswith("linux") or any(name in os.environ for name in _CHOICES):
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
        return bool(set_option(_M_TRIM_THRESHOLD, -1)) and bool(set_option(_M_MMAP_MAX, 0))
    except (OSError, AttributeError):
        return False
