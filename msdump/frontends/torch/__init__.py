"""PyTorch: every ATen operator of a model that `torch.compile` captured, forward and backward."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from msdump import sessions
from msdump.errors import ConfigError

OLDEST = (2, 5)


def backend(module: Any, example_inputs: Any, **options: Any) -> Callable[..., Any]:
    """`torch.compile(model, backend="msdump")`; PyTorch finds it by its entry point.

    Raises: ConfigError for a PyTorch that is too old, and whatever is wrong with the configuration of the dump.
    """
    check_version()
    from msdump.frontends.torch.compiled_graph import compile_graph

    return compile_graph(module, example_inputs, **options)


def check_version() -> None:
    """Raises: ConfigError when PyTorch is missing or older than 2.5."""
    try:
        import torch
    except ImportError as error:
        raise ConfigError(
            "torch: expected PyTorch 2.5 or later, got none. Install it with: pip install torch"
        ) from error
    if not torch_is_at_least(OLDEST):
        raise ConfigError(
            f"torch: expected PyTorch 2.5 or later, got {torch.__version__}. "
            "Install a newer one with: pip install --upgrade 'torch>=2.5'"
        )


def torch_is_at_least(version: tuple[int, int]) -> bool:
    """True when PyTorch has this version or a later one.   Raises: ImportError without PyTorch."""
    import torch

    major, minor = torch.__version__.split("+")[0].split(".")[:2]
    return (int(major), int(minor)) >= version


def _ran_outside() -> tuple[str, ...]:
    """What ran outside of captured graphs, whichever backend compiled the models; () when nothing was compiled."""
    if "torch._dynamo.symbolic_convert" not in sys.modules:
        return ()
    from msdump.frontends.torch.outside import lines

    return lines()


sessions.add_remarks(_ran_outside)
