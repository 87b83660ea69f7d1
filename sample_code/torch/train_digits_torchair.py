"""Trains a small network on handwritten digits and dumps every operator of it, the way TorchAir does."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
import torchair
from sklearn.datasets import load_digits
from torch import nn


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


class Transformer(nn.Module):
    """Reads a picture row by row."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Linear(8, 32)
        self.place = nn.Parameter(torch.zeros(8, 32))
        layer = nn.TransformerEncoderLayer(32, nhead=4, dim_feedforward=64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = self.rows(x.squeeze(1)) + self.place
        return self.fc(self.encoder(x).mean(1))


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=["cnn", "transformer"], default="cnn")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--path", default="./dump", help="folder of the dump; it is made when it is missing")
    parser.add_argument("--nodes", nargs="*", help="dump only these nodes, for example convolution relu_1")
    return parser.parse_args()


def make_backend(args):
    config = torchair.CompilerConfig()
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = args.path
    if args.nodes:
        config.debug.data_dump.filter = lambda n: n if n.name in args.nodes else None
    return torchair.get_npu_backend(compiler_config=config)


def digits():
    pictures, labels = load_digits(return_X_y=True)
    return torch.tensor(pictures / 16, dtype=torch.float32).reshape(-1, 1, 8, 8), torch.tensor(labels)


def main():
    args = parse_args()
    world_size = int(os.environ.get("WORLD_SIZE", 1))
    if world_size > 1:
        dist.init_process_group("gloo")
    rank = dist.get_rank() if world_size > 1 else 0

    torch.manual_seed(0)
    model = Cnn() if args.model == "cnn" else Transformer()
    backend = make_backend(args)
    compiled = torch.compile(model, backend=backend)

    @torch.compile(backend=backend)
    def averaged(gradients):
        return [collectives.all_reduce(one, "sum", dist.group.WORLD) / world_size for one in gradients]

    pictures, labels = digits()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(args.steps):
        first = (step * world_size + rank) * args.batch_size % (len(labels) - args.batch_size)
        batch = slice(first, first + args.batch_size)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(compiled(pictures[batch]), labels[batch])
        loss.backward()
        if world_size > 1:
            with torch.no_grad():
                gradients = averaged([parameter.grad for parameter in model.parameters()])
                for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                    parameter.grad.copy_(gradient)
        optimizer.step()
        print(f"step: {step}, loss: {loss.item():.4f}", flush=True)

    if world_size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
