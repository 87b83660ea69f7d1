"""What operators do with an Inf, by their types as every library spells them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.operators.traits import NEUTRAL, PASSES, STOPS, effect_on_inf, makes_one_value, places_constant


@pytest.mark.parametrize(
    "op_type",
    [
        "MaskedFill", "aten.masked_fill.Scalar", "aten_masked_fill_Scalar", "aten.masked_fill_.Tensor", "Fill",
        "aten.full.default", "aten_new_full_default", "aten.constant_pad_nd.default", "aten.scatter.value",
        "ScatterUpdate", "PadV3", "ConstantOfShape",
        "FillV2", "Where",
    ],
)  # fmt: skip
def test_operators_that_place_constants(op_type: str) -> None:
    assert places_constant(op_type)


@pytest.mark.parametrize(
    "op_type",
    [
        "Log",
        "Div",
        "aten.exp.default",
        "Cast",
        "MaskedSelect",
        "",
        "Mask",
        "ScatterAdd",
        "ScatterNdAdd",
        "ScatterNd",
        "ScatterElements",
        "TensorScatterAdd",
        "aten.scatter_add.default",
        "aten_scatter_reduce_two",
        "aten.index_put.default",
        "aten.scatter.value_reduce",
    ],
)
def test_operators_that_compute_place_none(op_type: str) -> None:
    assert not places_constant(op_type)


@pytest.mark.parametrize(
    "op_type",
    [
        "Softmax", "SoftmaxV2", "aten__softmax_default", "aten._softmax.default", "aten.where.self", "SelectV2", "Clip",
        "ClipByValue", "aten.clamp_min.default", "Max", "ReduceMax", "aten.amax.default", "ReLU", "ReLU6",
        "aten.relu.default",
        "aten._scaled_dot_product_flash_attention_for_cpu.default", "FlashAttentionScore", "GatherD", "aten.max_pool2d",
    ],
)  # fmt: skip
def test_operators_that_stop_an_inf(op_type: str) -> None:
    assert effect_on_inf(op_type, has_positive=True) == STOPS


@pytest.mark.parametrize(
    "op_type", ["Div", "Rsqrt", "aten.expand.default", "aten_log_softmax_default", "LogSoftmax", "Add"]
)
def test_operators_that_do_not(op_type: str) -> None:
    assert effect_on_inf(op_type, has_positive=False) == PASSES


def test_exp_stops_a_minus_alone_and_looking_says_nothing() -> None:
    assert [effect_on_inf("Exp", has_positive) for has_positive in (False, True)] == [STOPS, PASSES]
    assert effect_on_inf("IsFinite", True) == effect_on_inf("aten.isnan.default", True) == NEUTRAL


@given(op_type=st.text())
def test_any_text_is_a_type(op_type: str) -> None:
    assert effect_on_inf(op_type, True) in (STOPS, NEUTRAL, PASSES) and places_constant(op_type) in (True, False)


@pytest.mark.parametrize(
    "op_type",
    [
        "aten.zero_.default",
        "aten_fill__Scalar",
        "aten.zeros_like.default",
        "aten.full.names",
        "ZerosLike",
        "FillV2",
        "Constant",
    ],
)
def test_what_has_one_value_by_its_kind(op_type: str) -> None:
    assert makes_one_value(op_type)


@pytest.mark.parametrize(
    "op_type", ["aten.fill_diagonal_.default", "aten.constant_pad_nd.default", "Log", "aten.relu.default"]
)
def test_what_has_one_value_by_chance(op_type: str) -> None:
    assert not makes_one_value(op_type)
