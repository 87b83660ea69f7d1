"""Converting: dtypes, forms, slices, the user's converters, names, threads, hostile input."""

from __future__ import annotations

import json
import math
import os
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump import testing
from msdump.analysis.convert.files import Converter, ConvertOptions, Result, SourceFile, convert_files, dump_sources
from msdump.analysis.convert.target_format import CustomFormats
from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.formats._proto import dump_data_pb2
from msdump.formats.bin import bin_chunks
from msdump.formats.dump_dir import DumpDir
from msdump.formats.npy import npy_array
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import INPUT, OUTPUT, TensorRecord

STAMP = 1_700_000_000_000_000
NAME = f"Add.Default_Add-op1.1.0.{STAMP}"
DTYPES = [row.name for row in dtypes.TABLE if row.numpy_type is not None and row.kind != dtypes.OTHER and row.is_dumped]


def record(array: Array, dtype: str = "float32", io: str = OUTPUT, slot: int = 0, form: str = "ND") -> TensorRecord:
    return TensorRecord("Add", "Default/Add-op1", 1, 0, STAMP, io, slot, dtype, array, form)


def dump_file(folder: Path, *records: TensorRecord, name: str = NAME) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(b"".join(bytes(chunk) for chunk in bin_chunks(records)))
    return path


def raw_file(path: Path, data: bytes, **fields: Any) -> Path:
    """A dump file with one output that the writer would not write."""
    message = dump_data_pb2.DumpData(version="2.0", op_name="Default/Add-op1")
    output = message.output.add(size=len(data), data_type=fields.get("data_type", 0), format=2)
    if "shape" in fields:
        output.shape.SetInParent()
        output.shape.dim.extend(fields["shape"])
    for value in fields.get("attrs", []):
        message.attr.add(name="x", value=value)
    header = message.SerializeToString()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)
    return path


def convert(path: Path, output: Path, **options: Any) -> Result:
    (result,) = convert_files([SourceFile(str(path), path.name)], ConvertOptions(output, **options))
    return result


def only(folder: Path, pattern: str = "*") -> Path:
    (path,) = folder.glob(pattern)
    return path


# -- dtypes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_as_npy_and_raw(tmp_path: Path, dtype: str) -> None:
    row = dtypes.dtype(dtype)
    limit = 2 if row.bits < 8 and row.kind in ("uint", "bool") else 3
    array = (np.arange(7) % limit).astype(np.float32).astype(row.numpy).reshape(7, 1)
    path = dump_file(tmp_path, record(array, dtype))
    assert convert(path, tmp_path / "npy").code == 0
    expected = npy_array(array, dtype)
    testing.assert_same_array(np.load(only(tmp_path / "npy")), expected)
    assert convert(path, tmp_path / "raw", file_type="bin").code == 0
    raw = only(tmp_path / "raw")
    shown = row.npy_name if row.bits < 8 else dtype
    assert raw.name == f"{NAME}.output.0.7.{shown}.ND.bin"
    assert raw.read_bytes() == (expected if row.bits < 8 else array).tobytes()
    # What lies there now is a dump again.
    (back,) = DumpDir.open(raw)
    assert back.load().tobytes() == raw.read_bytes()


def test_hifloat8_becomes_float(tmp_path: Path) -> None:
    codes = np.array([0x00, 0x80, 0x6F, 0xEF, 0x08, 0x88, 0x01, 0x07], np.uint8)
    path = raw_file(tmp_path / NAME, codes.tobytes(), data_type=33, shape=[8])
    assert convert(path, tmp_path / "out").code == 0
    found = np.load(only(tmp_path / "out"))
    expected = np.array([0, math.nan, math.inf, -math.inf, 1, -1, 2.0**-22, 2.0**-16], np.float32)
    np.testing.assert_array_equal(found, expected)
    convert(path, tmp_path / "raw", file_type="bin")
    assert only(tmp_path / "raw").name.endswith(".8.hifloat8.ND.bin")
    assert only(tmp_path / "raw").read_bytes() == codes.tobytes()


