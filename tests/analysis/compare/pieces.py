"""Small nets that hold one piece each, layers and functions of PyTorch that models are made of: what a comparison says
of them where one of two runs is in another precision or form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

WIDTH, CHANNELS, KINDS = 12, 8, 3
_SHAPES = {"vector": (8, 6), "image": (4, 3, 8, 8), "sequence": (4, 7, 6)}


class Applied(nn.Module):
    """A function, of its layers and of what it is given."""

    def __init__(self, function: Callable[..., torch.Tensor], **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.layers = nn.ModuleDict(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x, *self.layers.values())


class Scaled(nn.Module):
    """The fault: a piece whose result is scaled."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * 1.15


class Net(nn.Module):
    """A layer before the piece and one behind it."""

    def __init__(self, form: str, piece: nn.Module) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, CHANNELS, 3, padding=1) if form == "image" else nn.Linear(6, WIDTH)
        self.piece = piece
        with torch.no_grad():
            made = piece(self.enter(data(form)[0]).tanh())
        self.head = nn.Linear(made.shape[-1], KINDS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.head(self.piece(self.enter(x).tanh()))
        return y.flatten(1, -2).mean(1) if y.dim() > 2 else y


def data(form: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A batch and its labels."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal(_SHAPES[form], dtype=np.float32)
    return torch.from_numpy(x), torch.from_numpy(rng.integers(0, KINDS, len(x)))


def net(name: str, has_fault: bool = False) -> tuple[Net, str]:
    """The net of a piece, with the same weights each time, and the form of its data."""
    form, piece = PIECES[name]
    torch.manual_seed(3)
    found = Net(form, piece())
    if has_fault:
        found.piece = Scaled(found.piece)
    return found, form


def _rotated(x: torch.Tensor) -> torch.Tensor:
    angles = torch.arange(x.shape[1])[:, None] * 10000.0 ** (-torch.arange(6) / 6)
    (a, b), cos, sin = x.chunk(2, -1), angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def _with_distances(x: torch.Tensor) -> torch.Tensor:
    heads, places = x.unflatten(-1, (3, 4)).transpose(1, 2), torch.arange(x.shape[1], dtype=x.dtype)
    slopes = torch.tensor([0.5, 0.25, 0.125], dtype=x.dtype)[:, None, None]
    scores = heads @ heads.transpose(2, 3) / 2 - (places[:, None] - places).abs() * slopes
    return (scores.softmax(-1) @ heads).transpose(1, 2).flatten(2)


def _of_experts(x: torch.Tensor, router: nn.Module, *experts: nn.Module) -> torch.Tensor:
    words = x.flatten(0, 1)
    weights, chosen = router(words).softmax(-1).max(-1)
    found = torch.zeros_like(words)
    for number, expert in enumerate(experts):
        rows = (chosen == number).nonzero()[:, 0]
        found = found.index_add(0, rows, expert(words[rows]) * weights[rows, None])
    return found.view_as(x)


def _unrolled(x: torch.Tensor, cell: nn.Module) -> torch.Tensor:
    state, states = x.new_zeros(len(x), WIDTH), []
    for word in x.unbind(1):
        state = cell(word, state)
        states.append(state)
    return torch.stack(states, 1)


def _turned(x: torch.Tensor) -> torch.Tensor:
    matrix = torch.tensor([[0.9, 0.1, 0.0], [-0.1, 0.9, 0.1]], dtype=x.dtype).expand(len(x), 2, 3)
    return functional.grid_sample(x, functional.affine_grid(matrix, list(x.shape), False), align_corners=False)


def _largest_alone(x: torch.Tensor) -> torch.Tensor:
    top = x.topk(4, -1)
    return torch.zeros_like(x).scatter(-1, top.indices, top.values.softmax(-1))


def _linear(inputs: int = WIDTH, outputs: int = WIDTH) -> nn.Linear:
    return nn.Linear(inputs, outputs)


_PLAIN = (
    "ReLU ReLU6 ELU SELU CELU GELU SiLU Mish Hardswish Hardsigmoid Hardtanh LeakyReLU LogSigmoid PReLU Sigmoid "
    "Softplus Softsign Tanh Tanhshrink Softshrink Hardshrink Identity GLU"
)
_VECTORS: dict[str, Callable[[], nn.Module]] = {
    **{name: getattr(nn, name) for name in _PLAIN.split()},
    "GELU of tanh": lambda: nn.GELU("tanh"),
    "Softmin": lambda: nn.Softmin(-1),
    "Softmax": lambda: nn.Softmax(-1),
    "LogSoftmax": lambda: nn.LogSoftmax(-1),
    "BatchNorm1d": lambda: nn.BatchNorm1d(WIDTH),
    "LayerNorm": lambda: nn.LayerNorm(WIDTH),
    "two norms": lambda: nn.Sequential(nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)),
    "RMSNorm": lambda: nn.RMSNorm(WIDTH),
    "GroupNorm of vectors": lambda: nn.GroupNorm(3, WIDTH),
    "weight norm": lambda: nn.utils.parametrizations.weight_norm(_linear()),
    "normalize": lambda: Applied(lambda x: functional.normalize(x, dim=-1)),
    "cumsum": lambda: Applied(lambda x: x.cumsum(-1)),
    "cumprod": lambda: Applied(lambda x: x.tanh().cumprod(-1)),
    "sort": lambda: Applied(lambda x: x.sort(-1).values),
    "topk": lambda: Applied(lambda x: x.topk(6, -1).values),
    "roll": lambda: Applied(lambda x: x.roll(2, -1)),
    "clamp": lambda: Applied(lambda x: x.clamp(-0.5, 0.5)),
    "where": lambda: Applied(lambda x: torch.where(x > 0, x, x.exp() - 1)),
    "logsumexp": lambda: Applied(lambda x: x - x.logsumexp(-1, keepdim=True)),
    "standardized": lambda: Applied(lambda x: (x - x.mean(-1, True)) / (x.std(-1, keepdim=True) + 1e-5)),
    "norm": lambda: Applied(lambda x: x / (x.norm(dim=-1, keepdim=True) + 1e-6)),
    "pow": lambda: Applied(lambda x: x.abs().pow(1.7)),
    "sines": lambda: Applied(lambda x: torch.sin(x) + torch.cos(2 * x)),
    "floor": lambda: Applied(lambda x: x - torch.floor(x) * 0.1),
    "lerp": lambda: Applied(lambda x: torch.lerp(x, x.tanh(), 0.3)),
    "addcmul": lambda: Applied(lambda x: torch.addcmul(x, x.tanh(), x.sigmoid(), value=0.5)),
    "einsum": lambda: Applied(lambda x, inner: torch.einsum("bi,oi->bo", x, inner.weight), inner=_linear()),
    "cosine": lambda: Applied(
        lambda x, inner: functional.cosine_similarity(x[:, None], inner.weight[None], dim=-1), inner=_linear()
    ),
    "chunk": lambda: Applied(lambda x: torch.cat([x.chunk(2, -1)[1] * x.chunk(2, -1)[0].sigmoid()] * 2, -1)),
    "gather": lambda: Applied(lambda x: x.gather(-1, x.argsort(-1))),
    "one_hot": lambda: Applied(lambda x: x + functional.one_hot(x.argmax(-1), WIDTH).to(x.dtype)),
    "scatter": lambda: Applied(_largest_alone),
    "masked_fill": lambda: Applied(lambda x: x.masked_fill(x < -0.3, -0.3)),
    "highway": lambda: Applied(
        lambda x, gate, body: gate(x).sigmoid() * body(x).relu() + (1 - gate(x).sigmoid()) * x,
        gate=_linear(), body=_linear(),
    ),
    "SwiGLU": lambda: Applied(
        lambda x, gate, up, down: down(functional.silu(gate(x)) * up(x)),
        gate=_linear(WIDTH, 16), up=_linear(WIDTH, 16), down=_linear(16),
    ),
    "residual": lambda: Applied(
        lambda x, norm, body: x + body(functional.gelu(norm(x))), norm=nn.LayerNorm(WIDTH), body=_linear()
    ),
}  # fmt: skip
_IMAGES: dict[str, Callable[[], nn.Module]] = {
    "Conv2d": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
    "depthwise": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=CHANNELS),
    "dilated": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, padding=2, dilation=2),
    "grouped": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=2, bias=False),
    "strided": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, stride=2),
    "reflecting": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, padding_mode="reflect"),
    "circular": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, padding_mode="circular"),
    "ConvTranspose2d": lambda: nn.ConvTranspose2d(CHANNELS, CHANNELS, 3, 2, 1, 1),
    "BatchNorm2d": lambda: nn.BatchNorm2d(CHANNELS),
    "GroupNorm": lambda: nn.GroupNorm(2, CHANNELS),
    "InstanceNorm2d": lambda: nn.InstanceNorm2d(CHANNELS, affine=True),
    "PReLU of channels": lambda: nn.PReLU(CHANNELS),
    "MaxPool2d": lambda: nn.MaxPool2d(2),
    "MaxPool2d of stride 1": lambda: nn.MaxPool2d(3, 1, 1),
    "AvgPool2d": lambda: nn.AvgPool2d(2),
    "AvgPool2d with padding": lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False),
    "AdaptiveAvgPool2d": lambda: nn.AdaptiveAvgPool2d(4),
    "AdaptiveMaxPool2d": lambda: nn.AdaptiveMaxPool2d(4),
    "PixelShuffle": lambda: nn.PixelShuffle(2),
    "PixelUnshuffle": lambda: nn.PixelUnshuffle(2),
    "ChannelShuffle": lambda: nn.ChannelShuffle(2),
    "nearest": lambda: nn.Upsample(scale_factor=2),
    "bilinear": lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
    "bilinear of corners": lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
    "bicubic": lambda: nn.Upsample(scale_factor=2, mode="bicubic"),
    "ReflectionPad2d": lambda: nn.ReflectionPad2d(1),
    "ReplicationPad2d": lambda: nn.ReplicationPad2d(1),
    "ConstantPad2d": lambda: nn.ConstantPad2d(1, 0.5),
    "ZeroPad2d": lambda: nn.ZeroPad2d(1),
    "CircularPad2d": lambda: nn.CircularPad2d(1),
    "Softmax2d": lambda: nn.Softmax2d(),
    "squeezed": lambda: Applied(
        lambda x, down, up: x * up(down(x.mean((2, 3), True)).relu()).sigmoid(),
        down=nn.Conv2d(CHANNELS, 2, 1), up=nn.Conv2d(2, CHANNELS, 1),
    ),
    "grid_sample": lambda: Applied(_turned),
    "of channels": lambda: Applied(
        lambda x: (x.flatten(2) @ x.flatten(2).transpose(1, 2) / 8).softmax(-1) @ x.flatten(2)
    ),
    "maximum and mean": lambda: Applied(lambda x: torch.cat([x.amax(1, True), x.mean(1, True)], 1)),
}  # fmt: skip
_SEQUENCES: dict[str, Callable[[], nn.Module]] = {
    "LSTM": lambda: Applied(lambda x, cell: cell(x)[0], cell=nn.LSTM(WIDTH, 10, batch_first=True)),
    "LSTM of two directions": lambda: Applied(
        lambda x, cell: cell(x)[0], cell=nn.LSTM(WIDTH, 10, 2, batch_first=True, bidirectional=True)
    ),
    "GRU": lambda: Applied(lambda x, cell: cell(x)[0], cell=nn.GRU(WIDTH, 10, batch_first=True)),
    "RNN": lambda: Applied(lambda x, cell: cell(x)[0], cell=nn.RNN(WIDTH, 10, batch_first=True)),
    "GRUCell": lambda: Applied(_unrolled, cell=nn.GRUCell(WIDTH, WIDTH)),
    "MultiheadAttention": lambda: Applied(
        lambda x, inner: inner(x, x, x)[0], inner=nn.MultiheadAttention(WIDTH, 3, batch_first=True)
    ),
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(WIDTH, 3, 24, 0.0, batch_first=True),
    "norms first": lambda: nn.TransformerEncoderLayer(WIDTH, 3, 24, 0.0, "gelu", batch_first=True, norm_first=True),
    "TransformerDecoderLayer": lambda: Applied(
        lambda x, inner: inner(x, x.tanh()), inner=nn.TransformerDecoderLayer(WIDTH, 3, 24, 0.0, batch_first=True)
    ),
    "attention": lambda: Applied(lambda x: functional.scaled_dot_product_attention(x, x, x)),
    "causal attention": lambda: Applied(lambda x: functional.scaled_dot_product_attention(x, x, x, is_causal=True)),
    "distances": lambda: Applied(_with_distances),
    "rotary": lambda: Applied(_rotated),
    "Conv1d": lambda: Applied(
        lambda x, inner: inner(x.transpose(1, 2)).transpose(1, 2), inner=nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
    ),
    "ConvTranspose1d": lambda: Applied(
        lambda x, inner: inner(x.transpose(1, 2)).transpose(1, 2), inner=nn.ConvTranspose1d(WIDTH, WIDTH, 2, 2)
    ),
    "positions": lambda: Applied(
        lambda x, table: x + table(torch.arange(x.shape[1])), table=nn.Embedding(16, WIDTH)
    ),
    "experts": lambda: Applied(_of_experts, router=_linear(WIDTH, 3), a=_linear(), b=_linear(), c=_linear()),
    "linear attention": lambda: Applied(
        lambda x: (functional.elu(x) + 1) @ ((functional.elu(x) + 1).transpose(1, 2) @ x) / x.shape[1]
    ),
    "shifted words": lambda: Applied(lambda x: 0.5 * x + 0.5 * functional.pad(x, (0, 0, 1, -1))),
    "BatchNorm1d of words": lambda: Applied(
        lambda x, norm: norm(x.transpose(1, 2)).transpose(1, 2), norm=nn.BatchNorm1d(WIDTH)
    ),
}  # fmt: skip
PIECES: dict[str, tuple[str, Callable[[], Any]]] = {
    **{name: ("vector", piece) for name, piece in _VECTORS.items()},
    **{name: ("image", piece) for name, piece in _IMAGES.items()},
    **{name: ("sequence", piece) for name, piece in _SEQUENCES.items()},
}
