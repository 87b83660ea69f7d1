"""The bytes that `numpy.save` writes, as chunks for `Folder.write`: no pickles, and no copy of the data."""

from __future__ import annotations

import io

import numpy as np

from msdump.arrays import Array
from msdump.errors import DtypeError
from msdump.formats.direct import Buffer
from msdump.formats.npy_mark import with_mark


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
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    # A header of a column-major array says so, and its data is the transpose row by row.
    flat = (array if array.flags.c_contiguous else array.T).reshape(-1)
    text = header.getvalue() if original_dtype is None else with_mark(header.getvalue(), original_dtype)
    return text, flat.view(np.uint8).data if flat.size else b""
