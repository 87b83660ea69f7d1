"""Images of one domain turned into another and back, with two generators and two critics."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_seed(22)


class ResidueBlock(nn.Cell):
    def __init__(self, dim):
        super().__init__()
        self.pad = nn.ReflectionPad2d(1)
        self.conv = nn.Conv2d(dim, dim, 3, pad_mode="valid", weight_init="xavier_uniform")
        self.norm = nn.InstanceNorm2d(dim)

    def construct(self, x):
        return x + self.norm(self.conv(self.pad(x)))


class Generator(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Conv2d(1, 8, 3, weight_init="xavier_uniform"),
            nn.InstanceNorm2d(8),
            nn.ReLU(),
            ResidueBlock(8),
            nn.Conv2dTranspose(8, 8, 3, stride=1, pad_mode="same", weight_init="xavier_uniform"),
            nn.ReLU(),
            nn.Conv2d(8, 1, 3, weight_init="xavier_uniform"),
            nn.Tanh(),
        )

    def construct(self, x):
        return self.layers(x)


def critic():
    return nn.SequentialCell(
        nn.Conv2d(1, 8, 4, stride=2, pad_mode="pad", padding=1, weight_init="xavier_uniform"),
        nn.LeakyReLU(0.2),
        nn.Conv2d(8, 1, 4, stride=1, pad_mode="pad", padding=1, weight_init="xavier_uniform"),
    )


to_b, to_a, critic_a, critic_b = Generator(), Generator(), critic(), critic()
for name, cell in (("to_b.", to_b), ("to_a.", to_a), ("critic_a.", critic_a), ("critic_b.", critic_b)):
    cell.update_parameters_name(name)
parameters_g = to_b.trainable_params() + to_a.trainable_params()
parameters_c = critic_a.trainable_params() + critic_b.trainable_params()
optimizer_g = nn.Adam(parameters_g, 0.005, beta1=0.5)
optimizer_c = nn.Adam(parameters_c, 0.002, beta1=0.5)
mse, l1 = nn.MSELoss("mean"), nn.L1Loss("mean")


def gan_loss(predicted, is_real):
    return mse(predicted, ops.ones_like(predicted) if is_real else ops.zeros_like(predicted))


def generator_loss(a, b):
    fake_b, fake_a = to_b(a), to_a(b)
    cycle = l1(to_a(fake_b), a) + l1(to_b(fake_a), b)
    same = l1(to_a(a), a) + l1(to_b(b), b)
    adversarial = gan_loss(critic_b(fake_b), True) + gan_loss(critic_a(fake_a), True)
    return adversarial + 5.0 * cycle + same, fake_a, fake_b


def critic_loss(a, b, fake_a, fake_b):
    of_a = gan_loss(critic_a(a), True) + gan_loss(critic_a(fake_a), False)
    return 0.5 * (of_a + gan_loss(critic_b(b), True) + gan_loss(critic_b(fake_b), False))


grad_g = ms.value_and_grad(generator_loss, None, optimizer_g.parameters, has_aux=True)
grad_c = ms.value_and_grad(critic_loss, None, optimizer_c.parameters)
rng = np.random.default_rng(22)
a = np.where(rng.random((4, 1, 8, 8)) < 0.5, -0.5, 0.5).astype(np.float32)
b = (-a[:, :, ::-1]).copy()
losses = []
for _ in range(12):
    (loss, fake_a, fake_b), grads = grad_g(Tensor(a), Tensor(b))
    optimizer_g(grads)
    _, grads = grad_c(Tensor(a), Tensor(b), fake_a, fake_b)
    optimizer_c(grads)
    losses.append(float(loss))
