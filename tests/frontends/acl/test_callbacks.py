"""Functions of a script that streams call, threads of a script, and the one for operators that fail."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

from msdump.frontends import acl
from tests.frontends.acl.scripts import call_operator, config, dataset_of, fill, ok, small_model
from tests.frontends.onnx import models

NOT_SUBSCRIBED, TIMEOUT = 107012, 507012


@pytest.fixture(autouse=True)
def initialized(fresh_process: None) -> None:
    ok(acl.init())
    ok(acl.rt.set_device(0))


class Reporter:
    """The thread of a script that runs callbacks, as samples have it."""

    def __init__(self) -> None:
        self.goes_on = True
        self.codes: set[int] = set()
        self.ready = threading.Event()
        self.thread_id = ok(acl.util.start_thread(self.loop, [100]))

    def loop(self, args_list: list[int]) -> None:
        self.ready.wait()
        while self.goes_on:
            self.codes.add(acl.rt.process_report(args_list[0]))

    def stop(self) -> None:
        self.goes_on = False
        ok(acl.util.stop_thread(self.thread_id))


@pytest.mark.parametrize("block", [acl.const.ACL_CALLBACK_NO_BLOCK, acl.const.ACL_CALLBACK_BLOCK])
def test_callbacks_come_in_the_order_of_the_stream_and_in_its_thread(block: int, tmp_path: Path) -> None:
    model_id, stream = ok(acl.mdl.load_from_file(small_model(tmp_path))), ok(acl.rt.create_stream())
    reporter = Reporter()
    ok(acl.rt.subscribe_report(reporter.thread_id, stream))
    reporter.ready.set()
    inputs, outputs = dataset_of([24]), dataset_of([24])
    fill(inputs, 0, np.full((2, 3), 4, np.float32))
    address = acl.get_data_buffer_addr(acl.mdl.get_dataset_buffer(outputs, 0))
    seen: list[tuple[Any, int, float]] = []
    done = threading.Event()

    def look(args: list[Any]) -> None:
        value = np.frombuffer(acl.util.ptr_to_bytes(address, 4), np.float32)[0]
        seen.append((args[0], threading.get_ident(), float(value)))
        if args[0] == "last":
            done.set()

    ok(acl.mdl.execute_async(model_id, inputs, outputs, stream))
    ok(acl.rt.launch_callback(look, ["first"], block, stream))
    ok(acl.rt.launch_callback(look, ["last"], block, stream))
    ok(acl.rt.synchronize_stream(stream))
    assert done.wait(60)
    assert seen == [("first", reporter.thread_id, 5.0), ("last", reporter.thread_id, 5.0)]
    ok(acl.rt.unsubscribe_report(reporter.thread_id, stream))
    reporter.stop()
    assert reporter.codes <= {0, TIMEOUT, NOT_SUBSCRIBED} and 0 in reporter.codes


def test_a_blocking_callback_holds_the_stream_up() -> None:
    stream, order = ok(acl.rt.create_stream()), []
    me = threading.get_ident()
    ok(acl.rt.subscribe_report(me, stream))
    ok(acl.rt.launch_callback(lambda _: order.append(acl.rt.query_event(event)[0]), None, 1, stream))
    event = ok(acl.rt.create_event())
    ok(acl.rt.record_event(event, stream))
    assert acl.rt.process_report(60000) == 0
    ok(acl.rt.synchronize_stream(stream))
    assert order == [acl.const.ACL_EVENT_STATUS_NOT_READY]
    ok(acl.rt.unsubscribe_report(me, stream))


def test_what_waits_is_let_go_when_its_thread_leaves() -> None:
    stream, me = ok(acl.rt.create_stream()), threading.get_ident()
    ok(acl.rt.subscribe_report(me, stream))
    started = ok(acl.rt.create_event())
    ok(acl.rt.record_event(started, stream))
    ok(acl.rt.launch_callback(print, None, 1, stream))
    ok(acl.rt.synchronize_event(started))
    while acl.rt.synchronize_stream_with_timeout(stream, 1) == 107020:
        acl.rt.unsubscribe_report(me, stream)
    ok(acl.rt.synchronize_stream(stream))


def test_wrong_subscriptions(caplog: pytest.LogCaptureFixture) -> None:
    stream, me = ok(acl.rt.create_stream()), threading.get_ident()
    assert acl.rt.process_report(1) == NOT_SUBSCRIBED
    assert acl.rt.launch_callback(print, None, 0, stream) == 107015
    assert acl.rt.unsubscribe_report(me, stream) == 107011
    ok(acl.rt.subscribe_report(me, stream))
    assert acl.rt.subscribe_report(me + 1, stream) == 107011
    assert acl.rt.launch_callback(print, None, 2, stream) == 100000
    with pytest.raises(TypeError, match="fn: expected a function"):
        acl.rt.launch_callback(3, None, 0, stream)  # type: ignore[arg-type]
    caplog.clear()
    assert acl.rt.process_report(1) == TIMEOUT and not caplog.records, "scripts call it in a loop"

    def fails(_: object) -> None:
        raise KeyError("of the script")

    ok(acl.rt.launch_callback(fails, None, 0, stream))
    assert acl.rt.process_report(60000) == 0 and "of the script" in caplog.text
    ok(acl.rt.unsubscribe_report(me, stream))


def test_threads(caplog: pytest.LogCaptureFixture) -> None:
    found: list[Any] = []
    for arguments in ([1, 2], None):
        ok(acl.util.stop_thread(ok(acl.util.start_thread(lambda *args: found.append(args), arguments))))
    assert found == [([1, 2],), ()]
    ok(acl.util.stop_thread(ok(acl.util.start_thread(int, "no number"))))
    assert "no number" in caplog.text
    assert acl.util.stop_thread(7) == 100000
    with pytest.raises(TypeError, match="thr_func: expected a function"):
        acl.util.start_thread(None, [])  # type: ignore[arg-type]


def test_an_operator_that_fails_is_told_with_the_ids_of_its_dump(tmp_path: Path) -> None:
    nodes = [
        onnx.helper.make_node("Relu", ["x"], ["r"], "relu"),
        onnx.helper.make_node("Reshape", ["r", "shape"], ["y"], "reshape"),
    ]
    ends = [models.value("x", shape=(6,)), models.value("shape", np.int64, (2,))]
    onnx.save(models.model_of(nodes, ends, [models.value("y", shape=(None, None))]), tmp_path / "net.onnx")
    model_id = ok(acl.mdl.load_from_file(str(tmp_path / "net.onnx")))
    found: list[tuple[int, ...]] = []

    def look(info: int) -> None:
        getters = ("task_id", "stream_id", "device_id", "error_code", "thread_id")
        found.append(tuple(getattr(acl.rt, f"get_{what}_from_exception_info")(info) for what in getters))

    ok(acl.rt.set_exception_info_callback(look))
    given, outputs = dataset_of([24, 16]), dataset_of([24])
    fill(given, 1, np.array([4, 4]))
    assert acl.mdl.execute(model_id, given, outputs) == 500002
    assert acl.mdl.execute_async(model_id, given, outputs, 0) == 0
    assert acl.rt.synchronize_stream(0) == 500002
    names = [node.full_name for node in acl.mdl.find_model(model_id).onnx.graph({}, 0).graph.op_infos()]
    assert names.index("reshape") == 1
    assert [entry[:4] for entry in found] == [(1, 0, 0, 500002)] * 2
    assert found[0][4] == threading.get_native_id() != found[1][4]
    ok(acl.rt.set_exception_info_callback())
    assert acl.mdl.execute(model_id, given, outputs) == 500002 and len(found) == 2
    assert acl.rt.get_task_id_from_exception_info(0) == 0xFFFFFFFF


def test_a_single_operator_that_fails_is_told_as_well(tmp_path: Path) -> None:
    found: list[int] = []
    ok(acl.rt.set_exception_info_callback(lambda info: found.append(acl.rt.get_error_code_from_exception_info(info))))
    code, _ = call_operator("Reshape", [np.zeros(6, np.float32), np.array([4, 4])], [np.zeros((4, 4), np.float32)])
    assert code == 500002 and found == [500002]
    assert config(tmp_path)


def test_app_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "msdump")
    for level, name in enumerate(("DEBUG", "INFO", "WARNING", "ERROR")):
        acl.app_log(level, f"of the script, 100 % {level}")
        assert (caplog.records[-1].levelname, caplog.records[-1].getMessage()) == (
            name,
            f"of the script, 100 % {level}",
        )
    acl.app_log(9, "still said")
    assert caplog.records[-1].getMessage() == "still said" and "expected 0, 1, 2 or 3" in acl.get_recent_err_msg()
