"""Which operator is which between codes and floats: other types, folded activations, packed weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msdump.analysis import Comparison, compare_dumps, headline
from msdump.analysis.compare.mapping import OperatorMap
from msdump.analysis.compare.report import summary
from tests.analysis.compare.quantised.layers import (
    SIZE,
    Model,
    Operators,
    dumped,
    in_floats,
    in_operators,
    in_pairs,
    quantised,
    tensors,
    weight_codes,
)


def compared(root: Path, mine: Operators, golden: Operators, mapping: OperatorMap | None = None) -> Comparison:
    return compare_dumps(dumped(root / "mine", mine), dumped(root / "golden", golden), mapping=mapping)


def pairs_of(found: Comparison) -> dict[str, str]:
    return {result.pair.mine.op_name: result.pair.golden.op_name for result in found.operators}


def test_an_operator_on_codes_stands_for_a_product_and_its_activation(tmp_path: Path) -> None:
    found = compared(tmp_path, in_operators(Model()), in_floats(Model()))
    assert pairs_of(found) == {
        "Data-op0": "Data-op0",
        **{f"QLinearMatMul-op{number}": f"MatMul-op{number} + Relu-op{number}" for number in range(4)},
    }
    assert all((result.output_error or 0) < 0.02 for result in found.operators)


def test_a_range_takes_an_activation_in(tmp_path: Path) -> None:
    found = compared(tmp_path, in_pairs(Model()), in_floats(Model()))
    pairs = pairs_of(found)
    assert [pairs[f"MatMul-op{number}"] for number in range(4)] == [f"MatMul-op{number}" for number in range(4)]
    assert [pairs[f"QuantizeLinear-op{number}"] for number in range(2, 6)] == [
        f"Relu-op{number}" for number in range(4)
    ]


def test_activations_that_are_left_are_found_by_what_they_read(tmp_path: Path) -> None:
    """The first two are folded: numbers and places of the others say nothing."""
    model = Model()
    mine = in_pairs(model)
    places = [number for number, (name, _) in enumerate(mine) if name.endswith(("/MatMul-op2", "/MatMul-op3"))]
    for count, place in enumerate(reversed(places)):
        output = mine[place][1]["output", 0]
        after = np.maximum(output, 0)
        mine.insert(place + 1, (f"Default/Relu-op{1 - count}", tensors(output, output=after)))
        # What rounds reads the activation now.
        name, own = mine[place + 2]
        mine[place + 2] = name, {**own, ("input", 0): after}
    found = compared(tmp_path, mine, in_floats(model))
    pairs = pairs_of(found)
    assert (pairs["Relu-op0"], pairs["Relu-op1"]) == ("Relu-op2", "Relu-op3")
    assert (pairs["QuantizeLinear-op2"], pairs["QuantizeLinear-op3"]) == ("Relu-op0", "Relu-op1")
    assert "QuantizeLinear-op4" not in pairs and found.is_agreeing


def packed(model: Model) -> Operators:
    """Operators whose weights nobody sees."""
    found: Operators = []
    x = model.data
    for index, weight in enumerate(model.weights):
        codes, scale = weight_codes(weight)
        y = np.maximum(x @ (codes * np.float32(scale)), 0)
        found.append((f"Default/l{index}/quantized_linear_relu_default-op{index}", tensors(x, output=y)))
        x = y
    return found


def test_weights_that_nobody_sees_are_said(tmp_path: Path) -> None:
    found = compared(tmp_path, packed(Model()), in_floats(Model())[1:])
    assert found.is_agreeing and found.quantised is not None
    assert len(found.quantised.ranking) == 4 and all(one.is_quantised for one in found.quantised.ranking)
    assert "the dump has no codes of the weights of 4 operators" in "\n".join(summary(found))


def test_a_packed_weight_is_found_by_what_was_rounded_before(tmp_path: Path) -> None:
    model = Model(outlier=1)
    rounded = []
    for number, weight in enumerate(model.weights):
        codes, scale = weight_codes(weight)
        name = f"Default/aten_fake_quantize_per_tensor_affine_default-op{number}"
        # As PyTorch keeps it: transposed.
        rounded.append((name, tensors(weight.T, output=(codes * np.float32(scale)).T.astype(np.float32))))
    found = compared(tmp_path, [*rounded, *packed(model)], in_floats(model)[1:])
    assert found.quantised is not None and found.quantised.finding is not None
    assert "l1/" in found.quantised.finding.operator.label
    assert found.quantised.finding.weight is not None and found.quantised.finding.weight.channel == 5


def test_an_operator_without_a_counterpart_is_not_ranked(tmp_path: Path) -> None:
    mine = in_operators(Model())
    own = np.ones((3, 3), np.uint8)
    extra = (
        "Default/QLinearSigmoid-op0",
        tensors(own, np.float32(1), np.uint8(0), np.float32(1), np.uint8(0), output=own),
    )
    found = compared(tmp_path, [*mine, extra], in_floats(Model()))
    assert found.quantised is not None
    assert [operator.op_name for operator in found.quantised.unmeasured] == ["QLinearSigmoid-op0"]
    assert "not ranked, because no operator in floats is known for them: " in "\n".join(summary(found))


def test_codes_whose_scale_nobody_tells_are_left_out(tmp_path: Path) -> None:
    model = Model()
    table = np.linspace(-1, 1, 64).astype(np.float32).reshape(16, 4)
    codes = quantised(table, 0.01, 128)
    index = np.array([1, 2])
    mine = [("Default/Gather-op0", tensors(codes, index, output=codes[index])), *in_operators(model)]
    golden = [("Default/Gather-op0", tensors(table, index, output=table[index])), *in_floats(model)]
    found = compared(tmp_path, mine, golden)
    assert found.is_agreeing and "Gather-op0" not in pairs_of(found)
    assert not any(step.only_mine or step.only_golden for step in found.steps)


@pytest.mark.parametrize("names", [("QLinearMatMul-op0", "MatMul-op1"), ("QLinearMatMul-op1", "MatMul-op0")])
def test_a_mapping_goes_before_names(names: tuple[str, str], tmp_path: Path) -> None:
    mapping = OperatorMap(operators={names[0]: (names[1],)})
    found = compared(tmp_path, in_operators(Model()), in_floats(Model()), mapping)
    assert pairs_of(found)[names[0]] == names[1]


BIAS = np.linspace(-1, 1, SIZE).astype(np.float32)


def of_pytorch(model: Model) -> Operators:
    """The model with another activation, as PyTorch calls its operators."""
    found: Operators = []
    x = model.data
    for index, weight in enumerate(model.weights):
        y = x @ weight + BIAS
        place = f"Default/layers.{index}"
        found.append((f"{place}/aten_t_default-op{index}", tensors(weight.T, output=weight)))
        found.append((f"{place}/aten_addmm_default-op{index}", tensors(BIAS, x, weight, output=y)))
        x = y * np.clip(y / 6 + 0.5, 0, 1)
        found.append((f"Default/aten_hardswish_default-op{index}", tensors(y, output=x)))
    return found


def of_an_exporter(model: Model, narrow: int | None = None) -> Operators:
    """The same in codes: results are rounded before the bias is added, and the activation is a product.

    narrow   the activation whose range ends at a fifth of its largest value
    """
    found: Operators = []
    count = 0

    def rounded(values: np.ndarray, share: float = 1.0) -> np.ndarray:
        nonlocal count
        count += 1
        low, high = min(0.0, float(values.min())), float(values.max()) * share
        scale = np.float32((high - low) / 255)
        zero = np.uint8(round(-low / scale))
        codes = quantised(values, scale, int(zero))
        after = (codes.astype(np.float32) - zero) * scale
        found.append((f"Default/QuantizeLinear-op{count}", tensors(values, scale, zero, output=codes)))
        found.append((f"Default/DequantizeLinear-op{count}", tensors(codes, scale, zero, output=after)))
        return after

    x = rounded(model.data)
    for index, weight in enumerate(model.weights):
        codes, scale = weight_codes(weight)
        coarse = codes * np.float32(scale)
        found.append((f"Default/w/DequantizeLinear-op{100 + index}", tensors(codes, np.float32(scale), output=coarse)))
        y = x @ coarse
        found.append((f"Default/MatMul-op{index}", tensors(x, coarse, output=y)))
        x = rounded(y)
        found.append((f"Default/Add-op{index}", tensors(BIAS, x, output=x + BIAS)))
        y = rounded(x + BIAS)
        gate = np.clip(y / 6 + 0.5, 0, 1)
        found.append((f"Default/HardSigmoid-op{index}", tensors(y, output=gate)))
        gate = rounded(gate)
        found.append((f"Default/Mul-op{index}", tensors(y, gate, output=y * gate)))
        x = rounded(y * gate, 0.2 if index == narrow else 1.0)
    return found


def test_another_framework_has_other_names_and_one_operator_for_several(tmp_path: Path) -> None:
    found = compared(tmp_path, of_an_exporter(Model()), of_pytorch(Model()))
    pairs = pairs_of(found)
    assert found.is_agreeing and not any(step.only_mine or step.only_golden for step in found.steps)
    assert pairs == {
        **{f"MatMul-op{number}": f"aten_addmm_default-op{number}" for number in range(4)},
        **{f"HardSigmoid-op{number} + Mul-op{number}": f"aten_hardswish_default-op{number}" for number in range(4)},
    }
    assert max(result.output_error or 0 for result in found.operators) < 0.05
    assert compared(tmp_path / "turned", of_pytorch(Model()), of_an_exporter(Model())).is_agreeing


@pytest.mark.parametrize("fault", [False, True])
def test_a_normalisation_is_multiplied_into_the_weight(fault: bool, tmp_path: Path) -> None:
    """Its factors are known: what else is wrong with the weight shows in spite of them."""
    model, rng = Model(), np.random.default_rng(1)
    golden, shifts, x = in_floats(model)[:1], [], model.data
    for index, weight in enumerate(model.weights):
        factor, bias, mean = rng.uniform(0.2, 3, SIZE), rng.normal(size=SIZE), rng.normal(size=SIZE)
        variance = rng.uniform(0.3, 2, SIZE)
        y = x @ weight
        norm = [one.astype(np.float32) for one in (factor, bias, mean, variance)]
        by = (factor / np.sqrt(variance + 1e-5)).astype(np.float32)
        z = (y - norm[2]) * by + norm[1]
        golden += [
            (f"Default/l{index}/MatMul-op{index}", tensors(x, weight, output=y)),
            (f"Default/l{index}/BatchNormalization-op{index}", tensors(y, *norm, output=z)),
            (f"Default/l{index}/Relu-op{index}", tensors(z, output=np.maximum(z, 0))),
        ]
        model.weights[index] = weight * by
        shifts.append(norm[1] - norm[2] * by)
        x = np.maximum(z, 0)
    mine, x = [golden[0]], model.data
    for index, (weight, shift) in enumerate(zip(model.weights, shifts, strict=True)):
        codes, scale = weight_codes(weight)
        if fault and index == 2:
            codes[:, 5] = 0
        coarse = codes * np.float32(scale)
        y = x @ coarse + shift
        mine += [
            (f"Default/w{index}/DequantizeLinear-op{100 + index}", tensors(codes, np.float32(scale), output=coarse)),
            (f"Default/l{index}/Gemm-op{index}", tensors(x, coarse, shift, output=y)),
            (f"Default/l{index}/Relu-op{index}", tensors(y, output=np.maximum(y, 0))),
        ]
        x = np.maximum(y, 0)
    found = compared(tmp_path, mine, golden)
    assert found.quantised is not None and found.is_agreeing is not fault
    noise = [one.weight.sqnr_db for one in found.quantised.ranking if one.weight is not None]
    assert len(noise) == 4 and sorted(noise)[1] > 35
    assert not fault or "; channel 5 has 0 dB" in headline(found)[0]


@pytest.mark.parametrize("narrow", [0, 2])
def test_a_range_that_clips_what_another_framework_makes_is_named(narrow: int, tmp_path: Path) -> None:
    found = compared(tmp_path, of_an_exporter(Model(), narrow), of_pytorch(Model()))
    assert found.quantised is not None and found.quantised.finding is not None
    assert found.quantised.finding.operator.op_name == f"QuantizeLinear-op{4 * narrow + 5}"
    assert found.quantised.finding.golden is not None
    assert found.quantised.finding.golden.op_name == f"aten_hardswish_default-op{narrow}"


def test_each_output_that_is_rounded_has_its_own_reference(tmp_path: Path) -> None:
    x = Model().data
    scale, zero = np.float32(1 / 127), np.int8(0)
    codes = quantised(x, scale, 0, "int8")
    after = codes * scale
    mine = [
        ("Default/QuantizeLinear-op0", tensors(x, scale, zero, output=codes)),
        ("Default/DequantizeLinear-op0", tensors(codes, scale, zero, output=after)),
        ("Default/Split-op0", {**tensors(after, output=after[:16]), ("output", 1): after[16:]}),
    ]
    for number, part in enumerate((codes[:16], codes[16:]), 1):
        mine += [
            (f"Default/QuantizeLinear-op{number}", tensors(part * scale, scale, zero, output=part)),
            (f"Default/DequantizeLinear-op{number}", tensors(part, scale, zero, output=part * scale)),
        ]
    golden = [("Default/Split-op0", {**tensors(x, output=x[:16]), ("output", 1): x[16:]})]
    found = compared(tmp_path, mine, golden).quantised
    assert found is not None and found.largest_error < 0.02
    assert sum(one.activation is not None and one.error is not None for one in found.ranking) == 3
