"""Pass replace_dynamic_workspace_ops: TorchAir replaces operators whose workspace would change between two replays.

It changes nothing here and leaves its file, so that the list of files is TorchAir's. Operators
of PyTorch get their workspace from its allocator, which CUDA graphs know about.
"""

from __future__ import annotations

from torch.fx import GraphModule

from msdump.frontends.torchair.passes.fx_pass import PassContext


def run(_module: GraphModule, _context: PassContext) -> bool:
    return False
