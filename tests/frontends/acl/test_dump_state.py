"""Order of the calls on a dump, and what each of them returns."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from msdump.config.acl import load_acl_config, plan_acl
from msdump.engine.model_session import AclSession
from msdump.errors import DumpError
from msdump.formats.sidecars import initial_acl_json, step_acl_json
from msdump.frontends import acl
from msdump.frontends.acl.process import process
from msdump.process import sessions
from msdump.testing.acl_configs import ACL_FILE_MISTAKES, ACL_MISTAKES
from tests.frontends.acl.scripts import call_operator, config, everything, files, ok, run_small, small_model

FOLDER = os.path.dirname(os.path.abspath(__file__))
UNINITIALIZE, REPEAT_INITIALIZE, REPEAT_FINALIZE = 100001, 100002, 100037
ALREADY_RUN, NOT_RUN, INTERNAL = 100044, 100045, 500000


def begin() -> None:
    ok(acl.init())
    ok(acl.mdl.init_dump())


def said(code: int, expected: int, ep_code: str) -> None:
    """The call returned this number, and the reason begins with this code."""
    text = acl.get_recent_err_msg()
    assert code == expected, text
    assert text.startswith(f"{ep_code}: ") and f" returns {expected} ACL_ERROR_" in text
    assert acl.get_recent_err_msg() == ""


# -- every rule of an acl.json ----------------------------------------------------------------------


@pytest.mark.parametrize("mistake", ACL_FILE_MISTAKES, ids=lambda mistake: mistake.name)
@pytest.mark.parametrize("call", ["set_dump", "init"])
def test_wrong_files(mistake: Any, call: str, tmp_path: Path) -> None:
    path = mistake.make(str(tmp_path))
    if call == "set_dump":
        begin()
        said(acl.mdl.set_dump(path), mistake.acl_error, mistake.ep_code)
    elif path:
        said(acl.init(path), mistake.acl_error, mistake.ep_code)
        said(acl.mdl.init_dump(), UNINITIALIZE, "EP0008")
        ok(acl.init())
    else:
        # Without a file aclInit asks for nothing, and succeeds.
        ok(acl.init(path))
        ok(acl.mdl.init_dump())


@pytest.mark.parametrize("number", range(len(ACL_MISTAKES)), ids=lambda n: f"{n}-row{ACL_MISTAKES[n].row}")
def test_wrong_sections(number: int, tmp_path: Path) -> None:
    mistake = ACL_MISTAKES[number]
    (tmp_path / "acl.json").write_text(json.dumps({"dump": mistake.section(FOLDER)}))
    begin()
    code = acl.mdl.set_dump(str(tmp_path / "acl.json"))
    text = acl.get_recent_err_msg()
    assert code == 100009 and text.startswith(f"{mistake.ep_code}: ") and mistake.item in text


@pytest.mark.parametrize("text", ["", "{}", '{"dump": {}}', '{"other": 1}', f'{{"dump": {{"dump_path": "{FOLDER}"}}}}'])
def test_files_that_ask_for_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "acl.json").write_text(text)
    begin()
    ok(acl.mdl.set_dump(str(tmp_path / "acl.json")))
    run_small(ok(acl.mdl.load_from_file(small_model(tmp_path))))
    ok(acl.mdl.finalize_dump())
    assert not sessions.all_of(AclSession)


# -- order ------------------------------------------------------------------------------------------


def test_before_init() -> None:
    said(acl.mdl.init_dump(), UNINITIALIZE, "EP0008")
    said(acl.mdl.set_dump("/no/such/file"), UNINITIALIZE, "EP0008")
    said(acl.mdl.set_dump(), UNINITIALIZE, "EP0008")
    said(acl.mdl.finalize_dump(), UNINITIALIZE, "EP0008")
    said(acl.finalize(), UNINITIALIZE, "EP0008")


def test_the_dump_flag_is_asked_before_arguments() -> None:
    ok(acl.init())
    said(acl.mdl.set_dump(), NOT_RUN, "EP0008")
    said(acl.mdl.set_dump("/no/such/file"), NOT_RUN, "EP0008")
    said(acl.mdl.finalize_dump(), NOT_RUN, "EP0008")
    ok(acl.mdl.init_dump())
    said(acl.mdl.init_dump(), REPEAT_INITIALIZE, "EP0008")
    said(acl.mdl.set_dump(), 100000, "EP0007")
    said(acl.mdl.set_dump(None), 100000, "EP0007")
    with pytest.raises(TypeError, match="dump_cfg_path: expected a str, got int"):
        acl.mdl.set_dump(3)  # type: ignore[arg-type]


def test_init_and_finalize() -> None:
    ok(acl.init())
    said(acl.init(), REPEAT_INITIALIZE, "EP0008")
    ok(acl.finalize())
    said(acl.finalize(), REPEAT_FINALIZE, "EP0008")
    said(acl.mdl.init_dump(), UNINITIALIZE, "EP0008")
    ok(acl.init(""))
    ok(acl.finalize())


@pytest.mark.parametrize("keys", [{"dump_list": [{}]}, {"dump_op_switch": "on"}, {"dump_debug": "on"}])
def test_a_dump_of_init_and_one_of_calls_exclude_each_other(keys: dict[str, Any], tmp_path: Path) -> None:
    ok(acl.init(config(tmp_path, **keys)))
    said(acl.mdl.init_dump(), ALREADY_RUN, "EP0008")
    said(acl.mdl.set_dump(None), NOT_RUN, "EP0008")
    ok(acl.finalize())


def test_an_exception_dump_of_init_leaves_the_calls_free(tmp_path: Path) -> None:
    ok(acl.init(config(tmp_path, dump_scene="aic_err_norm_dump")))
    ok(acl.mdl.init_dump())
    ok(acl.mdl.set_dump(config(tmp_path, "more.json", dump_list=[{}])))
    assert [dump.plan.trigger.exception for dump in process.dump.in_force()] == ["aic_err_norm_dump", ""]
    ok(acl.mdl.finalize_dump())
    assert [dump.plan.trigger.exception for dump in process.dump.in_force()] == ["aic_err_norm_dump"]


def test_a_dump_of_init_is_written(tmp_path: Path) -> None:
    ok(acl.init(everything(tmp_path)))
    run_small(ok(acl.mdl.load_from_file(small_model(tmp_path))))
    ok(acl.finalize())
    assert files(tmp_path) == ["Add.add", "Data.x", "Relu.relu"]


def test_a_detail_dump_comes_before_the_device_and_stays(tmp_path: Path) -> None:
    path = config(tmp_path, dump_scene="aic_err_detail_dump")
    begin()
    ok(acl.rt.set_device(0))
    said(acl.mdl.set_dump(path), INTERNAL, "EP0008")
    ok(acl.mdl.finalize_dump())
    ok(acl.finalize())
    begin()
    ok(acl.mdl.set_dump(path))
    ok(acl.rt.set_device(0))
    ok(acl.mdl.finalize_dump())
    assert [dump.plan.trigger.exception for dump in process.dump.in_force()] == ["aic_err_detail_dump"]


def test_finalize_dump_ends_a_brief_dump(tmp_path: Path) -> None:
    begin()
    ok(acl.mdl.set_dump(config(tmp_path, dump_scene="lite_exception")))
    assert [dump.plan.trigger.exception for dump in process.dump.in_force()] == ["aic_err_brief_dump"]
    ok(acl.mdl.finalize_dump())
    assert process.dump.in_force() == ()


def test_a_second_exception_dump_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    begin()
    ok(acl.mdl.set_dump(config(tmp_path, dump_scene="aic_err_norm_dump")))
    ok(acl.mdl.set_dump(config(tmp_path, dump_scene="aic_err_brief_dump")))
    assert "an exception dump is on already" in caplog.text
    assert [dump.plan.trigger.exception for dump in process.dump.in_force()] == ["aic_err_norm_dump"]


@pytest.mark.parametrize(
    ("variables", "scene", "folder"),
    [
        ({"ASCEND_DUMP_SCENE": "aic_err_detail_dump"}, "aic_err_detail_dump", "."),
        ({"NPU_COLLECT_PATH": "collect"}, "aic_err_norm_dump", "collect"),
        ({"ASCEND_DUMP_SCENE": "aic_err_brief_dump", "NPU_COLLECT_PATH": "c"}, "aic_err_brief_dump", "c"),
        ({"ASCEND_DUMP_SCENE": "aic_err_brief_dump", "ASCEND_WORK_PATH": "w"}, "aic_err_brief_dump", "w"),
    ],
)
def test_the_environment_alone(
    variables: dict[str, str], scene: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    begin()
    (dump,) = process.dump.in_force()
    assert (dump.plan.trigger.exception, dump.root) == (scene, tmp_path / folder)
    ok(acl.mdl.set_dump(config(tmp_path, dump_scene="aic_err_norm_dump")))
    ok(acl.mdl.finalize_dump())
    assert process.dump.in_force() == (dump,)


# -- what models take -------------------------------------------------------------------------------


def test_models_that_were_loaded_before_dump_nothing(tmp_path: Path) -> None:
    begin()
    early = ok(acl.mdl.load_from_file(small_model(tmp_path, "early")))
    ok(acl.mdl.set_dump(everything(tmp_path)))
    late = ok(acl.mdl.load_from_file(small_model(tmp_path, "late")))
    for model_id in (early, late):
        assert np.array_equal(run_small(model_id), np.full((2, 3), 2, np.float32))
    ok(acl.mdl.finalize_dump())
    assert {path.name for path in (tmp_path / "out").glob("*/0/*")} == {"late"}
    count = len(files(tmp_path))
    run_small(late)
    assert len(files(tmp_path)) == count == 3


def test_the_last_set_dump_counts(tmp_path: Path) -> None:
    begin()
    ok(acl.mdl.set_dump(config(tmp_path, "first.json", dump_list=[{"layer": ["add"]}])))
    ok(acl.mdl.set_dump(config(tmp_path, "second.json", dump_list=[{"layer": ["relu"]}])))
    run_small(ok(acl.mdl.load_from_file(small_model(tmp_path))))
    ok(acl.mdl.finalize_dump())
    assert files(tmp_path) == ["Relu.relu"]


def test_a_model_keeps_the_dump_of_its_loading(tmp_path: Path) -> None:
    begin()
    ok(acl.mdl.set_dump(config(tmp_path, "first.json", dump_list=[{"layer": ["add"]}])))
    first = ok(acl.mdl.load_from_file(small_model(tmp_path)))
    ok(acl.mdl.set_dump(config(tmp_path, "second.json", dump_list=[{"layer": ["relu"]}])))
    run_small(first)
    ok(acl.mdl.finalize_dump())
    assert files(tmp_path) == ["Add.add", "Data.x"]


def test_the_round_may_be_repeated(tmp_path: Path) -> None:
    ok(acl.init())
    path = small_model(tmp_path)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        ok(acl.mdl.init_dump())
        ok(acl.mdl.set_dump(everything(tmp_path / name)))
        model_id = ok(acl.mdl.load_from_file(path))
        run_small(model_id)
        ok(acl.mdl.finalize_dump())
        ok(acl.mdl.unload(model_id))
        assert files(tmp_path / name) == ["Add.add", "Data.x", "Relu.relu"]
    # And the same model without a dump.
    run_small(ok(acl.mdl.load_from_file(path)))
    ok(acl.finalize())


def test_a_model_is_found_by_its_file_and_by_the_name_inside(tmp_path: Path) -> None:
    begin()
    path = small_model(tmp_path, "net")
    for name in ("net", "inside", "other"):
        (tmp_path / name).mkdir()
        ok(acl.mdl.set_dump(config(tmp_path / name, dump_list=[{"model_name": name}])))
        run_small(ok(acl.mdl.load_from_file(path)))
    data = Path(path).read_bytes()
    ok(acl.mdl.set_dump(config(tmp_path, dump_list=[{"model_name": "inside"}])))
    run_small(ok(acl.mdl.load_from_mem(acl.util.bytes_to_ptr(data), len(data))))
    ok(acl.mdl.finalize_dump())
    assert [bool(files(tmp_path / name)) for name in ("net", "inside", "other")] == [True, True, False]
    assert {path.name for path in (tmp_path / "out").glob("*/0/*")} == {"inside"}


def test_two_models_and_two_devices(tmp_path: Path) -> None:
    begin()
    ok(acl.mdl.set_dump(everything(tmp_path)))
    for device in (0, 3):
        ok(acl.rt.set_device(device))
        run_small(ok(acl.mdl.load_from_file(small_model(tmp_path, f"net{device}"))))
    ok(acl.mdl.finalize_dump())
    found = {path.relative_to(tmp_path / "out").parts[1:4] for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert found == {("0", "net0", "1"), ("3", "net3", "2")}


def test_runs_of_several_threads_count(tmp_path: Path) -> None:
    begin()
    ok(acl.mdl.set_dump(everything(tmp_path)))
    models = [ok(acl.mdl.load_from_file(small_model(tmp_path, name))) for name in ("first", "second")]

    def work(model_id: int) -> None:
        for _ in range(10):
            run_small(model_id)

    threads = [threading.Thread(target=work, args=(model_id,)) for model_id in models * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ok(acl.mdl.finalize_dump())
    (dump,) = sessions.all_of(AclSession)
    report = dump.report()
    assert (report.iterations_run, report.iterations_dumped, report.files) == (40, 40, 120)


@pytest.mark.parametrize(
    ("keys", "dumped"), [({"dump_list": [{}]}, 5), ({"dump_debug": "on"}, 0), ({"dump_scene": "aic_err_norm_dump"}, 0)]
)
def test_runs_of_each_model_count(keys: dict[str, Any], dumped: int, tmp_path: Path) -> None:
    begin()
    ok(acl.mdl.set_dump(config(tmp_path, **keys)))
    first, second = (ok(acl.mdl.load_from_file(small_model(tmp_path, name))) for name in ("first", "second"))
    for model_id in (first, second, first, first, second):
        run_small(model_id)
    ok(acl.mdl.finalize_dump())
    (dump,) = sessions.all_of(AclSession)
    assert (dump.report().iterations_run, dump.report().iterations_dumped) == (5, dumped)


def test_operators_that_are_called_by_themselves(tmp_path: Path) -> None:
    begin()
    x = np.float32([[-1, 2]])
    code, (before,) = call_operator("Relu", [x], [x])
    ok(code)
    ok(acl.mdl.set_dump(config(tmp_path, dump_list=[{}], dump_op_switch="on", dump_mode="all")))
    code, (y,) = call_operator("Relu", [x], [x])
    ok(code)
    assert np.array_equal(y, [[0, 2]]) and np.array_equal(before, y)
    ok(acl.mdl.finalize_dump())
    ok(call_operator("Relu", [x], [x])[0])
    found = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(found) == 1 and found[0].name.startswith("Relu.Relu_1.")
    assert found[0].parent.name == "0" and found[0].parent.parent.parent == tmp_path / "out"


def test_a_finalize_that_fails_may_be_called_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin()
    ok(acl.mdl.set_dump(everything(tmp_path)))
    run_small(ok(acl.mdl.load_from_file(small_model(tmp_path))))
    real = AclSession.close

    def close(self: AclSession) -> None:
        real(self)
        raise DumpError("the dump is not complete, 3 tensors are missing.")

    monkeypatch.setattr(AclSession, "close", close)
    assert acl.mdl.finalize_dump() == INTERNAL
    assert "3 tensors are missing" in acl.get_recent_err_msg()
    monkeypatch.setattr(AclSession, "close", real)
    assert process.dump.is_dump_on
    ok(acl.mdl.finalize_dump())
    said(acl.mdl.finalize_dump(), NOT_RUN, "EP0008")


def test_files_that_mindspore_hands_to_acl_hold(tmp_path: Path) -> None:
    texts = [initial_acl_json(tmp_path)]
    texts += [
        step_acl_json(tmp_path, mode, layers, op_debug_mode)
        for mode in ("all", "input", "output")
        for layers in ((), ("conv1",))
        for op_debug_mode in (0, 3, 4)
    ]
    for text in texts:
        (tmp_path / "acl.json").write_text(text)
        plan = plan_acl(load_acl_config(tmp_path / "acl.json"))
        assert (plan is None) == ("dump_step" in text)


# -- any order --------------------------------------------------------------------------------------


class DumpOrder(RuleBasedStateMachine):
    """The three calls, init and finalize in any order, against a table of what each must return."""

    def __init__(self) -> None:
        super().__init__()
        process.reset_for_tests()
        self.is_initialized = self.was_finalized = self.is_on = self.is_configured = False
        self.layer: str | None = None

    @rule(is_configured=st.booleans())
    def init(self, is_configured: bool) -> None:
        code = acl.init(_LAYER_FILES["relu"] if is_configured else None)
        assert code == (REPEAT_INITIALIZE if self.is_initialized else 0)
        if not self.is_initialized:
            self.is_initialized, self.is_configured = True, is_configured
            self.layer = "relu" if is_configured else None

    @rule()
    def finalize(self) -> None:
        expected = 0 if self.is_initialized else REPEAT_FINALIZE if self.was_finalized else UNINITIALIZE
        assert acl.finalize() == expected
        self.was_finalized |= self.is_initialized
        self.is_initialized = self.is_on = self.is_configured = False
        self.layer = None

    @rule()
    def init_dump(self) -> None:
        expected = 0
        if not self.is_initialized:
            expected = UNINITIALIZE
        elif self.is_configured:
            expected = ALREADY_RUN
        elif self.is_on:
            expected = REPEAT_INITIALIZE
        assert acl.mdl.init_dump() == expected
        self.is_on |= expected == 0

    @rule(name=st.sampled_from(["add", "relu", "empty", "wrong", "missing", "null"]))
    def set_dump(self, name: str) -> None:
        expected = {"wrong": 100009, "missing": 100003, "null": 100000}.get(name, 0)
        if not self.is_on:
            expected = NOT_RUN
        if not self.is_initialized:
            expected = UNINITIALIZE
        assert acl.mdl.set_dump(_LAYER_FILES[name]) == expected
        if expected == 0:
            self.layer = name if name in ("add", "relu") else None

    @rule()
    def finalize_dump(self) -> None:
        expected = 0 if self.is_on else NOT_RUN if self.is_initialized else UNINITIALIZE
        assert acl.mdl.finalize_dump() == expected
        if expected == 0:
            self.is_on, self.layer = False, None

    @precondition(lambda self: self.is_initialized)
    @rule()
    def load(self) -> None:
        number = ok(acl.mdl.load_from_file(_LAYER_FILES["model"]))
        assert bool(process.models[number].onnx._observers) == (self.layer is not None)
        ok(acl.mdl.unload(number))

    @invariant()
    def what_is_in_force(self) -> None:
        layers = [each.full_names for dump in process.dump.in_force() for each in dump.plan.which.lists]
        assert layers == ([] if self.layer is None else [{self.layer}])

    def teardown(self) -> None:
        process.close()


_LAYER_FILES: dict[str, Any] = {}


def test_any_order(tmp_path: Path) -> None:
    for name in ("add", "relu"):
        _LAYER_FILES[name] = config(tmp_path, f"{name}.json", dump_list=[{"layer": [name]}])
    (tmp_path / "empty.json").write_text("{}")
    (tmp_path / "wrong.json").write_text('{"dump": []}')
    _LAYER_FILES.update(
        empty=str(tmp_path / "empty.json"),
        wrong=str(tmp_path / "wrong.json"),
        missing=str(tmp_path / "missing.json"),
        null=None,
        model=small_model(tmp_path),
    )
    quick = settings(max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(DumpOrder, settings=quick)
