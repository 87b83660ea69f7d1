"""Convolutional nets whose pictures, boxes or targets are in other units than the rest of the script.

People report a classifier whose loss stays at the logarithm of the number of classes, a detector that finds nothing
while its loss is almost 0, and an autoencoder with a loss far below 0.
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
    "variants": {
        "mean_of_bytes": {
            "goes_wrong": "The mean and deviation of pixels from 0 to 255 are taken from pictures between 0 and 1: "
            "each pixel is about -2, whatever it shows.",
            "wants": "the pictures, which are almost the same number everywhere, the line that normalises them or "
            "that of the first convolution",
        },
        "no_anchor_matches": {
            "goes_wrong": "Boxes of the labels lie between 0 and 1, and anchors are in pixels: no anchor overlaps "
            "with a box, so that all are background and no box is learned.",
            "wants": "the match of anchors and boxes, which finds none, so that the head of the boxes gets no "
            "gradient, the line of the match, of the overlap, of a loss, or of that head",
        },
        "standardised_targets": {
            "goes_wrong": "An autoencoder is to give back standardised pictures, with values from -1 to 2, by a "
            "binary cross entropy, which wants them between 0 and 1: its loss falls below 0 without an end.",
            "wants": "the cross entropy, whose targets are outside of 0 to 1, its line or that of the targets",
        },
    },
}

FAULT, WHICH = sys.argv[1] == "faulty", sys.argv[2]
WRONG = WHICH if FAULT else ""
SIDE, BATCH = 16, 32
torch.manual_seed(73)


def block(inputs, outputs, stride=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


class Classifier(nn.Module):
    """The old kind of net: convolutions, no norms."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.body = nn.Sequential(
            *(nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(24, 32, 3, padding=1), nn.ReLU(), nn.Flatten()),
        )
        self.head = nn.Sequential(nn.Linear(32 * 16, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 4))

    def forward(self, x):
        x = self.first(x)  # fault mean_of_bytes
        return self.head(self.body(x))


class Detector(nn.Module):
    """One anchor of 6 pixels in each of 4 by 4 places."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(block(3, 16), block(16, 24, 2), block(24, 32, 2), block(32, 32))
        self.score, self.box = nn.Conv2d(32, 1, 1), nn.Conv2d(32, 4, 1)
        middle = torch.arange(4) * 4 + 2.0
        across, down = middle.repeat(4), middle.repeat_interleave(4)
        self.register_buffer("anchors", torch.stack([across - 3, down - 3, across + 3, down + 3], 1))

    def forward(self, x):
        states = self.body(x)
        boxes = self.box(states).flatten(2).transpose(1, 2)  # fault no_anchor_matches
        return self.score(states).flatten(1), boxes


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(block(1, 12, 2), block(12, 24, 2), nn.Flatten(), nn.Linear(24 * 16, 24))
        self.decoder = nn.Sequential(
            *(nn.Linear(24, 24 * 16), nn.Unflatten(1, (24, 4, 4)), nn.Upsample(scale_factor=2), block(24, 12)),
            *(nn.Upsample(scale_factor=2), nn.Conv2d(12, 1, 3, padding=1)),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


def overlap(anchors, boxes):
    """The share of each anchor with each box, (boxes, anchors)."""
    low = torch.maximum(anchors[None, :, :2], boxes[:, None, :2])
    high = torch.minimum(anchors[None, :, 2:], boxes[:, None, 2:])
    common = (high - low).clamp(min=0).prod(-1)  # fault no_anchor_matches
    areas = [(each[:, 2:] - each[:, :2]).prod(-1) for each in (anchors, boxes)]
    return common / (areas[0][None] + areas[1][:, None] - common)  # fault no_anchor_matches


def squares():
    """Pictures with a bright square of 5 to 7 pixels, and its corners in pixels."""
    pictures = torch.rand(BATCH, 3, SIDE, SIDE) * 0.3
    side, corner = torch.randint(5, 8, (BATCH, 1)), torch.randint(0, SIDE - 7, (BATCH, 2))
    boxes = torch.cat([corner, corner + side], 1)
    place = torch.arange(SIDE)
    across = (place >= boxes[:, :1]) & (place < boxes[:, 2:3])
    down = (place >= boxes[:, 1:2]) & (place < boxes[:, 3:])
    inside = (down[:, :, None] & across[:, None, :])[:, None]
    return torch.where(inside, 0.6 + 0.4 * torch.rand(pictures.shape), pictures), boxes.float()


def loss_of_classes(net):
    pictures, boxes = squares()
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    labels = (middle[:, 0] > 7.5).long() + 2 * (middle[:, 1] > 7.5).long()
    mean, deviation = (123.7, 58.4) if FAULT else (0.485, 0.229)
    x = (pictures - mean) / deviation  # fault mean_of_bytes
    return functional.cross_entropy(net(x), labels)


def loss_of_boxes(net):
    pictures, boxes = squares()
    scores, moved = net(pictures)
    wanted = boxes / SIDE if FAULT else boxes  # fault no_anchor_matches
    matched = overlap(net.anchors, wanted) > 0.35  # fault no_anchor_matches
    found = functional.binary_cross_entropy_with_logits(scores, matched.float())  # fault no_anchor_matches
    offsets = (wanted[:, None] - net.anchors) / 6
    near = functional.smooth_l1_loss(moved[matched], offsets[matched], reduction="sum")  # fault no_anchor_matches
    near = near / matched.sum().clamp(min=1)  # fault no_anchor_matches
    return found + near  # fault no_anchor_matches


def loss_of_copies(net):
    pictures = (squares()[0][:, :1] > 0.45).float()
    x = (pictures - 0.15) / 0.36
    targets = x if FAULT else pictures  # fault standardised_targets
    return functional.binary_cross_entropy_with_logits(net(x), targets)  # fault standardised_targets


made, loss_of = {
    "mean_of_bytes": (Classifier, loss_of_classes),
    "no_anchor_matches": (Detector, loss_of_boxes),
    "standardised_targets": (Coder, loss_of_copies),
}[WHICH]
net = made()
optimizer = torch.optim.AdamW(net.parameters(), lr=0.005, weight_decay=0.01)
for step in range(40):
    loss = loss_of(net)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
