"""`mindspore.log`: messages of scripts, through Python's logging under the name "mindspore"."""

from __future__ import annotations

import logging
import os
from typing import Any

from msdump.config.environment import LOG_LEVEL
from msdump.mindspore.names import explain_missing

# Source: GLOG_v: 0 debug, 1 info, 2 warning (default), 3 error, 4 critical.
_LEVELS = {"0": logging.DEBUG, "1": logging.INFO, "2": logging.WARNING, "3": logging.ERROR, "4": logging.CRITICAL}
_logger = logging.getLogger("mindspore")
_logger.setLevel(_LEVELS.get(os.environ.get(LOG_LEVEL, "2"), logging.WARNING))


debug, info, warning = _logger.debug, _logger.info, _logger.warning
error, critical = _logger.error, _logger.critical


def get_level() -> str:
    """Level as GLOG_v says it."""
    return next((text for text, level in _LEVELS.items() if level == _logger.level), "2")


def get_log_config() -> dict[str, str]:
    """How messages of scripts are written."""
    return {LOG_LEVEL: get_level(), "GLOG_logtostderr": "1"}


_said: set[str] = set()


def warn_once(text: str, *args: Any) -> None:
    """A warning of msdump itself that a process gives once, whatever its arguments."""
    if text not in _said:
        _said.add(text)
        logging.getLogger("msdump").warning(text, *args)


__getattr__ = explain_missing(__name__)
