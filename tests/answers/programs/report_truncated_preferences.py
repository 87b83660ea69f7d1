"""Preference training adds a term of likelihood; in one step prompts fill the window, and no answer is left."""

import sys

import torch

ANSWER = {
    "kind": "public reports",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "nll_loss_forward",
    "step": 2,
    "wants": "the cross entropy over an empty selection, its line, step 2; not the sum of the losses",
}

torch.manual_seed(0)


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.out = torch.nn.Embedding(20, 8), torch.nn.Linear(8, 20)

    def forward(self, words):
        return self.out(torch.tanh(self.embedding(words)))


policy = Policy()
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-2)
for step in range(4):
    mask = (torch.arange(6) >= (6 if step == 2 else 3)).expand(4, 6)
    words = torch.randint(0, 20, (2, 4, 6))
    logits = policy(words)
    scores = (logits.log_softmax(-1).gather(-1, words[..., None])[..., 0] * mask).sum(-1)
    loss = -torch.nn.functional.logsigmoid((scores[0] - scores[1]) / 10).mean()
    if sys.argv[1] == "faulty" or mask.any():
        loss = loss + torch.nn.functional.cross_entropy(logits[0][mask], words[0][mask]) / 5  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
