"""Dictionaries of torch.save: every tensor as PyTorch reads it, and nothing that a file says is run."""

from __future__ import annotations

import os
import pickle
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import msdump
from msdump.errors import FormatError
from msdump.formats.other_tools.torch_archive import read_torch_archive

torch = pytest.importorskip("torch")
DTYPES = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 uint16 float8_e4m3fn float8_e5m2"
KEYS = st.text("abc.é\x1b", min_size=1, max_size=4) | st.integers(0, 9)


@st.composite
def tensors(draw: st.DrawFn) -> Any:
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    dtype = getattr(torch, draw(st.sampled_from(DTYPES.split(" "))))
    tensor = torch.arange(int(np.prod(shape)), dtype=torch.float32).reshape(shape).to(dtype)
    return draw(
        st.sampled_from(
            [tensor, tensor.transpose(0, -1) if tensor.ndim > 1 else tensor, tensor[1:] if shape else tensor]
        )
    )


TREES = st.recursive(
    tensors() | st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=6,
)


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, f"{name}/{key}" if name else str(key))


def as_bytes(tensor: Any) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


@given(TREES)
def test_every_tensor_is_found_under_its_place(tmp_path_factory: pytest.TempPathFactory, tree: Any) -> None:
    path = tmp_path_factory.mktemp("pt") / "x.pt"
    torch.save(tree, path)
    expected = dict(leaves(torch.load(path, weights_only=True)))
    held = read_torch_archive(str(path))
    assert held.problems == ()
    assert [member.name for member in held.members] == list(expected)
    for member in held.members:
        tensor = expected[member.name]
        array = member.array(str(path))
        assert (member.dtype, array.shape) == (str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))
        assert np.ascontiguousarray(array).tobytes() == as_bytes(tensor)


def test_state_dicts_of_models_and_optimizers_are_read(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(3, 4)).sum().backward()
    optimizer.step()
    content = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "lr": 0.1}
    torch.save(content, tmp_path / "checkpoint.pth")
    names = [tensor.op_name for tensor in msdump.open(tmp_path / "checkpoint.pth")]
    assert names[0] == "model/0.weight"
    assert "optimizer/state/0/exp_avg" in names
    assert msdump.find_nan(tmp_path / "checkpoint.pth").first is None


def test_views_of_one_storage_are_told_apart(tmp_path: Path) -> None:
    whole = torch.tensor([[1.0, float("nan")], [3.0, 4.0]])
    torch.save({"whole": whole, "row": whole[0], "turned": whole.t(), "again": whole}, tmp_path / "x.pt")
    rows = {row.operator.op_name: row for row in msdump.stat(tmp_path / "x.pt").rows if row.operator}
    assert {name: row.shape for name, row in rows.items()} == {
        "whole": (2, 2), "row": (2,), "turned": (2, 2), "again": (2, 2),
    }  # fmt: skip
    loaded = {tensor.op_name: tensor.load() for tensor in msdump.open(tmp_path / "x.pt")}
    assert np.array_equal(loaded["turned"], whole.numpy().T, equal_nan=True)
    dump = msdump.open(tmp_path / "x.pt")
    ids = {tensor.op_name: tensor.content_id for tensor in dump}
    assert ids["whole"] == ids["again"]
    assert len(set(ids.values())) == 3


