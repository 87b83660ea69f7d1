"""A checkpoint is written in the middle of training, loaded into a new network, and training goes on from there."""

import os
import tempfile

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn


def network_of(seed):
    ms.set_seed(seed)
    return nn.SequentialCell(nn.Dense(6, 12, "he_uniform"), nn.ReLU(), nn.Dense(12, 3, "he_uniform"))


rng = np.random.default_rng(0)
data = Tensor(rng.standard_normal((24, 6)).astype(np.float32))
target = Tensor(rng.standard_normal((24, 3)).astype(np.float32))
losses = []


def train(network, steps):
    optimizer = nn.SGD(network.trainable_params(), 0.2)
    step = nn.TrainOneStepCell(nn.WithLossCell(network, nn.MSELoss()), optimizer)
    step.set_train()
    losses.extend(float(step(data, target)) for _ in range(steps))


first = network_of(1)
train(first, 8)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "half.ckpt")
    ms.save_checkpoint(first, path)
    parameters = ms.load_checkpoint(path)
    second = network_of(2)
    not_loaded, _ = ms.load_param_into_net(second, parameters)
    assert not not_loaded
for name, parameter in first.parameters_dict().items():
    assert np.array_equal(parameter.asnumpy(), second.parameters_dict()[name].asnumpy()), name
assert np.array_equal(first(data).asnumpy(), second(data).asnumpy())
train(second, 8)
