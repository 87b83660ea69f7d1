"""The first operator that makes a NaN or Inf: from tensors, from statistics, with and without inputs."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import math
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.analysis import find_non_finite, write_statistic_files
from msdump.analysis.overview.contents import Contents
from msdump.cli.main import main
from msdump.errors import ConfigError
from msdump.formats.sidecars import Lost, write_lost
from msdump.viewing.pages import Pages
from tests.analysis.conftest import ROOT
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)
GOOD, BAD, INF = floats(1, 2), floats(1, math.nan), floats(math.inf, 2)
CHAIN = [
    ("D/Add-op1", {IN: GOOD, OUT: GOOD}),
    ("D/Log-op2", {IN: GOOD, OUT: BAD}),
    ("D/Mul-op3", {IN: BAD, OUT: BAD}),
    ("D/ReLU-op4", {IN: BAD, OUT: GOOD}),
    ("D/Div-op5", {IN: GOOD, OUT: INF}),
    ("Parameter.w", {OUT: BAD}),
]


def test_maker_infected_and_healed(tmp_path: Path) -> None:
    write_dump(tmp_path, [("D/Add-op1", {IN: GOOD, OUT: GOOD})], iteration=0)
    write_dump(tmp_path, CHAIN, iteration=1)
    write_dump(tmp_path, CHAIN, iteration=2)
    found = find_non_finite(tmp_path)
    assert (found.step_count, len(found.steps)) == (3, 2)
    first = found.first
    assert first is not None and first.how == "made" and first.step.iteration == 1
    assert first.operator.full_name == "D/Log-op2"
    (tensor,) = first.tensors
    assert (tensor.io, tensor.nan, tensor.inf) == ("output", 1, 0)
    assert [operator.op_name for operator in first.infected] == ["Mul-op3"]
    assert [operator.op_name for operator in first.stopped] == ["ReLU-op4"]
    assert [operator.op_name for operator in first.also_made] == ["Div-op5"]
    assert first.parameters == ("w",)


def test_statistics_alone_say_the_same(tmp_path: Path) -> None:
    write_dump(tmp_path / "tensors", CHAIN)
    written, damaged = write_statistic_files(tmp_path / "tensors", tmp_path / "statistics")
    assert len(written) == 1 and not damaged
    by_tensor, by_row = find_non_finite(tmp_path / "tensors").first, find_non_finite(written[0]).first
    assert by_tensor is not None and by_row is not None
    assert by_row.operator.op_name == by_tensor.operator.op_name == "Log-op2"
    assert [(tensor.nan, tensor.inf) for tensor in by_row.tensors] == [(1, 0)]
    assert [o.op_name for o in by_row.infected] == [o.op_name for o in by_tensor.infected]


def test_what_came_in_is_told_from_what_was_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dump(tmp_path / "in", [("D/Add-op1", {IN: BAD, OUT: BAD}), ("D/Mul-op2", {IN: BAD, OUT: BAD})])
    found = find_non_finite(tmp_path / "in").first
    assert found is not None and found.how == "came in" and found.tensors[0].io == "input"
    assert main(["nan", str(tmp_path / "in")]) == 1
    line = f"msdump show {shlex.quote(str(tmp_path / 'in'))} D/Add-op1 --rank 0 --graph 0 --iteration 0"
    text = capsys.readouterr().out
    assert f"what came in, and what was there before: {line}\n" in text
    assert main(shlex.split(line)[1:]) == 0
    write_dump(tmp_path / "unknown", [("D/Add-op1", {OUT: BAD})])
    unknown = find_non_finite(tmp_path / "unknown").first
    assert unknown is not None and unknown.how == "unknown"
    write_dump(tmp_path / "parameter", [("D/Add-op1", {IN: GOOD, OUT: GOOD}), ("Parameter.w", {OUT: BAD})])
    parameter = find_non_finite(tmp_path / "parameter").first
    assert parameter is not None and parameter.parameters == ("w",) and parameter.operator.is_parameter


def test_an_input_that_shows_the_result_does_not_hide_the_maker(tmp_path: Path) -> None:
    write_dump(tmp_path, [("D/ApplyMomentum-op1", {IN: INF, ("input", 1): GOOD, ("input", 3): GOOD, OUT: INF})])
    found = find_non_finite(tmp_path).first
    assert found is not None and found.how == "made"


def test_integers_are_finite_and_damaged_files_named(tmp_path: Path) -> None:
    write_dump(tmp_path, [("D/Add-op1", {IN: np.array([1, 2], np.int32), OUT: GOOD})])
    victim = next(tmp_path.rglob("*output*.npy"))
    victim.write_bytes(victim.read_bytes()[:-2])
    found = find_non_finite(tmp_path)
    assert not found.steps and [Path(path).name for path, _ in found.damaged] == [victim.name]


def test_what_is_finite_is_told_with_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dump(tmp_path, [("D/Add-op1", {IN: GOOD, OUT: GOOD})])
    write_lost(tmp_path / "rank_0/.dump_metadata", Lost(3, "no room on the disk"))
    missing = "rank 0: the dump is not complete, 3 tensors lost: no room on the disk\n"
    for option, answer in (("--all", "that are there hold no NaN and no Inf."), ("--brief", "that are there.")):
        assert main(["nan", str(tmp_path), option]) == 4
        text = capsys.readouterr().out
        assert re.match("incomplete: .*2 tensors of 1 iteration ", text) and answer in text and missing in text
        assert "finite:" not in text
    assert main(["nan", str(tmp_path), "--json", "-"]) == 4
    value = json.loads(capsys.readouterr().out)
    assert value["is_finite"] and value["lost"] == [{"rank": 0, "tensors": 3, "reason": "no room on the disk"}]
    # Another rank is whole.
    write_dump(tmp_path, [("D/Add-op1", {IN: GOOD, OUT: GOOD})], rank=1)
    assert main(["nan", str(tmp_path), "--rank", "1"]) == 0 and missing not in capsys.readouterr().out
    write_dump(tmp_path, CHAIN, iteration=7)
    assert main(["nan", str(tmp_path)]) == 1 and missing in capsys.readouterr().out


def test_statistics_without_the_columns_are_named(tmp_path: Path) -> None:
    write_dump(tmp_path / "a", CHAIN)
    (path,), _ = write_statistic_files(tmp_path / "a", tmp_path / "b")
    rows = list(csv.reader(path.read_text().splitlines()))
    kept = [index for index, title in enumerate(rows[0]) if "NaN" not in title and "Inf" not in title]
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([[row[index] for index in kept] for row in rows])
    found = find_non_finite(path)
    assert not found.steps and "NaN Count" in str(found.damaged[0][1])


def test_statistics_of_single_operators_as_acl_writes_them(tmp_path: Path) -> None:
    folder = tmp_path / "20240101120000/0/model/1/0"
    folder.mkdir(parents=True)
    header = "Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min Value,Avg Value,Count,Nan Count,"
    header += "Negative Inf Count,Positive Inf Count\n"
    for number, counts in ((1, ("0", "0")), (2, ("0", "3"))):
        rows = [f"{io},0,16,DT_FLOAT16,ND,2x4,1,-1,0.5,8,{count},0,0" for io, count in zip(("Input", "Output"), counts)]  # noqa: B905
        (folder / f"Mul.net_Mul{number}.{number}.0.170000000000000{number}.csv").write_text(
            header + "\n".join(rows) + "\n"
        )
    found = find_non_finite(tmp_path).first
    assert found is not None and found.how == "made" and found.operator.op_name == "net_Mul2"
    assert found.tensors[0].tensor.shape == (2, 4) and found.tensors[0].tensor.dtype == "float16"


def test_nothing_to_look_at(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected tensors or statistics"):
        find_non_finite(tmp_path)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_first_bad_output_of_good_inputs_is_found(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    flags = data.draw(st.lists(st.booleans(), min_size=1, max_size=6))
    operators, before = [], GOOD
    for number, is_bad in enumerate(flags, 1):
        after = BAD if is_bad or np.isnan(before).any() else GOOD
        operators.append((f"D/Add-op{number}", {IN: before, OUT: after}))
        before = after
    found = find_non_finite(write_dump(tmp_path_factory.mktemp("chain"), operators)).first
    if not any(flags):
        assert found is None
        return
    place = flags.index(True)
    assert found is not None and found.operator.op_name == f"Add-op{place + 1}"
    assert len(found.infected) == len(flags) - place - 1 and not found.also_made


def test_inputs_come_from_the_graph_when_only_outputs_were_dumped(own_dump: Path, tmp_path: Path) -> None:
    """The real graph file tells who made what; one output is replaced by NaN, and the ones it feeds as well."""
    folder = tmp_path / "dump/rank_0"
    for kind in ("graphs", "execution_order"):
        (folder / kind).mkdir(parents=True)
        for path in (own_dump / "rank_0" / kind).iterdir():
            (folder / kind / path.name).write_bytes(path.read_bytes())
    data = folder / "LeNet/0/0"
    data.mkdir(parents=True)
    for path in (own_dump / "rank_0/LeNet/0/0").glob("*.output.*.npy"):
        if path.name.startswith("Parameter."):
            continue
        array = np.load(path)
        if any(f".{name}." in path.name for name in ("ReLU-op4", "MaxPool-op5")):
            array = np.full_like(array, np.nan)
        np.save(data / path.name, array)
    found = find_non_finite(tmp_path / "dump").first
    assert found is not None and found.how == "made" and found.operator.op_name == "ReLU-op4"
    assert found.line is not None and found.line.code.strip() == "x = self.max_pool2d(self.relu(self.conv2(x)))"
    assert [operator.op_name for operator in found.infected] == ["MaxPool-op5"]


def test_operators_that_a_nan_reaches_are_listed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After all else and before the next commands, five of them at most, though an Inf and the NaN of it reach them."""
    bad = [(f"D/Mul-op{number}", {("input", 0): floats(np.nan), OUT: floats(np.nan)}) for number in range(3, 12)]
    chain = [
        ("D/Exp-op1", {("input", 0): floats(1e3), OUT: floats(np.inf)}),
        ("D/Sub-op2", {("input", 0): floats(np.inf), OUT: floats(np.nan)}),
        *bad,
    ]
    write_dump(tmp_path / "bad", chain)
    assert main(["nan", str(tmp_path / "bad")]) == 1
    text = capsys.readouterr().out
    assert text.count("D/Mul-op3") == text.count("infects: ") == 1
    _, _, listed = text.partition("infects: 9 operators\n")
    lines = listed.splitlines()
    assert [line.strip() for line in lines[:5]] == [f"D/Mul-op{number}" for number in range(3, 8)]
    assert lines[5:8] == ["  and 4 more", "", "next:"]


