"""Sources of lines of text: `TextFileDataset` and `CSVDataset`."""

from __future__ import annotations

import csv
import glob
import itertools
import json
import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np

from msdump.errors import ConfigError, FormatError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.image_files import TabledSource
from msdump.mindspore.dataset.rows import Pass, Row, constant, define_enums
from msdump.mindspore.dataset.samplers import BuiltinSampler, RandomSampler, SequentialSampler, check_shards

Values = Sequence[Any]
LINE_OPTIONS = """num_samples=None num_parallel_workers=None shuffle=Shuffle.GLOBAL num_shards=None shard_id=None
    cache=None"""


class Shuffle(str, Enum):
    """What is shuffled: all rows, the order of the files, or the rows within each file (MindDataset)."""

    GLOBAL = "global"
    FILES = "files"
    INFILE = "infile"


define_enums(Shuffle)


class BlockSampler(BuiltinSampler):
    """The `shard_id`-th of `num_shards` blocks of neighboring rows; equally long, so the last one starts anew."""

    def __init__(self, inner: BuiltinSampler, num_shards: int, shard_id: int) -> None:
        self._num_shards, self._shard_id = num_shards, shard_id
        self.add_child(inner)

    def places(self, size: int, walk: Pass) -> Sequence[int]:
        length = self.count(size)
        return [(self._shard_id * length + place) % size for place in range(length)]

    def count(self, size: int) -> int:
        return -(-size // self._num_shards)


class LineSource(TabledSource):
    """A source that reads its files when it is first walked, and keeps their rows.

    Edges: rows of several files come in turns, as from MindSpore's parallel readers; reader w of `num_parallel_workers`
           (as many as files) has files w, w + num_parallel_workers, ... in the order of their names.
    """

    def _open(self, where: str, common: Mapping[str, Any], given: dict[str, Any]) -> None:
        files, columns = self.listed(where, **given)
        shuffle, num_shards, shard_id = common["shuffle"], common["num_shards"], common["shard_id"]
        if not isinstance(shuffle, (bool, Shuffle)) or shuffle is Shuffle.INFILE:
            raise TypeError(f"{where}(shuffle): expected a bool, Shuffle.GLOBAL or Shuffle.FILES, got {shuffle!r}.")
        check_shards(num_shards, shard_id)
        self._files, self._columns = sorted(files), list(columns)
        count = common["num_samples"]
        limit = None if count is None else checks.whole_number(f"{where}(num_samples)", count, 0)
        is_random = shuffle is True or shuffle is Shuffle.GLOBAL
        self._sampler = RandomSampler(False, limit) if is_random else SequentialSampler(None, limit)
        if num_shards is not None and shard_id is not None:
            first = RandomSampler() if is_random else SequentialSampler()
            block = BlockSampler(first, num_shards, shard_id)
            self._sampler = SequentialSampler(None, limit)
            self._sampler.add_child(block)
        workers = common["num_parallel_workers"] or len(files)
        self._workers = checks.whole_number(f"{where}(num_parallel_workers)", workers)
        self._rows: list[Values] | None = None

    @abstractmethod
    def listed(self, where: str, **given: Any) -> tuple[Sequence[str], Sequence[str]]:
        """Files and columns, for the arguments that are not common to all.   Raises: TypeError, ConfigError."""

    @abstractmethod
    def parsed(self, path: str) -> Iterator[Values]:
        """Rows of one file."""

    def get_col_names(self) -> list[str]:
        return list(self._columns)

    def source_size(self) -> int:
        return len(self._read())

    def row_at(self, place: int) -> Row:
        return constant(self._read()[place])

    def _read(self) -> list[Values]:
        if self._rows is None:
            parts = []
            for path in self._files:
                try:
                    parts.append(list(self.parsed(path)))
                except (OSError, UnicodeDecodeError, csv.Error, json.JSONDecodeError, KeyError, TypeError) as error:
                    raise FormatError(
                        f"{path}: expected rows of {type(self).__name__}, got {type(error).__name__}: {error}"
                    ) from error
            turns = [[row for part in parts[turn :: self._workers] for row in part] for turn in range(self._workers)]
            longest = max((len(turn) for turn in turns), default=0)
            self._rows = [turn[place] for place in range(longest) for turn in turns if place < len(turn)]
        return self._rows


def matching_files(where: str, patterns: Any) -> list[str]:
    """Files of a pattern or of several.   Raises: TypeError, ConfigError when one matches nothing."""
    given = [patterns] if isinstance(patterns, (str, os.PathLike)) else patterns
    if not isinstance(given, (list, tuple)) or not given:
        raise TypeError(f"{where}(dataset_files): expected a path or a list of paths, got {patterns!r}.")
    files: list[str] = []
    for pattern in given:
        text = checks.path_like(f"{where}(dataset_files)", pattern)
        matches = sorted(glob.glob(text)) or ([text] if os.path.isfile(text) else [])
        if not matches:
            raise ConfigError(f"{where}(dataset_files): expected files, got none that match {text!r}.")
        files += matches
    return files


def lines_of(path: str) -> Iterator[str]:
    """Lines of a UTF-8 file, without their line feeds."""
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.removesuffix("\n")


class TextFileDataset(LineSource, takes=f"dataset_files {LINE_OPTIONS}"):
    """Lines that are not empty, in the column "text"."""

    def listed(self, where: str, **given: Any) -> tuple[Sequence[str], Sequence[str]]:
        return matching_files(where, given["dataset_files"]), ["text"]

    def parsed(self, path: str) -> Iterator[Values]:
        return ((line,) for line in lines_of(path) if line)


class CSVDataset(
    LineSource, takes=f"dataset_files field_delim=',' column_defaults=None column_names=None {LINE_OPTIONS}"
):
    """Rows of CSV files. Without `column_names` the first line of each file names them.

    column_defaults   one value of each column's type (int -> int32, float -> float32, str), which fills empty fields;
                      None: all strings
    """

    def listed(self, where: str, **given: Any) -> tuple[Sequence[str], Sequence[str]]:
        self._delimiter, defaults = given["field_delim"], given["column_defaults"]
        files = matching_files(where, given["dataset_files"])
        if not isinstance(self._delimiter, str) or len(self._delimiter) != 1 or self._delimiter in '"\r\n':
            raise ConfigError(f"{where}(field_delim): expected one character, got {self._delimiter!r}.")
        if defaults is not None and not isinstance(defaults, list):
            raise TypeError(f"{where}(column_defaults): expected a list, got {type(defaults).__name__}.")
        names = checks.column_names(f"{where}(column_names)", given["column_names"])
        self._has_header = names is None
        names = next((fields for _, fields in self._lines(files[0])), []) if names is None else names
        self._defaults = [""] * len(names) if defaults is None else defaults
        return files, names

    def _lines(self, path: str) -> Iterator[tuple[int, list[str]]]:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.reader(file, delimiter=self._delimiter)
            yield from ((reader.line_num, fields) for fields in reader if fields)

    def parsed(self, path: str) -> Iterator[Values]:
        for number, fields in itertools.islice(self._lines(path), int(self._has_header), None):
            if len(fields) != len(self._defaults):
                raise FormatError(f"{path}, line {number}: expected {len(self._defaults)} fields, got {len(fields)}.")
            yield [_field(f"{path}, line {number}", *each) for each in zip(fields, self._defaults, strict=True)]


def _field(where: str, text: str, default: Any) -> Any:
    kind = {int: np.int32, float: np.float32}.get(type(default))
    try:
        return kind(text or default) if kind else text or default or ""
    except (ValueError, OverflowError) as error:
        raise FormatError(f"{where}: expected {type(default).__name__}, got {text!r}.") from error
