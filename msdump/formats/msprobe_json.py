"""`dump.json` of msprobe: statistics of the tensors of one step of one rank, as rows; and the files beside it.

    {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": {
        "Functional.linear.0.forward": {"input_args": [...], "input_kwargs": {...}, "output": [...]},
        "Module.fc1.Linear.forward.0": {..., "parameters": {"weight": {...}}},
        "Module.fc1.Linear.parameters_grad.0": {"weight": [...]}}}

A leaf that is a tensor tells type, dtype, shape, Max, Min, Mean and Norm, and may tell md5, which holds a CRC-32 where
it has 8 digits: that is no proof of equal bytes, and is left out.

`stack.json` holds, by number, names of records and the stack that they were called from, the innermost frame first;
msprobe 1.x has the stack by the name of each record. `construct.json` holds the module around each record;
`dump_tensor_data` files of torch.save. The level debug has a `debug.json` instead.

Source: files that mindstudio-probe 26.2 wrote.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump.errors import FormatError
from msdump.formats.paths.parse import msprobe_type
from msdump.formats.statistic_row import StatisticForm, StatisticRow
from msdump.storage.files import read_file
from msdump.storage.plain import GRAPH_BYTES
from msdump.tensors import dtypes
from msdump.tensors.records import INPUT, OUTPUT

MSPROBE_FILE = "dump.json"
STACK_FILE = "stack.json"
CONSTRUCT_FILE = "construct.json"
DEBUG_FILE = "debug.json"
DATA_FOLDER = "dump_tensor_data"
_DATA = "data"
# In the order in which the slots of a side are counted.
_SIDES = (
    (INPUT, ("input_args", "input_kwargs", "input", "parameters")),
    (OUTPUT, ("output",)),
)
_GRADIENTS = ".parameters_grad."
_FRAME = re.compile(r"File (?P<path>.+), line (?P<line>[0-9]{1,9}),(?: in .*,)?[ ]?\n[ ]*(?P<code>.*)")
# PyTorch's extremes are NaN where an element is; its sums may overflow.
_FORM = StatisticForm(
    measured=frozenset(row.name for row in dtypes.TABLE if row.numpy_type is not None),
    finite_by=("max", "min"),
    titles={"max": "Max", "min": "Min"},
)
_MD5 = re.compile(r"[0-9a-f]{32}")
_NUMBERS = {"NaN": math.nan, "nan": math.nan, "inf": math.inf, "Infinity": math.inf, "-inf": -math.inf}
_MAX_DEPTH = 20
_MAX_TEXT = 1000
_MAX_FRAME = 10_000


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A tensor of a record.   slot: its number among all leaves of its side"""

    io: str
    slot: int
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of a script in a stack."""

    path: str
    line: int
    code: str


def dump_content(
    task: str, level: str, data_folder: str | None, records: Mapping[str, Any], framework: str = "pytorch"
) -> dict[str, Any]:
    """What dump.json holds.   data_folder: path of the folder of tensors; None: none are saved"""
    head = {"task": task, "level": level, "framework": framework, "dump_data_dir": data_folder}
    return {**head, _DATA: records}


def stack_content(names_by_stack: Mapping[tuple[str, ...], Sequence[str]]) -> dict[int, Any]:
    """What stack.json holds."""
    return {number: [list(names), list(stack)] for number, (stack, names) in enumerate(names_by_stack.items())}


def as_json(content: Mapping[Any, Any]) -> bytes:
    """The bytes of one of these files. NaN and infinities are written as Python does, which is no JSON."""
    return json.dumps(content, indent=1).encode()


def read_msprobe_records(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Records by name, in the order of the file.   Raises: FormatError; OSError."""
    return read_msprobe_dump(path)[1]


