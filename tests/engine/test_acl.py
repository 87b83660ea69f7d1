"""AclDump on graphs of every kind: what is chosen, when it is written, and where it goes."""

from __future__ import annotations

import re
import stat
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.engine.models import AclDump
from msdump.formats.acl_stats_csv import read_acl_stats
from msdump.formats.dump_dir import DumpDir
from msdump.formats.opdebug import Opdebug, read_opdebug
from msdump.formats.paths.acl import parse_bin_file_name, safe_piece
from msdump.formats.paths.parse import parse_folder
from msdump.graph.graph import Graph, Parameter
from msdump.graph.primitive import Primitive
from msdump.graph.types import TensorType
from msdump.mindspore.program.compile import finish
from msdump.mindspore.program.executor import Executor
from msdump.mindspore.program.graph_cases import GraphCase, graphs
from tests.engine.acl_chains import chain, run
from tests.engine.acl_plans import LONG_SCOPE, Witness, make_dump, make_plan, tensors, tree

MODES = {"input": {"input"}, "output": {"output"}, "all": {"input", "output"}}


@settings(max_examples=40, deadline=None)
@given(graphs(), st.sampled_from(list(MODES)))
def test_files_hold_what_operators_read_and_what_they_left(case: GraphCase, mode: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "dump"
        dump = make_dump(root, dump_mode=mode)
        witness = Witness()
        executor = Executor(case.graph, [witness, *dump.observe_model(7, ["net"])])
        with np.errstate(all="ignore"):
            for iteration in range(2):
                executor.run(case.inputs, iteration)
        dump.close()
        expected = {place: array for place, array in witness.found.items() if place[2] in MODES[mode]}
        for iteration in range(2):
            for value, array in zip(case.graph.inputs, case.inputs, strict=True):
                expected |= {(iteration, value.name, io, 0): array for io in MODES[mode]}
        found = tensors(root)
        assert found.keys() == expected.keys()
        for place, array in expected.items():
            assert found[place].tobytes() == array.tobytes(), place
            assert found[place].shape == array.shape
        # Operators that write their operands have inputs and outputs apart, others together.
        for op in case.graph.op_infos():
            files = [path for path in root.rglob(f"{op.op_type}.{safe_piece(op.full_name)}.*") if path.is_file()]
            assert len(files) == 2 * (2 if op.mutates and mode == "all" else 1)
        assert dump.report().tensors_written == len(expected)


def test_the_tree_of_a_model(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump")
    run(chain("Neg", "Exp"), dump, 1, 2, names=["res net.50/v1", "other"])
    dump.close()
    names = ["Data.x.0.0.STAMP", "Exp.net_Exp-op1.1.0.STAMP", "Neg.net_Neg-op0.0.0.STAMP"]
    assert tree(tmp_path / "dump") == [f"TIME/0/res_net_50_v1/1/{index}/{name}" for index in (0, 1) for name in names]
    for path in (tmp_path / "dump").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o600 if path.is_file() else 0o700)
        if path.is_file():
            assert parse_folder(path.parent.parts).graph_id == 1


def test_with_steps_the_folder_has_the_number_of_the_step(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump", dump_step="1|3-4")
    run(chain("Neg"), dump, *range(6))
    dump.close()
    assert {name.split("/")[4] for name in tree(tmp_path / "dump")} == {"1", "3", "4"}
    assert dump.report().iterations_dumped == 3


def test_without_steps_folders_count_what_is_dumped(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump")
    run(chain("Neg"), dump, 1, 2, first=41)
    dump.close()
    assert {name.split("/")[4] for name in tree(tmp_path / "dump")} == {"0", "1"}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"layer": ["net/Exp-op1"]}, {"net_Exp-op1"}),
        ({"layer": ["net/Neg-op0"]}, {"x", "net_Neg-op0"}),
        ({"layer": ["x"]}, set()),
        ({"layer": ["before"]}, {"net_Exp-op1"}),
        ({"model_name": "inner", "layer": ["net/Exp-op1"]}, {"net_Exp-op1"}),
        ({"model_name": "net", "opname_range": [{"begin": "net/Exp-op1", "end": "net/Neg-op2"}]},
         {"net_Exp-op1", "net_Neg-op2"}),
    ],
)  # fmt: skip
def test_chosen_operators(tmp_path: Path, item: dict[str, object], expected: set[str]) -> None:
    dump = make_dump(tmp_path / "dump", dump_list=[item], dump_level="op")
    observers = dump.observe_model(1, ["net", "inner"], {"before": ("net/Exp-op1",)})
    Executor(chain("Neg", "Exp", "Neg"), observers).run([np.ones((2, 3), np.float16)], 0)
    dump.close()
    assert {file.op_name for file in DumpDir.open(tmp_path / "dump").files()} == expected
    # A run of a model of which nothing is chosen is no dumped one.
    assert dump.report().iterations_dumped == bool(expected)


