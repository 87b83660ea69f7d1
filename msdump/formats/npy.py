"""One .npy file per tensor, as MindSpore's synchronous dump leaves them, and what `numpy.save` writes.

npy knows no bfloat16, so such tensors are stored in a wider dtype. The text of the header ends in padding, which every
reader passes over: numpy fills it with blanks. Here it begins with tabs, as many as the number of the dtype that the
tensor had among CANN's OutputDataType (27 for bfloat16, 34 for float8_e5m2). Length, alignment and the dictionary stay
what the format asks for.
"""

from __future__ import annotations

import functools
import io
import struct
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from msdump.errors import DtypeError, WriteError
from msdump.formats.direct import Buffer
from msdump.formats.paths.sync import data_file_name
from msdump.formats.spare_files import SpareFiles
from msdump.formats.writer import Counter, DumpFolder, LinkFolder, OpenFolders, WriteCounts, finish_all
from msdump.statistics.stats import raw_bytes
from msdump.tensors import device_layouts, dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import AlreadyWritten, TensorRecord

MAGIC = b"\x93NUMPY"
_ALIGNMENT = 64
PREFIX_BYTES = 10  # magic, version and the length of the text, of version 1.0


@functools.lru_cache(maxsize=1024)
def npy_header(dtype_name: str, shape: tuple[int, ...]) -> bytes:
    """Header of a .npy file, byte for byte as MindSpore writes it but for the mark of a float dtype that is widened.

    Raises: DtypeError for strings, which have no .npy form here.
    Source: MindSpore 2.0.0; version 1.0, no blanks in the shape, a comma after every dimension, a multiple of 64 bytes.
    """
    descr = _npy_dtype(dtype_name).str
    dimensions = "".join(f"{size}," for size in shape)
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dimensions}), }}"
    unpadded = len(MAGIC) + 4 + len(text) + 1
    blanks = -unpadded % _ALIGNMENT
    length = unpadded + blanks - len(MAGIC) - 4
    header = MAGIC + b"\x01\x00" + struct.pack("<H", length) + text.encode("ascii") + b" " * blanks + b"\n"
    return with_mark(header, dtype_name)


def data_offsets(records: Sequence[TensorRecord]) -> list[int]:
    """Where in its file the data of each record begins."""
    return [len(npy_header(record.dtype, record.data.shape)) for record in records]


