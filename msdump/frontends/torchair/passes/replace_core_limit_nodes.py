"""Pass replace_core_limit_nodes: TorchAir turns marks that limit the cores of an operator into its arguments.

It changes nothing here and leaves its file, so that the list of files is TorchAir's. Kernels of PyTorch take
no such limit: `torch.set_num_threads` is for the process.
"""

from __future__ import annotations

from torch.fx import GraphModule

from msdump.frontends.torchair.passes.fx_pass import PassContext


def run(_module: GraphModule, _context: PassContext) -> bool:
    return False
