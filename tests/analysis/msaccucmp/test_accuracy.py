"""msaccucmp compare and file_compare: command lines, result files, codes, the advisor's three findings."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from msdump.analysis.compare.result_csv import safe_cell
from msdump.analysis.distance.metrics import METRICS
from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.analysis.msaccucmp.accuracy import CONSISTENCY, INPUT, OVERFLOW, AdvisorRow, advise
from msdump.analysis.msaccucmp.fusion_json import read_fusion_json
from msdump.cli.msaccucmp import main
from tests.analysis.msaccucmp.accuracy_dumps import (
    STAMP,
    Tensors,
    compare,
    dump,
    golden_npy,
    op_json,
    result,
    text_of,
    write_json,
)

RNG = np.random.default_rng(11)
X = RNG.standard_normal((2, 3)).astype(np.float32)
METRIC_TITLES = ",".join(METRICS)
NO_METRICS = ",".join(["NaN"] * len(METRICS))


@pytest.fixture
def tmp_path(plain_path: Path) -> Path:
    """msaccucmp takes no other paths."""
    return plain_path


@pytest.fixture
def fused(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A model of two operators, the first of which stands for two original ones."""
    y, z = X * 2, X * 3
    mine = dump(tmp_path / "mine", {
        "Conv2D_conv_relu": {("input", 0): X, ("output", 0): y},
        "Add_add": {("input", 0): y, ("output", 0): z},
    })  # fmt: skip
    golden = golden_npy(tmp_path / "golden", {("data", 0): X, ("net/relu", 0): y, ("net/add", 0): z})
    ops = [
        op_json("data", "Data", [], [("data", 0)]),
        op_json("Conv2D_conv_relu", "Conv2D", ["data:0", "x:-1"], [("net/relu", 0)], names=["net/conv", "net/relu"]),
        op_json("Add_add", "Add", ["Conv2D_conv_relu:0"], [("net/add", 0)]),
    ]
    return mine, golden, write_json(tmp_path / "fusion.json", ops)


def without_reasons(text: str) -> list[str]:
    """Lines of a result file without the last cell, whose words are each tool's own."""
    return [",".join(line.split(",")[:-1]) for line in text.split("\r\n")]


def test_dump_against_dump_by_names(tmp_path: Path) -> None:
    """The lines are those of msaccucmp for the same files."""
    mine = dump(tmp_path / "a", {"Mul_only": {("output", 0): X}, "Add_add": {("input", 0): X, ("output", 0): X + 1}})
    golden = dump(tmp_path / "b", {"Add_add": {("input", 0): X, ("output", 0): X * 2}, "Div_gold": {("output", 0): X}})
    newer = golden / f"Add.Add_add.0.0.{STAMP + 99}"
    newer.write_bytes((mine / f"Add.Add_add.1.0.{STAMP + 1}").read_bytes())
    short = golden / "Add.Add_add.0.0.99999"
    short.write_bytes((golden / f"Add.Add_add.0.0.{STAMP}").read_bytes())
    assert compare("-m", mine, "-g", golden, "-out", tmp_path / "out") == ExitCode.NO_DUMP_FILE
    assert without_reasons(text_of(tmp_path / "out")) == [
        f"Index,OpType,NPUDump,DataType,Address,GroundTruth,DataType,Address,TensorIndex,Shape,{METRIC_TITLES}",
        f"0,NaN,Mul_only,NaN,NaN,*,NaN,NaN,NaN,NaN,{NO_METRICS}",
        '1,Add,Add_add,float32,NaN,Add_add,float32,NaN,Add_add:input:0,"[2,3]",1.000000,0.000000,0.000000,0.000000,'
        '0.000000,"(0.214;0.786),(0.214;0.786)",0.000000,0.000000,0.000000,0.000000',
        '1,Add,Add_add,float32,NaN,Add_add,float32,NaN,Add_add:output:0,"[2,3]",1.000000,0.000000,0.000000,0.000000,'
        '0.000000,"(1.214;0.786),(1.214;0.786)",0.000000,0.000000,0.000000,0.000000',
        f"2,NaN,*,NaN,NaN,Div_gold,NaN,NaN,NaN,NaN,{NO_METRICS}",
        "",
    ]
    reasons = [row["CompareFailReason"] for row in result(tmp_path / "out")]
    assert reasons[1:3] == ["", ""]  # the newest file of an operator counts
    assert "golden" in reasons[0] and "my folder" in reasons[3]


