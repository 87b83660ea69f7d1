"""Operators of quantised models by type: what turns numbers into codes, what turns them back, what computes with codes,
and which operator of a model in floats each stands for.

Source: ONNX (QuantizeLinear, QLinearConv, MatMulInteger, ...), onnxruntime (com.microsoft), torch.ao and torchao (aten,
quantized, quantized_decomposed), GE and torch_npu (AscendQuant, QuantBatchMatmulV3, ...).
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from msdump.analysis.steps import Slot

# -- to codes and back ---------------------------------------------------------------------------------------------

_QUANTISES = re.compile(
    r"(Dynamic)?QuantizeLinear|AscendQuant(V2)?|(Dynamic)?Quant|DynamicQuantV2|Quantize|FakeQuant\w*"
    r"|(aten_|quantized_decomposed_)(fake_)?quantize_per_\w+|npu_npu_(dynamic_)?(quant|quantize)_\w+"
    r"|aten__fused_moving_avg_obs_fq_helper_\w+|aten__fake_quantize_\w+"
)
_FAKES = re.compile(
    r"FakeQuant\w*|(aten__?|quantized_decomposed_)fake_quantize_\w+|aten__fused_moving_avg_obs_fq_helper_\w+"
)
_DEQUANTISES = re.compile(
    r"DequantizeLinear|AscendDequant|AscendAntiQuant(V2)?|Dequantize|AntiQuant"
    r"|quantized_decomposed_dequantize_per_\w+|aten_dequantize_\w+|npu_npu_anti_quant_\w+"
)
_PREPARES = re.compile(r"quantized_\w+_(un)?prepack_\w+|quantized_\w+_(un)?prepack")
_RESCALES = re.compile(r"Cast|Mul|Div|aten__to_copy_\w+|aten_(mul|div)_\w+|prims_convert_element_type_\w+")


def _spelt(op_type: str) -> str:
    return op_type.replace(".", "_")


@functools.lru_cache(maxsize=4096)
def quantises(op_type: str) -> bool:
    """True for an operator that rounds numbers to codes; its first input holds them, its first output the codes."""
    return _QUANTISES.fullmatch(_spelt(op_type)) is not None


@functools.lru_cache(maxsize=4096)
def quantises_in_floats(op_type: str) -> bool:
    """True for one that gives back at once the numbers that the codes mean, as training with quantisation has it."""
    return _FAKES.fullmatch(_spelt(op_type)) is not None


@functools.lru_cache(maxsize=4096)
def dequantises(op_type: str) -> bool:
    """True for an operator that makes numbers of codes, or of the sums of their products."""
    return _DEQUANTISES.fullmatch(_spelt(op_type)) is not None


@functools.lru_cache(maxsize=4096)
def prepares_weights(op_type: str) -> bool:
    """True for an operator that packs a weight for others, and computes nothing of the model."""
    return _PREPARES.fullmatch(_spelt(op_type)) is not None


@functools.lru_cache(maxsize=4096)
def rescales(op_type: str) -> bool:
    """True for an operator by which sums of products of codes become numbers."""
    return dequantises(op_type) or _RESCALES.fullmatch(_spelt(op_type)) is not None


# -- operators that compute with codes -----------------------------------------------------------------------------


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


_ONE = (CodeInput(0, 1, 2, 0),)
_TWO = (CodeInput(0, 1, 2, 0), CodeInput(3, 4, 5, 1))
_WEIGHT_ONLY = CodeForm((CodeInput(1, 2, 3, 1, True, -1, offset=-1),), ((0, 0), (6, 2)))
CODE_FORMS = {
    "QLinearConv": CodeForm((CodeInput(0, 1, 2, 0), CodeInput(3, 4, 5, 1, True, 0)), (), (8, 2), (6, 7)),
    "QLinearMatMul": CodeForm((CodeInput(0, 1, 2, 0, axis=-2), CodeInput(3, 4, 5, 1, True, -1)), output=(6, 7)),
    "QGemm": CodeForm((CodeInput(0, 1, 2, 0), CodeInput(3, 4, 5, 1, True)), (), (6, 2), (7, 8)),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), CodeForm(_TWO, output=(6, 7))),
    **dict.fromkeys(
        (
            "QLinearSigmoid", "QLinearLeakyRelu", "QLinearGlobalAveragePool", "QLinearAveragePool", "QLinearReduceMean",
            "QLinearSoftmax",
        ),
        CodeForm(_ONE, output=(3, 4)),
    ),
    "QLinearConcat": CodeForm((CodeInput(2, 3, 4, 0),), output=(0, 1), repeats=True),
    "DynamicQuantizeMatMul": CodeForm((CodeInput(1, 2, 3, 1, True, -1),), ((0, 0), (4, 2))),
    "MatMulIntegerToFloat": CodeForm((CodeInput(0, 2, 4, 0), CodeInput(1, 3, 5, 1, True, -1)), ((6, 2),)),
    "WeightQuantBatchMatmulV2": _WEIGHT_ONLY,
    "npu_npu_weight_quant_batchmatmul_default": _WEIGHT_ONLY,
}  # fmt: skip
# Codes in, sums in int32 out: an operator behind them scales these. (data, weight, zero of weight)
INTEGER_FORMS = {"ConvInteger": (0, 1, 3), "MatMulInteger": (0, 1, 3)}


def slot_in_floats(op_type: str, slot: Slot) -> Slot:
    """The slot that an input of codes has in the operator in floats; the same where that is not known."""
    form = CODE_FORMS.get(_spelt(op_type))
    inputs = () if form is None else form.inputs
    return next((Slot(one.slot) for one in inputs if one.codes == slot.number), slot)


# Codes in, numbers out, and one scale (slot 2) that is that of the weight, or its product with that of the data.
_WHOLE_PRODUCTS = re.compile(r"Quant(Batch)?Mat[Mm]ulV[0-9]+|npu_npu_quant_matmul\w*")


@functools.lru_cache(maxsize=4096)
def multiplies_codes(op_type: str) -> bool:
    """True for a product of codes that scales its sums itself: data, weight and scale are its first inputs."""
    return _WHOLE_PRODUCTS.fullmatch(_spelt(op_type)) is not None


_ON_CODES = re.compile(
    r"QLinear\w+|QGemm|ConvInteger|MatMulInteger(ToFloat)?|DynamicQuantizeMatMul|MatMulNBits|QAttention"
    r"|(Weight)?Quant(Batch)?Mat[Mm]ul\w*|npu_npu_(weight_)?quant_(batch)?matmul\w*|QuantConv2D\w*"
    r"|quantized_(linear|conv|add|mul|cat|matmul|batch_norm|sigmoid|leaky_relu|hardswish|elu|softmax)\w*|aten__int_mm_\w+"
    r"|aten__weight_int[48]pack_mm\w*|onednn_q(linear|conv)\w*"
)


@functools.lru_cache(maxsize=4096)
def computes_on_codes(op_type: str) -> bool:
    """True for an operator that has codes, or a weight in codes, where one of a model in floats has numbers."""
    spelt = _spelt(op_type)
    return _ON_CODES.fullmatch(spelt) is not None and not prepares_weights(op_type)


def is_of_quantised_model(op_type: str) -> bool:
    """True for an operator that a model in floats has not."""
    return quantises(op_type) or dequantises(op_type) or prepares_weights(op_type) or computes_on_codes(op_type)


# -- families ------------------------------------------------------------------------------------------------------

_LIBRARY = re.compile(r"^(?:aten|prims|quantized|onednn|npu_npu|npu)_+")
_ALIASES = {
    **dict.fromkeys(
        (
            "gemm", "matmul", "mm", "bmm", "addmm", "linear", "batchmatmul", "baddbmm", "fullyconnection", "dense",
            "quantbatchmatmul", "weightquantbatchmatmul", "quantmatmul", "quantbatchmat", "matmulinteger",
            "matmulintegertofloat", "dynamicquantizematmul", "matmulnbits", "intmm", "qlinear", "qgemm",
            "weightint8packmm", "weightint4packmm", "weightquantbatchmatmul", "lineardynamic",
        ),
        "linear",
    ),
    **dict.fromkeys(
        (
            "conv", "conv1d", "conv2d", "conv3d", "convolution", "convinteger", "quantconv2d", "qconv",
            "mkldnnconvolution", "depthwiseconv2d", "depthwiseconv2dnative", "conv2ddynamic", "cudnnconvolution",
        ),
        "conv",
    ),
    **dict.fromkeys(("add", "addv2", "tensoradd"), "add"),
    **dict.fromkeys(("cat", "concat", "concatv2", "concatd"), "concat"),
}  # fmt: skip
_ACTIVATIONS = frozenset({"relu", "relu6", "clip", "clamp", "hardtanh", "clipbyvalue", "reluv2", "hardsigmoid"})
_TAILS = (
    frozenset(
        {"biasadd", "add", "cast", "reshape", "view", "batchnormalization", "batchnorm", "bninfer", "nativebatchnorm"}
    )
    | _ACTIVATIONS
)


@functools.lru_cache(maxsize=4096)
def family(op_type: str) -> str:
    """One name for the operators that compute the same on numbers or on codes, such as "conv" and "linear"."""
    spelt = _spelt(op_type)
    name = _LIBRARY.sub("", spelt)
    if name != spelt:
        # The overload of PyTorch is the last word.
        name = re.sub(r"_(?:default|Tensor|Scalar|out|dim|int|self|new|old)$", "", name)
        name = re.sub(r"_(?:dynamic|relu6?|add|fp16|unpacked|prepacked|pointwise|tensor)+$", "", name)
    name = re.sub(r"^QLinear(?=[A-Z])", "", name)
    name = re.sub(r"V[0-9]$", "", name).replace("_", "").lower()
    return _ALIASES.get(name, name)


def has_weight(op_type: str) -> bool:
    """True for products of matrices and convolutions."""
    return family(op_type) in ("linear", "conv")


_OUT_FIRST = re.compile(r"Gemm|\w*[Dd]ense|aten_linear_\w+|FullyConnection")


def channel_axis(op_type: str, axes: int) -> int:
    """Axis of the output's channels in the weight of an operator in floats: a Gemm's is usually transposed."""
    first = op_type.partition("+")[0]
    is_first = family(first) == "conv" or _OUT_FIRST.fullmatch(_spelt(first)) is not None
    return 0 if is_first or axes < 2 else axes - 1


_ADDED_FIRST = re.compile(r"aten_(?:addmm|baddbmm|addbmm|addmv)_\w+")


def operand_slots(op_type: str) -> tuple[int, int, int]:
    """Slots of data, weight and bias of a product or a convolution."""
    return (1, 2, 0) if _ADDED_FIRST.fullmatch(_spelt(op_type)) else (0, 1, 2)


def is_activation(op_type: str) -> bool:
    """True for an activation that only cuts values off, which a range of codes can do as well."""
    return family(op_type) in _ACTIVATIONS


def may_be_folded(op_type: str) -> bool:
    """True for an operator that a range of codes, or the operator before it, may have taken in."""
    return family(op_type) in _TAILS or quantises(op_type)
