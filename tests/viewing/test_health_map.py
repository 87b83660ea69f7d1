"""The map of a dump: parts of a step, cells that say what the tables say, the curves, and cards of what was found."""

from __future__ import annotations

import base64
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from msdump.analysis.measurements import Measurements
from msdump.analysis.overview.contents import Contents
from msdump.analysis.overview.parts import graph_parts
from msdump.viewing.health_map import distances_of, packed_logs
from msdump.viewing.pages import Pages
from msdump.viewing.redaction import Redaction
from tests.analysis.ranks.test_words import make_job
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)
SIZES = st.one_of(st.floats(1e-300, 1e300), st.just(0.0), st.just(math.inf), st.just(math.nan))


def logs_of(text: str) -> Any:
    return np.frombuffer(base64.b64decode(text), "<f4")


@given(st.lists(SIZES, max_size=20))
def test_a_cell_keeps_four_digits(values: list[float]) -> None:
    logs = logs_of(packed_logs(np.array(values)))
    assert len(logs) == len(values)
    for value, log in zip(values, logs.tolist(), strict=True):
        if math.isnan(value):
            assert math.isnan(log)
        elif value in (0.0, math.inf):
            assert log == (-math.inf if value == 0 else math.inf)
        else:
            assert math.isclose(log, math.log10(value), abs_tol=2**-14)


@given(
    arrays.arrays(np.float64, (5, 2, 3), elements=st.one_of(st.floats(0, 1e6), st.just(math.nan), st.just(math.inf)))
)
def test_ranks_that_agree_have_no_distance(sizes: Any) -> None:
    distances = distances_of(sizes)
    is_there = ~np.isnan(sizes)
    assert np.array_equal(~np.isnan(distances), is_there & (is_there.sum(axis=0) > 1))
    assert (distances[~np.isnan(distances)] >= 0).all()
    same = np.broadcast_to(sizes[:1], sizes.shape)
    assert (np.nan_to_num(distances_of(same)) == 0).all()


def test_what_msprobe_records_is_in_its_own_part_and_has_no_time() -> None:
    frame = Pages(Contents(Path(__file__).parents[1] / "golden" / "msprobe" / "nan")).get("map")
    parts = {frame["parts"][part] for part in frame["rows"]["part"]}
    assert parts == {"forward", "backward"}
    for part, name in zip(frame["rows"]["part"], frame["rows"]["name"], strict=True):
        assert frame["parts"][part] == ("backward" if "backward" in name or "grad" in name else "forward")
    assert (frame["provenance"]["begin"], frame["provenance"]["end"]) == (None, None)


def test_a_weight_that_is_dequantised_is_no_row_of_the_forward_part(tmp_path: Path) -> None:
    codes, more = np.array([1, 2, 3], np.int8), np.array([4, 5, 6], np.int8)
    named = [
        ("DequantizeLinear-op0", {IN: codes, OUT: floats(1, 2, 3)}),
        ("QuantizeLinear-op1", {IN: floats(4, 5, 6), OUT: more}),
        ("DequantizeLinear-op2", {IN: more, OUT: floats(4.5, 5, 6)}),
    ]
    frame = Pages(Contents(write_dump(tmp_path / "dump", named))).get("map")
    parts = [frame["parts"][part] for part in frame["rows"]["part"]]
    assert dict(zip(frame["rows"]["name"], parts, strict=True)) == {
        "DequantizeLinear-op0": "construction", "QuantizeLinear-op1": "forward", "DequantizeLinear-op2": "forward",
    }  # fmt: skip


def test_one_rank_of_four_stands_out() -> None:
    sizes = np.full((4, 1, 1), 2.0)
    sizes[2] = 3.0
    assert distances_of(sizes).ravel().tolist() == [0, 0, 0.5, 0]


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """Forward, backward and optimizer in graphs of their own, over three iterations, and the construction before."""
    folder = tmp_path / "dump"
    write_dump(folder, [("Default/Fill-op0", {OUT: floats(0, 1)})], graph=3, iteration=0)
    for iteration in range(3):
        loss = np.array(2.0 - iteration, np.float32)
        forward = [("Default/a-Dense/MatMul-op0", {IN: floats(1, 2), OUT: floats(3, 4 + iteration)}),
                   ("Default/a-Dense/ReLU-op1", {OUT: floats(0, 0)}), ("Default/MSELoss-op2", {OUT: loss})]  # fmt: skip
        backward = [("Gradients/Default/a-Dense/MatMul-op0", {OUT: floats(3, 4)})]
        if iteration == 2:
            backward.append(("Gradients/Default/a-Dense/Log-op1", {IN: floats(-1, 1), OUT: floats(np.nan, 0)}))
        write_dump(folder, forward, graph=0, iteration=iteration)
        write_dump(folder, backward, graph=1, iteration=iteration)
        write_dump(folder, [("Default/optimizer-SGD/Sub-op0", {OUT: floats(1, 1)})], graph=2, iteration=iteration)
    return folder


