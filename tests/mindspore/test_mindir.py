"""MINDIR files: what `export` writes `load` reads, and files of MindSpore 2.0 and 2.7 run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdump import mindspore as ms
from msdump.errors import FormatError
from msdump.mindspore import nn, ops
from msdump.mindspore._proto.mind_ir_pb2 import ModelProto
from msdump.mindspore.mindir.forms import FORMS
from tests.mindspore.mindir_cases import CASES, X

MODELS = Path(__file__).parent / "models"
# Likes of constants become constants while a network is traced, so that no file written here has them.
FOLDED = {"OnesLike", "ZerosLike"}


def as_list(outputs: Any) -> list[Any]:
    return [each.asnumpy() for each in (outputs if isinstance(outputs, tuple) else (outputs,))]


def exported(net: Any, *inputs: Any, folder: Path) -> nn.GraphCell:
    ms.export(net, *inputs, file_name=str(folder / "net"), file_format="MINDIR")
    return nn.GraphCell(ms.load(str(folder / "net.mindir")))


@pytest.mark.parametrize("op_type", CASES)
def test_operators_come_back_as_they_were(op_type: str, tmp_path: Path) -> None:
    function, arrays = CASES[op_type]
    inputs = [ms.Tensor(array) for array in arrays]
    again = exported(function, *inputs, folder=tmp_path)
    assert FORMS[op_type].file_type in [step.file_type for step in again.graph.steps]
    for one, other in zip(as_list(again(*inputs)), as_list(function(*inputs)), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_every_form_has_a_case() -> None:
    assert set(FORMS) - set(CASES) == FOLDED
    assert set(CASES) <= set(FORMS)


# Values of MindSpore itself on CPU, for the input that the test makes.
SOFTMAXES = [
    [[1.4204782, 1.9231825, 1.6563394], [1.3892468, 1.8790231, 1.73173]],
    [16.9758816, 16.9968586],
]


@pytest.mark.parametrize("version", ["2.0", "2.7"])
@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_files_of_mindspore_run(version: str, mode: int) -> None:
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    net = nn.GraphCell(ms.load(str(MODELS / f"mindspore-{version}.mindir")))
    images = (np.arange(128) % 11 / 11).reshape(2, 1, 8, 8).astype(np.float32)
    outputs = as_list(net(ms.Tensor(images)))
    ms.set_context(mode=before)
    for got, expected in zip(outputs, SOFTMAXES, strict=True):
        np.testing.assert_allclose(got, expected, rtol=3e-6)
    assert "conv.weight" in [parameter.name for parameter in net.get_parameters()]


class Network(nn.Cell):
    """Weights, normalisation, a tuple of results."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)
        self.flatten, self.dense = nn.Flatten(), nn.Dense(32, 3)

    def construct(self, x: Any) -> Any:
        x = self.dense(self.flatten(ops.relu(self.norm(self.conv(x)))))
        return x, x.mean() * 2


