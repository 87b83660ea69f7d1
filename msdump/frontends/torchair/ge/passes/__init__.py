"""Passes over the GE graph, one file each, in TorchAir's order and under its names."""

from __future__ import annotations

from collections.abc import Callable

from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.ge.graph import GeGraph

GePass = Callable[[GeGraph, CompilerConfig], None]

GE_PASSES: tuple[tuple[str, GePass], ...] = ()
