"""Two frameworks side by side: what both compute pairs, and the first operator that does not is named."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from msdump.analysis.compare.confirm import Confirmation
from msdump.analysis.compare.dialects import is_between_frameworks
from msdump.analysis.compare.dumps import compare_dumps
from msdump.analysis.compare.pairing import BY_INPUTS, BY_KIND, BY_VALUES
from msdump.analysis.compare.report import json_text
from msdump.analysis.compare.result import AGREES, DIFFERS, IDENTICAL, Comparison
from msdump.analysis.compare.sentences import headline
from msdump.analysis.compare.trace import Placed
from msdump.analysis.steps import read_steps
from msdump.cli.main import main
from msdump.formats.dump_dir import DumpDir
from tests.analysis.small_dump import Array, Tensors, write_dump

A, B, C, OUT = ("input", 0), ("input", 1), ("input", 2), ("output", 0)
Rows = Sequence[tuple[str, Tensors]]

rng = np.random.default_rng(0)
X, W, BIAS = (rng.standard_normal(shape, dtype=np.float32) for shape in ((5, 6), (4, 6), (4,)))
PRODUCT = X @ W.T
HIDDEN = PRODUCT + BIAS
ACTIVE = np.tanh(HIDDEN)
TOTAL = ACTIVE.sum(1)

TORCH: Rows = [
    ("Default/fc-Linear/aten_t_default-op0", {A: W, OUT: W.T}),
    ("Default/fc-Linear/aten_addmm_default-op0", {A: BIAS, B: X, C: W.T, OUT: HIDDEN}),
    ("Default/aten_tanh_default-op0", {A: HIDDEN, OUT: ACTIVE}),
    ("Default/aten_sum_dim_IntList-op0", {A: ACTIVE, OUT: TOTAL}),
]


def mindspore(active: Array = ACTIVE, kind: str = "Tanh", hidden: Array = HIDDEN, extra: Rows = ()) -> Rows:
    """The same network there, with other numbers behind its activation."""
    return [
        ("Default/fc-Dense/MatMul-op0", {A: X, B: W, OUT: PRODUCT}),
        ("Default/fc-Dense/BiasAdd-op1", {A: PRODUCT, B: BIAS, OUT: HIDDEN}),
        *extra,
        (f"Default/{kind}-op7", {A: hidden, OUT: active}),
        ("Default/ReduceSum-op8", {A: active, OUT: active.sum(1)}),
    ]


def compared(folder: Path, mine: Rows, golden: Rows) -> Comparison:
    return compare_dumps(write_dump(folder / "mine", mine), write_dump(folder / "golden", golden))


def named(comparison: Comparison) -> dict[str, tuple[str, str]]:
    return {
        operator.pair.mine.op_name: (operator.pair.golden.op_name, operator.pair.how)
        for operator in comparison.operators
    }


@pytest.mark.parametrize("is_turned", [False, True])
def test_a_right_port_agrees(tmp_path: Path, is_turned: bool) -> None:
    rounded = mindspore((ACTIVE * np.float32(1 + 1e-7)).astype(np.float32))
    sides = (TORCH, rounded) if is_turned else (rounded, TORCH)
    comparison = compared(tmp_path, *sides)
    assert comparison.is_agreeing
    step = comparison.steps[0]
    assert not step.only_mine and not step.only_golden and not comparison.only_mine and not comparison.only_golden
    names = named(comparison)
    if not is_turned:
        # The product is on the way to the sum with the bias, and needs no counterpart.
        assert names == {
            "BiasAdd-op1": ("aten_addmm_default-op0", BY_VALUES),
            "Tanh-op7": ("aten_tanh_default-op0", BY_VALUES),
            "ReduceSum-op8": ("aten_sum_dim_IntList-op0", BY_VALUES),
        }
        assert [operator.op_name for operator in step.expected] == ["MatMul-op0", "aten_t_default-op0"]


def test_another_result_of_the_same_is_the_first_wrong_operator(tmp_path: Path) -> None:
    comparison = compared(tmp_path, mindspore(np.tanh(0.9 * HIDDEN)), TORCH)
    assert comparison.first_wrong is not None
    assert comparison.first_wrong.pair.mine.op_name == "Tanh-op7"
    assert named(comparison)["Tanh-op7"] == ("aten_tanh_default-op0", BY_KIND)
    assert named(comparison)["ReduceSum-op8"] == ("aten_sum_dim_IntList-op0", BY_KIND)


def test_another_operator_in_its_place_is_named_with_that(tmp_path: Path) -> None:
    comparison = compared(tmp_path, mindspore(np.maximum(HIDDEN, 0), "ReLU"), TORCH)
    text = "\n".join(headline(comparison))
    assert text.startswith("first wrong operator: Default/ReLU-op7")
    assert "golden has Default/aten_tanh_default-op0" in text
    assert named(comparison)["ReLU-op7"] == ("aten_tanh_default-op0", BY_INPUTS)


SCORES, VALUES = (rng.standard_normal((3, 4, 4), dtype=np.float32) for _ in range(2))
GRADIENT = SCORES.swapaxes(1, 2) @ VALUES


@pytest.mark.parametrize("is_right", [True, False])
def test_a_batched_product_may_read_its_operand_transposed(is_right: bool, tmp_path: Path) -> None:
    """The axes tell nothing of it, where all of them are of one length: its result does."""
    turned = np.ascontiguousarray(SCORES.swapaxes(1, 2))
    product = GRADIENT if is_right else SCORES @ VALUES
    mine = [("Default/BatchMatMul-op0", {A: SCORES, B: VALUES, OUT: product}), *mindspore()]
    golden = [("Default/aten_bmm_default-op0", {A: turned, B: VALUES, OUT: GRADIENT}), *TORCH]
    comparison = compared(tmp_path, mine, golden)
    assert comparison.is_agreeing is is_right
    first = next(comparison.operators)
    assert first.inputs[0].status in ((AGREES, IDENTICAL) if is_right else (DIFFERS,))
    assert first.inputs[0].reason.endswith("axes of golden in the order [0, 2, 1]")


def test_operands_that_changed_places_are_said_to_have(tmp_path: Path) -> None:
    other = rng.standard_normal(HIDDEN.shape, dtype=np.float32)
    mine = [*mindspore(), ("Default/Sub-op9", {A: ACTIVE, B: other, OUT: ACTIVE - other})]
    golden = [*TORCH, ("Default/aten_sub_Tensor-op0", {A: other, B: ACTIVE, OUT: other - ACTIVE})]
    lines = headline(compared(tmp_path, mine, golden))
    assert lines[0].startswith("first wrong operator: Default/Sub-op9 (Sub)")
    assert lines[1] == "  input 0 and input 1 have changed places"
    (tmp_path / "sum").mkdir()
    mine[-1] = ("Default/Add-op9", {A: ACTIVE, B: other, OUT: ACTIVE * other})
    golden[-1] = ("Default/aten_add_Tensor-op0", {A: other, B: ACTIVE, OUT: other + ACTIVE})
    assert "changed places" not in "".join(headline(compared(tmp_path / "sum", mine, golden)))


def test_another_dtype_of_the_result_is_said(tmp_path: Path) -> None:
    """A cast that is missing: its inputs agree as far as float16 goes."""
    half = (300 * HIDDEN).astype(np.float16)
    wide = half.astype(np.float32)
    with np.errstate(over="ignore"):
        squares = np.square(half)
    mine = [*mindspore()[:2], ("Default/Square-op7", {A: half, OUT: squares})]
    golden = [*TORCH[:2], ("Default/aten_pow_Tensor_Scalar-op0", {A: wide, OUT: np.square(wide)})]
    lines = headline(compared(tmp_path, mine, golden))
    assert lines[0].startswith("first wrong operator: Default/Square-op7 (Square)")
    assert lines[1] == "  dtype of output 0: float16 against float32"


def test_an_update_is_not_wrong_for_a_gradient_that_is_cut_out_of_a_wrong_one(tmp_path: Path) -> None:
    """Gradients of a layer whose weights one framework alone keeps in one piece."""
    loss, gradient, other = ACTIVE * 2, rng.standard_normal(24, dtype=np.float32), PRODUCT * 3
    wrong = np.concatenate([gradient * 2, BIAS])
    cut = wrong[:24].reshape(4, 6)
    right = gradient.reshape(4, 6)
    mine = [
        *mindspore(loss),
        ("Gradients/Default/TanhGrad-op9", {A: other, OUT: wrong}),
        ("Gradients/Default/Slice-op10", {A: wrong, OUT: cut}),
        ("Default/optimizer-SGD/SGD-op11", {A: W, B: cut, OUT: W - 0.5 * cut}),
    ]
    golden = [
        *TORCH,
        ("Gradients/Default/aten_tanh_backward_default-op0", {A: other, OUT: right}),
        ("Default/optimizer-SGD/aten_add__Tensor-op0", {A: W, B: right, OUT: W - 0.5 * right}),
    ]
    comparison = compared(tmp_path, mine, golden)
    wrong_ones = [result.pair.mine.op_name for result in comparison.operators if result.is_wrong]
    assert wrong_ones[0] == "Tanh-op7" and "SGD-op11" not in wrong_ones


def test_what_leads_to_an_operand_that_agrees_is_not_where_a_difference_begins(tmp_path: Path) -> None:
    """One framework adds the biases of a layer and keeps its weights in one piece, which the other does not: the state
    that differs is another operand.
    """
    state, zeros = rng.standard_normal((5, 4), dtype=np.float32), np.zeros((5, 4), np.float32)
    both = BIAS + BIAS[::-1]
    whole = np.concatenate([W.reshape(-1), both])
    mine = [
        ("Default/Add-op0", {A: BIAS, B: BIAS[::-1].copy(), OUT: both}),
        ("Default/Concat-op4", {A: W, B: both, OUT: whole}),
        ("Default/LSTM-op1", {A: X, B: zeros, C: whole, OUT: zeros + HIDDEN}),
        ("Default/Tanh-op2", {A: HIDDEN, OUT: ACTIVE}),
        ("Default/ReduceSum-op3", {A: ACTIVE, OUT: TOTAL}),
    ]
    after = state + HIDDEN
    golden = [
        (
            "Default/aten_mkldnn_rnn_layer_default-op0",
            {A: X, B: W, C: BIAS, ("input", 3): BIAS[::-1].copy(), ("input", 4): state, OUT: after},
        ),
        ("Default/aten_tanh_default-op0", {A: after, OUT: np.tanh(after)}),
        ("Default/aten_sum_dim_IntList-op0", {A: np.tanh(after), OUT: np.tanh(after).sum(1)}),
    ]
    lines = headline(compared(tmp_path, mine, golden))
    assert lines[1].startswith("first difference: Default/LSTM-op1 (LSTM)")
    assert lines[2].startswith("  input 1 differs already")


def test_an_operator_more_is_what_comes_first(tmp_path: Path) -> None:
    scaled = 1.5 * HIDDEN
    extra = [("Default/Mul-op2", {A: HIDDEN, OUT: scaled})]
    comparison = compared(tmp_path, mindspore(np.tanh(scaled), hidden=scaled, extra=extra), TORCH)
    assert headline(comparison)[0].startswith("first difference: only mine has Default/Mul-op2")
    other = compared(tmp_path / "turned", TORCH, mindspore(np.tanh(scaled), hidden=scaled, extra=extra))
    first = headline(other)[0]
    assert first.startswith("first difference: Default/aten_tanh_default-op0") and "which only golden has" in first
    assert "goes on from Default/fc-Linear/aten_addmm_default-op0 without Default/Mul-op2" in first


def test_what_is_computed_once_more_is_no_difference(tmp_path: Path) -> None:
    """An operator that hands on what it reads, as dropout does in evaluation, and one on the side."""
    extra = [
        ("Default/Dropout-op2", {A: HIDDEN, OUT: HIDDEN}),
        ("Default/Cast-op3", {A: HIDDEN, OUT: HIDDEN.astype(np.float64)}),
    ]
    assert compared(tmp_path, mindspore(extra=extra), TORCH).is_agreeing


def test_golden_that_goes_on_is_a_difference(tmp_path: Path) -> None:
    comparison = compared(tmp_path, mindspore()[:-1], TORCH)
    assert not comparison.is_agreeing and comparison.first_differing is None
    text = headline(comparison)[0]
    assert "golden goes on where mine ends" in text and "aten_sum_dim_IntList-op0" in text
    assert json.loads(json_text(comparison))["agree"] is False


def test_other_weights_are_said_to_be_so(tmp_path: Path) -> None:
    weight = W.copy()
    weight[0] += 1
    product = X @ weight.T
    hidden = product + BIAS
    mine: Rows = [
        ("Default/fc-Dense/MatMul-op0", {A: X, B: weight, OUT: product}),
        ("Default/fc-Dense/BiasAdd-op1", {A: product, B: BIAS, OUT: hidden}),
        ("Default/Tanh-op7", {A: hidden, OUT: np.tanh(hidden)}),
        ("Default/ReduceSum-op8", {A: np.tanh(hidden), OUT: np.tanh(hidden).sum(1)}),
    ]
    lines = headline(compared(tmp_path, mine, TORCH))
    assert lines[1].startswith("first difference: Default/fc-Dense/BiasAdd-op1 (MatMul+BiasAdd)")
    assert "input 1 differs already" in lines[2]


def test_parts_of_a_step_in_other_graphs_meet(tmp_path: Path) -> None:
    """MindSpore has one graph for what PyTorch has in two."""
    gradient = np.ones_like(ACTIVE) * (1 - ACTIVE**2)
    weight_gradient = gradient.T @ X
    mine = write_dump(
        tmp_path / "mine",
        [
            *mindspore(),
            ("Gradients/Default/gradTanh/TanhGrad-op9", {A: ACTIVE, OUT: gradient}),
            ("Gradients/Default/gradMatMul/MatMul-op10", {A: gradient, B: X, OUT: weight_gradient}),
        ],
    )
    golden = write_dump(tmp_path / "golden", TORCH)
    backward: Rows = [
        ("Gradients/Default/aten_tanh_backward_default-op0", {A: ACTIVE, OUT: gradient}),
        ("Gradients/Default/aten_mm_default-op0", {A: gradient.T, B: X, OUT: weight_gradient}),
    ]
    write_dump(golden, backward, graph=1)
    comparison = compare_dumps(mine, golden)
    assert comparison.is_agreeing and not comparison.only_golden
    assert named(comparison)["MatMul-op10"] == ("aten_mm_default-op0", BY_VALUES)


def test_a_name_that_agrees_does_not_stand_for_what_only_one_side_has_in_that_graph(tmp_path: Path) -> None:
    """A function that has become a module is in another graph, and the names of the few operators before it agree."""
    before: Rows = [("Default/aten_exp_default-op0", {A: X, OUT: np.exp(X)})]
    wrong = ACTIVE * np.float32(1.5)
    for hidden, is_right in ((ACTIVE, True), (wrong, False)):
        mine = write_dump(tmp_path / f"mine{is_right}", before, graph=3)
        after: Rows = [
            *TORCH[:2],
            ("Default/aten_tanh_default-op0", {A: HIDDEN, OUT: hidden}),
            ("Default/aten_sum_dim_IntList-op0", {A: hidden, OUT: hidden.sum(1)}),
        ]
        write_dump(mine, after, graph=0)
        golden = write_dump(tmp_path / f"golden{is_right}", [*before, *TORCH], graph=3)
        comparison = compare_dumps(mine, golden)
        assert comparison.is_agreeing is is_right
        assert is_right or "aten_tanh_default-op0" in headline(comparison)[0]


def test_operators_that_are_left_over_are_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not each with each: 200 operators that differ, and 400 that golden has more of."""
    asked = 0
    are_of_one_part = Confirmation.are_of_one_part

    def counted(self: Confirmation, own: Placed, other: Placed) -> bool:
        nonlocal asked
        asked += 1
        return are_of_one_part(self, own, other)

    monkeypatch.setattr(Confirmation, "are_of_one_part", counted)
    sides: list[Rows] = []
    for count, off in ((200, 1.5), (600, 1.0)):
        values = [rng.standard_normal(5).astype(np.float32) for rng in map(np.random.default_rng, range(count))]
        rows = [(f"Default/aten_tanh_default-op{at}", {A: x, OUT: off * np.tanh(x)}) for at, x in enumerate(values)]
        sides.append([*rows, ("Default/aten_exp_default-op0", {A: X, OUT: np.exp(X)})])
    sides[0] = [(name.replace("tanh", "sin") if "tanh" in name else name, tensors) for name, tensors in sides[0]]
    assert not compared(tmp_path, *sides).is_agreeing
    assert 0 < asked <= 4 * 800


