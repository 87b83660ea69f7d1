"""seed_all: runs that are to be compared draw the same numbers.

Source: mindstudio-probe 26.2, its function of this name.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import numpy as np
import torch

from msdump.errors import ConfigError

_LARGEST = 2**32 - 1


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = False, is_enhanced: bool = False) -> None:
    """Seed Python, numpy and PyTorch.

    mode        also use deterministic algorithms
    rm_dropout  dropout of torch.nn.functional keeps every element from now on
    Raises: ConfigError for other values, and for `is_enhanced`, which replaces what the script calls.
    """
    if type(seed) is not int or not 0 <= seed <= _LARGEST:
        raise ConfigError(f"seed_all, seed: expected a number from 0 to {_LARGEST}, got {seed!r}. Correct it.")
    for name, value in (("mode", mode), ("rm_dropout", rm_dropout), ("is_enhanced", is_enhanced)):
        if not isinstance(value, bool):
            raise ConfigError(f"seed_all, {name}: expected True or False, got {value!r}. Correct it.")
    if is_enhanced:
        raise ConfigError("seed_all, is_enhanced: True is not supported: it replaces the script's random functions.")
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(mode)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    if rm_dropout:
        for name in ("dropout", "dropout2d", "dropout3d"):
            _keep_all(name)


def _keep_all(name: str) -> None:
    function: Callable[..., torch.Tensor] = getattr(torch.nn.functional, name)

    def without_loss(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
        return function(input, 0.0, training, inplace)

    without_loss.__name__ = name
    setattr(torch.nn.functional, name, without_loss)
