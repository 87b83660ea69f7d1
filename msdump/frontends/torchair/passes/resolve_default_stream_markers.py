"""Pass resolve_default_stream_markers: TorchAir replaces marks of the default stream by that stream.

It changes nothing here and leaves its file, so that the list of files is TorchAir's. There is one stream, and
nothing marks it.
"""

from __future__ import annotations

from torch.fx import GraphModule

from msdump.frontends.torchair.passes.fx_pass import PassContext


def run(_module: GraphModule, _context: PassContext) -> bool:
    return False
