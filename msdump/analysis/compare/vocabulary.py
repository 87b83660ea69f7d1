"""Which operators of MindSpore, ATen, ONNX, GE and msprobe's API names compute the same: one kind for all of them.

    kind_of("aten_addmm_default"), kind_of("Gemm")          "linear", "linear"
    differing_attributes(("GeLU", {}), ("aten_gelu_default", {"approximate": "none"}))
                                                            ["approximate: tanh against none"]

A kind also says which operators only move their values on (`is_mover`), which small operators in a row are one large
one (`CHAINS`), and what the outputs beside the first are, because frameworks save different things for the backward
pass.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msdump.analysis.compare._operator_names import ARGUMENTS, COMPUTING, MOVING
from msdump.tables.messages import message

MINDSPORE, ATEN, ONNX, MSPROBE = "MindSpore", "PyTorch", "ONNX", "msprobe"

_OF_ATEN = re.compile(r"^(?:aten|prims|torch|npu)[._](.+)$")
_MSPROBE = re.compile(r"^(?:Functional|Torch|Tensor|Aten|VF|NPU|Mint|MintFunctional|Jit)\.(\w+)$")
_VERSION_OF_GE = re.compile(r"V[0-9]+$|D$")


@functools.cache
def _names() -> Mapping[str, Mapping[str, str]]:
    """Kind by name, by dialect."""
    tables: tuple[dict[str, str], ...] = ({}, {}, {})
    for kind, names in _rows(COMPUTING + MOVING):
        for table, listed in zip(tables, names, strict=True):
            # What computes comes before what only moves.
            table.update((name, kind) for name in listed if name not in table)
    return dict(zip((MINDSPORE, ATEN, ONNX), tables, strict=True))


def _rows(text: str) -> list[tuple[str, list[list[str]]]]:
    rows = []
    for line in filter(None, text.replace("\n    ", " ").splitlines()):
        kind, _, names = line.partition(":")
        rows.append((kind, [[name for name in part.split() if name != "-"] for part in names.split("|")]))
    return rows


_MOVING_KINDS = frozenset(kind for kind, _ in _rows(MOVING))


def kinds() -> tuple[str, ...]:
    """All kinds in the order of the table."""
    return tuple(kind for kind, _ in _rows(COMPUTING + MOVING))


def names_of(kind: str, dialect: str) -> tuple[str, ...]:
    """Names of a kind in a dialect; those of msprobe are ATen's.   Raises: KeyError for an unknown dialect."""
    table = _names()[ATEN if dialect == MSPROBE else dialect]
    return tuple(name for name, one in table.items() if one == kind)


@functools.lru_cache(maxsize=1 << 14)
def dialects_of(op_type: str) -> frozenset[str]:
    """Whose name a type is; several where MindSpore and ONNX have it, none where nobody has."""
    if _MSPROBE.match(op_type):
        return frozenset((MSPROBE,))
    if _OF_ATEN.match(op_type):
        return frozenset((ATEN,))
    return frozenset(dialect for dialect in (MINDSPORE, ONNX) if op_type in _names()[dialect])


@functools.lru_cache(maxsize=1 << 14)
def kind_of(op_type: str) -> str:
    """What an operator computes; the type itself where no row has it.

    op_type   as MindSpore, GE or ONNX spell it, as ATen does ("aten.add_.Tensor", in names of files "aten_add__Tensor")
              or as msprobe does ("Functional.gelu")
    """
    name = _library_name(op_type)
    if name:
        table = _names()[ATEN]
        return table.get(name) or table.get(name.rstrip("_"), name)
    for dialect in (MINDSPORE, ONNX):
        for spelled in (op_type, _VERSION_OF_GE.sub("", op_type)):
            if spelled in _names()[dialect]:
                return _names()[dialect][spelled]
    return op_type


def is_mover(op_type: str) -> bool:
    """Whether it shows, copies, casts or fills, and computes nothing."""
    return kind_of(op_type) in _MOVING_KINDS


@functools.lru_cache(maxsize=1 << 14)
def _library_name(op_type: str) -> str:
    """What ATen or msprobe call an operator, without overload; "" for other types."""
    msprobe = _MSPROBE.match(op_type)
    if msprobe:
        return msprobe[1]
    match = _OF_ATEN.match(op_type)
    if match is None:
        return ""
    name, _, overload = match[1].partition(".")
    if overload or op_type[len(op_type) - len(match[1]) - 1] == ".":
        return name
    # In names of files the dots are underscores: the name is the longest beginning that is one.
    table = _names()[ATEN]
    ends = [place for place, letter in enumerate(name) if letter == "_" and place > 0]
    known = [name[:end] for end in reversed(ends) if name[:end] in table]
    return known[0] if known else name[: ends[-1]] if ends else name


