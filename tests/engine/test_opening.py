"""The session of graphs, opened by whichever thread compiles first, and dumps of `with` blocks."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdump.engine import opening
from msdump.engine.graphs import GraphSession
from msdump.errors import ConfigError
from msdump.storage.plain import read_plain
from tests.threads import run_at_once


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A process with a dump; the folder that it goes to."""
    common = {
        "dump_mode": 0, "path": str(tmp_path / "dump"), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
        "input_output": 0, "kernels": [], "support_device": [0], "op_debug_mode": 0, "file_format": "npy",
    }  # fmt: skip
    (tmp_path / "dump.json").write_text(json.dumps({"common_dump_settings": common}))
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(tmp_path / "dump.json"))
    return tmp_path / "dump"


OPENERS: dict[str, Callable[[], GraphSession | None]] = {
    "mindspore": lambda: opening.open_mindspore("CPU", 0),
    "torch": lambda: opening.open_torch(None, 0, ()),
}


@pytest.mark.parametrize("frontend", OPENERS)
def test_threads_that_compile_first_open_one_session(frontend: str, configured: Path) -> None:
    opened: list[GraphSession | None] = []
    run_at_once([lambda: opened.append(OPENERS[frontend]())] * 8)
    assert len(opened) == 8 and len(set(map(id, opened))) == 1
    assert opened[0] is opening.current() is not None
    assert len(list(configured.iterdir())) == 1  # folders of one time


def test_numbers_of_runs_are_given_once(configured: Path) -> None:
    opened = opening.open_mindspore("CPU", 0)
    assert opened is not None
    numbers: list[int] = []
    run_at_once([lambda: numbers.extend(opened.next_iteration() for _ in range(500))] * 4)
    assert sorted(numbers) == list(range(2000))


# -- with blocks -----------------------------------------------------------------------------------


def settings(folder: Path) -> dict[str, Any]:
    return {
        "common_dump_settings": {
            "dump_mode": 0, "path": str(folder), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
            "input_output": 0, "kernels": [], "support_device": [0],
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }  # fmt: skip


def data_files(folder: Path) -> int:
    return len(list(folder.rglob("*.npy")))


def test_a_block_dumps_cells_also_those_that_ran_before(tmp_path: Path) -> None:
    ms = pytest.importorskip("msdump.mindspore")

    class Net(ms.nn.Cell):
        def construct(self, x: Any) -> Any:
            return ms.ops.relu(x) + 1

    for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
        ms.set_context(mode=mode)
        net, x = Net(), ms.Tensor(np.ones((2, 3), np.float32))
        net(x)
        for name in (f"first{mode}", f"second{mode}"):
            with opening.dump(settings(tmp_path / name)) as dump:
                net(x)
                net(x)
            report = dump.report()
            assert report is not None and (report.iterations_dumped, report.error) == (2, None)
            assert dump.path is None or dump.path == tmp_path / name
            found = data_files(tmp_path / name)
            assert found == report.files + report.links > 0
            net(x)
            assert data_files(tmp_path / name) == found
        # The graph without a dump, and that of the last block.
        assert all(len(graphs) == 2 for graphs in net._cache.by_signature.values())
    ms.set_context(mode=ms.GRAPH_MODE)


def test_a_block_dumps_compiled_models_also_those_that_ran_before(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from msdump.frontends.torch import backend

    model = torch.compile(torch.nn.Linear(3, 2), backend=backend)
    model(torch.ones(2, 3))
    for name in ("first", "second"):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(settings(tmp_path / name)))
        with opening.dump(path) as dump:
            model(torch.ones(2, 3))
        report = dump.report()
        assert report is not None and report.iterations_dumped == 1
        found = data_files(tmp_path / name)
        assert found == report.files + report.links > 0
        model(torch.ones(2, 3))
        assert data_files(tmp_path / name) == found


def test_a_block_in_a_block_and_beside_the_environment(configured: Path, tmp_path: Path) -> None:
    of_environment = opening.open_mindspore("CPU", 0)
    with opening.dump(settings(tmp_path / "outer")):
        outer = opening.open_mindspore("CPU", 0)
        with opening.dump(settings(tmp_path / "inner")) as inner:
            assert inner.report() is None
            session = opening.open_mindspore("CPU", 0)
            assert session is not None and session.plan.where.path == tmp_path / "inner"
        assert opening.current() is outer is not of_environment
        assert session.has_ended
    assert opening.current() is of_environment is not None and not of_environment.has_ended


def test_a_block_that_has_ended_keeps_no_dumper(tmp_path: Path) -> None:
    ms = pytest.importorskip("msdump.mindspore")

    class Net(ms.nn.Cell):
        def construct(self, x: Any) -> Any:
            return ms.ops.relu(x)

    dumpers = []
    for number in range(5):
        with opening.dump(settings(tmp_path / str(number))) as dump:
            Net()(ms.Tensor(np.ones(2, np.float32)))
            session = opening.current()
            assert session is not None
            dumpers += [weakref.ref(observer) for observer in session.observers]
        report = dump.report()
        assert report is not None and report.iterations_dumped == 1 and report.files > 0
    del session
    gc.collect()
    assert len(dumpers) == 5 and not any(dumper() for dumper in dumpers)


def test_a_plan_in_place_of_a_file(tmp_path: Path) -> None:
    with opening.dump(settings(tmp_path / "first")):
        session = opening.open_mindspore("CPU", 0)
    assert session is not None
    with opening.dump(session.plan):
        again = opening.current()
    assert again is not None and again is not session and again.plan == session.plan


def test_an_acl_json_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "acl.json"
    path.write_text(json.dumps({"dump": {"dump_path": str(tmp_path), "dump_list": [{}]}}))
    read: list[Path] = []

    def note(path: Path, most: int) -> bytes:
        read.append(path)
        return read_plain(path, most)

    monkeypatch.setattr("msdump.config.acl_file.read_plain", note)
    monkeypatch.setattr("msdump.config.json_file.read_plain", note)
    opening.dump(path)
    assert read == [path]


@pytest.mark.parametrize("function", [opening.dump, opening.dump_models])
@pytest.mark.parametrize(
    ("section", "text"),
    [
        ({"dump_path": "/", "dump_step": float("nan")}, "NaN"),
        ({"dump_path": "/", "dump_list": [{}], "dump_mode": {1, 2}}, "expected values that a JSON file can hold"),
        ({"deep": [{"": [{"": [{"": [{"": [{"": [{"": [{"": [{"": [{"": {}}]}]}]}]}]}]}]}]}]}, "nested too deeply"),
    ],
)
def test_a_mapping_is_read_as_strictly_as_a_file(
    function: Callable[[Any], opening.DumpBlock], section: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        function({"dump": section})


def test_an_acl_json_dumps_models(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from msdump.frontends import acl
    from tests.frontends.acl.scripts import everything, files, small_model

    with opening.dump(everything(tmp_path)) as dump:
        acl.load(small_model(tmp_path))(np.zeros((2, 3), np.float32))
    report = dump.report()
    assert report is not None and report.files == len(files(tmp_path)) == 3


@pytest.mark.parametrize(
    ("config", "text"),
    [({}, "common_dump_settings"), ({"dump": {"dump_list": 3}}, "dump_list"), ("none.json", "none.json")],
)
def test_a_wrong_configuration_is_refused_before_the_block(config: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        opening.dump(config)


def test_an_error_in_the_block_comes_before_that_of_the_dump(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        with opening.dump(settings(tmp_path / "dump")):
            session = opening.open_mindspore("CPU", 0)
            assert session is not None
            session.leave_to_parent()  # leaves the session with an error
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert "not complete" in caplog.text
