"""The two sides of msaccucmp compare: folders of one kind of file, each tensor by operator, side and index."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.formats.bin import BinTensor, read_bin
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.npy import npy_array
from msdump.formats.paths.acl import safe_piece
from msdump.formats.paths.parse import parse_dump_name
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import INPUT, OUTPUT

DUMP, NPY, PB, QUANT = "dump", "npy", "pb", "quant"
_TIMESTAMP_DIGITS = 16
_UNDEFINED = 0


@dataclass(frozen=True, slots=True)
class SideTensor:
    """One tensor of one side.

    dtype     as the file tells it; the bytes of UNDEFINED count as int8
    op_name   as its file is named
    address   in the device's memory; 0 where no file tells it
    """

    op_name: str
    op_type: str
    io: str
    index: int
    dtype: str
    shape: tuple[int, ...]
    path: str
    address: int
    source: DumpedTensor | BinTensor

    @property
    def is_device_dump(self) -> bool:
        """False for a golden file of another framework."""
        return isinstance(self.source, DumpedTensor) and self.source.file.form != NPY

    @property
    def original_shape(self) -> tuple[int, ...] | None:
        """Without the padding of a device format; None where the file does not tell it."""
        return self.source.original_shape

    def load(self) -> Array:
        """The tensor as the host has it, as numpy dtypes.   Raises: FormatError, OSError."""
        source = self.source
        return self._plain(source.host_array() if isinstance(source, BinTensor) else source.load_host())

    def load_stored(self) -> Array:
        """The tensor in the format in which it was dumped.   Raises: FormatError, OSError."""
        source = self.source
        return self._plain(source.array() if isinstance(source, BinTensor) else source.load())

    def _plain(self, array: Array) -> Array:
        """bfloat16 and its like become float32, which they are for msaccucmp as well."""
        if self.dtype == "int8" and array.dtype == np.uint8:
            return array.view(np.int8)
        row = dtypes.BY_NAME.get(self.dtype)
        is_plain = row is None or row.kind == dtypes.OTHER or array.dtype != row.numpy
        return array if is_plain else npy_array(array, self.dtype)


class Side:
    """One folder, or one file. `kind` is "dump", "npy", "pb" or "quant".

    tensors   by operator, side and index, in the order of their files' time stamps
    Of several files of one operator the one with the newest time stamp counts.
    """

    def __init__(self, path: str, kind: str, tensors: Mapping[tuple[str, str, int], SideTensor]) -> None:
        self.path = path
        self.kind = kind
        self._tensors = tensors
        self._by_operator: dict[str, list[SideTensor]] = {}
        for (name, _, _), tensor in tensors.items():
            # The newest file of an operator decides its position in the order.
            self._by_operator[name] = [*self._by_operator.pop(name, []), tensor]

    @property
    def op_names(self) -> list[str]:
        """Operators in the order of their time stamps, as their files are named."""
        return list(self._by_operator)

    @property
    def has_addresses(self) -> bool:
        """False where the result file has no column for addresses."""
        return self.kind in (DUMP, PB)

    def find(self, op_name: str, io: str, index: int) -> SideTensor | None:
        """A tensor by the operator's own name."""
        return self._tensors.get((safe_piece(op_name), io, index))

    def of(self, op_name: str) -> list[SideTensor]:
        """Tensors of an operator, inputs first."""
        tensors = self._by_operator.get(safe_piece(op_name), [])
        return sorted(tensors, key=lambda tensor: (tensor.io != INPUT, tensor.index))


def open_side(path: str) -> Side:
    """Read the names and headers of one side.

    Raises: AnalysisError with msaccucmp's code: no such path, no file, several kinds of files.
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
        raise AnalysisError(ExitCode.DUMP_FILE, f"{path}: expected dump files, got none.")
    if len(kinds) > 1:
        raise AnalysisError(ExitCode.DUMP_FILE, f"{path}: expected files of one kind, got {', '.join(kinds)}.")
    tensors: dict[tuple[str, str, int], SideTensor] = {}
    if kinds[0] in (PB, QUANT):
        for name in goldens:
            _add_golden(tensors, os.path.join(folder, name))
        return Side(path, kinds[0], tensors)
    for file in sorted(files, key=lambda file: (file.timestamp_us or 0, file.path)):
        if kinds[0] == DUMP and len(str(file.timestamp_us or "")) != _TIMESTAMP_DIGITS:
            continue
        for tensor in dump.read(file):
            side_tensor = _side_tensor(tensor, kinds[0])
            key = safe_piece(side_tensor.op_name), side_tensor.io, side_tensor.index
            tensors.pop(key, None)  # the newest one also moves to the end of the order
            tensors[key] = side_tensor
    if not tensors:
        reason = f" The first problem: {dump.damaged[0][1]}" if dump.damaged else ""
        raise AnalysisError(ExitCode.DUMP_FILE, f"{path}: expected dump files that can be read, got none.{reason}")
    return Side(path, kinds[0], tensors)


def _side_tensor(tensor: DumpedTensor, kind: str) -> SideTensor:
    block = None if kind == NPY else tensor.block
    dtype = "int8" if block is not None and block.dtype_number == _UNDEFINED else tensor.dtype
    address = 0 if block is None else block.address
    return SideTensor(
        tensor.op_name, tensor.op_type, tensor.io, tensor.slot, dtype, tensor.shape, tensor.path, address, tensor
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
            name.op_name, "", OUTPUT, index, dtype, tuple(array.shape), path, 0, block
        )
