"""Trainings in which nothing is wrong, though a part of each gets no gradient, or 0, or stands still for a while."""

import copy
import itertools
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

ANSWER = {
    "kind": "what is no finding",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "line": False,
    "exit": 0,
    "wants": "no finding",
    "never": ["gradient", "optimizer", "stands still", "grows", "update is", "evaluation"],
    "variants": {
        "accumulation": {"goes_wrong": "Nothing: gradients of four batches are added up for a step."},
        "adapters": {"goes_wrong": "Nothing: the second matrix of an adapter begins with zeros."},
        "assigned": {"goes_wrong": "Nothing: weights are loaded in place of others, and the optimizer is made anew."},
        "auxiliary": {"goes_wrong": "Nothing: a second loss has a weight of 0 in this run."},
        "average": {"goes_wrong": "Nothing: a copy of the model follows by an average of weights."},
        "bias_before_norm": {"goes_wrong": "Nothing: a bias before a batch norm has a gradient of rounding alone."},
        "biases": {"goes_wrong": "Nothing: biases alone are given to the optimizer, and nothing is frozen."},
        "by_hand": {"goes_wrong": "Nothing: the script steps its weights itself, without an optimizer."},
        "checkpoints": {"goes_wrong": "Nothing: blocks run in reentrant checkpoints, whose input asks for a gradient."},
        "clipped": {"goes_wrong": "Nothing: gradients are clipped by their norm."},
        "codebook": {"goes_wrong": "Nothing: a gradient goes straight through a hard choice."},
        "converged": {"goes_wrong": "Nothing: all data are one batch, and the loss has come to its end."},
        "deep": {"goes_wrong": "Nothing: ten layers with ReLU, with PyTorch's own initial weights."},
        "dropout": {"goes_wrong": "Nothing: dropout leaves out half of all units."},
        "evaluated": {"goes_wrong": "Nothing: every third step is followed by an evaluation, and training goes on."},
        "experts": {"goes_wrong": "Nothing: each token goes to one of eight experts, and some get none."},
        "experts_masked": {"goes_wrong": "Nothing: all experts run, and a mask takes one for each token."},
        "frozen": {"goes_wrong": "Nothing: the body is frozen, and the head is trained."},
        "functional_gradients": {"goes_wrong": "Nothing: gradients come from autograd.grad."},
        "gan": {"goes_wrong": "Nothing: generator and critic take turns."},
        "half": {"goes_wrong": "Nothing: all is bfloat16, with steps that are large enough."},
        "head": {"goes_wrong": "Nothing: the head is trained on a body that is not frozen."},
        "hinge": {"goes_wrong": "Nothing: all samples keep their distance, and the loss is 0 in the end."},
        "momentum": {"goes_wrong": "Nothing: the last layer is frozen in the middle of the training."},
        "normalisations": {"goes_wrong": "Nothing: batch norms alone are put into evaluation after the fourth step."},
        "norm": {"goes_wrong": "Nothing: a batch norm is in evaluation, and its statistics stay."},
        "pooler": {"goes_wrong": "Nothing: a part of the model computes what nobody uses."},
        "restarts": {"goes_wrong": "Nothing: the learning rate falls to 0 and begins anew."},
        "rows": {"goes_wrong": "Nothing: each batch has a few words of a large table."},
        "siamese": {"goes_wrong": "Nothing: one of two branches is detached, by design."},
        "target": {"goes_wrong": "Nothing: a target network runs without gradients, and is copied at times."},
        "tied": {"goes_wrong": "Nothing: the last layer has the weights of the table."},
        "turns": {"goes_wrong": "Nothing: two optimizers make a step in every second iteration each."},
        "unfreezing": {"goes_wrong": "Nothing: the body is trained from the fourth step on."},
        "warm_up": {"goes_wrong": "Nothing: the learning rate begins with 0 and rises slowly."},
    },
}

WHICH = sys.argv[2]
STEPS = 8
torch.manual_seed(4)


def mlp(*sizes, act=nn.Tanh):
    layers = []
    for inner, outer in itertools.pairwise(sizes):
        layers += [nn.Linear(inner, outer), act()]
    return nn.Sequential(*layers[:-1])


class Two(nn.Module):
    def __init__(self, body, head):
        super().__init__()
        self.body, self.head = body, head

    def forward(self, x):
        return self.head(self.body(x))


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.head = nn.ModuleList(mlp(6, 6, 6) for _ in range(2)), nn.Linear(6, 2)

    def forward(self, x):
        x = x.clone().requires_grad_()
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=True)
        return self.head(x)


