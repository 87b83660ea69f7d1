"""Pass apply_event_record: TorchAir records the tagged events that a script put into its model.

It changes nothing here and leaves its file, so that the list of files is TorchAir's. The operators that tag an
event belong to an NPU; a graph on this machine cannot hold one.
"""

from __future__ import annotations

from torch.fx import GraphModule

from msdump.frontends.torchair.passes.fx_pass import PassContext


def run(_module: GraphModule, _context: PassContext) -> bool:
    return False
