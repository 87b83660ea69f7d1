"""Operators that ran as several threads (FFTS+): the part of each tensor that one thread's dump file holds.

The header's first attribute then is JSON with `threadMode`, `slice_instance_num` and, for each thread and tensor, a
list of {lower, higher}, one for each axis.   Source: CANN, FFTS+ automatic slicing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.formats.bin import BinFile, BinTensor
from msdump.storage.files import open_file
from msdump.tensors.records import INPUT, OUTPUT

_MAX_HEADER_BYTES = 64 << 20
_KEYS = {INPUT: "input_tensor_slice", OUTPUT: "output_tensor_slice"}


def with_thread_shapes(content: BinFile, name: str) -> BinFile:
    """The file with the shapes of its thread's slices, which the header gives for the whole tensors.

    name     of the file; its last part but one is the thread
    Edges:   the same object when the operator was not sliced automatically.
    Raises:  AnalysisError: the thread is no number or has no slices, or they are not as many as tensors.
    """
    attribute = _slicing(content) if content.container == "2.0" else None
    if attribute is None:
        return content
    parts = name.split(".")
    thread = parts[-2] if len(parts) >= 2 else ""
    if not (thread.isascii() and thread.isdigit()):
        raise AnalysisError(
            ExitCode.INVALID_PATH,
            f'{content.path}: expected a thread as last part but one of the name, got "{thread}".',
        )
    shapes: dict[tuple[str, int], tuple[int, ...]] = {}
    for io, key in _KEYS.items():
        tensors = content.of(io)
        if tensors:
            slices = _slices_of_thread(attribute.get(key), int(thread), content.path, key)
            if len(slices) != len(tensors):
                raise AnalysisError(
                    ExitCode.INVALID_INPUT_MAPPING,
                    f"{content.path}: expected {len(tensors)} slices in {key}, got {len(slices)}.",
                )
            shapes.update(
                ((io, tensor.slot), _extent(ranges, content.path, key))
                for tensor, ranges in zip(tensors, slices, strict=True)
            )
    return replace(content, tensors=tuple(_reshaped(tensor, shapes) for tensor in content.tensors))


def _reshaped(tensor: BinTensor, shapes: dict[tuple[str, int], tuple[int, ...]]) -> BinTensor:
    shape = shapes.get((tensor.io, tensor.slot))
    return tensor if shape is None else replace(tensor, shape=shape)


def _slicing(content: BinFile) -> dict[str, Any] | None:
    """The attribute of an operator that was sliced automatically."""
    from msdump.formats._proto import dump_data_pb2

    with open_file(content.path) as file:
        length = int.from_bytes(file.read(0, 8), "little")
        if not 0 < length <= min(_MAX_HEADER_BYTES, file.size - 8):
            return None
        message = dump_data_pb2.DumpData.FromString(file.read(8, length))
    if not message.attr:
        return None
    try:
        attribute = json.loads(message.attr[0].value)
    except (ValueError, RecursionError):
        return None
    is_automatic = isinstance(attribute, dict) and attribute.get("threadMode") in (1, "1", "auto", "automatic")
    return attribute if is_automatic else None


def _slices_of_thread(slices: Any, thread: int, path: str, key: str) -> Sequence[Any]:
    if not isinstance(slices, list) or thread >= len(slices) or not isinstance(slices[thread], list):
        got = len(slices) if isinstance(slices, list) else type(slices).__name__
        raise AnalysisError(
            ExitCode.INVALID_SLICE_DATA, f"{path}: expected slices of thread {thread} in {key}, got {got}."
        )
    own: list[Any] = slices[thread]
    return own


def _extent(ranges: Any, path: str, key: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part["higher"]) - int(part["lower"]) for part in ranges)
    except (TypeError, KeyError, ValueError) as error:
        raise AnalysisError(
            ExitCode.INVALID_SLICE_DATA, f"{path}: expected lower and higher in {key}, got {str(ranges)[:80]}."
        ) from error
    if any(not 0 <= size < 2**48 for size in sizes) or len(sizes) > 32:
        raise AnalysisError(
            ExitCode.INVALID_SLICE_DATA, f"{path}: expected slices with sizes, got {sizes[:8]} in {key}."
        )
    return sizes
