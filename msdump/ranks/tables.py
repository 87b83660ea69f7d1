"""Tables of a job: a Parquet file for each rank and iteration, with a row for each tensor, written whole or not at all.

A part's name tells its rank and iteration, so that whoever runs again, on any machine, leaves out what is there.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.overview.health import tensor_of
from msdump.analysis.stat.rows import COLUMNS, statistic_table
from msdump.analysis.stat.statistics import tensor_statistics
from msdump.analysis.steps import Slot, StepKey, is_selected, read_steps
from msdump.analysis.unset import UnsetTensors
from msdump.errors import ConfigError, FormatError, MsdumpError, WriteError
from msdump.formats.atomic import make_dirs
from msdump.formats.dump_dir import DumpDir
from msdump.formats.layout_json import RankLayout, format_placement
from msdump.formats.layout_messages import MessageOperand
from msdump.frames import FLAG, SIZES, TEXT, Column, Table, duckdb_connection, optional_package, table_of
from msdump.ranks.layouts import LayoutRules, layout_of
from msdump.records import INPUT
from msdump.storage.remote import is_remote

MORE_COLUMNS = (
    Column("host", TEXT, "machine of the rank, where layout.json tells it"),
    Column("placements", TEXT, "how the tensor lies over the axes of its mesh, where layout.json tells it"),
    Column("equal_ranks", SIZES, "ranks that must hold the same bytes, this one included"),
    Column("message", TEXT, "the message whose content it is, the same text at its sender and at its receiver"),
    Column("message_end", TEXT, "sent or received"),
    Column("misuse", TEXT, "what the program did to its buffer before it had waited for the message"),
    Column("is_unset", FLAG, "memory that no operator has written yet, whose numbers mean nothing"),
)
SENT, RECEIVED = "sent", "received"
PART = re.compile(r"rank_(?P<rank>[0-9]+|none)\.iteration_(?P<iteration>[0-9]+)\.parquet")


@dataclass(frozen=True, slots=True)
class Unit:
    """What one worker measures: an iteration of a rank.   path: of a folder that holds that rank"""

    path: str
    rank: int | None
    iteration: int

    @property
    def part_name(self) -> str:
        """Of its file, the same wherever it runs."""
        rank = "none" if self.rank is None else f"{self.rank:05}"
        return f"rank_{rank}.iteration_{self.iteration:08}.parquet"


@dataclass(frozen=True, slots=True)
class Part:
    """What became of a unit.

    is_new   False: it was there already
    problem  why there is none; "" where there is
    damaged  (file, what is wrong) of what could not be measured
    """

    unit: Unit
    path: str
    is_new: bool = True
    problem: str = ""
    damaged: tuple[tuple[str, str], ...] = ()


def units_of(
    dumps: Iterable[str | os.PathLike[str]],
    rank: int | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
) -> list[Unit]:
    """All units of some dumps, by iteration and rank; names of folders are read, no file.

    Raises: FormatError when there is nothing at a path; ConfigError when two of them have the same unit, as two jobs in
            one command have, and when there are none.
    """
    found: dict[tuple[int, int | None], str] = {}
    paths = [os.fspath(path) for path in dumps]
    for path in paths:
        places: dict[tuple[int, int | None], str] = {}
        for folder in DumpDir.open(path).folders():
            place = folder.place
            if place.iteration is None or not is_selected(place.rank_id, rank):
                continue
            if is_selected(place.iteration, iteration):
                places.setdefault((place.iteration, place.rank_id), _folder_of_rank(folder.path, path, place.rank_id))
        for key, own in places.items():
            if key in found:
                raise ConfigError(
                    f"{own}: expected rank {key[1]}, iteration {key[0]} in one dump, got it in {found[key]} too. "
                    "Give dumps of one job, each rank once."
                )
        found.update(places)
    if not found:
        raise ConfigError(f"{', '.join(paths)}: expected folders of iterations, got none of them. Give dumps of a job.")
    keys = sorted(found, key=lambda key: (key[0], -1 if key[1] is None else key[1]))
    return [Unit(found[key], key[1], key[0]) for key in keys]


def _folder_of_rank(folder: str, root: str, rank: int | None) -> str:
    """The folder of the rank, whose graph files and layout belong to it; the dump itself where there is none."""
    if is_remote(root):
        head, found, _ = f"{folder}/".partition(f"/rank_{rank}/")
        return f"{head}/rank_{rank}" if found else root
    path = Path(os.path.abspath(folder))
    top = Path(os.path.abspath(root))
    for parent in (path, *path.parents):
        if parent.name == f"rank_{rank}":
            return os.fspath(parent)
        if parent == top:
            break
    return root


def write_part(unit: Unit, folder: str, is_forced: bool = False, rules: LayoutRules | None = None) -> Part:
    """Measure a unit and write its part, which is there as a whole or not; one that is there stays.

    rules   layouts of tensors of which layout.json says nothing

    Errors are told by the result, so that one bad rank does not end the work of a thousand.
    """
    path = os.path.join(folder, unit.part_name)
    if os.path.exists(path) and not is_forced:
        return Part(unit, path, is_new=False)
    try:
        dump = DumpDir.open(unit.path, keeps_headers=True)
        report = tensor_statistics(dump, rank=unit.rank, iteration=unit.iteration, has_md5=True, thread_count=1)
        layout = None if unit.rank is None else dump.layouts.get(unit.rank)
        unset = _unset(dump, unit)
        is_unset = [tensor_of(row) in unset for row in report.rows]
        table = _with_layout(statistic_table(report.rows), unit.rank, layout, rules, is_unset)
        write_parquet_file(table, path)
    except (MsdumpError, OSError) as error:
        return Part(unit, path, problem=str(error))
    damaged = {where: str(error) for where, error in (*report.damaged, *dump.damaged)}
    return Part(unit, path, damaged=tuple(damaged.items()))


def _unset(dump: DumpDir, unit: Unit) -> set[tuple[StepKey, str, str, Slot]]:
    graphs = GraphFiles(dump)
    return {
        (step.key, operator.label, io, slot)
        for step in read_steps(dump, rank=unit.rank, iteration=unit.iteration)
        for operator, io, slot in UnsetTensors(step, graphs.of(step.key)).places
    }


def _with_layout(
    table: Table,
    rank: int | None,
    layout: RankLayout | None,
    rules: LayoutRules | None,
    is_unset: Sequence[bool],
) -> Table:
    values = {column.name: column_values for column, column_values in zip(table.columns, table.values, strict=True)}
    names = ("graph", "full_name", "op_name", "io", "slot", "iteration", "shape")
    host = None if layout is None else layout.host
    rows: list[tuple[Any, ...]] = []
    places = zip(*(values[name] for name in names), strict=True)
    for (graph, full_name, op_name, io, slot, iteration, shape), unset in zip(places, is_unset, strict=True):
        place = graph or 0, full_name or op_name, io, slot or 0, iteration or 0
        found = layout_of(layout, rules, rank, place, shape)
        placements = None if found is None else ", ".join(map(format_placement, found.placements))
        equal = None if found is None else found.equal_ranks
        sent = None if layout is None else layout.find_message(*place)
        message = (None, None, None) if sent is None else _message(sent)
        rows.append((host, placements, equal, *message, unset))
    more = table_of(MORE_COLUMNS, rows)
    return Table((*table.columns, *more.columns), (*table.values, *more.values))


def _message(operand: MessageOperand) -> tuple[str, str, str | None]:
    message = operand.message
    text = (
        f"rank {message.source} to rank {message.destination}, group {message.group}, tag {message.tag}, "
        f"number {message.number}"
    )
    return text, SENT if operand.io == INPUT else RECEIVED, operand.misuse or None


def write_parquet_file(table: Table, path: str) -> None:
    """Write a table as Parquet by duckdb, whole or not at all.

    Raises: ConfigError when duckdb is not installed; WriteError.
    """
    target = Path(path)
    make_dirs(target.parent)
    temporary = target.parent / f".{target.name}.{uuid.uuid4().hex}.tmp"
    duckdb = optional_package("duckdb", "tables")
    with duckdb_connection({"part": table}, "tables") as database:
        try:
            database.sql("FROM part").write_parquet(os.fspath(temporary), compression="zstd")
            os.replace(temporary, target)
        except (OSError, duckdb.Error) as error:
            raise WriteError(f"{path}: expected to write the table, got: {error}.") from error
        finally:
            temporary.unlink(missing_ok=True)


def parts_of(folder: str | os.PathLike[str]) -> list[Path]:
    """Parts below a folder of tables, or one part.   Raises: FormatError when there are none."""
    root = Path(folder)
    if root.is_file():
        return [root]
    parts = sorted(path for path in root.glob("*.parquet") if PART.fullmatch(path.name)) if root.is_dir() else []
    if not parts:
        raise FormatError(
            f"{os.fspath(folder)}: expected tables (rank_N.iteration_N.parquet), got none. "
            "`msdump stat DIR --tables FOLDER` writes them."
        )
    return parts


TABLE_COLUMNS: Sequence[Column] = (*COLUMNS, *MORE_COLUMNS)
