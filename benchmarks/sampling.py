"""From rounds to results: as many rounds as their agreement needs, and their median, least and greatest value."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from benchmarks.registry import Bench, Line, Row, Sample
from benchmarks.results import Result

# Distance of the quartiles over the median, below which rounds agree.
SPREAD = 0.10


def spread(values: list[float]) -> float:
    """Distance of the quartiles over the median; of fewer than four values that of the extremes."""
    middle = abs(statistics.median(values)) or 1.0
    if len(values) < 4:
        return (max(values) - min(values)) / middle
    first, _, third = statistics.quantiles(values, n=4)
    return (third - first) / middle


def sample(row: Row, bench: Bench) -> list[Result]:
    """Results of a row, one for each of its lines."""
    least, most, seconds = (min(2, row.least), 3, 30.0) if bench.is_quick else (row.least, row.most, row.seconds)
    rounds: list[Mapping[str, Sample]] = []
    load = os.getloadavg()[0]
    with closing(_as_generator(row.measure(bench))) as measured:
        began = time.perf_counter()
        for values in measured:
            rounds.append(values)
            is_over = time.perf_counter() - began > seconds or len(rounds) >= most
            if len(rounds) >= least and (is_over or _agree(rounds)):
                break
    return [_result(row, key, rounds, bench, load) for key in row.lines if key in rounds[0]]


def _as_generator(rounds: Iterator[Mapping[str, Sample]]) -> Any:
    return rounds


def _agree(rounds: list[Mapping[str, Sample]]) -> bool:
    return all(spread([_value(values[key]) for values in rounds]) <= SPREAD for key in rounds[0])


def _value(one: Sample) -> float:
    if isinstance(one, float | int):
        return one
    if len(one) == 2:
        return one[0] / one[1]
    return (one[0] - one[1]) / (one[2] - one[3] if len(one) == 4 else one[2])


def _best(samples: list[Sample], line: Line) -> float:
    """The value of the shortest times of all rounds, which other programs lengthened least."""
    times = [one for one in samples if isinstance(one, tuple)]
    if times:
        return _value(tuple(min(column) for column in zip(*times, strict=True)))
    numbers = [_value(one) for one in samples]
    return max(numbers) if line.aim.startswith(">=") or line.unit.endswith("/s") else min(numbers)


def _result(row: Row, key: str, rounds: list[Mapping[str, Sample]], bench: Bench, load: float) -> Result:
    line = row.lines[key]
    samples = [values[key] for values in rounds]
    values = [_value(one) for one in samples]
    median = statistics.median(values)
    best = _best(samples, line)
    times = [one for one in samples if isinstance(one, tuple)]
    return Result(
        row=row.name,
        line=key,
        section=row.section,
        what=line.what,
        against=line.against,
        aim=line.aim,
        unit=line.unit,
        median=median,
        best=best,
        least=min(values),
        greatest=max(values),
        spread=spread(values),
        is_settled=spread(values) <= SPREAD,
        is_met=line.is_met(median),
        is_met_at_best=line.is_met(best),
        rounds=len(values),
        seconds=[statistics.median(column) for column in zip(*times, strict=True)],
        note=bench.notes.get(key, ""),
        load=load,
    )
