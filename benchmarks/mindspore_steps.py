"""Training steps of the sample's AlexNet and of LeNet-5 through msdump's MindSpore front end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def alexnet_step(batch: int) -> Callable[[], Any]:
    """One training step of the sample's network, with whatever dump is configured."""
    import msdump

    msdump.install_aliases()
    from msdump.cli.samples.train_alexnet import AlexNet

    return _step(lambda: AlexNet(10), (batch, 3, 227, 227))


def lenet_step(batch: int) -> Callable[[], Any]:
    """One training step of LeNet-5 on images of 32 pixels, whose operators take microseconds."""
    import msdump

    msdump.install_aliases()
    from benchmarks.mindspore_models import LeNet

    return _step(LeNet, (batch, 1, 32, 32))


def _step(make: Callable[[], Any], shape: tuple[int, ...]) -> Callable[[], Any]:
    import mindspore as ms
    from mindspore import nn

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    ms.set_seed(1)
    net = make()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    step.set_train()
    rng = np.random.default_rng(0)
    x = ms.Tensor(rng.standard_normal(shape).astype(np.float32))
    y = ms.Tensor(rng.integers(0, 10, shape[0]).astype(np.int32))
    return lambda: step(x, y).asnumpy()
