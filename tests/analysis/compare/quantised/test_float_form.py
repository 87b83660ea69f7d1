"""Steps of quantised models in floats: codes become numbers, and what only converts is out of the way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump
from msdump.analysis.compare.quantised.float_form import FloatForm, code_levels, float_form
from msdump.analysis.compare.quantised.wires import Wires, array_key, content_key
from msdump.analysis.steps import Operator, Slot, read_steps
from tests.analysis.compare.quantised.layers import (
    FORMS,
    Model,
    Operators,
    dumped,
    in_floats,
    in_operators,
    in_pairs,
    number,
    quantised,
)

FIRST, SECOND = Slot(0), Slot(1)


def read(root: Path, operators: Operators) -> tuple[Operator, ...]:
    (step,) = read_steps(msdump.open(dumped(root, operators)))
    return step.operators


def formed(root: Path, operators: Operators, attrs: Mapping[str, Mapping[str, Any]] | None = None) -> FloatForm:
    return float_form(read(root, operators), lambda operator: (attrs or {}).get(operator.op_name))


def test_a_model_in_floats_stays_as_it_is(tmp_path: Path) -> None:
    operators = read(tmp_path, in_floats(Model()))
    form = float_form(operators, lambda operator: None)
    assert all(one is other for one, other in zip(form.operators, operators, strict=True))
    assert not form.units and not form.roundings and not form.weights and not form.hidden


def test_codes_that_are_read_by_another_scale_keep_what_was_written(tmp_path: Path) -> None:
    operators = in_operators(Model())
    assert not formed(tmp_path / "right", operators).written
    name, own = next((name, own) for name, own in operators if name.endswith("QLinearMatMul-op2"))
    operators[operators.index((name, own))] = name, {**own, ("input", 1): number(2 * float(own["input", 1]))}
    form = formed(tmp_path / "wrong", operators)
    (reader,) = [one for one in form.operators if one.op_name == "QLinearMatMul-op2"]
    (maker,) = [one for one in form.operators if one.op_name == "QLinearMatMul-op1"]
    (written,) = form.written.values()
    assert written.load_host() == pytest.approx(maker.outputs[FIRST].load_host())
    assert form.written[id(reader.inputs[FIRST])].load_host() == pytest.approx(reader.inputs[FIRST].load_host() / 2)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_numbers_are_near_to_those_in_floats(form: Any, tmp_path: Path) -> None:
    model = Model()
    result = formed(tmp_path, form(model))
    products = [one for one in result.operators if "MatMul" in one.op_type]
    assert [one.op_name[-1] for one in products] == ["0", "1", "2", "3"]
    for product, x, weight in zip(products, model.activations(), model.weights, strict=False):
        assert product.inputs[FIRST].load_host() == pytest.approx(x, abs=float(0.02 * x.max() + 0.05))
        assert product.inputs[SECOND].load_host() == pytest.approx(weight, abs=0.004)
        assert result.weights[id(product)] == {SECOND: 8}
    numbers = [tensor for one in result.operators for _, _, tensor in one.all_tensors()]
    assert {tensor.true_dtype for tensor in numbers} == {"float32"}


def test_a_rounding_knows_what_it_rounds(tmp_path: Path) -> None:
    form = formed(tmp_path, in_pairs(Model()))
    assert [one.maker and one.maker.op_name for one in form.roundings] == [
        "Data-op0", "MatMul-op0", "MatMul-op1", "MatMul-op2", "MatMul-op3",
    ]  # fmt: skip
    for one in form.roundings:
        assert one.bits == 8 and one.levels == (0, 255) and one.source is not None and len(one.operator.parts) == 2
        assert one.operator.outputs[FIRST] is one.result
    assert len(form.hidden) == 5 * 2 + 4


def test_a_result_in_codes_is_rounded_by_its_operator(tmp_path: Path) -> None:
    form = formed(tmp_path, in_operators(Model()))
    first, *others = form.roundings
    assert first.source is not None and all(one.source is None and one.codes is not None for one in others)
    assert [id(one.maker) for one in others] == [id(one) for one in form.operators if id(one) in form.units]


def test_codes_that_are_only_moved_keep_their_scale(tmp_path: Path) -> None:
    x = np.linspace(0, 1, 12).astype(np.float32).reshape(3, 4)
    codes, point = quantised(x, 1 / 255, 0), np.asarray(0, np.uint8)
    shared = {("input", 1): number(1 / 255), ("input", 2): point}
    form = formed(
        tmp_path,
        [
            ("D/QuantizeLinear-op0", {("input", 0): x, **shared, ("output", 0): codes}),
            ("D/Transpose-op0", {("input", 0): codes, ("output", 0): codes.T}),
        ],
    )
    (moved,) = form.operators
    assert moved.op_type == "Transpose" and not form.units
    assert moved.outputs[FIRST].load_host() == pytest.approx(x.T, abs=1 / 500)


def test_rows_of_an_embedding_in_codes(tmp_path: Path) -> None:
    table = np.linspace(-1, 1, 40).astype(np.float32).reshape(10, 4)
    codes = quantised(table, 0.01, 128)
    rows = codes[[3, 1]]
    numbers = (rows.astype(np.float32) - 128) * np.float32(0.01)
    shared = {("input", 1): number(0.01), ("input", 2): np.asarray(128, np.uint8)}
    form = formed(
        tmp_path,
        [
            ("D/Gather-op0", {("input", 0): codes, ("input", 1): np.array([3, 1]), ("output", 0): rows}),
            ("D/DequantizeLinear-op0", {("input", 0): rows, **shared, ("output", 0): numbers}),
        ],
    )
    (gather,) = form.operators
    assert gather.inputs[FIRST].load_host() == pytest.approx(table, abs=0.006)
    assert gather.outputs[FIRST].load_host() == pytest.approx(table[[3, 1]], abs=0.006)


def test_attributes_tell_where_no_codes_are_dumped(tmp_path: Path) -> None:
    x = np.linspace(-1, 1, 30).astype(np.float32)
    name = "aten_quantize_per_tensor_default-op0"
    attrs = {name: {"scale": 0.01, "zero_point": 0, "dtype": "qint8"}}
    form = formed(tmp_path / "a", [(f"D/{name}", {("input", 0): x})], attrs)
    (one,) = form.roundings
    assert (one.bits, one.codes, one.levels) == (8, None, (-128, 127))
    assert one.result.load_host() == pytest.approx(np.clip(x, -1.28, 1.27), abs=0.0051)
    assert not formed(tmp_path / "b", [(f"D/{name}", {("input", 0): x})]).roundings


def test_sums_without_an_operator_that_scales_them_are_no_numbers(tmp_path: Path) -> None:
    codes, weight = np.ones((2, 3), np.uint8), np.ones((3, 4), np.int8)
    sums = np.full((2, 4), 3, np.int32)
    form = formed(tmp_path, [("D/MatMulInteger-op0", {("input", 0): codes, ("input", 1): weight, ("output", 0): sums})])
    assert not form.operators and len(form.hidden) == 1


@pytest.mark.parametrize(
    ("dtype", "levels"),
    [
        ("int8", (-128, 127)), ("uint8", (0, 255)), ("int4", (-8, 7)), ("uint4", (0, 15)), ("int16", (-32768, 32767)),
        ("quint8", (0, 255)), ("torch.qint8", (-128, 127)), ("torch.int8", (-128, 127)), ("uint2", (0, 3)),
        ("int32", None), ("float32", None), ("bool", None), ("", None),
    ],
)  # fmt: skip
def test_levels_of_codes(dtype: str, levels: tuple[int, int] | None) -> None:
    assert code_levels(dtype) == levels


def test_wires_follow_bytes(tmp_path: Path) -> None:
    x, y = np.arange(4, dtype=np.float32), np.arange(4, dtype=np.float32) + 1
    operators = read(
        tmp_path,
        [
            ("D/Add-op0", {("output", 0): x}),
            ("D/Add-op1", {("input", 0): x, ("output", 0): y}),
            ("D/Add-op2", {("input", 0): y, ("input", 1): x, ("output", 0): x}),
        ],
    )
    wires = Wires(operators)
    tensor = operators[0].outputs[FIRST]
    assert wires.readers(tensor, 0) == [(1, FIRST), (2, SECOND)] and wires.readers(tensor, 1) == [(2, SECOND)]
    assert wires.maker(tensor, 2) == 0 and wires.maker(tensor, 9) == 2 and wires.maker(tensor, 0) is None
    assert content_key(tensor) == array_key(x) and array_key(x) != array_key(x.astype(np.float64))
