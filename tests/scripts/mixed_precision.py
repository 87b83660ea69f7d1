"""float16 where it is safe, with a loss scale that follows overflows."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, amp, nn

ms.set_seed(9)
rng = np.random.default_rng(9)
data = Tensor(rng.standard_normal((32, 8)).astype(np.float32))
label = Tensor((data.asnumpy()[:, 0] > 0).astype(np.int32))

network = nn.SequentialCell(nn.Dense(8, 32, "he_uniform"), nn.ReLU(), nn.Dense(32, 2, "he_uniform"))
network = amp.auto_mixed_precision(network, "O2")
loss_of = nn.CrossEntropyLoss()
optimizer = nn.Momentum(network.trainable_params(), 0.05, 0.9)
scaler = amp.DynamicLossScaler(scale_value=2**10, scale_factor=2, scale_window=5)


def forward(x, y):
    logits = network(x)
    loss = loss_of(logits.astype(ms.float32), y)
    return scaler.scale(loss), logits


step = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
losses = []
for _ in range(12):
    (loss, _), grads = step(data, label)
    loss = scaler.unscale(loss)
    is_finite = amp.all_finite(grads)
    if is_finite:
        optimizer(scaler.unscale(grads))
    scaler.adjust(is_finite)
    losses.append(float(loss))
