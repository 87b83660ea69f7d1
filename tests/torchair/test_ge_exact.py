"""Graph mode gives the bits of the ATen operators that its graphs came from, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from msdump.process import sessions  # noqa: E402
from tests.torchair import graph_mode_dumps as dumps  # noqa: E402
from tests.torchair.test_resize import ge_dump, graph_dump  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_dump")


class Function(nn.Module):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def layer(norm: str, x: Any) -> Any:
    return getattr(nn.utils.parametrizations, norm)(x)


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(700, 17), (5, 700)),
    "linear of sequences": (lambda: nn.Linear(33, 17), (2, 5, 33)),
    "conv1d": (lambda: nn.Conv1d(3, 8, 3), (2, 3, 9)),
    "conv2d": (lambda: nn.Conv2d(4, 8, 3, stride=2, groups=2), (2, 4, 9, 9)),
    "transposed": (lambda: nn.ConvTranspose2d(3, 4, 3), (2, 3, 5, 5)),
    "group norm": (lambda: nn.GroupNorm(2, 6), (2, 6, 5, 5)),
    "weight norm": (lambda: layer("weight_norm", nn.Linear(33, 17)), (5, 33)),
    "std": (lambda: Function(lambda x: x.std(1)), (4, 33)),
    "std and mean": (lambda: Function(lambda x: sum(torch.std_mean(x, 1))), (4, 33)),
    "sub": (lambda: Function(lambda x: torch.sub(x, x * 1.7, alpha=0.3)), (4, 33)),
    "addmm": (lambda: Function(lambda x: torch.addmm(x[:, :4], x, x.t(), beta=0.3, alpha=0.7)), (4, 33)),
    "baddbmm": (
        lambda: Function(lambda x: torch.baddbmm(x[None, :, :4], x[None], x.t()[None], beta=0.3, alpha=0.7)),
        (4, 33),
    ),
    "addmv": (lambda: Function(lambda x: torch.addmv(x[:, 0], x, x[0], beta=0.3, alpha=0.7)), (4, 33)),
    "exp2": (lambda: Function(torch.exp2), (4, 33)),
    "huber": (lambda: Function(lambda x: functional.huber_loss(x, x * 2 + 1, delta=0.7)), (4, 33)),
}


def step(model: nn.Module, run: Callable[[Any], Any], x: Any) -> list[Any]:
    """Result, gradients and buffers of one training step."""
    model.zero_grad()
    given = x.clone().requires_grad_()
    y = run(given)
    (y * torch.linspace(-1, 1, y.numel()).view(y.shape).to(y.dtype)).sum().backward()
    return [y.detach(), given.grad, *(p.grad.clone() for p in model.parameters())]


@pytest.mark.parametrize("make", [graph_dump, ge_dump], ids=["graph dump", "data dump"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_bits_are_those_of_aten(name: str, dtype: Any, make: Callable[[Path], Any], tmp_path: Path) -> None:
    torch.manual_seed(0)
    build, shape = MODELS[name]
    model, x = build().to(dtype), torch.randn(shape).to(dtype)
    results = []
    for backend in ("aot_eager", make(tmp_path)):
        torch._dynamo.reset()
        results.append(step(model, torch.compile(model, backend=backend), x))
    for plain, graph in zip(*results, strict=True):
        assert torch.equal(plain, graph)


def test_operators_of_a_chain_are_dumped_with_what_they_read(tmp_path: Path) -> None:
    model = nn.Linear(33, 17).bfloat16()
    x = torch.randn(5, 33).bfloat16()
    y = torch.compile(model, backend=ge_dump(tmp_path))(x).detach()
    sessions.close_all()
    (values,) = [
        found
        for of_folder in dumps.files(tmp_path).values()
        if ("Add", "output", 0) in (found := dumps.values(of_folder))
    ]
    product = values["Mul", "output", 0]
    assert torch.equal(torch.from_numpy(values["Add", "output", 0].astype("f4")), y.float())
    assert (values["Add", "input", 0] == product).all()
    assert torch.equal(torch.from_numpy(values["MatMulV2", "output", 0].astype("f4")), (x @ model.weight.t()).float())
