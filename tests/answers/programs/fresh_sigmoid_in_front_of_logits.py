"""The net ends in a sigmoid, and the loss applies another one: no score can be below 0, so no pixel is background.

People report a segmentation loss that stops near 0.69 and a mask that covers most of the picture.
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
    "wants": "the sigmoid in front of binary_cross_entropy_with_logits: its values lie in 0 to 1 and saturate at 0",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(58)


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(1, 8, 3, padding=1)
        self.middle = nn.Conv2d(8, 8, 3, padding=1)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        x = functional.relu(self.down(x))
        x = functional.relu(self.middle(x))
        x = self.out(x)
        return torch.sigmoid(x) if FAULT else x  # fault


masks = torch.zeros(16, 1, 16, 16)
for number, mask in enumerate(masks):
    mask[:, number % 8 + 2 : number % 8 + 6, number // 2 + 1 : number // 2 + 6] = 1
pictures = masks + 0.3 * torch.randn(16, 1, 16, 16)
net = Segmenter()
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
for step in range(50):
    scores = net(pictures)
    loss = functional.binary_cross_entropy_with_logits(scores, masks)  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    found = (scores.sigmoid() > 0.5).float()
    print(step, loss.item(), ((found * masks).sum() / (found + masks).clamp(max=1).sum()).item())
