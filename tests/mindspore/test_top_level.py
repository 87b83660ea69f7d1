"""Names of `mindspore` itself: sparse tensors, Jacobians, random states, settings that one device makes trivial."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import msdump.mindspore as ms
from msdump.mindspore import Tensor, nn
from msdump.tensors.arrays import Array

MATRICES = arrays.arrays(np.float32, (3, 4), elements=st.sampled_from([0.0, 0.0, 1.5, -2.0]))


def coo_of(matrix: Array) -> Any:
    places = np.argwhere(matrix).astype(np.int32)
    return ms.COOTensor(Tensor(places), Tensor(matrix[matrix != 0]), matrix.shape)


@settings(max_examples=20)
@given(matrix=MATRICES, other=MATRICES)
def test_sparse_tensors_are_their_dense_ones(matrix: Array, other: Array) -> None:
    coo = coo_of(matrix)
    csr = coo.to_csr()
    for sparse in (coo, csr, csr.to_coo(), coo.coalesce()):
        np.testing.assert_array_equal(sparse.to_dense().asnumpy(), matrix)
    np.testing.assert_array_equal(abs(matrix), coo.abs().to_dense().asnumpy())
    np.testing.assert_array_equal(coo.add(coo_of(other)).to_dense().asnumpy(), matrix + other)
    np.testing.assert_array_equal(csr.sum(1).asnumpy(), matrix.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(csr.mm(Tensor(other.T.copy())).asnumpy(), matrix @ other.T)
    assert csr.to_tuple()[0].shape == (4,) and csr.astype(ms.float64).dtype == ms.float64


def test_attributes_and_errors_of_sparse_tensors() -> None:
    coo = ms.COOTensor(Tensor([[0, 1], [1, 2]], ms.int32), Tensor([1, 2], ms.float32), (3, 4))
    assert (coo.shape, coo.size, coo.itemsize, coo.ndim, coo.dtype) == ((3, 4), 2, 4, 2, ms.float32)
    assert repr(coo).startswith("COOTensor(shape=[3, 4], dtype=Float32, indices=Tensor(shape=[2, 2]")
    row = ms.RowTensor(Tensor([1], ms.int32), Tensor([[1, 2]], ms.float32), (3, 2))
    assert row.to_dense().asnumpy().tolist() == [[0, 0], [1, 2], [0, 0]] and row.dense_shape == (3, 2)
    with pytest.raises(ValueError, match="one row for each value"):
        ms.COOTensor(Tensor([[0, 1]], ms.int32), Tensor([1, 2], ms.float32), (3, 4))
    with pytest.raises(TypeError, match="must be int16, int32 or int64"):
        ms.COOTensor(Tensor([[0.0, 1.0]]), Tensor([1.0]), (3, 4))
    with pytest.raises(ValueError, match="'indptr' of shape"):
        ms.CSRTensor(Tensor([0, 1], ms.int32), Tensor([0], ms.int32), Tensor([1.0]), (3, 4))


@settings(max_examples=10)
@given(data=arrays.arrays(np.float32, (2,), elements=st.sampled_from([-1.0, 0.5, 2.0])))
def test_jacobians_of_a_known_function(data: Array) -> None:
    x, y = Tensor(data), Tensor(data[::-1].copy())

    def cubes(a: Tensor, b: Tensor) -> Tensor:
        return a * a * a + b

    diagonal = np.diag(3 * data**2)
    first, second = ms.jacrev(cubes, (0, 1))(x, y)
    np.testing.assert_allclose(first.asnumpy(), diagonal)
    np.testing.assert_allclose(second.asnumpy(), np.eye(2))
    np.testing.assert_allclose(ms.jacfwd(cubes)(x, y).asnumpy(), diagonal)
    vector = Tensor(np.array([1.0, 2.0], np.float32))
    result, product = ms.jvp(cubes, (x, y), (vector, vector))
    np.testing.assert_allclose(product.asnumpy(), diagonal @ vector.asnumpy() + vector.asnumpy())
    result, vjp_fn = ms.vjp(cubes, x, y)
    np.testing.assert_allclose(vjp_fn(vector)[0].asnumpy(), vector.asnumpy() @ diagonal)
    np.testing.assert_allclose(result.asnumpy(), data**3 + data[::-1])


def test_jacobians_are_compiled_and_differentiated(either_mode: int) -> None:
    x, vector, count = Tensor([0.5, -2.0]), Tensor([1.0, 3.0]), Tensor(2, ms.int32)

    def power(a: Tensor) -> Tensor:
        n = count * 1
        while n > 0:
            a = a * a
            n = n - 1
        return a

    def product(a: Tensor) -> Tensor:
        return ms.jvp(power, a, vector)[1]

    cubes, squares = 4 * x.asnumpy() ** 3, 12 * x.asnumpy() ** 2
    np.testing.assert_allclose(ms.jit(product)(x).asnumpy(), cubes * vector.asnumpy())
    np.testing.assert_allclose(ms.jit(ms.jacrev(power))(x).asnumpy(), np.diag(cubes))
    np.testing.assert_allclose(ms.jit(ms.jacfwd(ms.grad(power)))(x).asnumpy(), np.diag(squares))
    np.testing.assert_allclose(ms.jit(ms.grad(product))(x).asnumpy(), squares * vector.asnumpy())


def test_products_come_as_a_tuple_and_only_of_tensors() -> None:
    x = Tensor([3.0])
    _, vjp_fn = ms.vjp(lambda a: a * a, x)
    assert [part.asnumpy().tolist() for part in vjp_fn(Tensor([1.0]))] == [[6]]
    for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
        ms.set_context(mode=mode)
        first, third = ms.grad(lambda a, n, b: a * n * b, (0, 1, 2))(x, 2, Tensor([5.0]))
        assert (first.asnumpy().tolist(), third.asnumpy().tolist()) == ([10], [6])
        assert ms.grad(lambda a, n: a * n, (0, 1))(x, 2).asnumpy().tolist() == [2]


def test_jacobians_of_several_results_and_of_one_with_more() -> None:
    x = Tensor([1.0, 2.0])
    both = ms.jacrev(lambda a: (a * 2.0, a.sum()))(x)
    assert [part.shape for part in both] == [(2, 2), (2,)]
    jacobian, aux = ms.jacrev(lambda a: (a * a, a + 1.0), has_aux=True)(x)
    assert jacobian.asnumpy().tolist() == [[2, 0], [0, 4]] and aux.asnumpy().tolist() == [2, 3]
    net = nn.Dense(2, 1)
    results, vjp_fn = ms.vjp(net, Tensor(np.ones((1, 2), np.float32)), weights=net.trainable_params())
    inputs, weights = vjp_fn(Tensor(np.ones(results.shape, np.float32)))
    np.testing.assert_array_equal(inputs[0].asnumpy(), net.weight.asnumpy())
    np.testing.assert_array_equal(weights[0].asnumpy(), np.ones((1, 2)))


def test_gradients_by_identifier() -> None:
    gradients = ((0, Tensor(1.0)), ("weight", Tensor(2.0)))
    assert float(ms.get_grad(gradients, 0)) == 1.0
    assert float(ms.get_grad(gradients, ms.Parameter(Tensor(0.0), name="weight"))) == 2.0
    with pytest.raises(RuntimeError, match="Can not find the gradient"):
        ms.get_grad(gradients, 7)


def test_random_states_come_back() -> None:
    ms.manual_seed(3)
    assert ms.initial_seed() == 3
    state = ms.get_rng_state()
    first = nn.Dense(3, 3, "normal").weight.asnumpy()
    ms.set_rng_state(state)
    np.testing.assert_array_equal(nn.Dense(3, 3, "normal").weight.asnumpy(), first)
    with pytest.raises(ValueError, match="what get_rng_state gave"):
        ms.set_rng_state(Tensor([1.0]))


def test_settings_of_parallel_training_are_checked_and_kept() -> None:
    assert ms.get_auto_parallel_context("parallel_mode") == ms.ParallelMode.STAND_ALONE
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, device_num=2, full_batch=True)
    assert ms.get_auto_parallel_context("gradients_mean") is True
    ms.reset_auto_parallel_context()
    assert ms.get_auto_parallel_context("dataset_strategy") == "data_parallel"
    ms.set_algo_parameters(algo_approxi_epsilon=1)
    assert ms.get_algo_parameters("algo_approxi_epsilon") == 1
    ms.reset_algo_parameters()
    ms.set_offload_context({"offload_param": "cpu"})
    assert ms.get_offload_context()["offload_param"] == "cpu"
    assert ms.get_ps_context("enable_ps") is False


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ms.set_auto_parallel_context(foo=1), ValueError, "Set context keyword foo is not recognized!"),
        (lambda: ms.get_auto_parallel_context("foo"), ValueError, "Get context keyword foo is not recognized!"),
        (lambda: ms.set_auto_parallel_context(parallel_mode="x"), ValueError, "'parallel_mode' only support"),
        (lambda: ms.set_auto_parallel_context(device_num=0), ValueError, "'device_num' must be >= 1"),
        (lambda: ms.set_auto_parallel_context(gradients_mean=1), TypeError, "must be <class 'bool'>, but got"),
        (lambda: ms.set_ps_context(enable_ps=True), ValueError, "no parameter server"),
        (lambda: ms.shard(nn.ReLU(), ((2, 1),)), ValueError, "cuts no tensors"),
        (lambda: ms.mutable("text"), TypeError, "should be one of"),
        (lambda: ms.jit_class(3), TypeError, "can only be used for class type"),
        (lambda: ms.jit_class(nn.Dense), TypeError, "cannot be used for nn.Cell"),
        (lambda: ms.set_recursion_limit(0), ValueError, "expected an int > 0"),
        (lambda: ms.Profiler().op_analyse("MatMul"), RuntimeError, "profiles nothing"),
    ],
)
def test_what_is_not_possible_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_what_one_device_makes_trivial(capsys: pytest.CaptureFixture[str]) -> None:
    relu = nn.ReLU()
    assert ms.shard(relu, ((1, 1),)) is relu and ms.mutable((Tensor([1]), 2), True)[1] == 2
    assert ms.lazy_inline(relu) is relu and ms.recompute(relu, Tensor([-1.0])).asnumpy().tolist() == [0.0]
    assert ms.is_tensor(Tensor(1)) and not ms.is_tensor(1)
    assert (ms.get_py_obj_dtype(1.5), ms.get_py_obj_dtype("a")) == (ms.float64, ms.string)
    with ms.Profiler(output_path="x") as profiler:
        profiler.step()
    first, last = ms.hal.Event(enable_timing=True), ms.runtime.Event(enable_timing=True)
    first.record()
    last.record(ms.hal.current_stream())
    assert first.elapsed_time(last) >= 0 and ms.hal.device_count() == 1
    ms.set_device("Ascend", 2)
    assert ms.get_current_device() == ("Ascend", 2)
    ms.run_check()
    assert "The result of multiplication calculation is correct." in capsys.readouterr().out