def test_what_shares_an_operand_is_paired_before_what_stands_there(tmp_path: Path) -> None:
    """Noise times the deviation, whose logarithm one side does not halve; both need the variance elsewhere."""
    spread, noise = X, rng.standard_normal(X.shape, dtype=np.float32)
    half, variance = np.float32(0.5) * spread, np.exp(spread)
    mine: Rows = [
        ("Default/aten_exp_default-op0", {A: spread, OUT: variance}),
        ("Default/aten_mul_Tensor-op0", {A: noise, B: variance, OUT: noise * variance}),
        ("Default/aten_tanh_default-op0", {A: noise * variance, OUT: np.tanh(noise * variance)}),
    ]
    drawn = noise * np.exp(half)
    golden: Rows = [
        ("Default/aten_mul_Tensor-op0", {A: spread, OUT: half}),
        ("Default/aten_exp_default-op0", {A: half, OUT: np.exp(half)}),
        ("Default/aten_mul_Tensor-op1", {A: noise, B: np.exp(half), OUT: drawn}),
        ("Default/aten_tanh_default-op0", {A: drawn, OUT: np.tanh(drawn)}),
        ("Default/aten_exp_default-op1", {A: spread, OUT: variance}),
    ]
    text = headline(compared(tmp_path, mine, golden))[0]
    assert "of mine goes on without Default/aten_mul_Tensor-op0" in text


