"""ATen operators that several GE operators stand for, which would round where ATen does not.

The last of these operators then gives the result of ATen itself; those in between compute what their types say.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from msdump.frontends.torchair.ge.graph import CONST, AtenCall, GeOp, GeTensor

# Operator -> which of its results are rounded on the way.
_ROUNDED: dict[str, tuple[int, ...]] = {
    "aten._weight_norm_interface.default": (0, 1),
    "aten._weight_norm_interface_backward.default": (0, 1),
    "aten.addmm.default": (0,),
    "aten.addmv.default": (0,),
    "aten.baddbmm.default": (0,),
    "aten.convolution_backward.default": (0, 1, 2),
    "aten.exp2.default": (0,),
    "aten.huber_loss.default": (0,),
    "aten.huber_loss_backward.default": (0,),
    "aten.native_group_norm.default": (2,),
    "aten.std.correction": (0,),
    "aten.std_mean.correction": (0,),
    "aten.sub.Scalar": (0,),
    "aten.sub.Tensor": (0,),
}
_OF_ANOTHER_FORM = ("aten.exp2.default",)


def note_call(node: fx.Node, args: tuple[Any, ...], keywords: dict[str, Any], result: Any, ops: list[GeOp]) -> None:
    """Remember the call where its operators round on the way.   ops: the operators that it became"""
    indices = _ROUNDED.get(str(node.target), ())
    is_chain = sum(op.type != CONST for op in ops) > 1 or str(node.target) in _OF_ANOTHER_FORM
    if not indices or not is_chain:
        return
    results = result if isinstance(result, list | tuple) else (result,)
    has_many = isinstance(result, list | tuple)
    for index in indices:
        tensor = results[index]
        if isinstance(tensor, GeTensor) and tensor.op in ops and len(tensor.op.outputs) == 1 and _is_float(tensor):
            tensor.op.exact = AtenCall(node, args, keywords, (index if has_many else None,))


def pick(results: Any, indices: tuple[int | None, ...], *_: Any) -> Any:
    """The results of a call that an operator gives: a tuple where it has several outputs.   _: what it reads"""
    chosen = tuple([results if index is None else results[index] for index in indices])
    return chosen[0] if len(chosen) == 1 else chosen


def _is_float(tensor: GeTensor) -> bool:
    return (
        tensor.fake is not None
        and isinstance(tensor.dtype, torch.dtype)
        and (tensor.dtype.is_floating_point or tensor.dtype.is_complex)
    )
