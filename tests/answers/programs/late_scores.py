"""Contrastive and reinforcement learning whose scores are taken, scaled or compared in a way that teaches nothing.

People report a contrastive loss that stays at the logarithm of the batch, a Q-network whose loss stays at the variance
of its rewards, and a policy of PPO that is as random after training as before.
"""

import sys

import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "variants": {
        "times_the_temperature": {
            "goes_wrong": "Similarities are multiplied by a temperature of 0.07, not divided: no score is above 0.07, "
            "so that each of the batch has almost the same probability.",
            "wants": "the scores, which lie between -0.07 and 0.07, or the loss, which stays at the logarithm of 48, "
            "the line of either",
        },
        "gathered_over_the_batch": {
            "goes_wrong": "The values of the actions are gathered along axis 0: an action picks one of the first four "
            "states of the batch, and all other states get no gradient.",
            "wants": "the gather along axis 0, which reads the first rows and the first column alone, its line or that "
            "of the values, three of four of which get no gradient",
        },
        "ratio_to_itself": {
            "goes_wrong": "PPO compares its policy with itself, not with the probabilities of the rollout, and does "
            "not detach them: the ratio is 1, and its gradients cancel out.",
            "wants": "the ratio, which is always 1, so that the head of the policy gets a gradient of 0, its line, "
            "or that of the probabilities it compares, of the head, or of the loss of the policy",
        },
    },
}

FAULT, WHICH = sys.argv[1] == "faulty", sys.argv[2]
BATCH = 48
torch.manual_seed(74)


def layers(inputs, width, outputs):
    return nn.Sequential(
        *(nn.Linear(inputs, width), nn.LayerNorm(width), nn.GELU()),
        *(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU(), nn.Linear(width, outputs)),
    )


class Towers(nn.Module):
    """Two views of a thing find each other among those of a batch."""

    def __init__(self):
        super().__init__()
        self.first, self.second = layers(16, 48, 16), layers(20, 48, 16)
        self.register_buffer("to_first", torch.randn(8, 16))
        self.register_buffer("to_second", torch.randn(8, 20))

    def loss(self, step):
        thing = torch.randn(BATCH, 8)
        one = functional.normalize(self.first(thing @ self.to_first), dim=-1)
        two = functional.normalize(self.second(thing @ self.to_second), dim=-1)
        near = one @ two.T  # fault times_the_temperature
        scores = near * 0.07 if FAULT else near / 0.07  # fault times_the_temperature
        pairs = torch.arange(BATCH)
        there = functional.cross_entropy(scores, pairs)  # fault times_the_temperature
        back = functional.cross_entropy(scores.T, pairs)  # fault times_the_temperature
        return (there + back) / 2  # fault times_the_temperature


class Values(nn.Module):
    """A Q-network and its target, which learn from a memory of steps."""

    def __init__(self):
        super().__init__()
        self.net, self.target = layers(6, 48, 4), layers(6, 48, 4)
        self.target.requires_grad_(False)
        self.memory = torch.randn(512, 6)
        self.actions = torch.randint(4, (512, 1))
        self.rewards = (self.memory @ torch.randn(6, 4)).tanh().gather(1, self.actions)
        self.following = torch.randn(512, 6)
        self.over = (torch.rand(512, 1) < 0.6).float()

    def loss(self, step):
        if step % 10 == 0:
            self.target.load_state_dict(self.net.state_dict())
        rows = torch.randint(512, (BATCH,))
        values = self.net(self.memory[rows])  # fault gathered_over_the_batch
        chosen = values.gather(0 if FAULT else 1, self.actions[rows])  # fault gathered_over_the_batch
        with torch.no_grad():
            best = self.target(self.following[rows]).amax(1, keepdim=True)
            wanted = self.rewards[rows] + 0.5 * (1 - self.over[rows]) * best
        return functional.smooth_l1_loss(chosen, wanted)


class Policy(nn.Module):
    """An actor and critic with one body, which reuse each rollout five times."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(layers(6, 48, 32), nn.Tanh())
        self.actor, self.critic = nn.Linear(32, 3), nn.Linear(32, 1)
        self.register_buffer("right", torch.randn(6, 3))

    def chances(self, states):
        return Categorical(logits=self.actor(self.body(states)))  # fault ratio_to_itself

    def rollout(self):
        with torch.no_grad():
            self.states = torch.randn(4 * BATCH, 6)
            chances = self.chances(self.states)
            self.actions = chances.sample()
            self.before = chances.log_prob(self.actions)
            self.rewards = (self.actions == (self.states @ self.right).argmax(1)).float()
            gain = self.rewards - self.critic(self.body(self.states))[:, 0]
            self.gain = (gain - gain.mean()) / (gain.std() + 1e-8)

    def loss(self, step):
        if step % 5 == 0:
            self.rollout()
            print("reward", self.rewards.mean().item())
        now = self.chances(self.states).log_prob(self.actions)  # fault ratio_to_itself
        before = self.chances(self.states).log_prob(self.actions) if FAULT else self.before  # fault ratio_to_itself
        ratio = torch.exp(now - before)  # fault ratio_to_itself
        bounded = ratio.clamp(0.8, 1.2)  # fault ratio_to_itself
        policy = -torch.min(ratio * self.gain, bounded * self.gain).mean()  # fault ratio_to_itself
        value = functional.mse_loss(self.critic(self.body(self.states))[:, 0], self.rewards)
        return policy + 0.5 * value


made = {"times_the_temperature": Towers, "gathered_over_the_batch": Values, "ratio_to_itself": Policy}
net = made[WHICH]()
asking = [each for each in net.parameters() if each.requires_grad]
optimizer = torch.optim.Adam(asking, lr=0.01)
for step in range(40):
    loss = net.loss(step)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(asking, 1.0)
    optimizer.step()
    print(step, loss.item())
