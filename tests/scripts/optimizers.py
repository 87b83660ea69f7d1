"""Groups of parameters with rates and decays of their own, and a schedule of the learning rate."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

ms.set_seed(6)
rng = np.random.default_rng(6)
data = Tensor(rng.standard_normal((32, 6)).astype(np.float32))
target = Tensor((data.asnumpy() ** 2).sum(axis=1, keepdims=True).astype(np.float32))

network = nn.SequentialCell(nn.Dense(6, 32), nn.ReLU(), nn.Dense(32, 1))
weights = [parameter for parameter in network.trainable_params() if "bias" not in parameter.name]
biases = [parameter for parameter in network.trainable_params() if "bias" in parameter.name]
rates = nn.cosine_decay_lr(0.001, 0.02, total_step=30, step_per_epoch=10, decay_epoch=3)
groups = [
    {"params": weights, "weight_decay": 1e-4, "lr": rates},
    {"params": biases, "lr": 0.01},
    {"order_params": network.trainable_params()},
]
optimizer = nn.Adam(groups, learning_rate=0.01)
step = nn.TrainOneStepCell(nn.WithLossCell(network, nn.MSELoss()), optimizer)
step.set_train()
losses = [float(step(data, target)) for _ in range(20)]
