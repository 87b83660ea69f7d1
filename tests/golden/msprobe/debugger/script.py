"""script.py CONFIG WAY: a small training that PrecisionDebugger of msprobe dumps.

Numbers are drawn from no generator, so that every machine computes nearly the same ones.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from msprobe.pytorch import PrecisionDebugger, seed_all


class Pair(NamedTuple):
    first: Any
    second: Any


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(3, 4)
        self.act = torch.nn.ReLU(inplace=True)
        self.drop = torch.nn.Dropout(0.0)

    def forward(self, x, parts=None):
        return {"sum": self.drop(self.act(self.fc(x))), "parts": [part * 2 for part in parts], "name": "block"}


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(4), torch.nn.Identity()])
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x, scale=None):
        h = self.block(x, parts=[x, x.detach()])
        y = self.norms[0](h["sum"]) + h["parts"][0].sum()
        for _ in range(2):
            y = self.norms[1](y)
        y = self.head(y.to(torch.float32).reshape(-1, 4)) * scale
        y[:, 0] += 1
        return Pair(y, torch.topk(y, 1))


def model_of() -> Model:
    model = Model()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_((torch.arange(parameter.numel()).reshape(parameter.shape) - number) / 16)
    return model


def odd_values(x: torch.Tensor) -> None:
    """What no layer passes."""
    torch.full((2,), float("nan"), dtype=torch.float64)
    torch.add(torch.tensor([1.0, float("inf")]), torch.tensor([1.0, 2.0]), alpha=2)
    torch.complex(x, x).abs().sum()
    (x > 0).any()
    torch.empty(0, 3).sum()
    torch.arange(6).reshape(2, 3)[:, 1:] % 4
    x.half().sum(dtype=torch.float16)
    torch.zeros_like(x, dtype=torch.bfloat16, device="cpu").add(1)
    torch.ones(2, dtype=torch.uint8).sum()
    torch.zeros(x.size(), device=torch.device("cpu"))
    x.clone(memory_format=torch.contiguous_format).mul(True)
    torch.cat([x, x], dim=-1).split(2, dim=-1)
    x[..., None, 0:1].expand(2, 3, 1, 1) if x.dim() == 3 else x[..., None]
    torch.where(x > 0, x, 0.5)
    torch.einsum("ij,kj->ik", x, x)


def train(debugger, model, way: str) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(3):
        x = ((torch.arange(6, dtype=torch.float32) - 2 + step) / 4).reshape(2, 3)
        debugger.start(model=model, token_range=[1, 2] if way == "tokens" else None)
        if way == "odd":
            odd_values(x)
        if way == "tokens":
            for _ in range(4):
                with torch.no_grad():
                    model(x, scale=torch.tensor(0.5))
        result = model(x, scale=torch.tensor(0.5))
        if way == "pause":
            debugger.stop()
            torch.neg(x)
            debugger.start(model=model)
        loss = F.mse_loss(result.first, torch.ones(2, 2))
        if way == "late":
            debugger.stop()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        debugger.stop()
        debugger.step()


def collectives(debugger, model) -> None:
    import torch.distributed as dist

    dist.init_process_group("gloo", rank=0, world_size=1, init_method=f"file://{os.environ['STORE']}")
    debugger.start(model=model)
    x = torch.arange(4, dtype=torch.float32)
    dist.all_reduce(x)
    dist.all_gather([torch.zeros(4)], x)
    work = dist.all_reduce(x, op=dist.ReduceOp.MAX, async_op=True)
    work.wait()
    dist.broadcast(x, src=0)
    debugger.stop()
    debugger.step()
    dist.destroy_process_group()


def save(debugger) -> None:
    x = torch.arange(3, dtype=torch.float32, requires_grad=True)
    for _ in range(2):
        y = x * 2
        PrecisionDebugger.save({"x": x, "more": [y, 3]}, "values")
        PrecisionDebugger.save(y, "y")
        PrecisionDebugger.save("text", "note", save_backward=False)
        y.sum().backward()
        debugger.step()


def main() -> None:
    config, way = sys.argv[1:]
    seed_all(mode=True)
    debugger = PrecisionDebugger(config_path=config)
    model = model_of()
    if way == "collectives":
        collectives(debugger, model)
    elif way == "save":
        save(debugger)
    else:
        train(debugger, model, way)


if __name__ == "__main__":
    main()
