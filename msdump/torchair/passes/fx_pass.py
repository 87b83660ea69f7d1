"""A pass over an FX graph, its context, and passes of a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch.fx import GraphModule

from msdump.errors import ConfigError
from msdump.torchair.configs.compiler_config import CompilerConfig


@dataclass(frozen=True)
class PassContext:
    """Context of a pass."""

    config: CompilerConfig
    example_inputs: Sequence[Any]


def unchanged(_module: GraphModule, _context: PassContext) -> bool:
    """What runs as a pass that has nothing to do on this machine. It leaves its file, as in TorchAir."""
    return False


def _always(_: CompilerConfig) -> bool:
    return True


@dataclass(frozen=True)
class FxPass:
    """A pass under TorchAir's name.

    run     changes the graph of the module, and says whether it did
    is_on   whether the configuration wants it; a pass that is off leaves no file
    """

    name: str
    run: Callable[[GraphModule, PassContext], bool]
    is_on: Callable[[CompilerConfig], bool] = _always


class FxObserver(Protocol):
    """Gets the FX graph after each pass, under the name of its stage."""

    def fx_graph(self, name: str, module: GraphModule) -> None:
        """The graph after the pass of that name."""


def custom_pass(option: str) -> FxPass:
    """The function that this option of the configuration holds, as a pass; off when there is none.

    It is called as `function(gm, example_inputs, config)`, changes `gm.graph` and returns nothing, or `gm`.
    Raises: ConfigError that names the option when the function raises, returns anything else, or leaves a graph that
            does not hold together.
    """

    def function(config: CompilerConfig) -> Any:
        return getattr(config, option).value

    def run(module: GraphModule, context: PassContext) -> bool:
        where = f"config.{option} ({_name(function(context.config))})"
        try:
            result = function(context.config)(module, context.example_inputs, context.config)
        except Exception as error:
            raise ConfigError(
                f"{where}: expected it to change the FX graph, got {type(error).__name__}: {error}. "
                "It is called with the GraphModule, the example inputs and the CompilerConfig."
            ) from error
        if result is not None and result is not module:
            raise ConfigError(
                f"{where}: expected nothing or the GraphModule that it was given, got {type(result).__name__}. "
                "Change gm.graph where it is."
            )
        try:
            module.graph.lint()
        except Exception as error:
            raise ConfigError(
                f"{where}: expected a graph that holds together, got {type(error).__name__}: {error}. "
                "Erase users before what they use, and keep the order of nodes."
            ) from error
        return True

    return FxPass(option, run, lambda config: function(config) is not None)


def _name(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))
