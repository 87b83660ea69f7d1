"""Two towers with a learned scale of their similarities, which the loss reads as a Python number.

People report that the scale of their contrastive model is the same in every log, and that the loss stays far above 0.
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
    "operator": "log_scale",
    "step": 0,
    "wants": "the parameter log_scale, which gets no gradient, cut by item, its line",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(11)


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 8))
        self.text = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 8))
        self.log_scale = nn.Parameter(torch.zeros(()))

    def forward(self, image, text):
        image = functional.normalize(self.image(image), dim=-1)
        text = functional.normalize(self.text(text), dim=-1)
        scale = self.log_scale.exp()
        if FAULT:
            scale = scale.item()  # fault
        return scale * image @ text.T


net = Towers()
optimizer = torch.optim.Adam(net.parameters(), lr=0.03)
to_image, to_text = torch.randn(6, 12), torch.randn(6, 10)
for step in range(30):
    hidden = torch.randn(32, 6)
    logits = net(hidden @ to_image, hidden @ to_text)
    pairs = torch.arange(32)
    loss = (functional.cross_entropy(logits, pairs) + functional.cross_entropy(logits.T, pairs)) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
