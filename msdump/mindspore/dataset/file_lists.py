"""`FileList`: sources that are a list of files with labels; each is a table of arguments and a function."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.rows import Row
from msdump.mindspore.dataset.samplers import sampler_of
from msdump.mindspore.dataset.sources import MappableDataset
from msdump.mindspore.dataset.vision.pixels import Decode
from msdump.tensors.arrays import Array

# One row: a Path stands for the image in that file, anything else for itself.
Entry = tuple[Any, ...]
REQUIRED = inspect.Parameter.empty
_COMMON = ("num_samples", "num_parallel_workers", "shuffle", "sampler", "num_shards", "shard_id", "cache")


def parameters(text: str, **defaults: Any) -> inspect.Signature:
    """Signature of a constructor: names in order; those of `defaults` are its own, the common ones default to None."""
    listed = []
    for name in text.split():
        default = defaults.get(name, None if name in _COMMON else REQUIRED)
        listed.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    return inspect.Signature(listed)


class TabledSource(MappableDataset):
    """A source whose constructor a table states.   PARAMETERS: signature of the constructor"""

    PARAMETERS: inspect.Signature = parameters("dataset_dir num_samples")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__signature__ = cls.PARAMETERS  # type: ignore[attr-defined]

    def __init__(self, *values: Any, **named: Any) -> None:
        where = type(self).__name__
        try:
            bound = self.PARAMETERS.bind(*values, **named)
        except TypeError as error:
            raise TypeError(f"{where}: {error}. Its arguments: {', '.join(self.PARAMETERS.parameters)}.") from error
        bound.apply_defaults()
        given = dict(bound.arguments)
        self._open(where, {name: given.pop(name, None) for name in _COMMON}, given)

    @abstractmethod
    def _open(self, where: str, common: Mapping[str, Any], given: dict[str, Any]) -> None:
        """Take the arguments: those that are common to all sources, and the own ones."""


class FileList(TabledSource):
    """A source whose subclasses are rows of a table.   COLUMNS: columns of a row"""

    COLUMNS: Sequence[str] = ("image", "label")

    def _open(self, where: str, common: Mapping[str, Any], given: dict[str, Any]) -> None:
        self._decode = Decode() if given.pop("decode", False) else None
        self._classes: dict[str, Any] = {}
        folder = checks.existing_folder(where, given["dataset_dir"]) if "dataset_dir" in given else Path()
        self._entries = list(self.entries(where, folder, **given))
        if not self._entries:
            raise ConfigError(f"{where}: expected files of {where}, got none for {given}. Check the folder.")
        self._sampler = sampler_of(
            common["sampler"], common["shuffle"], common["num_samples"], common["num_shards"], common["shard_id"]
        )

    @abstractmethod
    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        """Rows of the source, for the arguments that are not common to all.   Raises: TypeError, ConfigError.

        where    name of the source
        folder   its `dataset_dir`, which exists
        """

    def get_col_names(self) -> list[str]:
        return list(self.COLUMNS)

    def source_size(self) -> int:
        return len(self._entries)

    def row_at(self, place: int) -> Row:
        return lambda: tuple(self._value(value) for value in self._entries[place])

    def labels(self) -> Sequence[int]:
        if "label" not in self.COLUMNS:
            return super().labels()
        column = list(self.COLUMNS).index("label")
        return [int(entry[column]) for entry in self._entries]

    def num_classes(self) -> int | None:
        return len(self._classes) or None

    def get_class_indexing(self) -> dict[str, Any]:
        return dict(self._classes)

    def _value(self, value: Any) -> Array:
        if not isinstance(value, Path):
            return np.asarray(value)
        data = np.fromfile(value, np.uint8)
        return data if self._decode is None else np.asarray(self._decode(data))


def existing_file(where: str, path: Path) -> Path:
    """`path`.   Raises: ConfigError when there is no such file."""
    if not path.is_file():
        raise ConfigError(f"{where}: expected the file {str(path)!r}, got none. Check the folder.")
    return path


def chosen_parts(where: str, usage: str | None, parts: Mapping[str, Any], name: str = "usage") -> list[str]:
    """Parts of a usage: all of them for None and "all".   Raises: ConfigError."""
    checks.one_of(f"{where}({name})", usage, [*parts, "all"])
    return list(parts) if usage in (None, "all") else [str(usage)]
