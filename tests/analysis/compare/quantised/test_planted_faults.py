"""Faults that quantisers make, planted in one layer of QDQ, QOperator and torchao models: the first sentence names that
layer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static  # noqa: E402

import msdump  # noqa: E402
from msdump.analysis import compare_dumps, headline  # noqa: E402
from tests.analysis.compare.quantised.layers import (  # noqa: E402
    OTHER_FORMS,
    SATURATES,
    SIZE,
    Array,
    Model,
    Planted,
    dumped,
    in_floats,
    in_pairs,
    saturates,
)

RNG = np.random.default_rng(4)
PICTURES = [RNG.standard_normal((1, 8, 8, 8)).astype(np.float32) for _ in range(3)]
QDQ, QOPERATOR = QuantFormat.QDQ, QuantFormat.QOperator


class Pictures(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self) -> None:
        self.rest = iter(PICTURES)

    def get_next(self) -> dict[str, Any] | None:
        picture = next(self.rest, None)
        return None if picture is None else {"x": picture}


@functools.cache
def parameters(outlier: float = 0.0) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    weights = {f"w{number}": rng.uniform(-0.25, 0.25, (8, 8, 3, 3)).astype(np.float32) for number in range(5)}
    weights["w2"][2, 0, 1, 1] += outlier
    return weights | {f"b{number}": rng.uniform(-0.5, 0.5, 8).astype(np.float32) for number in range(5)}


def network(outlier: float = 0.0) -> bytes:
    """Five convolutions, with a connection around two of them."""
    nodes = []

    def conv(number: int, x: str, has_relu: bool = True) -> str:
        names = [x, f"w{number}", f"b{number}"]
        nodes.append(helper.make_node("Conv", names, [f"c{number}"], f"conv{number}", pads=[1] * 4))
        if not has_relu:
            return f"c{number}"
        nodes.append(helper.make_node("Relu", [f"c{number}"], [f"r{number}"], f"relu{number}"))
        return f"r{number}"

    around = conv(0, "x")
    nodes.append(helper.make_node("Add", [around, conv(2, conv(1, around), False)], ["sum"], "add"))
    conv(4, conv(3, "sum"), False)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8, 8, 8]) for name in ("x", "c4"))
    constants = [numpy_helper.from_array(array, name) for name, array in parameters(outlier).items()]
    graph = helper.make_graph(nodes, "net", [x], [y], constants)
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def dump(model: bytes, folder: Path) -> Path:
    folder.mkdir()
    with msdump.acl.dump({"dump": {"dump_path": str(folder), "dump_list": [{}], "dump_mode": "all"}}):
        msdump.acl.load(model)(PICTURES[0])
    return folder


@pytest.fixture(scope="module")
def quantised(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any, bool, float], bytes]:
    """What the quantiser makes: form, whether weights have a scale for each channel, outlier of conv2."""

    @functools.cache
    def of(form: Any, per_channel: bool, outlier: float) -> bytes:
        folder = tmp_path_factory.mktemp("quantised")
        (folder / "float.onnx").write_bytes(network(outlier))
        quantize_static(
            str(folder / "float.onnx"), str(folder / "int8.onnx"), Pictures(), quant_format=form,
            activation_type=QuantType.QUInt8, per_channel=per_channel,
        )  # fmt: skip
        return (folder / "int8.onnx").read_bytes()

    return of


@pytest.fixture(scope="module")
def in_float(tmp_path_factory: pytest.TempPathFactory) -> Callable[[float], Path]:
    """Dumps of the model in floats, by the outlier of conv2."""
    return functools.cache(lambda outlier: dump(network(outlier), tmp_path_factory.mktemp("float") / "dump"))


class Editor:
    """A quantised model while a fault is planted in it."""

    def __init__(self, data: bytes, form: Any) -> None:
        self.model = onnx.load_from_string(data)
        self.form = form

    def __getitem__(self, name: str) -> Array:
        return numpy_helper.to_array(self._tensor(name)).copy()

    def __setitem__(self, name: str, array: Any) -> None:
        tensor = self._tensor(name)
        dtype = numpy_helper.to_array(tensor).dtype
        tensor.CopyFrom(numpy_helper.from_array(np.asarray(array).astype(dtype), name))

    def _tensor(self, name: str) -> Any:
        return next(one for one in self.model.graph.initializer if one.name == name)

    def act(self, number: int) -> str:
        """Name of what a convolution makes, with its activation."""
        return f"r{number}" if self.form == QDQ and number in (0, 1, 3) else f"c{number}"

    def weight(self, weight: Array, scale: float, levels: int = 127) -> None:
        """Codes of conv2's weight, and of its bias, by that scale."""
        self["w2_scale"] = np.full_like(self["w2_scale"], scale)
        self["w2_quantized"] = np.clip(np.rint(weight / np.float32(scale)), -levels - 1, levels)
        self.bias(2, self.act(1))

    def bias(self, number: int, read: str) -> None:
        """Codes of a bias by the scales of the weight and of what the convolution reads."""
        scale = self[f"{read}_scale"] * self[f"w{number}_scale"]
        self[f"b{number}_quantized"] = np.rint(parameters()[f"b{number}"] / scale)
        if self.form == QDQ:
            self[f"b{number}_quantized_scale"] = np.reshape(scale, self[f"b{number}_quantized_scale"].shape)

    def rescale(self, name: str, factor: float) -> None:
        self[f"{name}_scale"] = self[f"{name}_scale"] * np.float32(factor)

    def read_by(self, reader: tuple[str, str], slot: tuple[int, int], value: Any) -> None:
        """Give an operator a scale or zero point of its own.   reader, slot: in QDQ form, in QOperator form"""
        which = 0 if self.form == QDQ else 1
        node = next(one for one in self.model.graph.node if one.name == reader[which])
        node.input[slot[which]] = "own"
        self.model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), "own"))


