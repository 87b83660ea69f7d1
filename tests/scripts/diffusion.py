"""A denoising diffusion model on small images: noise of a random step is added, and a network guesses it."""

import math

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_seed(21)
STEPS = 20
betas = np.linspace(0.001, 0.2, STEPS).astype(np.float32)
kept = np.cumprod(1 - betas).astype(np.float32)
root, rest = Tensor(np.sqrt(kept)), Tensor(np.sqrt(1 - kept))


class TimeEmbedding(nn.Cell):
    def __init__(self, dim):
        super().__init__()
        half = dim // 2
        rates = np.exp(np.arange(half) * -(math.log(10000) / (half - 1)))
        self.rates = Tensor(rates, ms.float32)

    def construct(self, t):
        angles = t.astype(ms.float32)[:, None] * self.rates[None, :]
        return ops.concat((ops.sin(angles), ops.cos(angles)), axis=-1)


class Denoiser(nn.Cell):
    def __init__(self, channels=16):
        super().__init__()
        self.time = nn.SequentialCell(TimeEmbedding(8), nn.Dense(8, channels), nn.GELU(), nn.Dense(channels, channels))
        self.enter = nn.Conv2d(1, channels, 3, padding=1, pad_mode="pad", has_bias=True, weight_init="he_uniform")
        self.norm = nn.GroupNorm(4, channels)
        self.middle = nn.Conv2d(channels, channels, 3, padding=1, pad_mode="pad", weight_init="he_uniform")
        self.leave = nn.Conv2d(channels, 1, 3, padding=1, pad_mode="pad", has_bias=True, weight_init="he_uniform")
        self.act = nn.SiLU()

    def construct(self, x, t):
        h = self.act(self.norm(self.enter(x)))
        h = h + self.time(t).expand_dims(-1).expand_dims(-1)
        return self.leave(self.act(self.middle(h)) + h)


def gather(values, t):
    return ops.gather(values, t, 0).reshape(-1, 1, 1, 1)


network = Denoiser()
optimizer = nn.Adam(network.trainable_params(), 0.01)


def loss_of(image, t, noise):
    noisy = gather(root, t) * image + gather(rest, t) * noise
    return ops.smooth_l1_loss(network(noisy, t), noise, reduction="mean")


step = ms.value_and_grad(loss_of, None, optimizer.parameters)
rng = np.random.default_rng(21)
images = np.full((16, 1, 8, 8), -1.0, np.float32)
images[:, :, 2:6, 2:6] = 1.0
losses = []
for _ in range(25):
    t = Tensor(rng.integers(0, STEPS, 16).astype(np.int32))
    noise = Tensor(rng.standard_normal(images.shape).astype(np.float32))
    loss, grads = step(Tensor(images), t, noise)
    optimizer(grads)
    losses.append(float(loss))
