"""Files of torch.save, read without PyTorch: the same bytes as PyTorch reads, and nothing that a file says is run."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.errors import FormatError
from msdump.formats.dump_tensor import DumpedFile
from msdump.formats.paths.parse import parse_msprobe_name, parse_place
from msdump.formats.pt_tensor import read_pt_tensor

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "msprobe" / "tensor" / "step0" / "proc1" / "dump_tensor_data"
REAL = FOLDER / "Functional.linear.0.forward.input.1.pt"
DTYPES = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128"


def loaded(path: Path) -> Any:
    name = parse_msprobe_name(path.name)
    assert name is not None
    (tensor,) = DumpedFile(str(path), parse_place(path.parts[:-1]), name, path.name).tensors()
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
    """A copy of the real file with other members."""
    with zipfile.ZipFile(REAL) as source, zipfile.ZipFile(path, "w", compression) as target:
        for name in source.namelist():
            last = name.split("/", 1)[1]
            target.writestr(name, changes.get(last, source.read(name)))
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
        ({"byteorder": b"big"}, zipfile.ZIP_STORED, "order"),
        ({"data/0": b"\0" * 5}, zipfile.ZIP_STORED, "data bytes"),
        ({"data.pkl": b"\0" * (2 << 20)}, zipfile.ZIP_DEFLATED, "more than a tensor"),
    ],
)
def test_other_archives_are_refused(tmp_path: Path, changes: dict[str, bytes], compression: int, text: str) -> None:
    path = rewritten(tmp_path / "x.pt", changes, compression)
    with pytest.raises(FormatError, match=text):
        read_pt_tensor(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    zipfile.ZipFile(buffer, "w").close()
    for content in (b"", b"PK", pickle.dumps([1]), buffer.getvalue()):
        (tmp_path / "x.pt").write_bytes(content)
        with pytest.raises(FormatError, match=r"torch\.save"):
            read_pt_tensor(tmp_path / "x.pt")
