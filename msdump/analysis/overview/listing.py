"""Contents of a dump by steps, from names and headers alone, without reading tensors.

from msdump.analysis import list_dump
for step in list_dump("dump").steps:
    step.key.iteration, step.operator_count, step.tensor_count
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from msdump.analysis.steps import Step, StepKey, nothing_selected, opened, read_statistic_steps, read_steps
from msdump.errors import FormatError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.selection import ALL_STEPS, StepSelection
from msdump.storage.packs import split_pack_path
from msdump.storage.remote import is_remote


@dataclass(frozen=True, slots=True)
class ListedStep:
    """One iteration of one graph of one process.

    model           name of the net or model, where folders tell it
    tensor_count    inputs and outputs under names of their own
    size_bytes      of the tensors, bytes that several names share counted once for each; 0 of what are statistics only
    is_statistic    whether there are only their statistics
    """

    key: StepKey
    model: str
    operator_count: int
    tensor_count: int
    size_bytes: int
    is_statistic: bool


@dataclass(frozen=True, slots=True)
class DumpListing:
    """Result of `list_dump`.

    path            of the dump, absolute
    steps           in the order in which they ran
    graph_files     files that tell names, attributes and source lines
    overflow_files  those that tell which operators overflowed
    damaged         (file, what is wrong)
    foreign         paths below the folder that belong to no dump
    verified        tensors whose bytes were held against hashes; None where that was not asked for
    example         name of an operator whose tensors are there; "" where there is none
    disk_bytes      as `bytes_on_disk`
    """

    path: str
    steps: tuple[ListedStep, ...]
    graph_files: tuple[str, ...]
    overflow_files: tuple[str, ...]
    damaged: tuple[tuple[str, FormatError], ...]
    foreign: tuple[str, ...]
    verified: int | None = None
    example: str = ""
    disk_bytes: int | None = None

    @property
    def ranks(self) -> tuple[int, ...]:
        return distinct(step.key.rank_id for step in self.steps)

    @property
    def graphs(self) -> tuple[int, ...]:
        return distinct(step.key.graph_id for step in self.steps)

    @property
    def iterations(self) -> tuple[int, ...]:
        return distinct(step.key.iteration for step in self.steps)


def list_dump(
    dump: DumpDir | str | os.PathLike[str],
    *,
    rank: int | Collection[int] | None = None,
    graph: int | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
    verifies: bool = False,
) -> DumpListing:
    """What a dump holds. The header of each file is read, its elements are not.

    verifies  read the elements of all packs too, and hold them against the hashes that these have
    Edges:   a step that has tensors is not listed by its statistics as well; constants belong to no step.
    Raises:  ConfigError when nothing of a dump is there, or the selection fits nothing; FormatError when there is
             nothing at the path.
    """
    dump = opened(dump)
    selection = StepSelection(rank, graph, iteration)
    with dump.listed_once():
        steps = read_steps(dump, selection)
        verified = dump.verify() if verifies else None
        table, damaged = read_statistic_steps(dump, selection)
        graphs, overflows = dump.graph_files(), dump.overflow_files()
        size = bytes_on_disk(dump, selection)
    covered = {step.key for step in steps}
    listed = [_listed(step, is_statistic=False) for step in steps]
    listed += [_listed(step, is_statistic=True) for step in table.steps if step.key not in covered]
    problems = (*dump.damaged, *damaged)
    if not listed and not problems:
        raise nothing_selected(dump, selection, expected="tensors or statistics")
    return DumpListing(
        str(dump.path),
        tuple(sorted(listed, key=lambda step: tuple(-1 if part is None else part for part in step.key))),
        tuple(map(str, graphs)),
        tuple(file.path for file in overflows),
        problems,
        tuple(dump.foreign),
        verified,
        next((operator.label for step in steps for operator in step.operators if not operator.is_parameter), ""),
        size,
    )


def _listed(step: Step, is_statistic: bool) -> ListedStep:
    tensors = [tensor for operator in step.operators for _, _, tensor in operator.all_tensors()]
    model = next((tensor.model for tensor in tensors if tensor.model), "")
    size = 0 if is_statistic else sum(tensor.size_bytes for tensor in tensors)
    return ListedStep(step.key, model, len(step.operators), len(tensors), size, is_statistic)


def bytes_on_disk(dump: DumpDir, selection: StepSelection = ALL_STEPS) -> int | None:
    """Sizes of all files of the selected folders, those of graphs and statistics among them: what several names share
    counts once, and a pack as a whole. None in an object store.
    """
    if is_remote(str(dump.path)):
        return None
    sizes: dict[tuple[int, int], int] = {}
    for folder in dump.folders():
        if selection.takes(folder.levels):
            places = split_pack_path(folder.path)
            for path in [places[0]] if places else [os.path.join(folder.path, name) for name in folder.names]:
                with contextlib.suppress(OSError):  # it was removed meanwhile
                    status = os.stat(path)
                    sizes[status.st_dev, status.st_ino] = status.st_size
    return sum(sizes.values())


def distinct(values: Iterable[int | None]) -> tuple[int, ...]:
    """The numbers among them, each once, ascending."""
    return tuple(sorted({value for value in values if value is not None}))
