"""`mindspore.mint`: values of PyTorch's functions and layers of the same names, with the same arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from msdump import mindspore as ms  # noqa: E402
from msdump.mindspore import mint  # noqa: E402
from msdump.tensors.arrays import Array  # noqa: E402
from tests.mindspore.mint_cases import FUNCTIONAL, FUNCTIONS, LAYERS, X  # noqa: E402

# float32: the same formula in another order of additions.
CLOSE = {"rtol": 2e-5, "atol": 2e-6}


@pytest.fixture(autouse=True)
def default_mode() -> Iterator[None]:
    mode = ms.get_context("mode")
    yield
    ms.set_context(mode=mode)


def _converted(thing: Any, of_array: Callable[[Array], Any], dtypes: Any) -> Any:
    if isinstance(thing, np.ndarray):
        return of_array(thing)
    if isinstance(thing, list) and thing and isinstance(thing[0], np.ndarray):
        return [of_array(each) for each in thing]
    return getattr(dtypes, thing) if thing == "float64" else thing


def _both(ours: Any, theirs: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    def called(function: Any, of_array: Callable[[Array], Any], dtypes: Any) -> Any:
        own = {key: _converted(value, of_array, dtypes) for key, value in kwargs.items()}
        return function(*(_converted(each, of_array, dtypes) for each in args), **own)

    return called(ours, ms.Tensor, ms), called(theirs, lambda array: torch.from_numpy(array.copy()), torch)


def _same(got: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            _same(one, other)
        return
    if isinstance(expected, bool):
        assert got is expected
        return
    array = expected.detach().numpy()
    assert got.shape == array.shape
    assert got.asnumpy().dtype == array.dtype
    np.testing.assert_allclose(got.asnumpy(), array, **CLOSE)


def _ids(cases: list[Any]) -> list[Any]:
    return [pytest.param(*case, id=f"{case[0]}-{number}") for number, case in enumerate(cases)]


@pytest.mark.parametrize(("name", "args", "kwargs"), _ids(FUNCTIONS))
def test_functions_give_the_values_of_pytorch(name: str, args: Any, kwargs: Any) -> None:
    _same(*_both(getattr(mint, name), getattr(torch, name), args, kwargs))


@pytest.mark.parametrize(("name", "args", "kwargs"), _ids(FUNCTIONAL))
def test_functional_gives_the_values_of_pytorch(name: str, args: Any, kwargs: Any) -> None:
    _same(*_both(getattr(mint.nn.functional, name), getattr(torch.nn.functional, name), args, kwargs))


@pytest.mark.parametrize(("name", "made", "named", "operands"), _ids(LAYERS))
@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_layers_give_the_values_of_pytorch(mode: int, name: str, made: Any, named: Any, operands: Any) -> None:
    ms.set_context(mode=mode)
    ours, theirs = getattr(mint.nn, name)(*made, **named), getattr(torch.nn, name)(*made, **named)
    weights = dict(ours.parameters_and_names())
    assert sorted(weights) == sorted(name for name, _ in theirs.named_parameters())
    with torch.no_grad():
        for own, weight in theirs.named_parameters():
            assert tuple(weight.shape) == weights[own].shape
            weight.copy_(torch.from_numpy(weights[own].asnumpy()))
    _same(*_both(ours, theirs, operands, {}))


def test_gradients_flow_through_layers_of_mint() -> None:
    ours, theirs = mint.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    with torch.no_grad():
        for own, weight in theirs.named_parameters():
            weight.copy_(torch.from_numpy(getattr(ours, own).asnumpy()))
    step = ms.value_and_grad(lambda x: mint.sum(mint.nn.functional.silu(ours(x))), None, ours.trainable_params())
    loss, gradients = step(ms.Tensor(X))
    expected = torch.nn.functional.silu(theirs(torch.from_numpy(X))).sum()
    expected.backward()
    _same([loss, *gradients], [expected, theirs.weight.grad, theirs.bias.grad])


def test_draws_have_the_shape_and_dtype_that_is_asked() -> None:
    assert mint.rand(2, 3).shape == mint.randn((2, 3)).shape == mint.rand_like(ms.Tensor(X)).shape == (2, 3)
    whole = mint.randint(3, 5, (40,))
    assert set(whole.asnumpy().tolist()) <= {3, 4} and whole.dtype == ms.int64
    assert sorted(mint.randperm(5).asnumpy().tolist()) == [0, 1, 2, 3, 4]
    assert mint.normal(0.0, ms.Tensor(np.abs(X))).shape == (2, 3)
    assert set(mint.bernoulli(mint.full((9,), 0.5)).asnumpy().tolist()) <= {0.0, 1.0}
    assert len(set(mint.multinomial(ms.Tensor([1.0, 2.0, 3.0]), 3).asnumpy().tolist())) == 3
    with pytest.raises(ValueError, match=r"mint.rand: expected generator=None.*set_seed"):
        mint.rand(2, generator=1)


def test_functions_in_place_change_their_operand() -> None:
    tensor = ms.Tensor(X)
    assert mint.nn.functional.relu_(tensor) is tensor
    np.testing.assert_array_equal(tensor.asnumpy(), np.maximum(X, 0))


@pytest.mark.parametrize("ord", [2, 1, float("inf")])
@pytest.mark.parametrize("dim", [None, 1, (0, 1)])
def test_norms_of_vectors_are_those_of_pytorch(ord: float, dim: Any) -> None:
    _same(*_both(mint.linalg.vector_norm, torch.linalg.vector_norm, (X,), {"ord": ord, "dim": dim, "keepdim": True}))


def test_wrong_arguments_name_the_function() -> None:
    with pytest.raises(TypeError, match=r"For 'argsort'|argsort"):
        mint.argsort(ms.Tensor(X), axis=1)
    with pytest.raises(TypeError, match=r"For 'roll', got an unexpected keyword argument 'axis'"):
        mint.roll(ms.Tensor(X), 1, axis=1)
    with pytest.raises(ValueError, match=r"mint.nn.functional.embedding: expected neither"):
        mint.nn.functional.embedding(ms.Tensor([0]), ms.Tensor(X), max_norm=1.0)
