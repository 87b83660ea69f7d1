"""Checkpoints: what is written is read back, damaged files are refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump.mindspore as ms
from msdump.errors import FormatError
from msdump.mindspore import Parameter, Tensor, nn
from msdump.mindspore.train import checkpoint_files
from tests.mindspore.networks import SmallResNet

DTYPES = ["bool", "int8", "int64", "uint16", "float16", "float32", "float64", "bfloat16"]


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 3), max_size=3), st.integers(1, 9))
def test_any_tensor_comes_back(
    tmp_path_factory: pytest.TempPathFactory, dtype: str, shape: list[int], slice_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("ckpt") / "any.ckpt"
    data = np.random.default_rng(0).integers(0, 2, tuple(shape))
    tensor = Tensor(data, dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint_files, "_SLICE_BYTES", slice_bytes * 8)
        ms.save_checkpoint([{"name": "a.b", "data": tensor}], str(path))
    ((name, found),) = ms.load_checkpoint(str(path)).items()
    assert (name, found.name, found.dtype, found.shape) == ("a.b", "a.b", tensor.dtype, tensor.shape)
    assert found.array.tobytes() == tensor.array.tobytes()


def test_wire_format_is_the_original_s(tmp_path: Path) -> None:
    path = tmp_path / "w.ckpt"
    ms.save_checkpoint([{"name": "w", "data": Tensor([1.0, 2.0])}], str(path))
    # Checkpoint{1: Value{1: "w", 2: TensorProto{1: 2, 2: "Float32", 3: 8 bytes}}}
    content = np.array([1.0, 2.0], "<f4").tobytes()
    tensor = b"\x08\x02" + b"\x12\x07Float32" + b"\x1a\x08" + content
    value = b"\x0a\x01w" + b"\x12" + bytes([len(tensor)]) + tensor
    assert path.read_bytes() == b"\x0a" + bytes([len(value)]) + value


def test_net_round_trip(tmp_path: Path) -> None:
    path = str(tmp_path / "net.ckpt")
    source, target = SmallResNet(), SmallResNet()
    ms.save_checkpoint(source, path, append_dict={"epoch": 3, "lr": 0.5})
    found = ms.load_checkpoint(path)
    assert list(found) == [*source.parameters_dict(), "epoch", "lr"]
    assert int(found["epoch"]) == 3
    assert ms.load_param_into_net(target, found) == ([], ["epoch", "lr"])
    for ours, theirs in zip(target.get_parameters(), source.get_parameters(), strict=True):
        np.testing.assert_array_equal(ours.asnumpy(), theirs.asnumpy())


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "net")
    ms.save_checkpoint(nn.Dense(2, 3), path)
    found = ms.load_checkpoint(path + ".ckpt")
    small = nn.Dense(2, 4)
    with pytest.raises(RuntimeError, match=r"should have the same shape"):
        ms.load_param_into_net(small, found)
    other = {"weight": found["weight"], "more": Parameter(1.0, name="more")}
    assert ms.load_param_into_net(nn.Dense(2, 3), other) == (["bias"], ["more"])
    only = ms.load_checkpoint(path + ".ckpt", filter_prefix="bias")
    assert list(only) == ["weight"]
    assert list(ms.load_checkpoint(path + ".ckpt", specify_prefix=["bia"])) == ["bias"]
    with pytest.raises(ValueError, match="empty after filter"):
        ms.load_checkpoint(path + ".ckpt", specify_prefix="nothing")


def test_bad_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.ckpt"
    with pytest.raises(ValueError, match="does not exist"):
        ms.load_checkpoint(str(path))
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="is empty"):
        ms.load_checkpoint(str(path))
    with pytest.raises(ValueError, match=r"should end with '\.ckpt'"):
        ms.load_checkpoint(str(tmp_path / "net.npz"))
    with pytest.raises(TypeError, match=r"'save_obj' should be nn\.Cell or list"):
        ms.save_checkpoint(3, str(path))
    ms.save_checkpoint(nn.Dense(2, 3), str(path))
    whole = path.read_bytes()
    refused = 0
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        try:
            # The format has no count: a file cut between two tensors is a whole file of fewer tensors.
            assert list(ms.load_checkpoint(str(path))) == ["weight"]
        except FormatError:
            refused += 1
    assert refused == len(whole) - 2
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["net.ckpt"]


def test_a_link_under_the_name_of_the_unfinished_file_is_not_followed(tmp_path: Path) -> None:
    """Its name can be guessed, so in a folder of several users others can put a link there."""
    (tmp_path / "target").write_text("kept")
    (tmp_path / f"w.ckpt.{os.getpid()}.tmp").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic link"):
        ms.save_checkpoint([{"name": "w", "data": Tensor([1.0, 2.0])}], str(tmp_path / "w.ckpt"))
    assert (tmp_path / "target").read_text() == "kept" and not (tmp_path / "w.ckpt").exists()


# Source: a file that real 2.7 wrote of {"a.b": [[0, 1, 2], [3, 4, 5]], epoch 3, lr 0.5, s 2, ok True}.
REAL_SAFETENSORS = (
    b"8\x01\x00\x00\x00\x00\x00\x00"
    b'{"__metadata__":{"format":"ms"},"epoch":{"dtype":"I64","shape":[],"data_offsets":[0,8]},'
    b'"a.b":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},"lr":{"dtype":"F32","shape":[],"data_offsets":[32,36]},'
    b'"s":{"dtype":"I32","shape":[],"data_offsets":[36,40]},"ok":{"dtype":"BOOL","shape":[],"data_offsets":[40,41]}} '
    b"\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@"
    b"\x00\x00\x00?\x02\x00\x00\x00\x01"
)


def test_safetensors_are_those_of_mindspore(tmp_path: Path) -> None:
    path = str(tmp_path / "net.safetensors")
    matrix = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    saved = [{"name": "a.b", "data": matrix}, {"name": "s", "data": Tensor(2, ms.int32)}]
    ms.save_checkpoint(saved, path, format="safetensors", append_dict={"epoch": 3, "lr": 0.5, "ok": True})
    assert Path(path).read_bytes() == REAL_SAFETENSORS
    loaded = ms.load_checkpoint(path, format="safetensors")
    np.testing.assert_array_equal(loaded["a.b"].asnumpy(), matrix.asnumpy())
    assert bool(loaded["ok"]) is True and int(loaded["epoch"]) == 3
    Path(path).write_bytes(REAL_SAFETENSORS[:-1])
    with pytest.raises(FormatError, match="expected 1 bytes"):
        ms.load_checkpoint(path, format="safetensors")


def test_texts_choices_and_checksums(tmp_path: Path) -> None:
    path = str(tmp_path / "net.ckpt")
    net = nn.Dense(2, 3)
    ms.save_checkpoint(net, path, append_dict={"n": "text"}, choice_func=lambda name: name != "bias", crc_check=True)
    content = Path(path).read_bytes()
    # Source: a file that real 2.7 wrote has this entry, and ends in the name and the bytes of its CRC-32.
    text = "text".encode("utf-32-le")
    assert b"\n\x1e\n\x01n\x12\x19\x08\x00\x12\x03str\x1a\x10" + text in content
    assert content[-17:-10] == b"crc_num"
    loaded = ms.load_checkpoint(path, net, crc_check=True)
    assert sorted(loaded) == ["n", "weight"] and loaded["n"] == "text"
    Path(path).write_bytes(content.replace(text, "TEXT".encode("utf-32-le")))
    with pytest.raises(ValueError, match="crc check is failed"):
        ms.load_checkpoint(path, crc_check=True)
    with pytest.raises(ValueError, match="safetensors has"):
        ms.save_checkpoint(net, path, append_dict={"n": "text"}, format="safetensors")


def test_a_checkpoint_of_the_background_has_the_values_of_its_call(tmp_path: Path) -> None:
    path = str(tmp_path / "net.ckpt")
    net = nn.Dense(2, 3)
    before = net.weight.asnumpy().copy()
    ms.save_checkpoint(net, path, async_save=True)
    net.weight.set_data(Tensor(before + 1))
    np.testing.assert_array_equal(ms.load_checkpoint(path)["weight"].asnumpy(), before)
    assert ms.async_ckpt_thread_status() is False
    ms.save_checkpoint(net, str(tmp_path / "none" / "net.ckpt"), async_save=True)
    with pytest.raises(FileNotFoundError):
        ms.load_checkpoint(path)


def test_files_change_their_format(tmp_path: Path) -> None:
    values = {"a.weight": Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)), "b": Tensor(np.float16(2))}
    for rank in (0, 1):
        (tmp_path / f"rank{rank}").mkdir()
        ms.save_checkpoint(values, str(tmp_path / f"rank{rank}" / f"net_{rank}.ckpt"))
    ms.ckpt_to_safetensors(str(tmp_path), str(tmp_path / "new"), {"b": "c"}, file_name_regex="_1$")
    made = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.safetensors")]
    assert made == ["new/rank1/net_1.safetensors"]
    back = tmp_path / made[0]
    ms.safetensors_to_ckpt(str(back))
    loaded = ms.load_checkpoint(str(back.with_suffix(".ckpt")))
    assert list(loaded) == ["a.weight", "c"]
    for value, expected in zip(loaded.values(), values.values(), strict=True):
        assert value.dtype == expected.dtype
        np.testing.assert_array_equal(value.asnumpy(), expected.asnumpy())
    for wrong in (str(back), str(tmp_path / "absent.ckpt")):
        with pytest.raises(ValueError, match=r"expected a folder or a file that ends with \.ckpt"):
            ms.ckpt_to_safetensors(wrong)