def test_blacklists_leave_positions_out_and_others_where_they_are(tmp_path: Path) -> None:
    graph = Graph()
    x, y = (graph.add_input(name, TensorType("float32", (2,))) for name in "xy")
    graph.outputs = [graph.add_node(Primitive("Sub"), [x, y], "net").outputs[0]]
    finish(graph)
    blacklists = {
        "optype_blacklist": [{"name": "Sub", "pos": ["input0"]}],
        "opname_blacklist": [{"name": "x", "pos": ["input0", "output0"]}, {"name": "y", "pos": ["output0"]}],
    }
    dump = make_dump(tmp_path / "dump", dump_list=[blacklists], dump_level="op", dump_mode="all")
    arrays = [np.array([3, 4], np.float32), np.array([1, 1], np.float32)]
    Executor(graph, dump.observe_model(1, ["net"])).run(arrays, 0)
    dump.close()
    found = tensors(tmp_path / "dump")
    # What is left out before others has a place without bytes, so that these keep their number.
    shown = {place[1:]: array.tolist() for place, array in found.items() if array.size}
    assert shown == {
        ("y", "input", 0): [1, 1],
        ("net_Sub-op0", "input", 1): [1, 1],
        ("net_Sub-op0", "output", 0): [2, 3],
    }


@pytest.mark.parametrize("level", ["op", "kernel", "all"])
def test_every_level_has_the_same_files(tmp_path: Path, level: str) -> None:
    dump = make_dump(tmp_path / "dump", dump_level=level)
    run(chain("Neg"), dump, 1)
    dump.close()
    assert len(tree(tmp_path / "dump")) == 2


