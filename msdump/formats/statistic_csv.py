"""statistic.csv: one line of statistics per tensor, written beside the data files or instead of them."""

from __future__ import annotations

import csv
import functools
import itertools
import math
import os
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from pathlib import Path

from msdump.errors import ConfigError, FormatError, WriteError
from msdump.formats.append_file import AppendFile
from msdump.formats.atomic import Folder, make_dirs
from msdump.formats.pack import MemberText, PackFolder
from msdump.formats.paths.sync import KEPT_NAMES, STATISTIC_FILE, op_name_in_files, safe_op_type
from msdump.formats.statistic_row import StatisticForm, StatisticRow
from msdump.formats.writer import Counter, WriteCounts, finish_all
from msdump.statistics.batches import MeasuredTensor, measure_all
from msdump.statistics.measured import MeasuredNumbers, NumberColumns, RowFrames
from msdump.statistics.stats import REAL_DTYPES, STATISTIC_CATEGORIES, StatisticCategory
from msdump.storage.files import read_file
from msdump.storage.plain import GRAPH_BYTES
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import INPUT, OUTPUT, TINY_BYTES, TensorRecord

IDENTITY_TITLES = (
    "Op Type",
    "Op Name",
    "Task ID",
    "Stream ID",
    "Timestamp",
    "IO",
    "Slot",
    "Data Size",
    "Data Type",
    "Shape",
)
TITLE_BY_CATEGORY = {category.name: category.title for category in STATISTIC_CATEGORIES}
SEED_CATEGORIES = tuple(category for category in TITLE_BY_CATEGORY if category != "l2norm")
SEED_TITLES = (*IDENTITY_TITLES, *(TITLE_BY_CATEGORY[category] for category in SEED_CATEGORIES))
# Max, min and mean leave out NaN and Inf. Of complex numbers, which have no order, there is the count alone.
_FORM = StatisticForm(
    measured=REAL_DTYPES,
    counted=REAL_DTYPES,
    finite_by=("l2norm",),
    titles={category.attribute: category.title for category in STATISTIC_CATEGORIES},
)
_MD5 = "md5"
_NULL = "null"
_LARGE_BYTES = 256 << 10  # from here on it pays to ask a second thread, or for the memory of a tensor


def format_number(value: float | int | None) -> str:
    """Number as C++ streams print a double: six significant digits; `null` for None."""
    return _NULL if value is None else f"{float(value):g}"


def _text_of(category: StatisticCategory) -> Callable[[MeasuredTensor], str]:
    if category.name == _MD5:
        return attrgetter(_MD5)
    value = attrgetter(f"numbers.{category.attribute}")
    form = str if category.is_count else format_number
    return lambda measured: form(value(measured))


_CATEGORY_BY_NAME = {category.name: category for category in STATISTIC_CATEGORIES}
_TEXT_BY_CATEGORY = {category.name: _text_of(category) for category in STATISTIC_CATEGORIES}


def _form_of(categories: Sequence[str]) -> tuple[list[str], str]:
    """Attributes of numbers, and the format of them; what that leaves is the format of the MD5."""
    chosen = [_CATEGORY_BY_NAME[name] for name in categories]
    form = ",".join("%%s" if column.name == _MD5 else "%s" if column.is_count else "%g" for column in chosen)
    return [column.attribute for column in chosen if column.name != _MD5], form


def _columns_text(categories: Sequence[str]) -> Callable[[MeasuredTensor], str]:
    """Function that makes the text of these columns of a tensor with numbers."""
    attributes, form = _form_of(categories)
    values = attrgetter(*attributes) if len(attributes) > 1 else None
    has_md5 = _MD5 in categories

    def text(measured: MeasuredTensor) -> str:
        # Nearly all tensors have finite values: one format for all columns takes a third of the time.
        numbers = measured.numbers
        if values is not None and numbers is not None and numbers.max is not None:
            line = form % values(numbers)
            return line % measured.md5 if has_md5 else line
        return ",".join([_TEXT_BY_CATEGORY[category](measured) for category in categories])

    return text


