"""get_npu_backend: the entry of a script. It needs no torch until it is called."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

from msdump.errors import ConfigError
from msdump.frontends.torchair.configs.compiler_config import CompilerConfig

OLDEST_TORCH = (2, 4)
_INSTALL = "Install it: pip install 'msdump[torch]'"
_DATA_DUMP = "config.debug.data_dump."
_HONOURED = "config.experimental_config.keep_inference_input_mutations"
_NO_DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {}


def get_npu_backend(
    *,
    compiler_config: CompilerConfig | None = None,
    custom_decompositions: dict[Any, Callable[..., Any]] = _NO_DECOMPOSITIONS,
) -> Callable[..., Any]:
    """Backend for `torch.compile` that runs each graph operator by operator, and dumps it if the configuration says so.

    compiler_config         read when a graph is compiled, so later changes count for later graphs
    custom_decompositions   operator -> function, as `torch._decomp.get_decompositions` gives them
    Edges:   options that only the compiler of an NPU knows are named in one UserWarning.
    Raises:  ConfigError when torch is missing or too old, and for arguments of another type.
    Source:  TorchAir, get_npu_backend.
    """
    config = CompilerConfig() if compiler_config is None else compiler_config
    if not isinstance(config, CompilerConfig):
        raise ConfigError(
            f"get_npu_backend: expected compiler_config to be a CompilerConfig or None, got {type(config).__name__}. "
            "Make one: config = torchair.CompilerConfig()"
        )
    if not isinstance(custom_decompositions, dict):
        raise ConfigError(
            f"get_npu_backend: expected custom_decompositions to be a dict, got {type(custom_decompositions).__name__}."
        )
    require_torch()
    _name_options_without_effect(config)
    from msdump.frontends.torchair.aot import make_backend

    return make_backend(config, dict(custom_decompositions))


def require_torch() -> None:
    """Raises: ConfigError when torch cannot be imported or is older than 2.4."""
    oldest = ".".join(map(str, OLDEST_TORCH))
    try:
        import torch
    except ImportError as error:
        raise ConfigError(
            f"msdump.torchair: expected torch {oldest} or newer, got none: {error}. {_INSTALL}"
        ) from error
    version = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if version is not None and (int(version[1]), int(version[2])) < OLDEST_TORCH:
        raise ConfigError(f"msdump.torchair: expected torch {oldest} or newer, got {torch.__version__}. {_INSTALL}")


def _name_options_without_effect(config: CompilerConfig) -> None:
    is_dumping = config.debug.data_dump.type.value is not None
    named = [
        f"{option.where} = {option.raw!r}"
        for option in config.options()
        if not option.is_default
        and option.where != _HONOURED
        and not (is_dumping and option.where.startswith(_DATA_DUMP))
    ]
    if not named:
        return
    text = f"These options have no effect without the compiler of an NPU: {', '.join(named)}."
    if any(_DATA_DUMP in name for name in named):
        text = f"{text} {_DATA_DUMP}* dumps once {_DATA_DUMP}type is set to 'npy'."
    warnings.warn(text, UserWarning, stacklevel=3)
