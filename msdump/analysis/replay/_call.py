"""A call of an operator as a dump holds it, and how one library runs it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from msdump.analysis.steps import Slot
from msdump.formats.dump_tensor import DumpedTensor
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

if TYPE_CHECKING:
    from msdump.graph.primitive import Attrs

NUMPY, TORCH, FLOAT32, FLOAT64, ONNXRUNTIME = "numpy", "torch", "float32", "float64", "onnxruntime"
HALVES = ("float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class DumpedCall:
    """A call of an operator, as a dump holds it.

    op_type  as its library spells it: "Conv2D", "aten.log.default"
    names    of the inputs, where the graph file has them: "self", "tensors[0]"
    outputs  by slot
    runner   how it runs again; None: by its type
    script   the same as a program, given what the runs have computed; None: by its type
    notes    what else there is to say, each a sentence
    """

    op_type: str
    inputs: tuple[Array, ...]
    names: tuple[str, ...]
    attrs: Attrs
    outputs: Mapping[Slot, Array]
    runner: Runner | None = None
    script: Callable[[Sequence[Array]], Script] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Runner:
    """How operators of one library run again.

    runs   by name, each made for a call
    fresh  the one in the operator's own precision, which tells what rounding costs
    """

    runs: Mapping[str, Callable[[DumpedCall], Sequence[Array]]]
    fresh: str


@dataclass(frozen=True, slots=True)
class Script:
    """What a script of its own needs to run an operator.

    attrs    plain values, ATTRS in the script
    source   defines `compute(arrays) -> list of arrays`
    files    that lie beside it, by name
    """

    imports: str
    attrs: Mapping[str, Any]
    source: str
    files: Mapping[str, bytes] = field(default_factory=dict)


def load_narrow(tensor: DumpedTensor) -> Array:
    """The array in the dtype that the tensor had: a .npy file holds bfloat16 as float32, of the same values."""
    array = tensor.load_host()
    row = dtypes.dtype(tensor.true_dtype)
    if row.kind == dtypes.OTHER or array.dtype == row.numpy:
        return array
    with np.errstate(all="ignore"):
        return array.astype(row.numpy)


def has_halves(arrays: Sequence[Array]) -> bool:
    """Whether float32 is another precision than that of the arrays."""
    return any(dtypes.dtype_from_numpy(array.dtype).name in HALVES for array in arrays)
