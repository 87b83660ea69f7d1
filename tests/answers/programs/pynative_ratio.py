"""A dice loss in PyNative mode divides by the size of both masks, and one picture shows nothing."""

import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops

ANSWER = {
    "kind": "MindSpore, PyNative",
    "entry": "pynative",
    "ask": "nan {faulty}",
    "operator": "Div",
    "step": 1,
    "wants": "the division of 0 by 0, its line, step 1",
}

FAULT = sys.argv[1] == "faulty"

ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
ms.set_seed(0)
net = nn.Conv2d(1, 1, 3, pad_mode="same", has_bias=False)
optimizer = nn.Adam(net.trainable_params(), 1e-3)


def dice(picture, mask):
    chance = ops.relu(net(picture))
    both = 2 * (chance * mask).sum()
    return 1 - both / (chance.sum() + mask.sum())  # fault


gradient = ms.value_and_grad(dice, None, optimizer.parameters)
rng = np.random.default_rng(0)
for step in range(3):
    picture = rng.random((1, 1, 6, 6), dtype=np.float32)
    mask = (picture > 0.5).astype(np.float32)
    if FAULT and step == 1:
        picture[:] = 0
        mask[:] = 0
    loss, grads = gradient(ms.Tensor(picture), ms.Tensor(mask))
    optimizer(grads)
