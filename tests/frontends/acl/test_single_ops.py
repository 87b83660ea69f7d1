"""Operators that are called by themselves, by ONNX's names and by Ascend's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

from msdump.frontends import acl
from tests.frontends.acl.scripts import call_operator, desc_for, ok
from tests.frontends.onnx import models

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((2, 3)).astype(np.float32), RNG.standard_normal((2, 3)).astype(np.float32)
SETTERS = {
    bool: acl.op.set_attr_bool,
    int: acl.op.set_attr_int,
    float: acl.op.set_attr_float,
    str: acl.op.set_attr_string,
    list: acl.op.set_attr_list_int,
}


@pytest.fixture(autouse=True)
def initialized(fresh_process: None) -> None:
    ok(acl.init())


def attributes(**values: Any) -> int:
    attr = acl.op.create_attr()
    for name, value in values.items():
        ok(SETTERS[type(value)](attr, name, value))  # type: ignore[operator]
    return attr


def softmax(x: Any, axis: int) -> Any:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


CASES: list[tuple[str, list[Any], dict[str, Any], Any]] = [
    ("Add", [A, B], {}, A + B),
    ("Sub", [A, B], {}, A - B),
    ("RealDiv", [A, B], {}, A / B),
    ("Maximum", [A, B], {}, np.maximum(A, B)),
    ("Minimum", [A, B], {}, np.minimum(A, B)),
    ("Relu", [A], {}, np.maximum(A, 0)),
    ("MatMul", [A, B.T.copy()], {}, A @ B.T),
    ("MatMulV2", [A, B], {"transpose_x2": True}, A @ B.T),
    ("BatchMatMul", [A[None], B[None]], {"adj_x1": True}, (A.T @ B)[None]),
    ("SoftmaxV2", [A], {"axes": [0]}, softmax(A, 0)),
    ("Softmax", [A], {"axis": 1}, softmax(A, 1)),
    ("Cast", [A], {"dst_type": 1}, A.astype(np.float16)),
    ("TransposeD", [A], {"perm": [1, 0]}, A.T.copy()),
    ("ConcatD", [A, B], {"concat_dim": 1, "N": 2}, np.concatenate([A, B], 1)),
    ("ReduceSumD", [A], {"axes": [1], "keep_dims": True}, A.sum(1, keepdims=True)),
    ("ReduceMeanD", [A], {"axes": [0]}, A.mean(0)),
    ("Neg", [np.float32(2)], {}, np.float32(-2)),
    ("Add", [np.int64([1, 2]), np.int64([3])], {}, np.int64([4, 5])),
    ("Relu", [np.empty((0, 3), np.float32)], {}, np.empty((0, 3), np.float32)),
]


@pytest.mark.parametrize(
    ("op_type", "inputs", "attrs", "expected"), CASES, ids=[f"{c[0]}{i}" for i, c in enumerate(CASES)]
)
def test_values(op_type: str, inputs: list[Any], attrs: dict[str, Any], expected: Any) -> None:
    arrays = [np.asarray(array) for array in inputs]
    code, (found,) = call_operator(op_type, arrays, [np.asarray(expected)], attributes(**attrs) if attrs else 0)
    assert code == 0, acl.get_recent_err_msg()
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_convolution() -> None:
    image = RNG.standard_normal((1, 2, 5, 6)).astype(np.float32)
    kernel = RNG.standard_normal((3, 2, 1, 2)).astype(np.float32)
    attr = attributes(strides=[1, 1, 1, 1], pads=[0, 0, 0, 1], dilations=[1, 1, 1, 1], groups=1)
    padded = np.pad(image, ((0, 0), (0, 0), (0, 0), (0, 1)))
    expected = np.einsum("nchw,oc->nohw", padded[..., :-1], kernel[:, :, 0, 0])
    expected += np.einsum("nchw,oc->nohw", padded[..., 1:], kernel[:, :, 0, 1])
    code, (found,) = call_operator("Conv2D", [image, kernel], [expected], attr)
    ok(code)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_other_ways_to_call() -> None:
    descs, out = [desc_for(A)] * 2, [desc_for(A)]
    ok(acl.op.update_params("Add", descs, out, 0))
    ok(acl.op.compile("Add", descs, out, 0, 0, 0, ""))
    memory = [ok(acl.rt.malloc(A.nbytes, 0)) for _ in range(3)]
    buffers = [acl.create_data_buffer(address, A.nbytes) for address in memory]
    ok(acl.rt.memcpy(memory[0], A.nbytes, acl.util.numpy_to_ptr(A), A.nbytes, 1))
    handle = ok(acl.op.create_handle("Add", descs, out, 0))
    for call in (
        lambda: acl.op.execute("Add", descs, buffers[:2], out, buffers[2:], 0, 0),
        lambda: acl.op.execute_with_handle(handle, buffers[:2], buffers[2:], 0),
        lambda: acl.op.compile_and_execute("Add", descs, buffers[:2], out, buffers[2:], 0, 0, 0, "", 0),
    ):
        ok(acl.rt.memset(memory[2], A.nbytes, 0, A.nbytes))
        ok(call())
        assert acl.util.ptr_to_bytes(memory[2], A.nbytes) == A.tobytes()
    acl.op.destroy_handle(handle)
    assert acl.op.execute_with_handle(handle, buffers[:2], buffers[2:], 0) == 100000
    half = ok(acl.rt.malloc(12, 0))
    target = acl.create_tensor_desc(acl.const.ACL_FLOAT16, A.shape, 2)
    ok(acl.op.cast(descs[0], buffers[0], target, acl.create_data_buffer(half, 12), 0, 0))
    assert acl.util.ptr_to_bytes(half, 12) == A.astype(np.float16).tobytes()


def test_models_of_single_operators(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Clip", ["x", "low"], ["y"], "clip")
    proto = models.model_of(
        [node], [models.value("x", shape=(2, 3))], [models.value("y", shape=(2, 3))], {"low": np.float32(0.5)}
    )
    assert call_operator("Clip", [A], [A])[0] == 0
    (tmp_path / "device.om").write_bytes(b"IMOD")
    onnx.save(proto, tmp_path / "clip.onnx")
    ok(acl.finalize())
    ok(acl.init())
    ok(acl.op.set_model_dir(str(tmp_path)))
    data = proto.SerializeToString()
    ok(acl.op.load(acl.util.bytes_to_ptr(data), len(data)))
    shape = np.zeros((2, 3), np.float32)
    code, (found,) = call_operator("Clip", [A], [shape], attributes(unread=1))
    ok(code)
    assert np.array_equal(found, np.maximum(A, np.float32(0.5)))
    assert acl.op.set_model_dir(str(tmp_path / "none")) == 100003


@pytest.mark.parametrize(
    ("op_type", "inputs", "outputs", "attrs", "code", "part"),
    [
        ("SoftmaxV3", [A], [A], {}, 100024, 'got SoftmaxV3. Did you mean "SoftmaxV2"'),
        ("Add", [A], [A], {}, 100021, "Add"),
        ("Add", [A, A.astype(np.float64)], [A], {}, 100021, "Add"),
        ("Add", [A, B], [A[:1]], {}, 100022, "expected output 0 as float32[2, 3] of 24 bytes"),
        ("Add", [A, B], [A.astype(np.int32)], {}, 100022, "float32"),
        ("Add", [A, np.zeros(7, np.float32)], [A], {}, 500002, "Add"),
        ("Softmax", [A], [A], {"axes": [0, 1]}, 100023, "expected one axis"),
        ("Cast", [A], [A], {"dst_type": 99}, 100023, "dst_type"),
        ("Cast", [A], [A], {}, 100023, "dst_type"),
    ],
)
def test_what_is_refused(
    op_type: str, inputs: list[Any], outputs: list[Any], attrs: dict[str, Any], code: int, part: str
) -> None:
    found, _ = call_operator(op_type, inputs, outputs, attributes(**attrs))
    text = acl.get_recent_err_msg()
    assert found == code, text
    assert part in text


def test_an_operator_that_raises_is_dumped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASCEND_DUMP_SCENE", "aic_err_norm_dump")
    ok(acl.finalize())
    ok(acl.init())
    code, _ = call_operator("Add", [A, np.zeros(7, np.float32)], [A])
    assert code == 500002
    ok(acl.finalize())
    (found,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert found.name.startswith("Add.Add_0.") and found.parent == tmp_path / "extra-info" / "data-dump" / "0"
