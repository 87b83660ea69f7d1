"""Further trainings in which nothing is wrong: schedules, phases and parts that look idle for a while, and learn."""

import copy
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations

ANSWER = {
    "kind": "what is no finding",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "line": False,
    "exit": 0,
    "wants": "no finding",
    "never": ["gradient", "optimizer", "stands still", "grows", "update is"],
    "variants": {
        "annealed": {"goes_wrong": "Nothing: the divergence of a variational autoencoder begins with a weight of 0."},
        "carried": {
            "goes_wrong": "Nothing: an LSTM's state is detached, and carried over to the next piece of a text."
        },
        "cosine": {"goes_wrong": "Nothing: a cosine takes the learning rate to 0 in the end; only matrices decay."},
        "distilled": {"goes_wrong": "Nothing: a student learns from a teacher that is trained and frozen."},
        "epochs": {"goes_wrong": "Nothing: five batches are all data, and come again in the same order."},
        "every_third": {"goes_wrong": "Nothing: a second head is used in every third iteration."},
        "gates": {"goes_wrong": "Nothing: each residual block has a gate that begins with 0."},
        "layer_rates": {"goes_wrong": "Nothing: early layers, trained before, have a far smaller learning rate."},
        "many_classes": {"goes_wrong": "Nothing: 300 classes with smoothed labels, of which a batch has a few."},
        "spectral": {"goes_wrong": "Nothing: one layer has a spectral norm, another a weight norm."},
    },
}

WHICH = sys.argv[2]
torch.manual_seed(31)


def fit(parameters, loss_of, steps=24, optimizer=None, schedule=None):
    optimizer = optimizer or torch.optim.Adam(parameters, 0.01)
    for step in range(steps):
        loss = loss_of(step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if schedule is not None:
            schedule.step()
        print(step, loss.item())


def images(count=32):
    """Small images of three classes, each with a stripe in a place of its own."""
    labels = torch.randint(0, 3, (count,))
    x = 0.5 * torch.randn(count, 1, 8, 8)
    for label in range(3):
        x[labels == label, :, 2 * label : 2 * label + 3] += 1
    return x, labels


def points(count=48):
    """Points of four classes around centres."""
    labels = torch.randint(0, 4, (count,))
    return CENTRES[labels] + torch.randn(count, 10), labels


CENTRES = 1.5 * torch.randn(4, 10)


class Variational(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 24), nn.SiLU())
        self.mean, self.spread = nn.Linear(24, 3), nn.Linear(24, 3)
        self.decoder = nn.Sequential(nn.Linear(3, 24), nn.SiLU(), nn.Linear(24, 16))

    def forward(self, x):
        hidden = self.body(x)
        mean, spread = self.mean(hidden), self.spread(hidden)
        made = self.decoder(mean + torch.randn_like(mean) * (0.5 * spread).exp())
        return made, 0.5 * (mean.square() + spread.exp() - spread - 1).sum(1).mean()


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.lstm, self.head = nn.Embedding(12, 12), nn.LSTM(12, 32, batch_first=True), nn.Linear(32, 12)

    def forward(self, words, state):
        hidden, state = self.lstm(self.table(words), state)
        return self.head(hidden), state


class Gated(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return x + self.gate * self.body(x)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 24), nn.LayerNorm(24), nn.ReLU())
        self.labels, self.sizes = nn.Linear(24, 4), nn.Linear(24, 1)

    def forward(self, x, has_sizes):
        hidden = self.body(x)
        return self.labels(hidden), self.sizes(hidden).squeeze(-1) if has_sizes else None


def convolutions():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(128, 3),
    )


def classify(net, draw):
    def loss_of(_):
        x, labels = draw()
        return functional.cross_entropy(net(x), labels)

    return loss_of


if WHICH == "annealed":
    net, basis = Variational(), torch.randn(3, 16)

    def of_images(step):
        x = torch.randn(32, 3) @ basis + 0.1 * torch.randn(32, 16)
        made, divergence = net(x)
        return (made - x).square().mean() + min(step / 20, 1) * 0.02 * divergence

    fit(net.parameters(), of_images, 30)
