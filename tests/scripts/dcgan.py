"""Images from noise: transposed convolutions against convolutions, with batch normalization on both sides."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.common.initializer import Normal

ms.set_seed(12)
rng = np.random.default_rng(12)


def conv_transpose(channels_in, channels_out, stride, pad_mode, padding):
    return nn.Conv2dTranspose(channels_in, channels_out, 4, stride, pad_mode, padding, weight_init=Normal(0.02))


class Generator(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(
            conv_transpose(8, 16, 1, "valid", 0),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            conv_transpose(16, 1, 2, "pad", 1),
            nn.Tanh(),
        )

    def construct(self, noise):
        return self.layers(noise)


class Critic(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Conv2d(1, 16, 4, 2, "pad", 1, weight_init=Normal(0.02)),
            nn.LeakyReLU(0.2),
            nn.Conv2d(16, 1, 4, 1, "valid", 0, weight_init=Normal(0.02)),
            nn.Sigmoid(),
        )

    def construct(self, image):
        return self.layers(image).reshape(-1)


generator, critic = Generator(), Critic()
generator.update_parameters_name("generator.")
critic.update_parameters_name("critic.")
loss_of = nn.BCELoss(reduction="mean")
optimizer_g = nn.Adam(generator.trainable_params(), 0.01, 0.5)
optimizer_c = nn.Adam(critic.trainable_params(), 0.002, 0.5)


def generator_loss(noise, valid):
    made = generator(noise)
    return loss_of(critic(made), valid), made


def critic_loss(real, made, valid, fake):
    return (loss_of(critic(real), valid) + loss_of(critic(made), fake)) / 2


grad_g = ms.value_and_grad(generator_loss, None, optimizer_g.parameters, has_aux=True)
grad_c = ms.value_and_grad(critic_loss, None, optimizer_c.parameters)
picture = np.full((16, 1, 8, 8), -0.8, np.float32)
picture[:, :, 2:6, 2:6] = 0.8
losses = []
for _ in range(25):
    real = Tensor(picture + 0.05 * rng.standard_normal(picture.shape).astype(np.float32))
    valid, fake = ops.ones(16, ms.float32), ops.zeros(16, ms.float32)
    (_, made), grads = grad_g(Tensor(rng.standard_normal((16, 8, 1, 1)).astype(np.float32)), valid)
    optimizer_g(grads)
    _, grads = grad_c(real, made, valid, fake)
    optimizer_c(grads)
    losses.append(float(np.abs(made.asnumpy().mean(axis=0) - picture[0]).mean()))
