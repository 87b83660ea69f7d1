"""Operators by Ascend's names -> the same in ONNX. What ONNX calls by the same name needs no row.

Source: the operators' pages of CANN and of ONNX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msdump.frontends.acl import codes
from msdump.frontends.acl.calls import CallError
from msdump.tensors import dtypes

Attributes = dict[str, Any]


@dataclass(frozen=True)
class OnnxOp:
    """An operator of ONNX in place of one of Ascend's.

    swaps     inputs whose last two axes are exchanged first
    constants inputs that are added behind the given ones, by value
    """

    op_type: str
    attributes: Attributes
    swaps: tuple[int, ...] = ()
    constants: tuple[Sequence[int], ...] = field(default=())


def onnx_op(op_type: str, attributes: Attributes) -> OnnxOp:
    """The operator of ONNX for a type and its attributes.   Raises: CallError 100023 for attributes that do not fit."""
    build = _BUILDERS.get(op_type)
    return OnnxOp(op_type, dict(attributes)) if build is None else build(dict(attributes))


def _same_as(op_type: str) -> Callable[[Attributes], OnnxOp]:
    return lambda attributes: OnnxOp(op_type, attributes)


def _matmul(first: str, second: str) -> Callable[[Attributes], OnnxOp]:
    def build(attributes: Attributes) -> OnnxOp:
        swaps = tuple(index for index, name in enumerate((first, second)) if attributes.pop(name, False))
        attributes.pop("offset_x", None)
        return OnnxOp("MatMul", attributes, swaps)

    return build


def _softmax(attributes: Attributes) -> OnnxOp:
    axes = attributes.pop("axes", None) or [attributes.pop("axis", -1)]
    if len(axes) != 1:
        raise CallError(codes.OP_ATTR_NOT_MATCH, f"axes: expected one axis, got {list(axes)}")
    attributes.pop("half_to_float", None)
    return OnnxOp("Softmax", {**attributes, "axis": axes[0]})


def _conv(attributes: Attributes) -> OnnxOp:
    if attributes.pop("data_format", "NCHW") != "NCHW":
        raise CallError(codes.OP_ATTR_NOT_MATCH, "data_format: expected NCHW, got another one")
    attributes.pop("offset_x", None)
    for name in ("strides", "dilations"):
        if len(attributes.get(name, ())) == 4:
            attributes[name] = list(attributes[name][2:])
    pads = attributes.get("pads")
    if pads is not None and len(pads) == 4:
        # Ascend: top, bottom, left, right; ONNX: all beginnings, then all ends.
        attributes["pads"] = [pads[0], pads[2], pads[1], pads[3]]
    if "groups" in attributes:
        attributes["group"] = attributes.pop("groups")
    return OnnxOp("Conv", attributes)


def _cast(attributes: Attributes) -> OnnxOp:
    from msdump.frontends.onnx.ort_values import elem_type_of

    number = attributes.pop("dst_type", None)
    row = dtypes.BY_GE_NUMBER.get(number) if isinstance(number, int) else None
    attributes.pop("truncate", None)
    if row is None:
        raise CallError(codes.OP_ATTR_NOT_MATCH, f"dst_type: expected a number of aclDataType, got {number}")
    try:
        return OnnxOp("Cast", {**attributes, "to": elem_type_of(row.name)})
    except KeyError:
        raise CallError(codes.UNSUPPORTED_DATA_TYPE, f"dst_type: ONNX has no {row.name}") from None


def _concat(attributes: Attributes) -> OnnxOp:
    attributes.pop("N", None)
    return OnnxOp("Concat", {"axis": attributes.pop("concat_dim", 0), **attributes})


def _reduce(op_type: str) -> Callable[[Attributes], OnnxOp]:
    def build(attributes: Attributes) -> OnnxOp:
        axes = tuple(attributes.pop("axes", ()))
        return OnnxOp(op_type, {"keepdims": int(attributes.pop("keep_dims", False)), **attributes}, constants=(axes,))

    return build


_BUILDERS: dict[str, Callable[[Attributes], OnnxOp]] = {
    "BatchMatMul": _matmul("adj_x1", "adj_x2"),
    "BatchMatMulV2": _matmul("adj_x1", "adj_x2"),
    "Cast": _cast,
    "ConcatD": _concat,
    "Conv2D": _conv,
    "MatMul": _matmul("transpose_x1", "transpose_x2"),
    "MatMulV2": _matmul("transpose_x1", "transpose_x2"),
    "Maximum": _same_as("Max"),
    "Minimum": _same_as("Min"),
    "RealDiv": _same_as("Div"),
    "ReduceMaxD": _reduce("ReduceMax"),
    "ReduceMeanD": _reduce("ReduceMean"),
    "ReduceMinD": _reduce("ReduceMin"),
    "ReduceSumD": _reduce("ReduceSum"),
    "Softmax": _softmax,
    "SoftmaxV2": _softmax,
    "TransposeD": _same_as("Transpose"),
}


def known_types() -> list[str]:
    """All types that `onnx_op` leads to something for."""
    import onnx

    return sorted({*_BUILDERS, *(schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain)})
