"""Dtypes of parameters and tensors change in place, as in MindSpore 2.7.0 on a CPU, where each case was run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import msdump.mindspore as ms
from msdump.errors import DtypeError
from msdump.mindspore import Parameter, Tensor, nn
from tests.mindspore.conftest import execution_order

NAMES = ("bool_", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64")
X = np.array([[1.0, 2.0, 3.0]], np.float32)
HALF = X.astype(np.float16)


class Scaled(nn.Cell):
    """Weights times the input. `changes`: the call itself sets the dtype of the weights."""

    def __init__(self, changes: bool = False) -> None:
        super().__init__()
        self.w = Parameter(Tensor(X), name="w")
        self.changes = changes

    def construct(self, x: Tensor) -> Any:
        if self.changes:
            self.w.set_dtype(ms.float16)
        return self.w * x


def half(cell: Any) -> Any:
    """The network with weights of float16, as public programs make one."""
    for _, parameter in cell.parameters_and_names():
        parameter.set_dtype(ms.float16)
    return cell


@pytest.mark.parametrize("kind", [Tensor, lambda data: Parameter(data, name="w")], ids=["tensor", "parameter"])
@given(
    data=arrays.arrays(np.float32, st.tuples(st.integers(1, 3), st.integers(1, 3)), elements=st.integers(0, 100)),
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3),
)
def test_the_data_are_those_of_a_tensor_made_in_that_dtype(
    kind: Callable[[Any], Tensor], data: Any, names: list[str]
) -> None:
    one, expected = kind(Tensor(data)), Tensor(data)
    for name in names:
        dtype, expected = getattr(ms, name), Tensor(expected, getattr(ms, name))
        assert one.set_dtype(dtype) == dtype == one.dtype
        assert one.array.dtype == expected.array.dtype and np.array_equal(one.array, expected.array)
    assert one.shape == data.shape


@pytest.mark.parametrize("kind", [Tensor, lambda data: Parameter(data, name="w")], ids=["tensor", "parameter"])
def test_what_is_no_dtype_is_refused_and_changes_nothing(kind: Callable[[Any], Tensor]) -> None:
    one = kind(X)
    for wrong in (None, "float31", [ms.float16]):
        with pytest.raises(DtypeError):
            one.set_dtype(wrong)
    assert one.dtype == ms.float32
    with pytest.raises(DtypeError, match=r"expected one such as mindspore.float32, got None"):
        ms.ops.cast(Tensor(X), None)


def test_before_the_first_compile_and_after_it(either_mode: int) -> None:
    net = half(Scaled())
    assert net(Tensor(HALF)).dtype == ms.float16
    net.w.set_dtype(ms.float32)
    assert net(Tensor(X)).dtype == ms.float32 and net(Tensor(HALF)).dtype == ms.float32
    half(net)
    assert net(Tensor(HALF)).asnumpy().tolist() == [[1, 4, 9]]
    assert net.w.set_data(Tensor(X * 2)) is net.w and net.w.dtype == ms.float16
    assert net(Tensor(HALF)).asnumpy().tolist() == [[2, 8, 18]]
    gradient = ms.grad(net, None, net.trainable_params())(Tensor(HALF))[0]
    assert gradient.dtype == ms.float16 and gradient.asnumpy().tolist() == HALF.tolist()


LAYERS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "dense": (lambda: nn.Dense(3, 2), (2, 3)),
    "convolution": (lambda: nn.Conv2d(3, 4, 3, has_bias=True), (2, 3, 8, 8)),
    "batch normalisation": (lambda: nn.BatchNorm2d(3), (2, 3, 8, 8)),
    "layer normalisation": (lambda: nn.LayerNorm((3,)), (2, 3)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_network_of_half_the_bytes_computes_and_has_gradients(name: str, either_mode: int) -> None:
    make, shape = LAYERS[name]
    net = half(make())
    x = Tensor(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float16).reshape(shape))

    def loss(x: Tensor) -> Any:
        result = net(x)
        return (result[0] if isinstance(result, tuple) else result).sum()

    assert loss(x).dtype == ms.float16
    gradients = ms.grad(loss, None, ms.ParameterTuple(net.trainable_params()))(x)
    assert {gradient.dtype for gradient in gradients} == {ms.float16}


def test_states_of_an_optimizer_have_the_dtype_that_weights_had_when_it_was_made(either_mode: int) -> None:
    net = Scaled()
    before = nn.Momentum(net.trainable_params(), 0.5, 0.5)
    half(net)
    after = nn.Momentum(net.trainable_params(), 0.5, 0.5)
    assert (before.moments[0].dtype, after.moments[0].dtype) == (ms.float32, ms.float16)
    gradients = (Tensor(HALF),)
    after(gradients)
    assert net.w.dtype == ms.float16 and net.w.asnumpy().tolist() == (HALF / 2).tolist()
    with pytest.raises(TypeError, match=r"ApplyMomentum.*expected operands of one dtype, got float16\[1, 3\], float32"):
        before(gradients)
    assert net.w.asnumpy().tolist() == (HALF / 2).tolist()


def test_weights_that_are_loaded_get_the_dtype_of_the_network() -> None:
    net = half(Scaled())
    assert ms.load_param_into_net(net, {"w": Parameter(X * 3, name="w")}) == ([], [])
    assert net.w.dtype == ms.float16 and net.w.asnumpy().tolist() == (HALF * 3).tolist()
    copy = net.w.clone()
    net.w.set_dtype(ms.float32)
    assert copy.dtype == ms.float16


def test_a_network_that_lowers_its_operands_keeps_its_weights() -> None:
    net = Scaled().to_float(ms.float16)
    assert net(Tensor(X)).dtype == ms.float16 and net.w.dtype == ms.float32


def test_a_graph_refuses_it_and_a_pynative_call_does_it(either_mode: int) -> None:
    net = Scaled(changes=True)
    if either_mode == ms.GRAPH_MODE:
        with pytest.raises(RuntimeError, match=r"Parameter w: expected its shape and dtype to stay while a graph runs"):
            net(Tensor(HALF))
        assert net.w.dtype == ms.float32
    else:
        assert net(Tensor(HALF)).dtype == net.w.dtype == ms.float16


def test_a_step_that_is_dumped_does_it_as_one_that_is_not(sync_dump: Callable[..., Path]) -> None:
    root = sync_dump()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    net = Scaled(changes=True)
    assert net(Tensor(HALF)).asnumpy().tolist() == [[1, 4, 9]]
    (weight,) = root.rglob("Parameter.w.*.npy")
    assert np.load(weight).dtype == np.float16 and np.load(weight).tolist() == HALF.tolist()


class Mask(nn.Cell):
    """A comparison whose result counts as numbers."""

    def construct(self, x: Tensor) -> Any:
        mask = x == 2
        mask.set_dtype(ms.float32)
        return mask + 0.5


def test_a_result_in_a_program_is_of_the_other_dtype_from_there_on(either_mode: int) -> None:
    assert Mask()(Tensor(X)).asnumpy().tolist() == [[0.5, 1.5, 0.5]]
    assert ms.grad(lambda x: (Mask()(x) * x).sum())(Tensor(X)).asnumpy().tolist() == [[0.5, 1.5, 0.5]]


def test_a_dump_shows_the_operator_that_makes_it(either_mode: int, sync_dump: Callable[..., Path]) -> None:
    root = sync_dump()
    assert Mask()(Tensor(X)).asnumpy().tolist() == [[0.5, 1.5, 0.5]]
    assert [name.rpartition("/")[2] for name in execution_order(root)] == ["Equal", "Cast", "Add"]


def test_an_array_that_a_tensor_was_made_of_stays_as_it_is() -> None:
    array = X.copy()
    tensor = Tensor.from_numpy(array)
    tensor.set_dtype(ms.float16)
    tensor[0, 0] = 7
    assert array.tolist() == X.tolist() and tensor.asnumpy().tolist() == [[7, 2, 3]]
