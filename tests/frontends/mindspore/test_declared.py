"""What operators promise that a function of PyTorch declares: shape rule, kernels, gradient and both modes agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from msdump.errors import GraphError  # noqa: E402
from msdump.frontends import mindspore as ms  # noqa: E402
from msdump.frontends.mindspore.ops.declaration import DECLARATIONS  # noqa: E402
from msdump.graph.primitive import REGISTRY, choose_providers  # noqa: E402
from tests.frontends.mindspore.declared_cases import Case, Parameter, cases_of  # noqa: E402

RUNS = [
    pytest.param(op_type, case, id=f"{op_type}-{number}")
    for op_type in sorted(DECLARATIONS)
    for number, case in enumerate(cases_of(op_type))
]


@pytest.fixture(autouse=True)
def default_mode() -> Iterator[None]:
    mode = ms.get_context("mode")
    yield
    choose_providers("auto")
    ms.set_context(mode=mode)


def test_every_declared_operator_has_a_case() -> None:
    assert [op_type for op_type in sorted(DECLARATIONS) if not cases_of(op_type)] == []


def tensors(value: Any, dtype: Any = None) -> Any:
    if isinstance(value, Parameter):
        return ms.Parameter(tensors(value.value, dtype), name="written")
    if isinstance(value, np.ndarray):
        return ms.Tensor(value.astype(dtype) if dtype and value.dtype == np.float32 else value)
    return type(value)(tensors(item, dtype) for item in value) if isinstance(value, list | tuple) else value


def results_of(op_type: str, case: Case, dtype: Any = None) -> list[Any]:
    result = DECLARATIONS[op_type].call(*tensors(case.args, dtype), **tensors_of(case.kwargs))
    return list(result) if isinstance(result, tuple | list) else [result]


def tensors_of(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: tensors(value) for name, value in kwargs.items()}


def assert_close(first: list[Any], second: list[Any], is_exact: bool) -> None:
    assert [(each.shape, each.dtype) for each in first] == [(each.shape, each.dtype) for each in second]
    for one, other in zip(first, second, strict=True):
        if is_exact:
            np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())
        else:
            # Each library rounds on its own way: a few units in the last place of float32.
            np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("op_type", "case"), RUNS)
def test_numpy_and_pytorch_agree(op_type: str, case: Case) -> None:
    choose_providers("torch")
    by_torch = results_of(op_type, case)
    if "numpy" not in REGISTRY[op_type].kernels:
        return
    choose_providers("numpy")
    assert_close(results_of(op_type, case), by_torch, case.is_exact)


@pytest.mark.parametrize(("op_type", "case"), RUNS)
def test_graph_mode_gives_what_pynative_gives(op_type: str, case: Case) -> None:
    """The kernels write what the shape rule says: the memory of a graph is laid out by it."""
    eager = results_of(op_type, case)
    if REGISTRY[op_type].compute is not None:
        return

    @ms.jit
    def compiled(operands: Any, named: Any) -> Any:
        result = DECLARATIONS[op_type].call(*operands, **named)
        return result if not isinstance(result, list) else tuple(result)

    again = compiled(tensors(case.args), tensors_of(case.kwargs))
    assert_close(list(again) if isinstance(again, tuple) else [again], eager, is_exact=True)


@pytest.mark.parametrize(("op_type", "case"), RUNS)
def test_gradients_are_finite_differences(op_type: str, case: Case) -> None:
    positions = [
        place
        for place, value in enumerate(case.args)
        if isinstance(value, np.ndarray) and value.dtype == np.float32 and value.size
    ]
    results = results_of(op_type, case, np.float64)
    chosen = [place for place, result in enumerate(results) if result.dtype in (ms.float64, ms.float32)]
    if REGISTRY[op_type].bprop is None or not (positions and chosen and case.is_smooth):
        return
    weights = [np.random.default_rng(7).uniform(0.5, 1, results[place].shape) for place in chosen]

    def loss(*operands: Any) -> Any:
        args = list(tensors(case.args, np.float64))
        for place, operand in zip(positions, operands, strict=True):
            args[place] = operand
        made = DECLARATIONS[op_type].call(*args, **tensors_of(case.kwargs))
        made = made if isinstance(made, tuple | list) else (made,)
        parts = [
            (made[place].astype(ms.float64) * ms.Tensor(w)).sum() for place, w in zip(chosen, weights, strict=True)
        ]
        return sum(parts[1:], parts[0])

    at = [ms.Tensor(case.args[place].astype(np.float64)) for place in positions]
    if not case.has_derivative:
        with pytest.raises(GraphError, match=f"{op_type}: PyTorch"):
            ms.grad(loss)(*at)
        return
    gradients = ms.grad(loss, tuple(range(len(at))))(*at)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    if DECLARATIONS[op_type].has_gradient is False:
        assert all(not gradient.asnumpy().any() for gradient in gradients)
        return
    step = 1e-6
    for place, (operand, gradient) in enumerate(zip(at, gradients, strict=True)):
        for index in list(np.ndindex(operand.shape))[:3]:
            sides = []
            for sign in (1, -1):
                moved = operand.asnumpy().copy()
                moved[index] += sign * step
                sides.append(float(loss(*at[:place], ms.Tensor(moved), *at[place + 1 :])))
            expected = (sides[0] - sides[1]) / (2 * step)
            np.testing.assert_allclose(gradient.asnumpy()[index], expected, rtol=1e-4, atol=1e-5)
