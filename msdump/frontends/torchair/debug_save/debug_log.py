"""The log of TorchAir: its lines, its console, and `debug.log` of a debug save."""

from __future__ import annotations

import datetime
import logging
import os
import sys
import threading

from msdump.frontends.torchair.debug_save import switch

EVENT = 35
DEBUG_LOG = "debug.log"
_LINE = "[%(levelname)s] TORCHAIR(%(process)d,%(executable)s):%(moment)s [%(filename)s:%(lineno)d]%(thread_id)d "


class LineFormatter(logging.Formatter):
    """`[LEVEL] TORCHAIR({pid},{executable}):{date} {time}.{ms}.{us} [{file}.py:{line}]{thread id} {message}`.

    A message of several lines stays one; times are local.   Source: TorchAir's Python log.
    """

    def __init__(self) -> None:
        super().__init__(f"{_LINE}%(message)s")
        self._executable = switch.executable()

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.datetime.fromtimestamp(record.created)
        milliseconds, microseconds = divmod(moment.microsecond, 1000)
        record.moment = f"{moment:%Y-%m-%d %H:%M:%S}.{milliseconds:03d}.{microseconds:03d}"
        record.executable = self._executable
        record.thread_id = threading.get_native_id()
        return super().format(record)


# It takes a subscript from Python 3.11 on.
class _Console(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to whatever standard output is at the moment."""

    def __init__(self) -> None:
        super().__init__(sys.stdout)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stdout
        super().emit(record)


class _DebugFile(logging.FileHandler):
    """`debug.log` of one run folder."""

    def handleError(self, record: logging.LogRecord) -> None:
        # A full disk must not fill the terminal with a traceback for each line.
        from msdump.frontends.torchair.debug_save.model_folder import trouble

        error = sys.exc_info()[1]
        if error is not None:
            trouble.tell(error)


def setup_logger() -> logging.Logger:
    """The logger `torchair`: DEBUG if everything is to be saved, else ERROR; lines go to standard output.

    Called once, when TorchAir is imported: a variable that is set later has no effect on the log.
    """
    logging.addLevelName(EVENT, "EVENT")
    logger = logging.getLogger("torchair")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.DEBUG if switch.is_on() else logging.ERROR)
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
    if not switch.is_on():
        return
    switch.guard_torch()
    if not logger.isEnabledFor(EVENT):
        return
    from msdump.frontends.torchair.debug_save.model_folder import trouble
    from msdump.frontends.torchair.debug_save.safe_files import FILE_MODE, make_safe_dirs, refuse_link

    folder = switch.run_dir() / tool
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

    trouble.guard(action)