@pytest.mark.parametrize("is_taken_off", [False, True])
def test_a_loss_that_is_multiplied_and_never_divided_again_is_named(tmp_path: Path, is_taken_off: bool) -> None:
    loss, scale, ones = (
        TOTAL.mean(),
        np.float32(64),
        np.linspace(1, 2, ACTIVE.size, dtype=np.float32).reshape(ACTIVE.shape),
    )
    gradient = ones * (1 - ACTIVE**2)
    weight = gradient.T @ X

    def training(factor: np.float32) -> Rows:
        return [
            *TORCH,
            ("Default/aten_mean_default-op0", {A: TOTAL, OUT: loss}),
            *([("Default/aten_mul_Tensor-op0", {A: loss, OUT: factor * loss})] if factor != 1 else []),
            ("Gradients/Default/aten_tanh_backward_default-op0", {A: factor * ones, B: ACTIVE, OUT: factor * gradient}),
            ("Gradients/Default/aten_mm_default-op0", {A: factor * gradient.T, B: X, OUT: factor * weight}),
        ]

    def update(used: Array) -> Rows:
        return [("Default/aten_sub__Tensor-op0", {A: W, B: used, OUT: W - used})]

    divided: Rows = [("Default/aten_div_Tensor-op0", {A: scale * weight, OUT: weight})]
    mine = [*training(scale), *(divided if is_taken_off else []), *update(weight if is_taken_off else scale * weight)]
    comparison = compared(tmp_path, mine, [*training(np.float32(1)), *update(weight)])
    assert comparison.is_agreeing is is_taken_off
    assert is_taken_off or headline(comparison)[0].startswith(
        "first difference: only mine has Default/aten_mul_Tensor-op0"
    )


