"""Calls of the operators that single layers stand for (LSTM, dropouts of channels, adaptive pooling), and of copies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.mindspore.kernels.cases import BF16, Case, case, ints, positive, reals

_LSTM = {"input_size": 3, "hidden_size": 2, "num_layers": 1, "has_bias": True, "bidirectional": False, "dropout": 0.0}
_PLAIN = {**_LSTM, "has_bias": False}


def _lstm(steps: int, count: int, dtype: type = np.float32) -> Case:
    states = [reals(1, 4, 2, dtype=dtype) for _ in range(2)]
    attrs = _LSTM if count == 48 else _PLAIN
    return case(reals(steps, 4, 3, dtype=dtype), *states, reals(count, 1, 1, dtype=dtype), **attrs)


def _lstm_grad(steps: int) -> Case:
    forward = _lstm(steps, 48)
    results = [reals(steps, 4, 2), positive(steps, 5, 4, 2), reals(steps, 4, 2), reals(1, 4, 2), reals(1, 4, 2)]
    return case(*forward.inputs, *results, **_LSTM)


CASES: dict[str, Sequence[Case]] = {
    "LSTM": [_lstm(5, 48), _lstm(1, 40), _lstm(2, 48, np.float16)],
    "LSTMGrad": [_lstm_grad(3), _lstm_grad(1)],
    "Dropout2D": [case(reals(3, 4, 2, 2), keep_prob=0.7, Seed0=1), case(reals(2, 3, 1, 0), ints(0, 9, 1))],
    "Dropout3D": [case(reals(3, 4, 2, 2, 1), keep_prob=0.5), case(reals(2, 3, 1, 2, 2, dtype=BF16), keep_prob=0.9)],
    "AdaptiveAvgPool2D": [
        case(reals(2, 3, 5, 7), output_size=(2, 3)),
        case(reals(3, 4, 4, dtype=np.float16), output_size=(6, 1)),
        case(reals(0, 3, 4, 4), output_size=(1, 1)),
    ],
    "AdaptiveAvgPool2DGrad": [case(reals(2, 3, 2, 3), input_size=(5, 7)), case(reals(3, 1, 1), input_size=(4, 4))],
}