@pytest.mark.parametrize(
    ("number", "values"),
    [(34, [0x7C, 0xFC, 0x3C]), (35, [0x7F, 0xFF, 0x38])],
)
def test_float8_keeps_its_inf_and_nan(tmp_path: Path, number: int, values: list[int]) -> None:
    path = raw_file(tmp_path / NAME, bytes(values), data_type=number, shape=[3])
    convert(path, tmp_path / "out")
    special = [math.inf, -math.inf, 1.0] if number == 34 else [math.nan, math.nan, 1.0]
    np.testing.assert_array_equal(np.load(only(tmp_path / "out")), np.array(special, np.float32))


def test_bytes_without_a_dtype_become_int8(tmp_path: Path) -> None:
    """As in exception dumps, whose shape counts elements of an unknown dtype."""
    path = raw_file(tmp_path / NAME, bytes([1, 255, 3, 4]), shape=[1])
    convert(path, tmp_path / "out")
    testing.assert_same_array(np.load(only(tmp_path / "out")), np.array([1, -1, 3, 4], np.int8))


@pytest.mark.parametrize("options", [{}, {"format": "ND"}])
def test_an_unknown_dtype_is_an_error(tmp_path: Path, options: dict[str, str]) -> None:
    path = raw_file(tmp_path / NAME, b"abcd", data_type=18, shape=[4])
    result = convert(path, tmp_path / "out", **options)
    assert (result.code, result.written) == (21, ())
    assert [(problem.tensor, problem.code) for problem in result.problems] == [("output:0", 21)]


@pytest.mark.parametrize(
    ("data", "shape", "expected"),
    [
        (struct.pack("<f", 3), [], np.array([3], np.float32)),
        (struct.pack("<2f", 3, 4), None, np.array([3, 4], np.float32)),
        (struct.pack("<3f", 3, 4, 5), [2], np.array([3, 4], np.float32)),
        (b"", [0, 2], np.empty((0, 2), np.float32)),
    ],
)
def test_odd_shapes(tmp_path: Path, data: bytes, shape: list[int] | None, expected: Array) -> None:
    fields = {} if shape is None else {"shape": shape}
    path = raw_file(tmp_path / NAME, data, data_type=1, **fields)
    assert convert(path, tmp_path / "out").code == 0
    testing.assert_same_array(np.load(only(tmp_path / "out")), expected)


def test_a_block_that_is_too_short_fails(tmp_path: Path) -> None:
    path = raw_file(tmp_path / NAME, b"1234", data_type=1, shape=[2])
    result = convert(path, tmp_path / "out")
    assert (result.code, result.written) == (11, ())
    assert "expected 8 data bytes" in result.problems[0].message


