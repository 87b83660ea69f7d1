"""What a dump of a training tells of why it does not learn, in both modes, on both sides of thresholds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.analysis.find.nan import find_non_finite
from msdump.analysis.learning.words import sentence
from msdump.engine import opening
from msdump.mindspore import Tensor, nn, ops
from tests.mindspore.test_pynative_dump import config

__all__ = ["config"]

Config = Callable[..., Path]
modes = pytest.mark.parametrize("is_graph", [True, False], ids=["graph", "pynative"])


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Dense(6, 8), nn.Dense(8, 2)

    def construct(self, x: Tensor) -> Tensor:
        result: Tensor = self.second(ops.tanh(self.first(x)))
        return result


def trained(config: Config, is_graph: bool, rates: Sequence[float]) -> tuple[tuple[str, str, int, int], ...]:
    """Findings on a training with these rates: kind, reason, first and last iteration."""
    root = config(saved_data="statistic", statistic_category=["max", "min", "avg", "l2norm"])
    ms.set_context(mode=ms.GRAPH_MODE if is_graph else ms.PYNATIVE_MODE)
    ms.set_seed(3)
    net, loss_of = Net(), nn.MSELoss()
    optimizer = nn.SGD(net.trainable_params(), list(rates))
    gradients_of: Any = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)

    def step(x: Tensor, y: Tensor) -> Tensor:
        loss, gradients = gradients_of(x, y)
        optimizer(gradients)
        return loss  # type: ignore[no-any-return]

    run: Any = ms.jit(step) if is_graph else step
    for number in range(len(rates)):
        x = np.random.RandomState(number).randn(16, 6).astype(np.float32)
        run(Tensor(x), Tensor(x[:, :2]))
    opened = opening.current()
    assert opened is not None
    opened.close()
    found = find_non_finite(root).learning
    assert all(sentence(one) for one in found)
    return tuple((one.kind, one.how, one.first, one.last) for one in found)


@modes
@pytest.mark.parametrize(("zeros", "is_found"), [(2, False), (3, True)])
def test_a_rate_of_zero(zeros: int, is_found: bool, is_graph: bool, config: Config) -> None:
    rates = [0.1] * 3 + [0.0] * zeros
    assert trained(config, is_graph, rates) == (("stands still", "rate", 3, zeros + 2),) * is_found


@modes
def test_a_loss_that_grows(is_graph: bool, config: Config) -> None:
    assert ("grows", "", 1, 4) in trained(config, is_graph, [60.0] * 5)


@modes
def test_a_healthy_training_says_nothing(is_graph: bool, config: Config) -> None:
    assert trained(config, is_graph, [0.05] * 6) == ()
