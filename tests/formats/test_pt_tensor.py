"""Files of torch.save, read without PyTorch: the same bytes as PyTorch reads, and nothing that a file says is run."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.errors import FormatError
from msdump.formats.dump_tensor import DumpedFile
from msdump.formats.paths.parse import parse_folder, parse_msprobe_name
from msdump.formats.pt_tensor import read_pt_tensor

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "msprobe" / "tensor" / "step0" / "proc1" / "dump_tensor_data"
REAL = FOLDER / "Functional.linear.0.forward.input.1.pt"
DTYPES = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128"


def loaded(path: Path) -> Any:
    name = parse_msprobe_name(path.name)
    assert name is not None
    (tensor,) = DumpedFile(str(path), parse_folder(path.parts[:-1]), name, path.name).tensors()
    return tensor.load()


@given(st.sampled_from(DTYPES.split(" ")), st.lists(st.integers(0, 4), max_size=4), st.integers(0, 3), st.booleans())
def test_the_bytes_that_torch_saved(
    tmp_path_factory: pytest.TempPathFactory, dtype: str, shape: list[int], start: int, is_parameter: bool
) -> None:
    torch = pytest.importorskip("torch")
    count = int(np.prod(shape)) + start
    whole = torch.arange(count).to(getattr(torch, dtype))
    tensor = whole[start:].reshape(shape)
    if is_parameter and tensor.is_floating_point():
        tensor = torch.nn.Parameter(tensor)
    path = tmp_path_factory.mktemp("pt") / "Torch.relu.0.forward.output.0.pt"
    torch.save(tensor, path)
    place = read_pt_tensor(path)
    assert (place.dtype, place.shape) == (dtype, tuple(shape))
    expected = tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    assert path.read_bytes()[place.offset : place.offset + place.size_bytes] == expected
    assert loaded(path).tobytes() == expected


def test_a_view_with_strides_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save(torch.zeros(3, 4).t(), tmp_path / "x.pt")
    with pytest.raises(FormatError, match="strides"):
        read_pt_tensor(tmp_path / "x.pt")


@pytest.mark.parametrize("value", [{"a": 1}, [1], "text", None, 5])
def test_what_is_no_tensor_is_refused(tmp_path: Path, value: object) -> None:
    torch = pytest.importorskip("torch")
    torch.save(value, tmp_path / "x.pt")
    with pytest.raises(FormatError, match="one tensor"):
        read_pt_tensor(tmp_path / "x.pt")


def rewritten(path: Path, changes: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    """A copy of the real file with other members, which are compressed; all of them where none is another."""
    with zipfile.ZipFile(REAL) as source, zipfile.ZipFile(path, "w", compression) as target:
        for name in source.namelist():
            last = name.split("/", 1)[1]
            is_compressed = last in changes or not changes
            method = compression if is_compressed else zipfile.ZIP_STORED
            target.writestr(name, changes.get(last, source.read(name)), method)
    return path


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, ("ran",)


@pytest.mark.parametrize("payload", [pickle.dumps(Evil()), pickle.dumps(np.zeros(3)), pickle.dumps(print)])
def test_no_call_of_a_file_is_run(tmp_path: Path, payload: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = rewritten(tmp_path / "x.pt", {"data.pkl": payload})
    with pytest.raises(FormatError, match=r"x\.pt"):
        read_pt_tensor(path)
    assert os.listdir(tmp_path) == ["x.pt"]


@given(
    st.binary(max_size=60)
    | st.integers(0, 400).flatmap(lambda n: st.binary(min_size=1, max_size=3).map(lambda b: (n, b)))
)
def test_a_damaged_pickle_is_refused_or_read(tmp_path_factory: pytest.TempPathFactory, damage: Any) -> None:
    with zipfile.ZipFile(REAL) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith("data.pkl")]
        content = archive.read(name)
    if isinstance(damage, tuple):
        place, put = damage
        damage = content[:place] + put + content[place + len(put) :]
    path = rewritten(tmp_path_factory.mktemp("pt") / "x.pt", {"data.pkl": damage})
    try:
        tensor = read_pt_tensor(path)
    except FormatError as error:
        text = str(error)
    else:
        text = str(path)
        assert 0 <= tensor.offset <= tensor.offset + tensor.size_bytes <= path.stat().st_size
    assert str(path) in text


def test_a_name_that_python_warns_of_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(REAL) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith("data.pkl")]
        content = archive.read(name)
    damaged = content.replace(b"torch._utils", b"\\orch._utils", 1)
    assert damaged != content
    with pytest.raises(FormatError, match=r"x\.pt"):
        read_pt_tensor(rewritten(tmp_path / "x.pt", {"data.pkl": damaged}))


def test_a_file_that_was_cut_anywhere_is_refused(tmp_path: Path) -> None:
    content = REAL.read_bytes()
    for size in range(0, len(content), 7):
        (tmp_path / "x.pt").write_bytes(content[:size])
        with pytest.raises(FormatError, match=r"x\.pt"):
            read_pt_tensor(tmp_path / "x.pt")


@pytest.mark.parametrize(
    ("changes", "compression", "text"),
    [
        ({}, zipfile.ZIP_DEFLATED, "compressed"),
        ({"byteorder": b"\0" * (64 << 20)}, zipfile.ZIP_DEFLATED, "more than a tensor"),
        ({"byteorder": b"big"}, zipfile.ZIP_STORED, "order"),
        ({"data/0": b"\0" * 5}, zipfile.ZIP_STORED, "data bytes"),
        ({"data.pkl": b"\0" * (2 << 20)}, zipfile.ZIP_DEFLATED, "more than a tensor"),
    ],
)
def test_other_archives_are_refused(tmp_path: Path, changes: dict[str, bytes], compression: int, text: str) -> None:
    path = rewritten(tmp_path / "x.pt", changes, compression)
    with pytest.raises(FormatError, match=text):
        read_pt_tensor(path)


def storage(kind: bytes) -> bytes:
    return b"(X\x07\0\0\0storage" + kind + b"X\1\0\0\0" + b"0" + b"X\3\0\0\0cpuK\x20tQ"


def tensor_pickle(kind: bytes, rest: bytes = b"") -> bytes:
    """A tensor of 8 x 4 elements whose storage is of that kind."""
    view = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage(kind) + b"K\0K\x08K\4\x86K\4K\1\x86\x89"
    return b"\x80\2" + view + b"ccollections\nOrderedDict\n)R" + rest + b"tR."


FLOAT = b"ctorch\nFloatStorage\n"


def test_the_pickles_below_differ_from_a_sound_one_in_one_thing(tmp_path: Path) -> None:
    assert read_pt_tensor(rewritten(tmp_path / "x.pt", {"data.pkl": tensor_pickle(FLOAT)})).shape == (8, 4)


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b"\x80\2Nr\xff\xff\xff\x0f.", "268435455 entries"),
        (b"\x80\2N" + b"r\xff\xff\xff\xff.", "4294967295 entries"),
        (b"\x80\4B\xff\xff\xff\x7f.", r"torch\.save"),
        (b"\x80\4\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.", r"torch\.save"),
        (b"\x80\2" + b")" + b"\x85" * 60_000 + b".", "instructions"),
        (tensor_pickle(b"X\7\0\0\0float32"), "a storage of unknown type"),
        (tensor_pickle(b"X\6\0\0\0string"), "a storage of unknown type"),
        (tensor_pickle(FLOAT, b"}X\4\0\0\0conj\x88s"), r"resolve_conj\(\)"),
        (tensor_pickle(FLOAT)[:-1] + b"(NX\1\0\0\0xttb.", "BUILD"),
        (tensor_pickle(FLOAT).replace(b"OrderedDict\n)", b"OrderedDict\n)\x85"), "a dictionary"),
        (tensor_pickle(FLOAT).replace(b"K\4K\1\x86", b"X\2\0\0\0ab"), "shape or strides"),
    ],
)
def test_a_pickle_costs_little_and_gives_one_error(tmp_path: Path, payload: bytes, text: str) -> None:
    path = rewritten(tmp_path / "x.pt", {"data.pkl": payload})
    with pytest.raises(FormatError, match=text) as caught:
        read_pt_tensor(path)
    assert str(path) in str(caught.value)
    assert peak_bytes(path) < 4 << 20


def peak_bytes(path: Path) -> int:
    """Memory that the reader takes through Python at its peak, touched or not."""
    tracemalloc.start()
    try:
        with contextlib.suppress(FormatError):
            read_pt_tensor(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_large_member_or_directory_costs_little(tmp_path: Path) -> None:
    order = rewritten(tmp_path / "order.pt", {"byteorder": b"\0" * (64 << 20)}, zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(tmp_path / "many.pt", "w") as archive:
        for number in range(9000):
            archive.writestr(f"x/{number:0150d}", b"")
    for path, text in ((order, "more than a tensor"), (tmp_path / "many.pt", "directory")):
        with pytest.raises(FormatError, match=text):
            read_pt_tensor(path)
        assert peak_bytes(path) < 4 << 20


@pytest.mark.parametrize("position", range(0, 60, 3))
def test_damaged_deflated_members_are_refused(tmp_path: Path, position: int) -> None:
    path = rewritten(tmp_path / "x.pt", {}, zipfile.ZIP_DEFLATED)
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        first = archive.infolist()[0]
    content[first.header_offset + 30 + len(first.filename) + position] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"x\.pt"):
        read_pt_tensor(path)


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    content = bytearray(REAL.read_bytes())
    directory = content.index(b"PK\1\2")
    content[directory + 8] |= 1
    (tmp_path / "x.pt").write_bytes(content)
    with pytest.raises(FormatError, match="encrypted"):
        read_pt_tensor(tmp_path / "x.pt")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("axes", [0, 1, 3, 64])
def test_every_protocol_and_number_of_axes_is_read(tmp_path: Path, protocol: int, axes: int) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.nn.Parameter(torch.arange(70_000.0).reshape((1,) * (axes - 1) + (70_000,) if axes else (70_000,)))
    torch.save(tensor, tmp_path / "x.pt", pickle_protocol=protocol)
    assert read_pt_tensor(tmp_path / "x.pt").shape == tuple(tensor.shape)


def test_a_view_with_marks_is_refused(tmp_path: Path) -> None:
    """Its bytes are not its elements."""
    torch = pytest.importorskip("torch")
    conjugate = torch.tensor([1 + 2j, 3 - 1j, 2j]).conj()
    for tensor in (conjugate, conjugate.imag.as_strided((1,), (1,))):
        torch.save(tensor, tmp_path / "x.pt")
        with pytest.raises(FormatError, match="resolve"):
            read_pt_tensor(tmp_path / "x.pt")
        torch.save(tensor.resolve_conj().resolve_neg(), tmp_path / "x.pt")
        read_pt_tensor(tmp_path / "x.pt")


def test_other_files_are_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    zipfile.ZipFile(buffer, "w").close()
    for content in (b"", b"PK", pickle.dumps([1]), buffer.getvalue()):
        (tmp_path / "x.pt").write_bytes(content)
        with pytest.raises(FormatError, match=r"torch\.save"):
            read_pt_tensor(tmp_path / "x.pt")