def test_a_gradient_of_zero_is_no_multiple_of_another(tmp_path: Path) -> None:
    ones = np.linspace(1, 2, ACTIVE.size, dtype=np.float32).reshape(ACTIVE.shape)
    weight, gain = ("output", 1), np.linspace(3, 4, 4, dtype=np.float32)
    wrong: Rows = [("Gradients/Default/LayerNormGrad-op9", {A: ACTIVE, B: HIDDEN, OUT: 0 * ones, weight: 2 * gain})]
    right: Rows = [
        (
            "Gradients/Default/aten_native_layer_norm_backward_default-op0",
            {A: ACTIVE, B: HIDDEN, OUT: ones * HIDDEN, weight: gain},
        )
    ]
    comparison = compared(tmp_path, [*mindspore(), *wrong], [*TORCH, *right])
    assert not comparison.is_agreeing and "LayerNormGrad-op9" in "".join(headline(comparison))


def test_a_mapping_file_is_for_what_remains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, golden = write_dump(tmp_path / "mine", TORCH), write_dump(tmp_path / "golden", mindspore())
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"types": {"aten.addmm.default": ["MatMul", "BiasAdd"], "aten.t.default": []}}))
    assert main(["compare", str(mine), str(golden), "--mapping", str(rules)]) == 0
    assert "agree: all 3 pairs" in capsys.readouterr().out


