"""An image to an image with a U-shaped generator and a critic that sees both, each trained by a Cell of its own."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(23)


class UNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.down1 = nn.SequentialCell(nn.Conv2d(1, 8, 4, 2, "pad", 1, weight_init="xavier_uniform"), nn.LeakyReLU(0.2))
        self.down2 = nn.SequentialCell(
            nn.Conv2d(8, 16, 4, 2, "pad", 1, weight_init="xavier_uniform"), nn.BatchNorm2d(16), nn.ReLU()
        )
        self.up2 = nn.SequentialCell(
            nn.Conv2dTranspose(16, 8, 4, 2, "pad", 1, weight_init="xavier_uniform"), nn.BatchNorm2d(8), nn.ReLU()
        )
        self.up1 = nn.SequentialCell(nn.Conv2dTranspose(16, 1, 4, 2, "pad", 1, weight_init="xavier_uniform"), nn.Tanh())

    def construct(self, x):
        first = self.down1(x)
        return self.up1(ops.concat((self.up2(self.down2(first)), first), axis=1))


class Critic(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Conv2d(2, 8, 4, 2, "pad", 1, weight_init="xavier_uniform"),
            nn.LeakyReLU(0.2),
            nn.Conv2d(8, 1, 3, 1, "pad", 1, weight_init="xavier_uniform"),
        )

    def construct(self, x, y):
        return self.layers(ops.concat((x, y), axis=1))


class WithLossG(nn.Cell):
    def __init__(self, generator, critic):
        super().__init__()
        self.generator, self.critic = generator, critic
        self.bce, self.l1 = nn.BCEWithLogitsLoss(), nn.L1Loss()

    def construct(self, x, y):
        fake = self.generator(x)
        logits = self.critic(x, fake)
        return self.bce(logits, ops.ones_like(logits)) + 10.0 * self.l1(fake, y)


class WithLossD(nn.Cell):
    def __init__(self, generator, critic):
        super().__init__()
        self.generator, self.critic = generator, critic
        self.bce = nn.BCEWithLogitsLoss()

    def construct(self, x, y):
        real, fake = self.critic(x, y), self.critic(x, ops.stop_gradient(self.generator(x)))
        return 0.5 * (self.bce(real, ops.ones_like(real)) + self.bce(fake, ops.zeros_like(fake)))


generator, critic = UNet(), Critic()
optimizer_g = nn.Adam(generator.trainable_params(), 0.01, beta1=0.5)
optimizer_d = nn.Adam(critic.trainable_params(), 0.002, beta1=0.5)
step_g = nn.TrainOneStepCell(WithLossG(generator, critic), optimizer_g)
step_d = nn.TrainOneStepCell(WithLossD(generator, critic), optimizer_d)
step_g.set_train()
step_d.set_train()
rng = np.random.default_rng(23)
x = np.where(rng.random((4, 1, 16, 16)) < 0.5, -0.8, 0.8).astype(np.float32)
y = (x * 0.5).astype(np.float32)
losses = []
for _ in range(12):
    step_d(Tensor(x), Tensor(y))
    losses.append(float(step_g(Tensor(x), Tensor(y))))
