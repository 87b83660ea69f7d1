"""Trainings in which axes, rows or the two sides of an average are mixed up."""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "variants": {
        "swapped_average": {
            "goes_wrong": "A teacher keeps 0.01 of itself and takes 0.99 of its student, in place of the opposite.",
            "says": ["forgets"],
            "wants": "the average, which forgets, its line",
        },
        "momentum_of_another_framework": {
            "goes_wrong": "A batch norm has a momentum of 0.9, which another framework means the other way round.",
            "says": ["forget"],
            "wants": "the running statistics, which forget, the line of the batch norm",
        },
        "reshaped_time": {
            "goes_wrong": "A view makes time first of batch first: words of one sentence come to another.",
            "says": ["mixes up axes"],
            "wants": "the view, its line",
        },
        "reshaped_states": {
            "goes_wrong": "A view makes one row for each sentence of the states of two layers, layer by layer.",
            "says": ["mixes up axes"],
            "wants": "the view, its line",
        },
        "attention_axis": {
            "goes_wrong": "The softmax of an attention runs over the words that ask, not over those that are asked.",
            "says": ["sums along axis"],
            "wants": "the softmax, its line",
        },
        "batch_for_time": {
            "goes_wrong": "An LSTM has not been told that the batch comes first: it runs over sentences.",
            "says": ["for time"],
            "wants": "the LSTM, which takes the batch for time, its line",
        },
        "labels_of_other_rows": {
            "goes_wrong": "Labels are drawn by a second permutation, not by that of the data.",
            "says": ["other rows"],
            "wants": "the labels, which are of other rows, their line",
        },
    },
}

FAULT, WHICH = sys.argv[1] == "faulty", sys.argv[2]
ROWS, BATCH, WORDS, SIZE = 96, 16, 6, 8
torch.manual_seed(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(SIZE, 12)
        self.ask, self.asked, self.value = (nn.Linear(12, 12) for _ in range(3))
        momentum = 0.9 if FAULT and WHICH == "momentum_of_another_framework" else 0.1
        self.norm, self.cell = nn.BatchNorm1d(12, momentum=momentum), nn.GRU(12, 12, 2)
        self.memory = nn.LSTM(12, 12, batch_first=not (FAULT and WHICH == "batch_for_time"))
        self.head = nn.Linear(24 if WHICH == "reshaped_states" else 12, 3)

    def forward(self, x):
        h = torch.tanh(self.body(x))
        if WHICH == "attention_axis":
            scores = self.ask(h) @ self.asked(h).transpose(1, 2) / 12**0.5
            shares = functional.softmax(scores, 1 if FAULT else 2)  # fault attention_axis
            h = functional.dropout(shares, 0.1, self.training) @ self.value(h)
        if WHICH == "batch_for_time":
            h = self.memory(functional.dropout(h, 0.1, self.training))[0]  # fault batch_for_time
        if WHICH == "reshaped_time":
            h = h.view(WORDS, len(x), 12) if FAULT else h.transpose(0, 1)  # fault reshaped_time
            return self.head(self.cell(h)[0][-1])
        if WHICH == "reshaped_states":
            states = self.cell(h.transpose(0, 1))[1]
            states = states if FAULT else states.transpose(0, 1)
            return self.head(states.reshape(len(x), -1))  # fault reshaped_states
        return self.head(self.norm(h.mean(1)))  # fault momentum_of_another_framework


net, teacher = Net(), Net().requires_grad_(False)
teacher.load_state_dict(net.state_dict())
data = torch.randn(ROWS, WORDS, SIZE)
labels = data[:, -1, :3].argmax(1)
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for _ in range(12):
    rows = torch.randperm(ROWS)[:BATCH]
    others = torch.randperm(ROWS)[:BATCH]
    wanted = labels[others if FAULT and WHICH == "labels_of_other_rows" else rows]  # fault labels_of_other_rows
    given = data[rows]
    loss = functional.cross_entropy(net(given), wanted)
    if WHICH == "swapped_average":
        loss = loss + functional.mse_loss(net(given), teacher(given))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        share = 0.01 if FAULT and WHICH == "swapped_average" else 0.99
        for old, new in zip(teacher.parameters(), net.parameters(), strict=True):
            old.mul_(share).add_(new, alpha=1 - share)  # fault swapped_average
    print(loss.item())
