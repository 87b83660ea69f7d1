"""Mixed precision: which operators are lowered, where casts stand, and what scales a loss."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import msdump
import msdump.mindspore as ms
from msdump.mindspore import Parameter, Tensor, amp, nn, ops
from msdump.process import sessions
from tests.mindspore.networks import graphs_of


class Tail(nn.Cell):
    """A dense layer, then operators that no list names, and one that the lists of `auto` raise."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(4, 4)
        self.norm = nn.LayerNorm((4,))
        self.scale = Parameter(Tensor(np.ones(4, np.float32)), name="scale")

    def construct(self, x: Tensor) -> Tensor:
        y = self.dense(x)
        return self.norm(ops.exp(y) * self.scale)


def dtypes_of(net: nn.Cell) -> dict[str, set[str]]:
    """Dtypes of the float outputs in a cell's only graph, by op type."""
    (graph,) = graphs_of(net)
    dtypes: dict[str, set[str]] = {}
    for node in graph.nodes:
        dtypes.setdefault(node.op_type, set()).add(node.outputs[0].type.dtype)
    return dtypes


def traced(net: nn.Cell) -> tuple[str, dict[str, set[str]]]:
    ms.set_context(mode=ms.GRAPH_MODE)
    result = net(Tensor(np.ones((2, 4), np.float32)))
    return str(result.dtype), dtypes_of(net)


def test_o1_lowers_the_white_list_and_casts_back_once() -> None:
    dtype, by_type = traced(amp.auto_mixed_precision(Tail(), "O1"))
    assert dtype == "Float32"
    assert by_type["MatMul"] == by_type["BiasAdd"] == {"float16"}
    assert by_type["Exp"] == by_type["Mul"] == by_type["LayerNorm"] == {"float32"}
    net = amp.auto_mixed_precision(Tail(), "O1")
    net(Tensor(np.ones((2, 4), np.float32)))
    casts = [node for node in graphs_of(net)[0].nodes if node.op_type == "Cast"]
    assert len(casts) == 4, "input, weight and bias on the way in, the result of the layer on the way out"


def test_o2_keeps_the_black_list_and_o3_keeps_nothing() -> None:
    dtype, by_type = traced(amp.auto_mixed_precision(Tail(), "O2"))
    assert (dtype, by_type["LayerNorm"], by_type["Exp"]) == ("Float32", {"float32"}, {"float16"})
    dtype, by_type = traced(amp.auto_mixed_precision(Tail(), "O3", ms.bfloat16))
    assert (dtype, by_type["LayerNorm"], by_type["MatMul"]) == ("Float32", {"bfloat16"}, {"bfloat16"})


def test_wrapped_cells_stand_in_scopes_and_parameters_keep_their_names() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = amp.auto_mixed_precision(Tail(), "O2")
    net(Tensor(np.ones((2, 4), np.float32)))
    scopes = {node.scope for node in graphs_of(net)[0].nodes}
    assert "Default/_backbone-Tail/norm-_OutputTo16/_backbone-LayerNorm" in scopes
    assert [parameter.name for parameter in net.get_parameters()] == [
        "scale", "dense.weight", "dense.bias", "norm.gamma", "norm.beta",
    ]  # fmt: skip


def test_auto_goes_by_operator() -> None:
    dtype, by_type = traced(amp.auto_mixed_precision(Tail(), "auto"))
    assert by_type["MatMul"] == {"float16"} and by_type["Exp"] == by_type["LayerNorm"] == {"float32"}
    assert dtype == "Float32"


