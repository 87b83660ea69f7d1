"""Train a small network on handwritten digits with torch.compile; an ordinary PyTorch script.

python train_digits.py [--model cnn | transformer] [--steps N]
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(32 * 16, 10)

    def forward(self, images):
        return self.classifier(self.features(images).flatten(1))


class Transformer(nn.Module):
    """Each of the eight rows of a picture is a token."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Linear(8, 32)
        self.position = nn.Parameter(torch.zeros(8, 32))
        self.query_key_value = nn.Linear(32, 96)
        self.norm = nn.LayerNorm(32)
        self.classifier = nn.Linear(32, 10)

    def forward(self, images):
        tokens = self.embedding(images.squeeze(1)) + self.position
        query, key, value = self.query_key_value(self.norm(tokens)).chunk(3, dim=-1)
        weights = torch.softmax(query @ key.transpose(1, 2) / 32**0.5, dim=-1)
        return self.classifier((tokens + weights @ value).mean(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=("cnn", "transformer"), default="cnn")
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()

    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    model = Cnn() if args.model == "cnn" else Transformer()
    compiled = torch.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(args.steps):
        batch = torch.arange(step * 64, step * 64 + 64) % len(labels)
        loss = nn.functional.cross_entropy(compiled(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step: {step}, loss: {loss.item():.4f}")


if __name__ == "__main__":
    main()
