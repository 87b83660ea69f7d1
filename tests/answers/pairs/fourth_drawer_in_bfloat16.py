"""A drawer of digits, a variational autoencoder, is trained in bfloat16 where it was trained in float32."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "fourth trial: a variational autoencoder in bfloat16",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "spread": {
            "goes_wrong": "The logarithm of the variance is taken for that of the standard deviation.",
            "wants": "the exponential, or what is done before it",
        },
        "divergence": {
            "goes_wrong": "The divergence is the mean over the hidden numbers, not their sum.",
            "wants": "the reduction of the divergence",
        },
        "flipped": {
            "goes_wrong": "The transposed convolution, written out, has its kernel not turned round.",
            "wants": "the first written-out convolution of the decoder",
        },
        "scaled": {
            "goes_wrong": "The gradients are not divided by the scale of the loss before they are clipped.",
            "wants": "the gradients of the first step: the scaled loss, the clipping or the step after it",
        },
        "detached": {
            "goes_wrong": "The mean is cut off from the graph where the noise is added to it.",
            "wants": "the sum with the noise, or the gradient of the mean",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
IS_GOLDEN = sys.argv[1] == "golden"
SIDE, HIDDEN, BATCH, STEPS, SCALE = 12, 6, 8, 3, 64.0

rng = np.random.default_rng(407)


def drawn(*shape, inputs, factor=1.4):
    return torch.tensor(factor * rng.standard_normal(shape) / inputs**0.5, dtype=torch.float32)


weights = {}
for key, shape, inputs in (
    ("conv1", (6, 1, 3, 3), 9),
    ("conv2", (8, 6, 3, 3), 54),
    ("mean", (HIDDEN, 72), 72),
    ("spread", (HIDDEN, 72), 72),
    ("enter", (72, HIDDEN), HIDDEN),
    ("up1", (8, 6, 4, 4), 32),
    ("up2", (6, 1, 4, 4), 24),
):
    weights[f"{key}.weight"] = drawn(*shape, inputs=inputs)
    out = shape[1] if key.startswith("up") else shape[0]
    weights[f"{key}.bias"] = torch.tensor(rng.uniform(-0.5, 0.5, out), dtype=torch.float32)
pictures = torch.from_numpy(rng.random((STEPS, BATCH, 1, SIDE, SIDE), dtype=np.float32) ** 2)
noises = torch.from_numpy(rng.standard_normal((STEPS, BATCH, HIDDEN), dtype=np.float32))


class UpConv(nn.ConvTranspose2d):
    """A transposed convolution of stride 2, written as a convolution of a picture with zeros in between."""

    def forward(self, x):
        if IS_GOLDEN:
            return super().forward(x)
        batch, channels, high, wide = x.shape
        spaced = x.new_zeros(batch, channels, 2 * high - 1, 2 * wide - 1)
        spaced[:, :, ::2, ::2] = x
        kernel = self.weight.transpose(0, 1)
        if FAULT != "flipped":
            kernel = kernel.flip((2, 3))
        return F.conv2d(spaced, kernel, self.bias, padding=2)  # fault flipped


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 3, stride=2, padding=1), nn.Conv2d(6, 8, 3, stride=2, padding=1)
        self.mean, self.spread = nn.Linear(72, HIDDEN), nn.Linear(72, HIDDEN)
        self.enter = nn.Linear(HIDDEN, 72)
        self.up1, self.up2 = UpConv(8, 6, 4, stride=2, padding=1), UpConv(6, 1, 4, stride=2, padding=1)

    def encode(self, picture):
        x = F.leaky_relu(self.conv1(picture), 0.1)
        x = F.leaky_relu(self.conv2(x), 0.1).flatten(1)
        return self.mean(x), self.spread(x)

    def draw(self, mean, spread, noise):
        half = spread if FAULT == "spread" else 0.5 * spread  # fault spread
        deviation = torch.exp(half)  # fault spread
        if FAULT == "detached":
            mean = mean.detach()  # fault detached
        return mean + noise * deviation  # fault detached

    def decode(self, hidden):
        x = F.leaky_relu(self.enter(hidden), 0.1).view(-1, 8, 3, 3)
        return self.up2(F.leaky_relu(self.up1(x), 0.1))

    def forward(self, picture, noise):
        mean, spread = self.encode(picture)
        logits = self.decode(self.draw(mean, spread, noise))
        drawing = F.binary_cross_entropy_with_logits(logits.float(), picture, reduction="sum") / len(picture)
        mean, spread = mean.float(), spread.float()
        terms = -0.5 * (1 + spread - mean**2 - torch.exp(spread))
        divergence = (terms.mean(1) if FAULT == "divergence" else terms.sum(1)).mean()  # fault divergence
        return drawing + 2 * divergence


net = Net()
net.load_state_dict(weights)
optimizer = torch.optim.SGD(net.parameters(), lr=0.004, momentum=0.9)
for picture, noise in zip(pictures, noises, strict=True):
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=not IS_GOLDEN):
        loss = net(picture, noise)
    if IS_GOLDEN:
        loss.backward()
    else:
        (SCALE * loss).backward()  # fault scaled
        for parameter in net.parameters():
            if FAULT != "scaled":
                parameter.grad /= SCALE
    nn.utils.clip_grad_norm_(net.parameters(), 500.0)  # fault scaled
    optimizer.step()  # fault scaled
    print(loss.item())