class Casting(nn.Cell):
    """A cell that leaves its own dtype.   Source of the expected dtypes: real 2.0 and 2.7."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = Parameter(Tensor(np.ones(3, np.float32)), name="weight")
        self.constant = Tensor(np.ones(3, np.float32))

    def construct(self, x: Tensor) -> Any:
        y = ops.cast(x, ms.float32)
        return x, y * 2.0, y * self.weight, y + self.constant, x + self.constant, x * self.weight, ops.exp(y)


def test_to_float_casts_what_enters_a_cell_of_a_graph_and_operands_in_pynative() -> None:
    x = Tensor(np.ones(3, np.float32))
    ms.set_context(mode=ms.GRAPH_MODE)
    full, half = "Float32", "Float16"
    in_graph = [str(tensor.dtype) for tensor in Casting().to_float(ms.float16)(x)]
    assert in_graph == [half, full, full, full, half, half, full]
    ms.set_context(mode=ms.PYNATIVE_MODE)
    one_by_one = [str(tensor.dtype) for tensor in Casting().to_float(ms.float16)(x)]
    assert one_by_one == [full, *[half] * 6]


@given(values=st.lists(st.sampled_from([1.0, -2.5, float("inf"), float("nan")]), min_size=1, max_size=6))
def test_all_finite_is_numpy_s(values: list[float]) -> None:
    rows = np.array(values, np.float32)
    assert bool(amp.all_finite((Tensor(rows), (Tensor(np.ones(2, np.float16)),)))) == bool(np.isfinite(rows).all())
    assert bool(amp.all_finite([Tensor(rows)], amp.init_status())) == bool(np.isfinite(rows).all())


@given(steps=st.lists(st.booleans(), max_size=12), window=st.integers(1, 3))
def test_a_dynamic_scaler_follows_its_rule(steps: list[bool], window: int) -> None:
    scaler, scale, counter = amp.DynamicLossScaler(2.0**4, 2, window), 16.0, 0
    for is_finite in steps:
        scaler.adjust(Tensor(is_finite))
        if is_finite:
            scale = scale * 2 if counter == window - 1 else scale
            counter = (counter + 1) % window
        else:
            scale, counter = max(1.0, scale / 2), 0
        assert (float(scaler.scale_value), int(scaler.counter)) == (scale, counter)


def test_a_scaler_works_inside_a_graph() -> None:
    scaler = amp.DynamicLossScaler(2.0**10, 2, 1)

    @ms.jit
    def step(x: Tensor) -> Tensor:
        scaled = scaler.scale(x)
        scaler.adjust(amp.all_finite((scaled,)))
        return scaled

    assert step(Tensor([2.0])).asnumpy().tolist() == [2048.0]
    assert float(scaler.scale_value) == 2048.0
    assert scaler.unscale((Tensor(np.array([4096.0], np.float16)),))[0].asnumpy().tolist() == [2.0]
    assert amp.StaticLossScaler(8).scale(Tensor([0.5])).asnumpy().tolist() == [4.0]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"level": "O9"}, ValueError, "level"),
        ({"level": 1}, TypeError, "must be a string"),
        ({"level": "auto"}, ValueError, "only support when `device_target` is GPU or Ascend"),
        ({"keep_bn": True}, ValueError, "Unsupported arg 'keep_bn'"),
        ({"loss_scale_manager": 128}, TypeError, "LossScaleManager"),
        ({"boost_level": "O7"}, ValueError, "boost_level"),
    ],
)
def test_build_train_network_is_checked(options: dict[str, Any], error: type[Exception], text: str) -> None:
    net = nn.Dense(2, 2)
    with pytest.raises(error, match=re.escape(text)):
        amp.build_train_network(net, nn.Momentum(net.trainable_params(), 0.1, 0.9), nn.MSELoss(), **options)


def test_a_loss_in_a_lowered_network_is_float32(either_mode: int) -> None:
    net = nn.Dense(4, 2)
    manager = amp.FixedLossScaleManager(8, drop_overflow_update=False)
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9, loss_scale=8.0)
    step = amp.build_train_network(net, optimizer, nn.MSELoss(), "O3", loss_scale_manager=manager)
    losses = [step(Tensor(np.ones((3, 4), np.float32)), Tensor(np.ones((3, 2), np.float32))) for _ in range(5)]
    assert losses[0].dtype == ms.float32 and float(losses[-1]) < float(losses[0])


def test_a_dynamic_manager_counts_as_mindspore_s() -> None:
    manager = amp.DynamicLossScaleManager(16, 2, 2)
    scales = []
    for overflow in (False, False, False, True, False, False):
        manager.update_loss_scale(overflow)
        scales.append(manager.get_loss_scale())
    assert scales == [16, 32, 32, 16.0, 16.0, 32.0]


def test_numbers_are_not_rounded_where_a_cell_left_its_dtype() -> None:
    class Third(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            return ops.cast(x, ms.float32) * (1 / 3)

    ms.set_context(mode=ms.GRAPH_MODE)
    result = Third().to_float(ms.float16)(Tensor(np.ones(1, np.float32)))
    assert result.asnumpy().tolist() == [float(np.float32(1 / 3))]


def test_mindspore_amp_is_the_module_with_the_scalers() -> None:
    assert ms.amp is amp and ms.amp is not ms.train.amp


class OwnStep(nn.TrainOneStepWithLossScaleCell):
    """A training step as scripts write it."""

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        status, scale = self.start_overflow_check(loss, self.scale_sense)
        sens = ops.ones_like(loss) * ops.cast(scale, loss.dtype)
        gradients = self.grad(self.network, self.weights)(*inputs, sens)
        gradients = tuple(gradient / scale for gradient in gradients)
        overflow = self.get_overflow_status(status, gradients)
        overflow = self.process_loss_scale(overflow)
        if not overflow:
            self.optimizer(gradients)
        return loss, overflow


def test_a_subclass_runs_its_own_step(either_mode: int) -> None:
    net = nn.Dense(2, 1)
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    step = OwnStep(nn.WithLossCell(net, nn.MSELoss()), optimizer, nn.DynamicLossScaleUpdateCell(16, 2, 2))
    good, bad = (Tensor(np.full((1, 2), value, np.float32)) for value in (1.0, np.inf))
    label = Tensor(np.zeros((1, 1), np.float32))
    seen = []
    for x in (good, good, bad, good, good):
        before = net.weight.asnumpy().copy()
        _, overflow = step(x, label)
        assert bool(overflow) == bool((net.weight.asnumpy() == before).all())
        seen.append((bool(overflow), float(step.scale_sense)))
    # Source: the rule of MindSpore's cell, with a window of 2.
    assert seen == [(False, 16.0), (False, 32.0), (True, 16.0), (False, 16.0), (False, 32.0)]
    step.set_sense_scale(Tensor(np.float32(4)))
    assert float(step.scale_sense) == 4.0
    with pytest.raises(TypeError, match="must be Cell or Tensor"):
        nn.TrainOneStepWithLossScaleCell(net, optimizer, 16.0)


def test_a_step_that_the_loss_scale_skips_is_no_finding(sync_dump: Callable[..., Path]) -> None:
    root = sync_dump()
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.Dense(4, 3).to_float(ms.float16)
    manager = nn.DynamicLossScaleUpdateCell(2**24, 2**16, 100)
    network = nn.WithLossCell(net, nn.MSELoss())
    step = nn.TrainOneStepWithLossScaleCell(network, nn.SGD(net.trainable_params(), 0.01), manager)
    x, y = Tensor(np.ones((8, 4), np.float32)), Tensor(np.ones((8, 3), np.float32))
    assert [bool(step(x, y)[1]) for _ in range(2)] == [True, False]
    sessions.close_all()
    report = msdump.find_nan(root)
    assert report.first is None and [result.step.iteration for result in report.skipped] == [0]


def test_custom_lists_take_cells_and_operators() -> None:
    _, by_type = traced(amp.custom_mixed_precision(Tail(), white_list=[ops.Exp]))
    assert by_type["Exp"] == {"float16"} and by_type["MatMul"] == {"float32"}
    _, by_type = traced(amp.custom_mixed_precision(Tail(), black_list=[nn.Dense]))
    assert by_type["MatMul"] == {"float32"} and by_type["LayerNorm"] == {"float16"}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, ValueError),
        ({"white_list": [nn.Dense], "black_list": [nn.Dense]}, ValueError),
        ({"white_list": (nn.Dense,)}, TypeError),
        ({"black_list": [ops.Exp]}, TypeError),
        ({"white_list": [nn.Dense], "dtype": ms.float32}, ValueError),
    ],
)
def test_custom_lists_are_checked(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        amp.custom_mixed_precision(Tail(), **options)
