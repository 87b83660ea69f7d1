"""Names of Cell and Parameter for several devices: settings are checked and kept, what would cut is an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from msdump import mindspore as ms
from msdump.mindspore import nn


class Network(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.SequentialCell(nn.Dense(3, 2), nn.ReLU())
        self.head = nn.Dense(2, 1, has_bias=False)

    def construct(self, x: Any) -> Any:
        return self.head(self.block(x))


X = ms.Tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))


@pytest.fixture(autouse=True)
def default_settings() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.reset_auto_parallel_context()


def test_apply_visits_children_before_parents() -> None:
    visited: list[str] = []
    net = Network()
    assert net.apply(lambda cell: visited.append(type(cell).__name__)) is net
    assert visited == ["Dense", "ReLU", "SequentialCell", "Dense", "Network"]


def test_a_state_goes_from_one_network_to_another() -> None:
    net, other = Network(), Network()
    state = net.state_dict()
    assert list(state) == ["block.0.weight", "block.0.bias", "head.weight"]
    assert net.state_dict(keep_vars=True)["head.weight"] is net.head.weight
    assert list(net.head.state_dict(prefix="last.")) == ["last.weight"]
    result = other.load_state_dict(state)
    assert not result.missing_keys and not result.unexpected_keys
    np.testing.assert_array_equal(net(X).asnumpy(), other(X).asnumpy())
    net.head.weight.set_data(ms.Tensor(np.zeros((1, 2), np.float32)))
    assert state["head.weight"].asnumpy().any(), "a state keeps the values of its time"


def test_a_state_of_other_names_is_refused() -> None:
    net = Network()
    state = {"head.weight": net.head.weight, "tail": X}
    with pytest.raises(RuntimeError, match=r"got none of \['block.0.weight', 'block.0.bias'\] and unknown \['tail'\]"):
        net.load_state_dict(state)
    assert net.load_state_dict(state, strict=False).unexpected_keys == ["tail"]


def test_what_is_left_out_says_what_to_use() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'run_construct'. Call the cell, or its construct"):
        Network().run_construct((X,), {})
    assert all(old is new for old, new in Network().init_parameters_data().items())


def test_settings_are_kept() -> None:
    net = Network().set_comm_fusion(2)
    assert [parameter.comm_fusion for parameter in net.get_parameters()] == [2, 2, 2]
    net.cell_type = "second-order"
    net.set_inputs(X)
    assert net.get_inputs() == (X,)
    net.place("MS_WORKER", 0)
    assert Network().cell_type is None, "each cell has its own"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bprop_debug", 1),
        ("pipeline_stage", -1),
    ],
)
def test_settings_of_a_cell_take_what_they_are_for(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"Network.{name}: expected "):
        setattr(Network(), name, value)


def test_what_one_device_cannot_do_is_an_error() -> None:
    net = Network()
    with pytest.raises(ValueError, match=r"expected role 'MS_WORKER' and rank_id 0, got 'MS_WORKER' and 1"):
        net.place("MS_WORKER", 1)
    with pytest.raises(RuntimeError, match=r"no server of parameters"):
        net.set_param_ps()


def test_sharding_needs_automatic_parallelism_and_cuts_nothing() -> None:
    net = Network()
    with pytest.raises(AssertionError, match=r"Cell shard only supports auto parallel under PyNative mode"):
        net.shard(((1, 1),))
    ms.set_auto_parallel_context(parallel_mode="auto_parallel")
    assert net.shard(((1, 1),)) is net
    with pytest.raises(ValueError, match=r"expected a strategy of ones, got \(\(2, 1\),\)"):
        net.shard(((2, 1),))


def test_settings_of_a_parameter_are_checked_and_kept() -> None:
    weight = ms.Parameter(X, "weight", layerwise_parallel=True)
    assert weight.layerwise_parallel and weight.parallel_optimizer and not weight.sliced and weight.key == -1
    weight.comm_fusion = 3
    weight.add_pipeline_stage(1)
    assert (weight.comm_fusion, weight.pipeline_stages) == (3, [1])
    assert weight.init_data(set_sliced=True) is weight and weight.sliced
    weight.data_sync()
    for name, value in {"requires_grad": 1, "comm_fusion": -1, "cache_shape": 3, "layerwise_parallel": None}.items():
        with pytest.raises(TypeError, match=rf"Parameter.{name}: expected .*, got"):
            setattr(weight, name, value)
    with pytest.raises(ValueError, match=r"expected layout=None"):
        weight.init_data(layout=(1, 2))


def test_a_network_that_waits_for_a_checkpoint_has_values() -> None:
    net = Network()
    net.load_state_dict(Network().state_dict())
    assert net(X).shape == (2, 1)
    assert (ms.long, ms.cfloat, ms.cdouble) == (ms.int64, ms.complex64, ms.complex128)
