"""The training of a robot's arm, soft actor and critic, was rewritten: both critics are one product, no modules."""

import math
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "sixth trial: soft actor and critic rewritten",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "step": 0,
    "variants": {
        "target": {
            "goes_wrong": "What is to come is judged by the critics that learn, not by those that follow slowly.",
            "wants": "the call of the critics for the next state, or the first product in it",
        },
        "squashed": {
            "goes_wrong": "The logarithm of the chance lacks the term for the tangent.",
            "wants": "the sum that is the logarithm of the chance, or the first sum that reads it",
        },
        "states": {
            "goes_wrong": "The next action is drawn in the state of now, not in the next state.",
            "wants": "the call of the actor for the next action, or its first product",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
SEEN, MOVES, WIDTH, BATCH, STEPS = 6, 2, 16, 12, 3
DISCOUNT, SHARE, RATE, AIM = 0.97, 0.05, 0.003, -MOVES

rng = np.random.default_rng(608)


def drawn(*shape):
    return torch.from_numpy(rng.standard_normal(shape, dtype=np.float32))


def layers(into, out):
    found = {}
    for number, (one, two) in enumerate(((into, WIDTH), (WIDTH, WIDTH), (WIDTH, out))):
        found[f"{2 * number}.weight"] = (1.3 if number < 2 else 0.7) * drawn(two, one) / one**0.5
        found[f"{2 * number}.bias"] = 0.2 * drawn(two)
    return found


def near(weights):
    return {name: tensor + 0.1 * drawn(*tensor.shape) for name, tensor in weights.items()}


# The training goes on from a checkpoint, so that the slow critics are not the same as the critics.
actor_weights = layers(SEEN, 2 * MOVES)
critic_weights = [layers(SEEN + MOVES, 1) for _ in range(2)]
slow_weights = [near(weights) for weights in critic_weights]
states, nexts = drawn(STEPS, BATCH, SEEN), drawn(STEPS, BATCH, SEEN)
moves = torch.tanh(drawn(STEPS, BATCH, MOVES))
rewards, noises = drawn(STEPS, BATCH), drawn(STEPS, 2, BATCH, MOVES)
ends = torch.from_numpy((rng.random((STEPS, BATCH)) < 0.2).astype(np.float32))


def perceptron(into, out, weights):
    net = nn.Sequential(nn.Linear(into, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, out))
    net.load_state_dict(weights)
    return net


def train_modules():
    actor = perceptron(SEEN, 2 * MOVES, actor_weights)
    critics = nn.ModuleList(perceptron(SEEN + MOVES, 1, weights) for weights in critic_weights)
    slow = nn.ModuleList(perceptron(SEEN + MOVES, 1, weights) for weights in slow_weights)
    slow.requires_grad_(False)
    log_alpha = nn.Parameter(torch.tensor(-1.0))
    of_actor = torch.optim.Adam(actor.parameters(), RATE)
    of_critics = torch.optim.Adam(critics.parameters(), RATE)
    of_alpha = torch.optim.Adam([log_alpha], RATE)
    tangent = torch.distributions.transforms.TanhTransform()

    def act(state, noise):
        mean, log_deviation = actor(state).chunk(2, -1)
        chances = torch.distributions.Normal(mean, log_deviation.clamp(-4, 1).exp())
        raw = chances.mean + chances.stddev * noise
        move = tangent(raw)
        return move, (chances.log_prob(raw) - tangent.log_abs_det_jacobian(raw, move)).sum(-1)

    def judge(judges, state, move):
        both = torch.cat([state, move], -1)
        return [each(both).squeeze(-1) for each in judges]

    for state, move, reward, later, end, noise in zip(states, moves, rewards, nexts, ends, noises, strict=True):
        alpha = log_alpha.exp().detach()
        with torch.no_grad():
            next_move, chance = act(later, noise[0])
            worth = torch.min(*judge(slow, later, next_move)) - alpha * chance
            aim = reward + DISCOUNT * (1 - end) * worth
        critic_loss = sum(F.mse_loss(each, aim) for each in judge(critics, state, move))
        of_critics.zero_grad()
        critic_loss.backward()
        of_critics.step()

        own_move, chance = act(state, noise[1])
        actor_loss = (alpha * chance - torch.min(*judge(critics, state, own_move))).mean()
        of_actor.zero_grad()
        actor_loss.backward()
        of_actor.step()

        alpha_loss = -(log_alpha * (chance.detach() + AIM)).mean()
        of_alpha.zero_grad()
        alpha_loss.backward()
        of_alpha.step()
        with torch.no_grad():
            for slow_one, one in zip(slow.parameters(), critics.parameters(), strict=True):
                slow_one.mul_(1 - SHARE).add_(one, alpha=SHARE)
        print(critic_loss.item(), actor_loss.item(), alpha_loss.item(), sep="\n")


def stacked(several):
    """The weights of the critics side by side."""
    return [torch.stack([weights[name] for weights in several]) for name in several[0]]


def run_actor(p, state, noise):
    h = torch.relu(torch.addmm(p[1], state, p[0].T))  # fault states
    h = torch.relu(torch.addmm(p[3], h, p[2].T))
    told = torch.addmm(p[5], h, p[4].T)
    mean, log_deviation = told[:, :MOVES], told[:, MOVES:].clip(-4, 1)
    raw = mean + log_deviation.exp() * noise
    move = torch.tanh(raw)
    chance = -0.5 * noise.square() - log_deviation - 0.5 * math.log(2 * math.pi)  # fault squashed
    if FAULT != "squashed":
        chance = chance - torch.log1p(-move.square())
    return move, chance.sum(-1)  # fault squashed


def run_critics(p, state, move):
    """What both critics say: (2, batch)."""
    x = torch.cat([state, move], -1).expand(2, -1, -1)
    h = torch.relu(torch.baddbmm(p[1][:, None], x, p[0].mT))  # fault target
    h = torch.relu(torch.baddbmm(p[3][:, None], h, p[2].mT))
    return torch.baddbmm(p[5][:, None], h, p[4].mT)[..., 0]


def train_functions():
    actor = [tensor.clone().requires_grad_() for tensor in actor_weights.values()]
    critics = [tensor.requires_grad_() for tensor in stacked(critic_weights)]
    slow, log_alpha = stacked(slow_weights), torch.tensor(-1.0, requires_grad=True)
    of_actor, of_critics, of_alpha = (torch.optim.Adam(each, RATE) for each in (actor, critics, [log_alpha]))

    def update(optimizer, loss, parameters):
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = gradient
        optimizer.step()

    for step in range(STEPS):
        state, later = states[step], nexts[step]
        alpha = log_alpha.detach().exp()
        with torch.no_grad():
            place = state if FAULT == "states" else later
            next_move, chance = run_actor(actor, place, noises[step, 0])  # fault states
            judges = critics if FAULT == "target" else slow
            judged = run_critics(judges, later, next_move)  # fault target
            worth = judged.amin(0) - alpha * chance
            aim = torch.addcmul(rewards[step], DISCOUNT * (1 - ends[step]), worth)
        critic_loss = (run_critics(critics, state, moves[step]) - aim).square().mean(1).sum()
        update(of_critics, critic_loss, critics)
        own_move, chance = run_actor(actor, state, noises[step, 1])
        actor_loss = (alpha * chance - run_critics(critics, state, own_move).amin(0)).mean()
        update(of_actor, actor_loss, actor)
        alpha_loss = -log_alpha * (chance.detach().mean() + AIM)
        update(of_alpha, alpha_loss, [log_alpha])
        with torch.no_grad():
            torch._foreach_lerp_(slow, critics, SHARE)
        print(critic_loss.item(), actor_loss.item(), alpha_loss.item(), sep="\n")


train_modules() if sys.argv[1] == "golden" else train_functions()
