"""A graph run as it is, with nobody looking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.fx import GraphModule


def plain_run(module: GraphModule) -> Callable[[list[Any]], Any]:
    """The module's own code; the list of arguments is emptied, so that they live no longer than they are needed."""

    def run(args: list[Any]) -> Any:
        inputs = tuple(args)
        args.clear()
        return module.forward(*inputs)

    return run
