"""A PyTorch graph as the compiler of an NPU sees it: operators of the graph engine (GE), run on torch kernels.

graph      the graph: GeGraph, GeOp, GeTensor
registry   of converters (ATen operator -> GE operators) and kernels (GE operator -> torch)
ops        these converters and kernels, by family
builder    what a converter builds with
convert    an FX graph becomes a GeGraph
program    a GeGraph becomes something that runs
compile    all of it, with the passes in between
custom     converters that a script registers: what `from torchair.ge import ...` finds is theirs
"""

from __future__ import annotations

from typing import Any

from msdump.torchair.ge import attr
from msdump.torchair.ge.numbers import DataType, Format

__all__ = ["Cast", "Clone", "Const", "DataType", "Format", "Tensor", "TensorSpec", "attr", "custom_op"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # It needs torch, which an import of this package does not.
    from msdump.torchair.ge import custom

    return getattr(custom, name)
