"""Operators of quantised models by type."""

from __future__ import annotations

import pytest

from msdump.operators.codes import (
    channel_axis,
    computes_on_codes,
    dequantises,
    family,
    is_activation,
    is_of_quantised_model,
    may_be_folded,
    prepares_weights,
    quantises,
    rescales,
    slot_in_floats,
)


@pytest.mark.parametrize(
    "op_type",
    [
        "QuantizeLinear", "DynamicQuantizeLinear", "AscendQuant", "AscendQuantV2", "aten_quantize_per_tensor_default",
        "aten.quantize_per_channel.default", "quantized_decomposed_quantize_per_tensor_default",
        "npu_npu_quantize_default", "aten_fake_quantize_per_tensor_affine_cachemask_default",
    ],
)  # fmt: skip
def test_what_rounds_to_codes(op_type: str) -> None:
    assert quantises(op_type) and is_of_quantised_model(op_type) and may_be_folded(op_type)
    assert not dequantises(op_type) and not computes_on_codes(op_type)


@pytest.mark.parametrize(
    "op_type",
    ["DequantizeLinear", "AscendDequant", "AscendAntiQuant", "quantized_decomposed_dequantize_per_tensor_default"],
)
def test_what_makes_numbers_of_codes(op_type: str) -> None:
    assert dequantises(op_type) and rescales(op_type) and not quantises(op_type)


@pytest.mark.parametrize(
    ("op_type", "same_as"),
    [
        ("QLinearConv", "Conv"),
        ("ConvInteger", "Conv"),
        ("quantized_conv2d_relu_new", "aten_convolution_default"),
        ("QLinearMatMul", "MatMul"),
        ("QGemm", "Gemm"),
        ("MatMulInteger", "Gemm"),
        ("quantized_linear_dynamic_default", "aten_addmm_default"),
        ("quantized.linear_relu.default", "aten.linear.default"),
        ("aten__int_mm_default", "aten_mm_default"),
        ("QuantBatchMatmulV3", "MatMulV2"),
        ("WeightQuantBatchMatmulV2", "BatchMatMulV2"),
        ("npu_npu_quant_matmul_default", "aten_mm_default"),
        ("QLinearAdd", "Add"),
        ("quantized_add_default", "aten_add_Tensor"),
        ("QLinearConcat", "Concat"),
        ("QLinearSigmoid", "Sigmoid"),
    ],
)
def test_families(op_type: str, same_as: str) -> None:
    assert family(op_type) == family(same_as)
    assert computes_on_codes(op_type) and not computes_on_codes(same_as) and not is_of_quantised_model(same_as)


@pytest.mark.parametrize("op_type", ["Conv", "Relu", "Cast", "Mul", "Data", "aten_div_Tensor", "MatMul", "Quantile"])
def test_a_model_in_floats_is_none(op_type: str) -> None:
    assert not is_of_quantised_model(op_type)


def test_activations() -> None:
    assert all(map(is_activation, ("Relu", "Clip", "aten_relu_default", "aten_hardtanh_default", "ReLU6", "ReLU")))
    assert not any(map(is_activation, ("Tanh", "aten_add_Tensor", "Sigmoid")))
    assert may_be_folded("BiasAdd") and may_be_folded("aten_add_Tensor") and not may_be_folded("Softmax")


def test_weights_that_are_packed() -> None:
    assert prepares_weights("quantized_linear_prepack_default") and prepares_weights("quantized.conv2d_prepack.default")
    assert not computes_on_codes("quantized_linear_prepack_default")


def test_axes_and_slots() -> None:
    assert channel_axis("Conv", 4) == 0 == channel_axis("aten_convolution_default", 4) == channel_axis("Gemm", 2)
    assert channel_axis("MatMul", 2) == 1 == channel_axis("aten_addmm_default", 2) and channel_axis("MatMul", 1) == 0
    assert channel_axis("Conv+Relu", 4) == 0
    assert slot_in_floats("QLinearConv", 3) == 1 and slot_in_floats("Conv", 3) == 3
