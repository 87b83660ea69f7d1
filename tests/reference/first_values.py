"""How parameters of new layers are distributed: `python tests/reference/first_values.py FILE` where MindSpore is.

Writes a JSON object: layer -> parameter -> shape, mean, deviation, largest size, kurtosis (1.8 is uniform, 3 normal).
tests/golden/mindspore_first_values.json holds such objects of MindSpore 2.0.0 and 2.7.0 under "2.0" and "2.7".
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

# Layers that both releases have, large enough for their deviation to be measured.
LAYERS = {
    "Dense": lambda nn: nn.Dense(300, 200),
    "Conv1d": lambda nn: nn.Conv1d(60, 80, 5, has_bias=True),
    "Conv2d": lambda nn: nn.Conv2d(30, 80, (3, 5), has_bias=True, group=2),
    "Conv3d": lambda nn: nn.Conv3d(12, 80, (3, 2, 4), has_bias=True),
    "Conv1dTranspose": lambda nn: nn.Conv1dTranspose(60, 80, 5, has_bias=True),
    "Conv2dTranspose": lambda nn: nn.Conv2dTranspose(30, 80, (3, 5), has_bias=True, group=2),
    "Conv3dTranspose": lambda nn: nn.Conv3dTranspose(12, 80, (3, 2, 4), has_bias=True),
    "Embedding": lambda nn: nn.Embedding(200, 300),
    "PReLU": lambda nn: nn.PReLU(50),
    "BatchNorm1d": lambda nn: nn.BatchNorm1d(50),
    "BatchNorm2d": lambda nn: nn.BatchNorm2d(50),
    "BatchNorm3d": lambda nn: nn.BatchNorm3d(50),
    "LayerNorm": lambda nn: nn.LayerNorm((50,)),
    "GroupNorm": lambda nn: nn.GroupNorm(5, 50),
    "RNN": lambda nn: nn.RNN(100, 120, 2),
    "GRU": lambda nn: nn.GRU(100, 120),
    "LSTM": lambda nn: nn.LSTM(100, 120, bidirectional=True),
    "RNNCell": lambda nn: nn.RNNCell(100, 120),
    "GRUCell": lambda nn: nn.GRUCell(100, 120),
    "LSTMCell": lambda nn: nn.LSTMCell(100, 120),
    "MultiheadAttention": lambda nn: nn.MultiheadAttention(64, 4),
    "MultiheadAttention of widths": lambda nn: nn.MultiheadAttention(64, 4, kdim=80, vdim=96, add_bias_kv=True),
    "TransformerEncoderLayer": lambda nn: nn.TransformerEncoderLayer(64, 4, 128),
}
# Layers of `mindspore.mint.nn`, which 2.0 does not have.
MINT_LAYERS = {
    "mint Linear": lambda nn: nn.Linear(300, 200),
    "mint Conv2d": lambda nn: nn.Conv2d(30, 80, 3),
    "mint Conv3d": lambda nn: nn.Conv3d(12, 80, 3),
    "mint Embedding": lambda nn: nn.Embedding(200, 300),
    "mint GroupNorm": lambda nn: nn.GroupNorm(5, 50),
    "mint LayerNorm": lambda nn: nn.LayerNorm((50,)),
}


def measured(layer: Any) -> dict[str, list[Any]]:
    """Parameter of a layer -> [shape, mean, ...]."""
    rows = {}
    for parameter in layer.get_parameters():
        values = parameter.asnumpy().astype(np.float64)
        centred = values - values.mean()
        deviation = float(values.std())
        kurtosis = float((centred**4).mean() / deviation**4) if deviation else 0.0
        numbers = (float(values.mean()), deviation, float(np.abs(values).max()), kurtosis)
        rows[parameter.name] = [list(values.shape), *(round(number, 5) for number in numbers)]
    return rows


def main(path: str) -> None:
    import mindspore
    from mindspore import nn

    mindspore.set_seed(1)
    rows = {name: measured(make(nn)) for name, make in LAYERS.items()}
    if hasattr(mindspore, "mint"):
        rows.update({name: measured(make(mindspore.mint.nn)) for name, make in MINT_LAYERS.items()})
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rows, file)


if __name__ == "__main__":
    main(sys.argv[1])
