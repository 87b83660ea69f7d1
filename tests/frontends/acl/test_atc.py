"""Models with gears and fixed sizes: what ATC was told of them, and what pyACL then says and does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

from msdump.frontends import acl
from msdump.frontends.acl.atc import BATCH, DIMS, IMAGE, parse_atc
from msdump.frontends.acl.calls import CallError
from tests.frontends.acl.scripts import dataset_of, everything, fetch, files, fill, ok
from tests.frontends.onnx import models
from tests.frontends.onnx.models import same_bits, true_values

CONTROL = acl.const.ACL_DYNAMIC_TENSOR_NAME


@pytest.fixture(autouse=True)
def initialized(fresh_process: None) -> None:
    ok(acl.init())
    ok(acl.rt.set_device(0))


def loaded(folder: Path, proto: onnx.ModelProto, atc: str) -> tuple[int, int]:
    """(model id, description) of a model that stands beside its options."""
    onnx.save(proto, folder / "net.onnx")
    (folder / "net.atc").write_text(atc)
    model_id, desc = ok(acl.mdl.load_from_file(str(folder / "net.onnx"))), acl.mdl.create_desc()
    ok(acl.mdl.get_desc(desc, model_id))
    return model_id, desc


def datasets(desc: int) -> tuple[int, int]:
    """Memory as scripts make it: of the sizes that the description tells."""
    inputs = [acl.mdl.get_input_size_by_index(desc, at) for at in range(acl.mdl.get_num_inputs(desc))]
    outputs = [acl.mdl.get_output_size_by_index(desc, at) for at in range(acl.mdl.get_num_outputs(desc))]
    return dataset_of(inputs), dataset_of(outputs)


def refused(code: int, expected: int, *parts: str) -> None:
    text = acl.get_recent_err_msg()
    assert code == expected, text
    assert all(part in text for part in parts), text


def cnn() -> onnx.ModelProto:
    return models.convolutions(np.random.default_rng(0))


def pictures(folder: Path) -> onnx.ModelProto:
    nodes = [
        onnx.helper.make_node("Relu", ["x"], ["a"], "relu"),
        onnx.helper.make_node("GlobalMaxPool", ["a"], ["m"], "pool"),
        onnx.helper.make_node("Sub", ["a", "m"], ["y"], "sub"),
    ]
    x, y = models.value("x", shape=(1, 2, "h", "w")), models.value("y", shape=(1, 2, "h", "w"))
    return models.model_of(nodes, [x], [y])


def two_inputs() -> onnx.ModelProto:
    nodes = [onnx.helper.make_node("MatMul", ["a", "b"], ["y"], "matmul")]
    inputs = [models.value("a", shape=(1, "m", "k")), models.value("b", shape=(1, "k", 4))]
    return models.model_of(nodes, inputs, [models.value("y", shape=(1, "m", 4))])


# -- gears ------------------------------------------------------------------------------------------


def test_batches(tmp_path: Path) -> None:
    """Dims have -1, sizes are those of the largest gear, and one input more says which gear a run is in."""
    model_id, desc = loaded(tmp_path, cnn(), '--input_shape="data:-1,3,8,8" --dynamic_batch_size="1,2,8"')
    assert ok(acl.mdl.get_dynamic_batch(desc)) == {"batchCount": 3, "batch": [1, 2, 8]}
    assert ok(acl.mdl.get_dynamic_hw(desc, -1)) == {"hwCount": 0, "hw": []}
    assert acl.mdl.get_num_inputs(desc) == 2
    assert ok(acl.mdl.get_input_dims(desc, 0)) == {"name": "data", "dimCount": 4, "dims": [-1, 3, 8, 8]}
    assert acl.mdl.get_input_size_by_index(desc, 0) == 8 * 3 * 8 * 8 * 4
    assert ok(acl.mdl.get_output_dims(desc, 0))["dims"] == [8, 10]
    assert acl.mdl.get_output_size_by_index(desc, 0) == 8 * 10 * 4
    index = ok(acl.mdl.get_input_index_by_name(desc, CONTROL))
    assert index == 1 and ok(acl.mdl.get_input_dims(desc, 1)) == {"name": CONTROL, "dimCount": 1, "dims": [1]}
    assert (acl.mdl.get_input_size_by_index(desc, 1), acl.mdl.get_input_data_type(desc, 1)) == (8, acl.const.ACL_INT64)
    inputs, outputs = datasets(desc)
    refused(acl.mdl.execute(model_id, inputs, outputs), 100017, "expected a gear of --dynamic_batch_size", "got (0,)")
    for batch in (2, 8, 1):
        images = np.random.default_rng(batch).standard_normal((batch, 3, 8, 8), np.float32)
        fill(inputs, 0, images)
        ok(acl.mdl.set_dynamic_batch_size(model_id, inputs, index, batch))
        ok(acl.mdl.execute(model_id, inputs, outputs))
        assert same_bits(fetch(outputs, 0), true_values(cnn(), {"data": images})["probability"])
        assert ok(acl.mdl.get_cur_output_dims(desc, 0))["dims"] == [batch, 10]
    refused(acl.mdl.set_dynamic_batch_size(model_id, inputs, index, 3), 145013, "1; 2; 8", "got 3")
    refused(acl.mdl.set_dynamic_batch_size(model_id, inputs, 0, 2), 100000, f"expected 1, the input {CONTROL}")
    refused(acl.mdl.set_dynamic_hw_size(model_id, inputs, index, 8, 8), 145013, "set_dynamic_batch_size")
    refused(acl.mdl.execute(model_id, dataset_of([6144]), outputs), 100017, "expected 2 input buffers")


def test_each_dataset_has_its_gear(tmp_path: Path) -> None:
    model_id, desc = loaded(tmp_path, cnn(), "--dynamic_batch_size=1,4")
    first, last = datasets(desc), datasets(desc)
    ok(acl.mdl.set_dynamic_batch_size(model_id, first[0], 1, 1))
    ok(acl.mdl.set_dynamic_batch_size(model_id, last[0], 1, 4))
    for (inputs, outputs), batch in ((first, 1), (last, 4)):
        ok(acl.mdl.execute(model_id, inputs, outputs))
        assert fetch(outputs, 0).shape == (batch, 10)


def test_images(tmp_path: Path) -> None:
    model_id, desc = loaded(tmp_path, pictures(tmp_path), 'atc --dynamic_image_size="2,9;4,3;1,2"')
    assert ok(acl.mdl.get_dynamic_hw(desc, -1)) == {"hwCount": 3, "hw": [[2, 9], [4, 3], [1, 2]]}
    assert acl.mdl.get_input_size_by_index(desc, 0) == 4 * 2 * 4 * 9, "no gear may write past the memory"
    assert acl.mdl.get_output_size_by_index(desc, 0) == 4 * 2 * 2 * 9
    inputs, outputs = datasets(desc)
    for height, width in ((4, 3), (2, 9)):
        x = np.random.default_rng(height).standard_normal((1, 2, height, width), np.float32)
        fill(inputs, 0, x)
        ok(acl.mdl.set_dynamic_hw_size(model_id, inputs, 1, height, width))
        ok(acl.mdl.execute(model_id, inputs, outputs))
        assert same_bits(fetch(outputs, 0), true_values(pictures(tmp_path), {"x": x})["y"])


def test_dims(tmp_path: Path) -> None:
    model_id, desc = loaded(tmp_path, two_inputs(), '--dynamic_dims="2,3,3;5,1,1"')
    count = ok(acl.mdl.get_input_dynamic_gear_count(desc, -1))
    assert ok(acl.mdl.get_input_dynamic_dims(desc, -1, count)) == [
        {"name": "", "dimCount": 6, "dims": [1, 2, 3, 1, 3, 4]},
        {"name": "", "dimCount": 6, "dims": [1, 5, 1, 1, 1, 4]},
    ]
    inputs, outputs = datasets(desc)
    a, b = np.ones((1, 5, 1), np.float32), np.full((1, 1, 4), 2, np.float32)
    fill(inputs, 0, a)
    fill(inputs, 1, b)
    dims = {"name": "", "dimCount": 6, "dims": [1, 5, 1, 1, 1, 4]}
    ok(acl.mdl.set_input_dynamic_dims(model_id, inputs, 2, dims))
    ok(acl.mdl.execute(model_id, inputs, outputs))
    assert fetch(outputs, 0).tolist() == [[[2] * 4] * 5]
    wrong = {**dims, "dims": [1, 5, 2, 1, 2, 4]}
    refused(acl.mdl.set_input_dynamic_dims(model_id, inputs, 2, wrong), 145013, "got 5,2,2")
    assert acl.mdl.get_input_dynamic_dims(desc, -1, 5)[1] == 100000


def test_a_gear_is_dumped_as_what_it_is(tmp_path: Path) -> None:
    ok(acl.mdl.init_dump())
    ok(acl.mdl.set_dump(everything(tmp_path)))
    model_id, desc = loaded(tmp_path, cnn(), "--dynamic_batch_size=1,4")
    inputs, outputs = datasets(desc)
    ok(acl.mdl.set_dynamic_batch_size(model_id, inputs, 1, 4))
    ok(acl.mdl.execute(model_id, inputs, outputs))
    ok(acl.mdl.finalize_dump())
    assert len(files(tmp_path)) == 8


def test_metadata_of_a_model_from_memory(tmp_path: Path) -> None:
    proto = cnn()
    proto.metadata_props.add(key="atc", value="--dynamic_batch_size=1,2")
    data = proto.SerializeToString()
    desc = acl.mdl.create_desc()
    ok(acl.mdl.get_desc(desc, ok(acl.mdl.load_from_mem(acl.util.bytes_to_ptr(data), len(data)))))
    assert ok(acl.mdl.get_dynamic_batch(desc))["batch"] == [1, 2]


def test_without_gears(tmp_path: Path) -> None:
    _, desc = loaded(tmp_path, cnn(), "")
    assert ok(acl.mdl.get_dynamic_batch(desc)) == {"batchCount": 0, "batch": []}
    assert ok(acl.mdl.get_input_dynamic_gear_count(desc, -1)) == 0
    assert acl.mdl.get_input_index_by_name(desc, CONTROL)[1] == 100000
    assert acl.mdl.get_input_size_by_index(desc, 0) == 0
    acl.get_recent_err_msg()
    refused(acl.rt.malloc(0, 0)[1], 100000, "which model net reports for data, float32[?, 3, 8, 8]", "net.atc")


# -- sizes ------------------------------------------------------------------------------------------


def test_fixed_sizes(tmp_path: Path) -> None:
    """What most scripts are written for: ATC closed the batch."""
    model_id, desc = loaded(tmp_path, cnn(), "--input_shape=data:2,3,8,8")
    assert ok(acl.mdl.get_input_dims(desc, 0))["dims"] == [2, 3, 8, 8]
    assert ok(acl.mdl.get_output_dims(desc, 0))["dims"] == [2, 10]
    assert ok(acl.mdl.get_input_dims_range(desc, 0)) == {"rangeCount": 4, "range": [[2, 2], [3, 3], [8, 8], [8, 8]]}
    inputs, outputs = datasets(desc)
    ok(acl.mdl.execute(model_id, inputs, outputs))
    assert fetch(outputs, 0).shape == (2, 10)


def test_ranges(tmp_path: Path) -> None:
    model_id, desc = loaded(tmp_path, cnn(), "--input_shape=data:1~4,3,8,8")
    assert ok(acl.mdl.get_input_dims_range(desc, 0))["range"][0] == [1, 4]
    assert acl.mdl.get_input_size_by_index(desc, 0) == 4 * 3 * 8 * 8 * 4
    inputs, outputs = dataset_of([3072]), dataset_of([160])
    for batch, code in ((3, 0), (5, 100017)):
        shape = acl.create_tensor_desc(acl.const.ACL_FLOAT, [batch, 3, 8, 8], acl.const.ACL_FORMAT_ND)
        ok(acl.mdl.set_dataset_tensor_desc(inputs, shape, 0))
        assert acl.mdl.execute(model_id, inputs, outputs) == code
    assert "float32[1~4, 3, 8, 8], got shape [5, 3, 8, 8]" in acl.get_recent_err_msg()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--dynamic_batch_size", "expected 1 to 100 gears"),
        ("--dynamic_batch_size=0,2", "expected 1 to 100 gears"),
        (f"--dynamic_batch_size=1{'0' * 5000}", "expected 1 to 100 gears"),
        (f"--input_shape=data:1{'0' * 5000},3,8,8", 'expected "name:1,3,224,224'),
        ("--dynamic_image_size=3", "expected 1 to 100 gears"),
        ("--dynamic_image_size=3,4", "two open sizes"),
        ("--dynamic_dims=1,2", "expected 1 sizes in each gear"),
        ("--dynamic_batch_size=1 --dynamic_dims=1", "no other option of gears beside dynamic_batch_size"),
        ("--input_shape=date:1,3,8,8", 'Did you mean "data"?'),
        ("--input_shape=data:1,4,8,8", "a shape for data that float32[?, 3, 8, 8] allows, got 1,4,8,8"),
        ("--input_shape=data", 'expected "name:1,3,224,224'),
        ("--input_shape=data:1,3,8,8 --dynamic_batch_size=1", "first size alone is open"),
        ("--insert_op_conf=aipp.cfg", "leave inputs and outputs as the .onnx file has them"),
        ("net.onnx", "got net.onnx"),
        ('--input_shape="data', "No closing quotation"),
    ],
)
def test_options_that_do_not_hold(text: str, message: str, tmp_path: Path) -> None:
    onnx.save(cnn(), tmp_path / "net.onnx")
    (tmp_path / "net.atc").write_text(text)
    code = acl.mdl.load_from_file(str(tmp_path / "net.onnx"))[1]
    refused(code, 100013, "net.atc: ", message)


gears = st.lists(st.tuples(st.integers(1, 2000), st.integers(1, 2000)), min_size=1, max_size=20, unique=True)


@given(gears, st.booleans())
def test_options_are_read_back(pairs: list[tuple[int, int]], is_split: bool) -> None:
    text = ";".join(f"{height},{width}" for height, width in pairs)
    join = " \\\n  " if is_split else " "
    command = join.join(("atc", "--model=a.onnx", "--framework=5", f'--{IMAGE}="{text}"', "--soc_version=Ascend310"))
    found = parse_atc(command, "here")
    assert (found.kind, found.gears) == (IMAGE, tuple(pairs))
    for gear in found.gears:
        assert any(all(a <= b for a, b in zip(gear, large, strict=True)) for large in found.largest_gears())


@given(st.text(max_size=60) | st.from_regex(rf"--({BATCH}|{IMAGE}|{DIMS}|input_shape)=[a-z0-9,;:~ -]*", fullmatch=True))
def test_any_text_is_read_or_refused(text: str) -> None:
    result: Any = None
    try:
        result = parse_atc(text, "here")
    except CallError as error:
        result = error
    if isinstance(result, CallError):
        assert result.code == 100013
        assert str(result).startswith("here: ")
    else:
        assert all(min(gear) > 0 for gear in result.gears)
