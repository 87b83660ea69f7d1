"""The two sides of msaccucmp compare: folders of one kind of file, each tensor by operator, side and index."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from msdump import layouts
from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.errors import FormatError, LayoutError
from msdump.events import Array
from msdump.formats.async_layout import safe_piece
from msdump.formats.bin_reader import BinTensor, read_bin
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_name import parse_dump_name
from msdump.formats.dump_tensor import DumpedTensor
from msdump.records import OUTPUT

DUMP, NPY, PB, QUANT = "dump", "npy", "pb", "quant"
_TIMESTAMP_DIGITS = 16


@dataclass(frozen=True, slots=True)
class SideTensor:
    """One tensor of one side."""

    op_name: str
    op_type: str
    io: str
    index: int
    dtype: str
    shape: tuple[int, ...]
    path: str
    address: str
    source: DumpedTensor | BinTensor

    def load(self, origin_format: str | None = None, origin_shape: tuple[int, ...] | None = None) -> Array:
        """The tensor as the host has it; in the original operator's format where that is told.

        Raises: FormatError, OSError.
        """
        if isinstance(self.source, BinTensor):
            return self.source.host_array()
        if origin_format not in ("NHWC", "HWCN") or self.source.format not in ("NC1HWC0", "FRACTAL_Z"):
            return self.source.load_host()
        array = self.source.load()
        shape = origin_shape or self.source.original_shape
        if shape is None or len(shape) != 4:
            return array
        try:
            # Index rules are told for NCHW; the original's shape is in the original's order.
            order = layouts.transpose_host(np.empty(shape, np.bool_), origin_format, "NCHW").shape
            host = layouts.from_device(array, self.source.format, order, max(1, self.source.sub_format))
            return layouts.transpose_host(host, "NCHW", origin_format)
        except LayoutError as error:
            raise FormatError(f"{self.path}: {error}") from error


class Side:
    """One folder, or one file. `kind` is "dump", "npy", "pb" or "quant".

    Of several files of one operator the one with the newest time stamp counts.
    """

    def __init__(self, path: str, kind: str, tensors: Mapping[tuple[str, str, int], SideTensor]) -> None:
        self.path = path
        self.kind = kind
        self._tensors = tensors

    @property
    def op_names(self) -> list[str]:
        """Operators in the order of their time stamps, as their files are named."""
        return list(dict.fromkeys(name for name, _, _ in self._tensors))

    def find(self, op_name: str, io: str, index: int) -> SideTensor | None:
        """A tensor by the operator's own name."""
        return self._tensors.get((safe_piece(op_name), io, index))

    def of(self, op_name: str) -> Iterator[SideTensor]:
        safe = safe_piece(op_name)
        return (tensor for (name, _, _), tensor in self._tensors.items() if name == safe)


def open_side(path: str) -> Side:
    """Read the names and headers of one side.

    Raises: AnalysisError with the original's code: no such path, no file, several kinds of files.
    """
    if not os.path.exists(path):
        raise AnalysisError(ExitCode.INVALID_PATH, f"{path}: expected a file or folder, got nothing.")
    dump = DumpDir.open(path)
    folder = os.path.abspath(path) if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))
    names = sorted(os.listdir(path)) if os.path.isdir(path) else [os.path.basename(path)]
    goldens = [name for name in names if name.endswith((f".{PB}", f".{QUANT}"))]
    files = [file for file in dump.files() if os.path.dirname(file.path) == folder]
    npy = [file for file in files if file.path.endswith(".npy")]
    others = [file for file in files if not file.path.endswith(".npy")]
    kinds = [
        kind
        for kind, is_there in (
            (DUMP, bool(others)),
            (NPY, bool(npy)),
            (PB, any(name.endswith(f".{PB}") for name in goldens)),
            (QUANT, any(name.endswith(f".{QUANT}") for name in goldens)),
        )
        if is_there
    ]
    if not kinds:
        raise AnalysisError(ExitCode.NO_DUMP_FILE, f"{path}: expected dump files, got none.")
    if len(kinds) > 1:
        raise AnalysisError(ExitCode.INVALID_PATH, f"{path}: expected files of one kind, got {', '.join(kinds)}.")
    tensors: dict[tuple[str, str, int], SideTensor] = {}
    if kinds[0] in (PB, QUANT):
        for name in goldens:
            _add_golden(tensors, os.path.join(folder, name))
        return Side(path, kinds[0], tensors)
    for file in sorted(files, key=lambda file: (file.timestamp_us or 0, file.path)):
        if kinds[0] == DUMP and len(str(file.timestamp_us or "")) != _TIMESTAMP_DIGITS:
            continue
        for tensor in dump.read(file):
            found = _side_tensor(tensor, kinds[0])
            key = safe_piece(found.op_name), found.io, found.index
            tensors.pop(key, None)  # the newest one also moves to the end of the order
            tensors[key] = found
    if not tensors:
        reason = f" The first problem: {dump.damaged[0][1]}" if dump.damaged else ""
        raise AnalysisError(ExitCode.NO_DUMP_FILE, f"{path}: expected dump files that can be read, got none.{reason}")
    return Side(path, kinds[0], tensors)


def _side_tensor(tensor: DumpedTensor, kind: str) -> SideTensor:
    address = "" if tensor.block is None or kind == NPY else str(tensor.block.address)
    return SideTensor(
        tensor.op_name, tensor.op_type, tensor.io, tensor.slot, tensor.dtype, tensor.shape, tensor.path, address, tensor
    )


def _add_golden(tensors: dict[tuple[str, str, int], SideTensor], path: str) -> None:
    """A file `{op}.{index}.{time}.pb`: one message with the data inside."""
    name = parse_dump_name(f"{os.path.basename(path).rpartition('.')[0]}.npy")
    if name is None:
        return
    for block in read_bin(path, "1.0").of(OUTPUT):
        index = name.slot or 0
        array = block.array()
        dtype = str(array.dtype)
        tensors[safe_piece(name.op_name), OUTPUT, index] = SideTensor(
            name.op_name, "", OUTPUT, index, dtype, tuple(array.shape), path, "", block
        )
