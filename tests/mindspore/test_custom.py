"""`ops.Custom`: Python functions as operators of the graph, in both modes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from msdump import mindspore as ms
from msdump.errors import GraphError, OperandValueError
from msdump.mindspore import nn, ops
from msdump.mindspore.compiler import traced_program

X, Y = (np.random.default_rng(seed).uniform(-1, 1, (2, 3)).astype(np.float32) for seed in (0, 1))


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], autouse=True)
def each_mode(request: pytest.FixtureRequest) -> Iterator[None]:
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield
    ms.set_context(mode=before)


def _first(first: Any, *_: Any) -> Any:
    return first


def doubled(x: Any, y: Any) -> Any:
    x *= 2
    return x + y


def _gradients(x: Any, y: Any, out: Any, dout: Any) -> Any:
    return dout * 2, dout * y


class Network(nn.Cell):
    """Not the derivative: whose gradient it is shows."""

    def __init__(self, operator: Any) -> None:
        super().__init__()
        self.operator = operator

    def construct(self, *inputs: Any) -> Any:
        return self.operator(*inputs)


def test_a_function_is_an_operator_of_the_graph() -> None:
    net = Network(ops.Custom(doubled, _first, _first, "pyfunc"))
    x, y = ms.Tensor(X), ms.Tensor(Y)
    np.testing.assert_array_equal(net(x, y).asnumpy(), X * 2 + Y)
    assert np.array_equal(x.asnumpy(), X), "the function wrote a copy"
    graph, _ = traced_program(net.construct, (x, y), net)
    assert [(node.op_type, node.primitive.attrs["func_name"]) for node in graph.nodes] == [("Custom", "doubled")]


def test_its_gradient_is_that_of_bprop() -> None:
    net = Network(ops.Custom(doubled, _first, _first, "pyfunc", bprop=_gradients))
    of_x, of_y = ms.grad(net, (0, 1))(ms.Tensor(X), ms.Tensor(Y))
    np.testing.assert_array_equal(of_x.asnumpy(), np.full_like(X, 2))
    np.testing.assert_array_equal(of_y.asnumpy(), Y)


def test_without_bprop_a_gradient_is_an_error() -> None:
    net = Network(ops.Custom(doubled, _first, _first, "pyfunc"))
    with pytest.raises(GraphError, match=r"Custom has no gradient rule"):
        ms.grad(net)(ms.Tensor(X), ms.Tensor(Y))


def test_several_results_and_functions_of_shapes() -> None:
    def split(x: Any) -> Any:
        return x[0], (x[1] > 0).astype(np.int32)

    operator = ops.Custom(split, lambda shape: (shape[1:], shape[1:]), lambda kind: (kind, ms.int32), "pyfunc")
    first, flags = Network(operator)(ms.Tensor(X))
    np.testing.assert_array_equal(first.asnumpy(), X[0])
    np.testing.assert_array_equal(flags.asnumpy(), X[1] > 0)
    assert flags.dtype == ms.int32
    fixed = ops.Custom(lambda x: x.sum(keepdims=True).reshape(1), (1,), ms.float32, "pyfunc")
    np.testing.assert_allclose(Network(fixed)(ms.Tensor(X)).asnumpy(), [X.sum()], rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        (lambda shape: (9,), _first, r"expected a result of shape \(9,\), got \(2, 3\)"),
        (_first, ms.int32, r"expected a result of dtype int32, got float32"),
        (lambda shape: (shape, shape), _first, r"expected 2 results, got 1"),
    ],
)
def test_a_result_that_is_not_as_promised_is_an_error(shape: Any, dtype: Any, message: str) -> None:
    with pytest.raises(OperandValueError, match=message):
        Network(ops.Custom(lambda x: x, shape, dtype, "pyfunc"))(ms.Tensor(X))


@pytest.mark.parametrize("func_type", ["hybrid", "akg", "aot", "tbe", "aicpu", "julia"])
def test_kernels_that_need_a_compiler_are_refused(func_type: str) -> None:
    with pytest.raises(ValueError, match=rf"expected func_type 'pyfunc'.*got '{func_type}'"):
        ops.Custom(doubled, _first, _first, func_type)


def test_arguments_that_do_not_fit_are_named() -> None:
    with pytest.raises(TypeError, match=r"'func' must be of type function or str, but got <class 'int'>"):
        ops.Custom(3, _first, _first, "pyfunc")
    with pytest.raises(ValueError, match=r"'func_type' must be one of"):
        ops.Custom(doubled, _first, _first, "foo")
    with pytest.raises(TypeError, match=r"'out_dtype' must be given"):
        ops.Custom(doubled, _first, func_type="pyfunc")


def test_what_is_registered_stays_with_the_function() -> None:
    assert ops.custom_info_register({"name": 1})(doubled) is doubled
    assert doubled.reg_info == ({"name": 1},)  # type: ignore[attr-defined]