def test_models_that_nobody_asks_for_are_not_watched(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    dump = make_dump(tmp_path / "dump", dump_list=[{"model_name": "resnet50"}])
    assert dump.observe_model(1, ["resnet5O", "inner"]) == ()
    assert "resnet50" in caplog.text and "Did you mean" in caplog.text
    dump.close()
    assert not list((tmp_path / "dump").iterdir())


def test_advice_is_given_once_per_model(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    dump = make_dump(tmp_path / "dump", dump_list=[{"layer": ["net/Exp-op9"]}])
    observers = dump.observe_model(1, ["net"])
    for graph_id in range(3):
        Executor(chain("Exp", graph_id=graph_id), observers).run([np.ones((2, 3), np.float16)], graph_id)
    dump.close()
    assert [record.getMessage() for record in caplog.records] == [
        'net: dump_list: the model has no operator net/Exp-op9. Did you mean "net/Exp-op0"?'
    ]
    assert not list((tmp_path / "dump").iterdir())


def test_operators_called_one_by_one(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump", dump_list=[], dump_op_switch="on", dump_mode="all")
    assert dump.observe_model(1, ["net"]) == ()
    observers = dump.observe_operators()
    for number, op_type in enumerate(("Neg", "Exp", "Neg")):
        Executor(chain(op_type, graph_id=number), observers).run([np.full((2, 3), number, np.float16)], 0)
    dump.close()
    root = tmp_path / "dump"
    assert tree(root) == [f"TIME/0/{name}.net_{name}-op0.0.0.STAMP" for name in ("Exp", "Neg", "Neg")]
    files = sorted(DumpDir.open(root, strict=True).files(), key=lambda file: file.timestamp_us or 0)
    assert [[tensor.load().reshape(-1)[0] for tensor in DumpDir.open(root).read(file)] for file in files] == [
        [0, 0], [1, np.exp(np.float16(1))], [2, -2],
    ]  # fmt: skip
    off = make_dump(tmp_path / "dump")
    assert off.observe_operators() == ()
    off.close()


def test_statistics_instead_of_tensors(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump", dump_data="stats", dump_stats=["L2norm", "Max"], dump_mode="all")
    run(chain("Neg"), dump, 3)
    dump.close()
    assert tree(tmp_path / "dump") == [
        "TIME/0/net/1/0/Data.x.0.0.STAMP.csv",
        "TIME/0/net/1/0/Neg.net_Neg-op0.0.0.STAMP.csv",
    ]
    [path] = (tmp_path / "dump").rglob("Neg.*")
    assert path.read_text() == (
        "Input/Output,Index,Data Size,Data Type,Format,Shape,Count,Max Value,l2norm\n"
        "Input,0,12,DT_FLOAT16,ND,2x3,6,3,7.34847\n"
        "Output,0,12,DT_FLOAT16,ND,2x3,6,-3,7.34847\n"
    )
    dumps = DumpDir.open(tmp_path / "dump").statistic_dump_files()
    assert [row.op_name for _, path, name in dumps for row in read_acl_stats(path, name)] == [
        "x", "x", "net_Neg-op0", "net_Neg-op0",
    ]  # fmt: skip


def test_an_overflow_leaves_the_operator_and_what_its_unit_said(tmp_path: Path) -> None:
    root = tmp_path / "dump"
    dump = make_dump(root, dump_list=None, dump_debug="on")
    run(chain("Neg", "Exp", "Neg"), dump, 1, -20, 1)
    dump.close()
    assert tree(root) == [
        "TIME/0/net/1/1/Exp.net_Exp-op1.1.0.STAMP",
        "TIME/0/net/1/1/Opdebug.Node_OpDebug.3.1.STAMP",
    ]
    assert dump.report().overflows == ("net/Exp-op1",)
    [file] = DumpDir.open(root).overflow_files()
    content = read_opdebug(file.path)
    assert isinstance(content, Opdebug)
    assert (content.ai_core.model_id, content.ai_core.task_id, bool(content.ai_core.status)) == (1, 1, True)
    assert {(io, array.reshape(-1)[0]) for (_, _, io, _), array in tensors(root).items()} == {
        ("input", 20), ("output", np.inf),
    }  # fmt: skip


@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_names_that_are_too_long_become_digits(tmp_path: Path, data: str) -> None:
    root = tmp_path / "dump"
    dump = make_dump(root, dump_data=data)
    run(chain("Neg", scope=LONG_SCOPE), dump, 1)
    dump.close()
    [digits] = [path for path in root.rglob("*") if re.fullmatch("[0-9]{16,20}", path.name) and path.is_file()]
    mapped, original = (digits.parent / "mapping.csv").read_text().rstrip("\n").split(",")
    assert mapped == digits.name
    assert original.startswith("Neg.scope_scope_") and original.endswith(".csv") == (data == "stats")
    opened = DumpDir.open(root, strict=True)
    if data == "tensor":
        assert {tensor.file.op_name for tensor in opened} == {"x", "scope_" * 50 + "net_Neg-op0"}
    else:
        names = [name for _, path, name in opened.statistic_dump_files() for _ in read_acl_stats(path, name)]
        assert len(names) == 2 and original in names
    assert not opened.foreign


def test_an_address_and_a_path_are_a_folder_below_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = make_plan(tmp_path / "unused", dump_path="10.0.0.1:/sub/dump")
    assert plan.where.path == tmp_path / "sub" / "dump"
    dump = AclDump(plan, plan.where.path, device_id=3)
    run(chain("Neg"), dump, 1)
    dump.close()
    assert {name.split("/")[1] for name in tree(tmp_path / "sub" / "dump")} == {"3"}


def test_collective_operators_have_inputs_and_outputs_apart(tmp_path: Path, collective: str) -> None:
    dump = make_dump(tmp_path / "dump", dump_mode="all")
    run(chain(collective, "Neg"), dump, 3)
    dump.close()
    names = tree(tmp_path / "dump")
    assert [name.rsplit("/")[-1].split(".")[0] for name in names] == ["Data", collective, collective, "Neg"]
    files = [
        sorted({tensor.io for tensor in DumpDir.open(tmp_path / "dump").read(file)})
        for file in DumpDir.open(tmp_path / "dump").files()
        if file.op_type == collective
    ]
    assert files == [["input"], ["output"]]


def test_an_input_that_nobody_reads_and_one_that_is_overwritten(tmp_path: Path) -> None:
    graph = Graph()
    graph.add_input("unread", TensorType("float32", (2,)))
    written = graph.add_input("written", TensorType("float32", (2,)))
    weight = graph.add_parameter(Parameter("w", np.array([5, 6], np.float32), "float32"))
    graph.outputs = [graph.add_node(Primitive("AssignAdd"), [weight, written], "net").outputs[0]]
    dump = make_dump(tmp_path / "dump", dump_mode="all")
    inputs = [np.array([1, 2], np.float32), np.array([3, 4], np.float32)]
    Executor(finish(graph), dump.observe_model(1, ["net"])).run(inputs, 0)
    dump.close()
    found = {place[1:]: array.tolist() for place, array in tensors(tmp_path / "dump").items()}
    assert found == {
        ("unread", "input", 0): [1, 2],
        ("unread", "output", 0): [1, 2],
        ("written", "input", 0): [3, 4],
        ("written", "output", 0): [3, 4],
        ("net_AssignAdd-op0", "input", 0): [5, 6],
        ("net_AssignAdd-op0", "input", 1): [3, 4],
        ("net_AssignAdd-op0", "output", 0): [8, 10],
    }


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_scalars_and_empty_tensors_are_in_the_file(tmp_path: Path, shape: tuple[int, ...]) -> None:
    for data in ("tensor", "stats"):
        root = tmp_path / data
        dump = make_dump(root, dump_mode="all", dump_data=data)
        run(chain("Neg", shape=shape), dump, 1)
        dump.close()
        names = [parse_bin_file_name(path.name.removesuffix(".csv")) for path in root.rglob("*.*") if path.is_file()]
        assert sorted(name.op_type for name in names if name is not None) == ["Data", "Neg"]
    assert {place[1:]: array.shape for place, array in tensors(tmp_path / "tensor").items()} == {
        (name, io, 0): shape for name in ("x", "net_Neg-op0") for io in ("input", "output")
    }
