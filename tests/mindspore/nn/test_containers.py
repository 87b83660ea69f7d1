"""Containers of cells: order, names of parameters, and what is refused."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

from msdump.mindspore import Tensor, nn
from tests.mindspore.nn.against_torch import numbers


def _names(cell: nn.Cell) -> list[str]:
    return [parameter.name for parameter in cell.get_parameters()]


class _Net(nn.Cell):
    """A list inside of a network."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.CellList([nn.Dense(3, 3, has_bias=False), nn.Dense(3, 3, has_bias=False)])

    def construct(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


def test_lists_keep_names_by_place(either_mode: int) -> None:
    net, data = _Net(), Tensor(numbers(2, 3))
    assert _names(net) == ["layers.0.weight", "layers.1.weight"]
    net.layers.append(nn.Dense(3, 2, has_bias=False))
    net.layers.insert(0, nn.Dense(3, 3, has_bias=False))
    net.layers += [nn.Dense(2, 2, has_bias=False)]
    assert _names(net) == [f"layers.{index}.weight" for index in range(5)]
    del net.layers[1:4]
    assert _names(net) == ["layers.0.weight", "layers.1.weight"] and len(net.layers) == 2
    net.layers[-1] = nn.Dense(3, 4, has_bias=False)
    assert len(net.layers[:1]) == 1
    expected = data.asnumpy() @ net.layers[0].weight.asnumpy().T @ net.layers[1].weight.asnumpy().T
    np.testing.assert_allclose(net(data).asnumpy(), expected, rtol=1e-4, atol=1e-6)


def test_sequences(either_mode: int) -> None:
    named = nn.SequentialCell(OrderedDict([("a", nn.Dense(3, 4)), ("b", nn.ReLU())]))
    assert _names(named) == ["a.weight", "a.bias"] and isinstance(named[1], nn.ReLU)
    chain = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU())
    chain.insert(1, nn.Dense(4, 2))
    assert _names(chain) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert chain(Tensor(numbers(2, 3))).shape == (2, 2)
    del chain[0]
    assert _names(chain) == ["0.weight", "0.bias"] and bool(chain)


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda: nn.CellList([1]), TypeError),
        (lambda: nn.CellList([nn.ReLU()])[3], IndexError),
        (lambda: nn.CellList([nn.ReLU()])["a"], TypeError),
        (lambda: nn.CellList([nn.ReLU()]).insert(5, nn.ReLU()), IndexError),
        (lambda: nn.CellList([nn.ReLU()])(Tensor(1.0)), NotImplementedError),
        (lambda: nn.SequentialCell(nn.ReLU()).append("relu"), TypeError),
    ],
)
def test_what_is_refused(act: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        act()
