"""Tables of a job: a Parquet file for each rank and iteration, with a row for each tensor, written whole or not at all.

A part's name tells its rank and iteration, so that whoever runs again, on any machine, leaves out what is there.
"""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.ranks.shardings import ShardingRules, sharding_of
from msdump.analysis.ranks.subjects import subjects_of
from msdump.analysis.stat.rows import COLUMNS, TensorStatistics, statistic_table
from msdump.analysis.stat.statistics import tensor_statistics
from msdump.errors import ConfigError, FormatError, MsdumpError, NothingFoundError, WriteError
from msdump.formats.atomic import make_dirs, remove_leftovers, scratch_folder
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_folders import DumpedFolder
from msdump.formats.paths.sync import METADATA_FOLDER
from msdump.formats.selection import ALL_STEPS, StepSelection, is_selected
from msdump.formats.sharding_json import MessageOperand, RankSharding, format_placement
from msdump.formats.sidecars import read_metadata
from msdump.storage.remote import is_remote
from msdump.tables.frames import INTEGER, TEXT, Column, Table, duckdb_connection, optional_package, table_of
from msdump.tensors.records import INPUT


@functools.lru_cache(maxsize=4096)
def format_ranks(ranks: tuple[int, ...]) -> str:
    """Text of ranks that ascend, so that a row of a table does not grow with the job: "0-7", "3,17", "0-56/8".

    Edges: equal sets have equal texts; "" for none.
    """
    pieces = []
    start = 0
    while start < len(ranks):
        end = start + 1
        step = ranks[end] - ranks[start] if end < len(ranks) else 0
        while end + 1 < len(ranks) and ranks[end + 1] - ranks[end] == step:
            end += 1
        if end - start >= 2 or (end < len(ranks) and step == 1):
            pieces.append(f"{ranks[start]}-{ranks[end]}" + (f"/{step}" if step > 1 else ""))
            start = end + 1
        else:
            pieces.append(str(ranks[start]))
            start += 1
    return ",".join(pieces)


def parse_ranks(text: str) -> list[int]:
    """Inverse of `format_ranks`.   Raises: ValueError."""
    ranks: list[int] = []
    for piece in filter(None, text.split(",")):
        ends, _, step = piece.partition("/")
        first, _, last = ends.partition("-")
        ranks += range(int(first), int(last or first) + 1, int(step or 1))
    return ranks


def shown_ranks(ranks: Sequence[int], most: int = 16) -> str:
    """For people: all of a few, else the short text."""
    return ", ".join(map(str, ranks)) if len(ranks) <= most else format_ranks(tuple(ranks))


MORE_COLUMNS = (
    Column("host", TEXT, "machine of the rank, where layout.json tells it"),
    Column("rank_count", INTEGER, "how many ranks the job has, where layout.json tells it"),
    Column("version", TEXT, "of MindSpore or what stood in for it when the rank was dumped, by .dump_metadata"),
    Column("time_us", INTEGER, "time stamp in the file's name, by the clock of its machine"),
    Column("placements", TEXT, "how the tensor lies over the axes of its mesh, where layout.json tells it"),
    Column(
        "equal_ranks", TEXT, "ranks that must hold the same bytes, this one included: 0-7, or 0-56/8 for each eighth"
    ),
    Column("message", TEXT, "the message whose content it is, the same text at its sender and at its receiver"),
    Column("message_end", TEXT, "sent or received"),
    Column("misuse", TEXT, "what the program did to its buffer before it had waited for the message"),
    Column("subject", TEXT, "parameter that the tensor is, or gradient of one, by the name that the model has for it"),
)
SENT, RECEIVED = "sent", "received"
_SEVERAL_RUNS = (
    "expected one run, got {count} of them. The latest one is judged. Dump each job into a folder of its own."
)
_TWICE = (
    "expected one file of each tensor, got those of several runs for {count}. Dump each job into a folder of its own."
)
_PATTERN = re.compile(r"[*?\[]")
PART = re.compile(r"rank_(?P<rank>[0-9]+|none)\.iteration_(?P<iteration>[0-9]+)\.parquet")


@dataclass(frozen=True, slots=True)
class Unit:
    """What one worker measures: an iteration of a rank.

    path   of a folder that holds that rank
    others how many runs have left this iteration of this rank beside that one, whose time is the latest
    """

    path: str
    rank: int | None
    iteration: int
    others: int = 0

    @property
    def selection(self) -> StepSelection:
        return StepSelection(self.rank, iteration=self.iteration)

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


