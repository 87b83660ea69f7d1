"""`FileWriter`: MindRecord files that MindSpore reads."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from msdump.mindspore.mindrecord import layout
from msdump.mindspore.mindrecord.exceptions import (
    MRMAddSchemaError,
    MRMCommitError,
    MRMDefineIndexError,
    MRMInvalidHeaderSizeError,
    MRMInvalidPageSizeError,
    MRMOpenError,
    MRMValidateDataError,
    MRMWriteDatasetError,
    ParamTypeError,
    ParamValueError,
)
from msdump.mindspore.mindrecord.layout import Field

_COLUMN_TYPES = {"string": "TEXT", "int32": "INTEGER", "int64": "INTEGER", "float32": "NUMERIC", "float64": "NUMERIC"}
_LARGEST_INDEX = 10  # fields that are an index without being chosen
_MOST_SHARDS = 1000
_PLACES = (
    "ROW_ID INT NOT NULL, PAGE_ID_RAW INT NOT NULL, PAGE_OFFSET_RAW INT NOT NULL, PAGE_OFFSET_RAW_END INT NOT NULL, "
    "ROW_GROUP_ID INT NOT NULL, PAGE_ID_BLOB INT NOT NULL, PAGE_OFFSET_BLOB INT NOT NULL, "
    "PAGE_OFFSET_BLOB_END INT NOT NULL"
)


class FileWriter:
    """Writes rows into one MindRecord file, or into `shard_num` files <name>0, <name>1, ...

    Usage: add_schema, add_index (optional), write_raw_data (any number of times), commit.
    Raises: MindRecordException and its kinds.
    """

    def __init__(self, file_name: str, shard_num: int = 1, overwrite: bool = False) -> None:
        if not isinstance(file_name, (str, os.PathLike)):
            raise ParamTypeError(f"FileWriter(file_name): expected a path, got {type(file_name).__name__}.")
        if isinstance(shard_num, bool) or not isinstance(shard_num, int):
            raise ParamTypeError(f"FileWriter(shard_num): expected an int, got {type(shard_num).__name__}.")
        if not 1 <= shard_num <= _MOST_SHARDS:
            raise ParamValueError(f"FileWriter(shard_num): expected an int in [1, {_MOST_SHARDS}], got {shard_num}.")
        name = os.fspath(file_name)
        digits = len(str(shard_num - 1))
        self._paths = [Path(name)] if shard_num == 1 else [Path(f"{name}{n:0{digits}d}") for n in range(shard_num)]
        for path in self._paths:
            if not overwrite and (path.exists() or Path(f"{path}.db").exists()):
                raise MRMOpenError(
                    f"FileWriter: expected no file {str(path)!r}, got one. Remove it, or set overwrite=True."
                )
        self._header_size, self._page_size = layout.HEADER_SIZE, layout.PAGE_SIZE
        self._schema: Mapping[str, Any] = {}
        self._fields: list[Field] = []
        self._description = ""
        self._index: list[str] | None = None
        self._shards: list[_Shard] | None = None

    def set_header_size(self, header_size: int) -> None:
        """Bytes of the header.   Raises: MRMInvalidHeaderSizeError (not a multiple of 4 in [16 KiB, 256 MiB])."""
        if header_size not in layout.SIZES or header_size % 4:
            raise MRMInvalidHeaderSizeError(
                f"set_header_size: expected a multiple of 4 in {layout.SIZES}, got {header_size}."
            )
        self._header_size = header_size

    def set_page_size(self, page_size: int) -> None:
        """Bytes of a page; no row may be larger.   Raises: MRMInvalidPageSizeError."""
        if page_size not in layout.SIZES or page_size % 4:
            raise MRMInvalidPageSizeError(
                f"set_page_size: expected a multiple of 4 in {layout.SIZES}, got {page_size}."
            )
        self._page_size = page_size

    def add_schema(self, content: Mapping[str, Any], desc: str | None = None) -> int:
        """Fields: {name: {"type": ..., "shape": [...]}}; -> 0.   Raises: MRMInvalidSchemaError, MRMAddSchemaError."""
        if self._fields:
            raise MRMAddSchemaError("add_schema: expected one schema, got another one.")
        self._fields = layout.fields_of(content)
        self._schema = {name: dict(content[name]) for name in sorted(content)}
        self._description = desc or ""
        return 0

    def add_index(self, index_fields: Sequence[str]) -> None:
        """Fields to index: single numbers and strings.   Raises: ParamTypeError, MRMDefineIndexError."""
        if not isinstance(index_fields, (list, tuple)):
            raise ParamTypeError(f"add_index: expected a list of names, got {type(index_fields).__name__}.")
        allowed = [field.name for field in self._fields if not field.is_blob]
        for name in index_fields:
            if name not in allowed:
                raise MRMDefineIndexError(f"add_index: expected fields of {allowed}, got {name!r}.")
        self._index = list(index_fields)

    def write_raw_data(self, raw_data: Sequence[Mapping[str, Any]], parallel_writer: bool = False) -> None:
        """Write rows: dictionaries from field to value.   Raises: ParamTypeError, MRMValidateDataError.

        Edges: several files share the rows of each call in blocks.
        """
        if not isinstance(raw_data, (list, tuple)) or not all(isinstance(row, Mapping) for row in raw_data):
            raise ParamTypeError("write_raw_data: expected a list of dictionaries, got something else.")
        if not self._fields:
            raise MRMWriteDatasetError("write_raw_data: expected add_schema before the first row, got none.")
        rows = [_Row.of(self._fields, row, number) for number, row in enumerate(raw_data)]
        for row in rows:
            row.check_size(self._page_size)
        shards = self._opened()
        for number, shard in enumerate(shards):
            first, last = (len(rows) * place // len(shards) for place in (number, number + 1))
            shard.write(rows[first:last])

    def open_and_set_header(self) -> None:
        """Make the files now; otherwise the first write makes them."""
        self._opened()

    def commit(self) -> None:
        """Finish the files and their indexes.   Raises: MRMCommitError."""
        try:
            for shard in self._opened():
                shard.finish()
        except (OSError, sqlite3.Error) as error:
            raise MRMCommitError(f"commit: expected to finish {str(self._paths[0])!r}, got {error}.") from error

    def _opened(self) -> list[_Shard]:
        if not self._fields:
            raise MRMWriteDatasetError("FileWriter: expected add_schema before the first row, got none.")
        if self._shards is None:
            singles = [field.name for field in self._fields if not field.is_blob]
            index = singles[:_LARGEST_INDEX] if self._index is None else self._index
            names = [path.name for path in self._paths]
            header = {
                "header_size": self._header_size,
                "index_fields": [{"index_field": name, "schema_id": 0} for name in index] or None,
                "page": [],
                "page_size": self._page_size,
                "compression_size": 0,
                "schema": [
                    {
                        "blob_fields": sorted(field.name for field in self._fields if field.is_blob),
                        "desc": self._description,
                        "schema": self._schema,
                    }
                ],
                "shard_addresses": names,
                "shard_id": 0,
                "statistics": None,
                "version": layout.VERSION,
            }
            kinds = [next(field for field in self._fields if field.name == name) for name in index]
            self._shards = [_Shard(path, {**header, "shard_id": n}, kinds) for n, path in enumerate(self._paths)]
        return self._shards


class _Row:
    """A row as bytes: its raw and its blob part, and its values for the index."""

    def __init__(self, singles: dict[str, Any], blobs: list[bytes], saved: int) -> None:
        self.singles = singles
        self.raw = layout.with_length(layout.packed(singles or {"id": 0}))
        self.blob = layout.with_length(layout.blob_of(blobs))
        self.saved = saved  # bytes that narrow ints saved

    @classmethod
    def of(cls, fields: Sequence[Field], row: Mapping[str, Any], number: int) -> _Row:
        """Raises: MRMValidateDataError."""
        singles: dict[str, Any] = {}
        blobs: list[bytes] = []
        saved = 0
        for field in sorted(fields, key=lambda field: field.name):
            if field.name not in row:
                raise MRMValidateDataError(
                    f"write_raw_data, row {number}: expected a value for {field.name!r}, got none."
                )
            value = row[field.name]
            if field.shape is not None:
                array = _checked_array(field, value, number)
                data = layout.narrowed(array) if array.dtype.kind == "i" else array.tobytes()
                saved += array.nbytes - len(data)
                blobs.append(data)
            elif field.type == "bytes":
                if not isinstance(value, (bytes, bytearray)):
                    raise _unfit(field, value, number)
                blobs.append(bytes(value))
            else:
                singles[field.name] = _checked_single(field, value, number)
        return cls(singles, blobs, saved)

    def check_size(self, page_size: int) -> None:
        """Raises: MRMWriteDatasetError."""
        size = max(len(self.raw), len(self.blob))
        if size > page_size:
            raise MRMWriteDatasetError(
                f"write_raw_data: expected rows of at most {page_size} bytes, got {size}. "
                "Use set_page_size before the first row."
            )


def _checked_single(field: Field, value: Any, number: int) -> Any:
    if field.type == "string":
        if not isinstance(value, str):
            raise _unfit(field, value, number)
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if field.type.startswith("int"):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise _unfit(field, value, number)
        if not np.iinfo(field.type).min <= int(value) <= np.iinfo(field.type).max:
            raise _unfit(field, value, number)
        return int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise _unfit(field, value, number)
    return float(value)


def _checked_array(field: Field, value: Any, number: int) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype != np.dtype(field.type) or not value.size:
        raise _unfit(field, value, number)
    sizes = field.shape or ()
    known = int(np.prod([size for size in sizes if size > 0]))
    fits = value.size == known if -1 not in sizes else value.size % known == 0
    if not fits:
        raise _unfit(field, value, number)
    return np.ascontiguousarray(value)


def _unfit(field: Field, value: Any, number: int) -> MRMValidateDataError:
    what = (
        f"an array {value.dtype} {value.shape}"
        if isinstance(value, np.ndarray)
        else f"{type(value).__name__} {value!r}"
    )
    shape = "" if field.shape is None else f" of shape {list(field.shape)}"
    return MRMValidateDataError(
        f"write_raw_data, row {number}, {field.name!r}: expected {field.type}{shape}, got {what}."
    )


class _Page:
    """A page that rows are added to."""

    def __init__(self, page_id: int, kind: str, type_id: int, first_row: int) -> None:
        self.page_id, self.kind, self.type_id, self.first_row = page_id, kind, type_id, first_row
        self.end_row, self.size = first_row, 0
        self.groups: list[dict[str, int]] = []

    def as_json(self, shard_id: int) -> dict[str, Any]:
        """As it stands in the header. Raw pages count no rows."""
        is_blob = self.kind == "BLOB_DATA"
        return {
            "end_row_id": self.end_row if is_blob else 0,
            "page_id": self.page_id,
            "page_size": self.size,
            "page_type": self.kind,
            "page_type_id": self.type_id,
            "row_group_ids": [{"id": 0, "offset": 0}] if is_blob else self.groups,
            "shard_id": shard_id,
            "start_row_id": self.first_row if is_blob else 0,
        }


class _Shard:
    """One file and its index. A row group is what one blob page holds; its raw rows stand in one raw page."""

    def __init__(self, path: Path, header: dict[str, Any], index: Sequence[Field]) -> None:
        self._path, self._header, self._index = path, header, index
        self._rows: list[tuple[Any, ...]] = []
        self._pages: list[_Page] = []
        self._open: dict[str, _Page] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")

    def write(self, rows: Sequence[_Row]) -> None:
        """Add rows at the end."""
        with self._path.open("r+b") as file:
            for row in rows:
                self._write_row(file, row)

    def _write_row(self, file: BinaryIO, row: _Row) -> None:
        blob, raw = self._open.get("BLOB_DATA"), self._open.get("RAW_DATA")
        limit = self._header["page_size"]
        needs_raw = raw is None or raw.size + len(row.raw) > limit
        if blob is None or blob.size + len(row.blob) > limit or needs_raw:
            blob = self._new_page("BLOB_DATA")
            raw = self._new_page("RAW_DATA") if needs_raw or raw is None else raw
            raw.groups.append({"id": blob.type_id, "offset": raw.size})
        assert raw is not None
        place = (raw.page_id, raw.size, raw.size + len(row.raw), blob.type_id, blob.page_id, blob.size)
        values = [value for field in self._index for value in (0, row.singles[field.name])]
        self._rows.append((len(self._rows), *place, blob.size + len(row.blob), *values))
        for page, data in ((raw, row.raw), (blob, row.blob)):
            file.seek(self._header["header_size"] + page.page_id * limit + page.size)
            file.write(data)
            page.size += len(data)
        blob.end_row = len(self._rows)
        self._header["compression_size"] += row.saved

    def _new_page(self, kind: str) -> _Page:
        type_id = sum(page.kind == kind for page in self._pages)
        page = _Page(len(self._pages), kind, type_id, len(self._rows))
        self._pages.append(page)
        self._open[kind] = page
        return page

    def finish(self) -> None:
        """Write the header and the index."""
        self._header["page"] = [page.as_json(self._header["shard_id"]) for page in self._pages]
        header = layout.header_bytes(self._header)
        if len(header) > self._header["header_size"]:
            raise MRMCommitError(
                f"commit: expected a header of at most {self._header['header_size']} bytes, got {len(header)}. "
                "Use set_header_size."
            )
        with self._path.open("r+b") as file:
            file.write(header)
            file.truncate(max(file.seek(0, os.SEEK_END), self._header["header_size"]))
        self._write_index()

    def _write_index(self) -> None:
        path = Path(f"{self._path}.db")
        path.unlink(missing_ok=True)
        columns, key = _PLACES, ["ROW_ID"]
        for number, field in enumerate(self._index):
            columns += f', INC_{number} INT, "{field.name}_0" {_COLUMN_TYPES[field.type]}'
            key.append(f"INC_{number}")
        connection = sqlite3.connect(path)
        try:
            # The whole index is written at once and can be made again: no journal, no waiting for the disk.
            connection.execute("PRAGMA journal_mode=OFF")
            connection.execute("PRAGMA synchronous=OFF")
            with connection:
                connection.execute("CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)")
                connection.execute("INSERT INTO SHARD_NAME VALUES (?)", (self._path.name,))
                connection.execute(f"CREATE TABLE INDEXES({columns}, PRIMARY KEY({','.join(key)}))")
                marks = ",".join("?" * (8 + 2 * len(self._index)))
                connection.executemany(f"INSERT INTO INDEXES VALUES ({marks})", self._rows)
        finally:
            connection.close()
