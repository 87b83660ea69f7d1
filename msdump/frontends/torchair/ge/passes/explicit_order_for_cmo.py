"""explicit_order_for_cmo: the order of cache operations."""

from __future__ import annotations

from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.ge.graph import GeGraph


def explicit_order_for_cmo(graph: GeGraph, config: CompilerConfig) -> None:
    """Nothing to do: there is no cache to be filled ahead of an operator, so no graph holds such operators.

    Source: TorchAir, where prefetches into the L2 cache of an NPU get control edges. The pass has its place so that
    the files of a compilation are the same.
    """
