"""AclDump on graphs of every kind: what is chosen, when it is written, where it goes, and when the disk is full."""

from __future__ import annotations

import logging
import os
import re
import stat
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.engines.acl import AclDump
from msdump.errors import DumpError
from msdump.events import AFTER, BEFORE, Array, FinishedStep, OpEvent
from msdump.formats.acl_chunks import DumpChunk
from msdump.formats.acl_layout import parse_acl_path
from msdump.formats.acl_stats_csv import read_acl_stats
from msdump.formats.async_layout import parse_bin_file_name, safe_piece
from msdump.formats.dump_dir import DumpDir
from msdump.formats.opdebug import Opdebug, read_opdebug
from msdump.graph.compile import finish
from msdump.graph.executor import Executor
from msdump.graph.graph import Graph, Parameter
from msdump.graph.primitive import REGISTRY, Attrs, Primitive, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.testing.graphs import GraphCase, graphs
from tests.engines.acl_plans import make_dump, make_plan, tensors, tree

MODES = {"input": {"input"}, "output": {"output"}, "all": {"input", "output"}}


class Witness:
    """Copies what every operator read, and what it left."""

    needs_all_values = False

    def __init__(self) -> None:
        self.found: dict[tuple[int, str, str, int], Array] = {}

    def on_graph(self, graph: Graph) -> Sequence[int]:
        return [BEFORE | AFTER] * len(graph.kernels)

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        return True

    def before_op(self, event: OpEvent) -> None:
        self._keep(event, "input", event.inputs)

    def after_op(self, event: OpEvent) -> None:
        self._keep(event, "output", event.outputs)

    def on_iteration_end(self, step: FinishedStep) -> None: ...

    def on_error(self, event: OpEvent, error: BaseException) -> None: ...

    def close(self) -> None: ...

    def _keep(self, event: OpEvent, io: str, arrays: Sequence[Array]) -> None:
        for slot, array in enumerate(arrays):
            self.found[event.iteration, safe_piece(event.op.full_name), io, slot] = array.copy()


def chain(*op_types: str, graph_id: int = 0, shape: tuple[int, ...] = (2, 3)) -> Graph:
    """x -> one operator after the other."""
    graph = Graph(f"kernel_graph_{graph_id}", graph_id)
    value = graph.add_input("x", TensorType("float16", shape))
    for op_type in op_types:
        value = graph.add_node(Primitive(op_type), [value], "net").outputs[0]
    graph.outputs = [value]
    return finish(graph)


def run(
    graph: Graph, dump: AclDump, *values: float, names: Sequence[str] = ("net",), first: int = 0, model_id: int = 1
) -> None:
    executor = Executor(graph, dump.observe_model(model_id, names))
    shape = graph.inputs[0].type.shape
    with np.errstate(over="ignore"):
        for iteration, value in enumerate(values, first):
            executor.run([np.full(shape, value, np.float16)], iteration)


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
            found = parse_acl_path(path.relative_to(tmp_path / "dump"))
            assert found is not None and found.model_id == 1


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


def long_chain(name: str = "x") -> Graph:
    graph = Graph()
    value = graph.add_input(name, TensorType("float16", (2, 3)))
    graph.outputs = [graph.add_node(Primitive("Neg"), [value], "scope/" * 50 + "net").outputs[0]]
    return finish(graph)


@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_names_that_are_too_long_become_digits(tmp_path: Path, data: str) -> None:
    root = tmp_path / "dump"
    dump = make_dump(root, dump_data=data)
    run(long_chain(), dump, 1)
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


