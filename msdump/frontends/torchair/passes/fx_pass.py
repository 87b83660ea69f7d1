"""One pass over an FX graph, and what it may ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch.fx import GraphModule

from msdump.frontends.torchair.configs.compiler_config import CompilerConfig


@dataclass(frozen=True)
class PassContext:
    """What a pass gets besides the graph."""

    config: CompilerConfig
    example_inputs: Sequence[Any]


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
    """Who wants to see the FX graph after each pass, under the name of its stage."""

    def fx_graph(self, name: str, module: GraphModule) -> None: ...