@pytest.mark.parametrize("is_mine", [True, False])
def test_an_operator_on_one_side_alone_ends_with_2(tmp_path: Path, is_mine: bool) -> None:
    both: dict[str, Tensors] = {"Add_add": {("output", 0): X}}
    more = dump(tmp_path / "more", {**both, "Mul_only": {("output", 0): X}})
    less = dump(tmp_path / "less", both)
    sides = (more, less) if is_mine else (less, more)
    assert compare("-m", sides[0], "-g", sides[1], "-out", tmp_path / "out") == ExitCode.NO_DUMP_FILE
    row = result(tmp_path / "out")[1]
    assert (row["NPUDump"], row["GroundTruth"]) == (("Mul_only", "*") if is_mine else ("*", "Mul_only"))
    assert row["CosineSimilarity"] == "NaN" and row["CompareFailReason"]


def test_no_operator_on_both_sides_ends_with_2_and_a_result(tmp_path: Path) -> None:
    mine, golden = (
        dump(tmp_path / "a", {"Add_a": {("output", 0): X}}),
        dump(tmp_path / "b", {"Add_b": {("output", 0): X}}),
    )
    assert compare("-m", mine, "-g", golden, "-out", tmp_path / "out") == ExitCode.NO_DUMP_FILE
    assert [row["Index"] for row in result(tmp_path / "out")] == ["0", "1"]


def test_a_tensor_that_one_side_lacks_has_a_row(tmp_path: Path) -> None:
    mine = dump(tmp_path / "a", {"Add_add": {("input", 0): X, ("output", 0): X}})
    golden = dump(tmp_path / "b", {"Add_add": {("input", 0): X, ("input", 1): X, ("output", 0): X.T.copy()}})
    # Neither inputs nor outputs are of the same number and shapes.
    assert compare("-m", mine, "-g", golden, "-out", tmp_path / "out") == ExitCode.INVALID_DUMP_DATA
    rows = result(tmp_path / "out")
    assert [row["TensorIndex"] for row in rows] == ["Add_add:input:0", "Add_add:input:1", "Add_add:output:0"]
    assert [row["CosineSimilarity"] for row in rows] == ["1.000000", "NaN", "NaN"]
    assert [bool(row["CompareFailReason"]) for row in rows] == [False, True, True]


def test_addresses_of_the_device_are_told(tmp_path: Path) -> None:
    from msdump.formats._proto import dump_data_pb2

    mine = dump(tmp_path / "a", {"Add_add": {("output", 0): X}})
    golden = dump(tmp_path / "b", {"Add_add": {("output", 0): X}})
    (path,) = mine.iterdir()
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    message = dump_data_pb2.DumpData.FromString(data[8 : 8 + length])
    message.output[0].address = 4096
    header = message.SerializeToString()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data[8 + length :])
    assert compare("-m", mine, "-g", golden, "-out", tmp_path / "out") == 0
    assert text_of(tmp_path / "out").splitlines()[1].split(",")[3:8] == ["float32", "4096", "Add_add", "float32", "NaN"]


