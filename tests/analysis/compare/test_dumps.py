"""Two dumps: which operator goes wrong, what is merely passed on, what has no counterpart."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.analysis import Comparison, compare_dumps, csv_text, headline, json_text
from msdump.analysis._payload import is_small_copy
from msdump.analysis.compare._measure import Measurer
from msdump.analysis.compare.report import summary, table_rows
from msdump.analysis.distance.bounds import BOUNDS, real_dtype
from msdump.analysis.distance.metrics import METRICS
from msdump.errors import ConfigError, FormatError
from msdump.formats.bin import bin_chunks
from msdump.formats.dump_dir import DumpDir
from msdump.tensors.records import TensorRecord
from tests.analysis.small_dump import floats, write_dump

IN, WEIGHT, OUT = ("input", 0), ("input", 1), ("output", 0)
RNG = np.random.default_rng(3)
X, W = RNG.standard_normal((4, 8)).astype(np.float32), RNG.standard_normal((8, 8)).astype(np.float32)


def network(root: Path, dtype: Any = np.float32, noise: float = 0.0, wrong: str = "", scale: float = 3.0) -> Path:
    """Three products in a row; the one called `wrong` gets its result times `scale`."""
    rng = np.random.default_rng(9)
    written, x = [], X.astype(dtype)
    for number in (1, 2, 3):
        y = (x.astype(np.float64) @ W.astype(np.float64) / 4 * (1 + noise * rng.standard_normal((4, 8)))).astype(dtype)
        name = f"Default/net/MatMul-op{number}"
        y = (y * dtype(scale)).astype(dtype) if name.endswith(wrong or "?") else y
        written.append((name, {IN: x, WEIGHT: W.astype(dtype), OUT: y}))
        x = y
    return write_dump(root, written)


def test_a_dump_agrees_with_itself(tmp_path: Path) -> None:
    found = compare_dumps(network(tmp_path / "a"), network(tmp_path / "b"))
    assert found.is_agreeing and found.first_wrong is None and found.first_differing is None
    assert {tensor.status for operator in found.operators for tensor in operator.tensors} == {"identical"}
    assert headline(found) == ["agree: all 3 pairs of operators and parameters agree."]
    assert all(operator.added_error == 0 for operator in found.operators)


def test_the_first_wrong_operator_is_the_one_that_adds_the_error(tmp_path: Path) -> None:
    golden = network(tmp_path / "golden")
    found = compare_dumps(network(tmp_path / "mine", noise=1e-7, wrong="op2"), golden)
    assert found.first_wrong is not None and found.first_wrong is found.first_differing
    assert found.first_wrong.pair.mine.op_name == "MatMul-op2"
    assert found.first_wrong.added_error == pytest.approx(2.0, rel=1e-4)
    first, _, third = found.operators
    assert first.is_agreeing and 0 < first.output_error < 1e-5
    assert not third.is_agreeing and not third.is_wrong and third.added_error == pytest.approx(0, abs=1e-3)
    lines = headline(found)
    assert lines[0].startswith("first wrong operator: Default/net/MatMul-op2 (MatMul), rank 0, graph 0, iteration 0")
    assert "relative error 2 > 0.0001" in lines[1]
    rows = list(table_rows(found, shows_all=False))
    assert [row[1] for row in rows] == ["MatMul-op2", "MatMul-op3"]
    assert [row[0] for row in rows] == ["WRONG", "differs"]
    assert len(list(table_rows(found, shows_all=True))) == 3


def test_a_weight_that_differs_is_nobodys_fault(tmp_path: Path) -> None:
    golden = network(tmp_path / "golden")
    changed = W.copy()
    changed[0, 0] += 5
    mine = write_dump(tmp_path / "mine", [("Default/net/MatMul-op1", {IN: X, WEIGHT: changed, OUT: X @ changed / 4})])
    found = compare_dumps(mine, golden)
    assert found.first_wrong is None
    assert found.first_differing is not None and found.first_differing.pair.mine.op_name == "MatMul-op1"
    text = "\n".join(headline(found))
    assert "no operator goes wrong by itself" in text and "input 1 differs already" in text
    assert "the runs had different weights or data" in text


def test_bounds_know_the_dtype(tmp_path: Path) -> None:
    golden = network(tmp_path / "golden")
    assert compare_dumps(network(tmp_path / "half", np.float16), golden).is_agreeing
    off = network(tmp_path / "off", noise=1e-3)
    assert not compare_dumps(off, golden).is_agreeing
    assert compare_dumps(off, golden, tolerance=0.1).is_agreeing
    assert [BOUNDS[name].relative for name in ("float64", "float32", "float16", "bfloat16")] == sorted(
        BOUNDS[name].relative for name in ("float64", "float32", "float16", "bfloat16")
    )
    widened = (np.arange(1, 400, dtype=np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
    assert real_dtype(widened, "float32") == "bfloat16"
    assert real_dtype(np.zeros(100, np.float32), "float32") == "float32"
    assert real_dtype(RNG.standard_normal(100).astype(np.float32), "float32") == "float32"


def test_a_rounded_constant_is_not_wrong(tmp_path: Path) -> None:
    """bfloat16 against float32: the files tell the dtype, one number does not."""
    x = RNG.standard_normal((4, 8)).astype(np.float32)
    roots = []
    for name, dtype in (("mine", ml_dtypes.bfloat16), ("golden", np.float32)):
        constant, a = np.array(0.1, dtype), x.astype(dtype)
        operators = [
            ("Default/Fill-op1", {("output", 0): constant}),
            ("Default/Mul-op2", {("input", 0): a, ("input", 1): constant, ("output", 0): a * constant}),
        ]
        roots.append(write_dump(tmp_path / name, operators))
    result = compare_dumps(*roots)
    assert result.is_agreeing and result.first_wrong is None
    fill = next(iter(result.operators)).outputs[0]
    assert (fill.mine.dtype, fill.mine.true_dtype, fill.golden.true_dtype) == ("float32", "bfloat16", "float32")
    assert fill.reason == "dtype bfloat16 against float32"
    # Between two float32 runs that difference is one.
    wrong = write_dump(tmp_path / "wrong", [("Default/Fill-op1", {("output", 0): floats(0.10009765625)[0]})])
    assert not compare_dumps(wrong, roots[1]).is_agreeing


def test_three_way_blames_only_what_is_worse_than_the_other_low_precision_run(tmp_path: Path) -> None:
    high = network(tmp_path / "high", np.float64)
    golden, mine = network(tmp_path / "golden", np.float16), network(tmp_path / "mine", np.float16, noise=1e-4)
    assert compare_dumps(mine, golden, high).is_agreeing
    broken = network(tmp_path / "broken", np.float16, wrong="op2", scale=1.03)
    found = compare_dumps(broken, golden, high)
    assert found.reference == high.absolute()
    assert found.first_wrong is not None and found.first_wrong.pair.mine.op_name == "MatMul-op2"
    result = found.first_wrong.outputs[0]
    assert result.yardstick is not None and result.yardstick < 2e-3 < result.error
    assert "in the other run" in result.reason
    # The same error hides below what a single bound for float16 allows for a whole network.
    loose = network(tmp_path / "loose", np.float16, wrong="op2", scale=1.004)
    assert compare_dumps(loose, golden).is_agreeing and not compare_dumps(loose, golden, high).is_agreeing


def test_integers_and_bools_must_be_equal(tmp_path: Path) -> None:
    def dump(root: Path, index: int) -> Path:
        return write_dump(root, [("Default/Argmax-op1", {IN: X, OUT: np.array([5, index], np.int32)})])

    found = compare_dumps(dump(tmp_path / "a", 2), dump(tmp_path / "b", 3))
    assert found.first_wrong is not None
    assert found.first_wrong.outputs[0].reason == "1 of 2 elements differ"


def test_shapes_dtypes_nan_and_what_is_left_over(tmp_path: Path) -> None:
    mine = write_dump(tmp_path / "a", [
        ("Default/Add-op1", {IN: floats(1, 2, 3, 4), OUT: floats(1, math.nan, math.inf, 4)}),
        ("Default/Mul-op2", {IN: floats(1, 2), OUT: floats(1, 2)}),
        ("Default/Exp-op3", {OUT: floats(1)}),
    ])  # fmt: skip
    golden = write_dump(tmp_path / "b", [
        ("Default/Add-op1", {IN: np.float32([[1, 2], [3, 4]]), OUT: floats(1, 2, math.inf, 4)}),
        ("Default/Mul-op2", {IN: floats(1, 2, 3), OUT: np.float16([1, 2])}),
        ("Default/Log-op3", {OUT: floats(1)}),
    ])  # fmt: skip
    found = compare_dumps(mine, golden)
    add, mul = found.operators
    assert add.inputs[0].status == "identical" and add.inputs[0].reason == "shape [4] against [2, 2]"
    assert add.is_wrong and add.output_error == math.inf
    metrics = add.outputs[0].metrics
    assert metrics is not None and (metrics.nan_mine, metrics.nan_golden, metrics.inf_mine) == (1, 0, 1)
    assert mul.inputs[0].status == "differs" and mul.inputs[0].reason == "shape [2] against [3]"
    assert mul.outputs[0].status == "agrees" and mul.outputs[0].reason == "dtype float32 against float16"
    text = "\n".join(summary(found))
    assert "only in mine, rank 0, graph 0, iteration 0: 1: Default/Exp-op3" in text
    assert "only in golden, rank 0, graph 0, iteration 0: 1: Default/Log-op3" in text
    assert "--mapping" in text


def test_what_is_left_of_sums_that_cancel_is_no_error(tmp_path: Path) -> None:
    dy = np.float32([[1, 2], [-1, -2]])
    mine = write_dump(tmp_path / "a", [("Default/BiasAddGrad-op1", {IN: dy, OUT: floats(1e-7, 0)})])
    golden = write_dump(tmp_path / "b", [("Default/BiasAddGrad-op1", {IN: dy, OUT: floats(0, 0)})])
    (operator,) = compare_dumps(mine, golden).operators
    assert operator.is_agreeing and "rounding of the inputs" in operator.outputs[0].reason
    worse = write_dump(tmp_path / "c", [("Default/BiasAddGrad-op1", {IN: dy, OUT: floats(1e-3, 0)})])
    assert not compare_dumps(worse, golden).is_agreeing


def test_inputs_that_were_written_over_are_not_held_against_anybody(tmp_path: Path) -> None:
    before, after, moment = floats(1, 2), floats(0.5, 1.5), floats(9, 9)
    rest = {("input", 2): floats(0.1), ("input", 3): floats(5, 5), OUT: after}
    name = "Default/ApplyMomentum-op1"
    read = write_dump(tmp_path / "a", [(name, {IN: before, WEIGHT: moment, **rest})])
    left = write_dump(tmp_path / "b", [(name, {IN: after, WEIGHT: moment * 2, **rest})])
    (operator,) = compare_dumps(read, left).operators
    assert operator.is_agreeing
    assert [tensor.status for tensor in operator.inputs] == ["not compared", "not compared", "identical", "identical"]
    other = write_dump(tmp_path / "c", [(name, {IN: before * 2, WEIGHT: moment, **rest})])
    assert not compare_dumps(read, other).is_agreeing


def test_equal_files_need_no_arithmetic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = network(tmp_path / "a")
    shutil.copytree(mine, tmp_path / "linked", copy_function=os.link)
    copied = shutil.copytree(mine, tmp_path / "copied")

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("arithmetic on equal tensors")

    monkeypatch.setattr("msdump.analysis.compare._measure.compare_arrays", refuse)
    assert compare_dumps(mine, tmp_path / "copied").is_agreeing and copied
    monkeypatch.setattr("msdump.analysis.compare._measure.equal_bytes", refuse)
    assert compare_dumps(mine, tmp_path / "linked").is_agreeing


def test_damaged_files_are_named_and_the_rest_is_compared(tmp_path: Path) -> None:
    mine, golden = network(tmp_path / "a"), network(tmp_path / "b")
    victim = next((mine / "rank_0/Net/0/0").glob("MatMul.MatMul-op2.*output*"))
    victim.write_bytes(victim.read_bytes()[:-1])
    found = compare_dumps(mine, golden)
    assert found.is_agreeing
    assert [Path(path).name for path, _ in found.damaged] == [victim.name]
    assert len(list(found.operators)) == 3


def test_a_bin_dump_meets_an_npy_dump(tmp_path: Path) -> None:
    """Names come from headers and file names there, from the execution order here; layouts are the device's there."""
    image = RNG.standard_normal((1, 3, 4, 4)).astype(np.float32)
    golden = write_dump(tmp_path / "npy", [("Default/net/ReLU-op1", {IN: image, OUT: np.maximum(image, 0)})])
    folder = tmp_path / "bin/20240101120000/0/Net/0/0"
    folder.mkdir(parents=True)
    stamp = 1_700_000_000_000_001
    records = [
        TensorRecord("ReLU", "Default/net/ReLU-op1", 1, 0, stamp, side, 0, "float32", array, "NC1HWC0")
        for side, array in (("input", image), ("output", np.maximum(image, 0)))
    ]
    data = b"".join(bytes(chunk) for chunk in bin_chunks(records))
    (folder / f"ReLU.Default_net_ReLU-op1.1.0.{stamp}").write_bytes(data)
    (operator,) = compare_dumps(tmp_path / "bin", golden).operators
    assert operator.pair.how == "name" and operator.is_agreeing
    assert [tensor.status for tensor in operator.tensors] == ["identical", "identical"]
    text = csv_text(compare_dumps(tmp_path / "bin", golden))
    assert text.splitlines()[0].count("Address") == 1  # only the side of dump files has one