def test_parts_of_a_training(training: Path) -> None:
    pages = Pages(Contents(training))
    parts = graph_parts(Contents(training).operators)
    assert parts == {(0, 0): "forward", (0, 1): "backward", (0, 2): "optimizer", (0, 3): "construction"}
    assert set(zip(*(pages.get("overview")["steps"][name] for name in ("graph", "part")), strict=True)) == {
        (0, "forward"), (1, "backward"), (2, "optimizer"), (3, "construction"),
    }  # fmt: skip


def test_the_construction_of_a_model_that_ran_once(tmp_path: Path) -> None:
    """One iteration does not tell which graph comes back; the times of the files tell which one ran first."""
    dump = tmp_path / "dump"
    for graph, name in ((3, "Default/Fill-op0"), (0, "Default/MatMul-op0"), (1, "Gradients/Default/MatMul-op0")):
        write_dump(dump, [(name, {OUT: floats(0, 1)})], graph=graph)
        for at, path in enumerate(sorted(dump.rglob(f"Net/{graph}/0/*.npy"))):
            head, stamp, tail = re.split(r"(?<=\.)(17\d{14})(?=\.)", path.name)
            path.rename(path.with_name(f"{head}{int(stamp) + 10 * [3, 0, 1].index(graph) + at}{tail}"))
    parts = graph_parts(Contents(dump).operators)
    assert parts == {(0, 0): "forward", (0, 1): "backward", (0, 3): "construction"}


def test_a_graph_of_a_whole_step_has_three_bands(tmp_path: Path) -> None:
    names = ("Default/a-Dense/MatMul-op0", "Gradients/Default/a-Dense/MatMul-op1", "Default/optimizer-Adam/Adam-op2")
    dump = write_dump(tmp_path / "dump", [(name, {OUT: floats(1, 2)}) for name in names])
    assert graph_parts(Contents(dump).operators) == {(0, 0): "step"}
    frame = Pages(Contents(dump)).get("map")
    assert [frame["parts"][part] for part in frame["rows"]["part"]] == ["forward", "backward", "optimizer"]


def test_cells_say_what_the_tables_say(training: Path) -> None:
    pages = Pages(Contents(training))
    frame = json.loads(json.dumps(pages.get("map"), allow_nan=False))
    names, healths = frame["rows"]["name"], pages.get("overview")["healths"]
    assert frame["iterations"] == [0, 1, 2] and frame["statistics"] == ["l2", "max", "nan", "zero"]
    cells = np.array(list(pages.get("map/0")["cells"])).reshape(len(names), 3)
    values = {name: logs_of(pages.get(f"map/0/{name}")["cells"]).reshape(cells.shape) for name in frame["statistics"]}
    for path in (path for path in pages.paths() if path.startswith("step/")):
        graph, iteration = (int(part) for part in path.split("/")[2:])
        operators, tensors = pages.get(path)["operators"], pages.get(path)["tensors"]
        for name, health in zip(operators["name"], operators["health"], strict=True):
            row = next(at for at, one in enumerate(names) if (one, frame["rows"]["graph"][at]) == (name, graph))
            assert healths[int(cells[row, iteration])] == health
        own = tensors["io"].index("output")
        row = names.index(operators["name"][0])
        assert 10 ** values["l2"][row, iteration] == pytest.approx(tensors["l2norm"][own], rel=1e-3)
    assert (cells == ".").sum() == 2 + 2  # the construction ran once, and so did the logarithm
    assert values["nan"][names.index("Gradients/Default/a-Dense/Log-op1"), 2] == 0  # one of them


def test_a_constant_of_a_program_that_only_runs_forward_is_no_loss(tmp_path: Path) -> None:
    """A mean of what it makes may be one; a half and a scale are none."""
    half = np.array(0.5, np.float32)
    forward = [("/a/Gemm-op0", {IN: floats(1, 2), OUT: floats(3, 4)}), ("/a/Constant-op1", {OUT: half}),
               ("/a/DequantizeLinear-op2", {IN: half, OUT: half})]  # fmt: skip
    mean = ("/a/ReduceMean-op3", {IN: floats(3, 4), OUT: np.array(3.5, np.float32)})
    for name, operators, loss in (("plain", forward, None), ("mean", [*forward, mean], [3.5])):
        frame = Pages(Contents(write_dump(tmp_path / name, operators))).get("map")
        found = frame["curves"][0]["loss"]
        assert (found and found["values"]) == loss


def test_what_stands_above_and_beside_the_map(training: Path) -> None:
    frame = Pages(Contents(training)).get("map")
    assert frame["curves"][0]["loss"] == {"name": "Default/MSELoss-op2", "values": [2.0, 1.0, 0.0]}
    assert frame["curves"][0]["largest"] == [4.0, 5.0, 6.0]
    rank, row, column = frame["first"]
    assert (rank, frame["rows"]["name"][row], column) == (0, "Gradients/Default/a-Dense/Log-op1", 2)
    assert frame["cells"][0][2] == "0" and frame["cells"][0][:2] == "33"
    assert {card["kind"]: card["count"] for card in frame["cards"]} == {"nan": 1, "dead": 1}
    assert [frame["rows"]["name"][one] for one in frame["dead"]] == ["Default/a-Dense/ReLU-op1"]
    assert frame["cards"][0]["at"]["step"] == [0, 1, 2]


