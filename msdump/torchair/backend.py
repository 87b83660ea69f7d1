"""get_npu_backend: the entry of a script. It needs no torch until it is called."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from msdump.errors import ConfigError
from msdump.frontends.torch import OLDEST, torch_is_at_least
from msdump.torchair.configs.compiler_config import DATA_DUMP, CompilerConfig, without_effect
from msdump.torchair.debug_save.debug_log import TORCHAIR, open_debug_log

log = logging.getLogger("torchair")

# The oldest PyTorch that the tests of this front end pass with; it runs from OLDEST on.
TESTED = (2, 9)
_INSTALL = "Install it: pip install torch"
_NO_DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {}


def get_npu_backend(
    *,
    compiler_config: CompilerConfig | None = None,
    custom_decompositions: dict[Any, Callable[..., Any]] = _NO_DECOMPOSITIONS,
) -> Callable[..., Any]:
    """Backend for `torch.compile` that dumps, converts or captures each graph as the configuration says.

    compiler_config         read when a graph is compiled, so later changes count for later graphs
    custom_decompositions   operator -> function, as `torch._decomp.get_decompositions` gives them
    Edges:   options that do nothing in the chosen mode are named in one UserWarning; reduce-overhead is deprecated.
             With TORCH_COMPILE_DEBUG=1 the log of this process begins here.
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
    _deprecate(config)
    open_debug_log(TORCHAIR)
    log.debug(
        "compiler options: %s", {option.where: option.raw for option in config.options() if option.raw is not None}
    )
    from msdump.torchair.aot import make_backend

    return make_backend(config, dict(custom_decompositions))


def warn_of_untested_torch() -> None:
    """Say at the import that PyTorch is older than the oldest that is tested. PyTorch is not imported for it."""
    torch = sys.modules.get("torch")
    try:
        found = version("torch") if torch is None else str(torch.__version__)
    except PackageNotFoundError:
        return  # `require_torch` says it
    numbers = re.match(r"(\d+)\.(\d+)", found)
    if numbers is not None and (int(numbers[1]), int(numbers[2])) < TESTED:
        tested = ".".join(map(str, TESTED))
        logging.getLogger("msdump").warning(
            "msdump.torchair: expected torch %s or newer, with which it is tested, got %s. Graphs, names of operators "
            "and options may differ from TorchAir's, or fail. Install a newer one: pip install --upgrade 'torch>=%s'",
            *(tested, found, tested),
        )


def require_torch() -> None:
    """Raises: ConfigError when torch cannot be imported or is too old."""
    oldest = ".".join(map(str, OLDEST))
    try:
        import torch
    except ImportError as error:
        raise ConfigError(
            f"msdump.torchair: expected torch {oldest} or newer, got none: {error}. {_INSTALL}"
        ) from error
    if not torch_is_at_least(OLDEST):
        raise ConfigError(f"msdump.torchair: expected torch {oldest} or newer, got {torch.__version__}. {_INSTALL}")


def _name_options_without_effect(config: CompilerConfig) -> None:
    named = [f"{option.where} = {option.raw!r}" for option in without_effect(config)]
    if not named:
        return
    text = f"These options have no effect in mode {config.mode.value} without an NPU: {', '.join(named)}."
    if any(f"config.{DATA_DUMP}" in name for name in named):
        text = f"{text} config.{DATA_DUMP}* dumps once config.{DATA_DUMP}type is set to 'npy'."
    warnings.warn(text, UserWarning, stacklevel=3)


def _deprecate(config: CompilerConfig) -> None:
    if config.mode.value == "reduce-overhead":
        warnings.warn(
            "config.mode = 'reduce-overhead' is deprecated. Use torch.compile(model, backend='npugraph_ex', "
            "options={...}), which captures graphs in the same way.",
            DeprecationWarning,
            stacklevel=3,
        )