def test_an_interrupt_ends_the_work(tmp_path: Path) -> None:
    mine, golden = network(tmp_path / "a", noise=1e-3), network(tmp_path / "b")

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        compare_dumps(mine, golden, progress=stop)
    assert threading.active_count() == before


def test_nothing_in_common_suggests_the_mapping_file(tmp_path: Path) -> None:
    mine = write_dump(tmp_path / "a", [("Default/Add-op1", {OUT: floats(1)})])
    golden = write_dump(tmp_path / "b", [("Default/Exp-op1", {OUT: floats(1)})])
    with pytest.raises(ConfigError, match="--mapping"):
        compare_dumps(mine, golden)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="expected a dump with tensors"):
        compare_dumps(mine, tmp_path / "empty")
    with pytest.raises(FormatError, match="got nothing"):
        compare_dumps(mine, tmp_path / "missing")


def test_iterations_are_chosen_and_steps_without_counterpart_named(tmp_path: Path) -> None:
    for iteration in (0, 1, 2):
        write_dump(tmp_path / "a", [("Default/Add-op1", {OUT: floats(iteration, 1)})], iteration)
    for iteration in (1, 2, 3):
        write_dump(tmp_path / "b", [("Default/Add-op1", {OUT: floats(iteration, 1)})], iteration)
    found = compare_dumps(tmp_path / "a", tmp_path / "b")
    assert [step.mine.iteration for step in found.steps] == [1, 2] and found.is_agreeing
    assert [key.iteration for key in found.only_mine] == [0] and [key.iteration for key in found.only_golden] == [3]
    assert "only in mine: 1 iteration: rank 0, graph 0, iteration 0" in summary(found)
    assert "only in golden: 1 iteration: rank 0, graph 0, iteration 3" in summary(found)
    assert [step.mine.iteration for step in compare_dumps(tmp_path / "a", tmp_path / "b", iteration=2).steps] == [2]