class Chunks:
    """Puts chunks together again."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.open: set[str] = set()

    def __call__(self, chunk: DumpChunk) -> None:
        assert (chunk.offset, chunk.flag) == (-1, 0)
        assert self.open <= {chunk.file_name}, "chunks of two files among each other"
        self.files[chunk.file_name] = self.files.get(chunk.file_name, b"") + bytes(chunk.data)
        self.open = set() if chunk.is_last else {chunk.file_name}


@pytest.mark.parametrize("keys", [{}, {"dump_data": "stats"}, {"dump_list": None, "dump_debug": "on"}])
def test_a_callback_gets_the_same_files(tmp_path: Path, keys: dict[str, object]) -> None:
    root = tmp_path / "dump"
    on_disk = make_dump(root, **keys)
    chunks = Chunks()
    in_pieces = AclDump(make_plan(root, **keys), root, callback=chunks)
    for dump in (on_disk, in_pieces):
        run(chain("Neg", "Exp"), dump, -20)
        run(long_chain("y"), dump, 1, model_id=2)
        dump.close()
    assert not chunks.open
    received = tmp_path / "received"
    for name, data in chunks.files.items():
        (received / name).parent.mkdir(parents=True, exist_ok=True)
        (received / name).write_bytes(data)

    def without_digits(names: list[str]) -> list[str]:
        return sorted(re.sub(r"/\d{16,20}$", "/DIGITS", name) for name in names)

    assert without_digits(tree(received)) == without_digits(tree(root))
    if "dump_data" not in keys:
        assert {place: array.tobytes() for place, array in tensors(received).items()} == {
            place: array.tobytes() for place, array in tensors(root).items()
        }
    assert in_pieces.report().bytes_written == on_disk.report().bytes_written


def test_a_callback_that_fails_ends_the_dump(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(chunk: DumpChunk) -> None:
        raise ValueError("no room")

    (tmp_path / "dump").mkdir()
    dump = AclDump(make_plan(tmp_path / "dump"), tmp_path / "dump", callback=refuse)
    run(chain("Neg"), dump, 1, 2)
    with pytest.raises(DumpError, match="ValueError: no room"):
        dump.close()
    assert len(caplog.records) == 1
    assert not list((tmp_path / "dump").iterdir())


def test_a_full_disk_is_told_once_and_models_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MSDUMP_DISK_BUDGET", "4000")
    dump = make_dump(tmp_path / "dump")
    executors = [Executor(chain("Neg", graph_id=at), dump.observe_model(at, [f"net{at}"])) for at in range(2)]
    for iteration in range(20):
        for executor in executors:
            [result] = executor.run([np.ones((2, 3), np.float16)], iteration)
            assert (result == -1).all()
    with pytest.raises(DumpError, match=r"not complete, \d+ tensors are missing"):
        dump.close()
    dump.close()
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "the model goes on" in caplog.text
    report = dump.report()
    assert report.error and report.lost
    assert len(list(DumpDir.open(tmp_path / "dump", strict=True))) == report.tensors_written


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump")
    (tmp_path / "dump").chmod(0o500)
    run(chain("Neg"), dump, 1)
    with pytest.raises(DumpError):
        dump.close()


def test_the_last_iterations_of_every_model_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDUMP_KEEP_ITERATIONS", "2")
    for keys in ({}, {"dump_data": "stats"}):
        root = tmp_path / f"dump{len(keys)}"
        dump = make_dump(root, **keys)
        for at in range(2):
            executor = Executor(chain("Neg", graph_id=0), dump.observe_model(at, [f"net{at}"]))
            for iteration in range(5):
                executor.run([np.ones((2, 3), np.float16)], iteration)
        dump.close()
        assert {"/".join(name.split("/")[2:5]) for name in tree(root)} == {
            f"net{at}/{at}/{index}" for at in range(2) for index in (3, 4)
        }


def test_an_address_and_a_path_are_a_folder_below_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = make_plan(tmp_path / "unused", dump_path="10.0.0.1:/sub/dump")
    assert plan.path == tmp_path / "sub" / "dump"
    dump = AclDump(plan, plan.path, device_id=3)
    run(chain("Neg"), dump, 1)
    dump.close()
    assert {name.split("/")[1] for name in tree(tmp_path / "sub" / "dump")} == {"3"}


def test_models_run_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDUMP_ASYNC_BUFFER", "4096")
    dump = make_dump(tmp_path / "dump", dump_mode="all")

    def work(at: int) -> None:
        # All graphs have one id: models count their own.
        executor = Executor(chain("Neg", "Neg", "Neg", shape=(64, 64)), dump.observe_model(at, ["net"]))
        for iteration in range(10):
            executor.run([np.full((64, 64), 100 * at + iteration, np.float16)], iteration)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    dump.close()
    for tensor in DumpDir.open(tmp_path / "dump", strict=True):
        place = tensor.file.place
        assert place.graph_id is not None and place.data_index is not None
        assert abs(tensor.load()).max() == abs(tensor.load()).min() == 100 * place.graph_id + place.data_index
    assert len(tree(tmp_path / "dump")) == 4 * 10 * 4


def test_what_comes_after_the_end_is_not_dumped(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump")
    kept, gone = dump.observe_model(1, ["kept"]), dump.observe_model(2, ["gone"])
    executors = [Executor(chain("Neg", graph_id=at), each) for at, each in enumerate((kept, gone))]
    x = np.ones((2, 3), np.float16)
    executors[1].run([x], 0)
    for observer in gone:
        observer.close()
    for executor in executors:
        executor.run([x], 1)
    dump.close()
    executors[0].run([x], 2)
    assert dump.observe_model(3, ["late"]) == dump.observe_operators() == ()
    names = {"/".join(name.split("/")[2:5]) for name in tree(tmp_path / "dump")}
    assert names == {"kept/1/0", "gone/2/0"}


class Closer(Witness):
    """Ends the dump from another thread, while the model runs."""

    def __init__(self, dump: AclDump) -> None:
        super().__init__()
        self._dump = dump

    def after_op(self, event: OpEvent) -> None:
        thread = threading.Thread(target=self._dump.close)
        thread.start()
        thread.join(60)


def test_a_dump_may_end_while_a_model_runs(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump", dump_mode="all")
    executor = Executor(chain("Neg", "Exp", "Neg"), [*dump.observe_model(1, ["net"]), Closer(dump)])
    for iteration in range(2):
        executor.run([np.ones((2, 3), np.float16)], iteration)
    assert tree(tmp_path / "dump") == [
        "TIME/0/net/1/0/Data.x.0.0.STAMP",
        "TIME/0/net/1/0/Neg.net_Neg-op0.0.0.STAMP",
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_dumps_nothing_and_ends(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump")
    executor = Executor(chain("Neg"), dump.observe_model(1, ["net"]))
    child = os.fork()
    if not child:
        [result] = executor.run([np.ones((2, 3), np.float16)], 0)
        dump.close()
        os._exit(int(result[0, 0] != -1))
    assert os.waitpid(child, 0)[1] == 0
    assert not list((tmp_path / "dump").iterdir())
    executor.run([np.ones((2, 3), np.float16)], 0)
    dump.close()
    assert len(tree(tmp_path / "dump")) == 2


def test_a_root_that_is_gone_is_an_error_at_the_end(tmp_path: Path) -> None:
    for keys in ({}, {"dump_list": None, "dump_debug": "on"}):
        dump = make_dump(tmp_path / "dump", **keys)
        (tmp_path / "dump").rmdir()
        (tmp_path / "dump").write_text("")
        run(chain("Neg", "Exp"), dump, -20, -20)
        with pytest.raises(DumpError, match="expected"):
            dump.close()
        assert dump.report().lost
        (tmp_path / "dump").unlink()


def test_all_calls_of_operators_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDUMP_KEEP_ITERATIONS", "1")
    dump = make_dump(tmp_path / "dump", dump_list=[], dump_op_switch="on")
    observers = dump.observe_operators()
    for number in range(4):
        Executor(chain("Neg", graph_id=number), observers).run([np.ones((2, 3), np.float16)], number)
    dump.close()
    assert len(tree(tmp_path / "dump")) == 4


def test_nothing_overflows_after_the_end(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump", dump_list=None, dump_debug="on")
    executor = Executor(chain("Neg", "Exp"), dump.observe_model(1, ["net"]))
    dump.close()
    with np.errstate(over="ignore"):
        executor.run([np.full((2, 3), -20, np.float16)], 0)
    assert not list((tmp_path / "dump").iterdir())


def test_overflows_of_several_models_are_told_together(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump", dump_list=None, dump_debug="on")
    for model_id in (1, 2):
        run(chain("Neg", "Exp"), dump, -20, names=[f"net{model_id}"], model_id=model_id)
    dump.close()
    report = dump.report()
    assert report.overflows == ("net/Exp-op1",) * 2
    assert (report.tensors_written, report.files, report.lost) == (4, 4, 0)


def test_each_dump_has_a_time_of_its_own(tmp_path: Path) -> None:
    for _ in range(3):
        dump = make_dump(tmp_path / "dump")
        run(chain("Neg"), dump, 1)
        dump.close()
    assert len(list((tmp_path / "dump").iterdir())) == 3


@pytest.fixture
def collective() -> Iterator[str]:
    def_primitive("HcomAllReduce", ("x",))

    @def_infer("HcomAllReduce")
    def infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        return (types[0],)

    @def_kernel("HcomAllReduce")
    def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
        if np.isnan(inputs[0]).any():
            raise FloatingPointError("NaN")
        np.multiply(inputs[0], 2, out=out[0])

    yield "HcomAllReduce"
    del REGISTRY["HcomAllReduce"]


def test_collective_operators_have_inputs_and_outputs_apart(tmp_path: Path, collective: str) -> None:
    dump = make_dump(tmp_path / "dump", dump_mode="all")
    run(chain(collective, "Neg"), dump, 3)
    dump.close()
    names = tree(tmp_path / "dump")
    assert [name.rsplit("/")[-1].split(".")[0] for name in names] == ["Data", collective, collective, "Neg"]
    files = [
        sorted({tensor.io for tensor in DumpDir.open(tmp_path / "dump").read(file)})
        for file in DumpDir.open(tmp_path / "dump").files(op_type=collective)
    ]
    assert files == [["input"], ["output"]]


def test_an_operator_that_raises_ends_its_iteration_alone(tmp_path: Path, collective: str) -> None:
    dump = make_dump(tmp_path / "dump", dump_mode="all")
    executor = Executor(chain("Neg", collective), dump.observe_model(1, ["net"]))
    with pytest.raises(Exception, match="NaN"):
        executor.run([np.full((2, 3), np.nan, np.float16)], 0)
    executor.run([np.ones((2, 3), np.float16)], 1)
    dump.close()
    found = tensors(tmp_path / "dump")
    # What the operator read is there; what it would have left is not.
    assert {place[1:3] for place in found if place[0] == 0 and place[1].startswith("net_Hcom")} == {
        ("net_HcomAllReduce-op1", "input")
    }
    assert sum(place[0] == 1 for place in found) == 6
    assert not dump.report().error


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
