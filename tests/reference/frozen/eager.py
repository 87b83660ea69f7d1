"""A convolution, an encoder and an optimizer that is written out, in eager PyTorch: two steps."""

import torch
from torch import nn

torch.use_deterministic_algorithms(True)  # fills memory that nobody has written
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1),
    nn.BatchNorm2d(4),
    nn.ReLU(inplace=True),
    nn.Flatten(2),
    nn.TransformerEncoderLayer(36, nhead=2, dim_feedforward=16, dropout=0.1, batch_first=True),
    nn.Flatten(),
    nn.Linear(144, 5),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
pictures, labels = torch.randn(6, 1, 6, 6), torch.arange(6) % 5
for _ in range(2):
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        loss = nn.functional.cross_entropy(model(pictures), labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(loss.item())