def test_two_ranks_of_one_dump_are_compared(tmp_path: Path) -> None:
    for rank in (0, 1):
        for graph, name in enumerate(("D/Add-op1", "D/Mul-op2")):
            for iteration in (0, 1):
                operators = [(name, {OUT: floats(1, rank * graph * iteration)})]
                write_dump(tmp_path, operators, rank=rank, graph=graph, iteration=iteration)
    found = compare_dumps(tmp_path / "rank_0", tmp_path / "rank_1")
    assert not (found.only_mine or found.only_golden)
    wrong = [operator for operator in found.operators if not operator.is_agreeing]
    assert len(list(found.operators)) == 4 and [tuple(operator.step) for operator in wrong] == [(0, 1, 1)]
    assert "rank 0 of mine against rank 1 of golden" in summary(found)
    assert not any("against rank" in line for line in summary(compare_dumps(tmp_path, tmp_path)))


def test_csv_has_the_originals_columns(tmp_path: Path) -> None:
    found = compare_dumps(network(tmp_path / "a", wrong="op3"), network(tmp_path / "b"))
    rows = list(csv.reader(io.StringIO(csv_text(found))))
    assert rows[0] == [
        "Index", "OpType", "NPUDump", "DataType", "GroundTruth", "DataType", "TensorIndex", "Shape", *METRICS,
        "CompareFailReason",
    ]  # fmt: skip
    assert [row[0] for row in rows[1:]] == [str(number) for number in range(9)]
    assert rows[1][1:8] == [
        "MatMul", "Default/net/MatMul-op1", "float32", "Default/net/MatMul-op1", "float32",
        "Default/net/MatMul-op1:input:0", "[4,8]",
    ]  # fmt: skip
    assert rows[1][8] == "1.000000" and rows[9][8] == "1.000000" and rows[9][9] != "0.000000"


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    mine = write_dump(tmp_path / "a", [("=cmd()/-Add-op1", {OUT: floats(1, 2)})])
    text = csv_text(compare_dumps(mine, mine))
    assert "'=cmd()" in text and ",=cmd()" not in text


