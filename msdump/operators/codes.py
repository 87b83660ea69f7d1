"""Operators of quantised models: what turns numbers into codes, what turns them back, what computes with codes, and
which inputs of it are those of the operator in floats.

Source: ONNX (QuantizeLinear, QLinearConv, MatMulInteger, ...), onnxruntime (com.microsoft), torch.ao and torchao (aten,
quantized, quantized_decomposed), GE and torch_npu (AscendQuant, QuantBatchMatmulV3, ...).
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from msdump.operators.kinds import has, kind_of, operand_slots
from msdump.operators.table import row_of


def quantises(op_type: str) -> bool:
    """True for an operator that rounds numbers to codes; its first input holds them, its first output the codes."""
    return has(op_type, "quantises")


def quantises_in_floats(op_type: str) -> bool:
    """True for one that gives back at once the numbers that the codes mean, as training with quantisation has it."""
    return has(op_type, "in-floats")


def dequantises(op_type: str) -> bool:
    """True for an operator that makes numbers of codes, or of the sums of their products."""
    return has(op_type, "dequantises")


def prepares_weights(op_type: str) -> bool:
    """True for an operator that packs a weight for others, and computes nothing of the model."""
    return has(op_type, "prepares-weight")


def rescales(op_type: str) -> bool:
    """True for an operator by which sums of products of codes become numbers."""
    return dequantises(op_type) or has(op_type, "rescales")


def multiplies_codes(op_type: str) -> bool:
    """True for a product of codes that scales its sums itself: data, weight and scale are its first inputs."""
    return has(op_type, "scales-sums")


def computes_on_codes(op_type: str) -> bool:
    """True for an operator that has codes, or a weight in codes, where one of a model in floats has numbers."""
    return has(op_type, "on-codes")


def is_of_quantised_model(op_type: str) -> bool:
    """True for an operator that a model in floats has not."""
    row = row_of(op_type)
    return row is not None and not row.traits.isdisjoint({"quantises", "dequantises", "prepares-weight", "on-codes"})


# -- operands ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CodeInput:
    """An input of codes: its slot, those of scale and zero point (None where there is none), and the slot that it has
    in the operator in floats.

    axis     of a scale for each channel; None where the shapes have to tell
    offset   +1: numbers are (codes - zero) * scale; -1: they are (codes + offset) * scale
    """

    codes: int
    scale: int | None
    zero: int | None
    slot: int
    is_weight: bool = False
    axis: int | None = None
    offset: int = 1


@dataclass(frozen=True, slots=True)
class CodeForm:
    """How an operator on codes stands for one on numbers.

    inputs   those of codes
    plain    (slot, slot in the operator in floats) of inputs that are numbers already
    bias     slot of sums in int32, whose scale is the product of those of the two inputs, and its slot in floats
    output   slots of scale and zero point of the result; None where it is a number
    repeats  further inputs come in threes like the last of `inputs`
    """

    inputs: tuple[CodeInput, ...]
    plain: tuple[tuple[int, int], ...] = ()
    bias: tuple[int, int] | None = None
    output: tuple[int, int] | None = None
    repeats: bool = False


# Roles of an operator in floats, in the order of its inputs.
_IN_FLOATS = {"data": 0, "weight": 1, "bias": 2, "a": 0, "b": 1}


@functools.lru_cache(maxsize=4096)
def code_form(op_type: str) -> CodeForm | None:
    """How the operands of an operator on codes are given; None where the table does not say."""
    row = row_of(op_type)
    if row is None or not row.operands or not row.has("on-codes") or row.has("sums-of-codes"):
        return None
    slots: dict[str, dict[str, int]] = {}
    axes: dict[str, int] = {}
    for slot, word in enumerate(word for word in row.operands if word != "..."):
        name, _, part = word.partition(".")
        part, _, axis = part.partition("@")
        slots.setdefault(name, {})[part] = slot
        if axis:
            axes[name] = int(axis)
    inputs, plain, bias = [], [], None
    for name in (name for name in _IN_FLOATS if name in slots):
        parts, slot = slots[name], _IN_FLOATS[name]
        if "codes" in parts:
            zero, offset = parts.get("zero", parts.get("offset")), -1 if "offset" in parts else 1
            inputs.append(
                CodeInput(parts["codes"], parts.get("scale"), zero, slot, name == "weight", axes.get(name), offset)
            )
        elif "sums" in parts:
            bias = parts["sums"], slot
        else:
            plain.append((parts[""], slot))
    output = (slots["out"]["scale"], slots["out"]["zero"]) if "out" in slots else None
    return CodeForm(tuple(inputs), tuple(plain), bias, output, "..." in row.operands)


def integer_slots(op_type: str) -> tuple[int, int, int] | None:
    """Slots of data, weight and zero point of the weight where codes come in and their sums go out; an operator after
    it scales these. None for others.
    """
    row = row_of(op_type)
    if row is None or not row.has("sums-of-codes"):
        return None
    index = row.operands.index
    return index("data.codes"), index("weight.codes"), index("weight.zero")


def slot_in_floats(op_type: str, slot: int) -> int:
    """The slot that an input of codes has in the operator in floats; the same where that is not known."""
    form = code_form(op_type)
    inputs = () if form is None else form.inputs
    return next((one.slot for one in inputs if one.codes == slot), slot)


# -- families ------------------------------------------------------------------------------------------------------

_FAMILIES = {"matmul": "linear", "batch_matmul": "linear", "addmv": "linear", "addbmm": "linear"}
_ON_CODES = re.compile(r"^QLinear(?=[A-Z])")


@functools.lru_cache(maxsize=4096)
def family(op_type: str) -> str:
    """One name for the operators that compute the same on numbers or on codes, such as "conv" and "linear"."""
    kind = kind_of(_ON_CODES.sub("", op_type) if kind_of(op_type) == "on_codes" else op_type)
    return _FAMILIES.get(kind, kind)


def has_weight(op_type: str) -> bool:
    """True for products of matrices and convolutions."""
    return family(op_type) in ("linear", "conv")


def channel_axis(op_type: str, axes: int) -> int:
    """Axis of the output's channels in the weight of an operator in floats: a Gemm's is usually transposed."""
    first = op_type.partition("+")[0]
    is_first = family(first) == "conv" or (kind_of(first) == "linear" and operand_slots(first)[0] == 0)
    return 0 if is_first or axes < 2 else axes - 1


def is_activation(op_type: str) -> bool:
    """True for an activation that only cuts values off, which a range of codes can do as well."""
    return has(op_type, "cuts-off")


def may_be_folded(op_type: str) -> bool:
    """True for an operator that a range of codes, or the operator before it, may have taken in."""
    return has(op_type, "foldable") or quantises(op_type)