# -- other forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [name for name in DTYPES if not name.startswith(("uint1", "complex32"))])
def test_torch_files(tmp_path: Path, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    array = (np.arange(6) % 2).astype(np.float32).astype(dtypes.dtype(dtype).numpy).reshape(2, 3)
    path = dump_file(tmp_path, record(array, dtype))
    assert convert(path, tmp_path / "out", file_type="pt").code == 0
    found = torch.load(only(tmp_path / "out", f"{NAME}.output.0.pt"), weights_only=True)
    assert tuple(found.shape) == (2, 3)
    if dtype in ("bfloat16", "float8_e5m2", "float8_e4m3fn"):
        assert str(found.dtype) == f"torch.{dtype}"
        found = found.float()
    numbers = array.astype(np.complex128) if "complex" in dtype else array.astype(np.float64)
    np.testing.assert_array_equal(found.numpy().astype(numbers.dtype), numbers)


def test_torch_files_need_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(AnalysisError, match="pip install torch"):
        ConvertOptions(tmp_path, "pt")


def read_safetensors(path: Path) -> tuple[dict[str, str], dict[str, tuple[str, list[int], bytes]]]:
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert length % 8 == 0
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__")
    data = content[8 + length :]
    spans = sorted(entry["data_offsets"] for entry in header.values())
    assert [first for first, _ in spans] == [0, *(last for _, last in spans[:-1])]
    assert spans[-1][1] == len(data)
    return metadata, {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
                      for name, entry in header.items()}  # fmt: skip


def test_safetensors(tmp_path: Path) -> None:
    half = np.arange(4, dtype=ml_dtypes.bfloat16)
    wide = np.arange(6, dtype=np.float64).reshape(2, 3)
    nibbles = np.array([1, -2, 3], ml_dtypes.int4)
    path = dump_file(
        tmp_path, record(half, "bfloat16", INPUT), record(nibbles, "int4", INPUT, 1), record(wide, "float64")
    )
    assert convert(path, tmp_path / "out", file_type="safetensors").code == 0
    made = only(tmp_path / "out")
    assert made.name == f"{NAME}.safetensors"
    metadata, tensors = read_safetensors(made)
    assert metadata == {"op_name": "Default/Add-op1", "source": NAME}
    assert tensors == {
        "input.0": ("BF16", [4], half.tobytes()),
        "input.1": ("I8", [3], nibbles.astype(np.int8).tobytes()),
        "output.0": ("F64", [2, 3], wide.tobytes()),
    }


def test_safetensors_leave_out_what_they_cannot_hold(tmp_path: Path) -> None:
    path = dump_file(tmp_path, record(np.ones(2, np.complex128), "complex128", INPUT), record(np.ones(2, np.float32)))
    result = convert(path, tmp_path / "out", file_type="safetensors")
    assert [problem.tensor for problem in result.problems] == ["input:0"]
    assert list(read_safetensors(only(tmp_path / "out"))[1]) == ["output.0"]


def test_an_npy_file_is_a_dump_with_one_output(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", array)
    convert(tmp_path / "x.npy", tmp_path / "out", file_type="bin")
    made = only(tmp_path / "out")
    assert made.name == "x.npy.output.0.6.float32.RESERVED.bin"
    assert made.read_bytes() == array.tobytes()


def shaped(head: bytes, *shapes: tuple[int, tuple[int, ...]]) -> bytes:
    more = b"".join(struct.pack(f"<2I{len(dims)}Q", tag, 8 * len(dims), *dims) for tag, dims in shapes)
    return head + struct.pack("<I", len(more)) + more


def nano_file(path: Path, ge_number: int, shape: tuple[int, ...], data: bytes) -> Path:
    """A file of the Nano form with one input."""
    inputs = struct.pack("<I", 1) + shaped(struct.pack("<3i3Q", ge_number, 2, 0, 0, 0, len(data)), (0, shape))
    outputs = struct.pack("<I", 0)
    blocks = struct.pack("<2I", 4, len(inputs)) + inputs + struct.pack("<2I", 5, len(outputs)) + outputs
    head = struct.pack("<2I", 0x5A5A5A5A, 1) + blocks
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)
    return path


@pytest.mark.parametrize(("ge_number", "dtype"), [(28, np.int8), (4, np.uint8), (14, None), (99, None)])
def test_nano_dtypes(tmp_path: Path, ge_number: int, dtype: type | None) -> None:
    """What has no array form is an error."""
    result = convert(nano_file(tmp_path / NAME, ge_number, (2, 2), b"abcd"), tmp_path / "out")
    assert result.code == (ExitCode.INVALID_DATA_TYPE if dtype is None else 0)
    if dtype is None:
        assert f"GE number {ge_number}" in result.problems[0].message
    else:
        array = np.load(only(tmp_path / "out"))
        assert (array.dtype, array.shape, array.tobytes()) == (dtype, (2, 2), b"abcd")


@pytest.mark.parametrize("is_nano", [True, False])
def test_a_resource_is_a_handle_for_every_reader(tmp_path: Path, is_nano: bool) -> None:
    handles = np.array([[7, -1, 1 << 40]], np.int64)
    data = handles.tobytes()
    if is_nano:
        path = nano_file(tmp_path / NAME, 23, handles.shape, data)
    else:
        path = raw_file(tmp_path / NAME, data, data_type=23, shape=handles.shape)
    convert(path, tmp_path / "out")
    testing.assert_same_array(np.load(only(tmp_path / "out")), handles)
    dump = DumpDir.open(path)
    (tensor,) = [tensor for file in dump.files() for tensor in dump.read(file)]
    assert (tensor.dtype, tensor.shape) == ("int64", handles.shape)
    testing.assert_same_array(tensor.load(), handles)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0, 1)])
