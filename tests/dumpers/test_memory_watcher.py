"""The watcher shows who tramples on the memory of others, and nothing else."""

from __future__ import annotations

import itertools
import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper

from msdump.config.acl import load_acl_config, plan_acl
from msdump.dumpers.memory_watcher import Watcher
from msdump.engine.models import AclDump
from msdump.formats.dump_file import read_dump
from msdump.formats.paths.acl import parse_bin_file_name
from msdump.frontends.onnx import load_model
from msdump.process.report import Report
from msdump.tensors.arrays import Array
from tests.frontends.onnx.models import model_of, same_bits, true_values, value

SIZE, MORE = 64, 5
X = np.full(SIZE, 3, np.float32)


def chain() -> onnx.ModelProto:
    """early -> C -> mid -> A -> D -> B: `A` gets the memory that `early` had, and behind it lies that of C."""
    nodes = [
        helper.make_node("Add", ["x", "x"], ["early"], name="early"),
        helper.make_node("Mul", ["x", "x"], ["c"], name="C"),
        helper.make_node("Mul", ["early", "x"], ["mid"], name="net/mid"),
        helper.make_node("Neg", ["x"], ["a"], name="A"),
        helper.make_node("Add", ["mid", "a"], ["d"], name="D"),
        helper.make_node("Sub", ["d", "c"], ["b"], name="B"),
    ]
    return model_of(nodes, [value("x", np.float32, [SIZE])], [value("b")])


def tramples(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Negates, and takes its output for larger than it is."""
    np.negative(inputs[0], out=outputs[0])
    np.lib.stride_tricks.as_strided(outputs[0], (SIZE + MORE,))[SIZE:] = -1


Kernels = Mapping[str, Callable[[Sequence[Array], Sequence[Array]], None]]


def dump(
    folder: Path,
    model: onnx.ModelProto,
    feeds: Mapping[str, Any],
    kernels: Kernels | None = None,
    runs: int = 1,
    **section: Any,
) -> tuple[dict[str, Array], Report]:
    """Run under the watcher -> array by "index of data, op type.op name.task", and the report."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "acl.json").write_text(
        json.dumps({"dump": {"dump_path": str(folder), "dump_mode": "output", "dump_scene": "watcher", **section}})
    )
    plan = plan_acl(load_acl_config(folder / "acl.json"))
    assert plan is not None
    found = AclDump(plan, plan.where.path)
    assert found.wants_arena()
    loaded = load_model(model, found.observe_model(1, ["net"]), has_arena=True, kernels=kernels)
    for _ in range(runs):
        loaded.run(feeds)
    found.close()
    arrays = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "acl.json"):
        name = parse_bin_file_name(path.name)
        assert name is not None and path.parts[-5:-2] == ("0", "net", "1")
        (tensor,) = read_dump(path).tensors
        assert tensor.io == "output"
        arrays[f"{path.parts[-2]} {name.op_type}.{name.op_name}.{name.task_id}"] = tensor.array().copy()
    return arrays, found.report()


def test_who_tramples_is_found(tmp_path: Path) -> None:
    """The difference between C's file and `A_To_C` is what A wrote where it should not have."""
    lists = [{"layer": ["net/mid", "A"], "watcher_nodes": ["C"]}]
    healthy, _ = dump(tmp_path / "healthy", chain(), {"x": X}, dump_list=lists)
    sick, report = dump(tmp_path / "sick", chain(), {"x": X}, {"A": tramples}, dump_list=lists)
    names = {"0 Mul.C.1", "0 Mul.net_mid_To_C.2", "0 Mul.A_To_C.3"}
    assert set(healthy) == set(sick) == names
    assert all(same_bits(array, np.full(SIZE, 9, np.float32)) for array in healthy.values())
    assert same_bits(sick["0 Mul.C.1"], healthy["0 Mul.C.1"])
    assert same_bits(sick["0 Mul.net_mid_To_C.2"], healthy["0 Mul.C.1"])
    assert np.flatnonzero(sick["0 Mul.A_To_C.3"] != sick["0 Mul.C.1"]).tolist() == list(range(MORE))
    assert (report.files, report.tensors_written, report.error) == (3, 3, None)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            {"layer": ["A", "B"], "watcher_nodes": ["C", "D"]},
            {"Mul.C.1", "Add.D.4", "Mul.A_To_C.3", "Mul.B_To_C.5", "Add.B_To_D.5"},
        ),
        # Without `layer` every operator but the watched triggers; those that run before have nothing to save.
        ({"watcher_nodes": ["D"]}, {"Add.D.4", "Add.B_To_D.5"}),
        ({"watcher_nodes": ["B"]}, {"Sub.B.5"}),
        ({"layer": ["early"], "watcher_nodes": ["C"]}, {"Mul.C.1"}),
        # In both lists: only its ordinary file.
        ({"layer": ["D", "A"], "watcher_nodes": ["C", "D"]}, {"Mul.C.1", "Add.D.4", "Mul.A_To_C.3"}),
        ({"layer": ["A"], "watcher_nodes": ["nobody"]}, set()),
    ],
)  # fmt: skip
def test_which_files_there_are(tmp_path: Path, entry: dict[str, Any], expected: set[str]) -> None:
    arrays, _ = dump(tmp_path, chain(), {"x": X}, dump_list=[entry])
    assert set(arrays) == {f"0 {name}" for name in expected}
    truth = true_values(chain(), {"x": X})
    for name, array in arrays.items():
        watched = name.split(".")[1].rpartition("_To_")[2]
        assert same_bits(array, truth[watched.lower()])


