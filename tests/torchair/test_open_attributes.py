"""A size where an operator takes a number: open until the graph runs, also for attributes of GE operators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import msdump.torchair as torchair

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from msdump.torchair.ge.graph import GeTensor  # noqa: E402
from msdump.torchair.ge.registry import NoConverterError, converter  # noqa: E402
from tests.torchair.test_resize import aclgraph_dump, ge_dump  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_dump")

# Each reads a size of x, whose rows are open, as a number.
MODELS: dict[str, Callable[[Any], Any]] = {
    "alpha of add": lambda x: torch.add(x, x, alpha=x.shape[0]),
    "alpha of sub": lambda x: torch.sub(x, x, alpha=x.shape[0]),
    "alpha of rsub": lambda x: torch.rsub(x, x, alpha=x.shape[0]),
    "alpha and beta of addmm": lambda x: torch.addmm(
        torch.ones(4), x, torch.ones(4, 4), beta=x.shape[0], alpha=x.shape[0]
    ),
    "alpha and beta of baddbmm": lambda x: torch.baddbmm(
        x[None], x[None], torch.ones(1, 4, 4), beta=x.shape[0], alpha=x.shape[0]
    ),
    "value of addcmul": lambda x: torch.addcmul(x, x, x, value=x.shape[0]),
    "value of addcdiv": lambda x: torch.addcdiv(x, x, x + 9, value=x.shape[0]),
    "value of scatter": lambda x: torch.scatter(x, 0, torch.zeros(1, 4, dtype=torch.int64), x.shape[0]),
    "slope": lambda x: functional.leaky_relu(x, x.shape[0]),
    "alpha of elu": lambda x: functional.elu(x, x.shape[0]),
    "beta of softplus": lambda x: functional.softplus(x, x.shape[0]),
    "bounds": lambda x: functional.hardtanh(x, -x.shape[0], x.shape[0]),
    "shift of roll": lambda x: torch.roll(x, (x.shape[0] - 1, 1), (0, 1)),
    "diagonal of tril": lambda x: torch.tril(x, x.shape[0] - 3),
    "diagonal of triu": lambda x: torch.triu(x, x.shape[0] - 3),
    "order of a norm": lambda x: torch.linalg.vector_norm(x, x.shape[0]),
    "correction": lambda x: torch.std(x, correction=x.shape[0]),
    "rows and columns of eye": lambda x: torch.eye(x.shape[0]) + x.sum(),
    "share of a size": lambda x: torch.add(x, x, alpha=x.shape[0] / 2),
    "filler": lambda x: torch.nan_to_num(x, nan=x.shape[0]),
}


@pytest.mark.parametrize("make", [ge_dump, aclgraph_dump], ids=["max-autotune", "npugraph_ex"])
@pytest.mark.parametrize("name", MODELS)
def test_a_size_is_a_number(name: str, make: Callable[[Path], Any], tmp_path: Path) -> None:
    model = MODELS[name]
    compiled = torch.compile(model, backend=make(tmp_path), dynamic=True)
    for rows in (3, 5):
        x = torch.linspace(-1, 1, 4 * rows).reshape(rows, 4)
        # Each product is rounded by itself in graph mode.
        torch.testing.assert_close(compiled(x), model(x))


def test_an_open_attribute_is_an_input_of_its_name(tmp_path: Path) -> None:
    config = torchair.CompilerConfig()
    config.debug.graph_dump.type = "py"
    config.debug.graph_dump.path = str(tmp_path)
    backend = torchair.get_npu_backend(compiler_config=config)
    torch.compile(MODELS["diagonal of tril"], backend=backend, dynamic=True)(torch.ones(3, 4))
    texts = [path.read_text() for path in tmp_path.rglob("*.py")]
    assert any("ge.Tril(" in text and "diagonal=Sub_0" in text for text in texts)


def test_what_a_converter_takes_no_size_for_is_called_as_it_is() -> None:
    @converter("aten.special_bessel_j0.default")
    def no_size(ge: Any, x: GeTensor) -> GeTensor:
        raise TypeError("must be real number, not GeTensor")

    from torch import fx

    from msdump.torchair.ge.builder import Builder
    from msdump.torchair.ge.convert import Streams, _call, _converted
    from msdump.torchair.ge.graph import GeGraph

    graph = fx.Graph()
    size = graph.placeholder("s0")
    node = graph.call_function(torch.ops.aten.special_bessel_j0.default, (size,))
    tensor = GeTensor.__new__(GeTensor)
    tensor.fake = tensor.value = None
    node.meta["val"] = torch.ones(1)
    builder = Builder(GeGraph(1), None)
    with pytest.raises(NoConverterError, match="expected a number that is fixed when the graph is compiled") as caught:
        _converted(builder, node, (tensor,), {})
    assert "dynamic=False" in str(caught.value)
    assert _call(builder, Streams(), node, {size: tensor}).op.type == "SpecialBesselJ0"
