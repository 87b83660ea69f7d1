"""A training that TorchAir compiles to GE graphs, dumped in graph mode, and its graphs as text."""

import os

import torch
import torchair
from torch import nn

os.makedirs("dump", exist_ok=True)
config = torchair.CompilerConfig()
config.dump_config.enable_dump = True
config.dump_config.dump_path = "dump"
config.debug.graph_dump.type = "pbtxt"
config.debug.graph_dump.path = "."

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3), nn.Softmax(-1))
compiled = torch.compile(model, backend=torchair.get_npu_backend(compiler_config=config))
for _ in range(2):
    loss = compiled(torch.randn(5, 4)).square().sum()
    loss.backward()
    print(loss.item())
