"""PyTorch: every ATen operator of a model that `torch.compile` captured, forward and backward."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msdump.errors import ConfigError
from msdump.process import sessions

if TYPE_CHECKING:
    import torch
    from torch import fx

    from msdump.engine.opening import Config
    from msdump.frontends.torch.eager.watching import Watch

OLDEST = (2, 5)


def backend(module: fx.GraphModule, example_inputs: Sequence[object], **options: Any) -> Callable[..., object]:
    """`torch.compile(model, backend="msdump")`; PyTorch finds it by its entry point.

    Raises: ConfigError for a PyTorch that is too old, and for errors in the configuration of the dump.
    """
    check_version()
    from msdump.frontends.torch.compiled_graph import compile_graph

    return compile_graph(module, example_inputs, **options)


def inductor_backend(
    module: fx.GraphModule, example_inputs: Sequence[object], **settings: Any
) -> Callable[..., object]:
    """`torch.compile(model, backend="msdump-inductor")`: Inductor's kernels, of which only what is dumped is looked at.

    settings   `mode` and `options`, as `torch.compile` takes them for Inductor
    Raises: as `backend`; errors of Inductor.
    """
    check_version()
    from msdump.frontends.torch.inductor import compile_with_inductor

    return compile_with_inductor(module, example_inputs, **settings)


def watch(model: torch.nn.Module | None = None, config: Config | None = None) -> Watch:
    """Dump every operator that PyTorch runs in a `with` block, forward, backward and in optimizers, without compiling.

    model    a torch.nn.Module, each call of which begins an iteration; None: the outermost modules that are called, or,
             where none is called, the first operator that gradients need after a backward
    config   as of `msdump.dump`; None: what the environment or a block around says, and where neither does, statistics
             of every step into a new folder `msdump_dump`. MINDSPORE_DUMP_CONFIG that is set and empty: nothing

    The result is a decorator, too. `step()` of it ends an iteration where these rules do not fit.
    Raises: ConfigError for a wrong configuration, a PyTorch that is too old, or a second block in the same thread.
    """
    check_version()
    from msdump.frontends.torch.eager.watching import Watch

    return Watch(model, config)


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
    try:
        from msdump.frontends.torch.outside import lines
    except MemoryError:  # in a process that has used up its memory the rest of the report is worth more
        return ("what ran outside of captured graphs is not known: there is no memory left to look",)
    return lines()


sessions.add_remarks(_ran_outside)
