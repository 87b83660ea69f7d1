"""Files of a graph dump and of an FX summary: which name they get, in which folder."""

from __future__ import annotations

import os
from pathlib import Path

from msdump.dump.capture import Clock
from msdump.formats.paths.torchair import GraphDumpName, SummaryName, format_graph_dump_name, format_summary_name
from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.debug_save.safe_files import make_safe_dirs
from msdump.frontends.torchair.process_rank import process_rank

# One clock for the process: two graphs never get the same time.
_clock = Clock()


def new_graph_file(stage: str, graph_id: int, config: CompilerConfig) -> Path:
    """Path of the next graph file, in a folder that is there.

    stage   ORIGINAL or OPTIMIZED
    Raises: WriteError when the folder cannot be made, or is a symbolic link.
    """
    dump = config.debug.graph_dump
    _, rank = process_rank()
    name = GraphDumpName(stage, graph_id, rank, os.getpid(), _clock.next_us(), dump.type.value)
    return _folder(dump.path) / format_graph_dump_name(name)


def new_summary_file(config: CompilerConfig) -> Path:
    """Path of the next FX summary.   Raises: WriteError as above."""
    _, rank = process_rank()
    name = SummaryName(rank, os.getpid(), _clock.next_us())
    return _folder(config.debug.fx_summary._path) / format_summary_name(name)


def _folder(path: str) -> Path:
    folder = Path(path)
    make_safe_dirs(folder)
    return folder
