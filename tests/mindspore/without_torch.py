"""What a Python without PyTorch computes: run as a script, it prints what `test_without_torch.py` reads, as JSON."""

from __future__ import annotations

import json
import sys

sys.modules["torch"] = None  # type: ignore[assignment]

import numpy as np  # noqa: E402

from msdump import mindspore as ms  # noqa: E402
from msdump.errors import KernelNotFoundError  # noqa: E402
from msdump.graph.primitive import REGISTRY, PrimitiveDef  # noqa: E402
from msdump.mindspore import Tensor, mint, nn, numpy  # noqa: E402, F401  (declare operators)
from msdump.mindspore.dispatch import execute  # noqa: E402
from tests.mindspore.kernels import cases  # noqa: E402, F401  (before the tables that it gathers)
from tests.mindspore.networks import LeNet5, SmallResNet, digits, training_step  # noqa: E402
from tests.mindspore.operator_calls import calls_of  # noqa: E402

OPTIMIZERS = {
    "SGD": lambda weights: nn.SGD(weights, 0.1, momentum=0.9),
    "Momentum": lambda weights: nn.Momentum(weights, 0.1, 0.9),
    "Adam": lambda weights: nn.Adam(weights, 0.1),
    "AdamWeightDecay": lambda weights: nn.AdamWeightDecay(weights, 0.1),
}


class AlexNet(nn.Cell):
    """Its operators, with a tenth of its sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.SequentialCell(
            nn.Conv2d(3, 8, 5, stride=2, pad_mode="same", has_bias=True), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(8, 8, 3, pad_mode="pad", padding=1, has_bias=True), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.SequentialCell(nn.Dense(72, 16), nn.ReLU(), nn.Dropout(p=0.5), nn.Dense(16, 3))

    def construct(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


class Encoder(nn.Cell):
    """An embedding, one layer of a transformer encoder, a head."""

    def __init__(self, activation: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, activation=activation, batch_first=True)
        self.head = nn.Dense(8, 3)

    def construct(self, ids: Tensor) -> Tensor:
        return self.head(self.layer(self.embedding(ids)).mean(1))


def trained() -> dict[str, float]:
    """The loss of the second step of each network, in both modes."""
    rng = np.random.default_rng(0)
    images = Tensor(rng.standard_normal((2, 3, 32, 32)).astype(np.float32))
    ids, labels = Tensor(rng.integers(0, 20, (2, 5)).astype(np.int32)), Tensor(np.array([1, 2], np.int32))
    runs = {f"LeNet with {name}": (LeNet5, make, None, digits()) for name, make in OPTIMIZERS.items()}
    runs["AlexNet"] = AlexNet, OPTIMIZERS["Momentum"], None, (images, labels)
    runs["ResNet"] = SmallResNet, OPTIMIZERS["Momentum"], None, (images, labels)
    for activation in ("relu", "gelu"):
        run = (lambda activation=activation: Encoder(activation)), OPTIMIZERS["AdamWeightDecay"]
        runs[f"encoder with {activation}"] = *run, nn.CrossEntropyLoss(), (ids, labels)
    losses = {}
    for mode, name in ((ms.GRAPH_MODE, "graph"), (ms.PYNATIVE_MODE, "PyNative")):
        ms.set_context(mode=mode)
        for what, (network, optimizer, loss, batch) in runs.items():
            ms.set_seed(1)
            net = network()
            step = training_step(net, optimizer(net.trainable_params()), loss)
            losses[f"{what}, {name}"] = [float(step(*batch).asnumpy()) for _ in range(2)][-1]
            net.set_train(False)(*batch[:1])
    return losses


def computed_types() -> set[str]:
    """Adds to the set it returns each type of which a kernel is looked up from now on."""
    seen: set[str] = set()
    provider = PrimitiveDef.provider_for

    def noting(self: PrimitiveDef, where: str) -> str:
        seen.add(self.op_type)
        return provider(self, where)

    PrimitiveDef.provider_for = noting  # type: ignore[method-assign]
    return seen


def refusal(op_type: str) -> str:
    """What an operator says that numpy has no kernel for; "" when it computes."""
    call = calls_of(op_type)[0]
    operands, attrs = call.operation([array.copy() for array in call.arrays])
    try:
        execute(op_type, operands, attrs)
    except KernelNotFoundError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    used = computed_types()
    losses = trained()
    types = sorted(used)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    needs = [name for name, each in REGISTRY.items() if "numpy" not in each.kernels and calls_of(name)]
    print(json.dumps({"types": types, "losses": losses, "refusals": {name: refusal(name) for name in needs}}))
