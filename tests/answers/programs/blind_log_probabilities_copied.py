"""An actor and critic: logarithms of probabilities are collected in a list, which torch.tensor makes a new tensor of.

People report that the loss of their critic falls, while the reward of the policy stays that of chance.
"""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "policy.",
    "step": 0,
    "wants": "policy.weight and policy.bias, which get no gradient, cut by the call of torch.tensor, its line",
}

torch.manual_seed(12)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.policy, self.value = nn.Linear(32, 4), nn.Linear(32, 1)

    def forward(self, state):
        hidden = self.body(state)
        return self.policy(hidden), self.value(hidden).squeeze(-1)


net = ActorCritic()
optimizer = torch.optim.Adam(net.parameters(), lr=0.03)
for episode in range(30):
    log_probs, values, rewards = [], [], []
    for _ in range(24):
        state = torch.randn(4)
        logits, value = net(state)
        choice = torch.distributions.Categorical(logits=logits)
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        values.append(value)
        rewards.append(float(action == state.argmax()))
    rewards, values = torch.tensor(rewards), torch.stack(values)
    if sys.argv[1] == "faulty":
        log_probs = torch.tensor(log_probs)  # fault
    else:
        log_probs = torch.stack(log_probs)
    advantage = rewards - values.detach()
    loss = -(log_probs * advantage).mean() + 0.5 * (rewards - values).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(episode, rewards.mean().item())
