"""Whether a debug save is on and where its files go; the log of TorchAir, with `debug.log` of a debug save.

Needs no torch until it is asked for the folder.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import logging
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msdump.config.environment import TORCH_DEBUG

log = logging.getLogger("msdump")

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


EVENT = 35
DEBUG_LOG = "debug.log"
_LINE = "[%(levelname)s] TORCHAIR(%(process)d,%(executable)s):%(moment)s [%(filename)s:%(lineno)d]%(thread_id)d "


class OneWarning:
    """Logs once per process that something is missing. The training continues."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._has_warned = False

    def guard(self, action: Callable[[], None]) -> bool:
        """Run something that writes; False when it failed.   Edges: Ctrl-C is not caught."""
        try:
            action()
        except Exception as error:  # noqa: BLE001 - no error of the log may stop the training
            self.warn(error)
            return False
        return True

    def warn(self, error: BaseException) -> None:
        """Log the error, unless one was logged before."""
        if not self._has_warned:
            self._has_warned = True
            log.warning("%s, the model continues without it. %s", self._what, error)


incomplete = OneWarning("The debug save is not complete")


class LineFormatter(logging.Formatter):
    """`[LEVEL] TORCHAIR({pid},{executable}):{date} {time}.{ms}.{us} [{file}.py:{line}]{thread id} {message}`.

    A message of several lines stays one; times are local.   Source: TorchAir's Python log.
    """

    def __init__(self) -> None:
        super().__init__(f"{_LINE}%(message)s")
        self._executable = executable()

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record, without a line break behind it."""
        moment = datetime.datetime.fromtimestamp(record.created)
        milliseconds, microseconds = divmod(moment.microsecond, 1000)
        record.moment = f"{moment:%Y-%m-%d %H:%M:%S}.{milliseconds:03d}.{microseconds:03d}"
        record.executable = self._executable
        record.thread_id = threading.get_native_id()
        return super().format(record)


# It takes a subscript from Python 3.11 on.
class _Console(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to the current `sys.stdout`."""

    def __init__(self) -> None:
        super().__init__(sys.stdout)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stdout
        super().emit(record)


class _DebugFile(logging.FileHandler):
    """`debug.log` of one run folder."""

    def handleError(self, record: logging.LogRecord) -> None:
        # A full disk must not fill the terminal with a traceback for each line.

        error = sys.exc_info()[1]
        if error is not None:
            incomplete.warn(error)


def setup_logger() -> logging.Logger:
    """The logger `torchair`: DEBUG if everything is to be saved, else ERROR; lines go to standard output.

    Called once, when TorchAir is imported: a variable that is set later has no effect on the log.
    """
    logging.addLevelName(EVENT, "EVENT")
    logger = logging.getLogger("torchair")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.DEBUG if is_on() else logging.ERROR)
    if not any(isinstance(handler, _Console) for handler in logger.handlers):
        console = _Console()
        console.setFormatter(LineFormatter())
        logger.addHandler(console)
    return logger


def open_debug_log(tool: str) -> None:
    """Let `debug.log` of this run's folder take the lines of the logger from now on.

    Edges: there is none when the variable was set after the import; when it cannot be opened, one warning.
    """
    logger = logging.getLogger("torchair")
    if not is_on():
        return
    guard_torch()
    if not logger.isEnabledFor(EVENT):
        return
    from msdump.torchair.debug_save.safe_files import FILE_MODE, make_safe_dirs, refuse_link

    folder = run_dir() / tool
    path = folder / DEBUG_LOG
    for handler in list(logger.handlers):
        if isinstance(handler, _DebugFile):
            if handler.baseFilename == os.path.abspath(path):
                return
            logger.removeHandler(handler)
            handler.close()

    def action() -> None:
        make_safe_dirs(folder)
        refuse_link(path)
        handler = _DebugFile(path, encoding="utf-8", errors="backslashreplace")
        os.chmod(path, FILE_MODE)
        handler.setFormatter(LineFormatter())
        logger.addHandler(handler)

    incomplete.guard(action)
