"""The order in which named tensors were computed, as far as files tell it: an archive has them as they were put in, and
files of their own have times.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from msdump.analysis.steps import Operator, Step
from msdump.formats.dump_tensor import DumpedFile
from msdump.formats.other_tools.members import natural_key

_FEW = 3  # layers whose order tells


def in_written_order(mine: Sequence[Step], golden: Sequence[Step]) -> list[Step]:
    """Mine's steps of named tensors, in the order in which mine or, where that is not known, golden was written.

    Edges: as they are where neither tells an order, as files that were copied by their names do not.
    """
    order = next((found for step in (*mine, *golden) if (found := _order(step))), None)
    if order is None:
        return list(mine)
    place = {name: number for number, name in enumerate(order)}
    return [_sorted(step, place) for step in mine]


def _sorted(step: Step, place: dict[str, int]) -> Step:
    """What has no place stays behind the one before it."""
    keys, last = {}, -1
    for operator in step.operators:
        last = place.get(operator.label, last)
        keys[id(operator)] = last
    return replace(step, operators=tuple(sorted(step.operators, key=lambda operator: keys[id(operator)])))


def _order(step: Step) -> list[str] | None:
    """Names in the order in which they were written; None where that is not known, or is the order of names."""
    files = [file for operator in step.operators if (file := _file(operator)) is not None]
    by_name = [operator.label for operator in step.operators]
    if len(files) < len(by_name):
        return None
    members = [file.member.name for file in files if file.member is not None]
    if members:
        is_known = len(members) == len(files) and members != sorted(members, key=natural_key)
        return by_name if is_known and _counts_up(by_name) else None
    times = [_written_at(file) for file in files]
    if len(set(times)) < len(times):
        return None
    ordered = [name for _, name in sorted(zip(times, by_name, strict=True))]
    return ordered if ordered != by_name and _counts_up(ordered) else None


def _file(operator: Operator) -> DumpedFile | None:
    return next((tensor.file for _, _, tensor in operator.all_tensors()), None)


def _written_at(file: DumpedFile) -> int:
    """In nanoseconds; -1 for a file that is gone."""
    try:
        return os.stat(file.path).st_mtime_ns
    except OSError:
        return -1


def _counts_up(names: Sequence[str]) -> bool:
    """Whether there are numbers of layers, in their order, which the order of a copied folder hardly has."""
    numbers: dict[tuple[str | int, ...], list[int]] = defaultdict(list)
    for name in names:
        key = natural_key(name)
        first = next((index for index, part in enumerate(key) if isinstance(part, int)), None)
        if first is not None:
            numbers[key[:first]].append(int(key[first]))
    longest = max(numbers.values(), key=len, default=[])
    return len(longest) >= _FEW and longest == sorted(longest)
