"""Noise as onnxruntime's own tool measures it, on a small network that its quantiser made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static  # noqa: E402
from onnxruntime.quantization import qdq_loss_debug as loss  # noqa: E402

import msdump  # noqa: E402
from msdump.analysis import Comparison, compare_dumps  # noqa: E402
from msdump.analysis.compare.result import AGREES  # noqa: E402
from msdump.analysis.steps import Slot  # noqa: E402
from tests.analysis.compare.quantised.layers import SATURATES, saturates  # noqa: E402

RNG = np.random.default_rng(4)
PICTURES = [RNG.standard_normal((1, 8, 8, 8)).astype(np.float32) for _ in range(3)]


class Pictures(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, count: int = 3) -> None:
        self.rest = iter(PICTURES[:count])

    def get_next(self) -> dict[str, Any] | None:
        picture = next(self.rest, None)
        return None if picture is None else {"x": picture}


def network(outlier: float = 0.0) -> Any:
    """Convolutions with a connection around two of them, and an activation that no range can take in."""
    rng = np.random.default_rng(0)
    weights = {f"w{number}": rng.uniform(-0.2, 0.2, (8, 8, 3, 3)).astype(np.float32) for number in range(5)}
    weights["w3"][2, 0, 1, 1] += outlier
    nodes = []

    def conv(number: int, x: str) -> str:
        nodes.append(helper.make_node("Conv", [x, f"w{number}"], [f"c{number}"], f"conv{number}", pads=[1] * 4))
        return f"c{number}"

    def tanh(x: str) -> str:
        nodes.append(helper.make_node("Tanh", [x], [f"{x}_t"], f"{x}_tanh"))
        return f"{x}_t"

    first = tanh(conv(0, "x"))
    second = conv(2, tanh(conv(1, first)))
    nodes.append(helper.make_node("Add", [first, second], ["sum"], "add"))
    conv(4, tanh(conv(3, "sum")))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8, 8, 8]) for name in ("x", "c4"))
    constants = [numpy_helper.from_array(weight, name) for name, weight in weights.items()]
    graph = helper.make_graph(nodes, "net", [x], [y], constants)
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def compared(folder: Path, model: Any, form: Any, per_channel: bool = False) -> Comparison:
    """Of the model that the quantiser makes, beside float.onnx and int8.onnx in the folder."""
    float_path, int8_path = folder / "float.onnx", folder / "int8.onnx"
    float_path.write_bytes(model.SerializeToString())
    quantize_static(
        str(float_path), str(int8_path), Pictures(), quant_format=form, activation_type=QuantType.QUInt8,
        per_channel=per_channel,
    )  # fmt: skip
    for path in (float_path, int8_path):
        target = folder / path.stem
        target.mkdir()
        with msdump.acl.dump({"dump": {"dump_path": str(target), "dump_list": [{}], "dump_mode": "all"}}):
            msdump.acl.load(str(path))(PICTURES[0])
    return compare_dumps(folder / "int8", folder / "float")


@pytest.mark.parametrize("per_channel", [False, True])
def test_noise_is_that_of_the_loss_debugger(per_channel: bool, tmp_path: Path) -> None:
    found = compared(tmp_path, network(1.0), QuantFormat.QDQ, per_channel).quantised
    assert found is not None
    matching = loss.create_weight_matching(str(tmp_path / "float.onnx"), str(tmp_path / "int8.onnx"))
    weights = loss.compute_weight_error(matching)
    mine = {one.operator.op_name.replace("conv", "w"): one.weight.sqnr_db for one in found.ranking if one.weight}
    assert mine == pytest.approx(weights, abs=1e-3)
    assert sorted(mine, key=mine.__getitem__)[:3] == sorted(weights, key=weights.__getitem__)[:3]
    activations = {}
    for name in ("float", "int8"):
        loss.modify_model_output_intermediate_tensors(
            str(tmp_path / f"{name}.onnx"), str(tmp_path / f"{name}_all.onnx")
        )
        activations[name] = loss.collect_activations(str(tmp_path / f"{name}_all.onnx"), Pictures(1))
    errors = loss.compute_activation_error(loss.create_activation_matching(activations["int8"], activations["float"]))
    rounded = {
        one.operator.op_name.removesuffix("_QuantizeLinear"): one
        for one in found.ranking
        if one.activation is not None and one.error is not None
    }
    assert set(rounded) == set(errors)
    own = {name: errors[name]["qdq_err"] for name in rounded}
    across = {name: errors[name]["xmodel_err"] for name in rounded}
    assert {name: one.activation.sqnr_db for name, one in rounded.items()} == pytest.approx(own, abs=1e-3)
    totals = {name: -20 * np.log10(one.error) for name, one in rounded.items()}
    assert totals == pytest.approx(across, abs=1e-3)
    assert sorted(totals, key=totals.__getitem__)[:3] == sorted(across, key=across.__getitem__)[:3]


@pytest.mark.parametrize("form", [QuantFormat.QDQ, QuantFormat.QOperator])
def test_a_bias_that_is_rounded_to_nothing_does_no_harm(form: Any, tmp_path: Path) -> None:
    """Its scale is that of the weight and the data, beside whose products it is small."""
    model = network()
    next(node for node in model.graph.node if node.name == "conv4").input.append("b4")
    bias = np.linspace(-1e-6, 1e-6, 8).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(bias, "b4"))
    found = compared(tmp_path, model, form)
    assert found.is_agreeing
    (result,) = [one for one in found.operators if one.pair.mine.op_name in ("conv4", "conv4_quant")]
    (read,) = [one for one in result.inputs if one.slot == Slot(2)]
    assert read.error == 1 and read.status == AGREES


@pytest.mark.parametrize("form", [QuantFormat.QDQ, QuantFormat.QOperator])
def test_what_the_quantiser_makes_agrees_unless_a_weight_has_an_outlier(form: Any, tmp_path: Path) -> None:
    if form == QuantFormat.QOperator and saturates():
        pytest.skip(SATURATES)
    healthy, bad = tmp_path / "healthy", tmp_path / "bad"
    healthy.mkdir()
    bad.mkdir()
    assert compared(healthy, network(), form).is_agreeing
    found = compared(bad, network(12.0), form)
    assert found.quantised is not None and found.quantised.finding is not None
    assert "conv3" in found.quantised.finding.operator.op_name
    assert found.quantised.finding.weight is not None and found.quantised.finding.weight.channel == 2
    assert not any(step.only_mine or step.only_golden for step in found.steps)
