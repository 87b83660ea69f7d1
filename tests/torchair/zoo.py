"""Small models of many kinds. What runs a graph gives on each the results and the gradients that eager gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class Model:
    """One of the zoo.

    build       a module in the mode (train, eval) that it is for, and the arguments of one call
    types       GE types that its graphs have among others
    is_batched  True where the first axis of the first argument is open to any size
    """

    name: str
    build: Callable[[], tuple[nn.Module, tuple[Any, ...]]]
    types: tuple[str, ...] = ()
    is_batched: bool = False

    def __str__(self) -> str:
        return self.name


class ResidualBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.first_norm(self.first(x)))
        return functional.relu(self.second_norm(self.second(y)) + x)


class Recurrent(nn.Module):
    """A few steps of an LSTM cell."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(4, 6)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = cell = x.new_zeros(x.shape[1], 6)
        for step in range(x.shape[0]):
            hidden, cell = self.cell(x[step], (hidden, cell))
        return hidden, cell


class TransformerBlock(nn.Module):
    """Attention by the fused operator, and a perceptron, each beside a shortcut."""

    def __init__(self, width: int, heads: int, is_causal: bool) -> None:
        super().__init__()
        self.heads, self.is_causal = heads, is_causal
        self.norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.project(self.norm(x)).chunk(3, dim=-1)
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=self.is_causal)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.second_norm(x))


class PlainAttention(nn.Module):
    """Attention written out, with a mask of truth values."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = self.query(x) @ self.key(x).transpose(-2, -1) / 8**0.5
        return scores.masked_fill(mask, float("-inf")).softmax(-1) @ self.value(x)


class Statistics(nn.Module):
    """Reductions of many kinds, logic, and choice between branches."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        centred = (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-3)
        top, places = centred.topk(2, dim=1)
        is_far = (centred.abs() > 1) & ~centred.isnan() | (x < -1)
        chosen = torch.where(is_far, centred.clamp(-1.5, 1.5), x**2 + torch.remainder(x, 0.7))
        return chosen, top, places, x.amax(0), x.logsumexp(1), x.norm(), chosen.cumsum(0), is_far.any(1), x.argmin(1)


def conv_net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, stride=2, groups=4),
        nn.BatchNorm2d(8),
        nn.SiLU(),
        nn.AvgPool2d(2, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 5),
        nn.LogSoftmax(1),
    )


def _image(batch: int = 4, channels: int = 3, size: int = 12) -> torch.Tensor:
    return torch.randn(batch, channels, size, size, requires_grad=True)


def _autoencoder() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 4, 2, 1),
        nn.GroupNorm(2, 8),
        nn.LeakyReLU(0.2),
        nn.ConvTranspose2d(8, 3, 4, 2, 1),
        nn.InstanceNorm2d(3, affine=True),
        nn.Hardtanh(),
        nn.AdaptiveAvgPool2d((5, 4)),
    )


def _signal() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(2, 6, 3, dilation=2),
        nn.BatchNorm1d(6),
        nn.ELU(),
        nn.MaxPool1d(2),
        nn.ConvTranspose1d(6, 4, 3, 2, output_padding=1),
        nn.Softplus(),
        nn.AvgPool1d(3),
    )


def _perceptron() -> nn.Module:
    return nn.Sequential(
        nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 16), nn.GELU(approximate="tanh"), nn.Mish(),
        nn.LayerNorm(16, elementwise_affine=False), nn.PReLU(), nn.Linear(16, 3), nn.Hardswish(), nn.Softmax(-1),
    )  # fmt: skip


def _volume() -> nn.Module:
    return nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.BatchNorm3d(4), nn.Tanh(), nn.ConvTranspose3d(4, 2, 2, 2))


ZOO: list[Model] = [
    Model("CNN with BN", lambda: (conv_net(), (_image(),)), ("Conv2D", "BatchNormV3", "MaxPoolGradWithArgmaxV1"), True),
    Model("CNN with BN that stays", lambda: (conv_net().eval(), (_image(),)), ("BNInfer", "BatchNormGradV3")),
    Model("ResNet block", lambda: (ResidualBlock(4), (_image(2, 4, 6),)), ("Conv2DBackpropFilter", "ReluGrad")),
    Model("autoencoder", lambda: (_autoencoder(), (_image(),)), ("Conv2DTranspose", "GroupNormGrad")),
    Model("signal", lambda: (_signal(), (torch.randn(3, 2, 20, requires_grad=True),)), ("Unsqueeze", "EluGradV2")),
    Model("volume", lambda: (_volume(), (torch.randn(2, 2, 3, 4, 5, requires_grad=True),)), ("Conv3DTranspose",)),
    Model("LSTM cell", lambda: (Recurrent(), (torch.randn(3, 2, 4, requires_grad=True),)), ("SigmoidGrad", "TanhGrad")),
    Model(
        "transformer block",
        lambda: (TransformerBlock(16, 2, False), (torch.randn(2, 5, 16, requires_grad=True),)),
        ("FlashAttentionScore", "FlashAttentionScoreGrad", "LayerNormV4", "GeluGrad"),
    ),
    Model("causal transformer block", lambda: (TransformerBlock(16, 4, True), (torch.randn(2, 7, 16),)), (), True),
    Model(
        "attention written out",
        lambda: (PlainAttention(), (torch.randn(2, 5, 8), torch.ones(5, 5).triu(1).bool())),
        ("MaskedFill", "SoftmaxGrad", "BatchMatMul"),
    ),
    Model(
        "MLP", lambda: (_perceptron(), (torch.randn(7, 6, requires_grad=True),)), ("LayerNormGradV3", "MishGrad"), True
    ),
    Model("statistics", lambda: (Statistics(), (torch.randn(5, 6, requires_grad=True),)), ("TopKV2", "SelectV2"), True),
]
