"""More of the zoo: models that fetch, move, mask, draw and write their data in many ways."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.torchair.zoo import Model


class Words(nn.Module):
    """Embeddings, and a loss that smooths its labels and leaves some out."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(12, 6, padding_idx=0), nn.Linear(6, 5)

    def forward(self, words: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, ...]:
        scores = self.head(self.table(words).mean(1))
        plain = functional.cross_entropy(scores, labels, ignore_index=2)
        smooth = functional.cross_entropy(scores, labels, weight=torch.rand_like(scores[0]), label_smoothing=0.1)
        return plain, smooth, functional.mse_loss(scores, functional.one_hot(labels, 5).float())


class Messages(nn.Module):
    """Nodes of a graph send to their neighbours: gather, scatter, index."""

    def __init__(self) -> None:
        super().__init__()
        self.send = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
        messages = self.send(x)[source]
        places = target[:, None].expand(-1, 4)
        summed = torch.zeros_like(x).scatter_add(0, places, messages)
        added = x.index_add(0, target, messages, alpha=0.5)
        best = summed.gather(1, summed.argmax(1, keepdim=True)).squeeze(1)
        return summed, added.index_select(1, target % 4), best, x.scatter(0, places[:2], messages[:2])


class Logic(nn.Module):
    """Whole numbers and truth values only."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        is_odd, is_large = (a % 2 == 1), a > b
        both, one = is_odd & is_large, is_odd ^ is_large
        bits = (a & 6) | (b << 1)
        chosen = torch.where(both, a // 3, ~b)
        return both, ~one, bits, chosen, is_odd.any(0), is_large.all(1), chosen.sum(), one.sum(0), (a != b).long() - a


class Unrolled(nn.Module):
    """A recurrence over time, written out."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(3, 5), nn.Linear(5, 5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden, seen = x.new_zeros(x.shape[1], 5), []
        for moment in x.unbind(0):
            hidden = torch.tanh(self.inner(moment) + self.outer(hidden))
            seen.append(hidden)
        return torch.stack(seen, 1), torch.cat(seen[::-1], -1)


class Drops(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = functional.dropout(functional.relu(self.first(x)), 0.4)
        fused, mask = torch.native_dropout(y, 0.25, True)
        return self.second(fused), mask, functional.alpha_dropout(y, 0.2, True), torch.bernoulli(x.sigmoid())


class Autoencoder(nn.Module):
    """Draws its code, and is judged by likelihood and divergence."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Linear(6, 8), nn.Linear(4, 6)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        mean, spread = self.encode(x).chunk(2, -1)
        code = mean + torch.randn_like(mean) * (spread / 2).exp()
        scores = self.decode(code)
        likely = functional.binary_cross_entropy_with_logits(scores, x.sigmoid(), reduction="sum")
        sure = functional.binary_cross_entropy(scores.sigmoid(), (x > 0).float())
        return likely, sure, -0.5 * (1 + spread - mean.square() - spread.exp()).mean(), torch.randint(0, 9, (3,))


class Mutating(nn.Module):
    """Writes its input and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.count: torch.Tensor
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(4))
        self.scale = nn.Parameter(torch.rand(4))

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.count += 1
        self.mean.lerp_(x.detach().mean(0), 0.1)
        before = state.clone()
        state.mul_(0.5).add_(x.detach())
        state[0] = 7
        y = x * self.scale
        y[:, 1:3] += 1
        return y - self.mean, before


