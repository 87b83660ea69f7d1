"""Operands of eager calls: their arrays, and tensors that cannot be dumped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from msdump.analysis.steps import Slot, read_steps  # noqa: E402
from msdump.frontends.torch.eager.operands import CallOperands  # noqa: E402
from msdump.frontends.torch.eager.signatures import signature_of  # noqa: E402
from msdump.frontends.torch.eager.stage import Call, Named  # noqa: E402
from tests.frontends.torch.eager.test_watch import both_engines, config, names, pytestmark  # noqa: E402, F401


def call_of(operands: CallOperands, function: Any, *args: Any) -> Call:
    signature = signature_of(function)
    tensors = signature.tensors(args, {})
    inputs = tuple(operands.info(each.tensor, ("op", each.name)) for each in tensors)
    return Call(signature, "Default", Named(0, "op"), tensors, dict, inputs)


@pytest.mark.parametrize("reads_inputs", [True, False])
def test_inputs_that_a_call_overwrites_are_copied_before(reads_inputs: bool) -> None:
    operands = CallOperands(lambda reason, name="": None, keeps=False)
    operands.reads_inputs = reads_inputs
    x, y = torch.ones(3), torch.full((3,), 2.0)
    call = call_of(operands, torch.ops.aten.add_.Tensor, x, y)
    call.copies = operands.copies(call, call.tensors)
    assert set(call.copies) == ({0} if reads_inputs else set())
    x.add_(y)
    operands.note_writes(call.tensors)
    operands.read(call)
    operands.write(call, [((), x)])
    assert [array.tolist() for array in call.read] == [[1.0 if reads_inputs else 3.0] * 3, [2.0] * 3]
    assert [array.tolist() for array in call.written] == [[3.0] * 3]
    before, after = call.inputs[0].key, call.outputs[0].key
    assert (before.value_id, before.version + 1) == (after.value_id, after.version)


def test_tensors_that_cannot_be_dumped_are_counted() -> None:
    counts: list[tuple[str, str]] = []
    operands = CallOperands(lambda reason, name="": counts.append((reason, name)), keeps=False)
    assert operands.is_readable(torch.ones(2), "op") and not counts
    assert not operands.is_readable(torch.ones(2, device="meta"), "op")
    assert counts == [("tensor on the meta device", "op")]


def test_a_tensor_with_a_name_has_one_key_wherever_it_is_read_first() -> None:
    keys = []
    for origin in (("first", "self"), ("second", "other")):
        operands = CallOperands(lambda reason, name="": None, keeps=False)
        weight = torch.ones(2)
        operands.names.set(weight, "weight")
        operands.info(torch.ones(3), origin)
        keys.append(operands.info(weight, origin).key)
    assert keys[0] == keys[1]


@both_engines
def test_what_cannot_be_shown_is_counted(is_sync: bool, tmp_path: Path) -> None:
    with msdump.watch(config=config(tmp_path, is_sync)) as watch:
        (torch.eye(3).to_sparse() * 2).to_dense().sin()
        torch.ones(3, device="meta") + 1
        torch.func.vmap(lambda row: row.cos().sum())(torch.ones(2, 3))
        torch.func.jacrev(lambda x: x.tanh())(torch.ones(3))
        with torch.inference_mode():
            torch.ones(3).tan()
    report = watch.report()
    assert report is not None and not report.error
    assert {"sparse_coo tensor", "tensor on the meta device"} <= set(report.skipped)
    found = names(tmp_path, 0) | names(tmp_path, 1)
    assert {f"aten.{name}.default-op0" for name in ("sin", "cos", "tanh", "tan")} <= found


@both_engines
def test_codes_are_dumped_as_the_numbers_that_they_mean(is_sync: bool, tmp_path: Path) -> None:
    with msdump.watch(config=config(tmp_path, is_sync)) as watch:
        x = torch.tensor([[0.24, -0.31], [5.0, 0.1]])
        codes = torch.quantize_per_tensor(x, 0.1, 3, torch.qint8)
        torch.quantize_per_channel(x, torch.tensor([0.1, 0.5]), torch.zeros(2), 1, torch.quint8).dequantize()
        codes.t().dequantize()
    report = watch.report()
    assert report is not None and not report.error and "quantized tensor" not in report.skipped
    (step,) = (step for step in read_steps(msdump.open(tmp_path)) if len(step.operators) > 3)
    made = {operator.op_type.replace(".", "_"): operator for operator in step.operators}
    numbers = made["aten_quantize_per_tensor_default"].outputs[Slot(0)]
    assert numbers.true_dtype == "float32"
    assert numbers.load() == pytest.approx(np.array([[0.2, -0.3], [5.0, 0.1]]), abs=1e-6)
    assert made["aten_t_default"].inputs[Slot(0)].load() == pytest.approx(numbers.load())
    by_channel = made["aten_quantize_per_channel_default"].outputs[Slot(0)].load()
    assert by_channel == pytest.approx(np.array([[0.2, 0.0], [5.0, 0.0]]), abs=1e-6)


@both_engines
def test_memory_may_be_freed_behind_a_tensor(is_sync: bool, tmp_path: Path) -> None:
    with msdump.watch(config=config(tmp_path, is_sync)):
        x = torch.full((1000,), 2.0)
        y = x * 3
        y.untyped_storage().resize_(0)
        del x
        torch.zeros(1000)
    (product,) = (
        tensor for tensor in msdump.open(tmp_path).tensors() if "mul" in tensor.op_name and tensor.io == "output"
    )
    assert (product.load() == 6).all()


def test_what_is_skipped_is_named_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "msdump.skipped"), msdump.watch(config=config(tmp_path, True)):
        torch.eye(2).to_sparse()
    assert [one for one in caplog.messages if one.endswith(": sparse_coo tensor") and "to_sparse" in one]
