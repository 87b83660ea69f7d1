"""Dump files of operators: bytes, round trips of every dtype and format, damaged files."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import DtypeError, FormatError, LayoutError, TruncatedFileError
from msdump.formats._proto import dump_data_pb2
from msdump.formats._proto.dump_data_pb2 import DumpData
from msdump.formats.bin import BinFile, BinTensor, BinWriter, bin_chunks, data_offsets, read_bin
from msdump.formats.paths.acl import bin_file_name, parse_bin_file_name
from msdump.formats.sidecars import read_mapping
from msdump.formats.writer import Writer
from msdump.statistics.stats import raw_bytes
from msdump.tensors import device_layouts, dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.packing import pack
from msdump.tensors.records import INPUT, OUTPUT, TensorRecord
from msdump.testing import tensors
from tests.contracts.writer_contract import FIRST_US, Directory, WriterContract, record

quick = settings(max_examples=50, deadline=None)
ARRAY_DTYPES = [row.name for row in dtypes.TABLE if row.numpy_type is not None and row.is_dumped]
FORMATS_BY_NDIM = {4: ("NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ"), 5: ("NDC1HWC0", "FRACTAL_Z_3D", "FRACTAL_NZ")}


class TestBinWriter(WriterContract):
    def open_writer(self, directory: Directory) -> Writer:
        return BinWriter(directory)

    def count_on_disk(self, root: Path) -> int:
        files = [path for path in root.rglob("*") if path.is_file() and path.name != "mapping.csv"]
        return sum(len(read_bin(path).tensors) for path in files)


def files_below(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def write_one(folder: Path, records: list[TensorRecord], **options: bool) -> BinFile:
    writer = BinWriter(lambda _: folder, **options)
    writer.write(records)
    writer.close()
    (path,) = files_below(folder)
    return read_bin(path)


def test_golden_bytes(tmp_path: Path) -> None:
    """A header spelled out by hand: lengths, tags, values."""
    made = [
        record(op_type="Add", op_name="Default/Add-op1", task_id=2, stream_id=3, timestamp_us=1700000000000000,
               io=io, slot=slot, dtype=dtype, data=data)
        for io, slot, dtype, data in [
            (INPUT, 0, "float32", np.array([[1.0, -2.0]], np.float32)),
            (INPUT, 1, "int16", np.array(7, np.int16)),
            (OUTPUT, 0, "bfloat16", np.ones((1, 2, 1, 1), dtypes.dtype("bfloat16").numpy)),
        ]
    ]  # fmt: skip
    output = bytes.fromhex("081b 1a06 0a0401020101 3004 3a06 0a0401020101")
    first = bytes.fromhex("0801 1002 1a04 0a020102 2808 3204 0a020102")
    second = bytes.fromhex("0805 1002 1a00 2802 3200")
    stamp = bytes.fromhex("10 80 80 f9 c0 c1 c4 82 03")
    header = b"\x0a\x032.0" + stamp
    header += b"\x1a" + bytes([len(output)]) + output
    header += b"\x22" + bytes([len(first)]) + first + b"\x22" + bytes([len(second)]) + second
    header += b"\x32\x0fDefault/Add-op1"
    blocks = bytes.fromhex("0000803f 000000c0 0700 803f 803f")
    writer = BinWriter(lambda _: tmp_path)
    writer.write(made)
    writer.close()
    path = tmp_path / "Add.Default_Add-op1.2.3.1700000000000000"
    assert path.read_bytes() == len(header).to_bytes(8, "little") + header + blocks


@quick
@given(st.data())
def test_what_is_written_is_read(data: st.DataObject) -> None:
    made = [
        record(index, op_name="Default/X-op1", timestamp_us=5, io=io, slot=slot, dtype=dtype,
               data=data.draw(tensors(dtypes=["uint8" if dtype == "hifloat8" else dtype])))
        for index, (io, slot, dtype) in enumerate(
            (io, slot, data.draw(st.sampled_from(ARRAY_DTYPES)))
            for io in (INPUT, OUTPUT) for slot in sorted(data.draw(st.sets(st.integers(0, 4), max_size=3)))
        )
    ]  # fmt: skip
    if not made:
        return
    with tempfile.TemporaryDirectory() as folder:
        found = write_one(Path(folder), made)
        assert (found.container, found.version, found.dump_time_us, found.op_name) == ("2.0", "2.0", 5, "Default/X-op1")
        assert [(t.io, t.slot) for t in found.tensors] == [(item.io, item.slot) for item in made]
        for tensor, item in zip(found.tensors, made, strict=True):
            host = device_layouts.host_format(item.shape)
            assert (tensor.shape, tensor.original_shape, tensor.format) == (item.shape, item.shape, host)
            assert dtypes.BY_ACL_NUMBER[tensor.dtype_number].name == item.dtype
            assert_same_bits(tensor.payload, item)
            if item.dtype != "hifloat8":
                assert raw_bytes(tensor.array()) == raw_bytes(item.data)


def assert_same_bits(payload: Array, item: TensorRecord) -> None:
    packed = raw_bytes(item.data) if dtypes.dtype(item.dtype).bits >= 8 else pack(item.data, item.dtype).data
    assert payload.tobytes() == bytes(packed)


@st.composite
def device_records(draw: st.DrawFn) -> TensorRecord:
    ndim = draw(st.sampled_from([0, 1, 2, 3, 4, 5]))
    shape = draw(st.tuples(*[st.integers(0 if ndim < 4 else 1, 20)] * ndim))
    dtype = draw(st.sampled_from(["float32", "float16", "bfloat16", "int8", "int4", "uint1", "bool", "int64"]))
    array = draw(tensors(dtypes=[dtype], shapes=st.just(shape)))
    device_format = draw(st.sampled_from(FORMATS_BY_NDIM.get(ndim, ("FRACTAL_NZ",))))
    groups = 0
    if device_format == "FRACTAL_Z":
        groups = draw(st.sampled_from([0, *(count for count in (2, 3, 4) if shape[0] % count == 0)]))
    return record(dtype=dtype, data=array, format=device_format, sub_format=groups)


@quick
@given(device_records())
def test_device_formats_come_back_as_the_host_had_them(item: TensorRecord) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (tensor,) = write_one(folder / "device", [item]).tensors
        c0 = device_layouts.cube_size(item.dtype)
        assert tensor.shape == device_layouts.device_shape(item.shape, item.format, c0, max(1, item.sub_format))
        assert (tensor.format, tensor.original_shape, tensor.sub_format) == (item.format, item.shape, item.sub_format)
        host = tensor.host_array()
        assert (host.shape, host.dtype) == (item.shape, item.data.dtype.newbyteorder("="))
        assert raw_bytes(host) == raw_bytes(item.data)
        (plain,) = write_one(folder / "host", [item], is_host_format=True).tensors
        assert (plain.format, plain.shape) == (device_layouts.host_format(item.shape), item.shape)
        assert raw_bytes(plain.array()) == raw_bytes(item.data)


def test_nan_payloads_survive(tmp_path: Path) -> None:
    bits = np.array([0x7FC00001, 0xFFC12345, 0x7F800001, 0x80000000], np.uint32)
    (tensor,) = write_one(tmp_path, [record(data=bits.view(np.float32))]).tensors
    assert tensor.array().view(np.uint32).tolist() == bits.tolist()


def test_records_of_an_operator_share_a_file(tmp_path: Path) -> None:
    writer = BinWriter(lambda _: tmp_path)
    first, second = record(0, io=INPUT), record(0, slot=1)
    writer.write([first, second, replace(second, timestamp_us=9), record(1)])
    writer.close()
    tensors_by_name = {path.name: len(read_bin(path).tensors) for path in files_below(tmp_path)}
    assert tensors_by_name == {bin_file_name(first): 2, bin_file_name(replace(second, timestamp_us=9)): 1,
                               bin_file_name(record(1)): 1}  # fmt: skip
    assert writer.counts.files == 3


@quick
@given(st.text(min_size=1), st.integers(0, 2**32 - 1))
def test_an_output_knows_what_it_was_before_the_graph_was_compiled(name: str, index: int) -> None:
    known = record(data=np.ones((2, 3), np.float16), dtype="float16", original=(name, index))
    # Of an input there is no field for it.
    records = [record(io=INPUT, original=(name, index)), known, record(slot=1)]
    with tempfile.TemporaryDirectory() as folder:
        found = write_one(Path(folder), records)
        assert [tensor.original for tensor in found.tensors] == [None, (name, index), None]
        assert [tensor.offset for tensor in found.tensors] == data_offsets(records)
        np.testing.assert_array_equal(found.tensors[1].array(), known.data)
    message = dump_data_pb2.DumpData.FromString(bytes(bin_chunks(records)[1]))
    original = message.output[0].original_op
    assert (original.data_type, original.format) == (message.output[0].data_type, message.output[0].format)


def test_a_slot_left_out_keeps_the_others_in_place(tmp_path: Path) -> None:
    found = write_one(tmp_path, [record(slot=2), record(io=INPUT, slot=1)])
    assert [(tensor.io, tensor.slot) for tensor in found.tensors] == [(INPUT, 1), (OUTPUT, 2)]


def test_long_names_become_digits(tmp_path: Path) -> None:
    names = ["Default/" + "x" * 300, "Default/" + "x" * 301]
    writer = BinWriter(lambda _: tmp_path)
    for index, name in enumerate(names):
        writer.write([record(index, op_name=name)])
    writer.close()
    mapping = read_mapping(tmp_path / "mapping.csv")
    assert {path.name for path in files_below(tmp_path)} == {"mapping.csv", *mapping}
    assert all(short.isdecimal() for short in mapping)
    assert sorted(mapping.values()) == [bin_file_name(record(index, op_name=name)) for index, name in enumerate(names)]
    assert all(parse_bin_file_name(original) is not None for original in mapping.values())
    assert sorted(read_bin(tmp_path / short).op_name for short in mapping) == names


def test_what_has_no_form_is_refused(tmp_path: Path) -> None:
    writer = BinWriter(lambda _: tmp_path)
    for wrong, error in [
        (record(dtype="float16"), DtypeError),
        (record(format="NC1HWC0"), LayoutError),
        (record(format="NCXHW"), LayoutError),
    ]:
        with pytest.raises(error):
            writer.write([wrong])
    assert list(tmp_path.iterdir()) == []


SMALL = [
    record(io=INPUT, dtype="int4", data=np.arange(-4, 3).astype(dtypes.dtype("int4").numpy)),
    record(data=np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5), format="NC1HWC0"),
]


def look_at_all(found: BinFile) -> None:
    """Everything that a reader may ask of a file that was accepted."""
    for tensor in found.tensors:
        for ask in (tensor.array, tensor.host_array):
            try:
                ask()
            except FormatError:
                continue


def test_every_prefix_is_refused(tmp_path: Path) -> None:
    data = b"".join(bin_chunks(SMALL))
    path = tmp_path / "file"
    for size in [*range(200), *range(200, len(data), 97)]:
        path.write_bytes(data[:size])
        with pytest.raises(FormatError, match=rf"{path}.* at offset \d+"):
            read_bin(path)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**30), st.integers(0, 7), st.booleans())
def test_a_flipped_bit_gives_a_file_or_a_format_error(place: int, bit: int, is_in_header: bool) -> None:
    data = bytearray(b"".join(bin_chunks(SMALL)))
    place %= 120 if is_in_header else len(data)
    data[place] ^= 1 << bit
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        found = None
        with contextlib.suppress(FormatError):
            found = read_bin(file.name)
        if found is None:
            with pytest.raises(FormatError, match=file.name):
                read_bin(file.name)
        else:
            look_at_all(found)


@quick
@given(st.binary(max_size=200))
def test_any_bytes_give_a_file_or_a_format_error(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        for container in (None, "1.0", "2.0"):
            try:
                found = read_bin(file.name, container)
            except FormatError:
                continue
            look_at_all(found)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int4"])
def test_container_1_holds_the_same(tmp_path: Path, dtype: str) -> None:
    """The old container, made from the new one: data inside the message, no length in front."""
    from msdump.formats._proto import dump_data_pb2

    values = np.arange(6).reshape(2, 3).astype(dtypes.dtype(dtype).numpy)
    made = [
        record(io=io, slot=slot, dtype=dtype, data=values) for io, slot in itertools.product((INPUT, OUTPUT), (0, 1))
    ]
    length, header, *blocks = bin_chunks(made)
    message = dump_data_pb2.DumpData()
    message.ParseFromString(bytes(header))
    for entry, payload in zip(message.input, blocks[:2], strict=True):
        entry.data = bytes(payload)
    for block, payload in zip(message.output, blocks[2:], strict=True):
        block.data = bytes(payload)
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(message.SerializeToString())
    new.write_bytes(b"".join([bytes(length), bytes(header), *map(bytes, blocks)]))
    one, two = read_bin(old), read_bin(new)
    assert (one.container, two.container) == ("1.0", "2.0")
    for left, right in zip(one.tensors, two.tensors, strict=True):
        assert (left.io, left.slot, left.shape) == (right.io, right.slot, right.shape)
        assert raw_bytes(left.array()) == raw_bytes(right.array()) == raw_bytes(values)


@quick
@given(st.lists(device_records(), max_size=4), st.booleans())
def test_offsets_are_where_the_data_is(made: list[TensorRecord], is_host_format: bool) -> None:
    made = [replace(item, io=(INPUT, OUTPUT)[index % 2], slot=index // 2) for index, item in enumerate(reversed(made))]
    if made:
        data = b"".join(bin_chunks(made, is_host_format))
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            offset_by_place = {(tensor.io, tensor.slot): tensor.offset for tensor in read_bin(file.name).tensors}
        assert data_offsets(made, is_host_format) == [offset_by_place[item.io, item.slot] for item in made]
        later = [replace(item, timestamp_us=FIRST_US + 10**9) for item in made]
        assert data_offsets(later, is_host_format) == data_offsets(made, is_host_format)


GOLDEN = Path(__file__).parent.parent / "golden" / "msaccucmp"
SAMPLES, OUT = GOLDEN / "samples", GOLDEN / "out"


def tensor(path: Path, io: str, slot: int) -> BinTensor:
    (found,) = [item for item in read_bin(path).tensors if (item.io, item.slot) == (io, slot)]
    return found


def sample(folder: str) -> Path:
    (path,) = (SAMPLES / folder).iterdir()
    return path


def assert_equal(actual: Array, expected: Array) -> None:
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    assert actual.tobytes() == expected.tobytes()


CONVERTED = [
    (folder, npy)
    for folder, of in [
        ("main", "main"), ("v1", "v1"), ("mapdir", "mapdir"), ("longout", "longout"), ("ovf_old", "ovf_old"),
        ("zoo_bool", "zoo_bool"), ("zoo_float", "zoo_float"), ("zoo_float16", "zoo_float16"),
    ]
    for npy in sorted((OUT / of).glob("*.npy"))
]  # fmt: skip


@pytest.mark.parametrize(("folder", "npy"), CONVERTED, ids=lambda value: getattr(value, "name", value)[-40:])
def test_tensors_are_those_of_the_converter(folder: str, npy: Path) -> None:
    name, io, slot = npy.name.removesuffix(".npy").rsplit(".", 2)
    # The converter shortens names that are too long.
    path = sample("longout") if folder == "longout" else SAMPLES / folder / name
    assert_equal(tensor(path, io, int(slot)).array(), np.load(npy))


def test_every_output_of_the_converter_is_compared() -> None:
    assert {npy.parent.name for _, npy in CONVERTED} | {"mainbin", "fNCHW"} == {path.name for path in OUT.iterdir()}
    assert len(CONVERTED) == sum(1 for path in OUT.rglob("*.npy") if path.parent.name != "fNCHW")


@pytest.mark.parametrize("npy", sorted((OUT / "fNCHW").iterdir()), ids=lambda path: path.name[-30:])
def test_device_formats_are_undone_as_the_converter_does(npy: Path) -> None:
    name, io, slot, _shape = npy.name.removesuffix(".npy").rsplit(".", 3)
    assert_equal(tensor(SAMPLES / "main" / name, io, int(slot)).host_array(), np.load(npy))


@pytest.mark.parametrize("block", sorted((OUT / "mainbin").iterdir()), ids=lambda path: path.name[-40:])
def test_raw_blocks_are_those_of_the_converter(block: Path) -> None:
    start = block.name.index(".input." if ".input." in block.name else "." + block.name.split(".")[5] + ".")
    io, slot = block.name[start + 1 :].split(".")[:2]
    assert tensor(sample("main"), io, int(slot)).payload.tobytes() == block.read_bytes()


def test_bfloat16_is_read_although_the_converter_cannot() -> None:
    found = tensor(sample("zoo_bf16"), "output", 0).array()
    assert found.astype(np.float32).tobytes() == (found.view(np.uint16).astype(np.uint32) << 16).tobytes()


def test_containers_are_told_apart() -> None:
    assert read_bin(sample("v1")).container == "1.0"
    assert read_bin(sample("main")).container == "2.0"


def test_hashed_names_have_their_line() -> None:
    mapping = read_mapping(SAMPLES / "mapdir" / "mapping.csv")
    (name,) = mapping
    assert read_bin(SAMPLES / "mapdir" / name).op_name == "net/long"
    assert mapping[name].startswith("LongType.nnn")


def test_damaged_files_say_where() -> None:
    path = sample("bad_hdrlen")
    with pytest.raises(
        FormatError, match=rf"{path} at offset 0: expected a header length of 1 to 44, got 1099511627776"
    ):
        read_bin(path)
    path = sample("bad_trunc")
    with pytest.raises(TruncatedFileError, match=rf"{path} at offset 36: expected 16 bytes of output 0, .* 13 \("):
        read_bin(path)


@pytest.mark.parametrize("folder", ["main", "zoo_float", "ovf_old"])
@pytest.mark.parametrize("more", [1, 64])
def test_bytes_behind_the_end_are_refused(folder: str, more: int, tmp_path: Path) -> None:
    for source in sorted((SAMPLES / folder).iterdir()):
        path = tmp_path / source.name
        path.write_bytes(source.read_bytes() + bytes(more))
        with pytest.raises(FormatError, match=f"expected the end of the file, got {more} bytes more"):
            read_bin(path)


def test_the_length_of_the_head_is_all_of_its_eight_bytes(tmp_path: Path) -> None:
    """A head may be all that there is; what is longer than the file, or empty, is none."""
    head = DumpData(version="2.0", op_name="net/op").SerializeToString()
    path = tmp_path / "Add.op.0.0.1700000000000000"

    def write(length: int) -> Path:
        path.write_bytes(length.to_bytes(8, "little") + head)
        return path

    whole = read_bin(write(len(head)))
    assert (whole.op_name, whole.tensors) == ("net/op", ())
    for wrong in (len(head) + 1, len(head) + (1 << 56), 0):
        with pytest.raises(FormatError, match=f"expected a header length of 1 to {len(head)}, got {wrong}"):
            read_bin(write(wrong))
    path.write_bytes(bytes(8))
    with pytest.raises(FormatError, match="expected a header length of 1 to 0, got 0"):
        read_bin(path)