def test_raw_files_of_empty_tensors_are_named_by_their_shape(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """msaccucmp names the elements of other tensors, which it has not reshaped."""
    convert(dump_file(tmp_path, record(np.zeros(shape, np.float32))), tmp_path / "out", file_type="bin")
    path = only(tmp_path / "out")
    assert path.name == f"{NAME}.output.0.{'_'.join(map(str, shape))}.float32.ND.bin"
    assert path.read_bytes() == b""


def test_nano_files(tmp_path: Path) -> None:
    """Hand-made after the description: head length, magic, version, two blocks, data."""
    one = np.arange(3, dtype=np.float16)
    two = np.arange(4, dtype=np.int32).reshape(2, 2)
    inputs = struct.pack("<I", 1) + shaped(struct.pack("<3i3Q", 1, 2, 0, 0, 0, one.nbytes), (0, (3,)), (1, (3,)))
    outputs = struct.pack("<I", 1) + shaped(struct.pack("<6i3Q", 3, 2, 0, 0, 3, 2, 0, 0, two.nbytes), (0, (2, 2)))
    blocks = struct.pack("<2I", 4, len(inputs)) + inputs + struct.pack("<2I", 5, len(outputs)) + outputs
    head = struct.pack("<2I", 0x5A5A5A5A, 1) + blocks
    content = struct.pack("<Q", len(head)) + head + one.tobytes() + two.tobytes()
    (tmp_path / NAME).write_bytes(content)
    assert convert(tmp_path / NAME, tmp_path / "out").code == 0
    testing.assert_same_array(np.load(tmp_path / "out" / f"{NAME}.input.0.npy"), one)
    testing.assert_same_array(np.load(tmp_path / "out" / f"{NAME}.output.0.npy"), two)
    rng = np.random.default_rng(3)
    for size in range(len(content)):
        flipped = bytearray(content)
        flipped[size] ^= int(rng.integers(1, 256))
        for variant in (content[:size], bytes(flipped)):
            (tmp_path / NAME).write_bytes(variant)
            assert convert(tmp_path / NAME, tmp_path / "again").code in (0, 11, 21)
        (tmp_path / NAME).write_bytes(content[:size])
        assert convert(tmp_path / NAME, tmp_path / "again").code == 11


# -- slices of threads ---------------------------------------------------------------------------


def sliced(*extents: tuple[int, int]) -> list[dict[str, int]]:
    return [{"lower": lower, "higher": higher} for lower, higher in extents]


@pytest.mark.parametrize("mode", [True, 1, "automatic"])
def test_threads_have_their_own_shapes(tmp_path: Path, mode: Any) -> None:
    attribute = {
        "threadMode": mode,
        "slice_instance_num": 2,
        "output_tensor_slice": [[sliced((0, 2), (0, 4))], [sliced((2, 3), (0, 4))]],
        "outputCutList": [[2, 1]],
    }
    name = f"{NAME}.4.1.1.0"
    data = np.arange(4, dtype=np.float32)
    path = raw_file(tmp_path / name, data.tobytes(), data_type=1, shape=[3, 4], attrs=[json.dumps(attribute)])
    assert convert(path, tmp_path / "out").code == 0
    testing.assert_same_array(np.load(only(tmp_path / "out")), data.reshape(1, 4))


@pytest.mark.parametrize(
    ("attribute", "name", "code"),
    [
        ({"threadMode": 0}, f"{NAME}.4.1.0.0", 0),
        ({"threadMode": 1, "output_tensor_slice": [[sliced((0, 2)), sliced((0, 2))]]}, f"{NAME}.4.1.0.0", 42),
        ({"threadMode": 1, "output_tensor_slice": [[]]}, f"{NAME}.4.1.9.0", 41),
        ({"threadMode": 1, "output_tensor_slice": "x"}, f"{NAME}.4.1.0.0", 41),
        ({"threadMode": 1, "output_tensor_slice": [[[{"lower": 0}]]]}, f"{NAME}.4.1.0.0", 41),
        ({"threadMode": 1, "output_tensor_slice": [[sliced((3, 2))]]}, f"{NAME}.4.1.0.0", 41),
        ({"threadMode": 1, "output_tensor_slice": [[sliced((0, 2))]]}, f"{NAME}.4.x.x.0", 3),
        ([], f"{NAME}.4.1.0.0", 0),
    ],
)
def test_slices_that_do_not_fit(tmp_path: Path, attribute: Any, name: str, code: int) -> None:
    data = np.zeros(2, np.float32).tobytes()
    path = raw_file(tmp_path / name, data, data_type=1, shape=[2], attrs=[json.dumps(attribute)])
    assert convert(path, tmp_path / "out").code == code


# -- the user's converters -----------------------------------------------------------------------


def custom(folder: Path, name: str, text: str) -> CustomFormats:
    (folder / "format_convert").mkdir(parents=True, exist_ok=True)
    (folder / "format_convert" / name).write_text(text)
    return CustomFormats(folder)


def test_a_custom_converter_wins(tmp_path: Path) -> None:
    code = (
        "def convert(shape_from, shape_to, array):\n"
        "    return array.reshape(shape_from).transpose(3, 2, 1, 0) + len(shape_to)\n"
    )
    converters = custom(tmp_path / "c", "convert_NCHW_to_NHWC.py", code)
    array = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    path = dump_file(tmp_path, record(array, form="NCHW"))
    assert convert(path, tmp_path / "out", format="NHWC", custom=converters).code == 0
    made = only(tmp_path / "out")
    assert made.name == f"{NAME}.output.0.4x3x2x1.npy"
    testing.assert_same_array(np.load(made), np.ascontiguousarray(array.transpose(3, 2, 1, 0) + 4))


@pytest.mark.parametrize(
    ("text", "code"),
    [("x = 1\n", 26), ("def convert(*a):\n    raise KeyError(3)\n", 26), ("def convert(*a):\n    return 3\n", 26),
     ("import no_such_module\n", 26), ("def broken(:\n", 26)],
)  # fmt: skip
def test_custom_converters_that_fail(tmp_path: Path, text: str, code: int) -> None:
    converters = custom(tmp_path / "c", "convert_ND_to_NCHW.py", text)
    path = dump_file(tmp_path, record(np.zeros(3, np.float32)))
    result = convert(path, tmp_path / "out", format="NCHW", custom=converters)
    assert result.code == code
    assert "convert_ND_to_NCHW.py" in result.problems[0].message


def test_a_converter_that_anybody_can_change_is_refused(tmp_path: Path) -> None:
    converters = custom(tmp_path / "c", "convert_ND_to_NCHW.py", "def convert(a, b, c):\n    return c\n")
    os.chmod(converters.folder / "convert_ND_to_NCHW.py", 0o666)
    path = dump_file(tmp_path, record(np.zeros(3, np.float32)))
    assert convert(path, tmp_path / "out", format="NCHW", custom=converters).code == ExitCode.DANGER_FILE


def test_a_folder_without_converters(tmp_path: Path) -> None:
    with pytest.raises(AnalysisError, match="format_convert"):
        CustomFormats(tmp_path)


def test_msnpy_writes_what_it_could_not_convert(tmp_path: Path) -> None:
    path = dump_file(tmp_path, record(np.arange(3, dtype=np.float32)))
    result = convert(path, tmp_path / "out", format="NCHW", file_type="msnpy")
    assert result.code == 22
    assert only(tmp_path / "out").name == f"Add.Add-op1.1.0.{STAMP}.output.0.ND.npy"


# -- names, trees, threads -----------------------------------------------------------------------


def test_names_from_headers_cannot_leave_the_folder(tmp_path: Path) -> None:
    hostile = TensorRecord("Add", "..\0/../x\0y", 1, 0, STAMP, OUTPUT, 0, "float32", np.zeros(1, np.float32), "ND")
    path = dump_file(tmp_path, hostile)
    result = convert(path, tmp_path / "out", file_type="msnpy")
    assert result.code == 0
    assert all(Path(written).parent == tmp_path / "out" for written in result.written)
    assert sorted(p.name for p in tmp_path.iterdir()) == [NAME, "out"]


def test_mapped_names_cannot_leave_the_folder(tmp_path: Path) -> None:
    path = dump_file(tmp_path, record(np.zeros(1, np.float32)), name="123")
    (result,) = convert_files([SourceFile(str(path), "../../evil")], ConvertOptions(tmp_path / "out"))
    assert result.code == 0
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"123.output.0.npy", "mapping.csv"}


