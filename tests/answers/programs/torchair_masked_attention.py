"""Two dumps of TorchAir: in one the softmax of an attention goes over the queries."""

import sys

import torch
import torchair

ANSWER = {
    "kind": "TorchAir's eager dump",
    "entry": "torchair",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run {script} {mode}",
    "operator": "softmax",
    "line": False,
    "says": ["dim"],
    "wants": "the node of the softmax, whose dim differs",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
project = torch.nn.Linear(6, 18)


def attention(x):
    query, key, value = project(x).chunk(3, -1)
    scores = query @ key.transpose(-1, -2) / 6**0.5
    return scores.softmax(-2 if FAULT else -1) @ value


config = torchair.CompilerConfig()
config.debug.data_dump.type = "npy"
config.debug.data_dump.path = sys.argv[1]
with torch.no_grad():
    torch.compile(attention, backend=torchair.get_npu_backend(compiler_config=config))(torch.randn(2, 5, 6))
