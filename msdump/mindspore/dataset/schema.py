"""`Schema`: names, dtypes and shapes of columns, from calls or from a JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msdump.errors import ConfigError, FormatError
from msdump.mindspore.common.declared import Declared
from msdump.mindspore.common.dtype import dtype_name
from msdump.mindspore.dataset import checks

_LARGEST_FILE = 16 * 2**20  # bytes; a schema is a page of text


class Schema(Declared, takes="schema_file=None"):
    """Columns of a GeneratorDataset; a size of -1 in a shape is open.

    schema_file   JSON: {"datasetType": ..., "numRows": ..., "columns": {name: {"type": ..., "shape": [...]}}}
    columns       name -> as it stands in such a file
    Raises: TypeError, ConfigError (a bad column), FormatError (a file that is no schema).
    """

    def _set_up(self, schema_file: str | None) -> None:
        self.columns: dict[str, dict[str, Any]] = {}
        self._further: dict[str, Any] = {}
        if schema_file is None:
            return
        path = Path(checks.path_like("Schema(schema_file)", schema_file))
        if not path.is_file() or path.stat().st_size > _LARGEST_FILE:
            raise ConfigError(f"Schema(schema_file): expected a small JSON file, got none at {str(path)!r}.")
        try:
            self.from_json(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{path}: expected a schema in JSON, got: {error}") from error

    def add_column(self, name: str, de_type: Any, shape: Sequence[int] | None = None) -> None:
        """Add a column."""
        checks.column_names("Schema.add_column(name)", [name])
        column: dict[str, Any] = {"type": dtype_name(de_type)}
        if shape is not None:
            if not isinstance(shape, (list, tuple)):
                raise TypeError(f"Schema.add_column(shape): expected a list of ints, got {shape!r}.")
            sizes = [checks.whole_number("Schema.add_column(shape)", size, -1) for size in shape]
            column |= {"rank": len(sizes), "shape": sizes}
        self.columns[name] = column

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
        self._further = {name: json_obj[name] for name in ("datasetType", "numRows") if json_obj.get(name)}
        checks.whole_number("Schema(numRows)", self._further.get("numRows", 0), 0)
        self.parse_columns(json_obj["columns"])

    def to_json(self) -> str:
        """The schema as the text of its file."""
        return json.dumps({"columns": self.columns, **self._further}, indent=2)

    def get_num_rows(self) -> int:
        """Rows that the file says; 0 where it says nothing."""
        return int(self._further.get("numRows", 0))

    __str__ = to_json