def test_a_tree_keeps_its_folders_and_long_names(tmp_path: Path) -> None:
    long_name = f"Add.{'n' * 300}.1.0.{STAMP}"
    for iteration in (0, 1):
        folder = tmp_path / f"dump/20240102030405/0/Net/1/{iteration}"
        dump_file(folder, record(np.full(2, iteration, np.float32)))
    dump_file(folder, record(np.full(2, 9, np.float32)), name="77")
    (folder / "mapping.csv").write_text(f"77,{long_name}\n")
    (folder / "README").write_text("foreign")
    options = ConvertOptions(tmp_path / "out")
    results = list(convert_files(dump_sources(tmp_path / "dump", options), options))
    assert [result.code for result in results] == [0, 0, 0]
    before = [(t.op_name, t.iteration, t.load().tobytes()) for t in DumpDir.open(tmp_path / "dump")]
    after = [(t.op_name, t.iteration, t.load().tobytes()) for t in DumpDir.open(tmp_path / "out")]
    assert before == after
    assert "n" * 300 in {name for name, _, _ in after}


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 4), st.integers(0, 12))
def test_threads_change_nothing(threads: int, count: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for number in range(count):
            dump_file(root / "d", record(np.full(5, number, np.float32)), name=f"Add.a.{number}.0.{STAMP + number}")
        (root / "d").mkdir(exist_ok=True)
        (root / "d" / f"Add.bad.0.0.{STAMP + 99}").write_bytes(b"no")
        options = ConvertOptions(root / "out")
        results = list(convert_files(dump_sources(root / "d", options), options, threads))
        assert [result.code for result in results] == [0] * count + [11]
        for number, result in enumerate(results[:-1]):
            assert np.load(result.written[0]).tolist() == [number] * 5


def test_stopping_early(tmp_path: Path) -> None:
    for number in range(50):
        dump_file(tmp_path / "d", record(np.zeros(1, np.float32)), name=f"Add.a.{number}.0.{STAMP + number}")
    options = ConvertOptions(tmp_path / "out")
    results = convert_files(dump_sources(tmp_path / "d", options), options, 1)
    assert next(results).code == 0
    results.close()
    assert 1 <= len(list((tmp_path / "out").iterdir())) <= 50


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    path = dump_file(tmp_path, record(np.zeros(1, np.float32)))
    (tmp_path / "out").write_text("a file")
    assert convert(path, tmp_path / "out").code == ExitCode.WRITE_FILE


def test_a_file_that_vanishes(tmp_path: Path) -> None:
    with Converter(ConvertOptions(tmp_path)) as converter:
        assert converter.convert(SourceFile(str(tmp_path / "gone"), "gone")).code == ExitCode.OPEN_FILE


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    for options in ({"shape": (1, 2)}, {"only": (OUTPUT, 0)}, {"file_type": "csv"}, {"format": "X"}):
        with pytest.raises(AnalysisError) as caught:
            ConvertOptions(tmp_path, **options)
        assert caught.value.code == ExitCode.INVALID_PARAM


def test_any_cut_and_any_flip_is_converted_or_refused(tmp_path: Path) -> None:
    content = dump_file(
        tmp_path, record(np.arange(6, dtype=np.float32).reshape(1, 2, 3, 1), form="NC1HWC0")
    ).read_bytes()
    rng = np.random.default_rng(1)
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= int(rng.integers(1, 256))
        (tmp_path / NAME).write_bytes(flipped)
        for format_name in (None, "NCHW"):
            assert convert(tmp_path / NAME, tmp_path / "out", format=format_name).code in (0, 3, 6, 11, 12, 21, 22, 23)
        (tmp_path / NAME).write_bytes(content[:place])
        assert convert(tmp_path / NAME, tmp_path / "out").code == 11
