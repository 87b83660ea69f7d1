"""The same training of AlexNet in PyTorch: an ordinary script that knows nothing of dumps.

    msdump run train_alexnet_torch.py --data_path datasets/digits --steps 3

The pictures are those of `train_alexnet.py`: .bin files of the CIFAR-10 binary version.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn


class AlexNet(nn.Module):
    """AlexNet for pictures of 227 x 227 pixels."""

    def __init__(self, num_classes=10, channel=3):
        super().__init__()
        self.conv1 = nn.Conv2d(channel, 96, 11, stride=4, bias=False)
        self.conv2 = nn.Conv2d(96, 256, 5, padding=2, bias=False)
        self.conv3 = nn.Conv2d(256, 384, 3, padding=1, bias=False)
        self.conv4 = nn.Conv2d(384, 384, 3, padding=1, bias=False)
        self.conv5 = nn.Conv2d(384, 256, 3, padding=1, bias=False)
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(3, 2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Linear(6 * 6 * 256, 4096)
        self.fc2 = nn.Linear(4096, 4096)
        self.fc3 = nn.Linear(4096, num_classes)

    def forward(self, x):
        """Scores (N, num_classes) of pictures (N, channel, 227, 227)."""
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.max_pool2d(self.relu(self.conv2(x)))
        x = self.relu(self.conv3(x))
        x = self.relu(self.conv4(x))
        x = self.max_pool2d(self.relu(self.conv5(x)))
        x = self.flatten(x)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


def read_pictures(folder, count):
    """Pictures (N, 3, 227, 227) and labels (N), the first ones of a folder."""
    rows = np.concatenate([np.fromfile(path, np.uint8) for path in sorted(Path(folder).glob("*.bin"))]).reshape(
        -1, 3073
    )
    pictures = torch.from_numpy(rows[:count, 1:].reshape(-1, 3, 32, 32)).float() / 255 - 0.5
    return nn.functional.interpolate(pictures, (227, 227)), torch.from_numpy(rows[:count, 0]).long()


def main():
    parser = argparse.ArgumentParser(description="Train AlexNet for a few steps.")
    parser.add_argument("--data_path", required=True, help="folder with the .bin files of the CIFAR-10 binary version")
    parser.add_argument("--steps", type=int, default=5, help="training steps, default 5")
    parser.add_argument("--batch_size", type=int, default=8, help="pictures in a step, default 8")
    args = parser.parse_args()
    torch.manual_seed(1)
    pictures, labels = read_pictures(args.data_path, args.batch_size)
    network = AlexNet()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.005, momentum=0.9)
    for step in range(1, args.steps + 1):
        loss = nn.functional.cross_entropy(network(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step: {step}, losses: {loss.item()}", flush=True)


if __name__ == "__main__":
    main()
