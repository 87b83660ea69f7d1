"""Two networks against each other: the generator learns the mean of the real points."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_seed(7)
rng = np.random.default_rng(7)
generator = nn.SequentialCell(nn.Dense(4, 16), nn.LeakyReLU(0.2), nn.Dense(16, 2))
critic = nn.SequentialCell(nn.Dense(2, 16), nn.LeakyReLU(0.2), nn.Dense(16, 1))
loss_of = nn.BCEWithLogitsLoss()
optimizer_g = nn.Adam(generator.trainable_params(), 0.01, beta1=0.5)
optimizer_c = nn.Adam(critic.trainable_params(), 0.01, beta1=0.5)


def generator_loss(noise):
    made = generator(noise)
    return loss_of(critic(made), ops.ones((made.shape[0], 1), ms.float32)), made


def critic_loss(real, made):
    of_real = loss_of(critic(real), ops.ones((real.shape[0], 1), ms.float32))
    return of_real + loss_of(critic(made), ops.zeros((made.shape[0], 1), ms.float32))


step_g = ms.value_and_grad(generator_loss, None, optimizer_g.parameters, has_aux=True)
step_c = ms.value_and_grad(critic_loss, None, optimizer_c.parameters)
losses = []
for _ in range(60):
    real = Tensor((rng.standard_normal((32, 2)) * 0.1 + [1.5, -1.0]).astype(np.float32))
    noise = Tensor(rng.standard_normal((32, 4)).astype(np.float32))
    (_, made), grads_g = step_g(noise)
    optimizer_g(grads_g)
    _, grads_c = step_c(real, ops.stop_gradient(made))
    optimizer_c(grads_c)
    losses.append(float(np.abs(made.asnumpy().mean(axis=0) - [1.5, -1.0]).sum()))