def number_columns(categories: Sequence[str]) -> NumberColumns:
    """These columns, none of which is the MD5, of tensors whose statistics are known."""
    text = _columns_text(categories)
    return NumberColumns(*_form_of(categories), lambda numbers: text(MeasuredTensor(numbers)))


def _quoted(text: str) -> str:
    """A field of the line; only names that would break it are quoted. The original has no guard against them."""
    if any(character in text for character in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


@dataclass(frozen=True, slots=True)
class MeasuredRows:
    """Rows of one iteration of a graph whose statistics are known; none of an MD5.

    sample       a record of them, for their folder
    first_stamp  microseconds since the epoch; each has one more than the one before
    """

    sample: TensorRecord
    frames: RowFrames
    first_stamp: int
    numbers: MeasuredNumbers


def row_frame(
    op_type: str, full_name: str, io: str, slot: int, dtype: str, shape: tuple[int, ...], is_parameter: bool = False
) -> tuple[str, str]:
    """Text of a row before its time stamp and behind it, up to the statistics."""
    tensor = _tensor_text(io, slot, math.prod(shape) * dtypes.dtype(dtype).itemsize, dtype, shape)
    return f"{_op_text(op_type, full_name, is_parameter, 0, 0)},", f",{tensor},"


class _MeasuredIteration:
    """State of an iteration: texts of measured tensors, and pending lines.

    measured  text by key and dtype. Not by `TensorRecord.identity`: the numbers of a tensor are those of its views of
              other shapes and formats
    """

    def __init__(self) -> None:
        self.measured: dict[Hashable, str] = {}
        # Those that are open. A file of rows that are all known when the iteration ends is written at once.
        self.files: dict[Path, AppendFile | MemberText] = {}
        # Of each folder: time stamps, numbers and texts of rows, or of several whose stamps follow each other.
        self.lines: dict[Path, list[tuple[int, int, str]]] = {}
        self.lock = threading.Lock()


class StatisticWriter:
    """Writer of one line per record.

    directory    folder that a record belongs to
    categories   chosen `statistic_category` values; None writes the 21 columns of the dump guide
    thread_count  threads that measure, the caller's among them; 1 where writers run in threads
    open_folder  the pack that stands for a folder, when the rows go there

    Each distinct tensor, known by its key, is measured once per iteration. Lines are appended when their iteration
    ends, in the order of their time stamps, whichever thread measured them. Arrays are not kept.
    Any thread may call it.
    """

    writes_once = True
    takes_empty = True

    def __init__(
        self,
        directory: Callable[[TensorRecord], Path],
        categories: Sequence[str] | None = None,
        mode: int = 0o400,
        thread_count: int | None = None,
        open_folder: Callable[[Path], PackFolder] | None = None,
    ) -> None:
        self._open_folder = open_folder
        self._directory = directory
        self._categories = SEED_CATEGORIES if categories is None else _ordered(categories)
        self._columns_text = _columns_text(self._categories)
        self._has_md5 = _MD5 in self._categories
        self._number_columns = number_columns(self._categories)
        titles = [*IDENTITY_TITLES, *(TITLE_BY_CATEGORY[category] for category in self._categories)]
        self._header = ",".join(titles)
        # Versions that let columns be chosen end each row, but not the header, with one more comma.
        self._row_end = "\n" if categories is None else ",\n"
        self._mode = mode
        self._thread_count = min(4, os.cpu_count() or 1) if thread_count is None else thread_count
        self._iterations: dict[tuple[int, int], _MeasuredIteration] = {}
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._counter = Counter()

    @property
    def counts(self) -> WriteCounts:
        return self._counter.total

    @property
    def has_md5(self) -> bool:
        return self._has_md5

    def write(self, records: Sequence[TensorRecord]) -> None:
        """Raises: WriteError, DtypeError for dtypes without order."""
        start = 0
        for end in range(1, len(records) + 1):
            if end == len(records) or _step_key(records[end]) != _step_key(records[start]):
                self._write_iteration(records[start:end])
                start = end

    def write_measured(self, rows: MeasuredRows) -> None:
        """As `write`, of tensors whose statistics are known.   Raises: WriteError."""
        with self._lock:
            iteration = self._iterations.setdefault(_step_key(rows.sample), _MeasuredIteration())
        folder = self._directory(rows.sample)
        text = rows.numbers.rows(rows.frames, rows.first_stamp, self._number_columns, self._row_end)
        with iteration.lock:
            iteration.lines.setdefault(folder, []).append((rows.first_stamp, len(rows.frames), text))

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        with self._lock:
            ended = self._iterations.pop((graph_id, iteration), None)
        if ended is None:
            return
        finish_all([functools.partial(self._finish, folder, ended) for folder in ended.lines])

    def close(self) -> None:
        ends = [functools.partial(self.end_iteration, *step) for step in list(self._iterations)]
        try:
            finish_all(ends)
        finally:
            if self._pool is not None:
                self._pool.shutdown()
                self._pool = None

    # -- parts ------------------------------------------------------------------------------------

    def _finish(self, folder: Path, ended: _MeasuredIteration) -> None:
        """Write the rows that wait, and close the file.

        Raises: WriteError; where closing fails, no row is sure to be there.
        """
        lines = ended.lines[folder]
        lines.sort(key=itemgetter(0))
        text = "".join([text for _, _, text in lines])
        try:
            file = ended.files.get(folder)
            if file is None:
                if self._write_whole(folder, text):
                    return
                file = self._open(folder)
            try:
                if lines:
                    size = file.append(text)
                    self._counter.add(bytes_named=size, bytes_written=size)
            finally:
                file.close()
        except WriteError as error:
            raise WriteError(str(error), sum(count for _, count, _ in lines)) from error

    def _write_whole(self, folder: Path, text: str) -> bool:
        """Publish a file with its header; False where rows are added to one that is there, or to a pack."""
        if self._open_folder is not None:
            return False
        make_dirs(folder)
        with Folder(folder) as opened:
            if opened.has(STATISTIC_FILE):
                return False
            data = f"{self._header}\n{text}".encode(errors="backslashreplace")
            opened.write(STATISTIC_FILE, [data], self._mode)
        self._counter.file(len(data))
        return True

    def _write_iteration(self, records: Sequence[TensorRecord]) -> None:
        with self._lock:
            iteration = self._iterations.setdefault(_step_key(records[0]), _MeasuredIteration())
        # Before the first measurement: a file that cannot be opened ends the dump.
        folders = self._opened(iteration, records)
        texts, end = self._measure_all(iteration, records), self._row_end
        with iteration.lock:
            for record, folder, text in zip(records, folders, texts, strict=True):
                identity = _identity_text(record)
                row = f"{identity},{text}{end}" if text else identity + end
                iteration.lines[folder].append((record.timestamp_us, 1, row))

    def _measure_all(self, iteration: _MeasuredIteration, records: Sequence[TensorRecord]) -> list[str]:
        """Text of the chosen columns for each record."""
        known = iteration.measured
        names = [None if record.key is None else (record.key, record.dtype) for record in records]
        # Where the text of a record is from: an index in `fresh`, or the text itself where it is known from before.
        owners: dict[Hashable, int | str] = {}
        fresh: list[TensorRecord] = []
        sources: list[int | str] = []
        for record, name, memory in zip(records, names, self._memories(records), strict=True):
            source: int | str | None = None
            if name is not None:
                source = owners.get(name)
                if source is None and known:
                    source = known.get(name)
            if source is None and memory is not None:
                source = owners.get(memory)
            if source is None:
                _check_is_first(record)
                source = len(fresh)
                fresh.append(record)
            if name is not None:
                owners[name] = source
            if memory is not None:
                owners[memory] = source
            sources.append(source)
        measured = self._texts(fresh)
        texts = [measured[source] if isinstance(source, int) else source for source in sources]
        known.update((name, text) for name, text in zip(names, texts, strict=True) if name is not None)
        return texts

    def _memories(self, records: Sequence[TensorRecord]) -> Iterable[Hashable | None]:
        """Large ones of the same elements in any order have the same numbers; an MD5 depends on the order."""
        if self._has_md5:
            return itertools.repeat(None, len(records))
        return (record.filled_memory if record.size_bytes > _LARGE_BYTES else None for record in records)

    def _texts(self, records: Sequence[TensorRecord]) -> list[str]:
        arrays, names = [record.data for record in records], [record.dtype for record in records]
        pool = self._threads() if self._thread_count > 1 and _gain_from_threads(arrays) else None
        measured = measure_all(arrays, names, self._has_md5, pool, self._thread_count)
        text_of = self._columns_text
        return [
            self._unordered_text(record, measured_tensor)
            if measured_tensor.numbers is None
            else text_of(measured_tensor)
            for record, measured_tensor in zip(records, measured, strict=True)
        ]

    def _unordered_text(self, record: TensorRecord, measured: MeasuredTensor) -> str:
        """Complex numbers have neither order nor sign: only their count and bytes are reported."""
        known = {"count": str(record.data.size), _MD5: measured.md5}
        return ",".join(known.get(category, _NULL) for category in self._categories)

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._thread_count - 1, "msdump-statistics")
            return self._pool

    def _opened(self, iteration: _MeasuredIteration, records: Sequence[TensorRecord]) -> list[Path]:
        """Folders of records, whose files are open."""
        folders = [self._directory(record) for record in records]
        for folder in dict.fromkeys(folders):
            if folder not in iteration.files:
                with iteration.lock:
                    if folder not in iteration.files:
                        iteration.files[folder] = self._open(folder)
                        iteration.lines.setdefault(folder, [])
        return folders

    def _open(self, folder: Path) -> AppendFile | MemberText:
        head = f"{self._header}\n"
        if self._open_folder is not None:
            self._counter.file(len(head))
            return MemberText(self._open_folder(folder), STATISTIC_FILE, self._mode, head)
        make_dirs(folder)
        file = AppendFile(folder / STATISTIC_FILE, self._mode, head=head)
        try:
            if file.is_new:
                self._counter.file(len(head))
            elif file.first_line() != self._header:
                raise WriteError(
                    f"{file.path}: expected the columns {self._header}, got {file.first_line()[:300]} of an earlier "
                    "run. Choose another path or the same statistic_category."
                )
        except BaseException:
            file.close()
            raise
        return file


