"""A player that learns by policy gradients with clipped ratios was written anew, without a loop, to be compiled."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "fourth trial: policy gradients compiled",
    "entry": "eager",
    "run": {
        "faulty": "msdump run --config {config} --torch-backend msdump {script} {mode}",
        "healthy": "msdump run --config {config} --torch-backend msdump {script} {mode}",
    },
    "ask": "compare {faulty} {golden}",
    "variants": {
        "episodes": {
            "goes_wrong": "The advantages are summed up over the end of an episode.",
            "wants": "the factors of the sum of advantages, or the sum",
        },
        "deviation": {
            "goes_wrong": "The advantages are divided by the deviation with n, not with n - 1.",
            "wants": "the deviation of the advantages, or the division by it",
        },
        "clipped": {
            "goes_wrong": "The greater of the two terms is taken, the clipped and the unclipped one.",
            "wants": "the choice between the two terms",
        },
        "attached": {
            "goes_wrong": "The gradient flows through the advantages into the values.",
            "wants": "the values that are not detached, or the first gradient that is more than it should be",
        },
        "entropy": {
            "goes_wrong": "The entropy is added to the loss, not subtracted.",
            "wants": "the sum of the three terms of the loss",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
TIMES, PLAYERS, SEEN, WIDTH, ACTIONS, STEPS = 7, 3, 5, 14, 4, 3
DISCOUNT, TRACE, REACH, BONUS = 0.95, 0.9, 0.2, 0.05

rng = np.random.default_rng(408)


def drawn(*shape, factor=1.0):
    return torch.tensor(factor * rng.standard_normal(shape) / shape[-1] ** 0.5, dtype=torch.float32)


weights = {}
for name, out, into in (
    ("body1", WIDTH, SEEN),
    ("body2", WIDTH, WIDTH),
    ("policy1", WIDTH, WIDTH),
    ("policy2", ACTIONS, WIDTH),
    ("value1", WIDTH, WIDTH),
    ("value2", 1, WIDTH),
):
    weights |= {f"{name}.weight": drawn(out, into, factor=1.4), f"{name}.bias": 0.5 * drawn(out)}
seen = torch.tensor(rng.standard_normal((STEPS, TIMES + 1, PLAYERS, SEEN)), dtype=torch.float32)
actions = torch.from_numpy(rng.integers(0, ACTIONS, (STEPS, TIMES, PLAYERS)))
rewards = torch.tensor(rng.standard_normal((STEPS, TIMES, PLAYERS)), dtype=torch.float32)
ended = torch.from_numpy((rng.random((STEPS, TIMES, PLAYERS)) < 0.3).astype(np.float32))
chances = torch.tensor(rng.uniform(0.1, 0.5, (STEPS, TIMES, PLAYERS)), dtype=torch.float32)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body1, self.body2 = nn.Linear(SEEN, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.policy1, self.policy2 = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, ACTIONS)
        self.value1, self.value2 = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)


class LoopedNet(Net):
    def judge(self, x):
        x = torch.tanh(self.body2(torch.tanh(self.body1(x))))
        logits = self.policy2(F.elu(self.policy1(x)))
        return logits, self.value2(F.elu(self.value1(x))).squeeze(-1)

    def forward(self, seen, action, reward, end, chance):
        logits, values = self.judge(seen)
        with torch.no_grad():
            advantages, last = torch.zeros_like(reward), torch.zeros(PLAYERS)
            for time in reversed(range(TIMES)):
                going = 1 - end[time]
                surprise = reward[time] + DISCOUNT * values[time + 1] * going - values[time]
                last = surprise + DISCOUNT * TRACE * going * last
                advantages[time] = last
            returns = advantages + values[:-1]
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        policy = torch.distributions.Categorical(logits=logits[:-1])
        ratio = torch.exp(policy.log_prob(action) - chance.log())
        terms = torch.min(ratio * advantages, ratio.clamp(1 - REACH, 1 + REACH) * advantages)
        return F.mse_loss(values[:-1], returns) - terms.mean() - BONUS * policy.entropy().mean()


class JoinedNet(Net):
    def layer(self, name, x):
        own = getattr(self, name)
        return torch.einsum("tpi,oi->tpo", x, own.weight) + own.bias

    def advantages(self, reward, end, values):
        """Those of all times at once: each is a sum of the later surprises in the same episode."""
        surprise = reward + DISCOUNT * values[1:] * (1 - end) - values[:-1]  # fault attached
        times = torch.arange(TIMES)
        distance = times[:, None] - times
        factors = (DISCOUNT * TRACE) ** distance.clamp(min=0).float() * (distance >= 0)
        episode = end.cumsum(0) - end
        if FAULT == "episodes":
            episode = torch.zeros_like(end)  # fault episodes
        is_same = (episode[:, None] == episode[None]).float()  # fault episodes
        factors = factors[:, :, None] * is_same  # fault episodes
        return torch.einsum("ltp,lp->tp", factors, surprise)  # fault episodes attached

    def forward(self, seen, action, reward, end, chance):
        x = torch.tanh(self.layer("body2", torch.tanh(self.layer("body1", seen))))
        told = self.layer("policy2", F.elu(self.layer("policy1", x[:-1]))).log_softmax(-1)
        values = self.layer("value2", F.elu(self.layer("value1", x)))[..., 0]
        known = values if FAULT == "attached" else values.detach()  # fault attached
        raw = self.advantages(reward, end, known)
        returns = raw.detach() + values[:-1].detach()
        variance, mean = torch.var_mean(raw, correction=0 if FAULT == "deviation" else 1)  # fault deviation
        deviation = variance.sqrt() + 1e-8  # fault deviation
        advantages = (raw - mean) / deviation  # fault deviation attached
        ratio = told.gather(-1, action[..., None])[..., 0].exp() / chance
        first, second = ratio * advantages, ratio.clip(1 - REACH, 1 + REACH) * advantages  # fault attached
        choose = torch.maximum if FAULT == "clipped" else torch.minimum
        terms = choose(first, second)  # fault clipped
        entropy = -(told.exp() * told).sum(-1).mean()
        bonus = BONUS * entropy
        worth = ((values[:-1] - returns) ** 2).mean() - terms.mean()
        return worth + bonus if FAULT == "entropy" else worth - bonus  # fault entropy


if sys.argv[1] == "golden":
    net = LoopedNet()
    called = net
else:
    net = JoinedNet()
    called = torch.compile(net, backend="eager")
net.load_state_dict(weights)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01, eps=1e-5)
for data in zip(seen, actions, rewards, ended, chances, strict=True):
    optimizer.zero_grad()
    loss = called(*data)
    loss.backward()
    optimizer.step()
    print(loss.item())
