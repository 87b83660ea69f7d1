"""A compiled model dumps by TorchAir's data_dump; the second batch holds a negative number."""

import sys

import torch
import torchair

ANSWER = {
    "kind": "TorchAir's eager dump",
    "entry": "torchair",
    "ask": "nan {faulty}",
    "run": "msdump run {script} {mode}",
    "operator": "log",
    "line": False,
    "step": 1,
    "wants": "the node log, in the second run of the graph",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.out(torch.log(x))


config = torchair.CompilerConfig()
config.debug.data_dump.type = "npy"
config.debug.data_dump.path = sys.argv[1]
compiled = torch.compile(Net(), backend=torchair.get_npu_backend(compiler_config=config))
with torch.no_grad():
    for step in range(3):
        x = torch.rand(3, 4) + 0.1
        if FAULT and step == 1:
            x[0, 0] = -1
        compiled(x)