def test_a_network_comes_back_with_its_weights(tmp_path: Path) -> None:
    net, images = Network().set_train(False), ms.Tensor(np.linspace(-1, 1, 32, dtype=np.float32).reshape(2, 1, 4, 4))
    again = exported(net, images, folder=tmp_path)
    for one, other in zip(as_list(again(images)), as_list(net(images)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert sorted(again.parameters_dict()) == sorted(net.parameters_dict())
    bias = ms.Tensor(np.array([1, 2, 3], np.float32))
    shifted = nn.GraphCell(again.graph, {"dense.bias": bias})
    own = net.parameters_dict()["dense.bias"].asnumpy()
    np.testing.assert_allclose(as_list(shifted(images))[0], as_list(net(images))[0] - own + bias.asnumpy(), rtol=1e-5)
    kept = again.parameters_dict()["dense.bias"].asnumpy()
    np.testing.assert_array_equal(kept, own, "values for one cell leave another alone")


def test_the_same_network_gives_the_same_file(tmp_path: Path) -> None:
    net, images = Network(), ms.Tensor(np.zeros((1, 1, 4, 4), np.float32))
    for name in ("a", "b.mindir"):
        ms.export(net, images, file_name=str(tmp_path / name), file_format="MINDIR")
    assert (tmp_path / "a.mindir").read_bytes() == (tmp_path / "b.mindir").read_bytes()


def test_an_operator_without_a_form_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"export: .*Erfinv.*at .*expected an operator with a form in MINDIR files"):
        exported(lambda x: ops.erfinv(x), ms.Tensor(X), folder=tmp_path)
    with pytest.raises(ValueError, match=r"expected pad_mode 'same' or 'valid', got 'PAD'"):
        exported(
            nn.MaxPool2d(2, pad_mode="pad", padding=1), ms.Tensor(np.zeros((1, 1, 4, 4), np.float32)), folder=tmp_path
        )
    weight = ms.Parameter(ms.Tensor(X), "weight")
    with pytest.raises(ValueError, match=r"it writes a parameter"):
        exported(lambda x: ops.assign_add(weight, x), ms.Tensor(X), folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_formats_and_arguments_that_are_not_there_are_named(tmp_path: Path) -> None:
    x = ms.Tensor(X)
    with pytest.raises(ValueError, match=r"expected file_format 'MINDIR', got 'ONNX'"):
        ms.export(nn.ReLU(), x, file_name=str(tmp_path / "net"), file_format="ONNX")
    with pytest.raises(ValueError, match=r"no further arguments, got enc_key"):
        ms.export(nn.ReLU(), x, file_name=str(tmp_path / "net"), file_format="MINDIR", enc_key=b"0")
    with pytest.raises(ValueError, match=r"expected tensors as inputs"):
        ms.export(nn.ReLU(), 1, file_name=str(tmp_path / "net"), file_format="MINDIR")
    with pytest.raises(TypeError, match=r"a Cell or a function, got int"):
        ms.export(1, x, file_name=str(tmp_path / "net"), file_format="MINDIR")
    with pytest.raises(TypeError, match=r"must be a FuncGraph loaded from MindIR"):
        nn.GraphCell(nn.ReLU())


def _changed(change: Any) -> bytes:
    model = ModelProto.FromString((MODELS / "mindspore-2.7.mindir").read_bytes())
    change(model)
    return bytes(model.SerializeToString())


def _of_another_type(model: Any) -> None:
    next(each for each in model.primitives if each.op_type == "ReLU").op_type = "Unheard"


BROKEN = {
    "text": (b"no such thing" * 9, FormatError, "expected a MINDIR file"),
    "empty": (b"", FormatError, "with a graph, got none"),
    "operator": (_changed(_of_another_type), ValueError, "operator Unheard of MINDIR files cannot run here"),
    "function": (_changed(lambda model: model.functions.add()), ValueError, "got one with 1 functions inside"),
    "dtype": (_changed(lambda model: setattr(model.graph.parameter[0], "data_type", 8)), FormatError, "data_type 8"),
    "cut": (_changed(lambda model: setattr(model.graph.parameter[0], "raw_data", b"1")), FormatError, "bytes, got 1"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_says_what_is_wrong(kind: str, tmp_path: Path) -> None:
    content, error, message = BROKEN[kind]
    (tmp_path / "net.mindir").write_bytes(content)
    with pytest.raises(error, match=message):
        ms.load(str(tmp_path / "net.mindir"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"net.mindir cannot be read: No such file"):
        ms.load(str(tmp_path / "net.mindir"))
    with pytest.raises(ValueError, match=r"should end with mindir"):
        ms.load(str(tmp_path / "net.onnx"))
    with pytest.raises(ValueError, match=r"load_mindir: net.mindir: .* Use load and nn.GraphCell"):
        ms.load_mindir("net.mindir")
