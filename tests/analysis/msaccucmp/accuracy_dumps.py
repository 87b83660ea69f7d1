"""Folders, golden files and fusion json files for tests of msaccucmp compare."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from msdump.cli.msaccucmp import main
from msdump.formats.bin import bin_chunks
from msdump.tensors.records import TensorRecord

Array = np.ndarray[Any, np.dtype[Any]]
Tensors = dict[tuple[str, int], Array]
STAMP = 1_700_000_000_000_000


def record(op: str, io: str, slot: int, array: Array, stamp: int, form: str = "ND") -> TensorRecord:
    return TensorRecord(op.split("_")[0], op, 1, 0, stamp, io, slot, array.dtype.name, array, form)


def dump(folder: Path, operators: dict[str, Tensors], form: str = "ND") -> Path:
    """Device dump files, one for each operator, in this order."""
    folder.mkdir(parents=True)
    for number, (op, tensors) in enumerate(operators.items()):
        stamp = STAMP + number
        records = [record(op, io, slot, array, stamp, form) for (io, slot), array in tensors.items()]
        data = b"".join(bytes(chunk) for chunk in bin_chunks(records))
        (folder / f"{op.split('_')[0]}.{op}.{number}.0.{stamp}").write_bytes(data)
    return folder


def golden_npy(folder: Path, arrays: dict[tuple[str, int], Array]) -> Path:
    folder.mkdir(parents=True)
    for (op, index), array in arrays.items():
        np.save(folder / f"{op.replace('/', '_')}.{index}.{STAMP}.npy", array)
    return folder


def op_json(
    name: str,
    op_type: str,
    inputs: Sequence[str],
    origins: Sequence[tuple[str, int]],
    *,
    form: str | None = "NCHW",
    shape: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    number: int | None = None,
    **attributes: Any,
) -> dict[str, Any]:
    """One operator of a fusion json.

    origins      (original operator, output) of each output
    form, shape  of all original outputs
    names        original operators; None for those of `origins`
    number       its id
    attributes   further attributes and their values
    """
    originals = [origin for origin, _ in origins] if names is None else list(names)
    attr = [{"key": "_datadump_original_op_names", "value": {"list": {"s": originals}}}]
    attr += [{"key": f"_{key}", "value": value} for key, value in attributes.items()]
    descriptions = []
    for origin, index in origins:
        entries: list[dict[str, Any]] = [
            {"key": "_datadump_origin_name", "value": {"s": origin}},
            {"key": "_datadump_origin_output_index", "value": {"i": index}},
        ]
        if form is not None:
            entries.append({"key": "_datadump_origin_format", "value": {"s": form}})
        if shape is not None:
            entries.append({"key": "origin_shape", "value": {"list": {"i": list(shape)}}})
        descriptions.append({"attr": entries})
    op = {"name": name, "type": op_type, "input": list(inputs), "attr": attr, "output_desc": descriptions}
    return op if number is None else {**op, "id": number}


def write_json(path: Path, ops: Sequence[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"name": "m", "graph": [{"name": "m", "op": list(ops)}]}))
    return path


def compare(*arguments: str | Path) -> int:
    return main(["compare", *map(str, arguments)])


def text_of(folder: Path, pattern: str = "result_*.csv") -> str:
    (path,) = folder.glob(pattern)
    return path.read_bytes().decode()


def result(folder: Path, pattern: str = "result_*.csv") -> list[dict[str, str]]:
    return list(csv.DictReader(text_of(folder, pattern).splitlines()))
