"""Settings of a script: how a model is loaded, what a tensor is like, what AIPP would do; and numbers in 16 bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from msdump.frontends import acl
from tests.frontends.acl.scripts import call_operator, config, desc_for, files, ok, run_small, small_model

const = acl.const
UNSUPPORTED, INVALID = 200006, 100000


@pytest.fixture(autouse=True)
def initialized(fresh_process: None) -> None:
    ok(acl.init())
    ok(acl.rt.set_device(0))


# -- loading ----------------------------------------------------------------------------------------


def loaded_with(*options: tuple[int, Any]) -> tuple[int, int]:
    handle = acl.mdl.create_config_handle()
    for attr, value in options:
        ok(acl.mdl.set_config_opt(handle, attr, value))
    found = acl.mdl.load_with_config(handle)
    ok(acl.mdl.destroy_config_handle(handle))
    return found


def test_loading_with_options(tmp_path: Path) -> None:
    path = small_model(tmp_path)
    data = Path(path).read_bytes()
    pointer = acl.util.bytes_to_ptr(data)
    memory = [(const.ACL_MDL_MEM_ADDR_PTR, pointer), (const.ACL_MDL_MEM_SIZET, len(data))]
    work = [(const.ACL_MDL_WORKSPACE_ADDR_PTR, pointer), (const.ACL_MDL_WORKSPACE_SIZET, 48)]
    for kind, options in ((1, [(const.ACL_MDL_PATH_PTR, path)]), (2, [*work, (2, path)]), (3, memory), (4, memory)):
        model_id = ok(loaded_with((const.ACL_MDL_LOAD_TYPE_SIZET, kind), (const.ACL_MDL_PRIORITY_INT32, 7), *options))
        assert run_small(model_id, -3.0).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_options_that_lack_or_are_wrong(tmp_path: Path) -> None:
    path = small_model(tmp_path)
    assert loaded_with() == (0, INVALID)
    assert "expected the option ACL_MDL_LOAD_TYPE_SIZET, got none" in acl.get_recent_err_msg()
    assert loaded_with((const.ACL_MDL_PATH_PTR, path)) == (0, INVALID)
    assert loaded_with((1, 3), (const.ACL_MDL_MEM_SIZET, 4)) == (0, INVALID)
    assert loaded_with((1, 9)) == (0, INVALID)
    assert loaded_with((1, const.ACL_MDL_LOAD_FROM_FILE_WITH_Q), (2, path)) == (0, UNSUPPORTED)
    assert loaded_with((1, 1), (2, str(tmp_path / "none.onnx"))) == (0, 145002)
    handle = acl.mdl.create_config_handle()
    assert acl.mdl.set_config_opt(handle, 99, 1) == INVALID
    assert acl.mdl.set_config_opt(handle, const.ACL_MDL_PRIORITY_INT32, 8) == INVALID
    with pytest.raises(TypeError, match="attr_value: expected a str"):
        acl.mdl.set_config_opt(handle, const.ACL_MDL_PATH_PTR, 3)


def test_a_description_without_loading(tmp_path: Path) -> None:
    path = small_model(tmp_path)
    data = Path(path).read_bytes()
    desc = acl.mdl.create_desc()
    for code in (
        acl.mdl.get_desc_from_file(desc, path),
        acl.mdl.get_desc_from_mem(desc, acl.util.bytes_to_ptr(data), len(data)),
    ):
        ok(code)
        assert ok(acl.mdl.get_input_dims(desc, 0)) == {"name": "x", "dimCount": 2, "dims": [2, 3]}
        assert acl.mdl.get_output_size_by_index(desc, 0) == 24
        assert acl.mdl.get_tensor_real_name(desc, "y") == "y" and acl.mdl.get_tensor_real_name(desc, "z") == ""
    assert acl.mdl.get_desc_from_file(desc, str(tmp_path / "none.onnx")) == 145002


# -- tensors ----------------------------------------------------------------------------------------


def test_what_a_description_is_told() -> None:
    desc = acl.create_tensor_desc(const.ACL_FLOAT, [2, 3, 4, 5], const.ACL_FORMAT_NCHW)
    ok(acl.set_tensor_storage_format(desc, const.ACL_FORMAT_ND))
    ok(acl.set_tensor_storage_shape(desc, [6, 20]))
    ok(acl.set_tensor_origin_format(desc, const.ACL_FORMAT_NHWC))
    ok(acl.set_tensor_origin_shape(desc, [2, 4, 5, 3]))
    ok(acl.set_tensor_dynamic_input(desc, "x"))
    ok(acl.set_tensor_value_range(desc, [[0, 1]]))
    ok(acl.set_tensor_place_ment(desc, const.ACL_MEMTYPE_HOST))
    assert ok(acl.get_tensor_desc_dim_range(desc, 1, 2)) == [3, 3]
    ok(acl.set_tensor_shape_range(desc, [[1, 2], [3, 3], [1, -1], [5, 5]]))
    assert ok(acl.get_tensor_desc_dim_range(desc, 2, 2)) == [1, -1]
    assert acl.get_tensor_desc_by_index(desc, 0) == desc and acl.get_tensor_desc_address(desc) == 0
    other = ok(acl.trans_tensor_desc_format(desc, const.ACL_FORMAT_NHWC))
    assert shape_of(other) == [2, 4, 5, 3] and shape_of(desc) == [2, 3, 4, 5]


def test_what_a_host_cannot_have() -> None:
    """A layout of a device would need another kernel, and padding would be read as data."""
    desc = acl.create_tensor_desc(const.ACL_FLOAT, [2, 3], const.ACL_FORMAT_ND)
    assert acl.set_tensor_storage_format(desc, const.ACL_FORMAT_NC1HWC0) == UNSUPPORTED
    assert acl.set_tensor_storage_shape(desc, [2, 16]) == UNSUPPORTED
    assert acl.trans_tensor_desc_format(desc, const.ACL_FORMAT_NHWC) == (0, UNSUPPORTED)
    assert acl.set_tensor_place_ment(desc, 3) == INVALID
    assert acl.set_tensor_shape_range(desc, [[3, 2]]) == INVALID
    assert acl.set_tensor_shape_range(desc, [[3]]) == INVALID
    assert acl.get_tensor_desc_dim_range(desc, 2, 2) == ([], INVALID)
    assert acl.get_tensor_desc_by_index(desc, 1) == 0


def memory_of(array: Any) -> tuple[int, int]:
    """(address, buffer) of a copy on the device."""
    address = ok(acl.rt.malloc(array.nbytes, 0))
    ok(acl.rt.memcpy(address, array.nbytes, acl.util.numpy_to_ptr(array), array.nbytes, 1))
    return address, acl.create_data_buffer(address, array.nbytes)


def test_a_constant_operand_is_read_from_its_description() -> None:
    """Also when its buffer is empty, and although the script has changed its memory since."""
    x, axes, result = np.float32([[1, 2, 3], [4, 5, 6]]), np.array([1]), np.zeros(2, np.float32)
    (_, data), (address, out) = memory_of(x), memory_of(result)
    descs = [desc_for(x), desc_for(axes)]
    ok(acl.set_tensor_const(descs[1], acl.util.numpy_to_ptr(axes), axes.nbytes))
    axes[0] = 0
    attr = acl.op.create_attr()
    ok(acl.op.set_attr_int(attr, "keepdims", 0))
    buffers = [data, acl.create_data_buffer(0, 0)]
    ok(acl.op.execute_v2("ReduceSum", descs, buffers, [desc_for(result)], [out], attr, 0))
    assert np.frombuffer(acl.util.ptr_to_bytes(address, 8), np.float32).tolist() == [6, 15]
    assert acl.set_tensor_const(descs[1], 0, 8) == INVALID and acl.set_tensor_const(descs[1], address, 0) == INVALID


# -- shapes of results ------------------------------------------------------------------------------


def shape_of(desc: int) -> list[int]:
    return [ok(acl.get_tensor_desc_dim_v2(desc, at)) for at in range(acl.get_tensor_desc_num_dims(desc))]


def test_shapes_follow_from_shapes_or_from_values(tmp_path: Path) -> None:
    ok(acl.mdl.init_dump())
    ok(acl.mdl.set_dump(config(tmp_path, dump_list=[{}], dump_op_switch="on")))
    x, to = np.zeros((2, 6), np.float32), np.array([3, 4])
    (_, data), (_, shape) = memory_of(x), memory_of(to)
    out = acl.create_tensor_desc(const.ACL_FLOAT, [-1], const.ACL_FORMAT_ND)
    ok(acl.op.infer_shape("Relu", [desc_for(x)], [data], 1, [out], 0))
    assert shape_of(out) == [2, 6]
    ok(acl.op.infer_shape("Reshape", [desc_for(x), desc_for(to)], [data, shape], 1, [out], 0))
    assert shape_of(out) == [3, 4]
    assert acl.op.infer_shape("Relu", [desc_for(x)], [data], 2, [out], 0) == INVALID
    assert acl.op.infer_shape("Relux", [desc_for(x)], [data], 1, [out], 0) == 100024
    ok(acl.mdl.finalize_dump())
    assert files(tmp_path) == [], "to ask for a shape is no call of the operator"


@pytest.mark.parametrize("call", ["execute_v2", "compile_and_execute_v2"])
def test_open_sizes_of_results_are_told(call: str) -> None:
    x = np.float32([0, 3, 0, 5])
    (_, data), (address, out) = memory_of(x), memory_of(np.zeros(8, np.int64))
    desc = acl.create_tensor_desc(const.ACL_INT64, [-1, -1], const.ACL_FORMAT_ND)
    compiled = (0, 0, "") if call.startswith("compile") else ()
    ok(getattr(acl.op, call)("NonZero", [desc_for(x)], [data], [desc], [out], 0, *compiled, 0))
    assert shape_of(desc) == [1, 2]
    assert np.frombuffer(acl.util.ptr_to_bytes(address, 16), np.int64).tolist() == [1, 3]
    code, (y,) = call_operator("Relu", [x], [x])
    assert code == 0 and y.tolist() == x.tolist()


# -- AIPP and media ---------------------------------------------------------------------------------


def test_aipp_is_set_and_no_model_has_it(tmp_path: Path) -> None:
    model_id = ok(acl.mdl.load_from_file(small_model(tmp_path)))
    assert acl.mdl.create_aipp(0) == 0
    aipp, dataset = acl.mdl.create_aipp(2), acl.mdl.create_dataset()
    ok(acl.mdl.set_aipp_input_format(aipp, 1))
    ok(acl.mdl.set_aipp_csc_params(aipp, 1, 256, 0, 359, 256, -88, -183, 256, 454, 0, 0, 0, 0, 0, 128, 128))
    ok(acl.mdl.set_aipp_rbuv_swap_switch(aipp, 0))
    ok(acl.mdl.set_aipp_ax_swap_switch(aipp, 0))
    ok(acl.mdl.set_aipp_src_image_size(aipp, 256, 224))
    ok(acl.mdl.set_aipp_scf_params(aipp, 0, 1, 1, 1, 1, 1))
    ok(acl.mdl.set_aipp_crop_params(aipp, 1, 0, 0, 224, 224, 1))
    ok(acl.mdl.set_aipp_padding_params(aipp, 0, 0, 0, 0, 0, 0))
    ok(acl.mdl.set_aipp_dtc_pixel_mean(aipp, 104, 117, 123, 0, 0))
    ok(acl.mdl.set_aipp_dtc_pixel_min(aipp, 0.5, 0, 0, 0, 0))
    ok(acl.mdl.set_aipp_pixel_var_reci(aipp, 1.0, 1, 1, 1, 0))
    assert acl.mdl.set_aipp_crop_params(aipp, 1, 0, 0, 224, 224, 2) == INVALID
    assert acl.mdl.set_aipp_rbuv_swap_switch(aipp, 2) == INVALID
    assert acl.mdl.set_aipp_input_format(aipp, 99) == INVALID
    assert acl.mdl.set_input_aipp(model_id, dataset, 0, aipp) == 145015
    assert acl.mdl.set_aipp_by_input_index(model_id, dataset, 0, aipp) == 145015
    assert "Do to the image before what AIPP would" in acl.get_recent_err_msg()
    assert acl.mdl.get_first_aipp_info(model_id, 0) == (None, 145015)
    assert acl.mdl.get_aipp_type(model_id, 0) == (0, 0xFFFFFFFF, 0)
    assert acl.mdl.get_aipp_type(7, 0)[2] == 145003
    ok(acl.mdl.destroy_aipp(aipp))


def test_memory_of_the_image_units() -> None:
    address = ok(acl.media.dvpp_malloc(64))
    ok(acl.rt.memset(address, 64, 1, 64))
    ok(acl.media.dvpp_free(address))
    assert acl.media.dvpp_free(address) == INVALID and acl.media.dvpp_malloc(0) == (0, INVALID)
    with pytest.raises(AttributeError, match=r"acl\.media\.dvpp_vpc_resize_async: expected [^$]* with Pillow"):
        _ = acl.media.dvpp_vpc_resize_async


# -- float16 ----------------------------------------------------------------------------------------


@given(st.integers(0, 0xFFFF))
def test_every_float16_is_read_and_written(bits: int) -> None:
    value = acl.float16_to_float(bits)
    assert np.array_equal(np.float16(value), np.uint16(bits).view(np.float16), equal_nan=True)
    if not np.isnan(value):
        assert acl.float_to_float16(value) == bits


@given(st.floats(width=32))
def test_floats_are_rounded_as_numpy_rounds_them(value: float) -> None:
    with np.errstate(over="ignore"):
        expected = np.float32(value).astype(np.float16)
    found = np.uint16(acl.float_to_float16(value)).view(np.float16)
    assert np.array_equal(found, expected, equal_nan=True)
