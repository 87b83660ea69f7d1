"""Whether everything is to be saved, and where. Needs no torch until it is asked for the folder."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from pathlib import Path
from typing import Any

from msdump.config.environment import TORCH_DEBUG

# Folders in the run's folder: of TorchAir, and of the package npugraph_ex on its own.
TORCHAIR, NPUGRAPH_EX = "torchair", "npugraph_ex"
_PATCHED, _GUARDED = "_msdump_rank", "_msdump_guard"


def is_on() -> bool:
    """Is TORCH_COMPILE_DEBUG exactly "1"?   Source: TorchAir; PyTorch itself also takes other words."""
    return os.environ.get(TORCH_DEBUG) == "1"


def run_dir() -> Path:
    """PyTorch's own debug folder of this process, `run_{time}-pid_{pid}`; nothing is made.

    Edges:  with torch.distributed at work the name ends in `-rank_{rank}`, for what PyTorch writes as well. A forked
            child has the folder of its parent in PyTorch's memory; it gets `-pid_{its own}` behind the name.
    Source: TorchAir debug save; torch._dynamo.utils.get_debug_dir.
    """
    import torch
    from torch._dynamo import utils

    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized() and not hasattr(utils.get_debug_dir, _PATCHED):
        utils.get_debug_dir = _with_rank(utils.get_debug_dir, distributed.get_rank())
    path = Path(utils.get_debug_dir())
    return path if f"-pid_{os.getpid()}" in path.name else path.with_name(f"{path.name}-pid_{os.getpid()}")


def _with_rank(original: Any, rank: int) -> Any:
    @functools.wraps(original)
    def get_debug_dir() -> str:
        return f"{original()}-rank_{rank}"

    setattr(get_debug_dir, _PATCHED, rank)
    return get_debug_dir


def executable() -> str:
    """Name of the program in log lines."""
    return os.path.basename(sys.executable) or "python"


def guard_torch() -> None:
    """Let PyTorch go on without its own logs where the debug folder cannot be made: it would stop the training there.

    They are torchdynamo/debug.log and, in newer versions, the trace in tlparse/.
    """
    from torch._dynamo import config, utils
    from torch._logging import _internal

    original = utils.add_file_handler
    if not hasattr(original, _GUARDED):
        utils.add_file_handler = _without_errors(original)
    trace = getattr(_internal, "LOG_TRACE_HANDLER", None)
    folder = getattr(trace, "root_dir", None)
    if trace is None or folder is None or Path(folder).parent != Path(config.debug_dir_root):
        return
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        # The handler then takes itself away.
        trace.root_dir = None


def _without_errors(original: Any) -> Any:
    @functools.wraps(original)
    def add_file_handler() -> contextlib.ExitStack:
        try:
            return original()  # type: ignore[no-any-return]
        except OSError:
            return contextlib.ExitStack()

    setattr(add_file_handler, _GUARDED, True)
    return add_file_handler
