"""One map over units for every engine: this process, threads, processes, Dask, Ray, or a share of a Slurm array.

Units write files of their own, so that an engine only places and retries them.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from msdump.errors import ConfigError, did_you_mean
from msdump.tables.frames import optional_package

_Unit = TypeVar("_Unit")
_Result = TypeVar("_Result")
THREADS, PROCESSES, DASK, RAY = "threads", "processes", "dask", "ray"
ENGINES = (THREADS, PROCESSES, DASK, RAY)
SLURM = "slurm"
# Processes take about as long to start.
_ALONE_SECONDS = 2.0
_PART = re.compile(r"(?P<number>[0-9]{1,9})/(?P<count>[0-9]{1,9})")
_BACKENDS = {THREADS: "threading", PROCESSES: "loky", DASK: "dask", RAY: "ray"}


def each_unit(
    function: Callable[[_Unit], _Result],
    units: Sequence[_Unit],
    engine: str = PROCESSES,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[_Result]:
    """The results in the order of the units.

    engine  THREADS; PROCESSES; "dask=ADDRESS" or "dask=scheduler.json", "dask" alone for a cluster on this machine;
            "ray" for the cluster that RAY_ADDRESS names, or this machine
    jobs    workers of the first two; None is one for each core, where processes start for what this process has left
            after two seconds; 1 is this process itself
    progress  called with (units done, units in all); by the engines of a cluster at the end alone
    Edges:  a lost worker's units run again with Dask and Ray; with PROCESSES the call fails, and parts that are there
            stay.
    Raises: ConfigError for an unknown engine and an absent package.
    """
    name, _, address = engine.partition("=")
    if name not in ENGINES or (address and name != DASK):
        advice = did_you_mean(name, ENGINES)
        raise ConfigError(
            f"--engine: expected one of {', '.join(ENGINES)}, or dask=ADDRESS, got {engine}. {advice}".rstrip()
        )
    if name in (THREADS, PROCESSES) and (jobs == 1 or len(units) < 2):
        return _followed(map(function, units), len(units), progress)
    found: list[_Result] = []
    if name == PROCESSES and jobs is None:
        until = time.monotonic() + _ALONE_SECONDS
        alone = itertools.takewhile(lambda _: time.monotonic() < until, units)
        _followed(map(function, alone), len(units), progress, found)
    if len(found) == len(units):
        return found
    joblib = optional_package("joblib", "--jobs", "give --jobs 1")
    with _cluster(name, address), joblib.parallel_config(backend=_BACKENDS[name], n_jobs=jobs or -1):
        parallel = joblib.Parallel(return_as="generator" if name in (THREADS, PROCESSES) else "list")
        left = (joblib.delayed(function)(unit) for unit in units[len(found) :])
        return _followed(parallel(left), len(units), progress, found)


def _followed(
    results: Iterable[_Result],
    total: int,
    progress: Callable[[int, int], None] | None,
    found: list[_Result] | None = None,
) -> list[_Result]:
    """found: results so far, to which these are added"""
    found = [] if found is None else found
    for result in results:
        found.append(result)
        if progress is not None:
            progress(len(found), total)
    return found


def on_each_worker(function: Callable[[], _Result], engine: str = PROCESSES, jobs: int | None = None) -> list[_Result]:
    """The results of one call on each worker.   engine, jobs, Raises: as `each_unit`

    Edges:  with Dask it is each worker of the cluster; elsewhere as many calls as there are workers, which the engine
            places.
    """
    name, _, address = engine.partition("=")
    if name == DASK:
        with _cluster(name, address) as client:
            return list(client.run(function).values())
    workers = jobs or len(os.sched_getaffinity(0))
    return each_unit(partial(_call, function), range(workers), engine, workers)


def _call(function: Callable[[], _Result], _: int) -> _Result:
    return function()


@contextmanager
def _cluster(name: str, address: str) -> Iterator[Any]:
    if name == DASK:
        distributed = optional_package("distributed", "--engine dask")
        where = {"scheduler_file": address} if address.endswith(".json") else {"address": address or None}
        with distributed.Client(**where) as client:
            yield client
    elif name == RAY:
        optional_package("ray.util.joblib", "--engine ray").register_ray()
        yield None
    else:
        yield None


def share_of(units: Sequence[_Unit], part: str | None) -> list[_Unit]:
    """The units of one part: "3/10" is the third of ten; SLURM takes both numbers from the array's variables.

    Edges:  every unit is in exactly one part; None is all.
    Raises: ConfigError.
    """
    if part is None:
        return list(units)
    if part == SLURM:
        names = ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT")
        texts = [os.environ.get(name, "") for name in names]
        if not all(text.isascii() and text.isdigit() for text in texts):
            raise ConfigError(
                f"--part: expected the variables {', '.join(names)} of a Slurm array, got none. Write 1/4."
            )
        number, first, count = map(int, texts)
        number += 1 - first
    else:
        match = _PART.fullmatch(part)
        number, count = (0, 0) if match is None else (int(match["number"]), int(match["count"]))
    if not 1 <= number <= count:
        raise ConfigError(f'--part: expected a part such as 1/4 to 4/4, or {SLURM}, got "{part}".')
    return list(units[number - 1 :: count])
