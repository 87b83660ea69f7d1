"""Models through handles: what they tell, what they compute, and what is refused."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

from msdump.frontends import acl
from msdump.frontends.acl.process import process
from msdump.tensors import dtypes
from msdump.tensors.packing import pack, unpack
from tests.frontends.acl.scripts import dataset_of, fetch, fill, ok, run_small, small_model
from tests.frontends.onnx import models
from tests.frontends.onnx.models import same_bits, true_values
from tests.frontends.onnx.test_model import all_codes, narrow_ends, needs


@pytest.fixture(autouse=True)
def initialized(fresh_process: None) -> None:
    ok(acl.init())
    ok(acl.rt.set_device(0))


def saved(folder: Path, proto: Any, name: str = "net") -> str:
    onnx.save(proto, folder / f"{name}.onnx")
    return str(folder / f"{name}.onnx")


def refused(found: Any, code: int, *parts: str) -> None:
    """The call returned this number, and one clear line says why."""
    got = found[-1] if isinstance(found, tuple) else found
    text = acl.get_recent_err_msg()
    assert got == code, text
    for part in parts:
        assert part in text.splitlines()[0]


# -- what a model tells -----------------------------------------------------------------------------


def test_description(tmp_path: Path) -> None:
    desc = acl.mdl.create_desc()
    assert acl.mdl.get_num_inputs(desc) == 0
    ok(
        acl.mdl.get_desc(
            desc, ok(acl.mdl.load_from_file(saved(tmp_path, models.convolutions(np.random.default_rng(0)))))
        )
    )
    assert (acl.mdl.get_num_inputs(desc), acl.mdl.get_num_outputs(desc)) == (1, 1)
    assert ok(acl.mdl.get_input_dims(desc, 0)) == {"name": "data", "dimCount": 4, "dims": [-1, 3, 8, 8]}
    assert acl.mdl.get_input_dims_v2(desc, 0) == acl.mdl.get_input_dims(desc, 0)
    assert ok(acl.mdl.get_output_dims(desc, 0))["dims"] == [-1, 10]
    assert acl.mdl.get_input_size_by_index(desc, 0) == acl.mdl.get_output_size_by_index(desc, 0) == 0
    assert acl.mdl.get_input_data_type(desc, 0) == acl.const.ACL_FLOAT == acl.mdl.get_output_data_type(desc, 0)
    assert acl.mdl.get_input_format(desc, 0) == acl.const.ACL_FORMAT_ND
    assert acl.mdl.get_output_name_by_index(desc, 0) == "probability"
    assert acl.mdl.get_input_index_by_name(desc, "data") == acl.mdl.get_output_index_by_name(desc, "probability")
    refused(acl.mdl.get_input_index_by_name(desc, "dat"), 100000, "expected one of data, got dat")
    refused(acl.mdl.get_input_dims(desc, 1), 100000, "expected one of 1 inputs, got 1")
    ok(acl.mdl.destroy_desc(desc))


def test_sizes_of_a_file(tmp_path: Path) -> None:
    work, weight, code = acl.mdl.query_size(small_model(tmp_path))
    assert (work, weight, code) == (48, 4, 0)
    data = Path(small_model(tmp_path)).read_bytes()
    assert acl.mdl.query_size_from_mem(acl.util.bytes_to_ptr(data), len(data)) == (48, 4, 0)


# -- what it computes -------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["desc", "batch", "dims", "size"])
def test_open_sizes(how: str, tmp_path: Path) -> None:
    proto = models.convolutions(np.random.default_rng(0))
    model_id = ok(acl.mdl.load_from_file(saved(tmp_path, proto)))
    images = np.random.default_rng(1).standard_normal((5, 3, 8, 8), np.float32)
    inputs, outputs = dataset_of([images.nbytes]), dataset_of([10000])
    fill(inputs, 0, images)
    if how == "desc":
        desc = acl.create_tensor_desc(0, [5, 3, 8, 8], 0)
        assert ok(acl.mdl.set_dataset_tensor_desc(inputs, desc, 0)) == inputs
        acl.destroy_tensor_desc(desc)
    elif how == "batch":
        ok(acl.mdl.set_dynamic_batch_size(model_id, inputs, 1, 5))
    elif how == "dims":
        ok(acl.mdl.set_input_dynamic_dims(model_id, inputs, 1, {"name": "", "dimCount": 4, "dims": [5, 3, 8, 8]}))
    ok(acl.mdl.execute(model_id, inputs, outputs))
    truth = true_values(proto, {"data": images})["probability"]
    assert same_bits(fetch(outputs, 0), truth)
    if how in ("batch", "dims"):
        described = acl.mdl.create_desc()
        ok(acl.mdl.get_desc(described, model_id))
        assert ok(acl.mdl.get_cur_output_dims(described, 0))["dims"] == [5, 10]


def test_images_of_open_height_and_width(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Relu", ["x"], ["y"], "relu")
    x, y = models.value("x", shape=(1, "h", "w")), models.value("y", shape=(1, "h", "w"))
    model_id = ok(acl.mdl.load_from_file(saved(tmp_path, models.model_of([node], [x], [y]))))
    inputs, outputs = dataset_of([24]), dataset_of([24])
    fill(inputs, 0, np.arange(-3, 3, dtype=np.float32).reshape(1, 2, 3))
    refused(acl.mdl.execute(model_id, inputs, outputs), 100017, "which is float32[1, ?, ?]", "set_dataset_tensor_desc")
    ok(acl.mdl.set_dynamic_hw_size(model_id, inputs, 1, 2, 3))
    ok(acl.mdl.execute(model_id, inputs, outputs))
    assert fetch(outputs, 0).tolist() == [[[0, 0, 0], [0, 1, 2]]]
    refused(acl.mdl.set_dynamic_batch_size(model_id, inputs, 1, 2), 100019, "expected an input with such open sizes")


def test_narrow_dtypes(tmp_path: Path) -> None:
    model_id = ok(acl.mdl.load_from_file(saved(tmp_path, models.half())))
    desc = acl.mdl.create_desc()
    ok(acl.mdl.get_desc(desc, model_id))
    assert acl.mdl.get_input_data_type(desc, 0) == acl.const.ACL_FLOAT16


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float8_e5m2", "float8_e4m3fnuz"])
def test_packed_and_eight_bit_dtypes_lie_in_memory_as_on_a_device(dtype: str, tmp_path: Path) -> None:
    """Two elements of int4 are a byte. A dtype that ACL has no number of is ACL_DT_UNDEFINED."""
    needs(dtype)
    size = 5
    model_id = ok(acl.mdl.load_from_file(saved(tmp_path, narrow_ends(dtype, size))))
    desc = acl.mdl.create_desc()
    ok(acl.mdl.get_desc(desc, model_id))
    row = dtypes.dtype(dtype)
    nbytes = 3 if row.bits == 4 else 5
    assert acl.mdl.get_input_size_by_index(desc, 0) == acl.mdl.get_output_size_by_index(desc, 0) == nbytes
    assert acl.mdl.get_input_data_type(desc, 0) == (-1 if row.ge_number is None else row.ge_number)
    inputs, outputs = dataset_of([nbytes]), dataset_of([nbytes, 20])
    raw = pack(all_codes(dtype, size), dtype)
    fill(inputs, 0, raw)
    ok(acl.mdl.execute(model_id, inputs, outputs))
    address = acl.get_data_buffer_addr(acl.mdl.get_dataset_buffer(outputs, 0))
    found = unpack(np.frombuffer(acl.util.ptr_to_bytes(address, nbytes), np.uint8), dtype, [size])
    assert np.array_equal(found.astype(np.float32), all_codes(dtype, size).astype(np.float32), equal_nan=True)
    refused(acl.mdl.execute(model_id, inputs, dataset_of([nbytes - 1, 20])), 100018, f"at least {nbytes} bytes")


def test_from_memory_and_with_memory(tmp_path: Path) -> None:
    path = small_model(tmp_path)
    data = Path(path).read_bytes()
    pointer = acl.util.bytes_to_ptr(data)
    for found in (
        acl.mdl.load_from_mem(pointer, len(data)),
        acl.mdl.load_from_file_with_mem(path, 0, 0, 0, 0),
        acl.mdl.load_from_mem_with_mem(pointer, len(data), 0, 0, 0, 0),
    ):
        assert run_small(ok(found), -3.0).tolist() == [[0, 0, 0], [0, 0, 0]]


# -- asynchronous runs -----------------------------------------------------------------------------


def test_a_stream_does_things_in_order(tmp_path: Path) -> None:
    model_id = ok(acl.mdl.load_from_file(small_model(tmp_path)))
    stream = ok(acl.rt.create_stream())
    inputs, outputs = dataset_of([24]), dataset_of([24])
    source, target = np.full((2, 3), 4, np.float32), np.zeros((2, 3), np.float32)
    address = acl.get_data_buffer_addr(acl.mdl.get_dataset_buffer(inputs, 0))
    result = acl.get_data_buffer_addr(acl.mdl.get_dataset_buffer(outputs, 0))
    first, last = ok(acl.rt.create_event()), ok(acl.rt.create_event())
    ok(acl.rt.record_event(first, stream))
    ok(acl.rt.memcpy_async(address, 24, acl.util.numpy_to_ptr(source), 24, 1, stream))
    ok(acl.mdl.execute_async(model_id, inputs, outputs, stream))
    ok(acl.rt.memcpy_async(acl.util.numpy_to_ptr(target), 24, result, 24, 2, stream))
    ok(acl.rt.record_event(last, stream))
    ok(acl.rt.synchronize_event(last))
    assert target.tolist() == [[5, 5, 5], [5, 5, 5]]
    ok(acl.rt.synchronize_stream(stream))
    assert ok(acl.rt.query_event(last)) == acl.const.ACL_EVENT_STATUS_COMPLETE
    assert ok(acl.rt.event_elapsed_time(first, last)) >= 0
    ok(acl.mdl.unload(model_id))
    ok(acl.rt.destroy_stream(stream))


def test_a_model_is_not_unloaded_in_flight(tmp_path: Path) -> None:
    model_id = ok(acl.mdl.load_from_file(small_model(tmp_path)))
    stream = ok(acl.rt.create_stream())
    gate = threading.Event()
    process.stream(stream).submit(lambda: gate.wait() and None)
    inputs, outputs = dataset_of([24]), dataset_of([24])
    ok(acl.mdl.execute_async(model_id, inputs, outputs, stream))
    refused(acl.mdl.unload(model_id), 148051, "a stream has 1 run of it to do", "synchronize_stream")
    assert acl.rt.synchronize_stream_with_timeout(stream, 1) == 107020
    gate.set()
    ok(acl.rt.synchronize_stream(stream))
    ok(acl.mdl.unload(model_id))
    refused(acl.mdl.execute_async(model_id, inputs, outputs, stream), 145003)


def test_an_error_waits_for_the_stream(tmp_path: Path) -> None:
    model_id = ok(acl.mdl.load_from_file(small_model(tmp_path)))
    inputs, outputs = dataset_of([24]), dataset_of([4])
    ok(acl.mdl.execute_async(model_id, inputs, outputs, 0))
    refused(acl.rt.synchronize_stream(0), 100018, "at least 24 bytes for output y of float32[2, 3], got a buffer of 4")
    ok(acl.rt.synchronize_stream(0))


# -- what is refused --------------------------------------------------------------------------------


def test_files_that_are_no_models(tmp_path: Path) -> None:
    (tmp_path / "a.om").write_bytes(b"IMOD")
    (tmp_path / "b.onnx").write_bytes(b"IMOD" + bytes(100))
    (tmp_path / "c.onnx").write_bytes(b"no model at all")
    far = models.half()
    far.opset_import[0].version = 1000
    unknown = models.half()
    unknown.graph.node[0].op_type = "Relux"
    refused(acl.mdl.load_from_file(str(tmp_path / "a.om")), 200006, "which only a device can run", "torch.onnx")
    refused(acl.mdl.load_from_file(str(tmp_path / "b.onnx")), 200006, "Give the .onnx file that it was converted from")
    refused(acl.mdl.load_from_file(str(tmp_path / "c.onnx")), 100012, "expected an ONNX model")
    refused(acl.mdl.load_from_file(str(tmp_path / "none.onnx")), 145002, "expected a model file")
    refused(acl.mdl.load_from_file(saved(tmp_path, far)), 100013, "expected an operator set from 1 to", "got 1000")
    refused(acl.mdl.load_from_file(saved(tmp_path, unknown)), 100013, "Relux")
    refused(acl.mdl.load_from_mem(acl.util.bytes_to_ptr(b"text"), 4), 100012)
    refused(acl.mdl.load_from_mem(0, 4), 100000)
    refused(acl.mdl.unload(7), 145003, "expected the id of a loaded model, got 7")
    ok(acl.finalize())
    refused(acl.mdl.load_from_file(small_model(tmp_path)), 100001, "call acl.init first")


def test_datasets_that_do_not_fit(tmp_path: Path) -> None:
    model_id = ok(acl.mdl.load_from_file(small_model(tmp_path)))
    right = dataset_of([24])
    refused(acl.mdl.execute(model_id, dataset_of([]), right), 100017, "expected 1 input buffers in the dataset, got 0")
    refused(acl.mdl.execute(model_id, right, dataset_of([24, 24])), 100018, "expected 1 output buffers")
    refused(acl.mdl.execute(model_id, dataset_of([12]), right), 100017, "expected 24 bytes for input x", "buffer of 12")
    refused(acl.mdl.execute(model_id, right, dataset_of([8])), 100018, "at least 24 bytes")
    desc = acl.create_tensor_desc(0, [3, 2], 2)
    ok(acl.mdl.set_dataset_tensor_desc(right, desc, 0))
    refused(acl.mdl.execute(model_id, right, dataset_of([24])), 100017, "as float32[2, 3], got shape [3, 2]")
    gone, outputs = dataset_of([24]), dataset_of([24])
    ok(acl.rt.free(acl.get_data_buffer_addr(acl.mdl.get_dataset_buffer(gone, 0))))
    refused(acl.mdl.execute(model_id, gone, outputs), 100000, "input x", "Was it freed?")


def test_an_operator_that_fails(tmp_path: Path) -> None:
    nodes = [onnx.helper.make_node("Reshape", ["x", "shape"], ["y"], "reshape")]
    inputs = [models.value("x", shape=(6,)), models.value("shape", np.int64, (2,))]
    path = saved(tmp_path, models.model_of(nodes, inputs, [models.value("y", shape=(None, None))]))
    model_id = ok(acl.mdl.load_from_file(path))
    given, outputs = dataset_of([24, 16]), dataset_of([24])
    fill(given, 1, np.array([4, 4]))
    refused(acl.mdl.execute(model_id, given, outputs), 500002, "reshape")
    fill(given, 1, np.array([3, 2]))
    ok(acl.mdl.execute(model_id, given, outputs))
    assert fetch(outputs, 0).shape == (3, 2)