def test_fused_operators_meet_the_original_ones(fused: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """The lines are those of msaccucmp for the same files: Data is an operator of the model without a file."""
    mine, golden, fusion = fused
    arguments = ("-m", mine, "-g", golden, "-f", fusion, "-alg", "0,1")
    assert compare(*arguments, "-out", tmp_path / "out") == ExitCode.NO_DUMP_FILE
    assert without_reasons(text_of(tmp_path / "out")) == [
        "Index,OpType,NPUDump,DataType,Address,GroundTruth,DataType,TensorIndex,Shape,CosineSimilarity,MaxAbsoluteError",
        "0,Data,data,NaN,NaN,data,NaN,NaN,NaN,NaN,NaN",
        '1,Conv2D,Conv2D_conv_relu,float32,NaN,"net/conv,net/relu",float32,Conv2D_conv_relu:input:0,"[2,3]",1.000000,0.000000',
        '1,Conv2D,Conv2D_conv_relu,float32,NaN,"net/conv,net/relu",float32,Conv2D_conv_relu:output:0,"[2,3]",1.000000,0.000000',
        '2,Add,Add_add,float32,NaN,net/add,float32,Add_add:input:0,"[2,3]",1.000000,0.000000',
        '2,Add,Add_add,float32,NaN,net/add,float32,Add_add:output:0,"[2,3]",1.000000,0.000000',
        "",
    ]


def test_operators_of_one_original_share_their_rows(fused: tuple[Path, Path, Path], tmp_path: Path) -> None:
    mine, golden, _ = fused
    fusion = write_json(tmp_path / "multi.json", [
        op_json("Conv2D_conv_relu", "Conv2D", ["data:0"], [("net/relu", 0)], names=["net/add"]),
        op_json("Add_add", "Add", ["Conv2D_conv_relu:0"], [("net/add", 0)], names=["net/add"]),
        op_json("Add_inner", "Add", [], [("", 0)], names=["net/add"], datadump_is_multiop={"b": True}),
    ])  # fmt: skip
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-out", tmp_path / "out") == 0
    rows = result(tmp_path / "out")
    assert {(row["Index"], row["NPUDump"], row["GroundTruth"]) for row in rows} == {
        ("0", "Conv2D_conv_relu,Add_add,Add_inner", "net/add")
    }
    assert [row["TensorIndex"] for row in rows[1:]] == [
        "Conv2D_conv_relu:output:0", "Add_add:input:0", "Add_add:output:0",
    ]  # fmt: skip


def test_casts_stand_for_what_they_read(tmp_path: Path) -> None:
    mine = dump(tmp_path / "a", {"Cast_c": {("output", 0): X}, "Add_add": {("input", 0): X}})
    golden = golden_npy(tmp_path / "b", {("net/relu", 0): X})
    fusion = write_json(tmp_path / "f.json", [
        op_json("Relu_r", "Relu", [], [("net/relu", 0)]),
        op_json("Trans_t", "TransData", ["Relu_r:0"], [("", 0)], names=[""]),
        op_json("Cast_c", "Cast", ["Trans_t:0"], [("", 0)], names=[""]),
        op_json("Add_add", "Add", ["Cast_c:0"], [("net/add", 0)]),
    ])  # fmt: skip
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-out", tmp_path / "out") == ExitCode.NO_DUMP_FILE
    cells = {row["TensorIndex"]: (row["GroundTruth"], row["CosineSimilarity"]) for row in result(tmp_path / "out")}
    assert cells["Cast_c:output:0"] == ("*", "1.000000") and cells["Add_add:input:0"] == ("net/add", "1.000000")


def test_which_file_meets_which(fused: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """-map writes that alone; the lines are those of msaccucmp."""
    mine, golden, fusion = fused
    (golden / f"net_relu.0.{STAMP}.npy").unlink()
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-map", "-out", tmp_path / "out") == 0
    assert not list((tmp_path / "out").glob("result_*"))
    conv, add = mine / f"Conv2D.Conv2D_conv_relu.0.0.{STAMP}", mine / f"Add.Add_add.1.0.{STAMP + 1}"
    data, last = golden / f"data.0.{STAMP}.npy", golden / f"net_add.0.{STAMP}.npy"
    assert text_of(tmp_path / "out", "mapping_*.csv").split("\r\n") == [
        "Index,OpType,NPUDump,GroundTruth,TensorIndex,NPUDumpPath,GroundTruthPath",
        "0,Data,data,data,NaN,NaN,NaN",
        f'1,Conv2D,Conv2D_conv_relu,"net/conv,net/relu",Conv2D_conv_relu:input:0,{conv},{data}',
        f'1,Conv2D,Conv2D_conv_relu,"net/conv,net/relu",Conv2D_conv_relu:output:0,{conv},NaN',
        f"2,Add,Add_add,net/add,Add_add:input:0,{add},NaN",
        f"2,Add,Add_add,net/add,Add_add:output:0,{add},{last}",
        "",
    ]


@pytest.mark.parametrize(
    ("option", "value", "sequences"),
    [
        ("-s", "3", "3"), ("-s", "1, 2,", "12"), ("-s", "2,9", "2"),
        ("-r", "2,-1,2", "23"), ("-r", ",,2", "13"), ("-r", "1,2,1", "12"), ("-r", "2,,1", "23"),
    ],
)  # fmt: skip
def test_operators_by_sequence(
    fused: tuple[Path, Path, Path], tmp_path: Path, option: str, value: str, sequences: str
) -> None:
    mine, golden, fusion = fused
    code = compare("-m", mine, "-g", golden, "-f", fusion, option, value, "-out", tmp_path / "out")
    assert code == (ExitCode.NO_DUMP_FILE if "1" in sequences else 0)  # operator 1 is Data, which has no file
    rows = result(tmp_path / "out")
    assert list(rows[0])[:3] == ["Index", "OpSequence", "OpType"]
    assert {row["OpSequence"] for row in rows} == set(sequences)


def test_ids_of_the_json_are_the_sequence(fused: tuple[Path, Path, Path], tmp_path: Path) -> None:
    mine, golden, _ = fused
    fusion = write_json(tmp_path / "ids.json", [
        op_json("Conv2D_conv_relu", "Conv2D", [], [("net/relu", 0)], number=40),
        op_json("Add_add", "Add", ["Conv2D_conv_relu:0"], [("net/add", 0)], number=7),
    ])  # fmt: skip
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-s", "7", "-out", tmp_path / "out") == 0
    assert {(row["Index"], row["OpSequence"], row["OpType"]) for row in result(tmp_path / "out")} == {("1", "7", "Add")}


def test_an_operator_without_a_dump_file_ends_with_2_and_a_result(
    fused: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    mine, golden, fusion = fused
    next(mine.glob("Add.*")).unlink()
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-s", "2,3", "-out", tmp_path / "out") == 2
    rows = result(tmp_path / "out")
    assert [row["NPUDump"] for row in rows] == ["Conv2D_conv_relu", "Conv2D_conv_relu", "Add_add"]
    assert rows[2]["TensorIndex"] == rows[2]["CosineSimilarity"] == "NaN"
    assert "no dump file" in rows[2]["CompareFailReason"]


@pytest.mark.parametrize("first", "=+-@%\t\r\n\uff1d\uff0b\uff0d\uff20")
def test_no_cell_is_a_formula(first: str) -> None:
    assert safe_cell(f"{first}cmd|' /C calc'!A0") == f"'{first}cmd|' /C calc'!A0"
    assert safe_cell(f"a{first}") == f"a{first}"


def test_no_result_is_written_through_a_link(fused: tuple[Path, Path, Path], tmp_path: Path) -> None:
    mine, golden, fusion = fused
    (tmp_path / "target").write_text("kept")
    pair = ("-m", mine, "-g", golden, "-f", fusion)
    for name, more in (
        ("advisor_summary.txt", ("-advisor",)),
        ("Add_add_output_0.npy", ("-op", "Add_add", "-o", "0")),
        ("Add_add_output_0_summary.txt", ("-op", "Add_add", "-o", "0")),
    ):
        out = tmp_path / name.replace(".", "_")
        out.mkdir()
        (out / name).symlink_to(tmp_path / "target")
        # A link that has the name of a result of an earlier run goes with those; any other stops the comparison.
        status = compare(*pair, *more, "-out", out)
        assert (status != 0) == (out / name).is_symlink()
        assert (tmp_path / "target").read_text() == "kept"


def test_a_missing_golden_file_is_a_row_and_no_failure(fused: tuple[Path, Path, Path], tmp_path: Path) -> None:
    mine, golden, fusion = fused
    (golden / f"net_add.0.{STAMP}.npy").unlink()
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-s", "3", "-out", tmp_path / "out") == 0
    row = result(tmp_path / "out")[1]
    assert (row["GroundTruth"], row["DataType"], row["Shape"]) == ("net/add", "NaN", "[2,3]")
    assert row["CosineSimilarity"] == "NaN" and "net/add:0" in row["CompareFailReason"]


def test_chosen_and_custom_metrics(tmp_path: Path) -> None:
    mine = dump(tmp_path / "a", {"Add_add": {("output", 0): X}})
    golden = dump(tmp_path / "b", {"Add_add": {("output", 0): X + 1}})
    scripts = tmp_path / "custom/algorithm"
    scripts.mkdir(parents=True)
    (scripts / "alg_Twice.py").write_text(
        "def compare(my, golden, args):\n"
        "    return '%.2f' % (float(args.get('factor', 2)) * abs(my - golden).max()), args['shape_type']\n"
    )
    (scripts / "alg_Bad.py").write_text("def compare(my, golden, args):\n    return 1\n")
    common = ("-m", mine, "-g", golden, "-c", tmp_path / "custom")
    assert (
        compare(*common, "-alg", "0,MaxAbsoluteError,Twice,Bad", "-a", "Twice:factor=3", "-out", tmp_path / "out") == 0
    )
    (row,) = result(tmp_path / "out")
    assert list(row)[-5:] == ["CosineSimilarity", "MaxAbsoluteError", "Twice", "Bad", "CompareFailReason"]
    assert (row["MaxAbsoluteError"], row["Twice"], row["Bad"]) == ("1.000000", "3.00", "NaN")
    assert "[Twice] TENSOR" in row["CompareFailReason"] and "[Bad] It returned 1" in row["CompareFailReason"]
    assert compare(*common, "-alg", "Missing", "-out", tmp_path / "out") == ExitCode.INVALID_ALGORITHM
    assert compare(*common, "-alg", "Missing,1", "-out", tmp_path / "one") == 0
    assert "Missing" not in text_of(tmp_path / "one")
    (scripts / "alg_Bad.py").chmod(0o666)
    assert compare(*common, "-alg", "Bad", "-out", tmp_path / "out") == ExitCode.DANGER_FILE


def test_overflow_column_and_first_elements(tmp_path: Path) -> None:
    halves = {"Add_a": [1, 65504], "Add_b": [1, 2], "Add_c": [math.nan, 65504], "Add_d": [math.inf, 0]}
    arrays: dict[str, Tensors] = {
        name: {("output", 0): np.array(values, np.float16)} for name, values in halves.items()
    }
    arrays["Add_e"] = {("output", 0): np.array([7e4, 1], np.float32)}
    mine, golden = dump(tmp_path / "a", arrays), dump(tmp_path / "b", arrays)
    assert compare("-m", mine, "-g", golden, "-overflow_detection", "-out", tmp_path / "out") == 0
    rows = result(tmp_path / "out")
    assert [row["OverFlow"] for row in rows] == ["YES", "NO", "NO", "YES", "NaN"]
    assert rows[0]["MeanAbsoluteError"] == "0.000000"


@pytest.mark.parametrize("has_fusion", [True, False])
def test_first_elements_are_compared_alone_with_a_fusion_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], has_fusion: bool
) -> None:
    mine = dump(tmp_path / "a", {"Add_add": {("output", 0): np.float32([1, 2, 3])}})
    golden = dump(tmp_path / "b", {"Add_add": {("output", 0): np.float32([1, 2, 5])}})
    fusion = write_json(tmp_path / "fusion.json", [op_json("Add_add", "Add", [], [("Add_add", 0)])])
    arguments = ("-f", fusion) if has_fusion else ()
    assert compare("-m", mine, "-g", golden, *arguments, "-max", "2", "-out", tmp_path / "out") == 0
    (row,) = result(tmp_path / "out")
    assert row["MaxAbsoluteError"] == ("0.000000" if has_fusion else "2.000000")
    assert ("-max: expected -f" in capsys.readouterr().out) is not has_fusion


@pytest.mark.parametrize("has_data", [True, False])
def test_an_input_of_the_graph_without_a_golden_file_needs_no_reason(
    fused: tuple[Path, Path, Path], tmp_path: Path, has_data: bool
) -> None:
    """Another framework writes no file of what it is fed; any other tensor without one has a reason."""
    mine, golden, fusion = fused
    next(golden.glob("net_add*" if has_data else "data*")).unlink()
    compare("-m", mine, "-g", golden, "-f", fusion, "-out", tmp_path / "out")
    rows = {row["TensorIndex"]: row for row in result(tmp_path / "out")}
    missing = rows["Add_add:output:0" if has_data else "Conv2D_conv_relu:input:0"]
    assert missing["CosineSimilarity"] == "NaN"
    assert bool(missing["CompareFailReason"]) is has_data


def test_two_plain_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "a.npy", np.float32([1, 2]))
    np.save(tmp_path / "b.npy", np.float32([0, 2]))
    (tmp_path / "c.txt").write_text("0 2\n")
    np.save(tmp_path / "d.npy", np.float32([0, 2, 3]))
    assert compare("-m", tmp_path / "a.npy", "-g", tmp_path / "c.txt") == 0
    assert "CosineSimilarity: 0.894427" in capsys.readouterr().out
    assert compare("-m", tmp_path / "a.npy", "-g", tmp_path / "d.npy") == ExitCode.INVALID_SHAPE
    assert (
        main(
            ["file_compare", "-m", str(tmp_path / "a.npy"), "-g", str(tmp_path / "b.npy"), "-out", str(tmp_path / "o")]
        )
        == 0
    )
    text = ["file_compare", "-m", str(tmp_path / "a.npy"), "-g", str(tmp_path / "c.txt"), "-out", str(tmp_path / "o")]
    assert main(text) == ExitCode.INVALID_TYPE
    (path,) = (tmp_path / "o").glob("file_result_*.txt")
    lines = path.read_text().splitlines()
    assert lines[0] == "CosineSimilarity: 0.894427" and "RelativeEuclideanDistance: 0.500000" in lines
    names = [line.partition(":")[0] for line in lines]
    assert names == [name for name in METRICS if name not in ("KullbackLeiblerDivergence", "StandardDeviation")]


