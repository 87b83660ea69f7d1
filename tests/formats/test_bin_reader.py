"""Dump files that others made, against what the vendor's converter makes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msdump._proto.dump_data_pb2 import DumpData
from msdump.arrays import Array
from msdump.errors import FormatError, TruncatedFileError
from msdump.formats.bin_reader import BinTensor, read_bin
from msdump.formats.mapping_csv import read_mapping

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
