"""Members of a zip archive that are read where they lie in it, and are never unpacked: archives of torch and numpy.

Sizes are checked before anything of that size is read.   Source: the zip format.
"""

from __future__ import annotations

import errno
import os
import struct
import zipfile
import zlib

from msdump.storage.files import OpenFile

DIRECTORY_BYTES = 1 << 20  # of an archive's list of members; a file with one tensor has seven of them
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_LOCAL_SIGNATURE = b"PK\x03\x04"
_IS_ENCRYPTED = 1
ZIP_MAGIC = _LOCAL_SIGNATURE


class LimitedFile:
    """An open file as Python's reader of archives takes it, of which no read takes more than a directory may have."""

    def __init__(self, file: OpenFile, max_bytes: int = DIRECTORY_BYTES) -> None:
        self._file = file
        self._offset = 0
        self._max_bytes = max_bytes

    def read(self, size: int = -1) -> bytes:
        if size > self._max_bytes:
            raise ValueError(f"an archive whose directory has {size} bytes")
        data = self._file.read(self._offset, self._max_bytes if size < 0 else size)
        self._offset += len(data)
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_SET and not 0 <= offset < 1 << 62:
            raise ValueError("an archive whose directory begins nowhere")
        offset += {os.SEEK_SET: 0, os.SEEK_CUR: self._offset, os.SEEK_END: self._file.size}[whence]
        if offset < 0:
            raise OSError(errno.EINVAL, "an offset before the beginning")
        self._offset = offset
        return offset

    def tell(self) -> int:
        return self._offset

    def seekable(self) -> bool:
        return True


def small_member(archive: zipfile.ZipFile, file: OpenFile, name: str, max_bytes: int) -> bytes:
    """Content of a stored member as a whole.

    Raises: KeyError where there is none; ValueError when it is too large, or not stored as it is;
            zipfile.BadZipFile for another checksum; EOFError.
    """
    info = archive.getinfo(name)
    if info.file_size > max_bytes:
        raise ValueError(f"more than a tensor: {name} has {info.file_size} bytes")
    content = file.read(*stored_place(archive, file, name))
    if zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile(f"{name} has another checksum")
    return content


def stored_place(archive: zipfile.ZipFile, file: OpenFile, name: str) -> tuple[int, int]:
    """Offset and size of a member that is neither compressed nor encrypted.   Raises: as `small_member`."""
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"compressed or encrypted data: {name}")
    return member_place(file, info), info.file_size


def member_place(file: OpenFile, info: zipfile.ZipInfo) -> int:
    """Offset of the bytes of a member.

    Raises: ValueError for what is encrypted, or lies elsewhere than the directory says; EOFError where the file ends
            before it.
    """
    if info.flag_bits & _IS_ENCRYPTED:
        raise ValueError(f"compressed or encrypted data: {info.filename}")
    if info.header_offset < 0:
        raise ValueError("no member where the directory says")
    header = file.read(info.header_offset, _LOCAL_HEADER.size)
    signature, *_, name_size, extra_size = _LOCAL_HEADER.unpack(header)
    if signature != _LOCAL_SIGNATURE:
        raise ValueError("no member where the directory says")
    place = info.header_offset + _LOCAL_HEADER.size + int(name_size) + int(extra_size)
    if place + info.compress_size > file.size:
        raise EOFError(f"{info.filename} ends behind the end of the file")
    return place
