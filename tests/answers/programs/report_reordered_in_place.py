"""A backend of torch.compile moves an operator in place before one that reads the old value; eager is right."""

import sys

import torch

ANSWER = {
    "kind": "public reports",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} --tensors 0-1 {script} {mode}",
    "ask": "compare {faulty} {golden}",
    "operator": "",
    "step": 0,
    "never": ["different weights or data"],
    "wants": "the compiled function, its call or its operators, their line, step 0; not the layer before it",
}


def backend(graph, _):
    if sys.argv[1] == "faulty":
        (writer,) = (node for node in graph.graph.nodes if node.target == "log_")
        (reader,) = (node for node in graph.graph.nodes if node.target is torch.log)
        reader.prepend(writer)
        graph.recompile()
    return graph.forward


def squash(x):
    y = torch.log(x)  # fault
    x.log_()  # fault
    return y * 2 + x * 0


if sys.argv[1] != "golden":
    squash = torch.compile(squash, backend=backend)
torch.manual_seed(6)
layer = torch.nn.Linear(4, 4)
with torch.no_grad():
    for _ in range(2):
        hidden = torch.nn.functional.softplus(layer(torch.randn(3, 4))) + 1.5
        result = squash(hidden)  # fault
        result.sum()
