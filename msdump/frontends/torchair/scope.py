"""torchair.scope: which operators of a compiled function are dumped, said in the function itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msdump.errors import ConfigError

if TYPE_CHECKING:
    from torch import fx

DUMP_MARK = "torchair_enable_data_dump"


def data_dump() -> Any:
    """Context manager: operators that are called inside are dumped, and those of their backward.

    Beside them those that `dump_config.dump_layer` names; `dump_config.enable_dump` must be on. Outside of a compiled
    function it does nothing. It does not break the graph.
    Raises:  ConfigError on a PyTorch that cannot mark what is traced.
    Source:  TorchAir, scope.data_dump; there the mark chooses every operator of the same types.
    """
    from torch.fx import traceback

    if not hasattr(traceback, "annotate"):
        import torch

        raise ConfigError(
            f"torchair.scope.data_dump: expected torch 2.9 or newer, got {torch.__version__}. Name the operators in "
            "config.dump_config.dump_layer instead."
        )
    return traceback.annotate({DUMP_MARK: True})


def is_marked(node: fx.Node) -> bool:
    """True for a node that was called inside of `data_dump`."""
    return bool((node.meta.get("custom") or {}).get(DUMP_MARK))
