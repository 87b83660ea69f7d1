"""Counts what one step of LeNet-5 does to the machine: `python -m tests.physics STEPS`, as JSON.

Printed are the counts of each step after the first, so that what happens once in a process is left out. Time is not
measured: counts are the same on a busy machine.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.mindspore_steps import lenet_step

counts: Counter[str] = Counter()


def _counted(function: Callable[..., Any], count: Callable[[Any, tuple[Any, ...]], dict[str, int]]) -> Any:
    """The function, and beside it the counts that its result and its arguments give."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        counts.update(count(result, args))
        return result

    return call


def _digest(function: Callable[..., Any]) -> Callable[..., Any]:
    """hashlib.md5, which gets its data when it is made or later."""

    def make(data: Any = b"", **kwargs: Any) -> Any:
        counts.update(digested=memoryview(data).nbytes)
        return function(data, **kwargs)

    return make


def install() -> None:
    """Count from now on. The calls go through these names: modules take them from `os`, `np` and `stats` each time."""
    from msdump.statistics import stats

    def as_written(result: int, _: Any) -> dict[str, int]:
        return {"writes": 1, "written": result}

    for name in ("write", "writev", "pwrite", "pwritev"):
        setattr(os, name, _counted(getattr(os, name), as_written))
    os.open = _counted(os.open, lambda _, args: {"opens": 1})
    os.link = _counted(os.link, lambda _, args: {"links": 1})
    os.rename = _counted(os.rename, lambda _, args: {"renames": 1})
    os.replace = _counted(os.replace, lambda _, args: {"renames": 1})
    os.fsync = _counted(os.fsync, lambda _, args: {"syncs": 1})
    np.copyto = _counted(np.copyto, lambda _, args: {"copied": args[0].nbytes})
    stats.totals_of = _counted(stats.totals_of, lambda _, args: {"passes": 1, "measured": args[0].nbytes})
    hashlib.md5 = _digest(hashlib.md5)


def main() -> None:
    step = lenet_step(8)
    install()
    from msdump.engine import opening

    each = []
    for _ in range(int(sys.argv[1])):
        counts.clear()
        step()
        opened = opening.current()
        pool = None if opened is None else opened.pool
        if pool is not None:
            pool.drain()
        each.append(dict(counts))
    print(json.dumps(each[1:]))


if __name__ == "__main__":
    main()
