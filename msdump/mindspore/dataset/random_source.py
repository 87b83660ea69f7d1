"""`RandomDataset`: rows of random numbers in the columns of a schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import DType
from msdump.mindspore.dataset import checks, config
from msdump.mindspore.dataset.rows import Row, constant
from msdump.mindspore.dataset.samplers import sampler_of
from msdump.mindspore.dataset.schema import Schema
from msdump.mindspore.dataset.sources import MappableDataset

_LARGEST_SIDE = 64  # of a dimension that the schema leaves open


class RandomDataset(MappableDataset):
    """Noise, the same in each walk; without a schema one column "c0" of bytes. Not the numbers that MindSpore draws."""

    def __init__(
        self,
        total_rows: int | None = None,
        schema: Schema | str | None = None,
        columns_list: Sequence[str] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        cache: Any = None,
        shuffle: bool | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        self._seed = config.iterator_seed()
        generator = np.random.default_rng(self._seed)
        rows = total_rows if total_rows is None else checks.whole_number("RandomDataset(total_rows)", total_rows)
        columns = checks.column_names("RandomDataset(columns_list)", columns_list)
        if schema is None:
            schema = Schema()
            for name in columns or ["c0"]:
                schema.add_column(name, "uint8", [int(generator.integers(1, _LARGEST_SIDE))])
        listed = (schema if isinstance(schema, Schema) else Schema(schema)).columns_of("RandomDataset")
        self._columns = [column for column in listed if columns is None or column.name in columns]
        sides = [[int(generator.integers(1, _LARGEST_SIDE)) for _ in column.shape or ()] for column in self._columns]
        self._shapes = [
            tuple(side if size < 0 else size for size, side in zip(column.shape or (), drawn, strict=True))
            for column, drawn in zip(self._columns, sides, strict=True)
        ]
        self._size = rows or (schema.get_num_rows() if isinstance(schema, Schema) else 0) or 10000
        self._sampler = sampler_of(None, bool(shuffle), num_samples, num_shards, shard_id)

    def source_size(self) -> int:
        return self._size

    def row_at(self, place: int) -> Row:
        generator = np.random.default_rng([self._seed, place])
        return constant(
            [
                np.frombuffer(generator.bytes(dtype.itemsize * int(np.prod(shape, dtype=int))), dtype).reshape(shape)
                if dtype.kind in "iu"
                else generator.random(shape).astype(dtype)
                for shape, dtype in zip(self._shapes, self._dtypes(), strict=True)
            ]
        )

    def _dtypes(self) -> list[np.dtype[Any]]:
        return [DType(column.type).numpy for column in self._columns]

    def get_col_names(self) -> list[str]:
        return [column.name for column in self._columns]