def _gain_from_threads(arrays: Sequence[Array]) -> bool:
    sizes = [array.nbytes for array in arrays]
    return sum(size for size in sizes if size > TINY_BYTES) > _LARGE_BYTES


def _ordered(categories: Sequence[str]) -> tuple[str, ...]:
    """Chosen categories in column order.   Raises: ConfigError for unknown ones."""
    wanted = {category.lower() for category in categories}
    unknown = sorted(wanted - set(TITLE_BY_CATEGORY))
    if unknown:
        raise ConfigError(
            f"common_dump_settings.statistic_category: expected some of {list(TITLE_BY_CATEGORY)}, got {unknown}. "
            "Remove what is unknown."
        )
    return tuple(category for category in TITLE_BY_CATEGORY if category in wanted)


def _check_is_first(record: TensorRecord) -> None:
    if record.is_repeat:
        raise WriteError(
            f"{record.op_name}, {record.io} {record.slot}: expected a tensor that was measured before, got a new one. "
            "Its first record was not written."
        )


def _step_key(record: TensorRecord) -> tuple[int, int]:
    return record.graph_id, record.iteration


def _identity_text(record: TensorRecord) -> str:
    op = _op_text(record.op_type, record.op_name, record.is_parameter, record.task_id, record.stream_id)
    data = record.data
    tensor = _tensor_text(record.io, record.slot, data.nbytes, record.dtype, data.shape)
    return f"{op},{record.timestamp_us},{tensor}"


