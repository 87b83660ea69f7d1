"""Handles: any int in any place is an answer, never the end of the process."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from msdump.frontends import acl
from tests.frontends.acl.scripts import dataset_of, ok, small_model


def calls() -> list[tuple[str, Callable[..., Any]]]:
    """Calls whose arguments are all ints or lists of ints."""
    found = []
    for module in (acl, acl.rt, acl.mdl, acl.op, acl.util):
        for name, call in vars(module).items():
            is_call = inspect.isfunction(call) and call.__module__.startswith(acl.__name__) and name[0] != "_"
            if is_call and (hasattr(call, "__wrapped__") or name.startswith(("destroy", "query"))):
                kinds = [str(each.annotation) for each in inspect.signature(call).parameters.values()]
                if kinds and all(kind in ("int", "Sequence[int]") for kind in kinds):
                    found.append((f"{module.__name__.rpartition('.')[2]}.{name}", call))
    return sorted(set(found))


CALLS = calls()


def test_there_are_many() -> None:
    assert len(CALLS) > 60


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_int_in_any_place(tmp_path: Path, data: Any) -> None:
    """Handles of every kind, ids, addresses and numbers change places."""
    if not (tmp_path / "net.onnx").exists():
        ok(acl.init())
        small_model(tmp_path)
    model_id = ok(acl.mdl.load_from_file(str(tmp_path / "net.onnx")))
    desc = acl.mdl.create_desc()
    ok(acl.mdl.get_desc(desc, model_id))
    known = [model_id, desc, dataset_of([24]), acl.create_tensor_desc(0, [2, 3], 2), acl.op.create_attr()]
    known += [ok(acl.rt.create_stream()), ok(acl.rt.create_event()), ok(acl.rt.malloc(24, 0))]
    known += [ok(acl.rt.malloc_host(24)), ok(acl.rt.create_context(0)), acl.mdl.get_dataset_buffer(known[2], 0)]
    number = st.sampled_from([*known, 0, 1, 2, 7, 24, -1]) | st.integers(-(2**40), 2**70)
    for _ in range(4):
        name, call = data.draw(st.sampled_from(CALLS))
        kinds = inspect.signature(call).parameters.values()
        arguments = [
            data.draw(number if str(each.annotation) == "int" else st.lists(number, max_size=3)) for each in kinds
        ]
        if "synchronize" in name or "timeout" in name:
            continue  # an event that a blocked stream would reach is waited for, as it should be
        call(*arguments)
    acl.rt.destroy_stream(known[5])


def test_a_handle_of_another_kind_is_named() -> None:
    dataset = acl.mdl.create_dataset()
    assert acl.mdl.get_num_inputs(dataset) == 0
    text = acl.get_recent_err_msg()
    assert text.startswith("EP0006: model_desc: expected the handle of a ModelDesc, got the handle of another kind")
    assert acl.destroy_data_buffer(0) == 100000
    assert acl.get_recent_err_msg().startswith("EP0007: data_buffer: expected a handle, got a null pointer")
    ok(acl.mdl.destroy_dataset(dataset))
    assert acl.mdl.destroy_dataset(dataset) == 100000
    assert "was destroyed" in acl.get_recent_err_msg()


def test_messages_are_those_of_the_thread() -> None:
    acl.rt.free(0)
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(acl.get_recent_err_msg()))
    thread.start()
    thread.join()
    assert found == [""] and "aclrtFree returns 100000 ACL_ERROR_INVALID_PARAM" in acl.get_recent_err_msg()


def test_unknown_names_are_explained() -> None:
    with pytest.raises(AttributeError, match=r'got "creat_data_buffer"\. Did you mean "create_data_buffer"'):
        _ = acl.creat_data_buffer  # type: ignore[attr-defined]
