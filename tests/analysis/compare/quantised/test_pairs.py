"""Which operator is which between codes and floats: other types, folded activations, packed weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msdump.analysis import Comparison, compare_dumps
from msdump.analysis.compare.mapping import OperatorMap
from msdump.analysis.compare.report import summary
from tests.analysis.compare.quantised.layers import (
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