@pytest.mark.parametrize("factor", [1.0, 1.1])
def test_one_operator_is_written_as_two(factor: float, tmp_path: Path) -> None:
    """A product has the name of golden's, reads the same and makes something else: another way to write it, if what
    follows is the same.
    """
    kept = np.float32(factor) * (ACTIVE - np.float32(0.3) * ACTIVE)
    golden = [
        *TORCH[:3],
        ("Default/aten_mul_Tensor-op0", {A: ACTIVE, OUT: np.float32(0.7) * ACTIVE}),
        (
            "Default/aten_add_Tensor-op0",
            {A: np.float32(0.7) * ACTIVE, B: HIDDEN, OUT: np.float32(0.7) * ACTIVE + HIDDEN},
        ),
    ]
    mine = [
        *TORCH[:3],
        ("Default/aten_mul_Tensor-op0", {A: ACTIVE, OUT: np.float32(0.3) * ACTIVE}),
        ("Default/aten_sub_Tensor-op0", {A: ACTIVE, B: np.float32(0.3) * ACTIVE, OUT: kept}),
        ("Default/aten_add_Tensor-op0", {A: kept, B: HIDDEN, OUT: kept + HIDDEN}),
    ]
    assert compared(tmp_path, mine, golden).is_agreeing is (factor == 1.0)


