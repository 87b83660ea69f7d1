"""`Schema`: names, dtypes and shapes of columns, from calls or from a JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump.errors import ConfigError, FormatError
from msdump.mindspore.common.dtype import dtype_name
from msdump.mindspore.dataset import checks

_LARGEST_FILE = 16 * 2**20  # bytes; a schema is a page of text


@dataclass(frozen=True)
class Column:
    """A column: `type` is a name of `mindspore`'s dtypes; a size of -1 in `shape` is open, None: any shape."""

    name: str
    type: str
    shape: tuple[int, ...] | None

    def as_json(self) -> dict[str, Any]:
        """As it stands in a schema file."""
        rank = {} if self.shape is None else {"rank": len(self.shape), "shape": list(self.shape)}
        return {"type": self.type, **rank}


class Schema:
    """Columns of TFRecordDataset, RandomDataset and GeneratorDataset.

    schema_file   JSON: {"datasetType": ..., "numRows": ..., "columns": {name: {"type": ..., "shape": [...]}}}
    Raises: TypeError, ConfigError (a bad column), FormatError (a file that is no schema).
    """

    def __init__(self, schema_file: str | None = None) -> None:
        self._columns: dict[str, Column] = {}
        self._rows: int | None = None
        self._kind = ""
        if schema_file is None:
            return
        path = Path(checks.path_like("Schema(schema_file)", schema_file))
        if not path.is_file():
            raise ConfigError(f"Schema(schema_file): expected a JSON file, got nothing at {str(path)!r}.")
        if path.stat().st_size > _LARGEST_FILE:
            raise FormatError(f"{path}: expected a schema, got {path.stat().st_size} bytes.")
        try:
            self.from_json(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{path}: expected a schema in JSON, got: {error}") from error

    def add_column(self, name: str, de_type: Any, shape: Sequence[int] | None = None) -> None:
        """Add a column."""
        checks.column_names("Schema.add_column(name)", [name])
        sizes = None
        if shape is not None:
            if not isinstance(shape, (list, tuple)):
                raise TypeError(f"Schema.add_column(shape): expected a list of ints, got {shape!r}.")
            sizes = tuple(checks.whole_number("Schema.add_column(shape)", size, -1) for size in shape)
        self._columns[name] = Column(name, dtype_name(de_type), sizes)

    def parse_columns(self, columns: Any) -> None:
        """Add columns of {name: {"type", "shape"}} or [{"name", "type", "shape"}]."""
        named = columns.items() if isinstance(columns, Mapping) else ((item.get("name"), item) for item in columns)
        for name, what in named:
            if not isinstance(what, Mapping) or "type" not in what:
                raise ConfigError(f"Schema: expected a type for column {name!r}, got {what!r}.")
            self.add_column(name, what["type"], what.get("shape"))

    def from_json(self, json_obj: Mapping[str, Any]) -> None:
        """Take everything of a schema's dictionary."""
        if not isinstance(json_obj, Mapping) or "columns" not in json_obj:
            raise ConfigError("Schema.from_json: expected a dictionary with 'columns', got none.")
        self._kind = str(json_obj.get("datasetType", ""))
        rows = json_obj.get("numRows")
        self._rows = None if rows is None else checks.whole_number("Schema(numRows)", rows, 0)
        self.parse_columns(json_obj["columns"])

    def to_json(self) -> str:
        """The schema as the text of its file."""
        content: dict[str, Any] = {"columns": {name: column.as_json() for name, column in self._columns.items()}}
        if self._kind:
            content["datasetType"] = self._kind
        if self._rows:
            content["numRows"] = self._rows
        return json.dumps(content, indent=2)

    def get_num_rows(self) -> int:
        """Rows that the file says; 0 where it says nothing."""
        return self._rows or 0

    def columns_of(self, where: str) -> list[Column]:
        """The columns.   Raises: ConfigError when there are none."""
        if not self._columns:
            raise ConfigError(f"{where}(schema): expected a schema with columns, got one without.")
        return list(self._columns.values())

    def __str__(self) -> str:
        return self.to_json()
