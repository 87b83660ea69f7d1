"""Whole channels zero at random."""

from __future__ import annotations

from msdump.mindspore.common.generator import random_generator
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import execute
from msdump.mindspore.tracer import current_tracer


def channels_dropped(op_type: str, input: Tensor, keep_prob: float) -> tuple[Tensor, ...]:
    """`input` (N, C, ...) with channels zero with probability 1 - keep_prob, and the mask of what stays.

    op_type   Dropout2D for 4 axes, Dropout3D for 5
    """
    attrs = {"keep_prob": keep_prob, "Seed0": int(random_generator().integers(1, 2**31))}
    tracer = current_tracer()
    draws = [] if tracer is None or tracer.is_recording else [tracer.draw()]
    return tuple(execute(op_type, [input, *draws], attrs))
