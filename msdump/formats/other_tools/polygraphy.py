"""Results and inputs that Polygraphy saved (`polygraphy run --save-outputs`, `--save-inputs`): JSON, in it npy files
in base64.

    {"lst": [["onnxrt-runner-N0", [{"outputs": {"y": {"values": {"array": "k05V...", ...}}}, ...}, ...]], ...], ...}
    [{"x": {"array": "k05V...", ...}}, ...]        inputs, one entry for an iteration; {...} alone for one

Outputs are in the order in which the runner gave them. A folder has a file for each iteration, named by its number.
Source: files that Polygraphy 0.53 wrote; its forms of earlier versions.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Iterator
from typing import Any

from msdump.errors import FormatError
from msdump.formats.npy_reader import npy_header_in
from msdump.formats.other_tools.members import BASE64_NPY, MAX_PARTS, Member, Members, beginning
from msdump.storage.files import open_file, read_file
from msdump.storage.plain import GRAPH_BYTES
from msdump.tensors import dtypes

_ARRAY = "array"
_SNIFFED = 1 << 16
_NPY_IN_BASE64 = b"k05VTVBZ"
_BEGINNING = re.compile(
    rb'\s*(?:\{\s*"lst"\s*:\s*\['
    rb'|(?:\[\s*)?\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\{\s*(?:"values"\s*:\s*\{\s*)?"array"\s*:\s*"' + _NPY_IN_BASE64 + rb")"
)
_HEAD = 16384  # characters of base64, which hold the header of an npy file
_MAX_RUNS = 1 << 16


def is_polygraphy(path: str) -> bool:
    """Whether a JSON file begins as Polygraphy's do; nothing is parsed.   Raises: FormatError; OSError."""
    with open_file(path) as file:
        start = file.read(0, _SNIFFED)
    return _NPY_IN_BASE64 in start and _BEGINNING.match(start) is not None


def read_polygraphy(path: str) -> Members:
    """Arrays by run, iteration and name, in the order of the file.

    Edges:  what is saved of torch's tensors is a problem: they are no npy files.
    Raises: FormatError for what Polygraphy does not write; OSError.
    """
    content = read_file(path, GRAPH_BYTES)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: expected the JSON of Polygraphy, got: {error}. Was it cut off?") from error
    found: list[Member] = []
    problems: list[FormatError] = []
    place = 0
    first = _number_of_file(path)
    for run, run_name, iteration, name, entry in _entries(path, value):
        text = _base64_of(entry)
        where = f"{path}, {name[:200]}"
        if text is None:
            problems.append(FormatError(f"{where}: expected an array of numpy, got {str(entry)[:80]}."))
            continue
        stored = text.encode("ascii", "replace")
        # Equal arrays have equal texts, so the next text that is equal is one of the same array.
        place = content.find(stored, place)
        if place < 0:
            raise FormatError(f"{where}: expected an array as Polygraphy writes it, got an escaped text.")
        try:
            head = base64.b64decode(stored[: min(_HEAD, len(stored))] + b"=" * (-min(_HEAD, len(stored)) % 4))
            size = len(stored) // 4 * 3 - stored.count(b"=", -2)
            header = npy_header_in(where, beginning(size, head))
        except (binascii.Error, ValueError) as error:
            problems.append(FormatError(f"{where}: expected an npy file in base64, got: {str(error)[:160]}."))
            place += len(stored)
            continue
        dtype = dtypes.dtype_from_numpy(header.dtype).name
        number = None if iteration is None else iteration + first
        found.append(
            Member(
                name, dtype, header.shape, place, len(stored), BASE64_NPY, size_bytes=header.size_bytes,
                run=run, iteration=number, run_name=run_name,
            )
        )  # fmt: skip
        place += len(stored)
        if len(found) > MAX_PARTS:
            raise FormatError(f"{path}: expected at most {MAX_PARTS} arrays, got more.")
    return Members(tuple(found), tuple(problems))


def _number_of_file(path: str) -> int:
    """Number of the first iteration, where the name of the file is one as in a folder of iterations."""
    stem = os.path.basename(path).rpartition(".")[0]
    return int(stem) if re.fullmatch(r"[0-9]{10}", stem) else 0


def _entries(path: str, value: Any) -> Iterator[tuple[int | None, str | None, int | None, str, Any]]:
    """Number and name of the run, iteration, name and value of each array."""
    match value:
        case {"lst": list(runs)}:
            for number, run in enumerate(runs[:_MAX_RUNS]):
                match run:
                    case [str(runner), list(iterations)]:
                        pass
                    case _:
                        raise FormatError(f"{path}: expected a runner and its iterations, got {str(run)[:80]}.")
                run_number = number if len(runs) > 1 else None
                for iteration, result in enumerate(iterations):
                    outputs = result.get("outputs") if isinstance(result, dict) else None
                    if not isinstance(outputs, dict):
                        raise FormatError(f"{path}: expected outputs of an iteration, got {str(result)[:80]}.")
                    for name, entry in outputs.items():
                        yield run_number, runner[:200], iteration, name, entry
        case list() | dict():
            iterations = value if isinstance(value, list) else [value]
            for iteration, inputs in enumerate(iterations):
                if not isinstance(inputs, dict):
                    raise FormatError(f"{path}: expected inputs of an iteration, got {str(inputs)[:80]}.")
                for name, entry in inputs.items():
                    yield None, None, iteration, name, entry
        case _:
            raise FormatError(f"{path}: expected results or inputs of Polygraphy, got {str(value)[:80]}.")


def _base64_of(entry: Any) -> str | None:
    """The text of an array, which may lie in a value of its own."""
    match entry:
        case {"values": {"array": str(text)}} | {"array": str(text)}:
            return text
        case _:
            return None
