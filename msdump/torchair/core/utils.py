"""torchair.core.utils: the logger of TorchAir, where the examples of its documentation import it from."""

from __future__ import annotations

from msdump.torchair.debug_save.debug_log import setup_logger

__all__ = ["logger"]

logger = setup_logger()
