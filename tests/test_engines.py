"""From a configuration to a tree of files: every engine and every folder layout, on a small graph."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump.mindspore.kernels  # noqa: F401  (fills the registry)
from msdump.engine import opening
from msdump.engine.graphs import GraphSession
from msdump.errors import DumpError
from msdump.formats.bin import read_bin
from msdump.formats.npy_reader import read_npy
from msdump.formats.opdebug import read_opdebug
from msdump.formats.statistic_csv import read_statistic_csv
from msdump.graph.graph import Graph
from msdump.graph.primitive import Primitive
from msdump.graph.types import TensorType
from msdump.mindspore.program.compile import finish
from msdump.mindspore.program.executor import Executor
from msdump.process import sessions


def small_graph(is_dynamic: bool = False) -> Graph:
    """x -> Neg -> Exp, in float16, so that a large x overflows in Exp."""
    graph = Graph(is_dynamic=is_dynamic)
    value = graph.add_input("x", TensorType("float16", (2, 3)))
    for op_type in ("Neg", "Exp"):
        value = graph.add_node(Primitive(op_type), [value], f"Default/{op_type.lower()}-Cell").outputs[0]
    graph.outputs = [value]
    return finish(graph)


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def write(is_acl: bool = False, **changes: Any) -> Path:
        common = {
            "dump_mode": 0, "path": str(tmp_path / "dump"), "net_name": "Net", "iteration": "all",
            "saved_data": "tensor", "input_output": 0, "kernels": [], "support_device": [0, 3], "op_debug_mode": 0,
            "file_format": "npy", **changes,
        }  # fmt: skip
        config = tmp_path / "dump.json"
        config.write_text(json.dumps({"common_dump_settings": common}))
        monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(config))
        if is_acl:
            monkeypatch.setenv("MS_ACL_DUMP_CFG_PATH", str(config))
        return tmp_path / "dump"

    return write


@contextmanager
def running(jit_level: str = "", is_dynamic: bool = False) -> Iterator[tuple[GraphSession, Executor]]:
    opened = opening.open_mindspore("Ascend", 3, jit_level=jit_level)
    assert opened is not None
    with np.errstate(over="ignore"):
        yield opened, Executor(small_graph(is_dynamic), opened.observers)
    opened.close()


def run(executor: Executor, opened: GraphSession, value: float, steps: int = 1) -> None:
    for _ in range(steps):
        executor.run([np.full((2, 3), value, np.float16)], opened.next_iteration())


def tree(root: Path) -> set[str]:
    """Files with the parts that change from run to run replaced: time folders and time stamps."""
    names = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return {re.sub(r"\d{16}", "TS", re.sub(r"(^|/)\d{14}/", r"\1TIME/", name)) for name in names}


NPY = {
    "Neg.Neg-op0.0.0.TS.input.0.ND.npy",
    "Neg.Neg-op0.0.0.TS.output.0.ND.npy",
    "Exp.Exp-op1.1.0.TS.input.0.ND.npy",
    "Exp.Exp-op1.1.0.TS.output.0.ND.npy",
    "Parameter.x.0.0.TS.output.0.ND.npy",
}
BIN = {
    "Neg.Default_neg-Cell_Neg-op0.0.0.TS",
    "Exp.Default_exp-Cell_Exp-op1.1.0.TS",
    "Parameter.x.0.0.TS",
}


def test_plain_npy(configure: Any) -> None:
    root = configure(saved_data="full")
    with running() as (opened, executor):
        run(executor, opened, 1.0, steps=2)
    folder = "TIME/3/kernel_graph_0/0"
    assert tree(root) == {f"{folder}/{step}/{name}" for step in (0, 1) for name in (*NPY, "statistic.csv")}
    for path in root.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    for path in root.rglob("statistic.csv"):
        assert len(read_statistic_csv(path)) == len(NPY)
    assert opened.report().tensors_written == 2 * len(NPY)


def test_plain_bin(configure: Any) -> None:
    root = configure(file_format="bin", iteration="1")
    with running() as (opened, executor):
        run(executor, opened, 1.0, steps=3)
    assert tree(root) == {f"TIME/3/kernel_graph_0/0/1/{name}" for name in BIN}
    (path,) = root.rglob("Exp.*")
    dumped = read_bin(path)
    np.testing.assert_array_equal(dumped.of("input")[0].array(), np.full((2, 3), -1, np.float16))
    np.testing.assert_array_equal(dumped.of("output")[0].array(), np.exp(np.full((2, 3), -1, np.float16)))


def test_acl_with_models(configure: Any) -> None:
    root = configure(is_acl=True, file_format="bin")
    with running() as (opened, executor):
        run(executor, opened, 1.0, steps=2)
    files = {f"{step}/TIME/3/kernel_graph_0/0/{step}/{name}" for step in (0, 1) for name in BIN}
    assert tree(root) == files | {"acl_dump_3.json"}


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_acl_operator_by_operator(configure: Any, is_dynamic: bool) -> None:
    root = configure(is_acl=True)
    with running("O0", is_dynamic) as (opened, executor):
        run(executor, opened, 1.0, steps=2)
    files = {f"{step}/TIME/3/{f'{step}/' if is_dynamic else ''}{name}" for step in (0, 1) for name in NPY}
    assert tree(root) == files | {"acl_dump_3.json"}


@pytest.mark.parametrize(("jit_level", "op_debug_mode"), [("", 0), ("O0", 0), ("O0", 3)])
def test_acl_runs_in_the_same_second_keep_apart(configure: Any, jit_level: str, op_debug_mode: int) -> None:
    """Two processes with one device must not fill one folder. A step that leaves nothing leaves no folder either."""
    root = configure(is_acl=True, op_debug_mode=op_debug_mode)
    for _ in range(3):
        with running(jit_level) as (opened, executor):
            run(executor, opened, 1.0, steps=2)
        sessions.reset_for_tests()
    for step in (0, 1):
        folders = list((root / str(step)).glob("*/3"))
        assert len(folders) == (0 if op_debug_mode else 3)
        assert {len(list(folder.rglob("*.npy"))) for folder in folders} <= {len(NPY)}


def test_acl_json(configure: Any) -> None:
    root = configure(is_acl=True, dump_mode=1, kernels=["Default/exp-Cell/Exp-op1"], input_output=2, iteration="1")
    path = root / "acl_dump_3.json"
    with running() as (opened, executor):
        assert json.loads(path.read_text()) == {"dump": {"dump_path": str(root), "dump_step": "2147483647"}}
        run(executor, opened, 1.0, steps=3)
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert json.loads(path.read_text()) == {
        "dump": {
            "dump_list": [{"layer": ["Default/exp-Cell/Exp-op1"]}],
            "dump_mode": "output",
            "dump_op_switch": "on",
            "dump_path": str(root / "1"),
        }
    }


@pytest.mark.parametrize("file_format", ["npy", "bin"])
def test_overflow_dumps_the_culprit_only(configure: Any, file_format: str) -> None:
    root = configure(op_debug_mode=3, file_format=file_format)
    with running() as (opened, executor):
        run(executor, opened, 1.0)
        run(executor, opened, -100.0)
    report = opened.report()
    assert report.overflows == ("Default/exp-Cell/Exp-op1",)
    found = tree(root)
    assert all(name.startswith("TIME/3/kernel_graph_0/0/1/") for name in found)
    names = {name.rsplit("/", 1)[-1].split(".", 1)[0] for name in found}
    assert names == {"Exp", "Opdebug"}
    (opdebug,) = root.rglob("Opdebug.*")
    assert read_opdebug(opdebug) is not None


def test_no_overflow_is_no_file_and_no_failure(configure: Any) -> None:
    root = configure(op_debug_mode=3)
    with running() as (opened, executor):
        run(executor, opened, 1.0, steps=2)
    assert opened.report().overflows == ()
    assert tree(root) == set()


def test_exception_dumps_what_the_operator_read(configure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    root = configure(is_acl=True, op_debug_mode=4, iteration="all")

    def fails(*_: object) -> None:
        raise ArithmeticError("broken kernel")

    monkeypatch.setitem(small_graph().nodes[1].definition.kernels, "numpy", fails)
    with running() as (opened, executor), pytest.raises(ArithmeticError, match="broken kernel"):
        run(executor, opened, 1.0)
    (path,) = (path for path in root.rglob("Exp.*.input.0.*"))
    np.testing.assert_array_equal(read_npy(path), np.full((2, 3), -1, np.float16))
    assert not list(root.rglob("Neg.*"))


def test_disk_budget_ends_the_dump_not_the_run(configure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    configure()
    monkeypatch.setenv("MSDUMP_DISK_BUDGET", "1000")
    opened = opening.open_mindspore("Ascend", 3)
    assert opened is not None
    executor = Executor(small_graph(), opened.observers)
    run(executor, opened, 1.0, steps=5)
    with pytest.raises(DumpError, match="MSDUMP_DISK_BUDGET"):
        opened.close()


def test_kept_iterations(configure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    root = configure()
    monkeypatch.setenv("MSDUMP_KEEP_ITERATIONS", "2")
    with running() as (opened, executor):
        run(executor, opened, 1.0, steps=6)
    kept = {int(name.split("/")[4]) for name in tree(root)}
    assert max(kept) == 5
    assert len(kept) <= 3
