"""Small models as GE graphs: results, gradients and running statistics are those of eager, and what bears the name of
an FX node has its values."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from msdump.torchair.ge.graph import GeGraph  # noqa: E402
from tests.torchair.ge_by_name import compared_by_name  # noqa: E402
from tests.torchair.test_ge_core import compiled  # noqa: E402
from tests.torchair.zoo import ZOO, Model  # noqa: E402
from tests.torchair.zoo_data import DATA_ZOO, Sizes  # noqa: E402


def step(function: Callable[..., Any], module: Any, inputs: tuple[Any, ...]) -> dict[str, Any]:
    """What one training step leaves behind: outputs, gradients, buffers."""
    given = [x.detach().clone().requires_grad_(x.requires_grad) if torch.is_tensor(x) else x for x in inputs]
    outputs = function(*given)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    parts = [out for out in outputs if torch.is_tensor(out) and out.requires_grad]
    if parts:
        # Weights that differ by element, so that no gradient is zero by symmetry.
        sum((part * torch.linspace(0.5, 1.5, part.numel()).view(part.shape)).sum() for part in parts).backward()
    left: dict[str, Any] = {f"output.{index}": out for index, out in enumerate(outputs)}
    left |= {f"input.{index}": x.grad for index, x in enumerate(given) if torch.is_tensor(x)}
    left |= {f"gradient.{name}": parameter.grad for name, parameter in module.named_parameters()}
    left |= {f"buffer.{name}": buffer.clone() for name, buffer in module.named_buffers()}
    module.zero_grad()
    return left


def assert_same(actual: dict[str, Any], expected: dict[str, Any]) -> None:
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(actual[name], value, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("model", ZOO + DATA_ZOO, ids=str)
def test_equals_eager(model: Model) -> None:
    torch.manual_seed(0)
    module, inputs = model.build()
    twin = copy.deepcopy(module)
    graphs: list[GeGraph] = []
    counts: list[int] = []
    function = compared_by_name(twin, graphs, counts)
    # The second step finds the running statistics of the first.
    for seed in range(2):
        torch.manual_seed(seed)
        expected = step(module, module, inputs)
        torch.manual_seed(seed)
        assert_same(step(function, twin, inputs), expected)
    assert len(counts) == len(graphs) and all(counts)
    types = {op.type for graph in graphs for op in graph.ops}
    assert set(model.types) <= types


@pytest.mark.parametrize("model", [model for model in ZOO + DATA_ZOO if model.is_batched], ids=str)
def test_one_graph_serves_every_batch_size(model: Model) -> None:
    torch.manual_seed(0)
    module, (x, *rest) = model.build()
    twin = copy.deepcopy(module)
    graphs: list[GeGraph] = []
    function = compiled(twin, graphs)
    for repeats in (1, 2):
        batch = torch.cat([x.detach()] * repeats).requires_grad_(x.requires_grad)

        def marked(x: Any, *rest: Any) -> Any:
            torch._dynamo.mark_dynamic(x, 0)
            return function(x, *rest)

        assert_same(step(marked, twin, (batch, *rest)), step(module, module, (batch, *rest)))
    assert len(graphs) == 2


def test_one_graph_serves_all_sizes() -> None:
    module = Sizes()
    graphs: list[GeGraph] = []
    function = compared_by_name(module, graphs, [], dynamic=True)
    for batch, length in ((3, 5), (4, 7), (2, 8)):
        x = torch.randn(batch, length, 4, requires_grad=True)
        assert_same(step(function, module, (x,)), step(module, module, (x,)))
    # Forward and backward.
    assert len(graphs) == 2
    assert {"Shape", "Pack", "FloorDiv"} <= {op.type for op in graphs[0].ops}


def test_without_gradients() -> None:
    model = ZOO[0]
    module, inputs = model.build()
    graphs: list[GeGraph] = []
    function = compiled(module.eval(), graphs)
    with torch.no_grad():
        torch.testing.assert_close(function(*inputs), module(*inputs))
    assert len(graphs) == 1
