"""Transformer encoders that stay where they begin, though each of their steps looks like that of the tutorial.

People report a loss of `nn.TransformerEncoder` that stands still: its mask says the opposite of what was meant, its
positions are those of the batch, or the optimizer never got the part that is thawed later.
"""

import math
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
        "words_masked": {
            "goes_wrong": "The mask of keys is True for words and False for padding, where PyTorch wants the opposite: "
            "attention reads the padding alone.",
            "wants": "the mask of keys, which hides all words and leaves the padding, its line or that of the encoder",
        },
        "positions_over_the_batch": {
            "goes_wrong": "The positions of the tutorial, (time, 1, features), are added to (batch, time, features): "
            "all words of a sentence have the same position.",
            "wants": "the sum with the positions, which runs over the batch, its line or that of the positions",
        },
        "thawed_behind_the_optimizer": {
            "goes_wrong": "The optimizer is made with a filter of what asks for a gradient while the encoder is "
            "frozen; it is thawed after step 5 and gets gradients, but no step.",
            "wants": "the weights of the encoder, which get a gradient from step 5 on and never a step, the line of "
            "the optimizer, the step, the thaw, or where such a weight is used",
        },
    },
}

FAULT, WHICH = sys.argv[1] == "faulty", sys.argv[2]
WRONG = WHICH if FAULT else ""
WORDS, CLASSES, SENTENCES, PLACES, WIDTH, PADDING = 16, 4, 64, 18, 32, 0
torch.manual_seed(72)


def wave(count):
    """Sines and cosines of each place, (count, 1, WIDTH)."""
    place = torch.arange(count)[:, None]
    rate = torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10000.0) / WIDTH))
    positions = torch.zeros(count, 1, WIDTH)
    positions[:, 0, 0::2] = torch.sin(place * rate)
    positions[:, 0, 1::2] = torch.cos(place * rate)
    return positions  # fault positions_over_the_batch


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH, padding_idx=PADDING)
        self.register_buffer("positions", wave(100))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, words):
        read = self.words(words) * math.sqrt(WIDTH) / 4  # fault thawed_behind_the_optimizer
        if WRONG == "positions_over_the_batch":
            read = read + self.positions[: read.size(0)]  # fault positions_over_the_batch
        else:
            read = read + self.positions[: read.size(1)].transpose(0, 1)
        if WRONG == "words_masked":
            hidden = words != PADDING  # fault words_masked
        else:
            hidden = words == PADDING
        states = self.encoder(read, src_key_padding_mask=hidden)  # fault words_masked thawed_behind_the_optimizer
        return self.head(self.norm(states[:, 0]))


def sentences():
    """Sentences of 9 to 16 words behind a first word that stands for all; padding follows."""
    words = torch.randint(2, WORDS, (SENTENCES, PLACES))
    words[:, 0] = 1
    lengths = torch.randint(10, PLACES, (SENTENCES, 1))
    if WHICH == "positions_over_the_batch":
        # One word each of 2, 3, 4 and 5; which of them comes first is the label.
        words[:, 1:5] = torch.rand(SENTENCES, 4).argsort(1) + 2
        words[:, 5:] = PADDING
        return words, words[:, 1] - 2
    words[torch.arange(PLACES) >= lengths] = PADDING
    # One word is a verb, and says what the sentence is about.
    labels = torch.randint(CLASSES, (SENTENCES,))
    words[(words < 2 + CLASSES) & (words > 1)] += CLASSES
    words[torch.arange(SENTENCES), torch.randint(1, 10, (SENTENCES,))] = labels + 2
    return words, labels


def thaw(net, optimizer):
    for each in (net.encoder, net.words):
        each.requires_grad_(True)  # fault thawed_behind_the_optimizer
        if not FAULT:
            optimizer.add_param_group({"params": list(each.parameters())})


net = Classifier()
if WHICH == "thawed_behind_the_optimizer":
    net.encoder.requires_grad_(False)
    net.words.requires_grad_(False)
asking = filter(lambda each: each.requires_grad, net.parameters())  # fault thawed_behind_the_optimizer
optimizer = torch.optim.Adam(asking, lr=0.006)  # fault thawed_behind_the_optimizer
for step in range(40):
    if WHICH == "thawed_behind_the_optimizer" and step == 5:
        thaw(net, optimizer)
    words, labels = sentences()
    loss = functional.cross_entropy(net(words), labels)
    optimizer.zero_grad()
    loss.backward()  # fault thawed_behind_the_optimizer
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()  # fault thawed_behind_the_optimizer
    print(step, loss.item())
