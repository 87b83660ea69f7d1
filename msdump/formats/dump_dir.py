"""DumpDir: any folder of dump files, whoever wrote it, as a stream of tensors.

    dump = msdump.open("rank_0")                  # or any folder above or below it, or one file
    for tensor in dump.tensors(iteration=3, op_type="Conv2D", io="output"):
        tensor.load()                             # a view of the mapped file

Names are read first and bytes last: `files` opens nothing, `tensors` reads the header of one file at a time, `load`
maps the data. Files are untrusted: what is damaged is counted and named, links that leave the folder are not followed.
A dump may lie in packs, whose files are found as if the pack were a folder, and below an address of an object store.
"""

from __future__ import annotations

import fnmatch
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msdump.errors import FormatError
from msdump.formats.dump_folders import DumpedFolder, FolderWalk, is_plain_below
from msdump.formats.dump_tensor import DumpedFile, DumpedTensor
from msdump.formats.gradients_csv import GRADIENTS_FILE, GradientRow, read_gradients
from msdump.formats.iterations_jsonl import ExecutedOperators, read_iterations
from msdump.formats.learning_json import LEARNING_FILE, Learning, read_learning
from msdump.formats.msprobe_json import (
    MSPROBE_FILE,
    STACK_FILE,
    Frame,
    read_msprobe_arguments,
    read_msprobe_dump,
    read_msprobe_parents,
    read_msprobe_records,
    read_msprobe_stacks,
)
from msdump.formats.other_tools.containers import suffix_of
from msdump.formats.other_tools.files import NamedFiles
from msdump.formats.other_tools.members import natural_key
from msdump.formats.paths import parse
from msdump.formats.paths.acl import parse_stats_file_name
from msdump.formats.paths.parse import BARE, MODEL, MSPROBE, OPERATOR, SYNC, FolderLevels, safe_text
from msdump.formats.paths.sync import MAPPING_FILE, METADATA_FOLDER, STATISTIC_FILE, selected_op_types
from msdump.formats.selection import StepSelection
from msdump.formats.sidecars import LOST_FILE, Lost, read_lost, read_mapping, read_order
from msdump.formats.steps_json import STEPS_FILE, TrainingSteps, read_steps
from msdump.process.default_folder import CLAIM_FILE
from msdump.storage import files as storage
from msdump.storage.pack_format import INDEX_FOLDER
from msdump.storage.packs import is_pack_name, split_pack_path
from msdump.storage.plain import SIDE_BYTES, is_temporary, readable, unreadable
from msdump.tables.frames import html_table
from msdump.tensors.makers import maker

if TYPE_CHECKING:
    from msdump.formats.sharding_json import RankSharding

