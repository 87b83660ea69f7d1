"""Two nets that train against each other, one draws and one judges, were rewritten without modules and backward()."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "fifth trial: two nets against each other rewritten",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "variants": {
        "joined": {
            "goes_wrong": "The judge sees real and drawn pictures in one batch, so that its norms mix the two.",
            "wants": "where the two are joined, or the first norm of the judge",
        },
        "penalty": {
            "goes_wrong": "The penalty has the mean over pixels of the squared gradient, not the sum.",
            "wants": "the mean in the penalty, or the penalty",
        },
        "saturating": {
            "goes_wrong": "The drawing net has the loss that saturates: the judge's own loss with its sign turned.",
            "wants": "the loss of the drawing net",
        },
        "betas": {
            "goes_wrong": "The judge's Adam has the usual first beta, 0.9, not 0.5.",
            "wants": "the judge's optimizer, or its step",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
NOISE, WIDTH, BATCH, STEPS = 6, 8, 5, 3
RATE, EPSILON, WEIGHT = 0.01, 1e-6, 2.0

rng = np.random.default_rng(504)


def drawn(*shape, fan, factor=1.4):
    return torch.from_numpy((factor * rng.standard_normal(shape) / fan**0.5).astype(np.float32))


def row(size, base=0.0):
    return torch.from_numpy((base + rng.uniform(-0.3, 0.3, size)).astype(np.float32))


def norm(size):
    return {"weight": row(size, 1), "bias": row(size)}


drawer = {
    0: {"weight": drawn(NOISE, 2 * WIDTH, 3, 3, fan=NOISE)},
    1: norm(2 * WIDTH),
    3: {"weight": drawn(2 * WIDTH, WIDTH, 4, 4, fan=8 * WIDTH)},
    4: norm(WIDTH),
    6: {"weight": drawn(WIDTH, 3, 4, 4, fan=4 * WIDTH), "bias": row(3)},
}
judge = {
    0: {"weight": drawn(WIDTH, 3, 4, 4, fan=48), "bias": row(WIDTH)},
    2: {"weight": drawn(2 * WIDTH, WIDTH, 4, 4, fan=16 * WIDTH)},
    3: norm(2 * WIDTH),
    5: {"weight": drawn(1, 2 * WIDTH, 3, 3, fan=18 * WIDTH), "bias": row(1)},
}
faces = torch.from_numpy(np.tanh(rng.standard_normal((STEPS, BATCH, 3, 12, 12)) + 0.5).astype(np.float32))
noises = torch.from_numpy(rng.standard_normal((STEPS, 2, BATCH, NOISE, 1, 1), dtype=np.float32))


def loaded(net, weights):
    state = {f"{number}.{name}": tensor for number, part in weights.items() for name, tensor in part.items()}
    net.load_state_dict(state, strict=False)
    return net


def train_modules():
    draw = nn.Sequential(
        nn.ConvTranspose2d(NOISE, 2 * WIDTH, 3, bias=False),
        nn.BatchNorm2d(2 * WIDTH),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * WIDTH, WIDTH, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(WIDTH),
        nn.ReLU(),
        nn.ConvTranspose2d(WIDTH, 3, 4, stride=2, padding=1),
        nn.Tanh(),
    )
    look = nn.Sequential(
        nn.Conv2d(3, WIDTH, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(WIDTH, 2 * WIDTH, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(2 * WIDTH),
        nn.LeakyReLU(0.2),
        nn.Conv2d(2 * WIDTH, 1, 3),
        nn.Flatten(0),
    )
    loaded(draw, drawer), loaded(look, judge)
    criterion = nn.BCEWithLogitsLoss()
    draw_optimizer = torch.optim.Adam(draw.parameters(), lr=RATE, betas=(0.5, 0.99), eps=EPSILON)
    look_optimizer = torch.optim.Adam(look.parameters(), lr=RATE, betas=(0.5, 0.99), eps=EPSILON)
    for real, (first, second) in zip(faces, noises, strict=True):
        look_optimizer.zero_grad()
        real = real.clone().requires_grad_()
        scores = look(real)
        loss = criterion(scores, torch.ones(BATCH))
        loss = loss + criterion(look(draw(first).detach()), torch.zeros(BATCH))
        (slope,) = torch.autograd.grad(scores.sum(), real, create_graph=True)
        loss = loss + WEIGHT / 2 * slope.square().sum((1, 2, 3)).mean()
        loss.backward()
        look_optimizer.step()
        draw_optimizer.zero_grad()
        draw_loss = criterion(look(draw(second)), torch.ones(BATCH))
        draw_loss.backward()
        draw_optimizer.step()
        print(loss.item(), draw_loss.item(), sep="\n")


def standardised(part, x):
    """Batch norm of what is in this batch."""
    mean, variance = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), correction=0, keepdim=True)  # fault joined
    x = (x - mean) * (variance + 1e-5).rsqrt()  # fault joined
    return x * part["weight"][:, None, None] + part["bias"][:, None, None]


def draw_pictures(p, noise):
    x = F.conv_transpose2d(noise, p[0]["weight"])
    x = standardised(p[1], x).clamp(min=0)
    x = F.conv_transpose2d(x, p[3]["weight"], stride=2, padding=1)
    x = standardised(p[4], x).clamp(min=0)
    x = F.conv_transpose2d(x, p[6]["weight"], p[6]["bias"], stride=2, padding=1)
    return 2 * torch.sigmoid(2 * x) - 1


def judged(p, x):
    x = F.conv2d(F.pad(x, (1, 1, 1, 1)), p[0]["weight"], p[0]["bias"], stride=2)
    x = torch.maximum(x, 0.2 * x)
    x = F.conv2d(F.pad(x, (1, 1, 1, 1)), p[2]["weight"], stride=2)
    x = standardised(p[3], x)
    x = torch.maximum(x, 0.2 * x)
    return torch.einsum("bchw,chw->b", x, p[5]["weight"][0]) + p[5]["bias"]


def parameters(weights):
    p = {number: {name: tensor.clone() for name, tensor in part.items()} for number, part in weights.items()}
    return p, [tensor.requires_grad_() for part in p.values() for tensor in part.values()]


def update(optimizer, tensors, loss):
    for tensor, gradient in zip(tensors, torch.autograd.grad(loss, tensors), strict=True):
        tensor.grad = gradient
    optimizer.step()  # fault betas


def train_functions():
    (draw, draw_tensors), (look, look_tensors) = parameters(drawer), parameters(judge)
    draw_optimizer = torch.optim.Adam(draw_tensors, lr=RATE, betas=(0.5, 0.99), eps=EPSILON, foreach=True)
    first_beta = 0.9 if FAULT == "betas" else 0.5  # fault betas
    look_optimizer = torch.optim.Adam(look_tensors, RATE, (first_beta, 0.99), EPSILON, foreach=True)  # fault betas
    for real, (first, second) in zip(faces, noises, strict=True):
        real = real.clone().requires_grad_()
        with torch.no_grad():
            fake = draw_pictures(draw, first)
        if FAULT == "joined":
            both = judged(look, torch.cat([real, fake]))  # fault joined
            real_scores, fake_scores = both.chunk(2)
        else:
            real_scores, fake_scores = judged(look, real), judged(look, fake)
        (slope,) = torch.autograd.grad(real_scores.sum(), real, create_graph=True)
        squares = slope.pow(2).flatten(1)
        squares = squares.mean(1) if FAULT == "penalty" else squares.sum(1)  # fault penalty
        loss = F.softplus(-real_scores).mean() + F.softplus(fake_scores).mean()
        loss = loss + squares.mean() * (WEIGHT / 2)  # fault penalty
        update(look_optimizer, look_tensors, loss)  # fault betas
        scores = judged(look, draw_pictures(draw, second))
        if FAULT == "saturating":
            draw_loss = -F.softplus(scores).mean()  # fault saturating
        else:
            draw_loss = F.softplus(-scores).mean()
        update(draw_optimizer, draw_tensors, draw_loss)
        print(loss.item(), draw_loss.item(), sep="\n")


train_modules() if sys.argv[1] == "golden" else train_functions()
