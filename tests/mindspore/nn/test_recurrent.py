"""Recurrent layers and single steps against PyTorch, forward and backward, in both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Tensor, nn
from tests.mindspore.nn.against_torch import check, numbers

torch = pytest.importorskip("torch")

X, LENGTHS = numbers(4, 3, 5), np.array([4, 1, 3], np.int32)
KINDS: dict[str, tuple[Any, Any]] = {
    "rnn": (nn.RNN, torch.nn.RNN),
    "gru": (nn.GRU, torch.nn.GRU),
    "lstm": (nn.LSTM, torch.nn.LSTM),
}


def _function(kind: Any, options: dict[str, Any], **weights: Any) -> Any:
    """PyTorch's layer as a function of its weights."""
    layer = kind(5, 2, **options)
    return lambda *args: torch.func.functional_call(layer, weights, args)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    "options",
    [{}, {"num_layers": 2, "bidirectional": True}, {"has_bias": False, "batch_first": True}],
    ids=["plain", "deep", "no_bias"],
)
def test_layers_equal_torch(name: str, options: dict[str, Any], either_mode: int) -> None:
    ours, theirs = KINDS[name]
    layer = ours(5, 2, **options)
    renamed = {"bias" if key == "has_bias" else key: value for key, value in options.items()}

    def reference(x: Any, **weights: Any) -> Any:
        output, state = _function(theirs, renamed, **weights)(x)
        states = state if isinstance(state, tuple) else (state,)
        return torch.cat([output.flatten(), *(each.flatten() for each in states)])

    class Flat(nn.Cell):
        """All results as one."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def construct(self, x: Any) -> Any:
            output, state = self.layer(x)
            states = state if isinstance(state, tuple) else (state,)
            return ms.ops.concat([each.reshape(-1) for each in (output, *states)])

    check(Flat(), reference, [X], rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", KINDS)
def test_sequences_of_several_lengths(name: str, either_mode: int) -> None:
    ours, theirs = KINDS[name]
    layer = ours(5, 2, bidirectional=True)
    weights = {each.name: torch.tensor(each.asnumpy()) for each in layer.trainable_params()}
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.tensor(X), torch.tensor(LENGTHS), enforce_sorted=False)
    output, state = _function(theirs, {"bidirectional": True}, **weights)(packed)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(output)
    found, found_state = layer(Tensor(X), None, Tensor(LENGTHS))
    np.testing.assert_allclose(found.asnumpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    pairs = zip(found_state, state, strict=True) if isinstance(state, tuple) else [(found_state, state)]
    for ours_, theirs_ in pairs:
        np.testing.assert_allclose(ours_.asnumpy(), theirs_.numpy(), rtol=1e-5, atol=1e-6)


CELLS: dict[str, tuple[Any, Any]] = {
    "rnn": (lambda: nn.RNNCell(5, 2), torch.rnn_tanh_cell),
    "relu": (lambda: nn.RNNCell(5, 2, nonlinearity="relu"), torch.rnn_relu_cell),
    "gru": (lambda: nn.GRUCell(5, 2), torch.gru_cell),
}


@pytest.mark.parametrize("name", CELLS)
def test_single_steps_equal_torch(name: str, either_mode: int) -> None:
    make, reference = CELLS[name]

    def step(x: Any, h: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any) -> Any:
        return reference(x, h, weight_ih, weight_hh, bias_ih, bias_hh)

    check(make(), step, [X[0], numbers(3, 2)])


def test_single_step_of_lstm(either_mode: int) -> None:
    cell, h, c = nn.LSTMCell(5, 2), numbers(3, 2), numbers(3, 2)
    weights = [torch.tensor(each.asnumpy()) for each in cell.trainable_params()]
    expected = torch.lstm_cell(torch.tensor(X[0]), [torch.tensor(h), torch.tensor(c)], *weights)
    for found, wanted in zip(cell(Tensor(X[0]), (Tensor(h), Tensor(c))), expected, strict=True):
        np.testing.assert_allclose(found.asnumpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)


def test_names_and_types_of_parameters() -> None:
    """Source: names that MindSpore gives; they decide the names of files."""
    names = [each.name for each in nn.LSTM(5, 2, 2, bidirectional=True).trainable_params()]
    assert {"weight_ih_l0", "weight_hh_l1", "bias_ih_l0_reverse", "bias_hh_l1_reverse"} <= set(names)
    assert len(names) == 16
    assert nn.GRU(5, 2)(Tensor(X.astype(np.float16)))[0].dtype == ms.float16


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: nn.LSTM(5, 0), ValueError),
        (lambda: nn.GRU(5, 2, has_bias=1), TypeError),
        (lambda: nn.RNN(5, 2, nonlinearity="sin"), ValueError),
        (lambda: nn.LSTM(5, 2, dropout=1.5), ValueError),
        (lambda: nn.LSTM(5, 2)(Tensor(X), Tensor(X)), TypeError),
        (lambda: nn.GRU(5, 2)(Tensor(X), None, Tensor(np.array([1], np.int32))), ValueError),
        (lambda: nn.GRUCell(5, 2)(Tensor(X[0]), 1.0), TypeError),
    ],
)
def test_bad_arguments(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()
