"""Memory that no operator has written yet: which operators give such memory away, and which only move it on.

What `empty` returns is whatever lay there before: NaN and Inf in it mean nothing, and no two runs agree on it.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

# Source: ATen, and GE as TorchAir converts it. Names of files have "_" for ".".
_UNSET = re.compile(r"aten_(new_)?empty(_like|_strided|_permuted|_quantized)?_\w+|Empty")
# Each element of their results is an element of an input, so they can make no NaN; those that write a part of one
# input leave the rest of it unset.
_MOVES = (
    "_reshape_alias _to_copy _unsafe_view alias as_strided as_strided_copy as_strided_scatter broadcast_to cat chunk "
    "clone constant_pad_nd contiguous detach diagonal diagonal_copy diagonal_scatter expand expand_copy flatten flip "
    "gather index index_copy index_put index_select lift_fresh masked_fill masked_scatter masked_select narrow permute "
    "permute_copy repeat reshape roll scatter select select_copy select_scatter slice slice_copy slice_scatter split "
    "split_with_sizes squeeze squeeze_copy stack t t_copy take to transpose transpose_copy tril triu unbind unfold "
    "unsqueeze unsqueeze_copy view view_as_complex view_as_real view_copy where"
)
_GE_MOVES = (
    "AsStrided Bitcast BroadcastTo Cast ConcatV2 GatherElements GatherV2 Identity IndexByTensor IndexPutV2 MaskedFill "
    "MaskedScatter MaskedSelect MatrixDiagPartV3 MatrixSetDiagV3 Pack PadV3 Reshape ReverseV2 Roll ScatterElements "
    "SelectV2 SplitV Squeeze StridedSliceAssignV2 StridedSliceV2 StridedSliceV2Grad Tile Transpose Tril Triu Unpack "
    "Unsqueeze"
)
_ATEN_MOVE = re.compile(rf"aten_(?:{_MOVES.replace(' ', '|')})_(?!\w+_default$)\w+")
_GE_MOVE = frozenset(_GE_MOVES.split())


def makes_unset(op_type: str) -> bool:
    """True for an operator that returns memory without writing it; the type may be spelt as in the name of a file."""
    return _UNSET.fullmatch(op_type.replace(".", "_")) is not None


def is_unset(op_type: str, inputs: Iterable[bool]) -> bool:
    """Whether the results of an operator hold unset memory, in part at least.   inputs: whether each of its inputs does

    Edges: an operator that computes with unset memory has results of its own; what is wrong with them is its doing.
    """
    if makes_unset(op_type):
        return True
    if not any(inputs):
        return False
    return op_type in _GE_MOVE or _ATEN_MOVE.fullmatch(op_type.replace(".", "_")) is not None


def unset_keys(ops: Iterable[tuple[str, Sequence[Key], Sequence[Key]]]) -> frozenset[Key]:
    """Keys of all tensors that hold unset memory.   ops: (type, keys of inputs, keys of outputs) in execution order"""
    unset: set[Key] = set()
    for op_type, inputs, outputs in ops:
        if is_unset(op_type, (key in unset for key in inputs)):
            unset.update(outputs)
    return frozenset(unset)