# Operators and shapes come back in every iteration.
@functools.lru_cache(maxsize=KEPT_NAMES)
def _op_text(op_type: str, full_name: str, is_parameter: bool, task_id: int, stream_id: int) -> str:
    name = op_name_in_files(full_name, is_parameter)
    return f"{_quoted(safe_op_type(op_type))},{_quoted(name)},{task_id},{stream_id}"


@functools.lru_cache(maxsize=8192)
def _tensor_text(io: str, slot: int, size_bytes: int, dtype: str, shape: tuple[int, ...]) -> str:
    return f'{io},{slot},{size_bytes},{dtype},"({",".join(map(str, shape))})"'


# -- reader --------------------------------------------------------------------------------------------------------


def _parse_count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise ValueError("a whole number")
    return int(text)


def _parse_known_count(text: str) -> int | None:
    return None if text == _NULL else _parse_count(text)


def _parse_number(text: str) -> float | None:
    if text == _NULL:
        return None
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number or null") from None


def _parse_io(text: str) -> str:
    if text not in (INPUT, OUTPUT):
        raise ValueError("input or output")
    return text


def _parse_shape(text: str) -> tuple[int, ...]:
    if not (text.startswith("(") and text.endswith(")")):
        raise ValueError('a shape such as "(2,3)"')
    return tuple(_parse_count(size.strip()) for size in text[1:-1].split(",") if size.strip())