def test_command(tmp_path: Path) -> None:
    write_dump(tmp_path / "bad", CHAIN)
    write_dump(tmp_path / "good", CHAIN[:1])

    def nan(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "msdump", "nan", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout + done.stderr

    code, text = nan(str(tmp_path / "bad"))
    assert code == 1
    assert text.startswith("first NaN, made out of finite inputs: D/Log-op2 (Log), rank 0, graph 0")
    assert "\nfirst unexpected Inf, made out of finite inputs: D/Div-op5 (Div), rank 0, graph 0" in text
    assert "output 0: float32 [2], 1 NaN, 0 Inf" in text and "infects: 1 operator\n  D/Mul-op3" in text
    write_statistic_files(tmp_path / "bad", tmp_path / "statistics")
    assert "msdump zoom" not in text
    quoted = shlex.quote(f"{tmp_path}/statistics")
    assert f"\n  msdump zoom {quoted} Log-op2  # " in nan(f"{tmp_path}/statistics")[1]
    code, text = nan(str(tmp_path / "good"))
    assert code == 0 and text.startswith("finite: 2 tensors of 1 iteration hold no NaN and no Inf.\n\nnext:\n")
    code, text = nan(str(tmp_path / "missing"))
    assert code == 2 and text.startswith("msdump nan: ")


def test_complex_numbers_have_no_counts_and_damage_nothing(tmp_path: Path) -> None:
    write_dump(tmp_path / "tensors", [("D/Fft-op1", {IN: GOOD, OUT: np.array([1j, 2], np.complex64)}), *CHAIN])
    (statistics,), damaged = write_statistic_files(tmp_path / "tensors", tmp_path / "statistics")
    assert not damaged
    found = find_non_finite(statistics)
    assert found.damaged == () and found.first is not None and found.first.operator.op_name == "Log-op2"


def test_what_a_collective_brought_stands_behind_what_another_rank_made(tmp_path: Path) -> None:
    write_dump(tmp_path, [("D/AllReduce-op1", {IN: GOOD, OUT: BAD})], iteration=4, rank=0)
    write_dump(tmp_path, [("D/Log-op1", {IN: GOOD, OUT: BAD})], iteration=4, rank=1)
    write_dump(tmp_path, [("D/c10d_allreduce__default-op1", {IN: GOOD, OUT: BAD})], iteration=5, rank=0)
    report = find_non_finite(tmp_path)
    assert [(each.step.rank_id, each.step.iteration, each.how) for each in report.steps] == [
        (1, 4, "made"),
        (0, 4, "received"),
        (0, 5, "received"),
    ]


@pytest.mark.parametrize("is_in_between", [False, True])
def test_what_an_earlier_iteration_made_is_followed_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_in_between: bool
) -> None:
    """A table whose first entry is Inf spoils nothing until that entry is read."""
    table, part = floats(np.inf, 2, 1), floats(np.inf)
    made = [("Net/Reciprocal-op0", {IN: floats(0, 0.5, 1), OUT: table})]
    if is_in_between:
        made.append(("Net/Reshape-op1", {IN: table, OUT: table}))
    made.append(("Net/Gather-op2", {IN: table, OUT: floats(2)}))
    write_dump(
        tmp_path, [("Net/Gather-op2", {IN: table, OUT: part}), ("Net/Mul-op3", {IN: part, OUT: part})], iteration=1
    )
    write_dump(tmp_path, [*made, ("Net/Mul-op3", {IN: floats(2), OUT: floats(4)})])
    assert main(["nan", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("first unexpected Inf, made out of finite inputs: Net/Reciprocal-op0")
    assert "nothing of its own iteration reads it; Net/Gather-op2 does in rank 0, graph 0, iteration 1" in out
    assert "benign Inf: Net/Reciprocal-op0" not in out
    first = find_non_finite(tmp_path).first
    assert first is not None and first.shows is not None and first.shows[0].iteration == 1


@settings(max_examples=8, deadline=None)
@given(good=st.integers(0, 2), bad=st.integers(0, 3), graphs=st.integers(1, 2), ranks=st.integers(1, 2))
def test_a_step_is_an_iteration(good: int, bad: int, graphs: int, ranks: int) -> None:
    """However many graphs and ranks ran in it."""
    if not good + bad:
        return
    with tempfile.TemporaryDirectory() as folder:
        for iteration, graph, rank in itertools.product(range(good + bad), range(graphs), range(ranks)):
            made = [("D/Log-op2", {IN: GOOD, OUT: GOOD if iteration < good else BAD})]
            write_dump(Path(folder), made, iteration, graph, rank)
        found = find_non_finite(folder)
        assert (found.step_count, found.bad_step_count) == (good + bad, bad)
        assert f"<NonFiniteReport: {bad} of {good + bad} iterations" in repr(found)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert main(["nan", folder]) == (1 if bad else 0)
        text = out.getvalue()
        if not bad:
            assert text.startswith(f"finite: {graphs * ranks * good * 2} tensors of {good} iteration")
        assert (f"{bad - 1} more iteration" in text) == (bad > 1)
        assert ("other graphs or ranks of this iteration" in text) == (bad == 1 and graphs * ranks > 1)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            main(["nan", folder, "--json", "-"])
        value = json.loads(out.getvalue())
        assert (value["step_count"], value["bad_step_count"]) == (good + bad, bad)
        cards = {card["kind"]: card["count"] for card in Pages(Contents(folder)).get("map")["cards"]}
        assert cards.get("nan", 0) == bad


def test_complex_numbers_of_statistics_are_not_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = 'Add,Add-op1,0,0,1700000000000000,output,{slot},8,{dtype},"(1)",{numbers}\n'
    head = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Count,L2Norm Value\n"
    folder = tmp_path / "rank_0/Net/0/0"
    folder.mkdir(parents=True)
    rows = [("complex64", "1,null"), ("float32", "1,2.5"), ("int32", "1,null")]
    text = "".join(row.format(slot=at, dtype=dtype, numbers=numbers) for at, (dtype, numbers) in enumerate(rows))
    (folder / "statistic.csv").write_text(head + text)
    for words in ([], ["--brief"]):
        assert main(["nan", str(tmp_path), *words]) == 0
        out = capsys.readouterr().out
        assert out.startswith("finite: 2 tensors of 1 iteration")
        assert "not known: 1 tensor of complex64, which have no statistics" in out