def test_batch_of_models(fused: tuple[Path, Path, Path], tmp_path: Path) -> None:
    mine, golden, fusion = fused
    step = tmp_path / "20240101120000/0/model_a/1/5"
    step.parent.mkdir(parents=True)
    mine.rename(step)
    jsons = tmp_path / "jsons"
    jsons.mkdir()
    (jsons / "model_a.json").write_bytes(fusion.read_bytes())
    other = tmp_path / "20240101120000/1/model_a/1/5"
    shutil.copytree(step, other)
    assert compare("-m", tmp_path / "20240101120000", "-g", golden, "-f", jsons, "-out", tmp_path / "out") == 2
    for device in "01":  # each model has its result, whatever the one before it ended with
        assert len(result(tmp_path / "out", f"{device}_model_a_5_result_*.csv")) == 5


BOTH, F = ("-m", "mine", "-g", "golden"), ("-f", "fusion.json")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("-m", "missing", "-g", "golden"), ExitCode.INVALID_PATH),
        (("-m", "mine", "-g", "golden"), ExitCode.INVALID_PARAM),  # dump against npy needs -f
        (("-m", "golden", "-g", "golden"), ExitCode.INVALID_DUMP_TYPE),
        (("-m", "mine", "-g", "mixed", *F), ExitCode.DUMP_FILE),
        (("-m", "empty", "-g", "golden", *F), ExitCode.DUMP_FILE),
        ((*BOTH, "-f", "broken.json"), ExitCode.PARSER_JSON_FILE),
        ((*BOTH, "-f", "other.json"), ExitCode.PARSER_JSON_FILE),
        ((*BOTH, "-f", "missing.json"), ExitCode.INVALID_PATH),
        ((*BOTH, "-s", "1"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-s", "x"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-s", "9"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-r", "1,2"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-r", "1,x,1"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-r", "2,9,1"), ExitCode.INDEX_OUT_OF_BOUNDS),
        ((*BOTH, *F, "-r", "1,2,3"), ExitCode.INDEX_OUT_OF_BOUNDS),
        ((*BOTH, *F, "-r", "1,2,1", "-s", "1"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-r", "1,2,1", "-op", "Add_add"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-n", "0", "-op", "Add_add", "-o", "0"), ExitCode.INDEX_OUT_OF_BOUNDS),
        ((*BOTH, *F, "-ml", "5", "-op", "Add_add", "-o", "0"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-op", "Add_add", "-o", "x"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-op", "Add_add", "-o", "3"), ExitCode.INDEX_OUT_OF_BOUNDS),
        ((*BOTH, *F, "-op", "Sub_none"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-op", "data"), ExitCode.NO_DUMP_FILE),
        ((*BOTH, *F, "-o", "0"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-n", "5"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-ml", "10000"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "--ignore_single_op_result"), ExitCode.INVALID_PARAM),
        ((*BOTH, "-map"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-map", "-op", "Add_add"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-p", "1"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-max", "-1"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-c", "missing"), ExitCode.INVALID_PATH),
        ((*BOTH, *F, "-a", "nonsense"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-a", ":"), ExitCode.INVALID_PARAM),
        ((*BOTH, *F, "-a", "0:a=1,b"), ExitCode.INVALID_PARAM),
        (("-m", "a.h5", "-g", "b.h5"), ExitCode.UNSUPPORTED_COMPARE),
        ((*BOTH, *F, "-a", "0:a=1,b=2;1:", "-s", "2,3"), ExitCode.NONE),
        ((*BOTH, *F, "-s", "2,3", "-alg", "0", "1", "3"), ExitCode.NONE),
        ((*BOTH, *F, "--sel", "2,3", "--max_cmp", "2", "--map"), ExitCode.NONE),
        ((*BOTH, *F, "-s", "2,3", "-q", "", "-c", ""), ExitCode.NONE),
    ],
)
def test_exit_codes(
    fused: tuple[Path, Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    golden_npy(tmp_path / "mixed", {("a", 0): X})
    (tmp_path / f"mixed/Add.add.1.0.{STAMP}").write_bytes(next((tmp_path / "mine").iterdir()).read_bytes())
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "a.h5").touch()
    (tmp_path / "b.h5").touch()
    assert compare(*arguments, "-out", "out") == code


def test_hostile_json_is_an_error_not_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    for text in ('{"graph": [1]}', '{"graph": [{"op": [{"name": 3}]}]}', "[" * 10**5, '{"graph": [{"op": ["x"]}]}'):
        path.write_text(text)
        with pytest.raises(AnalysisError):
            read_fusion_json(path)
    path.write_text(
        '{"graph": [{"op": [{"name": "a", "input": ["b", 3, "c:x"], "attr": 5, "output_desc": [{"attr": [1]}]}]}]}'
    )
    (operator,) = read_fusion_json(path)
    assert operator.inputs == (None, None, None) and operator.outputs[0].origin_name == "a"


def row(index: int, cosine: float, op_type: str = "Add", overflow: str = "NO") -> AdvisorRow:
    return AdvisorRow(index, op_type, f"op{index}", cosine, overflow)


def test_the_advisor_says_the_first_thing_that_holds() -> None:
    data = row(0, 0.5, "Data")
    assert advise([data, row(1, 1, overflow="YES")]).kind == OVERFLOW
    assert (advise([data, row(1, 1)]).kind, advise([data, row(1, 1)]).index) == (INPUT, 0)
    fine = advise([row(0, 1), row(1, math.nan), row(2, 0.99)])
    assert (fine.kind, fine.index) == (CONSISTENCY, None) and "Operator Index: NA\n" in fine.text
    broken, healed = advise([row(0, 1), row(1, 0.5), row(2, 0.6)]), advise([row(0, 1), row(1, 0.5), row(2, 1)])
    assert (broken.index, healed.index) == (1, 1) and broken.advice != healed.advice
    assert "Quantization" in broken.advice and "Quantization" not in healed.advice


def test_the_advisor_writes_its_file(tmp_path: Path) -> None:
    mine = dump(tmp_path / "a", {"Add_add": {("output", 0): X}})
    golden = dump(tmp_path / "b", {"Add_add": {("output", 0): -X}})
    assert compare("-m", mine, "-g", golden, "-advisor", "-out", tmp_path / "out") == 0
    lines = (tmp_path / "out/advisor_summary.txt").read_text().splitlines()
    assert lines[:2] == ["Detection Type: Global Consistency", "Operator Index: 0"]
    assert lines[2].startswith("Expert Advice: Add_add is the first inaccurate operator")
    assert "OverFlow" in result(tmp_path / "out")[0]


@pytest.mark.parametrize(
    "arguments", [("-alg", "0", "1", "77"), ("-alg", "0,1", "MeanAbsoluteError"), ("-o", "0", "-i", "0")]
)
def test_command_lines_that_are_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as stopped:
        compare("-m", "a", "-g", "b", "-op", "x", *arguments)
    assert stopped.value.code == 2


def test_an_empty_folder_of_results_is_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    side = dump(tmp_path / "a", {"Add_add": {("output", 0): X}})
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert compare("-m", side, "-g", side, "-out", "") == 0
    assert len(result(tmp_path / "here")) == 1