def units_of(dumps: Iterable[str | os.PathLike[str]], selection: StepSelection = ALL_STEPS) -> list[Unit]:
    """All units of some dumps, by iteration and rank; names of folders are read, no file.

    Raises: FormatError when there is nothing at a path; ConfigError when two of them have the same unit, as two jobs in
            one command have, and when there are none.
    """
    found: dict[tuple[int, int | None], Unit] = {}
    paths = [os.fspath(path) for path in dumps]
    for path in paths:
        places: dict[tuple[int, int | None], dict[str, DumpedFolder]] = {}
        for folder in DumpDir.open(path).folders():
            place = folder.levels
            if place.iteration is not None and selection.takes(place):
                places.setdefault((place.iteration, place.rank_id), {}).setdefault(place.time or "", folder)
        for key, by_time in places.items():
            latest = by_time[max(by_time)]
            own = _folder_of_rank(latest, path, is_one_run=len(by_time) == 1)
            if key in found:
                raise ConfigError(
                    f"{own}: expected rank {key[1]}, iteration {key[0]} in one dump, got it in {found[key].path} too. "
                    "Give dumps of one job, each rank once."
                )
            found[key] = Unit(own, key[1], key[0], len(by_time) - 1)
    if not found:
        raise NothingFoundError(
            f"{', '.join(paths)}: expected folders of iterations, got none of them. Give dumps of a job."
        )
    return [found[key] for key in sorted(found, key=lambda key: (key[0], -1 if key[1] is None else key[1]))]


def _folder_of_rank(folder: DumpedFolder, root: str, is_one_run: bool) -> str:
    """The folder of the rank, whose graph files and layout belong to it; the dump itself where there is none.

    Of several runs in one dump it is that of the run.
    """
    if is_remote(root):
        head, found, _ = f"{folder.path}/".partition(f"/rank_{folder.levels.rank_id}/")
        return f"{head}/rank_{folder.levels.rank_id}" if found else root
    path = Path(os.path.abspath(folder.path))
    top = Path(os.path.abspath(root))
    names = [f"rank_{folder.levels.rank_id}", *([] if is_one_run else [folder.levels.time])]
    for parent in (path, *path.parents):
        if parent.name in names:
            return os.fspath(parent)
        if parent == top:
            break
    return root


def write_part(unit: Unit, folder: str, is_forced: bool = False, rules: ShardingRules | None = None) -> Part:
    """Measure a unit and write its part, which is there as a whole or not; one that is there stays.

    rules   layouts of tensors of which layout.json says nothing

    Errors are told by the result, so that one bad rank does not end the work of a thousand.
    """
    path = os.path.join(folder, unit.part_name)
    remove_leftovers(folder)
    several = [] if not unit.others else [(unit.path, _SEVERAL_RUNS.format(count=unit.others + 1))]
    if os.path.exists(path) and not is_forced:
        return Part(unit, path, is_new=False, damaged=tuple(several))
    try:
        dump = DumpDir.open(unit.path, keeps_headers=True)
        report = tensor_statistics(
            dump, rank=unit.rank, iteration=unit.iteration, has_md5=True, is_strict=False, thread_count=1
        )
        layout = None if unit.rank is None else dump.layouts.get(unit.rank)
        graphs = GraphFiles(dump)
        facts = Facts(unit.rank, layout, rules, _version(dump))
        table = _with_job(statistic_table(report.rows), facts, report.rows, subjects_of(report.rows, graphs))
        write_parquet_file(table, path)
    except (MsdumpError, OSError) as error:
        return Part(unit, path, problem=str(error))
    twice = _written_twice(dump, unit)
    if twice:
        several.append((unit.path, _TWICE.format(count=twice)))
    damaged = {where: str(error) for where, error in (*report.damaged, *dump.damaged)}
    return Part(unit, path, damaged=(*several, *damaged.items()))


@dataclass(frozen=True, slots=True)
class Facts:
    """What all rows of a part share.   layout: of the rank, None where there is none; rules: of the user"""

    rank: int | None
    layout: RankSharding | None
    rules: ShardingRules | None
    version: str | None


def _version(dump: DumpDir) -> str | None:
    for folder in dump.rank_dirs():
        try:
            return read_metadata(folder / METADATA_FOLDER).ms_version
        except (OSError, FormatError):
            continue  # it says nothing about the tensors
    return None


def _written_twice(dump: DumpDir, unit: Unit) -> int:
    """How many tensors have files of two runs, which differ by nothing but their time stamps."""
    names = Counter(
        (os.path.dirname(file.path), re.sub(rf"\.{file.timestamp_us}\.", "..", file.original_name))
        for file in dump.files_of(unit.selection)
        if file.timestamp_us is not None
    )
    return sum(count > 1 for count in names.values())