elif WHICH == "carried":
    net, state = Language(), None
    text = torch.arange(8)[:, None] + torch.tensor([1, 3, 2]).repeat(100).cumsum(0)

    def of_text(step):
        global state
        piece = text[:, 8 * step : 8 * step + 9] % 12
        logits, state = net(piece[:, :-1], state)
        state = tuple(each.detach() for each in state)
        return functional.cross_entropy(logits.transpose(1, 2), piece[:, 1:])

    fit(net.parameters(), of_text)
elif WHICH == "cosine":
    net = convolutions()
    matrices = [each for each in net.parameters() if each.ndim > 1]
    others = [each for each in net.parameters() if each.ndim == 1]
    optimizer = torch.optim.AdamW([{"params": matrices}, {"params": others, "weight_decay": 0.0}], 0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 24)
    fit(None, classify(net, images), 24, optimizer, schedule)
elif WHICH == "distilled":
    teacher, student = convolutions(), nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 3))
    fit(teacher.parameters(), classify(teacher, images), 12)
    teacher.eval().requires_grad_(False)

    def of_teacher(_):
        x, labels = images()
        logits, soft = student(x), functional.softmax(teacher(x) / 2, -1)
        softly = 4 * functional.kl_div(functional.log_softmax(logits / 2, -1), soft, reduction="batchmean")
        return 0.5 * functional.cross_entropy(logits, labels) + 0.5 * softly

    fit(student.parameters(), of_teacher)
elif WHICH == "epochs":
    net = nn.Sequential(nn.Linear(10, 24), nn.GELU(), nn.Dropout(0.1), nn.Linear(24, 4))
    batches = [points(32) for _ in range(5)]
    fit(net.parameters(), lambda step: classify(net, lambda: batches[step % 5])(step), 30)
elif WHICH == "every_third":
    net = TwoHeads()

    def of_both(step):
        x, labels = points()
        logits, sizes = net(x, step % 3 == 2)
        loss = functional.cross_entropy(logits, labels)
        return loss if sizes is None else loss + 0.1 * functional.smooth_l1_loss(sizes, x.norm(dim=1))

    fit(net.parameters(), of_both)
elif WHICH == "gates":
    net = nn.Sequential(nn.Linear(10, 16), *(Gated(16) for _ in range(6)), nn.Linear(16, 4))
    fit(net.parameters(), classify(net, points))
elif WHICH == "layer_rates":
    before = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 4))
    fit(before.parameters(), classify(before, points), 12)
    net = nn.Sequential(*copy.deepcopy(before)[:-1], nn.Linear(16, 2))
    rates = {0: 1e-5, 2: 1e-4, 4: 1e-2}
    optimizer = torch.optim.AdamW([{"params": net[place].parameters(), "lr": rate} for place, rate in rates.items()])

    def of_pairs(_):
        x, labels = points()
        return functional.cross_entropy(net(x), labels // 2)

    fit(None, of_pairs, 24, optimizer)
elif WHICH == "many_classes":
    net = nn.Sequential(nn.Embedding(300, 32), nn.LayerNorm(32), nn.Linear(32, 300))
    common = torch.arange(1.0, 301).reciprocal()

    def of_words(_):
        words = torch.multinomial(common, 64, replacement=True)
        return functional.cross_entropy(net(words), (7 * words + 3) % 300, label_smoothing=0.1)

    fit(net.parameters(), of_words, 30)
elif WHICH == "spectral":
    first = parametrizations.spectral_norm(nn.Linear(10, 24))
    second = parametrizations.weight_norm(nn.Linear(24, 24))
    net = nn.Sequential(first, nn.LeakyReLU(0.1), second, nn.LeakyReLU(0.1), nn.Linear(24, 4))
    fit(net.parameters(), classify(net, points))
