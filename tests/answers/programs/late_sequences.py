"""Recurrent nets over sentences of different lengths, whose loss stays where chance puts it.

People report an LSTM whose loss does not leave the logarithm of the number of classes, though the code runs without a
complaint: it reads the wrong axis, is asked behind the padding, or meets labels of other sentences.
"""

import sys

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "variants": {
        "batch_first": {
            "goes_wrong": "A tagger hands (batch, time, features) to an LSTM without `batch_first`: it runs from one "
            "sentence to the next, and no word knows the word before it.",
            "wants": "the LSTM, which takes the batch of 48 for time, its line or that of its constructor",
        },
        "sorted_by_length": {
            "goes_wrong": "Sentences are sorted by length to be packed, and their labels stay in the old order.",
            "wants": "the labels, which do not belong to the sentences they meet, the line of the sort, the loss, or "
            "where the sorted words are read",
        },
        "behind_the_padding": {
            "goes_wrong": "A classifier takes the LSTM's state at the last place, which lies 40 places of padding "
            "behind the last word: the state is the same for all sentences.",
            "wants": "the state at the last place, the same for all sentences of the batch, the line that takes "
            "it; or that hardly a gradient comes back to the words, their line or that of the LSTM",
        },
    },
}

FAULT, WHICH = sys.argv[1] == "faulty", sys.argv[2]
WRONG = WHICH if FAULT else ""
WORDS, CLASSES, SENTENCES, PADDING = 24, 4, 48, 0
torch.manual_seed(71)


class Tagger(nn.Module):
    """Gives each word the tag that the word before it asks for."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, 24, padding_idx=PADDING)
        self.norm = nn.LayerNorm(24)
        self.lstm = nn.LSTM(24, 32, bidirectional=True, batch_first=WRONG != "batch_first")  # fault batch_first
        self.head = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, CLASSES))

    def forward(self, words):
        read = self.norm(self.words(words))
        states, _ = self.lstm(read)  # fault batch_first
        return self.head(states)


class Classifier(nn.Module):
    """Gives a sentence one label."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, 24, padding_idx=PADDING)
        self.lstm = nn.LSTM(24, 32, num_layers=2, batch_first=True)
        self.norm = nn.LayerNorm(32)
        self.head = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, CLASSES))

    def forward(self, words, lengths):
        read = self.words(words)  # fault sorted_by_length behind_the_padding
        if WHICH == "sorted_by_length":
            packed = pack_padded_sequence(read, lengths, batch_first=True)  # fault sorted_by_length
            states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
            last = states[torch.arange(len(words)), lengths - 1]
        else:
            states, _ = self.lstm(read)  # fault behind_the_padding
            if WRONG == "behind_the_padding":
                last = states[:, -1]  # fault behind_the_padding
            else:
                last = states[torch.arange(len(words)), lengths - 1]
        return self.head(self.norm(last))  # fault behind_the_padding


def sentences(places):
    """Sentences of 3 to 9 words with padding behind them, and their lengths."""
    lengths = torch.randint(3, 10, (SENTENCES,))
    words = torch.randint(1, WORDS, (SENTENCES, places))
    words[torch.arange(places) >= lengths[:, None]] = PADDING
    return words, lengths


def tags(words):
    before = functional.pad(words, (1, 0))[:, :-1]
    wanted = before % CLASSES
    wanted[words == PADDING] = -100
    return wanted


net = Tagger() if WHICH == "batch_first" else Classifier()
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
for step in range(30):
    words, lengths = sentences(50 if WHICH == "behind_the_padding" else 9)
    if WHICH == "batch_first":
        scores, labels = net(words), tags(words)
        loss = functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), ignore_index=-100)
    else:
        # The topic of a sentence is that of its last word.
        labels = words[torch.arange(SENTENCES), lengths - 1] % CLASSES
        if WHICH == "sorted_by_length":
            lengths, order = lengths.sort(descending=True)  # fault sorted_by_length
            words = words[order]  # fault sorted_by_length
            labels = labels if FAULT else labels[order]  # fault sorted_by_length
        scores = net(words, lengths)
        loss = functional.cross_entropy(scores, labels)  # fault sorted_by_length
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 5.0)
    optimizer.step()
    print(step, loss.item())