def npy_array(array: Array, dtype_name: str) -> Array:
    """The array as a .npy file holds it: little-endian, and widened where the dtype table says so.

    Edges:   values are kept, NaNs stay NaNs; a view when nothing has to change.
    Raises:  DtypeError for hifloat8, whose numbers numpy cannot tell, and when the array is not of `dtype_name`.
    """
    row = dtypes.dtype(dtype_name)
    if row.kind == dtypes.OTHER:
        raise DtypeError(f"npy: expected a dtype that numpy can hold, got {row.name}. Save it as bin.")
    if array.dtype.newbyteorder("=") != row.numpy:
        raise DtypeError(f"npy: expected an array of {row.name}, got one of {array.dtype}.")
    target = _npy_dtype(row.name)
    if not row.is_widened:
        return array if array.dtype == target else array.astype(target)
    if row.name == "bfloat16" and array.dtype.isnative:
        return (array.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(target, copy=False)
    with np.errstate(all="ignore"):
        return array.astype(target)


@functools.cache
def _npy_dtype(dtype_name: str) -> np.dtype[Any]:
    return dtypes.dtype(dtypes.dtype(dtype_name).npy_name).numpy.newbyteorder("<")


class _IterationFiles:
    """Open folders of one iteration, and which file holds which tensor."""

    def __init__(self, folders: OpenFolders[LinkFolder]) -> None:
        self.folders = folders
        self.written: AlreadyWritten[tuple[LinkFolder, str, int]] = AlreadyWritten()


class NpyWriter:
    """Writer of one .npy file per record.

    directory   folder that a record belongs to; made when its first record comes
    mode        of files; `dir_mode` of the folders it makes
    file_name   name of a record's file, which `mapping.csv` replaces when it is too long
    is_direct   write big files past the page cache, see `Folder`
    is_device_format   True: a tensor whose record names a device format is written in it, padding included
    content     bytes of the file of a record, in place of those of MindSpore
    replaces    whether a file of that name that is there already gives way
    spares      files of earlier iterations that new ones are written over, see `Folder`
    open_folder  opens a destination of files other than a folder on the disk

    Records with equal (iteration, graph, key, shape, dtype, format) hold the same bytes: the first is written, the
    others become hard links to it. Arrays are not kept. Any thread may call it: data is written outside all locks, and
    two threads that bring the same tensor at the same moment both write it.
    """

    writes_once = True
    takes_empty = False

    def __init__(
        self,
        directory: Callable[[TensorRecord], Path],
        mode: int = 0o400,
        dir_mode: int = 0o700,
        file_name: Callable[[TensorRecord], str] = data_file_name,
        is_direct: bool = False,
        is_device_format: bool = False,
        content: Callable[[TensorRecord], Sequence[Buffer]] | None = None,
        replaces: bool = False,
        spares: SpareFiles | None = None,
        open_folder: Callable[[Path], LinkFolder] | None = None,
    ) -> None:
        self._spares = spares
        self._open_folder = open_folder or self._open
        self._directory = directory
        self._mode = mode
        self._dir_mode = dir_mode
        self._file_name = file_name
        self._is_direct = is_direct
        self._is_device_format = is_device_format
        self._content = content or self._npy_content
        self._replaces = replaces
        self._iterations: dict[tuple[int, int], _IterationFiles] = {}
        self._lock = threading.Lock()
        self._counter = Counter()

    @property
    def counts(self) -> WriteCounts:
        return self._counter.total

    def write(self, records: Sequence[TensorRecord]) -> None:
        """Raises: WriteError, DtypeError, LayoutError; records before the one that failed are on disk."""
        for record in records:
            self.write_as(self._file_name(record), record)

    def write_beside(self, record: TensorRecord, file_name: str, data: bytes) -> None:
        """Write a file of another kind where that of the record is, or would be.   Raises: WriteError."""
        folder = self._iteration_of(record).folders.of(record)
        self._counter.file(folder.write(file_name, [data], self._mode, replace=True))

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        with self._lock:
            ended = self._iterations.pop((graph_id, iteration), None)
        if ended is not None:
            ended.folders.close()

    def close(self) -> None:
        finish_all([functools.partial(self.end_iteration, *step) for step in list(self._iterations)])

    def _iteration_of(self, record: TensorRecord) -> _IterationFiles:
        name = (record.graph_id, record.iteration)
        found = self._iterations.get(name)
        if found is None:
            with self._lock:
                found = self._iterations.get(name)
                if found is None:
                    folders = OpenFolders(self._directory, self._open_folder)
                    found = self._iterations[name] = _IterationFiles(folders)
        return found

    def _open(self, path: Path) -> DumpFolder:
        return DumpFolder(path, self._mode, self._dir_mode, self._is_direct, self._spares)

    def write_as(self, file_name: str, record: TensorRecord) -> None:
        """As `write`, under this name."""
        iteration = self._iteration_of(record)
        folder = iteration.folders.of(record)
        _, dot, kind = file_name.rpartition(".")
        name = folder.fitting_name(file_name, dot + kind if dot else "")
        written = iteration.written.get(record)
        if written is None:
            size = self._publish(folder, name, record)
        else:
            size = written[2]
            if folder.link(written[1], name, written[0]):
                self._counter.add(links=1, bytes_named=size)
                return
            self._counter.file(size)
        # A file that cannot take more names hands over to its copy.
        iteration.written.put(record, (folder, name, size))

    def _publish(self, folder: LinkFolder, name: str, record: TensorRecord) -> int:
        if record.is_repeat:
            raise WriteError(
                f"{folder.path}/{name}: expected the tensor on disk under another name, got none. "
                "Its first record was not written."
            )
        chunks = self._content(record)
        size = folder.write(name, chunks, self._mode, self._replaces, tensors_from=1 if len(chunks) > 1 else 0)
        self._counter.file(size)
        return size

    def _npy_content(self, record: TensorRecord) -> Sequence[Buffer]:
        data = npy_array(record.data, record.dtype)
        if self._is_device_format and record.format in device_layouts.DEVICE_FORMATS:
            c0 = device_layouts.cube_size(record.dtype)
            data = device_layouts.to_device(data, record.format, c0, max(1, record.sub_format))
        return npy_header(record.dtype, data.shape), raw_bytes(data)


# -- the dtype before widening -----------------------------------------------------------------------------------------


def mark_of(dtype_name: str) -> str:
    """Tabs for a float dtype that npy stores in a wider one, "" for all others."""
    row = dtypes.dtype(dtype_name)
    return "\t" * row.acl_number if row.is_float and row.is_widened and row.acl_number else ""


def dtype_of_mark(padding: str, stored: np.dtype[Any]) -> str | None:
    """Dtype that the padding of a header tells; None for plain padding, and where it does not fit the stored dtype."""
    count = len(padding) - len(padding.lstrip("\t"))
    row = dtypes.BY_ACL_NUMBER.get(count)
    if row is None or not mark_of(row.name):
        return None
    return row.name if dtypes.dtype(row.npy_name).numpy == stored.newbyteorder("=") else None


def with_mark(header: bytes, dtype_name: str) -> bytes:
    """A header of version 1.0 that tells the dtype; longer by a multiple of 64 bytes where its padding is too short."""
    mark = mark_of(dtype_name).encode()
    if not mark:
        return header
    text = header[PREFIX_BYTES:].rstrip() + mark
    missing = max(0, PREFIX_BYTES + len(text) + 1 - len(header))
    total = len(header) + -(-missing // _ALIGNMENT) * _ALIGNMENT
    length = total - PREFIX_BYTES
    return header[: PREFIX_BYTES - 2] + struct.pack("<H", length) + text.ljust(length - 1) + b"\n"


# -- numpy.save --------------------------------------------------------------------------------------------------------


def numpy_chunks(array: Array, original_dtype: str | None = None) -> tuple[Buffer, Buffer]:
    """(header, data) of the file.

    original_dtype   of the tensor before it was widened for the file; the header's padding tells it
    Edges:   the data is the array's own memory where it lies in one piece, in either order.
    Raises:  DtypeError for arrays of objects, which only a pickle could hold.
    """
    if array.dtype.hasobject:
        raise DtypeError(f"npy: expected an array of numbers or text, got one of {array.dtype}.")
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        array = np.ascontiguousarray(array)
    # A header of a column-major array says so, and its data is the transpose row by row.
    flat = (array if array.flags.c_contiguous else array.T).reshape(-1)
    header = numpy_header(array.dtype, array.shape, not array.flags.c_contiguous, original_dtype)
    return header, flat.view(np.uint8).data if flat.size else b""


@functools.lru_cache(maxsize=1024)
def numpy_header(
    dtype: np.dtype[Any], shape: tuple[int, ...], is_fortran: bool, original_dtype: str | None = None
) -> bytes:
    """The header of such a file."""
    header = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(dtype)
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": is_fortran, "shape": shape})
    return header.getvalue() if original_dtype is None else with_mark(header.getvalue(), original_dtype)
