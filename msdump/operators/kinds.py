"""Which operators of MindSpore, GE, ATen, ONNX and msprobe's API names compute the same: one kind for all of them.

kind_of("aten_addmm_default"), kind_of("Gemm")          "linear", "linear"
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from msdump.operators import table
from msdump.operators.table import ATEN_TYPE, MSPROBE_TYPE, library_name, row_of, rows

MINDSPORE, ATEN, ONNX, MSPROBE = "MindSpore", "PyTorch", "ONNX", "msprobe"
# GE has most of its names from MindSpore, or MindSpore from GE; msprobe's are ATen's.
_COLUMNS = {MINDSPORE: (table.MINDSPORE, table.GE), ATEN: (table.ATEN,), ONNX: (table.ONNX,), MSPROBE: (table.ATEN,)}

_LISTS = "_foreach_"


def kinds() -> tuple[str, ...]:
    """All kinds in the order of the table."""
    return tuple(dict.fromkeys(row.kind for row in rows()))


def names_of(kind: str, dialect: str) -> tuple[str, ...]:
    """Names of a kind in a dialect.   Raises: KeyError for an unknown dialect."""
    columns = _COLUMNS[dialect]
    return tuple(name for column in columns for name, row in table.by_name(column).items() if row.kind == kind)


@functools.lru_cache(maxsize=1 << 14)
def dialects_of(op_type: str) -> frozenset[str]:
    """Whose name a type is; several where MindSpore and ONNX have it, none where no dialect has."""
    if MSPROBE_TYPE.match(op_type):
        return frozenset((MSPROBE,))
    if ATEN_TYPE.match(op_type):
        return frozenset((ATEN,))
    return frozenset(
        dialect
        for dialect in _COLUMNS
        if dialect not in (ATEN, MSPROBE)
        if any(op_type in table.by_name(column) for column in _COLUMNS[dialect])
    )


@functools.lru_cache(maxsize=1 << 14)
def kind_of(op_type: str) -> str:
    """What an operator computes; its name without library and overload where no row has it.

    op_type   as `row_of` takes it
    """
    row = row_of(op_type)
    return row.kind if row is not None else library_name(op_type) or op_type


def kind_of_each(op_type: str) -> str:
    """As `kind_of`, of an operator on lists what it computes of each ("aten._foreach_mul_.Tensor": "mul")."""
    name = library_name(op_type)
    return kind_of(f"aten.{name.removeprefix(_LISTS)}.default") if name.startswith(_LISTS) else kind_of(op_type)


@functools.lru_cache(maxsize=1 << 14)
def has(op_type: str, trait: str) -> bool:
    """Whether the row of an operator has one of `table.TRAITS`; False without a row."""
    row = row_of(op_type)
    return row is not None and trait in row.traits


def is_mover(op_type: str) -> bool:
    """Whether it shows, copies, casts or fills, and computes nothing."""
    return has(op_type, "layout")


def is_commutative(op_type: str) -> bool:
    """Whether two operands of an operator may change their places."""
    return has(op_type, "commutative")


def is_product(op_type: str) -> bool:
    """Whether it multiplies matrices, of which the second may be given transposed."""
    return has(op_type, "product")


def has_transposed_weight(op_type: str, attributes: Mapping[str, Any]) -> bool:
    """Whether a product takes its second operand transposed, as its type or its attributes say."""
    row = row_of(op_type)
    is_layer = row is not None and row.kind == "linear" and row.operands[:1] == ("data",)
    return (is_layer and ONNX not in dialects_of(op_type)) or any(
        bool(attributes.get(name)) for name in ("transpose_b", "transB", "transpose_x2", "adj_x2")
    )


# -- operands and outputs ----------------------------------------------------------------------------------------------


def operand_slots(op_type: str) -> tuple[int, int, int]:
    """Slots of data, weight and bias of a product or a convolution."""
    row = row_of(op_type)
    roles = () if row is None else row.operands
    if not {"data", "weight"} <= set(roles):
        return (0, 1, 2)
    return roles.index("data"), roles.index("weight"), roles.index("bias") if "bias" in roles else 2


def argument_name(op_type: str, slot: int) -> str | None:
    """What an argument of an operator of ATen is called ("aten._softmax.default", 1 -> "dim"); None without a row."""
    row = row_of(op_type) if ATEN_TYPE.match(op_type) else None
    return row.arguments[slot] if row is not None and slot < len(row.arguments) else None


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


def output_role(op_type: str, slot: int) -> str:
    """What an output is; outputs of two operators are compared when they are the same. The first is the result."""
    if slot == 0:
        return "result"
    row = row_of(op_type)
    outputs = {} if row is None else row.outputs
    columns = {column for dialect in dialects_of(op_type) for column in _COLUMNS[dialect]}
    roles = next((roles for column, roles in outputs.items() if column in columns), ())
    return roles[slot] if slot < len(roles) else f"output {slot}"
