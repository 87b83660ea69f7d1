"""`mindspore.mint.optim` against PyTorch's optimizers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Parameter, Tensor, mint, nn

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Adam", {}), ("Adam", {"amsgrad": True, "weight_decay": 0.1}), ("AdamW", {}), ("AdamW", {"maximize": True}),
        ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ],
)  # fmt: skip
def test_three_steps(either_mode: int, name: str, options: dict[str, Any]) -> None:
    start = np.array([1.0, -2.0, 3.0], np.float32)

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = Parameter(Tensor(start), name="w")

        def construct(self) -> Any:
            return (self.w * self.w).sum()

    net, weight = Net(), torch.tensor(start, requires_grad=True)
    ours = getattr(mint.optim, name)(net.trainable_params(), **options)
    theirs = getattr(torch.optim, name)([weight], **options)
    gradient = ms.value_and_grad(net, None, ours.parameters)
    for _ in range(3):
        ours(gradient()[1])
        theirs.zero_grad()
        (weight * weight).sum().backward()
        theirs.step()
    np.testing.assert_allclose(net.w.asnumpy(), weight.detach().numpy(), rtol=1e-5)


def test_it_can_be_imported_by_its_path() -> None:
    import msdump.mindspore.mint.optim as optim

    assert sorted(name for name in dir(optim) if not name.startswith("_") and name[0].isupper()) == [
        "Adam", "AdamW", "SGD",
    ]  # fmt: skip
