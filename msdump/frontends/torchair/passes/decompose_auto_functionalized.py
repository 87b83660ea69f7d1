"""Pass decompose_auto_functionalized: custom operators that write get their copies and their real name back."""

from __future__ import annotations

import warnings

import torch
from torch.fx import GraphModule

from msdump.frontends.torchair.passes.fx_pass import PassContext

OLDEST = (2, 6)


def is_known(version: str = torch.__version__) -> bool:
    """Has this PyTorch what the pass needs?   Source: TorchAir runs it from 2.6 on."""
    major, minor = version.split("+")[0].split(".")[:2]
    return (int(major), int(minor)) >= OLDEST


def run(module: GraphModule, _: PassContext) -> bool:
    """Replace `auto_functionalized(op, x=x)` by a copy of `x` and a call of `op` on it."""
    higher = torch.ops.higher_order
    wrapped = {higher.auto_functionalized, higher.auto_functionalized_v2}
    if not any(node.op == "call_function" and node.target in wrapped for node in module.graph.nodes):
        return False
    # Takes a second to import, so only graphs that need it pay; PyTorch deprecates what it uses there itself.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from torch._inductor.fx_passes.post_grad import decompose_auto_functionalized

    decompose_auto_functionalized(module.graph)  # type: ignore[no-untyped-call]
    return True
