"""seed_all."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from msdump.errors import ConfigError  # noqa: E402
from msdump.frontends.msprobe.seeding import seed_all  # noqa: E402
from tests.frontends.msprobe.running import as_msprobe  # noqa: E402


def test_the_same_seed_draws_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")

    def drawn() -> tuple[float, float, float]:
        seed_all(3, mode=True)
        return random.random(), float(np.random.rand()), float(torch.rand(()))

    with as_msprobe():
        state = random.getstate()
        assert drawn() == drawn() and torch.are_deterministic_algorithms_enabled()
        random.setstate(state)


def test_dropout_can_keep_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    for name in ("dropout", "dropout2d", "dropout3d"):
        monkeypatch.setattr(torch.nn.functional, name, getattr(torch.nn.functional, name))
    with as_msprobe():
        seed_all(rm_dropout=True)
        assert torch.equal(torch.nn.Dropout(0.5)(torch.ones(50)), torch.ones(50))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "seed: expected a number"),
        ({"seed": 1.0}, "seed: expected a number"),
        ({"mode": 1}, "mode: expected True or False, got 1"),
        ({"rm_dropout": None}, "rm_dropout: expected True or False"),
        ({"is_enhanced": True}, "is_enhanced: True is not supported"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        seed_all(**arguments)