# -- operators in a row that are one operator elsewhere ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chain:
    """Kinds that follow each other, each reading what the one before it made, and the kind that they are together.

    has_other_operands   whether one operator reads other numbers in their place: weights that were folded into others
    """

    kind: str
    parts: tuple[str, ...]
    has_other_operands: bool = False


def _attentions() -> tuple[Chain, ...]:
    """Attention in its steps: queries may be scaled before the product or after it, there may be a mask, and what it
    leaves empty may be set to zero.
    """
    begins = (("mul", "matmul"), ("matmul", "mul"), ("matmul", "div"), ("matmul",))
    return tuple(
        # Keys are scaled as well, which no operator of the chain shows.
        Chain("attention", (*begin, *mask, "softmax", *rows, "matmul"), True)
        for begin in begins
        for mask in (("add",), ("where",), ())
        for rows in (("where",), ())
    )


CHAINS = (
    Chain("gelu", ("mul", "div", "erf", "add", "mul")),
    Chain("gelu", ("div", "erf", "add", "mul", "mul")),
    Chain("gelu", ("div", "erf", "add", "mul")),
    Chain("mse_loss", ("sub", "pow", "mean")),
    Chain("mse_loss", ("sub", "pow", "sum")),
    Chain("l1_loss", ("sub", "abs", "mean")),
    Chain("l1_loss", ("sub", "abs", "sum")),
    Chain("cross_entropy", ("log_softmax", "nll_loss")),
    Chain("linear", ("matmul", "bias_add")),
    Chain("linear", ("matmul", "add")),
    Chain("conv", ("conv", "bias_add")),
    Chain("conv", ("conv", "batch_norm"), True),
    Chain("conv", ("conv", "bias_add", "batch_norm"), True),
    Chain("conv_transpose", ("conv_transpose", "bias_add")),
    Chain("leaky_relu", ("mul", "clamp_min")),
    Chain("silu", ("sigmoid", "mul")),
    Chain("softmax", ("amax", "sub", "exp", "sum", "div")),
    Chain("hardswish", ("hardsigmoid", "mul")),
    Chain("mish", ("softplus", "tanh", "mul")),
    Chain("log_softmax", ("softmax", "log")),
    Chain("softsign", ("abs", "add", "div")),
    Chain("rsqrt", ("sqrt", "div")),
    Chain("rsqrt", ("sqrt", "reciprocal")),
    Chain("logsigmoid", ("sigmoid", "log")),
    Chain("rms_norm", ("pow", "mean", "add", "sqrt", "div", "mul")),
    Chain("rms_norm", ("pow", "mean", "add", "rsqrt", "mul", "mul")),
    *_attentions(),
)


# -- attributes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Attribute:
    """One attribute that must agree.

    names     how the dialects call it, in the order in which they are looked for
    defaults  value by dialect where the graph file names none; a dialect without a row has no such attribute
    form      brings values of all dialects to one form; gets the value and all attributes
    turned    dialects in which it is what is left to 1
    """

    name: str
    names: tuple[str, ...]
    defaults: Mapping[str, Any]
    form: Callable[[Any, Mapping[str, Any]], Any] = lambda value, attributes: value
    turned: tuple[str, ...] = ()


def _all(value: Any) -> dict[str, Any]:
    return dict.fromkeys((MINDSPORE, ATEN, ONNX, MSPROBE), value)


def _flag(value: Any, _attributes: Mapping[str, Any]) -> Any:
    return bool(value)


