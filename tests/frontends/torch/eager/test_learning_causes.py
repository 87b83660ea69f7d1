"""What is found in trainings whose values, and not whose parameters, are wrong: on both sides of thresholds."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tests.frontends.torch.eager.test_learning import (  # noqa: E402, F401
    Two,
    dispatch_mode,
    findings,
    learned,
    pytestmark,
    seed,
)


def test_infinite_gradients_that_a_scaler_skips(tmp_path: Path) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**126, backoff_factor=2.0**-60)
    model = nn.Sequential(*(nn.Linear(3, 3, bias=False) for _ in range(4)))
    with torch.no_grad():
        model[0].weight.mul_(1e-4)

    def scaled(model: nn.Module, optimizer: torch.optim.Optimizer, _: int) -> None:
        optimizer.zero_grad()
        scaler.scale(model(100 * torch.randn(5, 3)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    learning = learned(tmp_path, model, scaled, steps=3, rate=1e-5)
    assert learning.optimizers[0].skipped == ((0, 0),)
    assert findings(tmp_path) == ()