def test_each_iteration_begins_anew(tmp_path: Path) -> None:
    """What was made in the run before is not saved after a trigger of this one."""
    lists = [{"layer": ["early", "A"], "watcher_nodes": ["C"]}]
    arrays, _ = dump(tmp_path, chain(), {"x": X}, runs=3, dump_list=lists, dump_step="0|2")
    assert set(arrays) == {f"{step} {name}" for step in (0, 2) for name in ("Mul.C.1", "Mul.A_To_C.3")}


def test_a_trigger_that_comes_too_early_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lists = [{"layer": ["early", "A"], "watcher_nodes": ["C"]}]
    found, _ = dump(tmp_path, chain(), {"x": X}, dump_list=lists)
    assert set(found) == {"0 Mul.C.1", "0 Mul.A_To_C.3"}
    assert [record.message.partition(":")[0] for record in caplog.records] == ["early"]
    assert "it runs before C, the first operator that is watched" in caplog.text
    caplog.clear()
    dump(tmp_path / "all", chain(), {"x": X}, dump_list=[{"watcher_nodes": ["C"]}])
    assert not caplog.records


def test_a_dump_may_end_between_a_trigger_and_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may finish the dump at any moment; the model goes on."""
    (tmp_path / "acl.json").write_text(
        json.dumps(
            {"dump": {"dump_path": str(tmp_path), "dump_scene": "watcher", "dump_list": [{"watcher_nodes": ["C"]}]}}
        )
    )
    plan = plan_acl(load_acl_config(tmp_path / "acl.json"))
    assert plan is not None
    acl_dump = AclDump(plan, tmp_path)
    real = Watcher._save_again

    def closes_first(self: Watcher, *args: Any) -> None:
        closer = threading.Thread(target=acl_dump.close)
        closer.start()
        closer.join(60)
        real(self, *args)

    monkeypatch.setattr(Watcher, "_save_again", closes_first)
    loaded = load_model(chain(), acl_dump.observe_model(1, ["net"]), has_arena=True)
    for _ in range(2):
        assert same_bits(loaded.run({"x": X})["b"], true_values(chain(), {"x": X})["b"])
    names = [path.name.split(".")[1] for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".json"]
    assert names == ["C"]


def test_collective_operators_do_not_trigger(tmp_path: Path) -> None:
    """Their type begins with Hcom; a function of the model's own stands in for one."""
    body = [helper.make_node("Neg", ["p"], ["q"])]
    function = helper.make_function("house", "HcomAllReduce", ["p"], ["q"], body, [helper.make_opsetid("", 17)])
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["c"], name="C"),
        helper.make_node("HcomAllReduce", ["x"], ["r"], name="reduce", domain="house"),
        helper.make_node("Add", ["c", "r"], ["y"], name="sum"),
    ]
    model = model_of(nodes, [value("x", np.float32, [SIZE])], [value("y", np.float32, [SIZE])], domains=[("house", 1)])
    model.functions.append(function)
    arrays, _ = dump(tmp_path, model, {"x": X}, dump_list=[{"watcher_nodes": ["C"]}])
    assert {name for name in arrays if "reduce" in name} == set()
    assert "0 Mul.C.0" in arrays


