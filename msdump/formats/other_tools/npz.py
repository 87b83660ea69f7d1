"""Archives of numpy (`np.savez`, `np.savez_compressed`): a zip file of npy files, in the order in which they were
given.

Source: numpy, format of npz.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import IO, cast

from msdump.errors import FormatError
from msdump.formats.npy_reader import npy_header_in
from msdump.formats.other_tools.members import DEFLATED_NPY, MAX_PARTS, NPY, Member, Members, beginning, npy_inside
from msdump.formats.zip_members import LimitedFile, member_place
from msdump.storage.files import OpenFile, open_file
from msdump.tensors import dtypes

_ENCODINGS = {zipfile.ZIP_STORED: NPY, zipfile.ZIP_DEFLATED: DEFLATED_NPY}
_HEADER_BYTES = 1 << 17  # of a deflated npy file, which hold its header
_DIRECTORY_BYTES = 16 << 20
_MAX_RATIO = 1100  # deflate makes no more of a byte


def read_npz(path: str) -> Members:
    """Arrays of an archive by their names; members that are damaged, or no arrays, are problems.

    Edges:  what was pickled is refused, as everywhere.
    Raises: FormatError for what is no archive; OSError.
    """
    found: list[Member] = []
    problems: list[FormatError] = []
    with open_file(path) as file:
        try:
            archive = zipfile.ZipFile(cast("IO[bytes]", LimitedFile(file, _DIRECTORY_BYTES)))
            infos = archive.infolist()
        except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, struct.error, OverflowError) as error:
            text = f"{path}: expected an archive of numpy, got a damaged one: {str(error)[:200]}."
            raise FormatError(text) from error
        for info in infos[:MAX_PARTS]:
            if not info.filename.endswith(".npy"):
                continue
            try:
                found.append(_member(path, file, info))
            except FormatError as error:
                problems.append(error)
            except (ValueError, EOFError, struct.error, zlib.error) as error:
                problems.append(FormatError(f"{path}, {info.filename[:200]}: expected an npy file, got: {error}."))
    return Members(tuple(found), tuple(problems))


def _member(path: str, file: OpenFile, info: zipfile.ZipInfo) -> Member:
    name = info.filename.removesuffix(".npy")
    where = f"{path}, {name[:200]}"
    encoding = _ENCODINGS.get(info.compress_type)
    if encoding is None:
        raise FormatError(f"{where}: expected stored or deflated data, got compression {info.compress_type}.")
    offset = member_place(file, info)
    if encoding == DEFLATED_NPY:
        if info.file_size > (info.compress_size + 64) * _MAX_RATIO:
            raise FormatError(f"{where}: expected {info.file_size} bytes, got {info.compress_size} deflated ones.")
        inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        head = inflate.decompress(file.read(offset, min(info.compress_size, _HEADER_BYTES)), _HEADER_BYTES)
        header = npy_header_in(where, beginning(info.file_size, head))
    else:
        header = npy_header_in(where, npy_inside(where, file, Member(name, "", (), offset, info.compress_size, NPY)))
    dtype = dtypes.dtype_from_numpy(header.dtype).name
    return Member(name, dtype, header.shape, offset, info.compress_size, encoding, size_bytes=header.size_bytes)
