"""Small models, each of another kind, for what PyTorch's guards do around them: from float32 [3, 4], or a row of it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional


class _Model(nn.Module):
    def __init__(self, compute: Callable[..., torch.Tensor], *layers: nn.Module) -> None:
        super().__init__()
        self.compute = compute
        self.layers = nn.ModuleList((nn.Linear(4, 4), *layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, *layers = self.layers
        return self.compute(first(x), *layers)


def _in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y.mul_(2).add_(1)
    y[..., :2] = y[..., 2:].tanh()
    return y.relu_()


def _attention(x: torch.Tensor) -> torch.Tensor:
    return (x.unsqueeze(-1) @ x.unsqueeze(-2) / 2).softmax(-1) @ x.unsqueeze(-1)


def _loop(x: torch.Tensor, cell: nn.Module) -> torch.Tensor:
    hidden = torch.zeros_like(x)
    for _ in range(3):
        hidden = cell(x, hidden)
    return hidden


PROGRAMS: dict[str, Callable[[], nn.Module]] = {
    "mlp": lambda: _Model(lambda x, out: out(x.tanh()), nn.Linear(4, 2)),
    "residual": lambda: _Model(lambda x, out: x + out(x.relu()), nn.Linear(4, 4)),
    "batch norm": lambda: _Model(lambda x, norm: norm(x), nn.BatchNorm1d(4)),
    "layer norm": lambda: _Model(lambda x, norm: norm(x), nn.LayerNorm(4)),
    "group norm": lambda: _Model(lambda x, norm: norm(x.unsqueeze(0)), nn.GroupNorm(1, 3)),
    "dropout": lambda: _Model(lambda x, drop: drop(x), nn.Dropout(0.5)),
    "noise": lambda: _Model(lambda x: x + torch.randn_like(x)),
    "convolution": lambda: _Model(lambda x, conv: conv(x.reshape(-1, 1, 4)).relu(), nn.Conv1d(1, 2, 3, padding=1)),
    "transposed": lambda: _Model(lambda x, conv: conv(x.reshape(-1, 1, 2, 2)), nn.ConvTranspose2d(1, 2, 2)),
    "pooling": lambda: _Model(lambda x: functional.max_pool2d(x.reshape(-1, 1, 2, 2), 2)),
    "upsampling": lambda: _Model(lambda x: functional.interpolate(x.reshape(-1, 1, 2, 2), scale_factor=2.0)),
    "lstm": lambda: _Model(lambda x, lstm: lstm(x.reshape(1, -1, 4))[0], nn.LSTM(4, 2)),
    "gru in a loop": lambda: _Model(_loop, nn.GRUCell(4, 4)),
    "attention": lambda: _Model(_attention),
    "fused attention": lambda: _Model(lambda x: functional.scaled_dot_product_attention(*[x.reshape(1, -1, 4)] * 3)),
    "encoder": lambda: _Model(
        lambda x, layer: layer(x.reshape(1, -1, 4)), nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    ),
    "embedding": lambda: _Model(lambda x, table: table((x > 0).long()).sum(-2) + x, nn.Embedding(2, 4)),
    "in place": lambda: _Model(_in_place),
    "sorted": lambda: _Model(lambda x: x.sort(-1).values + x.topk(4, -1).values.cumsum(-1)),
    "where": lambda: _Model(lambda x: torch.where(x > 0, x.exp(), x.clamp(-1, 1))),
    "parts": lambda: _Model(lambda x: torch.cat([each * 2 for each in x.split(2, -1)][::-1], -1)),
    "spectrum": lambda: _Model(lambda x: torch.fft.rfft(x).abs()),
    "double": lambda: _Model(lambda x: torch.logsumexp(x.double(), -1, keepdim=True).float()),
    "einsum": lambda: _Model(lambda x: torch.einsum("...i,...j->...ij", x, functional.gelu(x))),
    "new tensors": lambda: _Model(lambda x: x * torch.arange(4.0) + torch.tensor([1.0, 0.0, 2.0, 3.0]) - torch.ones(4)),
}
