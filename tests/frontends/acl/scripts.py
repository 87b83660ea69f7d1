"""What a script does with the calls, in short."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from msdump.frontends import acl
from msdump.frontends.acl.tensor_desc import dtype_number
from msdump.tensors import dtypes
from tests.frontends.acl.calls import ok
from tests.frontends.onnx import models


def config(folder: Path, name: str = "acl.json", **keys: Any) -> str:
    """An acl.json beside its dump folder."""
    (folder / "out").mkdir(exist_ok=True)
    dump = {"dump_path": str(folder / "out"), **keys}
    (folder / name).write_text(json.dumps({"dump": dump}))
    return str(folder / name)


def everything(folder: Path, **keys: Any) -> str:
    return config(folder, dump_list=[{}], **keys)


def small_model(folder: Path, name: str = "net") -> str:
    """y = relu(x + 1) on float32[2, 3], as a file."""
    nodes = [
        onnx.helper.make_node("Add", ["x", "one"], ["sum"], "add"),
        onnx.helper.make_node("Relu", ["sum"], ["y"], "relu"),
    ]
    x, y = models.value("x", shape=(2, 3)), models.value("y", shape=(2, 3))
    path = folder / f"{name}.onnx"
    onnx.save(models.model_of(nodes, [x], [y], {"one": np.float32(1)}, name="inside"), path)
    return str(path)


def dataset_of(sizes: Sequence[int]) -> int:
    """A dataset with memory of its own."""
    dataset = acl.mdl.create_dataset()
    for size in sizes:
        buffer = acl.create_data_buffer(ok(acl.rt.malloc(size, 0)), size)
        ok(acl.mdl.add_dataset_buffer(dataset, buffer))
    return dataset


def fill(dataset: int, index: int, array: Any) -> None:
    """Copy an array to where a buffer is."""
    buffer = acl.mdl.get_dataset_buffer(dataset, index)
    address, size = acl.get_data_buffer_addr(buffer), acl.get_data_buffer_size_v2(buffer)
    data = np.ascontiguousarray(array)
    ok(acl.rt.memcpy(address, size, acl.util.numpy_to_ptr(data), data.nbytes, acl.const.ACL_MEMCPY_HOST_TO_DEVICE))


def fetch(dataset: int, index: int) -> Any:
    """The array that a run left in an output."""
    buffer, desc = acl.mdl.get_dataset_buffer(dataset, index), acl.mdl.get_dataset_tensor_desc(dataset, index)
    shape = [ok(acl.get_tensor_desc_dim_v2(desc, at)) for at in range(acl.get_tensor_desc_num_dims(desc))]
    data = acl.util.ptr_to_bytes(acl.get_data_buffer_addr(buffer), acl.get_tensor_desc_size(desc))
    return np.frombuffer(data, dtypes.BY_GE_NUMBER[acl.get_tensor_desc_type(desc)].numpy).reshape(shape)


def run_small(model_id: int, value: float = 1.0) -> Any:
    """Run `small_model` once; gives y."""
    inputs, outputs = dataset_of([24]), dataset_of([24])
    fill(inputs, 0, np.full((2, 3), value, np.float32))
    ok(acl.mdl.execute(model_id, inputs, outputs))
    return fetch(outputs, 0)


def desc_for(array: Any) -> int:
    return acl.create_tensor_desc(dtype_number(array.dtype.name), array.shape, acl.const.ACL_FORMAT_ND)


def call_operator(op_type: str, inputs: Sequence[Any], outputs: Sequence[Any], attr: int = 0) -> tuple[int, list[Any]]:
    """(code, outputs) of one call; `outputs` are arrays of the dtypes and shapes that are expected."""
    device = [ok(acl.rt.malloc(max(array.nbytes, 1), 0)) for array in (*inputs, *outputs)]
    for address, array in zip(device, inputs, strict=False):
        if array.nbytes:
            ok(acl.rt.memcpy(address, array.nbytes, acl.util.numpy_contiguous_to_ptr(array), array.nbytes, 1))
    buffers = [
        acl.create_data_buffer(address, array.nbytes)
        for address, array in zip(device, (*inputs, *outputs), strict=True)
    ]
    descs = [desc_for(array) for array in (*inputs, *outputs)]
    count = len(inputs)
    code = acl.op.execute_v2(op_type, descs[:count], buffers[:count], descs[count:], buffers[count:], attr, 0)
    found = [
        np.frombuffer(acl.util.ptr_to_bytes(address, array.nbytes), array.dtype).reshape(array.shape)
        for address, array in zip(device[count:], outputs, strict=True)
    ]
    return code, found


def files(folder: Path) -> list[str]:
    """Names of the dumped files, by their beginnings."""
    return sorted(".".join(path.name.split(".")[:2]) for path in (folder / "out").rglob("*") if path.is_file())