class Writes(nn.Module):
    """Writes by index, mask and slice."""

    def forward(self, x: torch.Tensor, rows: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        by_index, by_mask, by_slice = x.clone(), x * 2, x * 3
        by_index[rows] = values
        by_mask[by_mask > 1] = -1.0
        by_slice[1:, ::2] = values[:1, ::2]
        by_slice[-1, 1] = 0.25
        added = x.index_put((rows, rows % 3), values[:, 0], accumulate=True)
        return by_index, by_mask, by_slice, added, x.masked_fill(x < 0, 9), x.index_fill(1, rows % 3, 2.0)


class Turns(nn.Module):
    """Padding of all kinds, roll, flip, triangles, windows."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        wide = functional.pad(x, (1, 2, 0, 1), value=0.5)
        turned = torch.roll(wide, (1, -2), (1, 3)).flip(2)
        mirrored = functional.pad(x, (2, 1, 1, 0), mode="reflect") + functional.pad(x, (2, 1, 1, 0), mode="replicate")
        corner = x.tril(-1) + x.triu(1).transpose(-1, -2)
        tiled = x.repeat(1, 2, 1, 1)[:, :, 1:-1].permute(0, 2, 3, 1)
        first, rest = x.split([1, 3], 2)
        return turned, mirrored, corner, tiled, first - rest.narrow(2, 0, 1), x.unsqueeze(0).expand(2, -1, -1, -1, -1)


class Sizes(nn.Module):
    """Reckons with the sizes that it finds."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        batch, length, width = x.shape
        places = torch.arange(length, device=x.device) / length
        mask = torch.full((length, length), float("-inf")).triu(1)
        flat = self.head(x).view(batch * length, width) + places.repeat(batch)[:, None]
        halves = flat.view(batch, length, 2, width // 2).transpose(1, 2).reshape(batch * 2, -1)
        tail = x[:, length // 2 :].sum(1) / x.numel() + torch.zeros(batch, width)
        return halves, mask + x[0] @ x[0].t(), tail, x.flatten(1)[:, : length + 1], torch.ones(length * 2 - 1)


class Descent(nn.Module):
    """A step of Adam over lists of tensors, as optimizers write it."""

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        with torch.no_grad():
            values, gradients, means, squares = (list(tensors[index : index + 2]) for index in range(0, 8, 2))
            torch._foreach_lerp_(means, gradients, 0.1)
            torch._foreach_mul_(squares, 0.99)
            torch._foreach_addcmul_(squares, gradients, gradients, 0.01)
            roots = torch._foreach_sqrt(squares)
            torch._foreach_add_(roots, 1e-8)
            torch._foreach_addcdiv_(values, means, roots, -0.05)
        return (*values, *roots)


def _messages() -> tuple[nn.Module, tuple[Any, ...]]:
    source, target = torch.tensor([0, 1, 2, 3, 3]), torch.tensor([1, 2, 2, 0, 4])
    return Messages(), (torch.randn(5, 4, requires_grad=True), source, target)


def _words() -> tuple[nn.Module, tuple[Any, ...]]:
    return Words(), (torch.tensor([[1, 5, 0], [7, 7, 11], [2, 0, 0]]), torch.tensor([4, 2, 0]))


def _descent() -> tuple[nn.Module, tuple[Any, ...]]:
    shapes = [(3, 2), (4,)] * 3
    return Descent(), (*(torch.randn(shape) for shape in shapes), *(torch.rand(shape) for shape in shapes[:2]))


DATA_ZOO: list[Model] = [
    Model("embedding and loss", _words, ("GatherV2", "EmbeddingDenseGrad", "NLLLoss", "NLLLossGrad")),
    Model("gather and scatter", _messages, ("IndexByTensor", "ScatterElements", "GatherElements", "InplaceIndexAdd")),
    Model(
        "int and bool logic",
        lambda: (Logic(), (torch.randint(-9, 9, (4, 3)), torch.randint(0, 9, (4, 3)))),
        ("LogicalAnd", "BitwiseAnd", "FloorMod"),
    ),
    Model(
        "recurrence over time", lambda: (Unrolled(), (torch.randn(4, 2, 3, requires_grad=True),)), ("Unpack", "Pack")
    ),
    Model("dropout", lambda: (Drops(), (torch.randn(6, 8, requires_grad=True),)), ("DropOutDoMask",)),
    Model("variational autoencoder", lambda: (Autoencoder(), (torch.randn(5, 6),)), ("StatelessRandomNormalV2",)),
    Model("input mutation", lambda: (Mutating(), (torch.randn(3, 4), torch.randn(3, 4)))),
    Model(
        "index_put",
        lambda: (Writes(), (torch.randn(4, 3, requires_grad=True), torch.tensor([2, 0]), torch.randn(2, 3))),
        ("IndexPutV2", "StridedSliceAssignV2"),
    ),
    Model(
        "padding, roll, flip",
        lambda: (Turns(), (torch.randn(2, 3, 4, 4, requires_grad=True),)),
        ("PadV3", "Roll", "ReverseV2", "PadV3Grad"),
        is_batched=True,
    ),
    Model("sizes", lambda: (Sizes(), (torch.randn(3, 5, 4, requires_grad=True),)), ("Range",)),
    Model("step of an optimizer", _descent, ("Sqrt", "Addcdiv")),
]
