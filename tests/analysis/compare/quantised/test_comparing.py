"""A quantised model against the one in floats, end to end: which operator adds out of proportion, and why."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.analysis import compare_dumps, headline, json_text
from msdump.analysis.compare.mapping import OperatorMap
from msdump.analysis.compare.quantised.words import telling_names
from msdump.analysis.overview.contents import Contents
from msdump.analysis.overview.findings import findings
from msdump.cli.main import main
from tests.analysis.compare.quantised.layers import (
    FORMS,
    OTHER_FORMS,
    Model,
    Operators,
    dumped,
    in_floats,
    in_operators,
    in_pairs,
    in_sums,
    with_fakes,
)

forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def changed(operators: Operators, name: str, **tensors: object) -> Operators:
    """The same with other tensors of one operator, such as input_0=..."""
    found = []
    for full_name, own in operators:
        if full_name.endswith(name):
            own = {**own, **{(key[:-2], int(key[-1])): value for key, value in tensors.items()}}
        found.append((full_name, own))
    return found


@forms
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ordinary_rounding_is_no_finding(form, seed: int, tmp_path: Path) -> None:
    model = Model(seed=seed)
    found = compare_dumps(dumped(tmp_path / "mine", form(model)), dumped(tmp_path / "golden", in_floats(model)))
    assert found.is_agreeing and found.quantised is not None and found.quantised.finding is None
    assert headline(found)[0].startswith("agree: all ")
    assert "agree, up to quantisation to 8 bits: errors of at most 0.0" in headline(found)[0]
    (step,) = found.steps
    assert not step.only_mine and not step.only_golden
    assert {one.golden.op_type.partition("+")[0] for one in found.quantised.ranking if one.weight} == {"MatMul"}
    assert all(40 < one.weight.sqnr_db < 55 for one in found.quantised.ranking if one.weight)


@pytest.mark.parametrize("form", OTHER_FORMS.values(), ids=OTHER_FORMS)
def test_codes_without_operators_of_their_own(form, tmp_path: Path) -> None:
    model = Model()
    mine, golden = dumped(tmp_path / "mine", form(model)), dumped(tmp_path / "golden", in_floats(model)[1:])
    found = compare_dumps(mine, golden)
    assert found.is_agreeing and found.quantised is not None
    weights = [one.weight.sqnr_db for one in found.quantised.ranking if one.weight is not None]
    assert len(weights) == 4 and min(weights) > 40
    assert {one.golden.op_type for one in found.quantised.ranking if one.weight is not None} == {"MatMul"}
    assert max(result.output_error or 0.0 for result in found.operators) < 0.05


def test_a_weight_that_is_rounded_in_floats_has_its_noise(tmp_path: Path) -> None:
    model = Model(outlier=1)
    mine, golden = dumped(tmp_path / "mine", with_fakes(model)), dumped(tmp_path / "golden", in_floats(model)[1:])
    found = compare_dumps(mine, golden)
    assert found.quantised is not None and found.quantised.finding is not None
    assert found.quantised.finding.operator.label == "Default/l1/MatMul-op1"
    assert "one outlier in channel 5" in headline(found)[0]


@forms
@pytest.mark.parametrize("layer", [0, 2, 3])
def test_a_weight_with_an_outlier_is_named(form, layer: int, tmp_path: Path) -> None:
    model = Model(outlier=layer)
    found = compare_dumps(dumped(tmp_path / "mine", form(model)), dumped(tmp_path / "golden", in_floats(model)))
    assert found.quantised is not None and found.quantised.finding is not None and not found.is_agreeing
    finding = found.quantised.finding
    assert f"l{layer}/" in finding.operator.label and found.quantised.ranking[0] is finding
    assert finding.weight is not None and (finding.weight.channel, finding.weight.outliers) == (5, 1)
    first, where, *_ = headline(found)
    assert f"l{layer}/" in first and " adds " in first and " dB, the others 4" in first
    assert "one outlier in channel 5, " in first
    assert where.strip() == "rank 0, graph 0, iteration 0"


@pytest.mark.parametrize("form", [in_pairs, in_operators])
@pytest.mark.parametrize("layer", [0, 1, 3])
def test_a_range_that_clips_is_named(form, layer: int, tmp_path: Path) -> None:
    model = Model(narrow=layer)
    found = compare_dumps(dumped(tmp_path / "mine", form(model)), dumped(tmp_path / "golden", in_floats(model)))
    assert found.quantised is not None and found.quantised.finding is not None
    finding = found.quantised.finding
    expected = f"QuantizeLinear-op{layer + 2}" if form is in_pairs else f"QLinearMatMul-op{layer}"
    assert finding.operator.op_name == expected
    after = model.activations()[layer + 1]
    assert finding.activation is not None
    assert finding.activation.clipped == pytest.approx(np.mean(after > after.max() / 5), abs=0.03)
    assert "its range ends at " in headline(found)[0] and " and clips " in headline(found)[0]


@forms
def test_either_side_may_be_the_quantised_one(form, tmp_path: Path) -> None:
    model = Model(outlier=1)
    found = compare_dumps(dumped(tmp_path / "mine", in_floats(model)), dumped(tmp_path / "golden", form(model)))
    assert found.quantised is not None and found.quantised.finding is not None
    assert found.quantised.side == "golden" and "l1/" in found.quantised.finding.operator.label


def test_two_dumps_of_one_quantised_model_are_compared_code_by_code(tmp_path: Path) -> None:
    model = Model()
    mine = dumped(tmp_path / "mine", in_operators(model))
    golden = dumped(tmp_path / "golden", in_operators(model))
    assert compare_dumps(mine, golden).quantised is None
    assert headline(compare_dumps(mine, golden)) == ["agree: all 6 pairs of operators and parameters agree."]


def test_two_forms_of_one_quantised_model_make_the_same_numbers(tmp_path: Path) -> None:
    model = Model()
    pairs, operators = dumped(tmp_path / "a", in_pairs(model)), dumped(tmp_path / "b", in_operators(model))
    for mine, golden in ((pairs, operators), (operators, pairs)):
        found = compare_dumps(mine, golden)
        assert found.is_agreeing and not any(step.only_mine or step.only_golden for step in found.steps)
        errors = [result.output_error for result in found.operators if "MatMul" in result.pair.mine.op_type]
        assert len(errors) == 4 and max(errors) < 0.01


def test_two_constants_with_one_code_are_no_other_data(tmp_path: Path) -> None:
    """1 and 0.5 are 255 times their scales: which of them an operator reads, the code does not tell."""
    model = Model()
    codes, floats = in_operators(model), in_floats(model)
    zero, top = np.uint8(0), np.uint8(255)
    scales = [np.float32(value / 255) for value in (1, 0.5, 16)]
    for number, scale in enumerate(scales[:2], 1):
        tensors = {("input", 0): scale * np.float32(255), ("input", 1): scale, ("input", 2): zero, ("output", 0): top}
        codes.insert(1, (f"Default/QuantizeLinear-op{number}", tensors))
    (y_scale, y_zero), y = model.ranges()[-1], codes[-1][1]["output", 0]
    total = (y.astype(np.float32) - y_zero) * np.float32(y_scale) + 1
    inputs = [y, np.float32(y_scale), np.uint8(y_zero), top, scales[0], zero, scales[2], zero]
    tensors = {("input", slot): one for slot, one in enumerate(inputs)}
    codes.append(("Default/QLinearAdd-op0", {**tensors, ("output", 0): np.rint(total / scales[2]).astype(np.uint8)}))
    y = floats[-1][1]["output", 0]
    floats.append(("Default/Add-op0", {("input", 0): y, ("input", 1): np.float32(1), ("output", 0): y + 1}))
    found = compare_dumps(dumped(tmp_path / "mine", codes), dumped(tmp_path / "golden", floats))
    assert found.is_agreeing and found.quantised is not None and found.quantised.largest_error < 0.1


@pytest.mark.parametrize("offset", [0.0, 2.0])
def test_a_mean_of_terms_that_cancel_is_as_exact_as_these(offset: float, tmp_path: Path) -> None:
    """Their error is many times as large as the mean; a mean that is wrong differs all the same."""
    model = Model()
    codes, floats = in_sums(model), in_floats(model)
    reference = floats[-1][1]["output", 0]
    for operators, added in ((codes, offset), (floats, 0.0)):
        x = operators[-1][1]["output", 0]
        middle = x - reference.mean(axis=1, keepdims=True) * np.float32(0.999999)
        mean = middle.mean(axis=1, keepdims=True) + np.float32(added)
        operators.append(("Default/Sub-op0", {("input", 0): x, ("output", 0): middle}))
        operators.append(("Default/ReduceMean-op0", {("input", 0): middle, ("output", 0): mean}))
    found = compare_dumps(dumped(tmp_path / "mine", codes), dumped(tmp_path / "golden", floats))
    (row,) = [one for one in found.operators if one.pair.mine.op_name == "ReduceMean-op0"]
    assert (row.output_error or 0) > 10 and found.is_agreeing is (offset == 0)


def test_an_error_that_leaves_nothing_does_not_agree(tmp_path: Path) -> None:
    """Though no operator with codes makes it, and what follows takes it away."""
    model = Model()
    codes, floats = in_sums(model), in_floats(model)
    x, y = codes[-1][1]["output", 0], floats[-1][1]["output", 0]
    codes.append(("Default/Abs-op0", {("input", 0): x, ("output", 0): x * np.float32(0.2)}))
    codes.append(("Default/Sign-op0", {("input", 0): x * np.float32(0.2), ("output", 0): np.sign(y)}))
    floats.append(("Default/Abs-op0", {("input", 0): y, ("output", 0): y}))
    floats.append(("Default/Sign-op0", {("input", 0): y, ("output", 0): np.sign(y)}))
    found = compare_dumps(dumped(tmp_path / "mine", codes), dumped(tmp_path / "golden", floats))
    assert not found.is_agreeing and "Default/Abs-op0 (Abs)" in headline(found)[0]


def test_other_data_is_no_rounding(tmp_path: Path) -> None:
    model, other = Model(), Model()
    other.data = other.data + np.float32(0.05)
    found = compare_dumps(dumped(tmp_path / "mine", in_pairs(model)), dumped(tmp_path / "golden", in_floats(other)))
    assert not found.is_agreeing and found.quantised is None
    assert any("the runs had different weights or data" in line for line in headline(found))


def test_a_part_of_the_model_alone_may_be_quantised(tmp_path: Path) -> None:
    model = Model(outlier=0)
    floats, codes = in_floats(model), in_sums(model)
    x = codes[-1][1]["output", 0]
    del codes[-6:], floats[-2:]  # the last layer, whose place one in floats takes
    x = codes[-1][1]["output", 0]
    y = x @ model.weights[3]
    last = ("Default/l3/MatMul-op3", {("input", 0): x, ("input", 1): model.weights[3], ("output", 0): y})
    golden_x = floats[-1][1]["output", 0]
    golden_last = (last[0], {**last[1], ("input", 0): golden_x, ("output", 0): golden_x @ model.weights[3]})
    found = compare_dumps(
        dumped(tmp_path / "mine", [*codes, last]), dumped(tmp_path / "golden", [*floats, golden_last])
    )
    assert found.quantised is not None and found.quantised.finding is not None
    assert "l0/" in found.quantised.finding.operator.label
    (unquantised,) = [one for one in found.quantised.ranking if one.operator.op_name == "MatMul-op3"]
    assert not unquantised.is_quantised


def test_a_wrong_operator_beside_ordinary_rounding_is_named(tmp_path: Path) -> None:
    model = Model()
    codes = in_sums(model)
    (index,) = [number for number, (name, _) in enumerate(codes) if name.endswith("Relu-op3")]
    name, tensors = codes[index]
    codes[index] = name, {**tensors, ("output", 0): np.abs(tensors["input", 0])}
    found = compare_dumps(dumped(tmp_path / "mine", codes), dumped(tmp_path / "golden", in_floats(model)))
    assert not found.is_agreeing
    assert headline(found)[0].startswith("Default/l3/Relu-op3 (Relu) adds ")
    assert headline(found)[0].endswith(": it has no codes")


def test_nan_in_a_quantised_model_differs(tmp_path: Path) -> None:
    model = Model()
    codes = in_sums(model)
    name, tensors = codes[-1]
    spoiled = np.array(tensors["output", 0])
    spoiled[0, 0] = np.nan
    codes[-1] = name, {**tensors, ("output", 0): spoiled}
    found = compare_dumps(dumped(tmp_path / "mine", codes), dumped(tmp_path / "golden", in_floats(model)))
    assert not found.is_agreeing and "NaN or Inf in 1 places" in "\n".join(headline(found))


def test_a_scale_of_zero_is_said(tmp_path: Path) -> None:
    model = Model()
    codes = changed(in_operators(model), "QLinearMatMul-op1", input_4=np.asarray(0, np.float32))
    found = compare_dumps(dumped(tmp_path / "mine", codes), dumped(tmp_path / "golden", in_floats(model)))
    assert found.quantised is not None
    (row,) = [one for one in found.quantised.ranking if one.operator.op_name == "QLinearMatMul-op1"]
    assert row.weight is not None and row.weight.sqnr_db == pytest.approx(0)


def test_codes_that_the_model_does_not_multiply_excuse_nothing(tmp_path: Path) -> None:
    model = Model()
    operators = in_floats(model)
    picture = np.ones((4, 4), np.int8)
    cast = ("Default/Cast-op0", {("input", 0): picture, ("output", 0): picture.astype(np.float32)})
    wrong = changed(operators, "MatMul-op2", output_0=1.1 * operators[5][1]["output", 0])
    assert wrong[5][0].endswith("MatMul-op2")
    found = compare_dumps(dumped(tmp_path / "mine", [cast, *wrong]), dumped(tmp_path / "golden", operators))
    assert not found.is_agreeing and found.quantised is None
    assert headline(found)[0].startswith("first wrong operator: Default/l2/MatMul-op2")


def test_a_tolerance_says_what_is_no_finding(tmp_path: Path) -> None:
    model = Model(outlier=2)
    mine, golden = dumped(tmp_path / "mine", in_pairs(model)), dumped(tmp_path / "golden", in_floats(model))
    assert compare_dumps(mine, golden, tolerance=0.3).is_agreeing
    assert not compare_dumps(mine, golden, tolerance=0.001).is_agreeing
    assert not compare_dumps(mine, golden, tolerance=0.01).is_agreeing


def test_no_sentence_has_a_bound_that_does_not_judge(tmp_path: Path) -> None:
    for number, more in enumerate(({"outlier": 2}, {"narrow": 3}, {})):
        model = Model(**more)
        golden = dumped(tmp_path / f"golden{number}", in_floats(model))
        found = compare_dumps(dumped(tmp_path / f"mine{number}", in_pairs(model)), golden)
        reasons = {(one.status, one.reason) for result in found.operators for one in result.tensors if one.reason}
        agreeing = {reason for status, reason in reasons if status == "agrees"}
        assert any(reason.endswith(", up to quantisation") for reason in agreeing)
        assert not any(">" in reason for reason in agreeing)
        assert not any("> 0.0001" in reason or "> 0.001" in reason for _, reason in reasons)
        assert any(reason.endswith("out of proportion") for _, reason in reasons) is bool(more)


def test_an_error_that_leaves_nothing_has_the_bound_of_that(tmp_path: Path) -> None:
    model = Model()
    codes, floats = in_sums(model), in_floats(model)
    x, y = codes[-1][1]["output", 0], floats[-1][1]["output", 0]
    codes.append(("Default/Abs-op0", {("input", 0): x, ("output", 0): x * np.float32(0.2)}))
    floats.append(("Default/Abs-op0", {("input", 0): y, ("output", 0): y}))
    found = compare_dumps(dumped(tmp_path / "mine", codes), dumped(tmp_path / "golden", floats))
    reasons = [one.reason for result in found.differing for one in result.tensors if one.status == "differs"]
    assert len(reasons) == 1 and (" > 0.5" in reasons[0] or reasons[0].endswith("out of proportion"))


def test_blocks_with_the_same_inner_names_stay_apart_in_the_ranking(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def in_blocks(operators: Operators) -> Operators:
        return [(re.sub(r"/l([0-9])/(?:x/)?", r"/block\1/proj/up/", name), own) for name, own in operators]

    model = Model(outlier=2)
    mine = dumped(tmp_path / "mine", in_blocks(in_pairs(model)))
    assert main(["compare", str(mine), str(dumped(tmp_path / "golden", in_blocks(in_floats(model)))), "--all"]) == 1
    printed = capsys.readouterr().out
    rows = [line.split()[1] for line in printed.splitlines() if re.match("(WRONG|-) +[^ ]", line)]
    assert rows[0].startswith("up/MatMul-op") and len(set(rows)) == len(rows)


def test_names_of_the_ranking_are_as_long_as_tells_them_apart() -> None:
    labels = ["/b.0/up/Gemm", "/b.1/up/Gemm", "/b.1/down/Gemm", "/x/b.1/up/Gemm", "Gemm"]
    names = telling_names(labels)
    assert names["/b.1/down/Gemm"] == "down/Gemm" and names["/b.0/up/Gemm"] == "b.0/up/Gemm"
    assert names["/x/b.1/up/Gemm"] == "x/b.1/up/Gemm" and names["Gemm"] == "Gemm"
    assert len(set(names.values())) == len(labels)


def test_a_mapping_pairs_across_a_folded_activation(tmp_path: Path) -> None:
    model = Model(outlier=2)
    mine, golden = dumped(tmp_path / "mine", in_pairs(model)), dumped(tmp_path / "golden", in_floats(model))
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"types": {"MatMul": ["MatMul", "Relu"]}}))
    found = compare_dumps(mine, golden, mapping=rules)
    chains = [result for result in found.operators if result.pair.how == "mapping"]
    assert len(chains) == 4 and all(result.input_error < 0.1 for result in chains)
    assert found.quantised is not None and found.quantised.finding is not None
    assert found.quantised.finding.operator.label == "Default/l2/MatMul-op2"


def test_rules_need_not_name_what_quantises(tmp_path: Path) -> None:
    model = Model(outlier=2)
    mine, golden = dumped(tmp_path / "mine", in_pairs(model)), dumped(tmp_path / "golden", in_floats(model))
    mapping = OperatorMap({"MatMul": ("QuantizeLinear", "DequantizeLinear", "MatMul")})
    found = compare_dumps(mine, golden, mapping=mapping)
    assert sum(result.pair.how == "mapping" for result in found.operators) == 4
    assert found.quantised is not None and found.quantised.finding is not None
    assert found.quantised.finding.operator.label == "Default/l2/MatMul-op2"


def test_statistics_alone_say_what_they_cannot_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = Model()
    folders = []
    for name, operators in (("mine", in_operators(model)), ("golden", in_floats(model)), ("other", in_floats(model))):
        folders.append(tmp_path / name)
        dumped(folders[-1], operators)
        main(["stat", str(folders[-1]), "--csv", str(folders[-1] / "statistic.csv")])
        for path in folders[-1].rglob("*.npy"):
            path.unlink()
    capsys.readouterr()
    main(["stat", str(folders[0]), "--diff", str(folders[1])])
    assert "one side is a quantised model: statistics of codes do not tell" in capsys.readouterr().out
    main(["stat", str(folders[2]), "--diff", str(folders[1])])
    assert "quantised" not in capsys.readouterr().out


def test_the_command_ranks_and_its_status_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = Model(outlier=2)
    mine, golden = dumped(tmp_path / "mine", in_pairs(model)), dumped(tmp_path / "golden", in_floats(model))
    assert main(["compare", str(mine), str(golden)]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("Default/l2/MatMul-op2 (MatMul) adds ")
    # The ranking begins with it, over several lines.
    ranking = printed[printed.index("WRONG ") :]
    first = " ".join(ranking[: ranking.index("\n- ")].split())
    assert first.startswith("WRONG l2/MatMul-op2 ") and "weight dB" in first and "outlier channel 5" in first
    healthy = Model()
    mine, golden = dumped(tmp_path / "m", in_pairs(healthy)), dumped(tmp_path / "g", in_floats(healthy))
    assert main(["compare", str(mine), str(golden)]) == 0
    assert "up to quantisation" in capsys.readouterr().out


def test_a_report_opens_with_it(tmp_path: Path) -> None:
    model = Model(narrow=3)
    mine, golden = dumped(tmp_path / "mine", in_pairs(model)), dumped(tmp_path / "golden", in_floats(model))
    (found,) = findings(Contents(mine, golden))
    assert found.kind == "first-wrong" and found.operator.op_name == "QuantizeLinear-op5"
    assert " and clips " in found.text.splitlines()[0]


def test_the_document_has_the_ranking(tmp_path: Path) -> None:
    model = Model(outlier=2)
    found = compare_dumps(dumped(tmp_path / "mine", in_pairs(model)), dumped(tmp_path / "golden", in_floats(model)))
    document = json.loads(json_text(found))["quantised"]
    assert document["side"] == "mine" and document["finding"]["operator"] == "Default/l2/MatMul-op2"
    assert document["finding"]["outlier_channel"] == 5 and document["finding"]["bits"] == 8
    added = [one["added"] for one in document["ranking"] if one["weight_sqnr_db"] is not None]
    assert added == sorted(added, reverse=True) and document["total"] >= added[0]


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**16), st.integers(3, 6), st.sampled_from(sorted(FORMS)), st.data())
def test_what_is_ordinary_and_what_is_not(seed: int, layers: int, form: str, data: st.DataObject) -> None:
    outlier = data.draw(st.none() | st.integers(0, layers - 1))
    model = Model(layers, outlier, seed=seed)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        found = compare_dumps(dumped(root / "mine", FORMS[form](model)), dumped(root / "golden", in_floats(model)))
        assert found.quantised is not None
        ranked = [one for one in found.quantised.ranking if one.weight is not None]
        assert len(ranked) == layers
        if outlier is None:
            assert found.is_agreeing
        else:
            worst = min(ranked, key=lambda one: one.weight.sqnr_db)
            assert f"l{outlier}/" in worst.operator.label and worst.weight.channel == 5
            assert found.quantised.finding in (None, worst)