def _spatial(value: Any, _attributes: Mapping[str, Any]) -> Any:
    """Steps in space alone: MindSpore writes those of batch and channels as well."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = tuple(value)[2:] if len(value) in (4, 5) and tuple(value)[:2] == (1, 1) else tuple(value)
        return items[0] if items and len(set(items)) == 1 else items
    return value


def _pads(value: Any, attributes: Mapping[str, Any]) -> Any:
    """One number where all sides are padded alike; numbers of each side; or "same"."""
    mode = attributes.get("pad_mode", attributes.get("auto_pad"))
    name = str(mode).lower() if mode is not None else ""
    if name in ("same", "1", "same_upper", "same_lower"):
        return "same"
    if name in ("valid", "2"):
        return 0
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = tuple(value)
        return items[0] if items and len(set(items)) == 1 else (items or 0)
    return value


def _text(value: Any, _attributes: Mapping[str, Any]) -> Any:
    return str(value).lower()


def _corners(value: Any, attributes: Mapping[str, Any]) -> Any:
    mode = attributes.get("coordinate_transformation_mode")
    return value if mode is None else str(mode) == "align_corners"


def _one(value: Any, _attributes: Mapping[str, Any]) -> Any:
    """A tuple of one item as that item."""
    return value[0] if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 1 else value


def _reduction(value: Any, _attributes: Mapping[str, Any]) -> Any:
    return {0: "none", 1: "mean", 2: "sum", "0": "none", "1": "mean", "2": "sum"}.get(value, value)


_EPSILON = ("epsilon", "eps", "variance_epsilon")
_AXIS = ("axis", "dim", "axes")
_STRIDE = _Attribute("stride", ("strides", "stride"), _all(1), _spatial)
_PADDING = _Attribute("padding", ("pads", "pad", "padding", "pad_list"), _all(0), _pads)
_DILATION = _Attribute("dilation", ("dilations", "dilation"), _all(1), _spatial)
_KERNEL = _Attribute("kernel size", ("kernel_shape", "kernel_size"), {}, _spatial)
_GROUPS = _Attribute("groups", ("groups", "group"), _all(1))
_SOFTMAX_AXIS = _Attribute("axis", _AXIS, {MINDSPORE: -1, ONNX: -1}, _one)
_REDUCTION = _Attribute("reduction", ("reduction",), _all("mean"), _reduction)
_ATTRIBUTES: Mapping[str, tuple[_Attribute, ...]] = {
    "conv": (_STRIDE, _PADDING, _DILATION, _GROUPS),
    "conv_transpose": (_STRIDE, _PADDING, _DILATION, _GROUPS),
    "max_pool": (_KERNEL, _STRIDE, _PADDING),
    "avg_pool": (_KERNEL, _STRIDE, _PADDING),
    "layer_norm": (
        _Attribute("epsilon", _EPSILON, {MINDSPORE: 1e-7, ATEN: 1e-5, ONNX: 1e-5, MSPROBE: 1e-5}),
    ),
    "batch_norm": (
        _Attribute("training", ("is_training", "training", "training_mode"), _all(False), _flag),
        _Attribute("momentum", ("momentum",), {MINDSPORE: 0.1, ATEN: 0.1, ONNX: 0.9, MSPROBE: 0.1}, turned=(ONNX,)),
        _Attribute("epsilon", _EPSILON, {MINDSPORE: 1e-5, ATEN: 1e-5, ONNX: 1e-5, MSPROBE: 1e-5}),
    ),
    "group_norm": (
        _Attribute("epsilon", _EPSILON, _all(1e-5)),
        _Attribute("groups", ("num_groups", "group", "N"), {}),
    ),
    "rms_norm": (_Attribute("epsilon", _EPSILON, {}),),
    "gelu": (
        # MindSpore's GeLU is the form with tanh and has no attribute.
        _Attribute("approximate", ("approximate",), {MINDSPORE: "tanh", ATEN: "none", ONNX: "none", MSPROBE: "none"},
                   _text),
    ),
    "leaky_relu": (
        _Attribute("slope", ("negative_slope", "alpha"), _all(0.01)),
    ),
    "elu": (_Attribute("alpha", ("alpha",), _all(1.0)),),
    "softmax": (_SOFTMAX_AXIS,),
    "log_softmax": (_SOFTMAX_AXIS,),
    "mse_loss": (_REDUCTION,),
    "l1_loss": (_REDUCTION,),
    "cross_entropy": (_REDUCTION,),
    "nll_loss": (_REDUCTION, _Attribute("ignored index", ("ignore_index",), _all(-100))),
    "bce": (_REDUCTION,),
    "bce_with_logits": (_REDUCTION,),
    "resize": (_Attribute("align corners", ("align_corners",), _all(False), _corners),),
    "grid_sample": (_Attribute("align corners", ("align_corners",), _all(False), _flag),),
    "dropout": (),
    "cumsum": (_Attribute("axis", _AXIS, {}, _one),),
    "embedding": (_Attribute("padding index", ("padding_idx",), {}),),
}  # fmt: skip


def differing_attributes(mine: tuple[str, Mapping[str, Any]], golden: tuple[str, Mapping[str, Any]]) -> list[str]:
    """Attributes of two operators of one kind that do not agree, as "name: mine against golden".

    mine, golden   type, and attributes as the graph file has them
    Edges:         an attribute that one side does not tell, and whose default is not known, is left out.
    """
    kind = kind_of(mine[0])
    if kind != kind_of(golden[0]):
        return []
    texts: list[str] = []
    for attribute in _ATTRIBUTES.get(kind, ()):
        x, y = (_value(attribute, *side) for side in (mine, golden))
        if x is not None and y is not None and not _is_equal(x, y):
            texts.append(
                message("{name}: {mine} against {golden}", name=attribute.name, mine=_plain(x), golden=_plain(y))
            )
    return texts


def is_product(op_type: str) -> bool:
    """Whether it multiplies matrices, of which the second may be given transposed."""
    return kind_of(op_type) in ("matmul", "batch_matmul", "linear")


def has_transposed_weight(op_type: str, attributes: Mapping[str, Any]) -> bool:
    """Whether a product takes its second operand transposed, as its type or its attributes say."""
    return (
        op_type in ("Dense", "FullyConnection")
        or _library_name(op_type) == "linear"
        or any(bool(attributes.get(name)) for name in ("transpose_b", "transB", "transpose_x2", "adj_x2"))
    )


def _value(attribute: _Attribute, op_type: str, attributes: Mapping[str, Any]) -> Any:
    name = next((name for name in attribute.names if attributes.get(name) is not None), None)
    if name is None:
        # MindSpore and ONNX have many names in common: a default that is not that of both is not known.
        defaults = [attribute.defaults.get(dialect) for dialect in dialects_of(op_type)]
        value = defaults[0] if defaults and all(one == defaults[0] for one in defaults) else None
    else:
        value = attributes[name]
    if value is None:
        return None
    formed = attribute.form(value, attributes)
    return 1 - formed if dialects_of(op_type) & set(attribute.turned) else formed


def _is_equal(x: Any, y: Any) -> bool:
    if isinstance(x, tuple) or isinstance(y, tuple):
        left, right = (tuple(side) if isinstance(side, Sequence) and not isinstance(side, str) else (side,)
                       for side in (x, y))  # fmt: skip
        if len(left) != len(right):
            # One number for every side, or a number for each end of each side.
            longer, shorter = (left, right) if len(left) > len(right) else (right, left)
            return len(longer) % len(shorter) == 0 and shorter * (len(longer) // len(shorter)) == longer
        return all(map(_is_equal, left, right))
    if isinstance(x, (int, float)) and isinstance(y, (int, float)):
        return math.isclose(x, y, rel_tol=1e-6)
    return bool(x == y)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


# -- outputs -----------------------------------------------------------------------------------------------------------

# What outputs behind the first are, by kind and dialect; those of other names are other quantities.
_OUTPUTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "layer_norm": {
        MINDSPORE: ("result", "mean", "variance"),
        ATEN: ("result", "mean", "reciprocal deviation"),
        ONNX: ("result", "mean", "reciprocal deviation"),
    },
    "batch_norm": {
        MINDSPORE: ("result", "batch mean", "batch variance", "saved mean", "saved variance"),
        ATEN: ("result", "saved mean", "saved reciprocal deviation"),
        ONNX: ("result", "running mean", "running variance"),
    },
    "max_pool": {MINDSPORE: ("result", "mask"), ATEN: ("result", "indices"), ONNX: ("result", "indices")},
    "dropout": {MINDSPORE: ("result", "mask"), ATEN: ("result", "mask"), ONNX: ("result", "mask")},
}


@functools.cache
def _arguments() -> Mapping[str, tuple[str, ...]]:
    """Names of arguments by name and overload of an operator of ATen; the default overload is left out."""
    rows = (line.partition(": ") for line in filter(None, ARGUMENTS.splitlines()))
    return {name: tuple(names.split()) for name, _, names in rows}


def argument_name(op_type: str, slot: int) -> str | None:
    """What an argument of an operator of ATen is called ("aten._softmax.default", 1 -> "dim"); None without a row."""
    match = _OF_ATEN.match(op_type)
    names = () if match is None else _arguments().get(match[1].removesuffix(".default"), ())
    return names[slot] if slot < len(names) else None


# Inputs that are other quantities: MindSpore lets the variance of the batch run on, PyTorch that of its population.
_INPUTS_APART: Mapping[str, tuple[int, ...]] = {"batch_norm": (4,)}


def inputs_apart(kind: str) -> tuple[int, ...]:
    """Input slots of a kind that frameworks fill with different quantities."""
    return _INPUTS_APART.get(kind, ())


def has_same_slots(kind: str, mine: Sequence[object], golden: Sequence[object]) -> bool:
    """Whether inputs of two operators of one kind are the same quantities in the same order: those of the backward pass
    read in each framework what it has saved.
    """
    return len(mine) == len(golden) and not kind.endswith("_grad")


# Operands of these may stand in any order.
_COMMUTATIVE = frozenset(
    ("add", "add_n", "bitwise_and", "bitwise_or", "bitwise_xor", "clamp_max", "clamp_min", "eq", "logical_and",
     "logical_or", "logical_xor", "mul", "ne")
)  # fmt: skip


def is_commutative(kind: str) -> bool:
    """Whether two operands of a kind may change their places."""
    return kind in _COMMUTATIVE


def output_role(op_type: str, slot: int) -> str:
    """What an output is; outputs of two operators are compared when they are the same. The first is the result."""
    if slot == 0:
        return "result"
    rows = _OUTPUTS.get(kind_of(op_type), {})
    owners = {ATEN} if MSPROBE in dialects_of(op_type) else dialects_of(op_type)
    names = next((names for dialect, names in rows.items() if dialect in owners), ())
    return names[slot] if slot < len(names) else f"output {slot}"
