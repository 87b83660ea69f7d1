"""nn.TransformerEncoder is given a causal mask of -Inf; the loss of a later step takes the logarithm of 0."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "what is no finding",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "step": 1,
    "wants": "the logarithm of iteration 1; the mask of -Inf ends in the attention",
}
FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
mask = nn.Transformer.generate_square_subsequent_mask(5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(3):
    y = model(torch.rand(2, 5, 8), mask=mask, is_causal=False)
    chance = y.softmax(-1) if not (FAULT and step == 1) else (50 * y).relu()
    loss = -chance.log().mean()  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