def test_json_is_strict_and_whole(tmp_path: Path) -> None:
    mine = write_dump(tmp_path / "a", [("Default/Add-op1", {IN: floats(1), OUT: floats(math.nan)})])
    golden = write_dump(tmp_path / "b", [("Default/Add-op1", {IN: floats(1), OUT: floats(1)})])

    def refuse(name: str) -> None:
        raise AssertionError(name)

    value = json.loads(json_text(compare_dumps(mine, golden)), parse_constant=refuse)
    assert value["agree"] is False and value["first_wrong"]["operator"] == "Default/Add-op1"
    tensor = value["steps"][0]["operators"][0]["tensors"][1]
    assert tensor["metrics"]["cosine"] == 1.0 and tensor["metrics"]["mean_mine"] == "nan" and tensor["error"] == "inf"


def test_progress_ends_at_the_whole_and_threads_change_nothing(tmp_path: Path) -> None:
    mine, golden = network(tmp_path / "a", noise=1e-3), network(tmp_path / "b")
    calls: list[tuple[int, int]] = []
    one = compare_dumps(mine, golden, thread_count=1, progress=lambda *call: calls.append(call))
    assert calls[-1][0] == calls[-1][1] > 0 and calls == sorted(calls)
    assert json_text(one) == json_text(compare_dumps(mine, golden, thread_count=3))


