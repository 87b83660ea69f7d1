"""A new front end has every dump: `interpreter.py` says nothing of engines, files, statistics, overflow or reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump
from msdump.errors import DumpError
from msdump.graph.run import Observer
from msdump.process import sessions
from msdump.process.report import Report
from msdump.tensors.arrays import Array
from tests.contracts.run_contract import Play, RunContract
from tests.frontends.toy.interpreter import Program, Step

Configure = Callable[..., Path]


def double(x: Array) -> Array:
    return x * 2


def total(x: Array, y: Array) -> Array:
    return x + y


def increase(x: Array, y: Array) -> Array:
    x += y
    return x


def logarithm(x: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(x)


def check(x: Array) -> Array:
    if x.max() > 100:
        raise ValueError("too large")
    return x + 0


STEPS = [
    Step(double, ("x",), "twice"),
    Step(total, ("x", "twice"), "sum"),
    Step(increase, ("twice", "x"), "more", in_place=True),
    Step(logarithm, ("more",), "log"),
]
X = np.linspace(1, 6, 6, dtype=np.float32).reshape(2, 3)
PLAIN = {"double": X * 2, "total": X * 3, "increase": X * 3, "logarithm": np.log(X * 3)}


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Writes MindSpore's configuration and names it in the environment; returns the folder of the dump."""

    def write(is_sync: bool, **common: Any) -> Path:
        settings = {"dump_mode": 0, "path": str(tmp_path / "dump"), "net_name": "Toy", "iteration": "all"}
        settings |= {"input_output": 0, "kernels": [], "support_device": [0], "saved_data": "tensor", **common}
        config = {"common_dump_settings": settings, "e2e_dump_settings": {"enable": is_sync, "trans_flag": True}}
        (tmp_path / "dump.json").write_text(json.dumps(config))
        monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(tmp_path / "dump.json"))
        return tmp_path / "dump"

    return write


def run(program: Program, times: int = 2, x: Array = X) -> Report:
    for _ in range(times):
        program(x=x)
    sessions.close_all()
    (report,) = sessions.reports()
    return report


def outputs(folder: Path, iteration: int) -> dict[str, Array]:
    """Type of each operator -> its output, as the files hold it."""
    tensors = msdump.open(folder).tensors(iteration=iteration, io="output")
    return {tensor.op_type: tensor.load() for tensor in tensors if tensor.op_type in PLAIN}


def assert_plain(folder: Path, iterations: Sequence[int]) -> None:
    for iteration in iterations:
        dumped = outputs(folder, iteration)
        assert list(dumped) == list(PLAIN)
        for name, array in PLAIN.items():
            assert dumped[name].tobytes() == array.tobytes(), name


def test_without_a_configuration_it_only_runs() -> None:
    assert Program(STEPS)(x=X)["log"].tobytes() == PLAIN["logarithm"].tobytes()
    assert not sessions.reports()


def test_a_block(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = configure(True)
    config = json.loads((folder.parent / "dump.json").read_text())
    monkeypatch.delenv("MINDSPORE_DUMP_CONFIG")
    Program(STEPS)(x=X)
    with msdump.dump(config) as dump:
        Program(STEPS)(x=X)
    assert_plain(folder, (0,))
    report = dump.report()
    assert report is not None and report.iterations_dumped == 1


@pytest.mark.parametrize(
    ("is_sync", "settings"), [(True, {}), (False, {"file_format": "npy"}), (False, {"file_format": "bin"})]
)
def test_both_engines(is_sync: bool, settings: dict[str, Any], configure: Configure) -> None:
    folder = configure(is_sync, **settings)
    report = run(Program(STEPS))
    assert_plain(folder, (0, 1))
    assert report.error is None and not report.lost
    before = [t.load() for t in msdump.open(folder).tensors(iteration=0, op_type="increase", io="input", slot=0)]
    assert [array.tobytes() for array in before] == [(X * 2).tobytes()], "what it read, though it wrote over it"


def test_statistics(configure: Configure) -> None:
    folder = configure(True, saved_data="statistic", statistic_category=["max", "min", "l2norm"])
    run(Program(STEPS), times=1)
    rows = [row for row in msdump.stat(folder).rows if row.tensor.op_type == "total" and row.tensor.io == "output"]
    assert [(float(row.numbers.max), float(row.numbers.min)) for row in rows] == [(18.0, 3.0)]


def test_selected_iterations_and_operators(configure: Configure) -> None:
    folder = configure(True, iteration="1", dump_mode=1, kernels=["total"])
    report = run(Program(STEPS), times=3)
    assert not outputs(folder, 0) and not outputs(folder, 2)
    assert list(outputs(folder, 1)) == ["total"]
    assert report.iterations_run == 3


def test_overflow(configure: Configure) -> None:
    configure(False, op_debug_mode=3)
    x = X.copy()
    x[0, 0] = 0
    report = run(Program(STEPS), times=1, x=x)
    assert report.overflows is not None and [name for name in report.overflows if "logarithm" in name]


def test_a_full_disk_ends_the_dump_and_not_the_program(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(True)
    monkeypatch.setenv("MSDUMP_DISK_BUDGET", "1")
    program = Program(STEPS)
    assert program(x=X)["log"].tobytes() == PLAIN["logarithm"].tobytes()
    with pytest.raises(DumpError, match="MSDUMP_DISK_BUDGET"):
        sessions.close_all()


class TestToy(RunContract):
    def program(self, observers: Sequence[Observer]) -> Play:
        return self._play(Program(STEPS), observers, X)

    def failing_program(self, observers: Sequence[Observer]) -> Play:
        return self._play(Program([STEPS[0], Step(check, ("twice",), "checked"), STEPS[1]]), observers, X * 100)

    def _play(self, program: Program, observers: Sequence[Observer], x: Array) -> Play:
        program.observe(observers, {"x": X})
        iterations = iter(range(9))
        return lambda: b"".join(array.tobytes() for array in program.run({"x": x}, next(iterations)).values())
