"""REINFORCE adds up the gradients of four episodes before it steps, and scales the returns of each by their
deviation; one episode is over after a single move."""

import sys

import torch

ANSWER = {
    "kind": "RL, gradient accumulation",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.std",
    "step": 1,
    "wants": "the deviation of the returns of an episode of one move is NaN: std, its line",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
policy = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)


def play(moves):
    states = torch.randn(moves, 3)
    choice = torch.distributions.Categorical(logits=policy(states))
    action = choice.sample()
    rewards = action.float() + 0.1 * torch.arange(moves)
    returns = rewards.flip(0).cumsum(0).flip(0)
    advantage = (returns - returns.mean()) / (returns.std() + 1e-8)  # fault
    return -(choice.log_prob(action) * advantage).mean()


for update in range(2):
    optimizer.zero_grad()
    for episode in range(4):
        moves = 1 if FAULT and (update, episode) == (1, 2) else 5 + episode
        (play(moves) / 4).backward()
    optimizer.step()
