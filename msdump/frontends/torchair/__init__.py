"""TorchAir's Python interface, as far as its eager data dump needs it, on stock PyTorch."""

from __future__ import annotations

import logging
from typing import Any

from msdump.errors import did_you_mean
from msdump.frontends.torchair.backend import get_npu_backend
from msdump.frontends.torchair.configs.compiler_config import CompilerConfig

__all__ = ["CompilerConfig", "get_npu_backend", "logger"]

logger = logging.getLogger("torchair")
if logger.level == logging.NOTSET:
    logger.setLevel(logging.ERROR)  # as TorchAir does: it speaks of its compilations only when asked to


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f'torchair: expected one of {__all__}, got "{name}". {did_you_mean(name, __all__)} '
        "msdump brings the eager data dump; the compiler of an NPU is not part of it."
    )