def _parser_of(category: StatisticCategory) -> Callable[[str], object]:
    return _parse_known_count if category.is_count else _parse_number


_FIELDS: dict[str, tuple[str, Callable[[str], object]]] = {
    "Op Type": ("op_type", str),
    "Op Name": ("op_name", str),
    "Task ID": ("task_id", _parse_count),
    "Stream ID": ("stream_id", _parse_count),
    "Timestamp": ("timestamp_us", _parse_count),
    "IO": ("io", _parse_io),
    "Slot": ("slot", _parse_count),
    "Data Size": ("size_bytes", _parse_count),
    "Data Type": ("dtype", str),
    "Shape": ("shape", _parse_shape),
    "L2 Value": ("l2norm", _parse_number),
    "MD5": ("md5", str),
}
_FIELDS |= {
    category.title: (category.attribute, _parser_of(category))
    for category in STATISTIC_CATEGORIES
    if category.name != _MD5
}


def read_statistic_csv(path: str | os.PathLike[str]) -> list[StatisticRow]:
    """Rows in file order, of any version of the file: columns are found by their titles, unknown ones are left out.

    Edges:  a last line without its end was cut by a killed process and is left out; an empty file has no rows.
    Raises: FormatError with line and column; OSError when the file cannot be opened.
    """
    where = os.fspath(path)
    data = read_file(path, GRAPH_BYTES)
    try:
        text = data[: data.rfind(b"\n") + 1].decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{where}: expected UTF-8 text, got byte {data[error.start]} at {error.start}.") from error
    lines = text.split("\n")[:-1]
    if not lines:
        return []
    titles = lines[0].split(",")
    missing = [title for title in IDENTITY_TITLES if title not in titles]
    if missing:
        raise FormatError(f"{where}, line 1: expected the columns {list(IDENTITY_TITLES)}, got none named {missing}.")
    return [_parse_row(f"{where}, line {number}", titles, line) for number, line in enumerate(lines[1:], 2)]


def _parse_row(where: str, titles: list[str], line: str) -> StatisticRow:
    try:
        values = next(csv.reader([line], strict=True), [])
    except csv.Error as error:
        raise FormatError(f"{where}: expected comma-separated values, got {line[:120]!r}: {error}.") from error
    if len(values) == len(titles) + 1 and not values[-1]:
        values.pop()
    if len(values) != len(titles):
        raise FormatError(f"{where}: expected {len(titles)} values, got {len(values)}.")
    fields: dict[str, object] = {}
    for title, value in zip(titles, values, strict=True):
        if title not in _FIELDS:
            continue
        name, parse = _FIELDS[title]
        try:
            fields[name] = parse(value)
        except ValueError as error:
            raise FormatError(f"{where}, column {title}: expected {error}, got {value[:80]!r}.") from error
    return StatisticRow(**fields, form=_FORM)  # type: ignore[arg-type]
