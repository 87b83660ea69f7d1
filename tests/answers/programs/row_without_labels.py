"""A small decoder with rotary embedding; its trainer averages over labels, and one row of a batch has none."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

ANSWER = {
    "kind": "names and iterations",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.div",
    "step": 2,
    "never": ["inv_freq"],
    "wants": "the division of the loss by the number of labels, iteration 2; not that of the rotary embedding",
}
FAULT = sys.argv[1] == "faulty"


class Decoder(nn.Module):
    def __init__(self, vocabulary=17, width=8):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.inv_freq = 1.0 / 10000 ** (torch.arange(0, width, 2) / width)

    def forward(self, ids):
        x = self.embed(ids)
        angle = (torch.arange(ids.shape[1])[:, None] * self.inv_freq).repeat(1, 2)
        a, b = x.chunk(2, -1)
        q = x * angle.cos() + torch.cat([-b, a], -1) * angle.sin()
        return self.head(F.scaled_dot_product_attention(q, q, x, is_causal=True))


class Trainer:
    def __init__(self, model):
        self.model, self.optimizer = model, torch.optim.AdamW(model.parameters(), lr=0.01)

    def loss(self, ids, labels):
        losses = F.cross_entropy(self.model(ids).transpose(1, 2), labels, reduction="none", ignore_index=-100)
        return (losses.sum(1) / (labels != -100).sum(1)).mean()  # fault

    def fit(self, batches):
        for ids, labels in batches:
            self.optimizer.zero_grad()
            self.loss(ids, labels).backward()
            self.optimizer.step()


torch.manual_seed(0)
batches = [(ids, ids.clone()) for ids in torch.randint(0, 17, (4, 2, 6))]
batches[2][1][1, 0 if FAULT else 3 :] = -100
Trainer(Decoder()).fit(batches)