_Content = TypeVar("_Content")
_RANK = re.compile(r"rank_[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class OperatorOrder:
    """Execution order of one graph: full names, and where each form of a name stands in it."""

    full_names: tuple[str, ...] = ()
    position_by_name: dict[str, int] = field(default_factory=dict)

    def find(self, name: str) -> int | None:
        """Position of an operator by its full name, its escaped full name, or the last part of it when only one
        operator has that."""
        position = self.position_by_name.get(name)
        return None if position is None or position < 0 else position


_NO_ORDER = OperatorOrder()
_dumped_file = maker(DumpedFile)


class DumpDir:
    """A dump that is being read. Nothing is kept open; one thread at a time.

    path       the folder or file that was opened, absolute
    is_strict  True: the first damaged file raises
    keeps_headers  True: names and headers are read once, for several questions about the same files; takes memory

    Iteration order: rank, time, iteration, graph, then execution order where a csv tells it, else time stamps.
    """

    def __init__(self, path: str | os.PathLike[str], is_strict: bool = False, keeps_headers: bool = False) -> None:
        self.path = storage.absolute(path)
        self.is_strict = is_strict
        self._headers: dict[str, list[DumpedTensor]] | None = {} if keeps_headers else None
        self._walks: list[list[DumpedFolder]] | None = None  # inside of `listed_once`
        self._listed: dict[DumpedFolder, list[DumpedFile]] = {}
        self._damaged: dict[tuple[str, str], FormatError] = {}
        self._foreign: set[str] = set()
        self._orders: dict[tuple[str, int], OperatorOrder] = {}
        self._iterations: dict[tuple[str, int], list[tuple[int, ExecutedOperators]]] = {}
        # Of what an iteration executed, which many have in common.
        self._executed_orders: dict[tuple[str, int, tuple[int, ...]], OperatorOrder] = {}

    @classmethod
    def open(cls, path: str | os.PathLike[str], strict: bool = False, keeps_headers: bool = False) -> DumpDir:
        """Open a dump by any folder of it, by one file, or by an address (`s3://...`); nothing is read yet.

        strict         True: the first damaged file raises FormatError; False: it goes to `damaged`
        keeps_headers  True: names and headers are read once, for several questions about the same files

        Edges:   what lies in packs, and files of other tools, are read alike.
        Raises:  FormatError when there is nothing at `path`.
        """
        if not storage.exists(path):
            raise FormatError(f"{os.fspath(path)}: expected a folder or file of a dump, got nothing. Is it mounted?")
        return cls(path, strict, keeps_headers)

    def __repr__(self) -> str:
        """One line, for which nothing is read."""
        return f"<{type(self).__name__} {self.path}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the folders and how many files they hold; nothing is opened."""
        folders = list(self.folders())
        rows = (
            (one.levels.rank_id, one.levels.model, one.levels.graph_id, one.levels.iteration, len(one.names))
            for one in folders
        )
        return html_table(str(self.path), ("rank", "model", "graph", "iteration", "files"), rows, len(folders))

    # -- what is there ----------------------------------------------------------------------------

    @property
    def damaged(self) -> list[tuple[str, FormatError]]:
        """Files that could not be read so far, each with what is wrong, in the order in which they were met."""
        return [(path, error) for (path, _), error in self._damaged.items()]

    @property
    def foreign(self) -> list[str]:
        """Paths below the folder that belong to no dump: unknown names, links that lead out, devices."""
        return sorted(self._foreign)

    @contextmanager
    def listed_once(self) -> Iterator[None]:
        """Let all questions asked inside of the block see the folders as the first one finds them, which lists them."""
        before = self._walks
        self._walks = [] if before is None else before
        try:
            yield
        finally:
            self._walks = before

    def folders(self) -> Iterator[DumpedFolder]:
        """Every folder that holds files, in the order in which a run fills them."""
        return iter(self._walk())

    def files(
        self,
        *,
        rank: int | Collection[int] | None = None,
        graph: int | str | Collection[int] | None = None,
        iteration: int | Collection[int] | None = None,
    ) -> Iterator[DumpedFile]:
        """Data files of the folders that fit; none is opened.   graph: an id, or a glob of the net or model name"""
        return self.files_of(StepSelection(rank, graph, iteration))

    def files_of(self, selection: StepSelection) -> Iterator[DumpedFile]:
        """As `files`."""
        for folder in self._walk():
            if selection.takes(folder.levels):
                yield from self._files_of(folder)

    def tensors(
        self,
        *,
        rank: int | Collection[int] | None = None,
        graph: int | str | Collection[int] | None = None,
        iteration: int | Collection[int] | None = None,
        op_type: str | Collection[str] | None = None,
        op_name: str | None = None,
        io: str | None = None,
        slot: int | Collection[int] | None = None,
    ) -> Iterator[DumpedTensor]:
        """Tensors whose identity fits; a file's header is read when its turn comes.

        graph    an id, or a glob of the net or model name
        op_type  a type or several, as the framework or as file names spell it: aten.log.default, aten_log_default
        op_name  a glob of the name in the file name or of the full name
        io       "input" or "output"
        slot     index among the inputs or outputs, or several
        Raises:  FormatError for a damaged file when the dump was opened strictly; otherwise it goes to `damaged`.
        """
        selection, types = StepSelection(rank, graph, iteration), selected_op_types(op_type)
        if op_type is None and op_name is None and io is None and slot is None:
            yield from self.tensors_of(selection)
            return
        for file in self.files_of(selection):
            if not _is_one_of(file.op_type, types) or not (op_name is None or _has_name(file, op_name)):
                continue
            # Names of files that hold several tensors do not tell these.
            if not (io is None or file.io in (None, io)) or not (file.slot is None or _is_one_of(file.slot, slot)):
                continue
            for tensor in self.read(file):
                if (io is None or tensor.io == io) and _is_one_of(tensor.slot, slot):
                    yield tensor

    def tensors_of(self, selection: StepSelection) -> Iterator[DumpedTensor]:
        """As `tensors`: all of the selected steps."""
        for file in self.files_of(selection):
            yield from self.read(file)

    def __iter__(self) -> Iterator[DumpedTensor]:
        return self.tensors()

    def verify(self) -> int:
        """Read every tensor that the index of a pack has a hash of, and hold its bytes against that; how many there
        are. What differs goes to `damaged`.

        Raises: FormatError for the first that differs when the dump was opened strictly.
        """
        packs = {places[0]: None for folder in self._walk() if (places := split_pack_path(folder.path)) is not None}
        return sum(self._verify_pack(path) for path in packs)

    def read(self, file: DumpedFile) -> list[DumpedTensor]:
        """Tensors of one file; what is damaged in it goes to `damaged`, or raises when opened strictly."""
        if file.member is not None:
            return file.tensors()  # the header was read to tell that it is there
        if self._headers is not None and file.path in self._headers:
            return self._headers[file.path]
        tensors, errors = file.scan()
        if self._headers is not None:
            self._headers[file.path] = tensors
        for error in errors:
            self._damage(file.path, error)
        return tensors

    # -- what lies beside the tensors -------------------------------------------------------------

    def order(self, rank_dir: str | os.PathLike[str], graph_id: int) -> OperatorOrder:
        """Execution order of a graph of a synchronous dump; empty when no csv tells it."""
        key = (os.fspath(rank_dir), graph_id)
        found = self._orders.get(key)
        if found is None:
            found = self._orders[key] = self._read_order(*key)
        return found

    def order_in(self, folder: DumpedFolder) -> OperatorOrder:
        """Execution order of the graph whose tensors lie in a folder."""
        place, graph_id = folder.levels, folder.levels.graph_id
        if place.grammar == MSPROBE:
            return self._msprobe_order(_beside_msprobe(folder.path, MSPROBE_FILE))
        if graph_id is None:
            return OperatorOrder()
        rank_dir: str | None = None
        if place.grammar == SYNC:
            rank_dir = os.sep.join(folder.path.split(os.sep)[: place.rank_depth])
        elif place.grammar == MODEL:
            rank_dir = rank_beside(folder)
        return OperatorOrder() if rank_dir is None else self._order_of(rank_dir, graph_id, place.iteration)

    def executed(
        self, rank_dir: str | os.PathLike[str], graph_id: int, iteration: int | None
    ) -> ExecutedOperators | None:
        """What an iteration of a graph executed; None where it always executes the same, as far as the dump tells."""
        key = (os.fspath(rank_dir), graph_id)
        if key not in self._iterations:
            path = os.path.join(key[0], "execution_order", f"ms_iteration_order_graph_{graph_id}.jsonl")
            read = partial(read_iterations, graph_id=graph_id)
            self._iterations[key] = (self._read(path, read) if self._has(path, key[0]) else None) or []
        found = self._iterations[key]
        index = bisect_right(found, iteration, key=itemgetter(0)) if iteration is not None else 0
        return found[index - 1][1] if index else None

    def may_run_again(self, file: DumpedFile) -> bool:
        """Whether the graph of a file may run several times in an iteration: it is a part of a program with control
        flow. Files of the first graph of a synchronous dump that come twice are of another process.

        Source: MindSpore: only the first graph of a program has a history.
        """
        place = file.levels
        if place.grammar != SYNC:
            return place.grammar == MODEL
        folder = os.path.join(os.sep.join(file.path.split(os.sep)[: place.rank_depth]), "execution_order")
        names = [f"ms_{kind}_order_graph_{place.graph_id}.csv" for kind in ("execution", "global_execution")]
        has_order, has_history = (storage.exists(os.path.join(folder, name)) for name in names)
        return has_order and not has_history

    def overflow_files(self) -> list[DumpedFile]:
        """Files that say where an operator overflowed, by time stamp."""
        files = (file for folder in self._walk() for file in self._named(folder, self._original_names(folder)))
        found = [file for file in files if file.form == parse.OVERFLOW]
        return sorted(found, key=lambda file: (file.timestamp_us or 0, file.path))

    def statistic_files(self) -> list[tuple[FolderLevels, Path]]:
        """Every statistic.csv and where it lies."""
        return self._side_files(lambda name: name == STATISTIC_FILE)

    def statistic_dump_files(self) -> list[tuple[FolderLevels, Path, str]]:
        """Every csv that ACL writes for one operator instead of its tensors: where it lies, and the name that it has
        or, where that was too long, stands for."""
        return [
            (folder.levels, Path(folder.path, name), original)
            for folder in self._walk()
            for name, original in self._original_names(folder)
            if parse_stats_file_name(original) is not None
        ]

    def msprobe_files(self) -> list[tuple[FolderLevels, Path]]:
        """Every dump.json of msprobe and where it lies."""
        files = self._side_files(lambda name: name == MSPROBE_FILE)
        return [(place, path) for place, path in files if place.grammar == MSPROBE]

    def has_statistics(self) -> bool:
        """Whether there are files of statistics, of any form."""
        return bool(self.statistic_files() or self.statistic_dump_files() or self.msprobe_files())

    def msprobe_stack_files(self) -> list[tuple[FolderLevels, Path]]:
        """Every stack.json of msprobe and where it lies."""
        files = self._side_files(lambda name: name == STACK_FILE)
        return [(place, path) for place, path in files if place.grammar == MSPROBE]

    def msprobe_stacks(self, path: str | os.PathLike[str]) -> dict[str, tuple[Frame, ...]]:
        """Stacks of a stack.json, the outermost frame first, by record; none of a damaged file."""
        return self._read(os.fspath(path), read_msprobe_stacks) or {}

    def msprobe_arguments(self, path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
        """Arguments that are no tensors, by record, of the dump.json beside a stack.json; none of a damaged file."""
        beside = os.path.join(os.path.dirname(path), MSPROBE_FILE)
        return (self._read(beside, read_msprobe_arguments) if storage.exists(beside) else None) or {}

    def msprobe_beside(self, file: DumpedFile, name: str = MSPROBE_FILE) -> str:
        """Path of a file of msprobe's that belongs to a data file."""
        return _beside_msprobe(os.path.dirname(file.path), name)

    def msprobe_records(self, path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
        """Framework, "pytorch" or "mindspore", and records of a dump.json; none of a damaged file."""
        return self._read(os.fspath(path), read_msprobe_dump) or ("pytorch", {})

    def msprobe_parents(self, path: str | os.PathLike[str]) -> dict[str, str]:
        """Record of the module around each record of a construct.json; none of a damaged file."""
        return (self._read(os.fspath(path), read_msprobe_parents) if storage.exists(path) else None) or {}

    def rank_dirs(self) -> list[Path]:
        """Folders `rank_N` of dumps, at or above or below the folder that was opened; of several runs the last first.

        A synchronous dump lies in them; beside an asynchronous one they hold what describes its graphs.
        """
        found: dict[str, None] = {}
        beside: dict[str, None] = {}
        for folder in self._walk():
            if folder.levels.rank_depth:
                found[os.sep.join(folder.path.split(os.sep)[: folder.levels.rank_depth])] = None
            elif folder.levels.grammar in (MODEL, OPERATOR):
                beside.update(dict.fromkeys(_roots_of(folder)))
        for root in sorted(beside, reverse=True):
            found.update(dict.fromkeys(_ranks_in(root)))
        return [Path(path) for path in found]

    def graph_files(self, suffix: str = "pb") -> list[Path]:
        """Graph files (.pb or .ir) of the ranks, by rank and graph; links that leave the rank are foreign."""
        found = []
        for rank in self.rank_dirs():
            for path in storage.files_in(rank / "graphs", f".{suffix}"):
                if is_plain_below(path, rank):
                    found.append(Path(path))
                else:
                    self._foreign.add(path)
        return found

    @property
    def layouts(self) -> dict[int, RankSharding]:
        """How the tensors of each rank lie over the ranks of the job, by rank, read anew at each call.

        Ranks are zero-based; shapes and blocks are in elements of the whole tensor. A rank whose dump says nothing of
        that, as one of a job of a single process, is not there; of several runs in one folder the last one counts.
        Edges:  a damaged file goes to `damaged`, and its rank is not there.
        Raises: FormatError for a damaged file when the dump was opened strictly.
        """
        from msdump.formats.sharding_json import LAYOUT_FILE, read_sharding

        layouts: dict[int, RankSharding] = {}
        for rank, path in self._described(LAYOUT_FILE):
            if rank in layouts:
                continue
            try:
                layout = read_sharding(path)
                if layout.rank != rank:
                    raise FormatError(f"{path}: expected the layout of rank {rank}, got that of rank {layout.rank}.")
                layouts[rank] = layout
            except FormatError as error:
                self._damage(os.fspath(path), error)
        return layouts

    @property
    def has_layouts(self) -> bool:
        """Whether some rank says how its tensors lie over the ranks of the job; nothing is opened."""
        from msdump.formats.sharding_json import LAYOUT_FILE

        return any(True for _ in self._described(LAYOUT_FILE))

    @property
    def training_steps(self) -> dict[int, TrainingSteps]:
        """How iterations and steps of optimizers go together, by rank, read anew at each call.

        A rank where each iteration was a step is not there, nor one whose dump does not know; of several runs in one
        folder the last one counts.
        Edges and Raises: as `layouts`.
        """
        steps: dict[int, TrainingSteps] = {}
        for rank, path in self._described(STEPS_FILE):
            if rank in steps:
                continue
            try:
                steps[rank] = read_steps(path)
            except FormatError as error:
                self._damage(os.fspath(path), error)
        return steps

    @property
    def learning(self) -> dict[int, Learning]:
        """Which parameters get gradients and steps, by rank, read anew at each call; of several runs in one folder the
        last one counts.

        Edges and Raises: as `layouts`.
        """
        found: dict[int, Learning] = {}
        for rank, path in self._described(LEARNING_FILE):
            if rank in found:
                continue
            try:
                found[rank] = read_learning(path)
            except FormatError as error:
                self._damage(os.fspath(path), error)
        return found

    @property
    def gradients(self) -> dict[int, tuple[GradientRow, ...]]:
        """What gradients were in iterations that a sampled dump has left out, by rank, read anew at each call.

        Edges and Raises: as `layouts`.
        """
        found: dict[int, tuple[GradientRow, ...]] = {}
        for rank, path in self._described(GRADIENTS_FILE):
            if rank in found:
                continue
            try:
                found[rank] = read_gradients(path)
            except FormatError as error:
                self._damage(os.fspath(path), error)
        return found

    @property
    def lost(self) -> dict[int, Lost]:
        """What dumps that are not complete lack, by rank, read anew at each call; of several runs in one folder, what
        the last one says that lost something.

        Edges and Raises: as `layouts`.
        """
        found: dict[int, Lost] = {}
        for rank, path in self._described(LOST_FILE):
            if rank in found:
                continue
            try:
                found[rank] = read_lost(path)
            except FormatError as error:
                self._damage(os.fspath(path), error)
        return found

    # -- parts ------------------------------------------------------------------------------------

    def _described(self, name: str) -> Iterator[tuple[int, Path]]:
        """Rank and path of each file of that name in the folders that describe ranks, those of the last run first."""
        with self.listed_once():
            below = {
                Path(folder.path).parent for folder in self._walk() if os.path.basename(folder.path) == METADATA_FOLDER
            }
            ranks = self.rank_dirs()
        described = sorted((folder for folder in below if _RANK.fullmatch(folder.name)), reverse=True)
        for folder in dict.fromkeys((*described, *ranks)):
            path = folder / METADATA_FOLDER / name
            if self._has(os.fspath(path), folder):
                yield int(folder.name.removeprefix("rank_")), path

    def _damage(self, path: str, error: FormatError) -> None:
        if self.is_strict:
            raise error
        self._damaged.setdefault((path, str(error)), error)

    def _has(self, path: str, root: str | Path) -> bool:
        """Whether a file beside the data is there; one that leads out of the root is foreign."""
        if not (os.path.islink(path) or storage.exists(path)):
            return False
        if not is_plain_below(path, root):
            self._foreign.add(path)
            return False
        return True

    def _read(self, path: str, read: Callable[[str], _Content]) -> _Content | None:
        """Content of a file beside the data; None for a damaged one."""
        try:
            with readable(path):
                return read(path)
        except FormatError as error:
            self._damage(path, error)
        return None

    def _verify_pack(self, path: str) -> int:
        pack = storage.pack_at(path)
        count = 0
        for member in pack.contents.members.values() if pack.contents.has_index else ():
            try:
                count += 0 if member.is_link else pack.verify(member)
            except FormatError as error:
                self._damage(f"{path}/{member.name}", error)
            except OSError as error:
                self._damage(f"{path}/{member.name}", unreadable(path, error))
        pack.remember()
        return count

    def _walk(self) -> list[DumpedFolder]:
        walk = FolderWalk(self.path, self._damage, self._foreign)
        if self._walks is None:
            return walk.folders()
        if not self._walks:
            self._walks.append(walk.folders())
        return self._walks[0]

    def _named(
        self, folder: DumpedFolder, names: Iterable[tuple[str, str]], order: OperatorOrder = _NO_ORDER
    ) -> Iterator[DumpedFile]:
        """Files of a folder whose names are those of data files, with long names restored."""
        parse_name = parse.parse_msprobe_name if folder.levels.grammar == MSPROBE else parse.parse_dump_name
        before, place = os.path.join(folder.path, ""), folder.levels
        others = NamedFiles(place, folder.scope, self._damage) if place.grammar == BARE else None
        for name, original in names:
            parsed = parse_name(original)
            if others is not None and (parsed.is_bare if parsed is not None else suffix_of(original)):
                if parsed is not None:
                    yield others.plain(before + name, original, parsed)
                elif not others.add(before + name, original) and not _is_side_file(folder, original):
                    self._foreign.add(before + name)
            elif parsed is not None:
                position = order.find(parsed.op_name)
                full_name = None if position is None else order.full_names[position]
                yield _dumped_file(before + name, place, parsed, original, position, full_name)
            elif not _is_side_file(folder, original):
                self._foreign.add(before + name)
        if others is not None:
            yield from others.held()

    def _original_names(self, folder: DumpedFolder) -> list[tuple[str, str]]:
        """Names of a folder's files, each with the one that it stands for."""
        is_told = MAPPING_FILE in folder.names
        originals = self._mapping(folder) if is_told else storage.originals_in(folder.path)
        return [(name, originals.get(name, name)) for name in folder.names]

    def _files_of(self, folder: DumpedFolder) -> list[DumpedFile]:
        """Data files of a folder in execution order."""
        if folder in self._listed:
            return self._listed[folder]
        names = self._original_names(folder)
        files = self._named(folder, names, self.order_in(folder))
        placed = sorted((file for file in files if file.name.form != parse.OVERFLOW), key=_file_order)
        if self._headers is not None:
            self._listed[folder] = placed
        return placed

    def _mapping(self, folder: DumpedFolder) -> dict[str, str]:
        path = os.path.join(folder.path, MAPPING_FILE)
        originals = self._read(path, read_mapping)
        return _whole_rows(path) if originals is None else originals

    def _order_of(self, rank_dir: str, graph_id: int, iteration: int | None) -> OperatorOrder:
        """Of an iteration: operators that it has not executed come last."""
        order, executed = self.order(rank_dir, graph_id), self.executed(rank_dir, graph_id, iteration)
        if executed is None or executed.order == tuple(range(len(order.full_names))):
            return order
        key = rank_dir, graph_id, executed.order
        if key not in self._executed_orders:
            names = order.full_names
            ran = dict.fromkeys(names[index] for index in executed.order if index < len(names))
            full_names = [*ran, *(name for name in names if name not in ran)]
            self._executed_orders[key] = OperatorOrder(tuple(full_names), _positions(full_names))
        return self._executed_orders[key]

    def _read_order(self, rank_dir: str, graph_id: int) -> OperatorOrder:
        path = os.path.join(rank_dir, "execution_order", f"ms_execution_order_graph_{graph_id}.csv")
        full_names = (self._read(path, read_order) if self._has(path, rank_dir) else None) or []
        return OperatorOrder(tuple(full_names), _positions(full_names))

    def _msprobe_order(self, path: str) -> OperatorOrder:
        """Order of the records of a dump.json, which is that in which calls ended."""
        key = path, 0
        if key not in self._orders:
            names = list((self._read(path, read_msprobe_records) if storage.exists(path) else None) or ())
            self._orders[key] = OperatorOrder(tuple(names), {name: number for number, name in enumerate(names)})
        return self._orders[key]

    def _side_files(self, is_wanted: Any) -> list[tuple[FolderLevels, Path]]:
        return [
            (folder.levels, Path(folder.path, name))
            for folder in self._walk()
            for name in folder.names
            if is_wanted(name)
        ]


def rank_beside(folder: DumpedFolder) -> str | None:
    """Folder of the rank that an asynchronous dump's folder belongs to; the device's number stands for a rank's."""
    for root in _roots_of(folder):
        ranks = _ranks_in(root)
        own = [path for path in ranks if os.path.basename(path) == f"rank_{folder.levels.rank_id}"]
        if own or len(ranks) == 1:
            return (own or ranks)[0]
    return None


def _roots_of(folder: DumpedFolder) -> list[str]:
    """Folders above one of an asynchronous dump where those of its ranks may lie: the time's, and that of all steps."""
    parts = folder.path.split(os.sep)
    if folder.levels.time not in parts:
        return []
    depth = len(parts) - parts[::-1].index(folder.levels.time or "")
    has_step = depth > 2 and parts[depth - 2].isdigit()
    return [os.sep.join(parts[:depth]), *([os.sep.join(parts[: depth - 2])] if has_step else [])]


def _ranks_in(root: str) -> list[str]:
    try:
        with os.scandir(root) as entries:
            names = [entry.name for entry in entries if _RANK.fullmatch(entry.name)]
    except OSError:
        return []
    paths = [os.path.join(root, name) for name in sorted(names)]
    return [path for path in paths if os.path.isdir(os.path.join(path, "graphs")) and not os.path.islink(path)]


def _positions(full_names: list[str]) -> dict[str, int]:
    """Position by each form of a name; -1 for a form that several operators share."""
    positions: dict[str, int] = {}
    for position, full_name in enumerate(full_names):
        last = full_name.rsplit("/", 1)[-1].rsplit("--", 1)[-1]
        for form in {full_name, safe_text(full_name), last}:
            positions[form] = -1 if positions.get(form, position) != position else position
    return positions


def _file_order(file: DumpedFile) -> tuple[Any, ...]:
    """Operators in execution order, then what is no operator (parameters), each by time; inputs before outputs."""
    last = 1 << 62
    position = last if file.position is None else file.position
    name = file.name
    time = name.timestamp_us
    stamp = 0 if file.position is not None else (last if time is None else time)
    path = natural_key(file.path) if time is None and name.is_bare else (file.path,)
    return (position, stamp, name.io == "output", name.slot or 0, name.part or 0, time or 0, path)


def _is_one_of(value: Any, wanted: Any) -> bool:
    if wanted is None:
        return True
    if isinstance(wanted, (int, str)):
        return bool(value == wanted)
    return value in wanted


def _has_name(file: DumpedFile, glob: str) -> bool:
    """Whether a glob fits the name in the file's name, or the full name, which names of dump files have escaped."""
    if fnmatch.fnmatchcase(file.op_name, glob):
        return True
    if file.known_full_name is not None:
        return fnmatch.fnmatchcase(file.known_full_name, glob)
    return fnmatch.fnmatchcase(file.op_name, safe_text(glob))


def _beside_msprobe(folder: str, name: str) -> str:
    """Path of a file beside the folder of tensors. A pack of the tensors lies where their folder would."""
    parent = os.path.dirname(folder)
    return os.path.join(os.path.dirname(parent) if is_pack_name(parent) else parent, name)


def _is_side_file(folder: DumpedFolder, name: str) -> bool:
    """True for what a dump has beside its data."""
    if is_temporary(name) or name.startswith(CLAIM_FILE):
        return True  # a file that a writer has not published yet; the one that says whose the folder is
    if folder.levels.grammar == MSPROBE:
        return True
    parent = os.path.basename(folder.path)
    if parent in ("graphs", "execution_order", METADATA_FOLDER, INDEX_FOLDER):
        return True
    return name.endswith((".csv", ".json", ".txt", ".core", ".o", ".l1buffer.0.bin")) or ".space." in name


def _whole_rows(path: str) -> dict[str, str]:
    """Rows of a damaged mapping.csv that can be understood all the same."""
    try:
        with storage.open_file(path) as file:
            lines = file.read(0, SIDE_BYTES).decode(errors="replace").split("\n")
    except (OSError, FormatError):
        return {}
    rows = (line.partition(",") for line in lines)
    return {mapped: original for mapped, comma, original in rows if mapped and comma and original}
