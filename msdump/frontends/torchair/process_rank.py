"""Which process of a job this is."""

from __future__ import annotations

import sys


def process_rank() -> tuple[int, int]:
    """(world size, rank) of this process; (1, 0) when it works alone.

    Edges: a script that has not imported torch works alone; this does not import it.
    """
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        world_size = distributed.get_world_size()
        if world_size > 1:
            return world_size, distributed.get_rank()
    return 1, 0
