"""Tensor: dtypes, members, operators, text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import msdump.mindspore as ms
from msdump.errors import DtypeError, GraphError
from msdump.mindspore import Parameter, ParameterTuple, Tensor, nn
from msdump.mindspore.common.dtype import dtype_name
from msdump.mindspore.common.initializer import initializer
from msdump.tensors.arrays import Array

FEW = settings(max_examples=30, deadline=None)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (1, "Int64"),
        (1.0, "Float32"),
        (True, "Bool"),
        ([1, 2], "Int64"),
        ([1.5, 2], "Float32"),
        (np.zeros(2), "Float64"),
        (np.zeros(2, np.float16), "Float16"),
        (np.zeros(2, ">i4"), "Int32"),
    ],
)
def test_default_dtypes(data: Any, name: str) -> None:
    assert repr(Tensor(data).dtype) == name


def test_dtypes_are_asked_for() -> None:
    assert Tensor([1, 2], ms.float32).dtype == ms.float32
    assert Tensor(np.zeros(2), ms.bfloat16).asnumpy().dtype == np.float32
    assert Tensor(shape=(2, 3), dtype=ms.float32, init="ones").asnumpy().sum() == 6
    assert dtype_name(np.int32) == dtype_name(ms.int32) == dtype_name("int32") == "int32"
    with pytest.raises(DtypeError, match='Did you mean "float32"'):
        Tensor([1], "flaot32")
    with pytest.raises(TypeError, match="unsupported element"):
        Tensor(object())
    with pytest.raises(TypeError, match="rows of one length"):
        Tensor([[1], [1, 2]])


def test_numbers_go_into_float64_as_they_are() -> None:
    assert Tensor([1e300, 0.1], ms.float64).asnumpy().tolist() == [1e300, 0.1]
    assert Tensor([0.1]).asnumpy()[0] == np.float32(0.1)


def test_text_is_the_original_s() -> None:
    assert repr(Tensor([[1, 2], [3, 4]], ms.float32)) == (
        "Tensor(shape=[2, 2], dtype=Float32, value=\n"
        "[[ 1.00000000e+00,  2.00000000e+00],\n [ 3.00000000e+00,  4.00000000e+00]])"
    )
    assert repr(Tensor([1, 2])) == "Tensor(shape=[2], dtype=Int64, value= [1, 2])"
    assert repr(Tensor(1.5)) == "Tensor(shape=[], dtype=Float32, value= 1.5)"
    assert repr(Tensor(2.0)) == "Tensor(shape=[], dtype=Float32, value= 2)"
    assert str(Tensor([1.0, 2.0])) == "[1. 2.]"
    assert f"{Tensor(1.25):.1f}" == "1.2"
    text = "Parameter (name=w, shape=(2,), dtype=Float32, requires_grad=True)"
    assert repr(Parameter(Tensor([1.0, 2.0]), name="w")) == text


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "less": lambda a, b: a < b,
    "equal": lambda a, b: a == b,
    "greater_equal": lambda a, b: a >= b,
}
ARRAYS = npst.arrays(
    np.float32, npst.array_shapes(max_dims=3, max_side=4), elements=st.floats(-100, 100, width=32, allow_nan=False)
)


@FEW
@given(ARRAYS, st.sampled_from(sorted(BINARY)), st.floats(-10, 10, width=32))
def test_operators_equal_numpy(array: Array, name: str, scalar: float) -> None:
    function = BINARY[name]
    other = array[::-1].copy()
    np.testing.assert_array_equal(function(Tensor(array), Tensor(other)).asnumpy(), function(array, other))
    expected = function(array, np.float32(scalar))
    np.testing.assert_array_equal(function(Tensor(array), scalar).asnumpy(), expected)
    np.testing.assert_array_equal(
        function(np.float32(scalar), Tensor(array)).asnumpy(), function(np.float32(scalar), array)
    )


PROMOTED = [
    (Tensor([1]), 1.5, "Float32"),
    (Tensor([1.0], ms.float16), 1.5, "Float16"),
    (Tensor([1], ms.int8), 3, "Int8"),
    (Tensor([True]), 3, "Int64"),
    (Tensor([1.0], ms.float16), Tensor([1.0]), "Float32"),
    (Tensor([1], ms.int64), Tensor([1.0], ms.float16), "Float16"),
    (Tensor([1], ms.uint8), Tensor([1], ms.int8), "Int16"),
    (Tensor([1.0], ms.float16), Tensor([1.0], ms.bfloat16), "Float32"),
]


@pytest.mark.parametrize(
    ("first", "second", "name"), PROMOTED, ids=[str(case[2]) + str(i) for i, case in enumerate(PROMOTED)]
)
def test_operands_meet_in_the_original_s_dtype(first: Tensor, second: Any, name: str) -> None:
    assert repr((first * second).dtype) == name
    assert repr((second * first).dtype) == name


def test_integers_divide_as_floats() -> None:
    assert (Tensor([3]) / 2).asnumpy().tolist() == [1.5]
    assert (Tensor([7]) // 2).asnumpy().tolist() == [3]
    assert (Tensor([-7]) % 4).asnumpy().tolist() == [1]
    assert (Tensor([3.0]) ** 2).asnumpy().tolist() == [9.0]
    assert (2 ** Tensor([3.0])).asnumpy().tolist() == [8.0]


@FEW
@given(ARRAYS)
def test_members_equal_numpy(array: Array) -> None:
    tensor = Tensor(array)
    assert (tensor.shape, tensor.ndim, tensor.size) == (array.shape, array.ndim, array.size)
    np.testing.assert_allclose(tensor.mean().asnumpy(), array.mean(dtype=np.float64), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(tensor.max().asnumpy(), array.max())
    np.testing.assert_array_equal(tensor.argmax(0).asnumpy(), array.argmax(0))
    np.testing.assert_array_equal(tensor.reshape(-1).asnumpy(), array.reshape(-1))
    np.testing.assert_array_equal(tensor.T.asnumpy(), array.T)
    np.testing.assert_array_equal(tensor.expand_dims(0).squeeze(0).asnumpy(), array)
    np.testing.assert_array_equal(tensor.astype(ms.int32).asnumpy(), array.astype(np.int32))
    assert len(tensor) == array.shape[0] and len(list(tensor)) == array.shape[0]


def test_copies_do_not_share_and_from_numpy_does() -> None:
    array = np.zeros(2, np.float32)
    shared, copied = Tensor.from_numpy(array), Tensor(array)
    array[0] = 1
    assert shared.asnumpy()[0] == 1 and copied.asnumpy()[0] == 0
    with pytest.raises(TypeError, match=r"must be numpy\.ndarray"):
        Tensor.from_numpy([1])
    copied[1] = 5
    assert copied.asnumpy().tolist() == [0, 5]


def test_truth_needs_one_element() -> None:
    assert bool(Tensor([2.0])) and not bool(Tensor(0))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(Tensor([1, 2]))


def test_parameters_keep_their_memory() -> None:
    parameter = Parameter(Tensor([1.0, 2.0]), name="w")
    memory, before = parameter.memory.array, parameter.asnumpy()
    parameter.set_data(Tensor([3.0, 4.0]))
    assert parameter.memory.array is memory and memory.tolist() == [3.0, 4.0]
    assert before.tolist() == [1.0, 2.0]
    with pytest.raises(GraphError, match=r"expected data of shape \(2,\), got \(3,\)"):
        parameter.set_data(Tensor([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="expected data of shape"):
        parameter.set_data(1.0)
    with pytest.raises(TypeError, match="expected data of dtype float32, got complex64"):
        parameter.set_data(Tensor(np.array([1, 2], np.complex64)))
    parameter.set_data(Tensor([1, 2]))
    assert parameter.memory.array is memory and memory.tolist() == [1.0, 2.0]


def test_parameter_tuples_have_distinct_names() -> None:
    with pytest.raises(ValueError, match="already exists"):
        ParameterTuple([Parameter(1.0, name="a"), Parameter(2.0, name="a")])
    with pytest.raises(TypeError, match="should be 'Parameter'"):
        ParameterTuple([Tensor(1.0)])  # type: ignore[list-item]
    clones = ParameterTuple([Parameter(Tensor([1.0, 2.0]), name="a")]).clone("moments", "zeros")
    assert (clones[0].name, clones[0].asnumpy().tolist()) == ("moments.a", [0.0, 0.0])


INITIALIZERS: dict[str, tuple[float, float]] = {
    "normal": (0.0, 0.01),
    "truncatedNormal": (0.0, 0.01),
    "uniform": (0.0, 0.07 / 3**0.5),
    "xavier_uniform": (0.0, (2 / 300) ** 0.5),
    "he_normal": (0.0, (2 / 100) ** 0.5),
    "he_uniform": (0.0, (2 / 100) ** 0.5),
    "zeros": (0.0, 0.0),
    "ones": (1.0, 0.0),
}


@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializers_repeat_under_a_seed_and_have_their_moments(name: str) -> None:
    ms.set_seed(11)
    first = initializer(name, [200, 100]).asnumpy()
    ms.set_seed(11)
    np.testing.assert_array_equal(first, initializer(name, [200, 100]).asnumpy())
    mean, deviation = INITIALIZERS[name]
    assert first.mean() == pytest.approx(mean, abs=0.05 * deviation)
    assert first.std() == pytest.approx(deviation, rel=0.03)


def test_initializers_are_checked() -> None:
    with pytest.raises(ValueError, match='Did you mean "normal"'):
        initializer("norml", [2])
    with pytest.raises(ValueError, match="2 or more axes"):
        initializer("he_normal", [2])
    with pytest.raises(TypeError, match="'init' argument"):
        initializer(object(), [2])
    with pytest.raises(ValueError, match=r"should be \(3,\), but got \(2,\)"):
        nn.Dense(2, 3, bias_init=Tensor([1.0, 2.0]))


def test_clones_of_a_parameter_tuple_require_gradients_as_their_originals_do() -> None:
    """Source: MindSpore 2.0 and 2.7."""
    names = ("a", "b")
    parameters = [ms.Parameter(ms.Tensor([1.0]), name=name, requires_grad=name == "a") for name in names]
    clones = ms.ParameterTuple(parameters).clone("copy", init="zeros")
    assert [(clone.name, clone.requires_grad) for clone in clones] == [("copy.a", True), ("copy.b", False)]
    assert all(not clone.asnumpy().any() for clone in clones)


def test_parameters_of_numbers_have_the_dtypes_of_parameters() -> None:
    assert Parameter(5, name="p").dtype == ms.int32 and Parameter(5.0, name="p").dtype == ms.float32
    with pytest.raises(ValueError, match="can not be `bool`"):
        Parameter(True, name="p")


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_a_parameter_takes_on_another_shape(mode: int) -> None:
    class Doubled(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = Parameter(Tensor([1.0, 2.0]), name="w")

        def construct(self) -> Tensor:
            return self.w * 2

    ms.set_context(mode=mode)
    net = Doubled()
    assert net().asnumpy().tolist() == [2, 4]
    assert net.w.set_data(Tensor([[1.0, 2.0, 3.0]]), slice_shape=True) is net.w
    assert net.w.shape == (1, 3) and net().asnumpy().tolist() == [[2, 4, 6]]
    gradient = ms.grad(net, None, net.trainable_params())()
    assert gradient[0].asnumpy().tolist() == [[2, 2, 2]]