def test_how_a_dump_was_made(nan_dump: Path) -> None:
    pages = Pages(Contents(nan_dump))
    made = pages.get("map")["provenance"]
    assert made["command"].startswith("msdump run") and made["command"].endswith("train.py")
    assert json.loads(made["configuration"])["e2e_dump_settings"]["enable"] is True
    assert made["begin"] <= made["end"]
    lines = pages.get("overview")["findings"][0]["lines"]
    own = pages.get("overview")["findings"][0]["line"]
    assert own[1] in [line for _, line, _ in lines] and all(abs(line - own[1]) <= 2 for _, line, _ in lines)


def test_redaction_leaves_the_cells_and_hides_the_folder(nan_dump: Path) -> None:
    pages = Pages(Contents(nan_dump))
    answers = {path: pages.get(path) for path in pages.paths()}
    shown = Redaction(answers, [nan_dump]).of(answers["map"])
    assert shown["cells"] == answers["map"]["cells"] and shown["rows"] == answers["map"]["rows"]
    assert str(nan_dump.parent) not in json.dumps(shown)
    assert Redaction(answers, [nan_dump]).of(answers["map/0/l2"]) == answers["map/0/l2"]
    finding = Redaction(answers, [nan_dump]).of(answers["overview"])["findings"][0]
    assert all(code == "" for _, _, code in finding["lines"])


TRAIN = """
import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
optimizer = OPTIMIZER
for step in range(3):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(torch.randn(4, 6)), torch.ones(4, 2))
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
    print(loss.item(), norm.item())
    optimizer.step()
"""


@pytest.mark.parametrize(
    "optimizer", ["torch.optim.AdamW(net.parameters(), 0.1)", "torch.optim.SGD(net.parameters(), 0.1)"]
)
def test_loss_and_norm_of_the_gradients_are_those_of_the_script(tmp_path: Path, optimizer: str) -> None:
    pytest.importorskip("torch")
    settings = {"dump_mode": 0, "path": str(tmp_path / "dump"), "net_name": "Net", "iteration": "all",
                "saved_data": "tensor", "input_output": 0, "kernels": [], "support_device": [0]}  # fmt: skip
    config = {"common_dump_settings": settings, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
    (tmp_path / "dump.json").write_text(json.dumps(config))
    (tmp_path / "train.py").write_text(TRAIN.replace("OPTIMIZER", optimizer))
    command = [sys.executable, "-m", "msdump", "run", "--config", "dump.json", "--torch-eager", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)
    printed = [[float(one) for one in line.split()] for line in done.stdout.splitlines()[:3]]
    (curves,) = Pages(Contents(tmp_path / "dump")).get("map")["curves"]
    assert curves["loss"]["values"] == pytest.approx([loss for loss, _ in printed], rel=1e-3)
    assert curves["gradient_norm"] == pytest.approx([norm for _, norm in printed], rel=1e-3)


def test_the_outvoted_rank_is_marked(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    job = make_job(tmp_path / "job", lambda *at: at == (2, 1, "head"))
    pages = Pages(Contents(job, is_job=True))
    frame = pages.get("map")
    assert frame["ranks"] == [0, 1, 2, 3] and frame["outvoted"] == [(2, 1, 1)]
    rank, row, column = frame["first"]
    assert (frame["ranks"][rank], frame["rows"]["name"][row], frame["iterations"][column]) == (2, "head", 1)
    assert {card["kind"]: card["text"] for card in frame["cards"]} == {"outvoted": "2"}
    differs = str(pages.get("overview")["healths"].index("differs"))
    cells = {rank: pages.get(f"map/{rank}")["cells"] for rank in frame["ranks"]}
    assert cells[2][2 * row + 1] == differs and differs not in cells[0] + cells[1] + cells[3]
    shown = [pages.get(path)["operators"] for path in pages.paths() if path.startswith("step/2/")]
    healths = [dict(zip(one["name"], one["health"], strict=True))["head"] for one in shown]
    assert healths == ["ok", "differs"]
    assert frame["cells"][2] == "4" + differs and "distance" in frame["statistics"]
    assert Pages(Contents(job)).get("map")["outvoted"] == []


def test_the_share_near_the_limit_of_a_dtype(tmp_path: Path) -> None:
    near, far = np.float16([65504, -40000, math.inf, 1]), np.float16([1, 2, 3, 4])
    dump = write_dump(tmp_path, [("D/Mul-op0", {IN: near, OUT: near}), ("D/Neg-op1", {IN: near, OUT: far})])
    pages = Pages(Contents(dump, measurements=Measurements(has_exponents=True)))
    frame = pages.get("map")
    assert frame["rows"]["name"] == ["D/Mul-op0", "D/Neg-op1"] and "saturated" in frame["statistics"]
    assert np.allclose(10 ** logs_of(pages.get("map/0/saturated")["cells"]), [0.75, 0], atol=1e-3)
    write_dump(tmp_path / "fine", [("D/Neg-op1", {IN: far, OUT: far})])
    assert "saturated" not in Pages(Contents(tmp_path / "fine")).get("map")["statistics"]