def test_large_pairs_take_all_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msdump.analysis.compare._measure._LARGE_BYTES", 0)
    mine, golden = network(tmp_path / "a", noise=1e-3), network(tmp_path / "b")
    large = json_text(compare_dumps(mine, golden))
    monkeypatch.undo()
    assert large == json_text(compare_dumps(mine, golden))


@settings(max_examples=20, deadline=None)
@given(
    values=st.lists(st.floats(width=32), min_size=1, max_size=9),
    other=st.lists(st.floats(width=32), min_size=1, max_size=9),
)
def test_any_dump_agrees_with_itself_and_mismatch_is_symmetric(
    values: list[float], other: list[float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")

    def dump(name: str, numbers: list[float]) -> Path:
        return write_dump(folder / name, [("Default/Add-op1", {OUT: np.array(numbers, np.float32)})])

    a, same, b = dump("a", values), dump("same", values), dump("b", other)
    assert compare_dumps(a, same).is_agreeing
    if len(values) == len(other):
        there, back = compare_dumps(a, b), compare_dumps(b, a)
        one, two = next(there.operators).outputs[0], next(back.operators).outputs[0]
        assert (one.metrics is None) == (two.metrics is None)
        if one.metrics is not None and two.metrics is not None:
            assert one.metrics.worst_error == two.metrics.worst_error
            assert one.metrics.mismatched == two.metrics.mismatched


# -- the real dump -------------------------------------------------------------------------------------------------


def statuses(found: Comparison) -> Counter[str]:
    return Counter(tensor.status for operator in found.operators for tensor in operator.tensors)


@pytest.mark.parametrize("is_swapped", [False, True])
def test_the_real_dump_agrees_with_a_run_of_the_same_script(
    own_dump: Path, real_dump: Path, fused_map: Path, is_swapped: bool
) -> None:
    sides = (real_dump, own_dump) if is_swapped else (own_dump, real_dump)
    found = compare_dumps(*sides, mapping=fused_map)
    assert found.is_agreeing and not found.damaged
    real = 0 if is_swapped else 1
    for step in found.steps:
        assert len(step.operators) == 56
        left = (step.only_mine, step.only_golden)
        assert not left[real]  # every operator and parameter of the real dump has its counterpart
        assert [operator.op_name for operator in left[1 - real]] == ["inputs1"]  # MindSpore leaves the labels out
        assert [operator.op_type for operator in step.expected] == ["Flatten", "Reshape"]
    # How many of the 278 are identical to the last bit is up to the BLAS of this machine: 73 to 93 were seen.
    counts = statuses(found)
    assert set(counts) == {"agrees", "identical", "not compared"}
    assert counts["agrees"] + counts["identical"] == 278 and counts["not compared"] == 32
    # Nothing computes what the first operators read: pictures, labels and weights of the first iteration.
    first = next(operator for operator in found.operators if operator.step.iteration == 0)
    assert [tensor.status for tensor in first.inputs] == ["identical"] * len(first.inputs)
    fused = [operator for operator in found.operators if operator.pair.how == "mapping"]
    assert len(fused) == 6 and all(len(operator.inputs) == 3 for operator in fused)


def test_without_the_mapping_file_fused_operators_are_found_by_their_values(own_dump: Path, real_dump: Path) -> None:
    found = compare_dumps(own_dump, real_dump, iteration=0)
    (step,) = found.steps
    fused = {result.pair.golden.op_type for result in found.operators if "Fusion" in result.pair.golden.op_type}
    assert fused == {"MatMulBiasAddReluFusion", "MatMulBiasAddFusion"}
    assert found.is_agreeing and not (step.only_mine or step.only_golden)


def test_a_perturbed_weight_names_the_first_operator_that_differs(
    perturbed_dump: Path, real_dump: Path, own_dump: Path, fused_map: Path
) -> None:
    for golden in (real_dump, own_dump):
        found = compare_dumps(perturbed_dump, golden, mapping=fused_map)
        assert found.first_wrong is None
        first = found.first_differing
        assert first is not None and first.step.iteration == 0
        assert first.pair.mine.full_name == "Default/network-WithLossCell/_backbone-LeNet5/conv2-Conv2d/Conv2D-op3"
        read, weight = (tensor.status for tensor in first.inputs)
        # Another machine's BLAS computed what the real dump's operator read; our own dump was made on this machine.
        assert read in (("identical", "agrees") if golden == real_dump else ("identical",))
        assert weight == "differs"
        text = "\n".join(headline(found))
        assert "x = self.max_pool2d(self.relu(self.conv2(x)))" in text
        assert "input 1 (conv2.weight) differs already" in text
        before = [operator for operator in found.operators if operator is not first][:3]
        assert all(operator.is_agreeing for operator in before)


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(["float32", "float16", "bfloat16", "int32"]), st.integers(0, 40), st.booleans())
def test_files_that_are_copies_say_what_their_numbers_say(
    tmp_path_factory: pytest.TempPathFactory, dtype: str, size: int, is_coarse: bool
) -> None:
    root = tmp_path_factory.mktemp("copies")
    values = np.arange(size) * 1.7 if is_coarse else np.arange(size) * 1.000123
    array = values.astype(np.float32).astype(dtype).astype(np.float32 if dtype == "bfloat16" else dtype)
    mine, golden = (
        next(iter(DumpDir.open(write_dump(root / side, [("Add-op1", {OUT: array})])))) for side in ("a", "b")
    )
    by_files, by_numbers = Measurer(), Measurer()
    without_files = replace(mine, small=None), replace(golden, small=None)
    assert is_small_copy(mine, golden) and not is_small_copy(*without_files)
    assert by_files.of(mine, golden).metrics is None is by_numbers.of(*without_files).metrics
    assert by_files.dtypes_of(mine, golden) == by_numbers.dtypes_of(*without_files)


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(st.sampled_from(["A/Add-op1", "B/Add-op1", "A/Mul-op2", "Parameter.w"]), st.integers(0, 3)),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
)
def test_a_dump_against_itself_is_what_it_is_against_its_copy(
    tmp_path_factory: pytest.TempPathFactory, operators: list[tuple[str, int]], is_damaged: bool
) -> None:
    root = tmp_path_factory.mktemp("twice")
    mine = write_dump(root / "mine", [(name, {IN: np.ones(size), OUT: np.ones(size)}) for name, size in operators])
    if is_damaged:
        file = next(mine.rglob("*.npy"))
        file.write_bytes(file.read_bytes()[:-1])
    shutil.copytree(mine, root / "copy")

    def told(golden: Path) -> Any:
        try:
            found = compare_dumps(mine, golden)
        except ConfigError as error:
            return str(error).replace(str(root / "copy"), str(mine))
        # In JSON the folder's letters beyond ASCII are escaped.
        copied, own = (json.dumps(str(path))[1:-1] for path in (root / "copy", mine))
        return json.loads(json_text(found).replace(copied, own)), list(table_rows(found, True))

    assert told(mine) == told(root / "copy")


