"""GeGraphFiles: the files that `DUMP_GE_GRAPH` asks for of each compiled graph, whoever compiles it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

from msdump.config.environment import ONNX, PROTO, GeGraphSettings
from msdump.formats.atomic import make_dirs, write_file

_MODE = 0o600
_ENDINGS = {PROTO: ".txt", ONNX: ".pbtxt"}


class GeGraphFiles:
    """One pair of files for each stage of a graph, over those of an earlier run. Any thread may call it.

    The number in the names counts what was written, from 00000.   Source: CANN, `DUMP_GE_GRAPH`.
    """

    def __init__(self, settings: GeGraphSettings) -> None:
        self.settings = settings
        self._numbers = itertools.count()

    def write(self, graph_id: int, stage: str, texts: Mapping[str, Callable[[], str]]) -> list[Path]:
        """The files that were written; none for a stage that is not selected.

        texts   format, "ge_proto" or "onnx", -> the text of the file
        Raises: WriteError.
        """
        if not self.settings.wants(stage):
            return []
        make_dirs(self.settings.folder)
        name, written = f"{next(self._numbers):05d}_graph_{graph_id}_{stage}", []
        for file_format in (PROTO, ONNX):
            if file_format in self.settings.formats and file_format in texts:
                path = self.settings.folder / f"ge_{file_format.removeprefix('ge_')}_{name}{_ENDINGS[file_format]}"
                write_file(path, [texts[file_format]().encode()], _MODE, replace=True)
                written.append(path)
        return written


@functools.cache
def ge_graph_files(settings: GeGraphSettings) -> GeGraphFiles:
    """One per setting: its files are numbered through the process."""
    return GeGraphFiles(settings)
