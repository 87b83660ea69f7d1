"""msaccucmp compare and file_compare: command lines, result files, codes, the advisor's three findings."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdump import layouts
from msdump.analysis.advisor import CONSISTENCY, INPUT, OVERFLOW, AdvisorRow, advise
from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.analysis.fusion_json import read_fusion_json
from msdump.analysis.metrics import METRICS
from msdump.cli.msaccucmp import main
from msdump.formats.bin_writer import bin_chunks
from msdump.records import TensorRecord

Array = np.ndarray[Any, np.dtype[Any]]
STAMP = 1_700_000_000_000_000
RNG = np.random.default_rng(11)
X = RNG.standard_normal((2, 3)).astype(np.float32)


def record(op: str, io: str, slot: int, array: Array, stamp: int, form: str = "ND") -> TensorRecord:
    dtype = {"float16": "float16", "float32": "float32", "int32": "int32"}[array.dtype.name]
    return TensorRecord(op.split("_")[0], op, 1, 0, stamp, io, slot, dtype, array, form)


def dump(folder: Path, operators: dict[str, dict[tuple[str, int], Array]], form: str = "ND") -> Path:
    """Device dump files, one for each operator, in this order."""
    folder.mkdir(parents=True)
    for number, (op, tensors) in enumerate(operators.items()):
        stamp = STAMP + number
        records = [record(op, io, slot, array, stamp, form) for (io, slot), array in tensors.items()]
        data = b"".join(bytes(chunk) for chunk in bin_chunks(records))
        (folder / f"{op.split('_')[0]}.{op}.{number}.0.{stamp}").write_bytes(data)
    return folder


def golden_npy(folder: Path, arrays: dict[tuple[str, int], Array]) -> Path:
    folder.mkdir(parents=True)
    for (op, index), array in arrays.items():
        np.save(folder / f"{op.replace('/', '_')}.{index}.{STAMP}.npy", array)
    return folder


def compare(*arguments: str | Path) -> int:
    return main(["compare", *map(str, arguments)])


def result(folder: Path, pattern: str = "result_*.csv") -> list[dict[str, str]]:
    (path,) = folder.glob(pattern)
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def op_json(name: str, op_type: str, inputs: list[str], origins: list[tuple[str, int]]) -> dict[str, Any]:
    return {
        "name": name,
        "type": op_type,
        "input": inputs,
        "attr": [{"key": "_datadump_original_op_names", "value": {"list": {"s": [origin for origin, _ in origins]}}}],
        "output_desc": [
            {
                "attr": [
                    {"key": "_datadump_origin_name", "value": {"s": origin}},
                    {"key": "_datadump_origin_output_index", "value": {"i": index}},
                    {"key": "_datadump_origin_format", "value": {"s": "NCHW"}},
                ]
            }
            for origin, index in origins
        ],
    }


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
        op_json("Conv2D_conv_relu", "Conv2D", ["data:0", "x:-1"], [("net/relu", 0)]),
        op_json("Add_add", "Add", ["Conv2D_conv_relu:0"], [("net/add", 0)]),
    ]
    path = tmp_path / "fusion.json"
    path.write_text(json.dumps({"name": "m", "graph": [{"op": ops}]}))
    return mine, golden, path


def test_dump_against_dump_by_names(tmp_path: Path) -> None:
    mine = dump(tmp_path / "a", {"Add_add": {("input", 0): X, ("output", 0): X + 1}, "Mul_only": {("output", 0): X}})
    golden = dump(tmp_path / "b", {"Add_add": {("input", 0): X, ("output", 0): X * 2}})
    newer = golden / f"Add.Add_add.0.0.{STAMP + 99}"
    newer.write_bytes((mine / f"Add.Add_add.0.0.{STAMP}").read_bytes())
    short = golden / "Add.Add_add.0.0.99999"
    short.write_bytes((golden / f"Add.Add_add.0.0.{STAMP}").read_bytes())
    assert compare("-m", mine, "-g", golden, "-out", tmp_path / "out", "-map") == 0
    rows = result(tmp_path / "out")
    assert list(rows[0])[:7] == ["Index", "OpType", "NPUDump", "DataType", "Address", "GroundTruth", "TensorIndex"]
    assert list(rows[0])[-11:] == [*METRICS, "CompareFailReason"]
    assert [row["TensorIndex"] for row in rows] == ["Add_add:input:0", "Add_add:output:0", "Mul_only:output:0"]
    assert [row["CosineSimilarity"] for row in rows] == ["1.000000", "1.000000", "NaN"]  # the newest file counts
    assert rows[0]["Shape"] == "[2,3]" and rows[2]["GroundTruth"] == "*" and rows[2]["CompareFailReason"]
    mapping = result(tmp_path / "out", "mapping_*.csv")
    assert list(mapping[0]) == [
        "Index", "OpType", "NPUDump", "GroundTruth", "TensorIndex", "NPUDumpPath", "GroundTruthPath",
    ]  # fmt: skip
    assert mapping[0]["GroundTruthPath"] == str(newer) and mapping[2]["GroundTruthPath"] == "*"


def test_fused_operators_meet_the_original_ones(fused: tuple[Path, Path, Path], tmp_path: Path) -> None:
    mine, golden, fusion = fused
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-out", tmp_path / "out") == 0
    rows = result(tmp_path / "out")
    assert [(row["NPUDump"], row["GroundTruth"], row["TensorIndex"]) for row in rows] == [
        ("Conv2D_conv_relu", "data", "Conv2D_conv_relu:input:0"),
        ("Conv2D_conv_relu", "net/relu", "Conv2D_conv_relu:output:0"),
        ("Add_add", "net/relu", "Add_add:input:0"),
        ("Add_add", "net/add", "Add_add:output:0"),
    ]
    assert {row["CosineSimilarity"] for row in rows} == {"1.000000"}
    assert sum(title == "Address" for title in rows[0]) == 1  # npy files have none


def test_operators_by_sequence(fused: tuple[Path, Path, Path], tmp_path: Path) -> None:
    mine, golden, fusion = fused
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-s", "3", "-out", tmp_path / "s") == 0
    assert {row["OpSequence"] for row in result(tmp_path / "s")} == {"3"}
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-r", "1,2,1", "-out", tmp_path / "r") == 0
    assert {row["OpSequence"] for row in result(tmp_path / "r")} == {"2"}
    assert (
        compare("-m", mine, "-g", golden, "-f", fusion, "-r", "2,9", "-out", tmp_path / "x") == ExitCode.INVALID_PARAM
    )


def test_an_operator_without_a_dump_file_ends_with_2_and_a_result(
    fused: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    mine, golden, fusion = fused
    next(mine.glob("Add.*")).unlink()
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-out", tmp_path / "out") == ExitCode.NO_DUMP_FILE
    rows = result(tmp_path / "out")
    assert [row["NPUDump"] for row in rows] == ["Conv2D_conv_relu", "Conv2D_conv_relu", "*"]
    assert rows[2]["CosineSimilarity"] == "NaN" and "no dump file" in rows[2]["CompareFailReason"]


def test_device_layouts_are_compared_as_the_original_has_them(tmp_path: Path) -> None:
    image = RNG.standard_normal((1, 3, 4, 5)).astype(np.float16)
    mine = dump(tmp_path / "mine", {"Conv2D_c": {("output", 0): image}}, form="NC1HWC0")
    ops = [op_json("Conv2D_c", "Conv2D", [], [("conv", 0)])]
    (tmp_path / "f.json").write_text(json.dumps({"graph": [{"op": ops}]}))
    golden = golden_npy(tmp_path / "golden", {("conv", 0): image.astype(np.float32)})
    assert compare("-m", mine, "-g", golden, "-f", tmp_path / "f.json", "-out", tmp_path / "out") == 0
    (row,) = result(tmp_path / "out")
    assert row["CosineSimilarity"] == "1.000000" and row["MaxAbsoluteError"] == "0.000000"
    assert row["Shape"] == "[1,1,4,5,16]"
    assert layouts.device_shape((1, 3, 4, 5), "NC1HWC0", 16) == (1, 1, 4, 5, 16)


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
        assert compare(*pair, *more, "-out", out) != 0
        assert (tmp_path / "target").read_text() == "kept"


def test_single_operator_in_detail(fused: tuple[Path, Path, Path], tmp_path: Path) -> None:
    mine, golden, fusion = fused
    np.save(golden / f"net_add.0.{STAMP}.npy", X * 3 + np.float32([[0, 0, 0], [0, 5, 0]]))
    out = tmp_path / "out"
    arguments = ("-m", mine, "-g", golden, "-f", fusion, "-op", "Add_add", "-o", "0", "-n", "2", "-out", out)
    assert compare(*arguments) == 0
    names = {path.name for path in out.iterdir()}
    assert names == {
        "Add_add_output_0.npy", "net_add_output_0.npy", "Add_add_output_0_0.csv", "Add_add_output_0_summary.txt",
        "Add_add_output_0_absolute_error_topn.csv", "Add_add_output_0_relative_error_topn.csv",
    }  # fmt: skip
    with open(out / "Add_add_output_0_0.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6 and rows[4]["AbsoluteError"] == "5.000000" and rows[4]["D0 D1"] == "1 1"
    top = (out / "Add_add_output_0_absolute_error_topn.csv").read_text().splitlines()
    assert len(top) == 3 and top[1].startswith("4,1 1,")
    text = (out / "Add_add_output_0_summary.txt").read_text()
    assert "TotalCount:6\n" in text and "MaxAbsoluteError:5.000000\n" in text
    assert compare(*arguments[:-2], "-out", tmp_path / "short", "--ignore_single_op_result") == 0
    assert not (tmp_path / "short/Add_add_output_0_0.csv").exists()
    assert compare("-m", mine, "-g", golden, "-f", fusion, "-op", "Add_add", "-out", out) == ExitCode.INVALID_PARAM


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
    (scripts / "alg_Bad.py").chmod(0o666)
    assert compare(*common, "-alg", "Bad", "-out", tmp_path / "out") == ExitCode.DANGER_FILE


def test_overflow_column_and_first_elements(tmp_path: Path) -> None:
    halves = {"Add_a": [1, 65504], "Add_b": [1, 2], "Add_c": [math.nan, 65504], "Add_d": [math.inf, 0]}
    arrays: dict[str, dict[tuple[str, int], Array]] = {
        name: {("output", 0): np.array(values, np.float16)} for name, values in halves.items()
    }
    arrays["Add_e"] = {("output", 0): np.array([7e4, 1], np.float32)}
    mine, golden = dump(tmp_path / "a", arrays), dump(tmp_path / "b", arrays)
    assert compare("-m", mine, "-g", golden, "-overflow_detection", "-max", "1", "-out", tmp_path / "out") == 0
    rows = result(tmp_path / "out")
    assert [row["OverFlow"] for row in rows] == ["YES", "NO", "NO", "YES", "NaN"]
    assert rows[0]["MeanAbsoluteError"] == "0.000000"


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
    assert compare("-m", tmp_path / "20240101120000", "-g", golden, "-f", jsons, "-out", tmp_path / "out") == 0
    assert len(result(tmp_path / "out", "0_model_a_5_result_*.csv")) == 4


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("-m", "missing", "-g", "golden"), ExitCode.INVALID_PATH),
        (("-m", "mine", "-g", "golden"), ExitCode.INVALID_PARAM),  # dump against npy needs -f
        (("-m", "mine", "-g", "mixed", "-f", "fusion.json"), ExitCode.INVALID_PATH),
        (("-m", "empty", "-g", "golden", "-f", "fusion.json"), ExitCode.NO_DUMP_FILE),
        (("-m", "mine", "-g", "golden", "-f", "broken.json"), ExitCode.PARSER_JSON_FILE),
        (("-m", "mine", "-g", "golden", "-f", "other.json"), ExitCode.INVALID_JSON_FILE),
        (("-m", "mine", "-g", "golden", "-s", "1"), ExitCode.INVALID_PARAM),
        (("-m", "mine", "-g", "golden", "-f", "fusion.json", "-n", "0", "-op", "x", "-o", "0"), ExitCode.INVALID_PARAM),
        (("-m", "mine", "-g", "golden", "-p", "1"), ExitCode.UNSUPPORTED_COMPARE),
        (("-m", "mine", "-g", "golden", "-f", "fusion.json", "-a", "nonsense"), ExitCode.INVALID_PARAM),
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
    assert advise([row(0, 0.5)], input_nodes={"op0"}).kind == INPUT
    fine = advise([row(0, 1), row(1, math.nan), row(2, 0.99)])
    assert (fine.kind, fine.index) == (CONSISTENCY, None) and "Operator Index: NA\n" in fine.text
    broken, healed = advise([row(0, 1), row(1, 0.5), row(2, 0.6)]), advise([row(0, 1), row(1, 0.5), row(2, 1)])
    assert (broken.index, healed.index) == (1, 1) and broken.advice != healed.advice


def test_the_advisor_writes_its_file(tmp_path: Path) -> None:
    mine = dump(tmp_path / "a", {"Add_add": {("output", 0): X}})
    golden = dump(tmp_path / "b", {"Add_add": {("output", 0): -X}})
    assert compare("-m", mine, "-g", golden, "-advisor", "-out", tmp_path / "out") == 0
    lines = (tmp_path / "out/advisor_summary.txt").read_text().splitlines()
    assert lines[:2] == ["Detection Type: Global Consistency", "Operator Index: 0"]
    assert lines[2].startswith("Expert Advice: Add_add is the first inaccurate operator")
    assert "OverFlow" in result(tmp_path / "out")[0]
