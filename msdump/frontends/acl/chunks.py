"""A dump that goes to a function of the script, piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from msdump.errors import WriteError
from msdump.frontends.acl.process import process

if TYPE_CHECKING:
    from msdump.formats.acl_chunks import DumpChunk
    from msdump.frontends.acl.dump_in_force import Deliver


def deliver_to(function: Callable[[dict[str, Any]], Any]) -> Deliver:
    """What hands one piece to a function, as the dict that pyACL makes of `acldumpChunk`.

    Raises (when called): WriteError when the function returns another number than 0.
    """

    def deliver(chunk: DumpChunk) -> None:
        data = np.frombuffer(chunk.data, np.uint8) if len(chunk.data) else np.empty((0,), np.uint8)
        address = process.memory.lend(data, data.ctypes.data, data.nbytes, False) if data.nbytes else 0
        try:
            result = function(
                {
                    "file_name": chunk.file_name,
                    "data_buf": address,
                    "buf_len": data.nbytes,
                    "is_last_chunk": int(chunk.is_last),
                    "offset": chunk.offset,
                    "flag": chunk.flag,
                }
            )
        finally:
            # The piece is gone when this returns, whoever still knows its address.
            process.memory.take_back(data)
        if isinstance(result, int) and result != 0:
            raise WriteError(f"{chunk.file_name}: expected a callback that returns 0, got {result}.")

    return deliver
