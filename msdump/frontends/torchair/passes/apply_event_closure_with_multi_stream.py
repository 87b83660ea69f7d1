"""Pass apply_event_closure_with_multi_stream: TorchAir puts events between parts of a graph that run in parallel.

It changes nothing here and leaves its file, so that the list of files is TorchAir's. The calls of a captured graph
run one after the other on one stream, and there is no way to ask for a second one.
"""

from __future__ import annotations

from torch.fx import GraphModule

from msdump.frontends.torchair.passes.fx_pass import PassContext


def run(_module: GraphModule, _context: PassContext) -> bool:
    return False
