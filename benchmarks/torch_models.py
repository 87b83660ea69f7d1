"""The models that the torch rows measure: AlexNet, ResNet-50 and two transformers, written for these rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

NAMES = ("alexnet", "resnet50", "transformer", "small")


def training_step(
    name: str,
    is_quick: bool,
    compile_with: Any = None,
    around: Callable[[nn.Module, Callable[[], Any]], Any] | None = None,
    device: str = "cpu",
) -> Callable[[], Any]:
    """One training step, eager or compiled with a backend; the loss is what it returns, when the device has it.

    around  called with the model and what computes loss and gradients, in place of that
    """
    torch.manual_seed(0)
    model, x, y = _MODELS[name](is_quick)
    model, x, y = model.to(device), x.to(device), y.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    called = model if compile_with is None else torch.compile(model, backend=compile_with)
    loss_of = nn.CrossEntropyLoss()

    def gradients() -> Any:
        loss = loss_of(called(x), y)
        loss.backward()
        return loss

    def step() -> float:
        optimizer.zero_grad()
        loss = gradients() if around is None else around(model, gradients)
        optimizer.step()
        return float(loss.detach())

    return step


def _alexnet(is_quick: bool) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    def convolution(inputs: int, outputs: int, size: int, stride: int = 1, padding: int = 0) -> nn.Module:
        return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, padding), nn.ReLU())

    model = nn.Sequential(
        convolution(3, 96, 11, 4),
        nn.MaxPool2d(3, 2),
        convolution(96, 256, 5, 1, 2),
        nn.MaxPool2d(3, 2),
        convolution(256, 384, 3, 1, 1),
        convolution(384, 384, 3, 1, 1),
        convolution(384, 256, 3, 1, 1),
        nn.MaxPool2d(3, 2),
        nn.Flatten(),
        nn.Sequential(nn.Linear(9216, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)),
    )
    batch = 4 if is_quick else 32
    return model, torch.randn(batch, 3, 227, 227), torch.randint(0, 10, (batch,))


class Bottleneck(nn.Module):
    """Three convolutions beside a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def _resnet50(is_quick: bool) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    inputs = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(count):
            layers.append(Bottleneck(inputs, width, stride if index == 0 else 1))
            inputs = 4 * width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))
    batch = 2 if is_quick else 8
    return model, torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,))


class Transformer(nn.Module):
    """Four encoder layers over tokens, and a classifier of the first one."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, width)
        layer = nn.TransformerEncoderLayer(width, heads, hidden, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embedding(tokens))[:, 0])


def _transformer(is_quick: bool) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    batch = 4 if is_quick else 16
    return Transformer(256, 8, 1024), torch.randint(0, 1000, (batch, 128)), torch.randint(0, 10, (batch,))


def _small(is_quick: bool) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    # Operators of microseconds: what is done around each is most of the time.
    return Transformer(64, 4, 128), torch.randint(0, 1000, (4, 16)), torch.randint(0, 10, (4,))


def _mlp(is_quick: bool) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    # Of some 45 operators a step: what is done for each part of a step is most of the time.
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 8))
    return model, torch.randn(16, 32), torch.randint(0, 8, (16,))


_MODELS = {"alexnet": _alexnet, "resnet50": _resnet50, "transformer": _transformer, "small": _small, "mlp": _mlp}
