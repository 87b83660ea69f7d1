"""Attention with rotary embedding in bfloat16: Inductor fuses operators, and rounds less often than eager PyTorch."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "names and iterations",
    "entry": "eager",
    "run": {
        "faulty_compiled": "msdump run --config {config} --torch-backend msdump-inductor {script} {mode}",
        "healthy_compiled": "msdump run --config {config} --torch-backend msdump-inductor {script} {mode}",
    },
    "also": ["faulty_compiled", "healthy_compiled"],
    "ask": "compare {faulty} {faulty}_compiled",
    "step": 0,
    "never": ["aten.mul.Tensor-op8"],
    "wants": "the softmax and the matrix product with it, of equal scores; in float32 both runs agree",
}
MODE = sys.argv[1]
DTYPE = torch.bfloat16 if MODE.startswith("faulty") else torch.float32


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))

    def forward(self, x, cos, sin):
        q, k, v = rotated(self.q(x), cos, sin), rotated(self.k(x), cos, sin), self.v(x)
        scores = q @ k.transpose(1, 2) * x.shape[-1] ** -0.5
        return scores.softmax(-1) @ v  # fault


torch.manual_seed(0)
model = Attention(32).to(DTYPE)
if MODE.endswith("compiled"):
    model = torch.compile(model)
angle = (torch.arange(24)[:, None] / 10000 ** (torch.arange(0, 32, 2) / 32)).repeat(1, 2).to(DTYPE)
x = (12 * torch.randn(2, 24, 32)).to(DTYPE)
with torch.no_grad():
    model(x, angle.cos(), angle.sin())