def test_when_two_frameworks_are_compared(tmp_path: Path) -> None:
    rows: dict[str, Rows] = {
        "torch": TORCH,
        "mindspore": mindspore(),
        "onnx": [("Gemm-op0", {A: X, OUT: HIDDEN})],
        "shared": [("Add-op0", {A: X, OUT: X})],
    }
    torch, mine, onnx, shared = (
        read_steps(DumpDir.open(write_dump(tmp_path / name, listed))) for name, listed in rows.items()
    )
    assert is_between_frameworks(torch, mine) and is_between_frameworks(mine, torch)
    assert is_between_frameworks(onnx, mine) and is_between_frameworks(onnx, torch)
    assert not is_between_frameworks(torch, torch) and not is_between_frameworks(mine, mine)
    # What both have is nobody's word.
    assert not is_between_frameworks(shared, mine) and not is_between_frameworks(shared, onnx)


def test_what_was_found_can_be_written_and_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, golden = write_dump(tmp_path / "mine", mindspore()), write_dump(tmp_path / "golden", TORCH)
    found = tmp_path / "found.json"
    assert main(["compare", str(mine), str(golden), "--write-mapping", str(found)]) == 0
    assert json.loads(found.read_text())["operators"]["Default/Tanh-op7"] == "Default/aten_tanh_default-op0"
    capsys.readouterr()
    assert main(["compare", str(mine), str(golden), "--mapping", str(found), "--all"]) == 0
    printed = capsys.readouterr().out
    assert "all 3 pairs" in printed and "in each row: iteration 0, found by mapping" in printed


def test_rules_that_fit_nothing_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, golden = write_dump(tmp_path / "mine", mindspore()), write_dump(tmp_path / "golden", TORCH)
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"types": {"aten.addmn.default": ["MatMul", "BiasAdd"], "aten.tanh.default": "Tanh"}}))
    assert main(["compare", str(mine), str(golden), "--mapping", str(rules)]) == 0
    out = capsys.readouterr().out
    assert 'mapping: no type of either dump is aten.addmn.default. Did you mean "aten_addmm_default"' in out
    assert out.count("mapping: no ") == 1


def test_one_framework_that_takes_operators_apart_in_two_ways(tmp_path: Path) -> None:
    """Inductor's softmax is five operators, and one of them alone has the name of another of mine."""
    exps = np.exp(HIDDEN - HIDDEN.max(-1, keepdims=True))
    soft = exps / exps.sum(-1, keepdims=True)
    mine: Rows = [*TORCH[:2], ("Default/aten__softmax_default-op0", {A: HIDDEN, OUT: soft})]
    golden: Rows = [
        *TORCH[:2],
        ("Default/aten_amax_default-op0", {A: HIDDEN, OUT: HIDDEN.max(-1, keepdims=True)}),
        ("Default/aten_sub_Tensor-op0", {A: HIDDEN, OUT: HIDDEN - HIDDEN.max(-1, keepdims=True)}),
        ("Default/aten_exp_default-op0", {A: HIDDEN - HIDDEN.max(-1, keepdims=True), OUT: exps}),
        ("Default/aten_sum_dim_IntList-op0", {A: exps, OUT: exps.sum(-1, keepdims=True)}),
        ("Default/aten_div_Tensor-op0", {A: exps, B: exps.sum(-1, keepdims=True), OUT: soft}),
    ]
    comparison = compared(tmp_path, mine, golden)
    assert comparison.is_agreeing
    assert named(comparison)["aten__softmax_default-op0"] == ("aten_div_Tensor-op0", BY_VALUES)


def test_a_reference_needs_tensors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "rank_0" / "Net" / "0" / "0"
    folder.mkdir(parents=True)
    head = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value\n"
    (folder / "statistic.csv").write_text(f"{head}Add,Add-op1,0,0,1,output,0,4,float32,(1),1,1\n")
    assert main(["compare", str(tmp_path), str(tmp_path), "--reference", str(tmp_path)]) == 2
    assert "reference: expected none beside dumps of statistics alone" in capsys.readouterr().err
