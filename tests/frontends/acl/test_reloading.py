"""An acl.json that changes while models run: what each entry point that takes one leaves on disk."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import msdump
from msdump.frontends import acl
from msdump.process import sessions
from msdump.process.report import Report
from tests.engine.test_reloading import counted_calls, write
from tests.frontends.acl.calls import ok
from tests.frontends.acl.scripts import call_operator, run_small, small_model

Edit = Callable[[Path], None]


def keys(**changes: Any) -> Edit:
    def edit(file: Path) -> None:
        (file.parent / "out").mkdir(exist_ok=True)
        dump = {"dump_path": str(file.parent / "out"), "dump_list": [{}], **changes}
        write(file, json.dumps({"dump": dump}))

    return edit


def by_acl(folder: Path) -> Callable[[], object]:
    ok(acl.init(str(folder / "acl.json")))
    model_id = ok(acl.mdl.load_from_file(small_model(folder)))
    return lambda: run_small(model_id)


def by_block(folder: Path) -> Callable[[], object]:
    ok(acl.init())
    msdump.dump(folder / "acl.json").__enter__()
    model_id = ok(acl.mdl.load_from_file(small_model(folder)))
    return lambda: run_small(model_id)


def by_torchair(folder: Path) -> Callable[[], object]:
    torch = pytest.importorskip("torch")
    import msdump.torchair as torchair

    torch._dynamo.reset()
    options = torchair.CompilerConfig()
    options.dump_config.dump_config_path = str(folder / "acl.json")
    compiled = torch.compile(lambda x: x.relu() + 1, backend=torchair.get_npu_backend(compiler_config=options))
    return lambda: compiled(torch.ones(2, 3))


WAYS = {way.__name__: way for way in (by_acl, by_block, by_torchair)}


def play(way: str, folder: Path, first: Edit, edits: Mapping[int, Edit], steps: int = 5) -> Report:
    folder.mkdir(parents=True)
    file = folder / "acl.json"
    first(file)
    step = WAYS[way](folder)
    for number in range(steps):
        edits.get(number, lambda _: None)(file)
        step()
    (session,) = sessions.used()
    session.close()
    report = session.report()
    if way != "by_torchair":
        ok(acl.finalize())
    from msdump.engine import opening

    opening._forget()
    sessions.reset_for_tests()
    return report


def data(folder: Path) -> dict[int, dict[str, bytes]]:
    """Iteration -> files, without time stamps and numbers of models; rows of statistics without their stamps."""
    files: dict[int, dict[str, bytes]] = {}
    for path in (folder / "out").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            name = re.sub(r"\.\d{14,}", ".T", path.name)
            text = content if path.suffix == ".csv" else re.sub(rb"\x10[\x80-\xff]{7,9}[\x00-\x7f]", b"T", content)
            files.setdefault(int(path.parent.name), {})[name] = text
    return files


CONFIGURATIONS: list[dict[str, Any]] = [
    {"dump_mode": "output", "dump_step": "0-9"},
    {"dump_mode": "all"},
    {"dump_mode": "output", "dump_data": "stats"},
    {"dump_step": "0-2"},
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_steps_are_those_of_a_run_that_had_the_configuration(way: str, tmp_path: Path) -> None:
    files = [keys(**settings) for settings in CONFIGURATIONS]
    report = play(way, tmp_path / "changed", files[0], dict(enumerate(files[1:], 2)))
    expected: dict[int, dict[str, bytes]] = {}
    plain = []
    for number, file in enumerate(files):
        plain.append(play(way, tmp_path / str(number), file, {}))
        steps = data(tmp_path / str(number))
        expected |= {step: steps[step] for step in ((0, 1) if not number else (number + 1,)) if step in steps}
    changed = data(tmp_path / "changed")
    assert {step: set(each) for step, each in changed.items()} == {step: set(each) for step, each in expected.items()}
    assert changed == expected and set(expected) == {0, 1, 2, 3}
    assert report.error is None and not report.lost
    assert (report.iterations_run, report.iterations_dumped) == (5, 4)
    assert {each.operators_seen for each in plain} == {report.operators_seen}
    assert report.files == sum(path.is_file() for path in (tmp_path / "changed" / "out").rglob("*"))


def test_a_model_that_the_file_names_no_more(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    layers, other = [{"model_name": "net", "layer": ["relu"]}], [{"model_name": "other"}]
    edits = {1: keys(dump_list=other), 2: keys(dump_list=layers), 3: lambda file: write(file, "{"), 4: keys()}
    play("by_acl", tmp_path / "run", keys(dump_list=layers), edits)
    found = data(tmp_path / "run")
    assert {step: len(each) for step, each in found.items()} == {0: 1, 2: 1, 3: 1, 4: 3}
    assert len([each for each in caplog.records if "read again" in each.getMessage()]) == 3


def test_a_scene_cannot_change(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    watcher = [{"layer": ["add"], "watcher_nodes": ["relu"]}]
    play("by_acl", tmp_path / "run", keys(), {1: keys(dump_scene="watcher", dump_list=watcher, dump_mode="output")})
    assert set(data(tmp_path / "run")) == {0, 1, 2, 3, 4}
    assert [each for each in caplog.records if "dump_scene cannot change" in each.getMessage()]
    assert len(data(tmp_path / "run")[0]) == len(data(tmp_path / "run")[4]) == 3


def test_overflows_for_a_while(tmp_path: Path) -> None:
    overflow = keys(dump_debug="on", dump_list=[])
    report = play("by_acl", tmp_path / "run", keys(), {1: overflow, 3: keys()})
    # Nothing overflows.
    assert set(data(tmp_path / "run")) == {0, 3, 4}
    assert report.overflows == () and report.error is None and report.iterations_dumped == 3


def test_operators_that_are_called_one_by_one(tmp_path: Path) -> None:
    file, x = tmp_path / "acl.json", np.ones((2, 3), np.float32)
    keys(dump_op_switch="off")(file)
    ok(acl.init(str(file)))
    sizes = []
    for switch, mode in (("off", "all"), ("on", "output"), ("off", "output"), ("on", "all")):
        keys(dump_op_switch=switch, dump_mode=mode)(file)
        assert call_operator("Relu", [x], [x])[0] == 0
        sessions.flush_all()
        sizes.append(len([path for path in (tmp_path / "out").rglob("*") if path.is_file()]))
    assert sizes == [0, 1, 1, 2]


def test_one_stat_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted_calls(monkeypatch, "acl.json")
    play("by_acl", tmp_path / "run", keys(dump_step="9"), {1: lambda _: calls.clear()})
    assert calls == ["stat"] * 4