def read_msprobe_dump(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """Whose functions the records name, "pytorch" or "mindspore", and `read_msprobe_records`.

    Raises: FormatError; OSError.
    """
    content = _json(path)
    records = content.get(_DATA) if isinstance(content, dict) else None
    if not isinstance(records, dict):
        raise FormatError(
            f'{os.fspath(path)}: expected an object with "{_DATA}", as msprobe writes it, got {str(content)[:80]}.'
        )
    framework = content.get("framework")
    return framework if isinstance(framework, str) else "pytorch", records


def read_msprobe_stacks(path: str | os.PathLike[str]) -> dict[str, tuple[Frame, ...]]:
    """Frames by the name of each record of a stack.json, the outermost first.

    Edges:   text that is no frame of a file is left out: what `msdump export` writes beside them, or a remark of
             msprobe's. Of a name that comes twice the first stack counts.
    Raises:  FormatError; OSError.
    """
    content = _json(path)
    if not isinstance(content, dict):
        raise FormatError(f"{os.fspath(path)}: expected an object of stacks, got {str(content)[:80]}.")
    stacks: dict[str, tuple[Frame, ...]] = {}
    for key, value in content.items():
        match value:
            case [list(names), list(texts)]:
                pass
            case list(texts):
                names = [key]
            case _:
                names, texts = [None], []
        if not all(isinstance(text, str) for text in (*names, *texts)):
            raise FormatError(
                f"{os.fspath(path)}, stack {key[:80]!r}: expected names and frames as texts, got {str(value)[:80]}."
            )
        frames = tuple(frame for text in reversed(texts) if (frame := _frame(text)) is not None)
        for name in names:
            stacks.setdefault(name, frames)
    return stacks


def read_msprobe_parents(path: str | os.PathLike[str]) -> dict[str, str]:
    """Record of the module around each record of a construct.json; records of no module are left out.

    Raises:  FormatError; OSError.
    """
    content = _json(path)
    if not isinstance(content, dict):
        raise FormatError(f"{os.fspath(path)}: expected an object of records, got {str(content)[:80]}.")
    return {name: parent for name, parent in content.items() if isinstance(parent, str)}


def read_msprobe_arguments(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Arguments of each record that are no tensors, by their names or `argument N`, as Python values.

    Edges:   records of backward passes have none; values that are no numbers, texts or lists of them are left out.
    Raises:  FormatError; OSError.
    """
    arguments: dict[str, dict[str, Any]] = {}
    for name, record in read_msprobe_records(path).items():
        if not isinstance(record, dict):
            continue
        given, named = record.get("input_args"), record.get("input_kwargs")
        values = {f"argument {index}": value for index, value in enumerate(given if isinstance(given, list) else ())}
        values |= named if isinstance(named, dict) else {}
        arguments[name] = {key: plain for key, value in values.items() if (plain := _plain(value)) is not None}
    return arguments


def _plain(value: Any) -> Any:
    """The value of an argument; None for one that has no plain value."""
    if isinstance(value, list):
        items = [item["value"] for item in value if _is_plain(item)]
        return items if items and len(items) == len(value) else None
    return value["value"] if _is_plain(value) else None


def _is_plain(value: Any) -> bool:
    if not isinstance(value, dict) or "type" not in value:
        return False
    plain = value.get("value")
    return isinstance(plain, int | float) or (isinstance(plain, str) and len(plain) <= _MAX_TEXT)


def _frame(text: str) -> Frame | None:
    # Longer ones are no frames, and would take long to match.
    match = _FRAME.match(text) if len(text) <= _MAX_FRAME else None
    return None if match is None else Frame(match["path"], int(match["line"]), match["code"])


def _json(path: str | os.PathLike[str]) -> Any:
    try:
        return json.loads(read_file(path, GRAPH_BYTES))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{os.fspath(path)}: expected JSON, got something else: {error}. Was it cut off?") from error


def read_msprobe_json(path: str | os.PathLike[str]) -> list[StatisticRow]:
    """One row for each tensor, in the order of the records, which is that in which calls ended.

    Names are those of the records, types those of the functions or modules. Such files hold no counts.
    Raises: FormatError; OSError.
    """
    rows: list[StatisticRow] = []
    for position, (name, record) in enumerate(read_msprobe_records(path).items()):
        if not isinstance(record, dict):
            raise FormatError(f"{Path(path)}, record {name[:80]!r}: expected an object, got {str(record)[:80]}.")
        rows += [_row(path, name, position, leaf) for leaf in _leaves(name, record)]
    return rows


def _leaves(name: str, record: Mapping[str, Any]) -> Iterator[_Leaf]:
    sides = ((OUTPUT, tuple(record)),) if _GRADIENTS in name else _SIDES
    for io, keys in sides:
        slot = 0
        for key in (key for key in keys if key in record):
            for content in _flat(record[key], 0):
                if content is not None:
                    yield _Leaf(io, slot, content)
                slot += 1


def _flat(value: Any, depth: int) -> Iterator[Mapping[str, Any] | None]:
    """Tensors of a value; None for what is none, but has a place among them."""
    if isinstance(value, dict) and "type" not in value and depth < _MAX_DEPTH:
        for item in value.values():
            yield from _flat(item, depth + 1)
    elif isinstance(value, list) and depth < _MAX_DEPTH:
        for item in value:
            yield from _flat(item, depth + 1)
    elif isinstance(value, dict) and "dtype" in value and "shape" in value and "Max" in value:
        yield value
    else:
        yield None


def _row(path: str | os.PathLike[str], name: str, position: int, leaf: _Leaf) -> StatisticRow:
    where = f"{Path(path)}, record {name[:80]!r}, {leaf.io} {leaf.slot}"
    content = leaf.content
    shape = content["shape"]
    is_shape = isinstance(shape, list) and all(type(size) is int and 0 <= size < 1 << 62 for size in shape)
    if not is_shape or not isinstance(content["dtype"], str):
        raise FormatError(f"{where}: expected dtype and shape of a tensor, got {str(content)[:120]}.")
    dtype = content["dtype"].rsplit(".", 1)[-1].lower()[:_MAX_TEXT]
    count = math.prod(shape)
    size = count * dtypes.dtype(dtype).bits // 8 if dtype in dtypes.BY_NAME else 0
    md5 = content.get("md5")
    return StatisticRow(
        op_type=msprobe_type(name),
        op_name=name,
        task_id=0,
        stream_id=0,
        timestamp_us=position,
        io=leaf.io,
        slot=leaf.slot,
        size_bytes=size,
        dtype=dtype,
        shape=tuple(shape),
        max=_number(where, content, "Max"),
        min=_number(where, content, "Min"),
        avg=_number(where, content, "Mean"),
        l2norm=_number(where, content, "Norm"),
        count=count,
        md5=md5 if isinstance(md5, str) and _MD5.fullmatch(md5) else None,
        form=_FORM,
    )


def _number(where: str, content: Mapping[str, Any], key: str) -> float | None:
    value = content.get(key)
    if isinstance(value, str) and value in _NUMBERS:
        return _NUMBERS[value]
    if value is None or isinstance(value, str):
        return None
    if not isinstance(value, (int, float)):
        raise FormatError(f"{where}: expected a number as {key}, got {str(value)[:80]}.")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
