"""Small models that each show one thing that compiled PyTorch code does; every front end runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

Compile = Callable[..., Any]


@dataclass(frozen=True)
class Scenario:
    """`run` trains and gives tensors to compare; `operators` are types that a dump of it must hold."""

    name: str
    run: Callable[[Compile], list[Any]]
    operators: frozenset[str]
    # A narrow dtype rounds once more when operators are not fused or taken apart.
    tolerance: float | None = None


def _trained(function: Any, inputs: list[list[Any]], *parameters: Any) -> list[Any]:
    """Result, loss and gradients of each step; inputs that want gradients count as parameters."""
    seen: list[Any] = []
    for arguments in inputs:
        wanting = [*parameters, *(value for value in arguments if getattr(value, "requires_grad", False))]
        for value in wanting:
            value.grad = None
        result = function(*arguments)
        loss = result.float().square().sum()
        loss.backward()
        seen += [result.detach().clone(), loss.detach().clone(), *(value.grad.clone() for value in wanting)]
    return seen


def _randn(*shape: int, steps: int = 2, **options: Any) -> list[list[Any]]:
    return [[torch.randn(*shape, **options)] for _ in range(steps)]


def _wanting(*shape: int) -> list[list[Any]]:
    return [[torch.randn(*shape, requires_grad=True)] for _ in range(2)]


def _scalars(compile_: Compile) -> list[Any]:
    return _trained(compile_(lambda x: (x * 2.5 + 1).clamp(-1, 3) ** 2), _wanting(3, 2))


def _lists(compile_: Compile) -> list[Any]:
    index = torch.tensor([1, 0])
    return _trained(compile_(lambda x: torch.cat([part * 2 for part in x.split([1, 2])])[:, index]), _wanting(3, 2))


def _keywords(compile_: Compile) -> list[Any]:
    def function(x: Any) -> Any:
        return functional.gelu(torch.add(x, x, alpha=3), approximate="tanh").to(torch.float64).sum(0, keepdim=True)

    return _trained(compile_(function), _wanting(3, 2))


def _in_place(compile_: Compile) -> list[Any]:
    state = torch.zeros(3)

    def function(x: Any) -> Any:
        y = x.clone().mul_(3)
        state.add_(x.detach().sum(0))
        y[0] = 7.0
        return y + state

    return [*_trained(compile_(function), _wanting(2, 3)), state]


def _views(compile_: Compile) -> list[Any]:
    def function(x: Any) -> Any:
        flat = x.t().reshape(-1)
        return (flat[1:5].view(2, 2) @ flat[::3].unsqueeze(1)).squeeze(1).expand(3, 2)

    return _trained(compile_(function), _wanting(2, 3))


def _bfloat16(compile_: Compile) -> list[Any]:
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)).to(torch.bfloat16)
    return _trained(compile_(model), _randn(3, 4, dtype=torch.bfloat16), *model.parameters())


def _dynamic(compile_: Compile) -> list[Any]:
    model = nn.Linear(3, 2)
    called = compile_(lambda x: model(x.reshape(-1, 3)) * x.shape[0], dynamic=True)
    sizes = [[torch.randn(rows, 6)] for rows in (2, 5, 2)]
    return _trained(called, sizes, *model.parameters())


def _graph_breaks(compile_: Compile) -> list[Any]:
    model = nn.Linear(3, 3)

    def function(x: Any) -> Any:
        y = model(x).sin()
        torch._dynamo.graph_break()
        return model(y).cos()

    return _trained(compile_(function), _randn(2, 3), *model.parameters())


def _checkpointing(compile_: Compile) -> list[Any]:
    model = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 2))
    return _trained(compile_(lambda x: checkpoint(model, x, use_reentrant=False)), _randn(2, 3), *model.parameters())


def _autocast(compile_: Compile) -> list[Any]:
    model = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2))
    called = compile_(model)

    def function(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return called(x)

    return _trained(function, _randn(2, 3), *model.parameters())


def _two_models(compile_: Compile) -> list[Any]:
    generator, critic = nn.Linear(3, 4), nn.Linear(4, 1)
    make, judge = compile_(generator), compile_(critic)
    return _trained(lambda x: judge(make(x).tanh()), _randn(2, 3), *generator.parameters(), *critic.parameters())


def _train_and_eval(compile_: Compile) -> list[Any]:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
    called = compile_(model)
    seen = _trained(called, _randn(4, 3), *model.parameters())
    model.eval()
    with torch.no_grad():
        seen.append(called(torch.randn(4, 3)))
    model.train()
    return [*seen, *_trained(called, _randn(4, 3, steps=1), *model.parameters()), *model.state_dict().values()]


SCENARIOS = [
    Scenario("scalars", _scalars, frozenset({"aten.mul.Tensor", "aten.add.Tensor", "aten.pow.Tensor_Scalar"})),
    Scenario("lists", _lists, frozenset({"aten.cat.default", "aten.index.Tensor"})),
    Scenario("keywords", _keywords, frozenset({"aten.add.Tensor", "aten.gelu.default", "aten._to_copy.default"})),
    Scenario("in place", _in_place, frozenset({"aten.mul.Tensor", "aten.add.Tensor"})),
    Scenario("views", _views, frozenset({"aten.t.default", "aten.view.default", "aten.expand.default"})),
    Scenario("bfloat16", _bfloat16, frozenset({"aten.addmm.default", "aten.relu.default"}), 2e-2),
    Scenario("dynamic shapes", _dynamic, frozenset({"aten.addmm.default", "aten.view.default"})),
    Scenario("graph breaks", _graph_breaks, frozenset({"aten.sin.default", "aten.cos.default"})),
    Scenario("checkpointing", _checkpointing, frozenset({"aten.sigmoid.default", "aten.sigmoid_backward.default"})),
    Scenario("autocast", _autocast, frozenset({"aten._to_copy.default", "aten.gelu_backward.default"}), 2e-2),
    Scenario("two models", _two_models, frozenset({"aten.addmm.default", "aten.mm.default"})),
    Scenario("train and eval", _train_and_eval, frozenset({"aten._native_batch_norm_legit_no_training.default"})),
]


def results_of(scenario: Scenario, compile_: Compile) -> list[Any]:
    """Tensors of one run from the same beginning."""
    torch._dynamo.reset()
    torch.manual_seed(3)
    return scenario.run(compile_)


def eagerly(function: Any, **_: Any) -> Any:
    """In the place of `torch.compile`."""
    return function


def assert_same_training(scenario: Scenario, plain: list[Any], dumped: list[Any], eager: list[Any]) -> None:
    """The same bits with and without a dump, and eager's numbers within what the dtype allows."""
    assert len(plain) == len(dumped) == len(eager) > 0
    for first, second, third in zip(plain, dumped, eager, strict=True):
        assert torch.equal(first, second)
        if scenario.tolerance is None:
            torch.testing.assert_close(second, third)
        else:
            torch.testing.assert_close(second.float(), third.float(), rtol=scenario.tolerance, atol=scenario.tolerance)


def quiet() -> Iterator[None]:
    """For a fixture: nothing compiled before or after."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
