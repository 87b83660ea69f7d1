"""A net that straightens pictures and finds landmarks in them was moved to a newer library, with its training."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWER = {
    "kind": "sixth trial: a finder of landmarks upgraded",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "step": 0,
    "variants": {
        "corners": {
            "goes_wrong": "The straightened picture is sampled with the corners not aligned, the default of today.",
            "wants": "the sampling of the picture",
        },
        "mesh": {
            "goes_wrong": "The mesh of coordinates is indexed as xy, so that rows and columns change places.",
            "wants": "the mesh of coordinates, or the first sum with it",
        },
        "huber": {
            "goes_wrong": "The loss is huber_loss in place of smooth_l1_loss, without the division by its threshold.",
            "wants": "the loss of the landmarks",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
IS_NEW = sys.argv[1] != "golden"
SIDE, BATCH, POINTS, WIDTH, STEPS, THRESHOLD, RATE = 20, 4, 3, 12, 3, 0.3, 0.005

rng = np.random.default_rng(603)
faces = torch.from_numpy(rng.standard_normal((STEPS, BATCH, 1, SIDE, SIDE), dtype=np.float32))
points = torch.from_numpy(rng.uniform(-0.7, 0.7, (STEPS, BATCH, POINTS, 2)).astype(np.float32))


class Straightener(nn.Module):
    """Tells how a picture is turned, and turns it back."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 5), nn.Conv2d(8, 10, 5)
        self.fc1, self.fc2 = nn.Linear(40, 16), nn.Linear(16, 6)

    def forward(self, x):
        h = F.relu(F.max_pool2d(self.conv1(x), 2))
        h = F.relu(F.max_pool2d(self.conv2(h), 2))
        turn = self.fc2(F.relu(self.fc1(h.flatten(1)))).view(-1, 2, 3)
        if not IS_NEW:
            return F.grid_sample(x, F.affine_grid(turn, x.shape, align_corners=True), align_corners=True)
        ticks = torch.linspace(-1, 1, SIDE)
        across, along = torch.meshgrid(ticks, ticks, indexing="xy")
        base = torch.stack([across, along, torch.ones_like(along)], -1)
        grid = torch.einsum("hwk,bck->bhwc", base, turn)
        if FAULT == "corners":
            return F.grid_sample(x, grid)  # fault corners
        return F.grid_sample(x, grid, align_corners=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.straightener = Straightener()
        self.convs = nn.ModuleList([nn.Conv2d(1, WIDTH, 3, padding=1), nn.Conv2d(WIDTH, WIDTH, 3, padding=1)])
        self.norms = nn.ModuleList(nn.InstanceNorm2d(WIDTH, affine=True) for _ in range(2))
        self.maps = nn.Conv2d(WIDTH, POINTS, 1)

    def forward(self, x):
        x = self.straightener(x)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = F.leaky_relu(norm(conv(x)), 0.1)
        return self.places(self.maps(x).flatten(2).softmax(-1))

    def places(self, shares):
        """The mean place of each landmark, row and column."""
        ticks = torch.linspace(-1, 1, SIDE)
        if not IS_NEW:
            row, column = ticks[:, None].expand(SIDE, SIDE), ticks[None].expand(SIDE, SIDE)
            return torch.stack([(shares * row.flatten()).sum(-1), (shares * column.flatten()).sum(-1)], -1)
        mesh = torch.meshgrid(ticks, ticks, indexing="xy" if FAULT == "mesh" else "ij")  # fault mesh
        mesh = torch.stack(mesh, -1).flatten(0, 1)  # fault mesh
        return shares @ mesh  # fault mesh


def filled(net):
    with torch.no_grad():
        for name, tensor in net.named_parameters():
            drawn = rng.standard_normal(tuple(tensor.shape))
            if tensor.ndim > 1:
                drawn *= 1.4 / tensor[0].numel() ** 0.5
                drawn *= 3 if name.startswith("maps") else 1
            else:
                drawn = 0.2 * drawn + ("norms" in name and name.endswith("weight"))
            if name == "straightener.fc2.weight":
                drawn *= 0.2
            if name == "straightener.fc2.bias":
                drawn = 0.5 * drawn + np.array([1, 0, 0, 0, 1, 0])
            tensor.copy_(torch.from_numpy(drawn))
    return net


def distance(guess, point):
    if not IS_NEW:
        return F.smooth_l1_loss(guess, point, beta=THRESHOLD)
    loss = F.huber_loss(guess, point, delta=THRESHOLD)  # fault huber
    return loss if FAULT == "huber" else loss / THRESHOLD  # fault huber


net = filled(Net())
groups = [
    {"params": net.straightener.parameters(), "lr": 0.2 * RATE},
    {"params": [*net.convs.parameters(), *net.norms.parameters(), *net.maps.parameters()]},
]
optimizer = torch.optim.SGD(groups, lr=20 * RATE, momentum=0.9, nesterov=True, foreach=IS_NEW)
for face, point in zip(faces, points, strict=True):
    optimizer.zero_grad()
    loss = distance(net(face), point)
    loss.backward()
    optimizer.step()
    print(loss.item())