W2 = parameters()["w2"]
TOP = float(np.abs(W2).max())


def wrong_axis(edit: Editor) -> None:
    node = next(one for one in edit.model.graph.node if one.name == "w2_DequantizeLinear")
    next(one for one in node.attribute if one.name == "axis").i = 1
    edit["w2_scale"] = edit["w2_scale"] * np.logspace(-1, 1, 8, base=4)


def swapped_ranges(edit: Editor) -> None:
    one, other = edit[f"{edit.act(1)}_scale"], edit["c2_scale"]
    edit[f"{edit.act(1)}_scale"], edit["c2_scale"] = other / 4, one
    edit.bias(2, edit.act(1))


def narrow(edit: Editor) -> None:
    edit.rescale(edit.act(1), 0.25)
    edit.bias(2, edit.act(1))


def wide(edit: Editor) -> None:
    edit.rescale(edit.act(1), 16)
    edit.bias(2, edit.act(1))


READERS_OF_1 = ("r1_DequantizeLinear", "conv2_quant")
READERS_OF_2 = ("c2_DequantizeLinear", "add_quant")
# Name -> (what is done, operator that is named in QDQ form, in QOperator form, what the first sentence says).
FAULTS: dict[str, tuple[Callable[[Editor], None], str, str, str]] = {
    "a weight with another scale": (lambda edit: edit.rescale("w2", 2), "conv2", "conv2_quant", "its weight has"),
    "a weight with a scale that is a little off": (
        lambda edit: edit.rescale("w2", 1.2), "conv2", "conv2_quant", "its weight has 14 dB",
    ),
    "a weight with a negative scale": (lambda edit: edit.rescale("w2", -1), "conv2", "conv2_quant", "its weight has"),
    "the scale of another weight": (
        lambda edit: edit.__setitem__("w2_scale", edit["w3_scale"] * 1.5), "conv2", "conv2_quant", "its weight has",
    ),
    "a weight with another zero point": (
        lambda edit: edit.__setitem__("w2_zero_point", np.full_like(edit["w2_zero_point"], 20)),
        "conv2", "conv2_quant", "its weight has",
    ),
    "a weight of an earlier training": (
        lambda edit: edit.weight(0.7 * W2, TOP / 127), "conv2", "conv2_quant", "its weight has",
    ),
    "a weight in 4 bits": (lambda edit: edit.weight(W2, TOP / 7, 7), "conv2", "conv2_quant", "its weight has 23 dB"),
    "a weight that is clipped": (lambda edit: edit.weight(W2, TOP / 381), "conv2", "conv2_quant", "its weight has"),
    "a weight with its channels turned": (
        lambda edit: edit.__setitem__("w2_quantized", edit["w2_quantized"].swapaxes(0, 1)),
        "conv2", "conv2_quant", "its weight has",
    ),
    "a bias by another scale": (
        lambda edit: edit.__setitem__("b2_quantized", edit["b2_quantized"] // 8),
        "conv2", "conv2_quant", "its bias has 1 dB",
    ),
    "a bias with the wrong sign": (
        lambda edit: edit.__setitem__("b2_quantized", -edit["b2_quantized"]),
        "conv2", "conv2_quant", "its bias has -6 dB",
    ),
    "a range that is too narrow": (narrow, "r1_QuantizeLinear", "conv1_quant", "clips 25% of the values"),
    "a range of another calibration, far too wide": (
        wide, "r1_QuantizeLinear", "conv1_quant", "its values take 17 codes",
    ),
    "a range without negative numbers": (
        lambda edit: edit.__setitem__("c2_zero_point", 0),
        "c2_QuantizeLinear", "conv2_quant", "clips 46% of the values",
    ),
    "the ranges of two layers swapped": (swapped_ranges, "r1_QuantizeLinear", "conv1_quant", "clips"),
    "codes read by another scale": (
        lambda edit: edit.read_by(READERS_OF_1, (1, 1), edit[f"{edit.act(1)}_scale"] * np.float32(2)),
        "r1_QuantizeLinear", "conv2_quant", "codes are read by other scales than they were written by",
    ),
    "codes read by another zero point": (
        lambda edit: edit.read_by(READERS_OF_1, (2, 2), np.uint8(edit[f"{edit.act(1)}_zero_point"] + 20)),
        "r1_QuantizeLinear", "conv2_quant", "codes are read by other scales than they were written by",
    ),
    "a branch read by another scale": (
        lambda edit: edit.read_by(READERS_OF_2, (1, 4), edit["c2_scale"] * np.float32(3)),
        "c2_QuantizeLinear", "add_quant", "codes are read by other scales than they were written by",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", [QDQ, QOPERATOR], ids=["QDQ", "QOperator"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_layer_of_a_fault_is_named(fault: str, form: Any, quantised: Any, in_float: Any, tmp_path: Path) -> None:
    plant, *named, says = FAULTS[fault]
    edit = Editor(quantised(form, False, 0.0), form)
    plant(edit)
    found = compare_dumps(dump(edit.model.SerializeToString(), tmp_path / "mine"), in_float(0.0))
    first = headline(found)[0]
    assert first.startswith(f"{named[0 if form == QDQ else 1]} (") and says in first and not found.is_agreeing


@pytest.mark.parametrize("form", [QDQ, QOPERATOR], ids=["QDQ", "QOperator"])
def test_one_layer_with_a_scale_for_the_whole_weight_is_named(
    form: Any, quantised: Any, in_float: Any, tmp_path: Path
) -> None:
    """The others have one for each channel, by which an outlier of that layer would spoil its own channel alone."""
    if form == QOPERATOR and saturates():
        pytest.skip(SATURATES)
    outlier = 12.0
    edit = Editor(quantised(form, True, outlier), form)
    weight = parameters(outlier)["w2"]
    edit.weight(weight, float(np.abs(weight).max()) / 127)
    found = compare_dumps(dump(edit.model.SerializeToString(), tmp_path / "mine"), in_float(outlier))
    assert headline(found)[0].startswith("conv2 (" if form == QDQ else "conv2_quant (")
    assert "its weight has" in headline(found)[0] and "one outlier in channel 2" in headline(found)[0]


def of_one_channel(name: str, change: Callable[[Array], Array]) -> Callable[[Editor], None]:
    """A change of channel 5 of an initializer."""

    def plant(edit: Editor) -> None:
        array = edit[name]
        array[5] = change(array[5])
        edit[name] = array

    return plant


CHANNEL_FAULTS = {
    "a scale that is too large": of_one_channel("w2_scale", lambda scale: scale * 3),
    "a scale that is too small": of_one_channel("w2_scale", lambda scale: scale / 2),
    "codes of nothing": of_one_channel("w2_quantized", lambda codes: codes * 0),
}


@pytest.mark.parametrize("form", [QDQ, QOPERATOR], ids=["QDQ", "QOperator"])
@pytest.mark.parametrize("fault", CHANNEL_FAULTS)
def test_the_channel_of_a_fault_is_named(fault: str, form: Any, quantised: Any, in_float: Any, tmp_path: Path) -> None:
    if form == QOPERATOR and saturates():
        pytest.skip(SATURATES)
    edit = Editor(quantised(form, True, 0.0), form)
    CHANNEL_FAULTS[fault](edit)
    found = compare_dumps(dump(edit.model.SerializeToString(), tmp_path / "mine"), in_float(0.0))
    first = headline(found)[0]
    assert first.startswith("conv2 (" if form == QDQ else "conv2_quant (") and "; channel 5 has " in first


def test_scales_along_another_axis_are_found(quantised: Any, in_float: Any, tmp_path: Path) -> None:
    edit = Editor(quantised(QDQ, True, 0.0), QDQ)
    wrong_axis(edit)
    found = compare_dumps(dump(edit.model.SerializeToString(), tmp_path / "mine"), in_float(0.0))
    assert headline(found)[0].startswith("conv2 (Conv) adds ") and "its weight has" in headline(found)[0]


@pytest.mark.parametrize("form", [QDQ, QOPERATOR], ids=["QDQ", "QOperator"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_without_a_fault_all_agrees(
    form: Any, per_channel: bool, quantised: Any, in_float: Any, tmp_path: Path
) -> None:
    assert compare_dumps(dump(quantised(form, per_channel, 0.0), tmp_path / "mine"), in_float(0.0)).is_agreeing


# -- torchao: a scale for each column of the weight, and one for each token --------------------------------------------

LAYER = 2
TOKEN_FAULTS: dict[str, Planted] = {
    "scales that are too large": lambda codes, scale: (codes, scale * np.float32(1.5)),
    "scales that are a little off": lambda codes, scale: (codes, scale * np.float32(1.2)),
    "scales with the wrong sign": lambda codes, scale: (codes, -scale),
    "scales of other columns": lambda codes, scale: (codes, scale * np.logspace(-1, 1, SIZE, base=2).astype("float32")),
    "a zero point that is left out": lambda codes, scale: (
        np.clip(codes.astype(np.int16) + 10, -128, 127).astype("int8"),
        scale,
    ),
    "codes of 4 bits": lambda codes, scale: ((codes // 16 * 16).astype(np.int8), scale),
    "codes that are clipped": lambda codes, scale: (np.clip(codes, -40, 40), scale),
    "a weight of an earlier training": lambda codes, scale: (np.rint(0.7 * codes).astype(np.int8), scale),
    "a weight that is transposed": lambda codes, scale: (np.ascontiguousarray(codes.T), scale),
}


@pytest.mark.parametrize("form", ["tokens", "unsigned", "cast"])
@pytest.mark.parametrize("fault", TOKEN_FAULTS)
def test_the_layer_of_a_fault_in_a_model_of_torchao_is_named(fault: str, form: str, tmp_path: Path) -> None:
    model = Model(planted={LAYER: TOKEN_FAULTS[fault]})
    mine = dumped(tmp_path / "mine", OTHER_FORMS[form](model))
    found = compare_dumps(mine, dumped(tmp_path / "golden", in_floats(model)[1:]))
    first = headline(found)[0]
    kind = "aten_mm_default" if form == "cast" else "aten__int_mm_default"
    assert first.startswith(f"Default/l{LAYER}/{kind}-op{LAYER} (") and "its weight has" in first


@pytest.mark.parametrize("form", ["tokens", "unsigned", "one_scale"])
@pytest.mark.parametrize("layer", [0, 2, 3])
def test_the_layer_whose_tokens_are_clipped_is_named(form: str, layer: int, tmp_path: Path) -> None:
    model = Model(narrow=layer)
    mine = dumped(tmp_path / "mine", OTHER_FORMS[form](model))
    found = compare_dumps(mine, dumped(tmp_path / "golden", in_floats(model)[1:]))
    first = headline(found)[0]
    assert first.startswith(f"Default/l{layer}/aten__int_mm_default-op{layer} (") and " and clips " in first


def test_one_channel_that_takes_the_codes_from_all_others_is_named(tmp_path: Path) -> None:
    """It is as exact as before, and its numbers are most of what the layer makes."""
    model = Model()
    model.weights[LAYER][:, 5] *= 60
    mine = dumped(tmp_path / "mine", in_pairs(model))
    found = compare_dumps(mine, dumped(tmp_path / "golden", in_floats(model)))
    first = headline(found)[0]
    assert first.startswith(f"Default/l{LAYER}/MatMul-op{LAYER} (") and "outliers in channel 5" in first
    assert " of 16 channels are lost" in first and not found.is_agreeing


def test_one_scale_for_a_weight_with_an_outlier_is_named(tmp_path: Path) -> None:
    model = Model(outlier=LAYER)
    mine = dumped(tmp_path / "mine", OTHER_FORMS["one_scale"](model))
    found = compare_dumps(mine, dumped(tmp_path / "golden", in_floats(model)[1:]))
    first = headline(found)[0]
    assert first.startswith(f"Default/l{LAYER}/aten__int_mm_default-op{LAYER} (") and "outlier in channel 5" in first
