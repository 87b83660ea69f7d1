"""A chain of some thousand small operators, in which one sum takes another number at three quarters."""

import sys

import torch

ANSWER = {
    "kind": "many operators",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "aten.add.Tensor-op300",
    "step": 0,
    "wants": "the sum at three quarters, its line, out of 1,200 operators",
}

LENGTH = 400
torch.manual_seed(0)
weight = torch.linalg.qr(torch.randn(8, 8))[0]
bias, x = torch.randn(8) / 100, torch.randn(4, 8)
with torch.no_grad():
    for number in range(LENGTH):
        x = torch.mm(x, weight)
        is_off = sys.argv[1] == "faulty" and number == LENGTH * 3 // 4
        x = x + (bias + 0.005 if is_off else bias)  # fault
        x = torch.sin(x)
