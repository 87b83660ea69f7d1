"""Rows of MindRecord files, MindSpore's and msdump's."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from msdump.mindspore.mindrecord import layout
from msdump.mindspore.mindrecord.exceptions import (
    MRMFetchDataError,
    MRMInvalidSchemaError,
    MRMOpenError,
    ParamTypeError,
    ParamValueError,
    PathNotExistsError,
)
from msdump.mindspore.mindrecord.layout import Field

_QUERY = (
    "SELECT PAGE_ID_RAW, PAGE_OFFSET_RAW, PAGE_OFFSET_RAW_END, PAGE_ID_BLOB, PAGE_OFFSET_BLOB, PAGE_OFFSET_BLOB_END "
    "FROM INDEXES ORDER BY ROW_ID"
)
Span = tuple[int, int]  # first byte and the one after the last, in the file


class RecordFile:
    """One file: its schema, and its rows by number. Owned by the thread that reads; each read opens the file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        index = Path(f"{self.path}.db")
        for file in (self.path, index):
            if not file.is_file():
                raise PathNotExistsError(f"mindrecord: expected the file {str(file)!r}, got none. Check the path.")
        with self.path.open("rb") as source:
            self.header = layout.read_header(str(self.path), source)
        try:
            schema = self.header["schema"][0]
            self.fields = sorted(layout.fields_of(schema["schema"]), key=lambda field: field.name)
            self.description = str(schema.get("desc", ""))
        except (LookupError, TypeError, AttributeError, MRMInvalidSchemaError) as error:
            raise MRMOpenError(f"{self.path}: expected a schema in the header, got {error!r}.") from error
        self._spans = self._read_index(index)

    def _read_index(self, path: Path) -> list[tuple[Span, Span]]:
        base, page = self.header["header_size"], self.header["page_size"]
        size = self.path.stat().st_size
        try:
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
            try:
                rows = connection.execute(_QUERY).fetchall()
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise MRMOpenError(f"{path}: expected the index of a MindRecord file, got: {error}") from error
        spans = []
        for number, row in enumerate(rows):
            if not all(isinstance(value, int) and value >= 0 for value in row):
                raise MRMOpenError(f"{path}, row {number}: expected places of at least 0, got {row}.")
            raw, blob = ((base + row[at] * page + row[at + 1], base + row[at] * page + row[at + 2]) for at in (0, 3))
            for first, last in (raw, blob):
                if not first <= last <= size:
                    raise MRMOpenError(
                        f"{self.path}, row {number}: expected bytes {first} to {last}, got {size} bytes in all."
                    )
            spans.append((raw, blob))
        return spans

    def __len__(self) -> int:
        return len(self._spans)

    def row(self, number: int) -> dict[str, Any]:
        """Values of one row: numbers, str, bytes, arrays.   Raises: MRMFetchDataError."""
        (raw_first, raw_last), (blob_first, blob_last) = self._spans[number]
        try:
            with self.path.open("rb") as file:
                file.seek(raw_first)
                singles = layout.unpacked(layout.without_length(file.read(raw_last - raw_first)))
                file.seek(blob_first)
                blob = layout.without_length(file.read(blob_last - blob_first))
            blobs = [field for field in self.fields if field.is_blob]
            parts = dict(zip(blobs, layout.fields_in_blob(blob, len(blobs)), strict=True))
            return {
                field.name: _blob_value(field, parts[field]) if field.is_blob else singles[field.name]
                for field in self.fields
            }
        except (MRMFetchDataError, KeyError, ValueError) as error:
            raise MRMFetchDataError(f"{self.path}, row {number}: {error}") from error


def _blob_value(field: Field, data: bytes) -> Any:
    if field.shape is None:
        return data
    if field.type.startswith("int"):
        return layout.widened(data).astype(field.type).reshape(field.shape)
    return np.frombuffer(data, field.type).reshape(field.shape)


def record_files(where: str, names: Any) -> list[RecordFile]:
    """The files of one name (with all shards that its header names), or of a list of names.

    Raises: ParamTypeError, MRMOpenError, and MRMOpenError when their schemas differ.
    """
    if isinstance(names, (list, tuple)):
        files = [RecordFile(name) for name in names]
    elif isinstance(names, (str, os.PathLike)):
        first = RecordFile(names)
        addresses = first.header["shard_addresses"]
        if not isinstance(addresses, list) or not all(
            isinstance(name, str) and Path(name).name == name for name in addresses
        ):
            raise MRMOpenError(f"{first.path}: expected names of files beside it, got {addresses!r}.")
        others = [first.path.with_name(name) for name in addresses] if len(addresses) > 1 else [first.path]
        files = [first if path == first.path else RecordFile(path) for path in others]
    else:
        raise ParamTypeError(f"{where}: expected a path or a list of paths, got {type(names).__name__}.")
    if not files:
        raise ParamValueError(f"{where}: expected at least one file, got none.")
    for file in files[1:]:
        if file.fields != files[0].fields:
            raise MRMOpenError(f"{file.path}: expected the schema of {files[0].path}, got another one.")
    return files


class FileReader:
    """Rows of MindRecord files, in order. `columns`: only these fields."""

    def __init__(
        self, file_name: str | Sequence[str], num_consumer: int = 4, columns: Sequence[str] | None = None,
        operator: Any = None,
    ) -> None:  # fmt: skip
        if columns is not None and not isinstance(columns, (list, tuple)):
            raise ParamTypeError(f"FileReader(columns): expected a list of names, got {type(columns).__name__}.")
        self._files = record_files("FileReader(file_name)", file_name)
        names = [field.name for field in self._files[0].fields]
        for name in columns or []:
            if name not in names:
                raise ParamValueError(f"FileReader(columns): expected fields of {names}, got {name!r}.")
        # Source: MindSpore gives single values first, then bytes and arrays, each sorted by name.
        fields = sorted(self._files[0].fields, key=lambda field: (field.is_blob, field.name))
        self._columns = list(columns or [field.name for field in fields])

    def get_next(self) -> Iterator[dict[str, Any]]:
        """Each row as a dictionary."""
        for file in self._files:
            for number in range(len(file)):
                row = file.row(number)
                yield {name: row[name] for name in self._columns}

    def len(self) -> int:
        """Rows of all files."""
        return sum(len(file) for file in self._files)

    def schema(self) -> Mapping[str, Any]:
        """The schema: {name: {"type": ...}}."""
        return dict(self._files[0].header["schema"][0]["schema"])

    def close(self) -> None:
        """Nothing to do: each row opens its file. `finish` is the older name."""

    finish = close