def test_a_large_argument_excuses_no_error_of_a_bounded_function(tmp_path: Path) -> None:
    """The cosine of positions whose digits bfloat16 has lost; a sum of them may have the error of its largest part."""
    position = np.arange(300, dtype=np.float32)
    lost = (position.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    for name, made, is_wrong in (("Cos", np.cos, True), ("ReduceSum", lambda x: x[1:] - x[:-1], False)):
        golden = write_dump(tmp_path / f"golden{name}", [(f"Net/{name}-op0", {IN: position, OUT: made(position)})])
        mine = write_dump(tmp_path / f"mine{name}", [(f"Net/{name}-op0", {IN: lost, OUT: made(lost)})])
        comparison = compare_dumps(mine, golden)
        assert (comparison.first_wrong is not None) == is_wrong, name


@pytest.mark.parametrize("made_by", ["Sub", "TensorAdd", "aten_rsub_Scalar"])
def test_terms_that_nearly_cancel_enlarge_what_came_in(made_by: str, tmp_path: Path) -> None:
    """Of `1 - x` near 1 the error is that of x, and relative to the result a hundred times as large."""
    came_in = np.linspace(0.97, 0.98, 64, dtype=np.float32)
    off = came_in * np.float32(1 + 2e-5)
    for name, error, is_wrong in (("kept", 0.0, False), ("made", 1e-3, True)):
        made = 1 - off
        made[3] += np.float32(error)
        operators = [("Net/Sigmoid-op0", {OUT: came_in}), (f"Net/{made_by}-op1", {IN: came_in, OUT: 1 - came_in})]
        golden = write_dump(tmp_path / f"golden_{name}", operators)
        operators = [("Net/Sigmoid-op0", {OUT: off}), (f"Net/{made_by}-op1", {IN: off, OUT: made})]
        comparison = compare_dumps(write_dump(tmp_path / f"mine_{name}", operators), golden)
        assert comparison.is_agreeing is not is_wrong, name
        assert (comparison.first_wrong is not None) == is_wrong, name


def test_a_constant_that_differs_is_no_weight(tmp_path: Path) -> None:
    x = floats(1, 2, 3)
    paths = [
        write_dump(tmp_path / str(slope), [("Net/Mul-op0", {IN: x, ("input", 1): np.float32(slope), OUT: x * slope})])
        for slope in (0.2, 0.01)
    ]
    text = "\n".join(headline(compare_dumps(*paths)))
    assert "input 1 is a constant: 0.2 against 0.01" in text and "weights or data" not in text
