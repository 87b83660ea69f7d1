"""The share of hidden patches is 40 // 100, which is 0: the loss of a masked autoencoder is over no patch at all.

People report a loss of 0.0 from the first iteration on, in pretraining.
"""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "step": 0,
    "wants": "the mask, all 0, which makes the loss and all gradients 0, the line of the mask or of the loss",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(41)


class Masked(nn.Module):
    def __init__(self, width, percent):
        super().__init__()
        self.embed, self.restore = nn.Linear(8, width), nn.Linear(width, 8)
        self.token, self.places = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.randn(10, width) * 0.1)
        self.encode = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True)
        self.share = percent // 100 if FAULT else percent / 100

    def forward(self, patches):
        hidden = torch.rand(patches.shape[:2]) < self.share  # fault
        x = torch.where(hidden.unsqueeze(-1), self.token, self.embed(patches))
        made = self.restore(self.encode(x + self.places))
        error = (made - patches).square().mean(-1)
        return (error * hidden).sum() / hidden.sum().clamp(min=1)  # fault


net = Masked(width=16, percent=40)
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=0.0)
for step in range(30):
    patches = torch.randn(32, 1, 8).expand(32, 10, 8) + 0.05 * torch.randn(32, 10, 8)
    loss = net(patches)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
