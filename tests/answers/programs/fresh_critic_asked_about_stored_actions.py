"""The loss of the actor asks the critic about the actions of the replay memory, not about those of the actor.

People report an actor of DDPG whose weights never change and whose gradients are all None, while the critic learns.
"""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "says": ["gradient"],
    "wants": "the weights of the actor, which get no gradient: its loss is made of the stored actions",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(54)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, state, action):
        return self.body(torch.cat([state, action], 1))


actor = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2), nn.Tanh())
critic = Critic()
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=0.01)  # fault
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=0.02)
for step in range(60):
    states = torch.randn(128, 4)
    with torch.no_grad():
        actions = (actor(states) + 0.5 * torch.randn(128, 2)).clamp(-1, 1)  # fault
        rewards = 1 - (actions - states[:, :2].tanh()).square().sum(1, keepdim=True)
    critic_loss = functional.mse_loss(critic(states, actions), rewards)
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()

    chosen = actions if FAULT else actor(states)  # fault
    actor_loss = -critic(states, chosen).mean()  # fault
    actor_optimizer.zero_grad()
    actor_loss.backward()  # fault
    actor_optimizer.step()  # fault
    print(step, critic_loss.item(), actor_loss.item(), rewards.mean().item())