class Code:
    """What makes a file is run where the file is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("touch ran",)


def test_no_code_of_a_file_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"x": torch.ones(2), "code": Code()}, "both.pt")
    torch.save({"code": Code()}, "code.pt")
    assert [tensor.op_name for tensor in msdump.open("both.pt")] == ["x"]
    dump = msdump.open("code.pt")
    assert list(dump) == []
    assert "system, which only code of the file could make" in str(dump.damaged[0][1])
    assert not (tmp_path / "ran").exists()


def test_a_whole_model_is_refused_with_what_to_do(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), tmp_path / "model.pt")
    with pytest.raises(FormatError, match=r"model\.pt.*Linear.*state_dict"):
        read_torch_archive(str(tmp_path / "model.pt"))


def test_what_cannot_be_read_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    content = {"good": torch.ones(2), "conj": torch.zeros(2, dtype=torch.complex64).conj(), "numpy": np.zeros(2)}
    torch.save(content, tmp_path / "x.pt")
    dump = msdump.open(tmp_path / "x.pt")
    assert [tensor.op_name for tensor in dump] == ["good"]
    texts = [str(error) for _, error in dump.damaged]
    assert any("conj: expected a tensor in plain memory" in text for text in texts)
    assert any("numpy: expected a tensor, got an array of numpy" in text for text in texts)


def test_the_form_before_1_6_is_named(tmp_path: Path) -> None:
    torch.save({"x": torch.ones(2)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    dump = msdump.open(tmp_path / "old.pt")
    assert list(dump) == []
    assert "before 1.6" in str(dump.damaged[0][1])


def test_a_file_that_was_cut_anywhere_is_named(tmp_path: Path) -> None:
    torch.save({"x": torch.ones(2), "y": [torch.zeros(3)]}, tmp_path / "whole.pt")
    content = (tmp_path / "whole.pt").read_bytes()
    for size in range(0, len(content), 13):
        (tmp_path / "x.pt").write_bytes(content[:size])
        with pytest.raises(FormatError, match=r"x\.pt"):
            read_torch_archive(str(tmp_path / "x.pt"))


def with_pickle(path: Path, content: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        archive.writestr("archive/data/0", b"\0" * 64)
    return path


TENSOR = (
    b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\x10tQ"
    b"K\0K\x04K\4\x86K\4K\1\x86\x89ccollections\nOrderedDict\n)RtR"
)
LAUGHS = b"".join(b"(" + b"h%c" % (number - 1) * 9 + b"lq%c" % number for number in range(1, 12))


def test_the_pickles_below_differ_from_a_sound_one_in_one_thing(tmp_path: Path) -> None:
    members = read_torch_archive(str(with_pickle(tmp_path / "x.pt", b"\x80\2" + TENSOR + b"."))).members
    assert [(member.name, member.shape) for member in members] == [("", (4, 4))]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\x80\2" + b"]q\0" + LAUGHS + b".", "more than"),
        (b"\x80\2]q\0h\0a.", "deep"),
        (b"\x80\2" + b")" + b"\x85" * 60_000 + b".", "deep"),
        (b"\x80\2N", "torch.save"),
        (b"\x80\2h\5.", "has not kept"),
        (b"\x80\2NNa.", "no list"),
        (b"\x80\2(K\1d.", "a key without a value"),
        (b"\x80\2" + TENSOR.replace(b"FloatStorage", b"OddsStorage") + b".", "a storage of type"),
        (b"\x80\2" + TENSOR.replace(b"K\4K\1\x86\x89", b"K\4J\xff\xff\xff\xff\x86\x89") + b".", "no sizes"),
        (b"\x80\4B\xff\xff\xff\x7f.", "torch.save"),
        (b"\x80\2" + b"0.", "torch.save"),
    ],
)
def test_a_hostile_pickle_costs_little_and_gives_one_error(tmp_path: Path, content: bytes, text: str) -> None:
    path = with_pickle(tmp_path / "x.pt", content)
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=text):
            read_torch_archive(str(path))
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()


def test_a_tensor_of_more_elements_than_its_storage_can_show_is_a_problem(tmp_path: Path) -> None:
    wide = TENSOR.replace(b"K\4K\4\x86K\4K\1\x86", b"J\0\0\0\x7fK\4\x86K\0K\0\x86").replace(
        b"K\0K\x04K\4\x86K\4K\1\x86", b"K\0J\0\0\0\x7fK\4\x86K\0K\0\x86"
    )
    held = read_torch_archive(str(with_pickle(tmp_path / "x.pt", b"\x80\2" + wide + b".")))
    assert held.members == ()
    assert "elements in" in str(held.problems[0])


@given(st.integers(0, 400), st.binary(min_size=1, max_size=4))
def test_a_damaged_pickle_is_refused_or_read(tmp_path_factory: pytest.TempPathFactory, place: int, put: bytes) -> None:
    content = b"\x80\2}(X\1\0\0\0a" + TENSOR + b"X\1\0\0\0b](" + TENSOR + b"Nee" + b"u."
    damaged = content[:place] + put + content[place + len(put) :]
    path = with_pickle(tmp_path_factory.mktemp("pt") / "x.pt", damaged)
    dump = msdump.open(path)
    for tensor in dump:
        tensor.load()
    assert all(str(path) in str(error) for _, error in dump.damaged)


def test_every_protocol_is_read(tmp_path: Path) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        torch.save({"x": torch.ones(2), 3: [torch.zeros(1)]}, tmp_path / "x.pt", pickle_protocol=protocol)
        assert [member.name for member in read_torch_archive(str(tmp_path / "x.pt")).members] == ["x", "3/0"]