def test_shapes_that_only_the_data_decide_are_no_part_of_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"], name="C"),
        helper.make_node("Neg", ["x"], ["n"], name="A"),
        helper.make_node("Add", ["n", "x"], ["y"], name="B"),
    ]
    model = model_of(nodes, [value("x", np.float32, [SIZE])], [value("places", np.int64), value("y")])
    with caplog.at_level(logging.WARNING, "msdump"):
        arrays, _ = dump(tmp_path / "one", model, {"x": X}, dump_list=[{"layer": ["A"], "watcher_nodes": ["C"]}])
    assert set(arrays) == {"0 NonZero.C.0"}
    assert [record.getMessage() for record in caplog.records] == [
        "C: only the data decide its shape, so it is not saved again after others."
    ]
    arrays, _ = dump(tmp_path / "two", model, {"x": X}, dump_list=[{"layer": ["C", "B"], "watcher_nodes": ["A"]}])
    assert set(arrays) == {"0 Neg.A.1", "0 Neg.B_To_A.2"}


def test_memory_that_is_used_again_tramples_on_nobody(tmp_path: Path) -> None:
    """C is dead after its first reader; a device would put later results where it was."""
    names = ["x", "c", *(f"v{at}" for at in range(8))]
    nodes = [helper.make_node("Add", [a, a], [b], name=b) for a, b in itertools.pairwise(names)]
    model = model_of(nodes, [value("x", np.float32, [SIZE])], [value(names[-1])])
    arrays, _ = dump(tmp_path, model, {"x": X}, dump_list=[{"watcher_nodes": ["c"]}])
    assert len(arrays) == 9
    assert all(same_bits(array, X + X) for array in arrays.values())


def test_statistics_of_what_is_watched(tmp_path: Path) -> None:
    (tmp_path / "acl.json").write_text(
        json.dumps(
            {
                "dump": {
                    "dump_path": str(tmp_path), "dump_mode": "output", "dump_scene": "watcher", "dump_data": "stats",
                    "dump_list": [{"layer": ["A"], "watcher_nodes": ["C"]}],
                }
            }
        )
    )  # fmt: skip
    plan = plan_acl(load_acl_config(tmp_path / "acl.json"))
    assert plan is not None
    found = AclDump(plan, plan.where.path)
    load_model(chain(), found.observe_model(1, ["net"]), kernels={"A": tramples}).run({"x": X})
    found.close()
    minima = {
        path.name.split(".")[1]: path.read_text().splitlines()[1].split(",")[7] for path in tmp_path.rglob("*.csv")
    }
    assert minima == {"C": "9", "A_To_C": "-1"}


def test_a_disk_that_refuses_ends_the_dump_not_the_run(tmp_path: Path) -> None:
    (tmp_path / "acl.json").write_text(
        json.dumps(
            {
                "dump": {
                    "dump_path": str(tmp_path), "dump_mode": "output", "dump_scene": "watcher",
                    "dump_list": [{"watcher_nodes": ["C"]}],
                }
            }
        )
    )  # fmt: skip
    plan = plan_acl(load_acl_config(tmp_path / "acl.json"))
    assert plan is not None
    (tmp_path / "file").write_text("")
    found = AclDump(plan, tmp_path / "file")
    model = load_model(chain(), found.observe_model(1, ["net"]), has_arena=True)
    assert same_bits(model.run({"x": X})["b"], true_values(chain(), {"x": X})["b"])
    with pytest.raises(RuntimeError, match="not complete"):
        found.close()
    assert found.report().lost > 0


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
def test_files_are_those_of_the_rule(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """For any two lists: C itself, and `{A}_To_{C}` for each A that runs later and is not watched."""
    order = ["early", "C", "net/mid", "A", "D", "B"]
    layer = data.draw(st.lists(st.sampled_from(order), unique=True))
    watched = data.draw(st.lists(st.sampled_from(order), unique=True, min_size=1))
    entry: dict[str, Any] = {"watcher_nodes": watched, **({"layer": layer} if layer else {})}
    arrays, _ = dump(tmp_path_factory.mktemp("dump"), chain(), {"x": X}, dump_list=[entry])
    triggers = [name for name in layer or order if name not in watched]
    expected = set(watched) | {f"{a}_To_{c}" for a in triggers for c in watched if order.index(a) > order.index(c)}
    assert {name.split(".")[1] for name in arrays} == {name.replace("/", "_") for name in expected}