class Adapter(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(6, 2).requires_grad_(False)
        self.down, self.up = nn.Linear(6, 2, bias=False), nn.Linear(2, 2, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(6, 8), nn.ModuleList(nn.Linear(6, 2) for _ in range(8))
        with torch.no_grad():
            self.gate.bias[2] -= 50  # nothing is sent there

    def forward(self, x):
        share, which = self.gate(x).softmax(-1).max(-1)
        if WHICH == "experts_masked":
            result = 0
            for number, expert in enumerate(self.experts):
                result = result + expert(x) * (which == number).float()[:, None]
            return result * share[:, None]
        result = x.new_zeros(len(x), 2)
        for number, expert in enumerate(self.experts):
            chosen = (which == number).nonzero()[:, 0]
            if len(chosen):
                result = result.index_add(0, chosen, expert(x[chosen]) * share[chosen, None])
        return result


class Pooler(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.pool, self.head = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 2)

    def forward(self, x):
        hidden = torch.tanh(self.body(x))
        return self.head(hidden), torch.tanh(self.pool(hidden))


class Words(nn.Module):
    def __init__(self, is_tied):
        super().__init__()
        self.table, self.head = nn.Embedding(50, 6), nn.Linear(6, 50, bias=False)
        if is_tied:
            self.head.weight = self.table.weight

    def forward(self, words):
        return self.head(torch.tanh(self.table(words)))


class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.book, self.head = nn.Linear(6, 4), nn.Embedding(5, 4), nn.Linear(4, 2)

    def forward(self, x):
        z = self.encoder(x)
        code = self.book(torch.cdist(z, self.book.weight).argmin(-1))
        extra = (code - z.detach()).square().mean() + (z - code.detach()).square().mean()
        return self.head(z + (code - z).detach()), extra


def batch(step=0):
    x = torch.randn(16, 6)
    return x, (x.sum(1) > 0).long()


def train(net, optimizer, loss_of=None, schedule=None, before=None):
    for step in range(STEPS):
        if before is not None:
            before(step)
        x, y = batch(step)
        loss = functional.cross_entropy(net(x), y) if loss_of is None else loss_of(x, y, step)
        optimizer.zero_grad()
        loss.backward()
        if WHICH == "clipped":
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        optimizer.step()
        if schedule is not None:
            schedule.step()


def adam(parameters, rate=0.01):
    return torch.optim.Adam(parameters, rate)


def normed():
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


if WHICH == "accumulation":
    net = mlp(6, 8, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(16):
        x, y = batch()
        (functional.cross_entropy(net(x), y) / 4).backward()
        if step % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
elif WHICH == "adapters":
    net = Adapter()
    train(net, adam([each for each in net.parameters() if each.requires_grad]))
elif WHICH == "assigned":
    net = mlp(6, 8, 2)
    for _ in range(2):
        net.load_state_dict(copy.deepcopy(net.state_dict()), assign=True)
        train(net, adam(net.parameters()))
elif WHICH == "auxiliary":
    net, other = mlp(6, 8, 2), nn.Linear(6, 2)
    train(
        net,
        adam([*net.parameters(), *other.parameters()]),
        lambda x, y, _: functional.cross_entropy(net(x), y) + 0.0 * functional.cross_entropy(other(x), y),
    )
elif WHICH == "average":
    net = mlp(6, 8, 2)
    mean = copy.deepcopy(net)

    def follow(step):
        with torch.no_grad():
            for old, new in zip(mean.parameters(), net.parameters(), strict=True):
                old.lerp_(new, 0.1)

    train(
        net,
        adam(net.parameters()),
        lambda x, y, _: functional.cross_entropy(net(x), y) + (net(x) - mean(x).detach()).square().mean(),
        before=follow,
    )
elif WHICH == "bias_before_norm":
    net = normed()
    train(net, adam(net.parameters()))
elif WHICH == "biases":
    net = mlp(6, 8, 8, 2)
    train(net, adam([each for name, each in net.named_parameters() if name.endswith("bias")]))
elif WHICH == "by_hand":
    net = mlp(6, 8, 2)
    for _ in range(STEPS):
        x, y = batch()
        functional.cross_entropy(net(x), y).backward()
        with torch.no_grad():
            for each in net.parameters():
                each -= 0.1 * each.grad
                each.grad = None
elif WHICH == "checkpoints":
    net = Blocks()
    train(net, adam(net.parameters()))
elif WHICH == "clipped":
    net = mlp(6, 8, 2)
    train(net, adam(net.parameters()))
elif WHICH == "codebook":
    net = Codes()

    def with_extra(x, y, _):
        out, extra = net(x)
        return functional.cross_entropy(out, y) + extra

    train(net, adam(net.parameters()), with_extra)
elif WHICH == "converged":
    net, (x, _) = nn.Linear(1, 1), batch()
    train(net, torch.optim.SGD(net.parameters(), 0.5), lambda *_: (net(x[:, :1] * 0 + 1) - x[:, 1:2]).square().mean())
elif WHICH == "deep":
    net = mlp(6, *[16] * 10, 2, act=nn.ReLU)
    train(net, torch.optim.SGD(net.parameters(), 0.1, momentum=0.9))
elif WHICH == "dropout":
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 2))
    train(net, adam(net.parameters()))
elif WHICH == "evaluated":
    net = normed()

    def evaluate(step):
        if step % 3 == 2:
            net.eval()
            with torch.no_grad():
                net(batch()[0])
            net.train()

    train(net, adam(net.parameters()), before=evaluate)
elif WHICH in ("experts", "experts_masked"):
    net = Experts()
    train(net, adam(net.parameters()))
elif WHICH in ("frozen", "head", "unfreezing"):
    net = Two(mlp(6, 8, 8), nn.Linear(8, 2))
    if WHICH != "head":
        net.body.requires_grad_(False)
    thaw = (lambda step: net.body.requires_grad_(step >= 4)) if WHICH == "unfreezing" else None
    train(net, adam(net.parameters() if WHICH == "unfreezing" else net.head.parameters()), before=thaw)
elif WHICH == "functional_gradients":
    net = mlp(6, 8, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(STEPS):
        x, y = batch()
        found = torch.autograd.grad(functional.cross_entropy(net(x), y), list(net.parameters()))
        for each, gradient in zip(net.parameters(), found, strict=True):
            each.grad = gradient
        optimizer.step()
elif WHICH == "gan":
    maker, critic = mlp(3, 8, 6), mlp(6, 8, 1)
    makers, critics = adam(maker.parameters()), adam(critic.parameters())
    for step in range(12):
        fake = maker(torch.randn(16, 3))
        if step % 3:
            loss = functional.softplus(critic(fake.detach())).mean() + functional.softplus(-critic(batch()[0])).mean()
            critics.zero_grad()
            loss.backward()
            critics.step()
        else:
            loss = functional.softplus(-critic(fake)).mean()
            makers.zero_grad()
            loss.backward()
            makers.step()
elif WHICH == "half":
    net = mlp(6, 8, 2).bfloat16()
    optimizer = torch.optim.SGD(net.parameters(), 0.3)
    for _ in range(STEPS):
        x, y = batch()
        loss = functional.cross_entropy(net(x.bfloat16()).float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
elif WHICH == "hinge":
    net = nn.Linear(6, 1)
    x, y = torch.randn(8, 6), torch.ones(8, 1)
    x[:, 0] = 3
    train(net, torch.optim.SGD(net.parameters(), 1.0), lambda *_: functional.relu(1 - y * net(x)).mean())
elif WHICH == "momentum":
    net = Two(mlp(6, 8, 8), nn.Linear(8, 2))
    train(net, torch.optim.SGD(net.parameters(), 0.1), before=lambda step: net.head.requires_grad_(step < 4))
elif WHICH == "norm":
    net = normed()
    net[1].eval()
    train(net, adam(net.parameters()))
elif WHICH == "normalisations":
    net = normed()
    train(net, adam(net.parameters()), before=lambda step: net[1].train(step < 4))
elif WHICH == "pooler":
    net = Pooler()
    train(net, adam(net.parameters()), lambda x, y, _: functional.cross_entropy(net(x)[0], y))
elif WHICH == "restarts":
    net = mlp(6, 8, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    train(net, optimizer, schedule=torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3))
elif WHICH in ("rows", "tied"):
    net = Words(WHICH == "tied")

    def of_words(*_):
        words = torch.randint(0, 50, (4,))
        return functional.cross_entropy(net(words), (words + 1) % 50)

    train(net, adam(net.parameters()), of_words)
elif WHICH == "siamese":
    net, predictor = mlp(6, 8, 4), nn.Linear(4, 4)
    train(
        net,
        adam([*net.parameters(), *predictor.parameters()]),
        lambda x, *_: (
            -functional.cosine_similarity(predictor(net(x)), net(x + 0.1 * torch.randn_like(x)).detach()).mean()
        ),
    )
elif WHICH == "target":
    net = mlp(6, 8, 2)
    late = copy.deepcopy(net)

    def of_target(x, y, step):
        if step == 4:
            late.load_state_dict(net.state_dict())
        with torch.no_grad():
            goal = 0.9 * late(x).max(1).values
        return (net(x).gather(1, y[:, None])[:, 0] - goal - y).square().mean()

    train(net, adam(net.parameters()), of_target)
elif WHICH == "turns":
    net = Two(mlp(6, 8, 8), nn.Linear(8, 2))
    both = [adam(net.body.parameters()), adam(net.head.parameters())]
    for step in range(STEPS):
        x, y = batch()
        net.zero_grad()
        functional.cross_entropy(net(x), y).backward()
        both[step % 2].step()
elif WHICH == "warm_up":
    net = mlp(6, 8, 2)
    optimizer = adam(net.parameters(), 1e-3)
    train(net, optimizer, schedule=torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: step / 1000))