def _with_job(table: Table, facts: Facts, rows: Sequence[TensorStatistics], subjects: Sequence[str | None]) -> Table:
    """The table of some rows with `MORE_COLUMNS`."""
    layout = facts.layout
    host, rank_count = (None, None) if layout is None else (layout.host, layout.rank_count)
    more: list[tuple[Any, ...]] = []
    for row, subject in zip(rows, subjects, strict=True):
        tensor, step = row.tensor, row.step
        name = tensor.full_name or tensor.op_name
        place = step.graph_id or 0, name, tensor.io, tensor.slot or 0, step.iteration or 0
        found = sharding_of(layout, facts.rules, facts.rank, place, tuple(row.shape))
        placements = None if found is None else ", ".join(map(format_placement, found.placements))
        equal = None if found is None else format_ranks(found.equal_ranks)
        sent = None if layout is None else layout.find_message(*place)
        message = (None, None, None) if sent is None else _message(sent)
        stamp = tensor.file.timestamp_us
        more.append((host, rank_count, facts.version, stamp, placements, equal, *message, subject))
    job = table_of(MORE_COLUMNS, more)
    return Table((*table.columns, *job.columns), (*table.values, *job.values))


def _message(operand: MessageOperand) -> tuple[str, str, str | None]:
    message = operand.message
    text = (
        f"rank {message.source} to rank {message.destination}, group {message.group}, tag {message.tag}, "
        f"number {message.number}"
    )
    return text, SENT if operand.io == INPUT else RECEIVED, operand.misuse or None


def duckdb_path(path: str | os.PathLike[str]) -> str:
    """The path of one file as DuckDB takes it for that file and no other: it reads *, ? and [ as patterns, and ~ at
    the start as the user's folder.

    Raises: FormatError for a backslash beside one of them, which nothing makes literal.
    """
    text = os.path.abspath(path)
    if "\\" in text and _PATTERN.search(text):
        raise FormatError(f"{text}: expected a path without a backslash beside *, ? or [. Move the tables.")
    return _PATTERN.sub(r"[\g<0>]", text)


def write_parquet_file(table: Table, path: str) -> None:
    """Write a table as Parquet by duckdb, whole or not at all.

    Raises: ConfigError when duckdb is not installed; WriteError.
    """
    target = Path(path)
    make_dirs(target.parent)
    duckdb = optional_package("duckdb", "tables")
    with duckdb_connection({"part": table}, "tables") as database, scratch_folder(target.parent) as scratch:
        temporary = scratch / target.name
        try:
            # Written literally, but for a ~ at the start.
            database.sql("FROM part").write_parquet(os.path.abspath(temporary), compression="zstd")
            os.replace(temporary, target)
        except (OSError, duckdb.Error) as error:
            raise WriteError(f"{path}: expected to write the table, got: {error}.") from error


def parts_of(
    tables: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    selection: StepSelection = ALL_STEPS,
) -> list[Path]:
    """Parts in folders of tables, or parts themselves.

    Raises: FormatError when a folder has none; NothingFoundError when none is selected.
    """
    found: list[Path] = []
    for folder in [tables] if isinstance(tables, str | os.PathLike) else tables:
        parts = _parts_in(Path(folder))
        if not parts:
            raise FormatError(
                f"{os.fspath(folder)}: expected tables (rank_N.iteration_N.parquet), got none. "
                "`msdump stat DIR --tables FOLDER` writes them."
            )
        found += parts
    selected = [part for part in found if _is_selected(part, selection)]
    if not selected:
        raise NothingFoundError(f"{found[0].parent}: expected tables of these ranks and iterations, got none of them.")
    return selected


def are_tables(folder: str | os.PathLike[str]) -> bool:
    """Whether a path is a part, or a folder with parts."""
    return bool(_parts_in(Path(folder)))


def _parts_in(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix == ".parquet" else []
    return sorted(part for part in path.glob("*.parquet") if PART.fullmatch(part.name)) if path.is_dir() else []


def _is_selected(part: Path, selection: StepSelection) -> bool:
    match = PART.fullmatch(part.name)
    if match is None:
        return selection == ALL_STEPS
    own = None if match["rank"] == "none" else int(match["rank"])
    return is_selected(own, selection.rank) and is_selected(int(match["iteration"]), selection.iteration)


TABLE_COLUMNS: Sequence[Column] = (*COLUMNS, *MORE_COLUMNS)
